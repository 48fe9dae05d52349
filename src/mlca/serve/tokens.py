"""Tokens with scopes, of which the service stores only hashes.

A token has 256 random bits, so it cannot be guessed, and a plain hash is enough to protect it. Guessing is nevertheless
slowed down and reported (`TokenGuard`), because it costs the service time and the operator should know about it. The
token file is read again when it changes; removing an entry revokes its token at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mlca.replacing import replacing
from mlca.serve.file_locks import changing
from mlca.serve.request_errors import RequestError

SCOPES = ("predict", "learn", "admin")
_FORMAT, _VERSION = "mlca tokens", 1

# Number of wrong tokens per address before responses are delayed, and the delay in seconds.
FREE_FAILURES = 10
HOLD_SECONDS = 1.0
# Largest number of delayed responses per address at a time.
MOST_HELD = 8
# Seconds without a wrong token after which the count of an address restarts from zero.
FORGIVEN_AFTER = 600.0
# Largest number of addresses whose failures are counted.
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Token:
    """An entry of the token file: name, scopes and hash of a token."""

    name: str
    scopes: frozenset[str]
    sha256: str


class Tokens:
    """The tokens in a file, which is read again when it changes.

    Parameters
    ----------
    path : Path
        The token file, written by `add_token`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._look()
        self._tokens = read_tokens(path)

    def holder(self, secret: str) -> Token | None:
        """Return a token's entry, or None if it is unknown, in time independent of the token."""
        stamp = self._look()
        if stamp != self._stamp:
            self._tokens, self._stamp = read_tokens(self._path), stamp
        digest = _digest(secret)
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.sha256, digest):
                found = token
        return found

    def _look(self) -> tuple[int, int, int]:
        about = self._path.stat()
        return about.st_mtime_ns, about.st_size, about.st_ino


@dataclass
class _Failures:
    """Failed token attempts from one address: count, time of the last one, delayed responses."""

    count: int = 0
    last: float = 0.0
    held: int = 0


class TokenGuard:
    """Looks up tokens, and slows down guessing.

    Wrong tokens are counted per address. After the first few, responses to wrong tokens are delayed by a second. Only a
    few responses per address are delayed at a time; meanwhile, additional wrong tokens are rejected at once. Valid
    tokens are always accepted: all clients behind a proxy share an address, and a client that guesses must not lock out
    the others.

    Parameters
    ----------
    tokens : Tokens
        The tokens.
    on_failure : callable
        Called for each wrong token with the address and its number of failures.
    """

    def __init__(self, tokens: Tokens, on_failure: Callable[[str, int], None]) -> None:
        self._tokens, self._on_failure = tokens, on_failure
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    async def holder(self, secret: str, address: str) -> Token | None:
        """Return a token's entry; delay or reject wrong tokens, and return None for them."""
        token = self._tokens.holder(secret)
        if token is not None:
            return token
        network, now = _network_of(address), time.monotonic()
        failures = self._failures.get(network)
        if failures is None or (now - failures.last > FORGIVEN_AFTER and not failures.held):
            failures = _Failures()
        failures.count, failures.last = failures.count + 1, now
        self._failures[network] = failures
        self._failures.move_to_end(network)
        if len(self._failures) > _MOST_REMEMBERED:
            self._failures.popitem(last=False)
        self._on_failure(network, failures.count)
        if failures.held >= MOST_HELD:
            problem = "too many wrong tokens from this address"
            raise RequestError(429, problem, "wait, then send a valid token", retry_after=1)
        if failures.count > FREE_FAILURES:
            failures.held += 1
            try:
                await asyncio.sleep(HOLD_SECONDS)
            finally:
                failures.held -= 1
        return None


def _network_of(address: str) -> str:
    """Return the key under which failures are counted: IPv4 address or IPv6 /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed.packed[:8] + bytes(8), 64)))


def read_tokens(path: Path) -> list[Token]:
    """Read a token file; raise ValueError if it is invalid."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["format"] != _FORMAT or plain["version"] != _VERSION:
            raise ValueError(f"expected {_FORMAT}, version {_VERSION}")
        tokens = [Token(str(t["name"]), frozenset(t["scopes"]), str(t["sha256"])) for t in plain["tokens"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a token file ({error}); `mlca serve token` creates one") from None
    for token in tokens:
        if not token.scopes <= set(SCOPES) or len(token.sha256) != 64 or not token.sha256.isascii():
            raise ValueError(f"{path}: the token of {token.name!r} is damaged; remove it and create another")
    return tokens


def add_token(path: Path, name: str, scopes: list[str]) -> str:
    """Create a token, store its hash and return the token, which cannot be recovered later.

    Parameters
    ----------
    path : Path
        The file; created if it does not exist, readable by its owner only.
    name : str
        The name of the token's owner, shown in the service's log.
    scopes : list of str
        Names from `SCOPES`.

    Returns
    -------
    str
        The token.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tokens.json"
    >>> secret = add_token(path, "sensors", ["learn"])
    >>> Tokens(path).holder(secret).name, Tokens(path).holder("guess"), secret in path.read_text()
    ('sensors', None, False)
    """
    secret = "mlca_" + secrets.token_urlsafe(32)
    with changing(path):
        tokens = read_tokens(path) if path.exists() else []
        if any(token.name == name for token in tokens):
            raise ValueError(f"{path}: {name!r} has a token already; choose another name, or remove the old one")
        tokens.append(Token(name, frozenset(scopes), _digest(secret)))
        plain = {
            "format": _FORMAT,
            "version": _VERSION,
            "tokens": [{"name": t.name, "scopes": sorted(t.scopes), "sha256": t.sha256} for t in tokens],
        }
        with replacing(path, 0o600) as file:
            file.write(json.dumps(plain, indent=1).encode())
    return secret


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()

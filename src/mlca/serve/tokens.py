"""Tokens with scopes, of which the service knows only hashes.

A token is 256 random bits, so a plain hash protects it, and guessing is hopeless. Guesses are slowed down all the same
(`TokenGuard`): they cost the service time, and the operator should know of them. The file of tokens is read again when
it changes; removing an entry revokes its token at once.
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
from typing import Any

from mlca.replacing import replacing
from mlca.serve.file_locks import changing
from mlca.serve.request_errors import RequestError

SCOPES = ("predict", "learn", "admin")
_FORMAT, _VERSION = "mlca tokens", 1

# Wrong tokens that an address may send before answers are held, and for how many seconds each answer is held.
FREE_FAILURES = 10
HOLD_SECONDS = 1.0
# Answers to one address that are held at a time; together with the line above, guesses per second.
MOST_HELD = 8
# Seconds without a wrong token after which an address begins again.
FORGIVEN_AFTER = 600.0
# Addresses with failures, and pairs of address and token that was let in, that are remembered.
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Token:
    """A token as the file has it."""

    name: str
    scopes: frozenset[str]
    sha256: str


class Tokens:
    """The tokens of a file.

    Parameters
    ----------
    path : Path
        The file, as `add_token` writes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._look()
        self._tokens = read_tokens(path)

    def holder(self, secret: str) -> Token | None:
        """Return whose a token is; None if nobody's. It takes the same time for all."""
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
    """Wrong tokens of an address: their number, when the last came, and how many answers are held now."""

    count: int = 0
    last: float = 0.0
    held: int = 0


class TokenGuard:
    """Looks up tokens, and slows down those who guess them.

    Wrong tokens are counted per address. Answers to wrong tokens beyond the first few are held for a second, of which
    only some at a time: while these are held, further tokens of that address are not looked up, so that guessing over
    many connections is no faster. Tokens that were let in from that address before are always looked up: all clients
    behind a proxy have its address, and one that guesses must not lock out the others.

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
        self._admitted: OrderedDict[tuple[str, str], None] = OrderedDict()

    async def holder(self, secret: str, address: str) -> Token | None:
        """Return whose a token is, or None, later, if it is unknown; raise RequestError for too many guesses."""
        network = _network_of(address)
        pair = (network, _digest(secret))
        failures = self._failures.get(network)
        if failures is not None and failures.held >= MOST_HELD and pair not in self._admitted:
            problem = "too many wrong tokens came from this address"
            raise RequestError(429, problem, "wait, and send the right one", retry_after=1)
        token = self._tokens.holder(secret)
        if token is not None:
            _remember(self._admitted, pair, None)
            return token
        now = time.monotonic()
        if failures is None or (now - failures.last > FORGIVEN_AFTER and not failures.held):
            failures = _Failures()
        failures.count, failures.last = failures.count + 1, now
        _remember(self._failures, network, failures)
        self._on_failure(network, failures.count)
        if failures.count > FREE_FAILURES:
            failures.held += 1
            try:
                await asyncio.sleep(HOLD_SECONDS)
            finally:
                failures.held -= 1
        return None


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    """Put an entry last; the oldest ones leave where there are too many."""
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _MOST_REMEMBERED:
        memory.popitem(last=False)


def _network_of(address: str) -> str:
    """Return what failures are counted for: an address of IPv4, or the network of 64 bits that one customer has."""
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
    """Read a file of tokens; raise ValueError if it is none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["format"] != _FORMAT or plain["version"] != _VERSION:
            raise ValueError(f"it is not {_FORMAT}, version {_VERSION}")
        tokens = [Token(str(t["name"]), frozenset(t["scopes"]), str(t["sha256"])) for t in plain["tokens"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: no file of tokens ({error}); `mlca serve token` makes one") from None
    for token in tokens:
        if not token.scopes <= set(SCOPES) or len(token.sha256) != 64 or not token.sha256.isascii():
            raise ValueError(f"{path}: the token of {token.name!r} is damaged; take it out and make another")
    return tokens


def add_token(path: Path, name: str, scopes: list[str]) -> str:
    """Make a token, put its hash into a file and return it: it can never be shown again.

    Parameters
    ----------
    path : Path
        The file; made where there is none, readable by its owner only.
    name : str
        Whose it is; stands in the service's log.
    scopes : list of str
        Out of `SCOPES`.

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
            raise ValueError(f"{path}: {name!r} has a token already; choose another name, or take the old one out")
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

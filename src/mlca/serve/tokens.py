"""Who may do what: tokens with scopes, of which the service knows only hashes.

A token is 256 random bits, so that a plain hash protects it: there is nothing to guess. The file is read again
when it changes; taking a line out revokes a token at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from mlca.replacing import replacing
from mlca.serve.folders import changing

SCOPES = ("predict", "learn", "admin")
_FORMAT, _VERSION = "mlca tokens", 1


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

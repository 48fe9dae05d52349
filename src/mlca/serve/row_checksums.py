"""Checksums of the log, one per row, each computed from the previous one.

The checksum at a position covers the log's identity, parameters and starting model, and every row up to that position.
Logs with the same checksum at a position have the same rows up to that position. The checksum is stored with each
model, so a changed, truncated or replaced log is detected.

Each row has a random salt, a digest of salt and content, and a checksum, which is computed from the previous checksum
and the digest. Forgetting erases content and salt and keeps the digest: the chain stays intact, and without the salt
the digest reveals nothing about the content.

The checksums detect damage. They do not protect against an attacker who can write to the database.
"""

from __future__ import annotations

import secrets
import struct
from hashlib import blake2b

_BYTES = 16


def new_salt() -> bytes:
    """Return a random salt for the digest of a row."""
    return secrets.token_bytes(_BYTES)


def content_digest(salt: bytes, id: str, x: bytes, predicted: str | None) -> bytes:
    """Return the salted digest of a row's ID, values and prediction, without its labels."""
    return _digest(salt, id.encode(), x, None if predicted is None else predicted.encode())


def row_digest(salt: bytes, content: bytes, labels: str, at: float) -> bytes:
    """Return the digest of a labelled row, from its content digest, labels and time."""
    return _digest(salt, content, labels.encode(), struct.pack("<d", at))


def origin_checksum(identity: str, parameters: str, start: bytes | None) -> bytes:
    """Return the checksum at position 0, before the first row."""
    return _digest(b"", identity.encode(), parameters.encode(), start)


def next_checksum(previous: bytes, position: int, digest: bytes, columns: str) -> bytes:
    """Return the checksum at a position, from the previous checksum and the row's digest.

    The checksum of the first row also covers the columns, which never change afterwards.

    Examples
    --------
    >>> origin = origin_checksum("log", "{}", None)
    >>> first = next_checksum(origin, 1, b"digest", "columns")
    >>> first == next_checksum(origin, 1, b"digest", "others")
    False
    >>> next_checksum(first, 2, b"digest", "columns") == next_checksum(first, 2, b"digest", "others")
    True
    """
    return _digest(b"", previous, struct.pack("<q", position), digest, columns.encode() if position == 1 else None)


def _digest(salt: bytes, *parts: bytes | None) -> bytes:
    digest = blake2b(digest_size=_BYTES, salt=salt)
    for part in parts:
        digest.update(b"-" if part is None else struct.pack("<cq", b"+", len(part)))
        digest.update(part or b"")
    return digest.digest()

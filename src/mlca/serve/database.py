"""The interface between a log and its database."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

# Errors raised when damaged values are decoded: from a damaged file, SQLite may return values of any type.
UNREADABLE = (AttributeError, KeyError, OverflowError, TypeError, ValueError, struct.error)


class LogError(Exception):
    """The log could not be read or written; a failed write may be retried."""


class DamageError(LogError):
    """The content of the log differs from what was written; retrying does not help."""


class InDoubtError(LogError):
    """The commit was not confirmed, so it is unknown whether the write happened."""


def stored_bytes(value: Any) -> bytes:
    """Return a stored binary value as bytes; raise TypeError for other types.

    `bytes` alone would accept a number, as a length.
    """
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"expected bytes, found {type(value).__name__}")
    return bytes(value)


class Session(Protocol):
    """An open transaction of a database."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, whose placeholders are ?, and return its rows."""

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""


class Database(Protocol):
    """The interface of a log's database, implemented by `SQLite` and `PostgreSQL`."""

    blob: str
    """The SQL type for binary values."""

    serial: str
    """The SQL type of an auto-incrementing integer."""

    add_column: str
    """The SQL clause that adds a column to a table, for upgrading logs of older versions."""

    shared: bool
    """Whether services on other machines can use this database."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open a transaction as the only writer; commit durably, or roll back on an exception.

        Raises InDoubtError if the commit was requested but not confirmed.
        """

    def reading(self) -> AbstractContextManager[Session]:
        """Open a read transaction that sees one consistent state."""

    def wait(self, seconds: float) -> None:
        """Wait up to `seconds` for a new commit; may return early."""

    def wake(self) -> None:
        """Make a thread return from `wait`."""

    def erase(self) -> None:
        """Remove deleted data from disk if the database supports it; raise LogError on failure."""

    def close(self) -> None:
        """Close all connections."""

"""What a log asks of the database that it lives in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class LogError(Exception):
    """The log could not be read or written; what was being written did not happen, or may be sent again."""


class DamageError(LogError):
    """The log holds something else than was written to it; trying again does not help."""


class InDoubtError(LogError):
    """Whether what was being written has happened is not known: the answer to the commit did not come."""


class Session(Protocol):
    """A transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, with a ? for each value, and return its rows."""

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""


class Database(Protocol):
    """Where a log lives."""

    blob: str
    """The type of bytes."""

    serial: str
    """The type of a number that counts up by itself."""

    add_column: str
    """What adds a column to a table, in a log of an older version."""

    shared: bool
    """Whether services on other machines may be at work on it."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open a transaction as the only writer; leaving it commits durably, an exception undoes it.

        InDoubtError tells that the commit was asked for and not answered.
        """

    def reading(self) -> AbstractContextManager[Session]:
        """Open a transaction that sees one state."""

    def wait(self, seconds: float) -> None:
        """Return when something may have been committed, at the latest after some seconds."""

    def wake(self) -> None:
        """Let `wait` return."""

    def erase(self) -> None:
        """Take what was overwritten off the disk, as far as the database can; raise LogError if not now."""

    def close(self) -> None:
        """Close all connections."""

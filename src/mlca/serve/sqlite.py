"""A log in one SQLite file; committed rows survive a loss of power.

In WAL mode with synchronous=FULL, a commit returns when its pages are on disk. With secure_delete, deleted data is
overwritten with zeros. Each thread has its own connection, because a reader must not wait for the writer's commit.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mlca.serve.database import LogError

# Milliseconds that a transaction waits for a lock on the file.
_PATIENCE = 2000


class _Session:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)


class SQLite:
    """The database of a log in an SQLite file.

    Parameters
    ----------
    path : Path
        The file; created if it does not exist.
    """

    blob = "BLOB"
    serial = "INTEGER"
    add_column = "ADD COLUMN"
    shared = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_thread = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._news = threading.Event()

    @contextmanager
    def writing(self) -> Iterator[_Session]:
        """Open a transaction as the only writer of the file."""
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def reading(self) -> Iterator[_Session]:
        """Open a read transaction that sees one consistent state."""
        with self._transaction("BEGIN") as session:
            yield session

    def wait(self, seconds: float) -> None:
        """Wait until this process commits, or `seconds` pass; no other process writes."""
        self._news.wait(seconds)
        self._news.clear()

    def wake(self) -> None:
        """Make the thread return from `wait`."""
        self._news.set()

    def erase(self) -> None:
        """Empty the WAL, which would otherwise keep erased data until it is reused."""
        with self._translated():
            busy, _, _ = self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LogError(f"{self._path}: a reader still uses forgotten data; the WAL is emptied later")

    def close(self) -> None:
        """Close all connections; closing the last one empties the WAL."""
        for connection in self._all:
            with suppress(sqlite3.Error):
                connection.close()
        self._all.clear()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Session]:
        with self._translated():
            connection = self._connection()
            connection.execute(begin)
            try:
                yield _Session(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter if SQLite's message contains damaged bytes
            raise LogError(f"{self._path}: {error}") from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._all.append(connection)
            connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise LogError(
                    f"{self._path}: the file system lacks support for WAL (journal mode {mode}); use a local disk"
                )
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            self._of_thread.connection = connection
        return connection

"""A log in PostgreSQL, for services on several machines.

Writers take an advisory lock for their transaction, so commits happen in the order of positions: a reader that sees a
position sees every row before it. Readers see a single state of the database (REPEATABLE READ), since rows and
generation could otherwise come from different states. Every commit sends a notification; a service that misses it
because its connection broke finds the commit at its next regular check. A broken connection is replaced when it is next
needed. So is a connection on which the database did not respond in time, because a hanging database must not block the
service.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mlca.optional import needing
from mlca.serve.database import InDoubtError, LogError

with needing("a log in PostgreSQL", "postgresql"):
    import psycopg
    from psycopg import IsolationLevel

_CHANNEL = "mlca_log"
# An arbitrary number, which no other program may use for advisory locks in this database.
_WRITERS_LOCK = 0x6D6C6361
_OPTIONS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "application_name": "mlca serve",
}
# Seconds without data from the database after which a connection is closed, by its purpose. Writers may wait for the
# lock during this time.
_SILENCE = {"reader": 10.0, "listener": 10.0, "writer": 15.0, "cleaner": 120.0}
_SESSION = "SET lock_timeout = '10s'; SET synchronous_commit = on; SET client_min_messages = warning"


class _Connection(psycopg.Connection[Any]):
    """A connection that closes if the database does not respond; psycopg would wait forever."""

    silence = 10.0

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Run a psycopg generator; fail if the database does not respond in time."""
        return super().wait(self._limited(gen), *args, **options)

    def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Wrap the generator; close the connection if the database does not respond in time."""
        try:
            wanted = next(gen)
            heard = time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > self.silence:
                    self.close()
                    raise psycopg.OperationalError(f"no response for {self.silence:.0f} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


class _Session:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(statement.replace("?", "%s"), rows)


class PostgreSQL:
    """The database of a log in PostgreSQL.

    Parameters
    ----------
    url : str
        The address of the database, in a format that libpq accepts.
    """

    blob = "BYTEA"
    serial = "BIGSERIAL"
    add_column = "ADD COLUMN IF NOT EXISTS"  # a service of an older version may have reset the version after an upgrade
    shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._of_thread = threading.local()
        self._all: list[_Connection] = []

    @contextmanager
    def writing(self) -> Iterator[_Session]:
        """Open a write transaction; wait while another service writes."""
        with self._transaction("writer", IsolationLevel.READ_COMMITTED) as session:
            session.execute("SELECT pg_advisory_xact_lock(?)", (_WRITERS_LOCK,))
            yield session
            session.execute("SELECT pg_notify(?, '')", (_CHANNEL,))

    @contextmanager
    def reading(self) -> Iterator[_Session]:
        """Open a read transaction that sees one consistent state."""
        with self._transaction("reader", IsolationLevel.REPEATABLE_READ) as session:
            yield session

    def wait(self, seconds: float) -> None:
        """Wait until any service commits, or `seconds` pass."""
        with self._translated("listener"):
            known = hasattr(self._of_thread, "listener")
            connection = self._connection("listener")
            connection.autocommit = True
            if not known:
                connection.execute(f"LISTEN {_CHANNEL}")
                return  # a commit may have preceded LISTEN
            for _ in connection.notifies(timeout=seconds, stop_after=1):
                pass

    def wake(self) -> None:
        """Do nothing: the notification of the commit wakes `wait`."""

    def erase(self) -> None:
        """Vacuum deleted row versions; the operator must clean PostgreSQL's WAL and backups."""
        with self._translated("cleaner"):
            connection = self._connection("cleaner")
            connection.autocommit = True
            connection.execute("VACUUM mlca_rows, mlca_snapshots")

    def close(self) -> None:
        """Close all connections."""
        for connection in self._all:
            with suppress(psycopg.Error):
                connection.close()
        self._all.clear()

    @contextmanager
    def _transaction(self, purpose: str, level: IsolationLevel) -> Iterator[_Session]:
        with self._translated(purpose):
            connection = self._connection(purpose)
            connection.isolation_level = level
            done = False
            try:
                with connection.transaction():
                    yield _Session(connection)
                    done = True
            except psycopg.Error as error:
                if done and error.sqlstate is None:  # with an SQLSTATE, the database has rolled back
                    raise InDoubtError(_in_words(error)) from error
                raise

    @contextmanager
    def _translated(self, purpose: str) -> Iterator[None]:
        """Turn database errors into LogError, and close the connection that failed."""
        try:
            yield
        except (psycopg.Error, InDoubtError) as error:
            connection = self._of_thread.__dict__.pop(purpose, None)
            if connection is not None:
                self._all.remove(connection)
                with suppress(psycopg.Error):
                    connection.close()
            if isinstance(error, InDoubtError):
                raise
            raise LogError(_in_words(error)) from error

    def _connection(self, purpose: str) -> _Connection:
        """Return this thread's connection for a purpose, such as writing; open it if needed."""
        connection: _Connection | None = getattr(self._of_thread, purpose, None)
        if connection is None:
            connection = _Connection.connect(self._url, **_OPTIONS)  # type: ignore[arg-type]
            connection.silence = _SILENCE[purpose]
            connection.autocommit = True
            connection.execute(_SESSION)
            connection.autocommit = False
            setattr(self._of_thread, purpose, connection)
            self._all.append(connection)
        return connection


def _in_words(error: psycopg.Error) -> str:
    """Return the first line of an error's message; later lines may contain values of rows."""
    return "PostgreSQL: " + (str(error).strip().partition("\n")[0] or type(error).__name__)

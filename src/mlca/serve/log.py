"""The log: every row that was acknowledged, in the order of learning. Whoever replays it has the model.

A row is in one of three states. It *waits* (kept when it was predicted, no labels yet, no position), it is
*learned* (it has labels and a position), or it is *forgotten* (its payload is erased, the id and the position stay
as a tombstone, so that a late retry cannot bring it back and positions have no gaps). Positions count from 1
without gaps, in the order of commits: all writing happens one writer at a time, so that nobody who reads up
to a position ever finds a row before it later.

Forgetting raises the generation and notes the first position that it touched. What somebody has built up to
position p in generation g is still right if no later generation touched a position up to p.

The SQL here is understood by SQLite and PostgreSQL alike; what differs between them is a `Database`, in `sqlite`
and `postgresql`; what can be written is in `changes`. Wall-clock times are kept for people to look at; nothing
is ordered or decided by them.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlca.serve.changes import Forget, Head, LogChange, carry_out, states_of
from mlca.serve.database import Database, LogError, Session
from mlca.serve.refusals import RefusalError
from mlca.serve.rows import Columns

# Logs of tables are of version 2, all others of version 1, which older services read.
VERSIONS = (1, 2)

_TABLES = (
    "CREATE TABLE IF NOT EXISTS mlca_log (version INTEGER NOT NULL, identity TEXT NOT NULL, parameters TEXT NOT NULL, "
    "start {blob}, columns TEXT, position BIGINT NOT NULL, generation BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mlca_rows (number {serial} PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
    "position BIGINT UNIQUE, x {blob}, labels TEXT, predicted TEXT, at DOUBLE PRECISION)",
    "CREATE INDEX IF NOT EXISTS mlca_waiting ON mlca_rows (number) WHERE position IS NULL",
    "CREATE TABLE IF NOT EXISTS mlca_forgettings (generation BIGINT PRIMARY KEY, first BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mlca_snapshots (position BIGINT NOT NULL, generation BIGINT NOT NULL, "
    "content {blob} NOT NULL, PRIMARY KEY (position, generation))",
)


@dataclass(frozen=True)
class Beginning:
    """What the model was before the first row.

    Attributes
    ----------
    identity : str
        Tells this log from all others.
    parameters : dict
        All parameters of the model.
    start : bytes or None
        The model file that learning went on from.
    """

    identity: str
    parameters: dict[str, Any]
    start: bytes | None


@dataclass(frozen=True)
class LoggedRow:
    """A row that has a position; `x` is None where it was forgotten."""

    position: int
    x: bytes | None
    labels: tuple[str, ...]
    predicted: tuple[str, ...] | None
    id: str
    at: float


@dataclass(frozen=True)
class Chapter:
    """Some rows in order, the head at the same moment, and the first position forgotten since a generation."""

    head: Head
    rows: list[LoggedRow]
    forgotten: int | None


@dataclass(frozen=True)
class Receipt:
    """What became of a change: how many rows were taken, the ids of the others, and where the log stands."""

    head: Head
    taken: int
    others: list[str] = field(default_factory=list)


class Log:
    """A log in a database that has one.

    Parameters
    ----------
    database : Database
        Where it lives.

    Attributes
    ----------
    head : Head
        Where it stands, as far as this process has heard.
    beginning : Beginning
        What the model was before the first row.
    erasing_due : threading.Event
        Set while the disk may still hold what was forgotten; whoever erases it clears this first.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._moving = threading.Lock()
        self.erasing_due = threading.Event()
        self.erasing_due.set()  # who was killed may have left something
        with database.reading() as session:
            version, identity, parameters, start = session.execute(
                "SELECT version, identity, parameters, start FROM mlca_log"
            )[0]
            self.head = _head(session)
        if version not in VERSIONS:
            known = " and ".join(map(str, VERSIONS))
            raise LogError(f"the log has format version {version}; this mlca reads {known}: use the mlca that wrote it")
        self.beginning = Beginning(identity, json.loads(parameters), None if start is None else bytes(start))

    def write(self, changes: Sequence[LogChange]) -> list[Receipt | RefusalError]:
        """Carry out changes in one transaction; a refused one leaves no trace and disturbs no other."""
        outcomes: list[Receipt | RefusalError] = []
        with self.database.writing() as session:
            before = head = _head(session)
            for change in changes:
                try:
                    head, taken, others = carry_out(session, head, change)
                    outcomes.append(Receipt(head, taken, others))
                except RefusalError as refusal:
                    outcomes.append(refusal)
            if head != before:
                session.execute(
                    "UPDATE mlca_log SET position = ?, generation = ?, columns = ?, version = ?",
                    (head.position, head.generation, *_columns_and_version(head.columns)),
                )
        self._move_to(head)
        # Also if it took nothing: it may be sent again, since the commit of the first one was not answered.
        erasing = any(isinstance(change, Forget) for change in changes)
        if erasing:
            self.erasing_due.set()
        if erasing or head != before:
            self.database.wake()
        return outcomes

    def read(self, after: int, generation: int, limit: int) -> Chapter:
        """Read rows behind a position, and what was forgotten since a generation."""
        with self.database.reading() as session:
            head = _head(session)
            rows = session.execute(
                "SELECT position, x, labels, predicted, id, at FROM mlca_rows "
                "WHERE position > ? ORDER BY position LIMIT ?",
                (after, limit),
            )
            forgotten = _first_forgotten(session, generation)
        if [row[0] for row in rows] != list(range(after + 1, after + 1 + len(rows))):
            raise LogError(f"the log is damaged: rows are missing behind position {after}; restore it from a backup")
        self._move_to(head)
        return Chapter(head, [_row(*row) for row in rows], forgotten)

    def _move_to(self, head: Head) -> None:
        """Note where the log stands; what somebody began to read before a commit does not take it back."""
        with self._moving:
            older = (head.position, head.generation) < (self.head.position, self.head.generation)
            if not older and (head.columns is not None or self.head.columns is None):
                self.head = head

    def go_back(self, head: Head) -> None:
        """Note where the log stands that has lost its end, as a database may that was restored."""
        with self._moving:
            self.head = head

    def first_forgotten(self, generation: int) -> int | None:
        """Return the first position that was forgotten since a generation."""
        with self.database.reading() as session:
            return _first_forgotten(session, generation)

    def find(self, id: str) -> tuple[str, int | None, bytes | None]:
        """Return the state of a row (unknown, waiting, learned or forgotten), its position and its payload."""
        with self.database.reading() as session:
            found = session.execute("SELECT position, x FROM mlca_rows WHERE id = ?", (id,))
        if not found:
            return "unknown", None, None
        position, x = found[0]
        state = "forgotten" if x is None else "waiting" if position is None else "learned"
        return state, position, None if x is None else bytes(x)

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the states of those ids that the log knows."""
        with self.database.reading() as session:
            return states_of(session, ids)

    def count_waiting(self) -> int:
        """Return how many rows wait for their labels."""
        with self.database.reading() as session:
            waiting = session.execute("SELECT count(*) FROM mlca_rows WHERE position IS NULL AND x IS NOT NULL")
        return int(waiting[0][0])

    def share(self, position: int, generation: int, content: bytes) -> bool:
        """Leave a snapshot for services on other machines, in place of older ones; tell whether it is still right."""
        with self.database.writing() as session:
            first = _first_forgotten(session, generation)
            if first is not None and first <= position:
                return False
            session.execute("DELETE FROM mlca_snapshots WHERE position <= ?", (position,))
            session.execute(
                "INSERT INTO mlca_snapshots (position, generation, content) VALUES (?, ?, ?)",
                (position, generation, content),
            )
        return True

    def shared_position(self) -> int:
        """Return the position of the newest shared snapshot; 0 where there is none."""
        with self.database.reading() as session:
            return int(session.execute("SELECT coalesce(max(position), 0) FROM mlca_snapshots")[0][0])

    def shared_snapshot(self) -> tuple[bytes, int, int] | None:
        """Return the newest shared snapshot, its position and its generation."""
        with self.database.reading() as session:
            found = session.execute(
                "SELECT content, position, generation FROM mlca_snapshots ORDER BY position DESC LIMIT 1"
            )
        return (bytes(found[0][0]), *map(int, found[0][1:])) if found else None  # type: ignore[return-value]


def open_log(database: Database) -> Log | None:
    """Return the log of a database; None where there is none yet."""
    with database.writing() as session:
        _make_tables(database, session)
        exists = bool(session.execute("SELECT version FROM mlca_log"))
    return Log(database) if exists else None


def create_log(database: Database, parameters: dict[str, Any], start: bytes | None, columns: Columns | None) -> Log:
    """Begin a log, unless somebody else has in the meantime, and return it."""
    with database.writing() as session:
        _make_tables(database, session)
        if not session.execute("SELECT version FROM mlca_log"):
            session.execute(
                "INSERT INTO mlca_log (identity, parameters, start, columns, version, position, generation) "
                "VALUES (?, ?, ?, ?, ?, 0, 0)",
                (uuid.uuid4().hex, json.dumps(parameters), start, *_columns_and_version(columns)),
            )
    return Log(database)


def _make_tables(database: Database, session: Session) -> None:
    for statement in _TABLES:
        session.execute(statement.format(blob=database.blob, serial=database.serial))


def _columns_and_version(columns: Columns | None) -> tuple[str | None, int]:
    return (None, VERSIONS[0]) if columns is None else (columns.to_json(), VERSIONS[columns.table])


def _head(session: Session) -> Head:
    position, generation, columns = session.execute("SELECT position, generation, columns FROM mlca_log")[0]
    return Head(position, generation, None if columns is None else Columns.from_json(columns))


def _row(position: int, x: Any, labels: str | None, predicted: str | None, id: str, at: float | None) -> LoggedRow:
    return LoggedRow(
        position,
        None if x is None else bytes(x),
        tuple(json.loads(labels)) if labels else (),
        None if predicted is None else tuple(json.loads(predicted)),
        id,
        at or 0.0,
    )


def _first_forgotten(session: Session, generation: int) -> int | None:
    found = session.execute("SELECT min(first) FROM mlca_forgettings WHERE generation > ?", (generation,))
    return None if found[0][0] is None else int(found[0][0])

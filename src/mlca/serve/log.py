"""The log: every row that was acknowledged, in the order of learning. Whoever replays it has the model.

A row is in one of three states. It *waits* (kept when it was predicted, no labels yet, no position), it is
*learned* (it has labels and a position), or it is *forgotten* (its payload is erased, the id and the position stay
as a tombstone, so that a late retry cannot bring it back and positions have no gaps). Positions count from 1
without gaps, in the order of commits: all writing happens one writer at a time, so that nobody who reads up
to a position ever finds a row before it later.

Forgetting raises the generation and notes the first position that it touched. What somebody has built up to
position p in generation g is still right if no later generation touched a position up to p.

The SQL here is understood by SQLite and PostgreSQL alike; what differs between them is a `Database`, in `sqlite`
and `postgresql`. Wall-clock times are kept for people to look at; nothing is ordered or decided by them.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mlca.serve.refusals import RefusalError, bad_row
from mlca.serve.rows import Columns

VERSION = 1

_TABLES = (
    "CREATE TABLE IF NOT EXISTS mlca_log (version INTEGER NOT NULL, identity TEXT NOT NULL, parameters TEXT NOT NULL, "
    "start {blob}, columns TEXT, position BIGINT NOT NULL, generation BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mlca_rows (number {serial} PRIMARY KEY, id TEXT NOT NULL UNIQUE, position BIGINT UNIQUE, "
    "x {blob}, labels TEXT, predicted TEXT, at DOUBLE PRECISION)",
    "CREATE INDEX IF NOT EXISTS mlca_waiting ON mlca_rows (number) WHERE position IS NULL",
    "CREATE TABLE IF NOT EXISTS mlca_forgettings (generation BIGINT PRIMARY KEY, first BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mlca_snapshots (position BIGINT NOT NULL, generation BIGINT NOT NULL, "
    "content {blob} NOT NULL, PRIMARY KEY (position, generation))",
)

# Ids that are looked up by one statement.
_LOOKED_UP = 500


class LogError(Exception):
    """The log could not be read or written; what was being written did not happen, or may be sent again."""


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

    shared: bool
    """Whether services on other machines may be at work on it."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open a transaction as the only writer; leaving it commits durably, an exception undoes it."""

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


@dataclass(frozen=True)
class Head:
    """Where the log stands."""

    position: int
    generation: int
    columns: Columns | None


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
class Row:
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
    rows: list[Row]
    forgotten: int | None


@dataclass(frozen=True)
class Learn:
    """Rows with labels."""

    ids: list[str]
    x: list[bytes]
    labels: list[tuple[str, ...]]
    columns: Columns


@dataclass(frozen=True)
class Keep:
    """Rows that wait for labels, and what was predicted for them."""

    ids: list[str]
    x: list[bytes]
    predicted: list[tuple[str, ...]]
    columns: Columns


@dataclass(frozen=True)
class Label:
    """Labels of rows that wait."""

    ids: list[str]
    labels: list[tuple[str, ...]]


@dataclass(frozen=True)
class Forget:
    """Rows that must go."""

    ids: list[str]


Request = Learn | Keep | Label | Forget


@dataclass(frozen=True)
class Receipt:
    """What became of a request: how many rows were taken, the ids of the others, and where the log stands."""

    head: Head
    taken: int
    others: list[str] = field(default_factory=list)


class Log:
    """A log in a database that has one.

    Parameters
    ----------
    database : Database
        Where it lives.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.reading() as session:
            version, identity, parameters, start = session.execute(
                "SELECT version, identity, parameters, start FROM mlca_log"
            )[0]
            self.head = _head(session)
        if version != VERSION:
            raise LogError(
                f"the log has format version {version}; this mlca reads {VERSION}: use the mlca that wrote it"
            )
        self.beginning = Beginning(identity, json.loads(parameters), None if start is None else bytes(start))

    def write(self, requests: Sequence[Request]) -> list[Receipt | RefusalError]:
        """Carry out requests in one transaction; a refused one leaves no trace and disturbs no other."""
        outcomes: list[Receipt | RefusalError] = []
        with self.database.writing() as session:
            before = head = _head(session)
            for request in requests:
                try:
                    head, taken, others = _WRITERS[type(request)](session, head, request)
                    outcomes.append(Receipt(head, taken, others))
                except RefusalError as refusal:
                    outcomes.append(refusal)
            if head != before:
                session.execute(
                    "UPDATE mlca_log SET position = ?, generation = ?, columns = ?",
                    (head.position, head.generation, None if head.columns is None else head.columns.to_json()),
                )
        self.head = head
        if head != before:
            self.database.wake()
        return outcomes

    def read(self, after: int, generation: int, limit: int) -> Chapter:
        """Read rows behind a position, and what was forgotten since a generation."""
        with self.database.reading() as session:
            head = _head(session)
            rows = session.execute(
                "SELECT position, x, labels, predicted, id, at FROM mlca_rows WHERE position > ? ORDER BY position LIMIT ?",
                (after, limit),
            )
            forgotten = _first_forgotten(session, generation)
        if [row[0] for row in rows] != list(range(after + 1, after + 1 + len(rows))):
            raise LogError(f"the log is damaged: rows are missing behind position {after}; restore it from a backup")
        self.head = head
        return Chapter(head, [_row(*row) for row in rows], forgotten)

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
                "INSERT INTO mlca_log (version, identity, parameters, start, columns, position, generation) "
                "VALUES (?, ?, ?, ?, ?, 0, 0)",
                (
                    VERSION,
                    uuid.uuid4().hex,
                    json.dumps(parameters),
                    start,
                    None if columns is None else columns.to_json(),
                ),
            )
    return Log(database)


def _make_tables(database: Database, session: Session) -> None:
    for statement in _TABLES:
        session.execute(statement.format(blob=database.blob, serial=database.serial))


def _head(session: Session) -> Head:
    position, generation, columns = session.execute("SELECT position, generation, columns FROM mlca_log")[0]
    return Head(position, generation, None if columns is None else Columns.from_json(columns))


def _row(position: int, x: Any, labels: str | None, predicted: str | None, id: str, at: float | None) -> Row:
    return Row(
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


Written = tuple[Head, int, list[str]]


def _learn(session: Session, head: Head, request: Learn) -> Written:
    columns = _agreed(head, request.columns)
    known = _states(session, request.ids)
    new, completed, duplicates = [], [], []
    position, now, seen = head.position, time.time(), set()
    for id, x, labels in zip(request.ids, request.x, request.labels, strict=True):
        if id in seen or known.get(id, "waiting") != "waiting":
            duplicates.append(id)
            continue
        seen.add(id)
        position += 1
        (completed if id in known else new).append((position, x, json.dumps(labels), now, id))
    session.execute_many("INSERT INTO mlca_rows (position, x, labels, at, id) VALUES (?, ?, ?, ?, ?)", new)
    session.execute_many("UPDATE mlca_rows SET position = ?, x = ?, labels = ?, at = ? WHERE id = ?", completed)
    return Head(position, head.generation, columns), position - head.position, duplicates


def _keep(session: Session, head: Head, request: Keep) -> Written:
    columns = _agreed(head, request.columns)
    known = dict(_states(session, request.ids))
    new, others = [], []
    for id, x, predicted in zip(request.ids, request.x, request.predicted, strict=True):
        if id in known:
            others.append(id)
            continue
        known[id] = "waiting"
        new.append((x, json.dumps(predicted), id))
    session.execute_many("INSERT INTO mlca_rows (x, predicted, id) VALUES (?, ?, ?)", new)
    return Head(head.position, head.generation, columns), len(new), others


def _label(session: Session, head: Head, request: Label) -> Written:
    known = dict(_states(session, request.ids))
    for number, id in enumerate(request.ids):
        if id not in known:
            remedy = "send the row with its x to /v1/learn, or check the id"
            raise bad_row(number, "id", "no row waits under this id", remedy)
    labelled, duplicates = [], []
    position, now = head.position, time.time()
    for id, labels in zip(request.ids, request.labels, strict=True):
        if known[id] != "waiting":
            duplicates.append(id)
            continue
        known[id] = "learned"
        position += 1
        labelled.append((position, json.dumps(labels), now, id))
    session.execute_many("UPDATE mlca_rows SET position = ?, labels = ?, at = ? WHERE id = ?", labelled)
    return Head(position, head.generation, head.columns), len(labelled), duplicates


def _forget(session: Session, head: Head, request: Forget) -> Written:
    known = _states(session, request.ids)
    gone = [id for id in dict.fromkeys(request.ids) if known.get(id) in ("waiting", "learned")]
    unknown = [id for id in request.ids if id not in known]
    first = _first_position(session, gone)
    session.execute_many(
        "UPDATE mlca_rows SET x = NULL, labels = NULL, predicted = NULL, at = NULL WHERE id = ?", [(id,) for id in gone]
    )
    if first is None:  # nothing of it was learned
        return head, len(gone), unknown
    generation = head.generation + 1
    session.execute("INSERT INTO mlca_forgettings (generation, first) VALUES (?, ?)", (generation, first))
    session.execute("DELETE FROM mlca_snapshots WHERE position >= ?", (first,))
    return Head(head.position, generation, head.columns), len(gone), unknown


_WRITERS: dict[type, Any] = {Learn: _learn, Keep: _keep, Label: _label, Forget: _forget}


def _agreed(head: Head, columns: Columns) -> Columns:
    """Let the first row decide on the columns; refuse rows of others, which another request had just decided on."""
    if head.columns is None or columns == head.columns:
        return columns
    raise bad_row(
        0, "x", "another request has just decided on other columns", "look at GET /v1/model and send its columns"
    )


def _groups(ids: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for start in range(0, len(ids), _LOOKED_UP):
        group = ids[start : start + _LOOKED_UP]
        yield ", ".join("?" * len(group)), group


def _states(session: Session, ids: Sequence[str]) -> dict[str, str]:
    """Return the states of those ids that the log knows."""
    states = {}
    for marks, group in _groups(ids):
        found = session.execute(f"SELECT id, position, x IS NULL FROM mlca_rows WHERE id IN ({marks})", group)
        for id, position, erased in found:
            states[id] = "forgotten" if erased else "waiting" if position is None else "learned"
    return states


def _first_position(session: Session, ids: Sequence[str]) -> int | None:
    positions = []
    for marks, group in _groups(ids):
        found = session.execute(f"SELECT min(position) FROM mlca_rows WHERE id IN ({marks})", group)
        if found[0][0] is not None:
            positions.append(int(found[0][0]))
    return min(positions, default=None)

"""The log: all rows in the order of learning, from which the model can be rebuilt.

A row is in one of three states. It is *waiting* (stored with its prediction, but still without labels and position),
*learned* (it has labels and a position) or *forgotten* (its content is erased; ID and position stay as a tombstone, so
that a late retry cannot restore it and positions stay contiguous). Positions count from 1 in the order of commits.
There is one writer at a time, so no row is ever added before a position that a reader has reached.

Forgetting learned rows increments the generation and records the first affected position. A model of generation g at
position p stays valid if no later generation affected a position up to p.

Rows have chained checksums (`row_checksums`), which are verified on every read. `log_upkeep` upgrades logs of older
versions, and repairs damaged logs if the operator permits it.

The SQL works in SQLite and PostgreSQL; `sqlite` and `postgresql`, which implement `Database`, handle the
differences. `log_changes` contains all changes to rows. Wall-clock times are stored for information only; neither
order nor decisions depend on them.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mlca.serve.database import UNREADABLE, DamageError, Database, LogError, Session, stored_bytes
from mlca.serve.log_changes import Forget, Head, LogChange, carry_out, states_of
from mlca.serve.log_upkeep import OLDER_VERSIONS, VERSION, make_tables, upgrade_log
from mlca.serve.request_errors import RequestError
from mlca.serve.request_rows import Columns
from mlca.serve.row_checksums import content_digest, next_checksum, origin_checksum, row_digest


@dataclass(frozen=True)
class Beginning:
    """The initial state of a log, before its first row.

    Attributes
    ----------
    identity : str
        The unique ID of the log.
    parameters : dict
        All parameters of a new model; empty if training started from `start`.
    start : bytes or None
        The content of the model file from which training started; None for a new model.
    checksum : bytes
        The checksum of identity, parameters and start.
    """

    identity: str
    parameters: dict[str, Any]
    start: bytes | None
    checksum: bytes


@dataclass(frozen=True)
class LoggedRow:
    """A row of the log with its position and checksum; `x` is None if it was forgotten."""

    position: int
    x: bytes | None
    labels: tuple[str, ...]
    predicted: tuple[str, ...] | None
    id: str
    at: float
    checksum: bytes


@dataclass(frozen=True)
class Receipt:
    """The result of a change: state of the log, number of accepted rows, and skipped IDs."""

    head: Head
    taken: int
    others: list[str] = field(default_factory=list)


class LogView:
    """A consistent view of the log, read in one transaction.

    Parameters
    ----------
    session : Session
        The transaction.
    beginning : Beginning
        The initial state of the log, before its first row.
    """

    def __init__(self, session: Session, beginning: Beginning) -> None:
        self._session, self._beginning = session, beginning
        self.head = read_head(session)

    def read(self, after: int, limit: int) -> list[LoggedRow]:
        """Return up to `limit` verified rows after a position; raise DamageError on damage."""
        rows = self._session.execute(
            "SELECT position, id, x, labels, predicted, at, salt, digest, checksum FROM mlca_rows "
            "WHERE position > ? ORDER BY position LIMIT ?",
            (after, limit),
        )
        expected = range(after + 1, min(after + limit, self.head.position) + 1)
        if [row[0] for row in rows] != list(expected):
            raise DamageError(_damaged(f"there are {len(rows)} rows instead of {len(expected)} after position {after}"))
        previous = self.checksum_at(after)
        if previous is None:
            raise DamageError(_damaged(f"there is no row at position {after}"))
        about = "" if self.head.columns is None else self.head.columns.to_json()
        verified = []
        for row in rows:
            try:
                verified.append(_verified_row(previous, about, *row))
            except UNREADABLE:
                raise DamageError(_damaged(f"the row at position {row[0]} differs from what was written")) from None
            previous = verified[-1].checksum
        if verified and verified[-1].position == self.head.position and previous != self.head.checksum:
            raise DamageError(_damaged("its last row does not match the recorded checksum"))
        return verified

    def checksum_at(self, position: int) -> bytes | None:
        """Return the checksum at a position; None if the log has no such row."""
        if position == 0:
            return self._beginning.checksum
        return _stored_checksum(self._session, position)

    def first_forgotten(self, generation: int) -> int | None:
        """Return the first position erased after a generation; None if no row was erased."""
        return _first_forgotten(self._session, generation)

    def fits(self, position: int, generation: int, checksum: bytes | None) -> bool:
        """Return whether a model with this position, generation and checksum matches the log."""
        if position > self.head.position or generation > self.head.generation:
            return False
        return checksum is None or checksum == self.checksum_at(position)

    def shared_position(self) -> int:
        """Return the position of the newest shared snapshot; 0 if there is none."""
        return int(self._session.execute("SELECT coalesce(max(position), 0) FROM mlca_snapshots")[0][0])

    def shared_snapshot(self) -> tuple[bytes, int, int] | None:
        """Return the newest shared snapshot with position and generation; None if there is none."""
        found = self._session.execute(
            "SELECT content, position, generation FROM mlca_snapshots ORDER BY position DESC LIMIT 1"
        )
        return (bytes(found[0][0]), *map(int, found[0][1:])) if found else None  # type: ignore[return-value]


class Log:
    """A log in a database.

    Parameters
    ----------
    database : Database
        The database.

    Attributes
    ----------
    head : Head
        The latest state of the log known to this process.
    beginning : Beginning
        The initial state of the log, before its first row.
    erasing_due : threading.Event
        Set while the disk may still hold forgotten data; cleared before erasing.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._moving = threading.Lock()
        self.erasing_due = threading.Event()
        self.erasing_due.set()  # a killed service may have left forgotten data on disk
        with database.reading() as session:
            version, identity, parameters, start = session.execute(
                "SELECT version, identity, parameters, start FROM mlca_log"
            )[0]
            if version != VERSION:
                raise LogError(
                    f"the log has format version {version}, but this mlca supports at most {VERSION}; update mlca"
                )
            self.head = read_head(session)
        try:
            start = None if start is None else stored_bytes(start)
            checksum = origin_checksum(identity, parameters, start)
            self.beginning = Beginning(identity, json.loads(parameters), start, checksum)
        except UNREADABLE:
            raise DamageError(_damaged("its parameters cannot be read")) from None

    def write(self, changes: Sequence[LogChange]) -> list[Receipt | RequestError]:
        """Apply changes in one transaction; a rejected change does not affect the others."""
        outcomes: list[Receipt | RequestError] = []
        with self.database.writing() as session:
            before = head = read_head(session)
            if head.position and _stored_checksum(session, head.position) != head.checksum:
                raise DamageError(_damaged("its last row does not match the recorded checksum"))
            for change in changes:
                try:
                    head, taken, others = carry_out(session, head, change)
                    outcomes.append(Receipt(head, taken, others))
                except RequestError as error:
                    outcomes.append(error)
            if head != before:
                session.execute(
                    "UPDATE mlca_log SET position = ?, generation = ?, columns = ?, checksum = ?, version = ?",
                    (head.position, head.generation, _columns_to_text(head.columns), head.checksum, VERSION),
                )
        self._move_to(head)
        # Erase even if no row was erased: this may be a retry of a change whose commit was not confirmed.
        erasing = any(isinstance(change, Forget) for change in changes)
        if erasing:
            self.erasing_due.set()
        if erasing or head != before:
            self.database.wake()
        return outcomes

    @contextmanager
    def viewing(self) -> Iterator[LogView]:
        """Yield a view of the current log; later writes and erasures do not change it."""
        with self.database.reading() as session:
            view = LogView(session, self.beginning)
            self._move_to(view.head)
            yield view

    def _move_to(self, head: Head) -> None:
        """Record the state of the log, unless a newer one is already recorded."""
        with self._moving:
            older = (head.position, head.generation) < (self.head.position, self.head.generation)
            if not older and (head.columns is not None or self.head.columns is None):
                self.head = head

    def go_back(self, head: Head) -> None:
        """Record an earlier state of the log after it has lost rows, for example in a failover."""
        with self._moving:
            self.head = head

    def check(self) -> None:
        """Check the log's counts, initial state and last row; raise DamageError on a mismatch."""
        with self.database.reading() as session:
            head = read_head(session)
            count, last = session.execute("SELECT count(position), coalesce(max(position), 0) FROM mlca_rows")[0]
            generation = session.execute("SELECT coalesce(max(generation), 0) FROM mlca_forgettings")[0][0]
            if (count, last) != (head.position, head.position):
                raise DamageError(
                    _damaged(f"it records {head.position} rows, but contains {count}, up to position {last}")
                )
            if generation != head.generation:
                raise DamageError(
                    _damaged(f"its generation is {head.generation}, but its last erasure has generation {generation}")
                )
            if count and _stored_checksum(session, last) != head.checksum:
                raise DamageError(_damaged("its last row does not match the recorded checksum"))
            if not self._begins_intact(session, head):
                problem = "its parameters, starting model or columns do not match its first checksum"
                raise DamageError(_damaged(problem))

    def _begins_intact(self, session: Session, head: Head) -> bool:
        """Return whether parameters, starting model and columns match the first checksum."""
        if head.position == 0:
            return head.checksum == self.beginning.checksum
        digests = session.execute("SELECT digest FROM mlca_rows WHERE position = 1")
        try:
            digest = stored_bytes(digests[0][0])
            first = next_checksum(self.beginning.checksum, 1, digest, _columns_to_text(head.columns) or "")
        except (IndexError, TypeError):
            return False
        return first == _stored_checksum(session, 1)

    def first_forgotten(self, generation: int) -> int | None:
        """Return the first position erased after a generation; None if no row was erased."""
        with self.database.reading() as session:
            return _first_forgotten(session, generation)

    def find(self, id: str) -> tuple[str, int | None]:
        """Return the state of a row (unknown, waiting, learned or forgotten) and its position."""
        with self.database.reading() as session:
            found = session.execute("SELECT position, x IS NULL FROM mlca_rows WHERE id = ?", (id,))
        if not found:
            return "unknown", None
        position, erased = found[0]
        return "forgotten" if erased else "waiting" if position is None else "learned", position

    def content(self, id: str) -> bytes | None:
        """Return the verified content of a row; None if it is unknown or forgotten."""
        with self.database.reading() as session:
            found = session.execute(
                "SELECT x, labels, predicted, at, salt, digest FROM mlca_rows WHERE id = ? AND x IS NOT NULL", (id,)
            )
        if not found:
            return None
        x, *others = found[0]
        try:
            intact = _is_intact(id, x, *others)
        except UNREADABLE:
            intact = False
        if not intact:
            raise DamageError(_damaged("a row differs from what was written"))
        return stored_bytes(x)

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the states of rows by ID, for the given IDs that the log contains."""
        with self.database.reading() as session:
            return states_of(session, ids)

    def count_waiting(self) -> int:
        """Return the number of rows that wait for labels."""
        with self.database.reading() as session:
            waiting = session.execute("SELECT count(*) FROM mlca_rows WHERE position IS NULL AND x IS NOT NULL")
        return int(waiting[0][0])

    def share(self, position: int, generation: int, content: bytes) -> bool:
        """Replace older shared snapshots; return False if the new one learned forgotten rows."""
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


def open_log(database: Database) -> Log | None:
    """Return the log of a database, upgraded if necessary; None if there is none yet."""
    with database.writing() as session:
        make_tables(database, session)
        version = session.execute("SELECT version FROM mlca_log")
        if version and version[0][0] in OLDER_VERSIONS:
            upgrade_log(database, session)
    return Log(database) if version else None


def create_log(database: Database, parameters: dict[str, Any], start: bytes | None, columns: Columns | None) -> Log:
    """Create a log, unless another service has done so meanwhile, and return it."""
    with database.writing() as session:
        make_tables(database, session)
        if not session.execute("SELECT version FROM mlca_log"):
            identity, text = uuid.uuid4().hex, json.dumps(parameters)
            session.execute(
                "INSERT INTO mlca_log (identity, parameters, start, columns, checksum, version, position, generation) "
                "VALUES (?, ?, ?, ?, ?, ?, 0, 0)",
                (identity, text, start, _columns_to_text(columns), origin_checksum(identity, text, start), VERSION),
            )
    return Log(database)


def read_head(session: Session) -> Head:
    """Read the current state of the log."""
    found = session.execute("SELECT position, generation, columns, checksum FROM mlca_log")
    try:
        position, generation, columns, checksum = found[0]
        if not type(position) is type(generation) is int:
            raise TypeError
        known = None if columns is None else Columns.from_json(columns)
        return Head(position, generation, known, b"" if checksum is None else stored_bytes(checksum))
    except (IndexError, *UNREADABLE):
        raise DamageError(_damaged("the record of its state cannot be read")) from None


def _verified_row(
    previous: bytes,
    columns: str,
    position: int,
    id: str,
    x: Any,
    labels: str | None,
    predicted: str | None,
    at: float | None,
    salt: Any,
    digest: Any,
    checksum: Any,
) -> LoggedRow:
    """Verify a row against the chain of checksums and return it, or raise DamageError."""
    if checksum is None or digest is None:
        problem = f"the row at position {position} has no checksum; an older version of mlca may have written it"
        raise DamageError(_damaged(problem))
    forgotten = x is None and salt is None and labels is None and predicted is None
    if not forgotten and not _is_intact(id, x, labels, predicted, at, salt, digest):
        raise DamageError(_damaged(f"the row at position {position} differs from what was written"))
    if next_checksum(previous, position, stored_bytes(digest), columns) != stored_bytes(checksum):
        raise DamageError(_damaged(f"the row at position {position} does not match the previous checksum"))
    return LoggedRow(
        position,
        None if x is None else bytes(x),
        tuple(json.loads(labels)) if labels else (),
        None if predicted is None else tuple(json.loads(predicted)),
        id,
        at or 0.0,
        bytes(checksum),
    )


def _is_intact(id: str, x: Any, labels: str | None, predicted: str | None, at: Any, salt: Any, digest: Any) -> bool:
    """Return whether the content of a row, learned or waiting, matches its digest."""
    salt = stored_bytes(salt)
    found = content_digest(salt, id, stored_bytes(x), predicted)
    if labels is not None:
        found = row_digest(salt, found, labels, at)
    return found == stored_bytes(digest)


def _damaged(problem: str) -> str:
    return (
        f"the log is damaged: {problem}; restore it from a backup, or start with --accept-log, which forgets damaged "
        "rows, or begin a new log from a snapshot (--model)"
    )


def _stored_checksum(session: Session, position: int) -> bytes | None:
    found = session.execute("SELECT checksum FROM mlca_rows WHERE position = ?", (position,))
    try:
        return stored_bytes(found[0][0]) if found and found[0][0] is not None else None
    except TypeError:
        raise DamageError(_damaged(f"the checksum at position {position} cannot be read")) from None


def _columns_to_text(columns: Columns | None) -> str | None:
    return None if columns is None else columns.to_json()


def _first_forgotten(session: Session, generation: int) -> int | None:
    found = session.execute("SELECT min(first) FROM mlca_forgettings WHERE generation > ?", (generation,))
    try:
        return None if found[0][0] is None else int(found[0][0])
    except UNREADABLE:
        raise DamageError(_damaged("its record of forgotten rows cannot be read")) from None

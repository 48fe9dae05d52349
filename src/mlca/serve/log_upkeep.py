"""The tables of a log: creation, upgrades from older versions, and repairs.

Versions 1 and 2 had no checksums. An upgrade computes them for the stored rows in one transaction, so a crash leaves
the log unchanged.

`mlca serve --accept-log` repairs a damaged log: damaged rows are erased like forgotten ones, checksums are recomputed
where the chain is broken, and the last row becomes the end of the log. A log that lacks a row before its last one
cannot be repaired, because positions must be contiguous; nor can a log whose initial state or columns are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlca.serve.database import UNREADABLE, DamageError, Database, Session, stored_bytes
from mlca.serve.log_changes import ERASED
from mlca.serve.request_rows import Columns
from mlca.serve.row_checksums import content_digest, new_salt, next_checksum, origin_checksum, row_digest

VERSION = 3
OLDER_VERSIONS = (1, 2)

# Rows per query.
_STEP = 1000

_TABLES = (
    "CREATE TABLE IF NOT EXISTS mlca_log (version INTEGER NOT NULL, identity TEXT NOT NULL, parameters TEXT NOT NULL, "
    "start {blob}, columns TEXT, position BIGINT NOT NULL, generation BIGINT NOT NULL, checksum {blob})",
    "CREATE TABLE IF NOT EXISTS mlca_rows (number {serial} PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
    "position BIGINT UNIQUE, x {blob}, labels TEXT, predicted TEXT, at DOUBLE PRECISION, "
    "salt {blob}, digest {blob}, checksum {blob})",
    "CREATE INDEX IF NOT EXISTS mlca_waiting ON mlca_rows (number) WHERE position IS NULL",
    "CREATE TABLE IF NOT EXISTS mlca_forgettings (generation BIGINT PRIMARY KEY, first BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mlca_snapshots (position BIGINT NOT NULL, generation BIGINT NOT NULL, "
    "content {blob} NOT NULL, PRIMARY KEY (position, generation))",
)
_ADDED_IN_VERSION_3 = (
    ("mlca_log", "checksum"),
    ("mlca_rows", "salt"),
    ("mlca_rows", "digest"),
    ("mlca_rows", "checksum"),
)


@dataclass(frozen=True)
class Repairs:
    """The changes that `accept_log` made.

    Attributes
    ----------
    position : int
        The position of the last row.
    erased : list of int
        The positions of damaged rows, which were erased.
    corrected : int
        The number of rows whose salt, digest or checksum was replaced.
    """

    position: int
    erased: list[int]
    corrected: int


def make_tables(database: Database, session: Session) -> None:
    """Create the tables and the index that do not exist yet."""
    for statement in _TABLES:
        session.execute(statement.format(blob=database.blob, serial=database.serial))


def upgrade_log(database: Database, session: Session) -> None:
    """Upgrade a log of an older version."""
    for table, column in _ADDED_IN_VERSION_3:
        session.execute(f"ALTER TABLE {table} {database.add_column} {column} {database.blob}")
    accept_log(session)
    session.execute("UPDATE mlca_log SET version = ?", (VERSION,))


def accept_log(session: Session) -> Repairs:
    """Erase the damaged rows in a log, and recompute its checksums.

    Parameters
    ----------
    session : Session
        A writing transaction.

    Returns
    -------
    Repairs

    Raises
    ------
    DamageError
        If a row before the last one is missing, or the initial state or the columns cannot be read.
    """
    found = session.execute("SELECT identity, parameters, start, columns, generation FROM mlca_log")[0]
    identity, parameters, start, columns, generation = found
    try:
        about = "" if columns is None else Columns.from_json(columns).to_json()
        checksum = origin_checksum(identity, parameters, None if start is None else stored_bytes(start))
        if type(generation) is not int:
            raise TypeError
    except UNREADABLE:
        raise _unacceptable("the record of its initial state and columns is damaged") from None
    position, corrected = 0, 0
    damaged: list[int] = []
    while rows := session.execute(
        "SELECT position, id, x, labels, predicted, at, salt, digest, checksum FROM mlca_rows "
        "WHERE position > ? ORDER BY position LIMIT ?",
        (position, _STEP),
    ):
        if not about:  # there are rows, but no record of the columns, which the first row defines
            raise _unacceptable("the record of its columns is missing")
        changed = []
        for row in rows:
            position += 1
            if row[0] != position:
                raise _unacceptable(f"it has no row at position {position}, but one at {row[0]}")
            stored = tuple(bytes(part) if isinstance(part, bytes | memoryview) else None for part in row[6:])
            try:
                salt, digest, intact = _sealed(checksum, about, *row[:6], *stored)
            except UNREADABLE:
                salt, digest, intact = stored[0], stored[1] or b"", False
            if not intact:
                damaged.append(position)
            checksum = next_checksum(checksum, position, digest, about)
            if (salt, digest, checksum) != row[6:]:
                changed.append((salt, digest, checksum, position))
        session.execute_many("UPDATE mlca_rows SET salt = ?, digest = ?, checksum = ? WHERE position = ?", changed)
        corrected += len(changed)
    session.execute_many(f"UPDATE mlca_rows SET {ERASED} WHERE position = ?", [(place,) for place in damaged])
    forgettings = session.execute("SELECT generation, first FROM mlca_forgettings")
    if not all(type(value) is int for forgetting in forgettings for value in forgetting):
        session.execute("DELETE FROM mlca_forgettings")
        forgettings = []
    noted = max((generation for generation, _ in forgettings), default=0)
    if generation > noted:  # an unrecorded erasure may have affected any row
        session.execute("INSERT INTO mlca_forgettings (generation, first) VALUES (?, 1)", (generation,))
    generation = max(generation, noted)
    if damaged:
        generation += 1
        session.execute("INSERT INTO mlca_forgettings (generation, first) VALUES (?, ?)", (generation, damaged[0]))
        session.execute("DELETE FROM mlca_snapshots WHERE position >= ?", (damaged[0],))
    session.execute("UPDATE mlca_log SET position = ?, generation = ?, checksum = ?", (position, generation, checksum))
    _seal_waiting_rows(session)
    return Repairs(position, damaged, corrected)


def _unacceptable(problem: str) -> DamageError:
    return DamageError(
        f"the log cannot be accepted: {problem}; restore it from a backup, or begin a new log from a snapshot (--model)"
    )


def _sealed(
    previous: bytes,
    columns: str,
    position: int,
    id: str,
    x: Any,
    labels: str | None,
    predicted: str | None,
    at: float | None,
    salt: bytes | None,
    digest: bytes | None,
    checksum: bytes | None,
) -> tuple[bytes | None, bytes, bool]:
    """Return the correct salt and digest of a row, and whether its content is intact."""
    if x is None:  # a forgotten row, for which old logs have no digest
        return None, digest or content_digest(b"", id, b"", None), salt is None and labels is None and predicted is None
    if labels is None or at is None:
        return salt, digest or b"", False
    if salt is None and digest is None and checksum is None:  # a row from an older version
        salt = new_salt()
        return salt, row_digest(salt, content_digest(salt, id, stored_bytes(x), predicted), labels, at), True
    if salt is None:
        return None, digest or b"", False
    found = row_digest(salt, content_digest(salt, id, stored_bytes(x), predicted), labels, at)
    # If the checksum matches the content, only the digest was damaged.
    if found == digest or next_checksum(previous, position, found, columns) == checksum:
        return salt, found, True
    return salt, digest or b"", False


def _seal_waiting_rows(session: Session) -> None:
    """Add a salt and a digest to each waiting row that lacks them."""
    number = 0
    while rows := session.execute(
        "SELECT number, id, x, predicted FROM mlca_rows "
        "WHERE number > ? AND position IS NULL AND x IS NOT NULL AND salt IS NULL ORDER BY number LIMIT ?",
        (number, _STEP),
    ):
        number = rows[-1][0]
        sealed = []
        for place, id, x, predicted in rows:
            salt = new_salt()
            sealed.append((salt, content_digest(salt, id, bytes(x), predicted), place))
        session.execute_many("UPDATE mlca_rows SET salt = ?, digest = ? WHERE number = ?", sealed)

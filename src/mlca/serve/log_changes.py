"""Changes to the log: learn rows, keep unlabelled rows, label kept rows, forget rows.

One writer at a time applies changes, in a transaction. Each change is checked completely before any of it is written,
so a rejected change has no effect, and several changes can share a transaction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlca.serve.database import UNREADABLE, Session, stored_bytes
from mlca.serve.request_errors import bad_row
from mlca.serve.request_rows import Columns
from mlca.serve.row_checksums import content_digest, new_salt, next_checksum, row_digest

# Number of IDs per query.
_LOOKED_UP = 500

# The columns that forgetting erases. ID, position, digest and checksum stay: without the salt, they reveal no content.
ERASED = "x = NULL, labels = NULL, predicted = NULL, at = NULL, salt = NULL"


@dataclass(frozen=True)
class Head:
    """The state of the log: position, generation, columns, and checksum up to the position."""

    position: int
    generation: int
    columns: Columns | None
    checksum: bytes


@dataclass(frozen=True)
class Learn:
    """A change that adds labelled rows, which the model will learn."""

    ids: list[str]
    x: list[bytes]
    labels: list[tuple[str, ...]]
    columns: Columns


@dataclass(frozen=True)
class Keep:
    """A change that stores rows, with their predictions, until their labels arrive."""

    ids: list[str]
    x: list[bytes]
    predicted: list[list[str]]
    columns: Columns


@dataclass(frozen=True)
class Label:
    """A change that adds labels to waiting rows."""

    ids: list[str]
    labels: list[tuple[str, ...]]


@dataclass(frozen=True)
class Forget:
    """A change that erases rows by ID."""

    ids: list[str]


LogChange = Learn | Keep | Label | Forget


Written = tuple[Head, int, list[str]]


def _learn(session: Session, head: Head, change: Learn) -> Written:
    columns = _agreed(head, change.columns)
    known = states_of(session, change.ids)
    waiting = _waiting_rows(session, [id for id in change.ids if known.get(id) == "waiting"])
    new: list[tuple[Any, ...]] = []
    completed: list[tuple[Any, ...]] = []
    duplicates = []
    position, checksum, now, seen = head.position, head.checksum, time.time(), set()
    about = columns.to_json()
    for id, x, labels in zip(change.ids, change.x, change.labels, strict=True):
        if id in seen or known.get(id, "waiting") != "waiting":
            duplicates.append(id)
            continue
        seen.add(id)
        position += 1
        kept = waiting.get(id)
        predicted = kept.predicted if kept is not None and kept.intact else None
        salt, text = new_salt(), json.dumps(labels)
        digest = row_digest(salt, content_digest(salt, id, x, predicted), text, now)
        checksum = next_checksum(checksum, position, digest, about)
        (new if kept is None else completed).append((position, x, text, predicted, now, salt, digest, checksum, id))
    session.execute_many(
        "INSERT INTO mlca_rows (position, x, labels, predicted, at, salt, digest, checksum, id) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        new,
    )
    session.execute_many(
        "UPDATE mlca_rows SET position = ?, x = ?, labels = ?, predicted = ?, at = ?, salt = ?, digest = ?, "
        "checksum = ? WHERE id = ?",
        completed,
    )
    return Head(position, head.generation, columns, checksum), position - head.position, duplicates


def _keep(session: Session, head: Head, change: Keep) -> Written:
    columns = _agreed(head, change.columns)
    known = dict(states_of(session, change.ids))
    new, others = [], []
    for id, x, predicted in zip(change.ids, change.x, change.predicted, strict=True):
        if id in known:
            others.append(id)
            continue
        known[id] = "waiting"
        salt, text = new_salt(), json.dumps(predicted)
        new.append((x, text, salt, content_digest(salt, id, x, text), id))
    session.execute_many("INSERT INTO mlca_rows (x, predicted, salt, digest, id) VALUES (?, ?, ?, ?, ?)", new)
    return replace(head, columns=columns), len(new), others


def _label(session: Session, head: Head, change: Label) -> Written:
    known = dict(states_of(session, change.ids))
    for number, id in enumerate(change.ids):
        if id not in known:
            remedy = "send the row with its x to /v1/learn, or check the ID"
            raise bad_row(number, "id", "no row with this ID is waiting for labels", remedy)
    waiting = _waiting_rows(session, [id for id in change.ids if known[id] == "waiting"])
    for number, id in enumerate(change.ids):
        if id in waiting and not waiting[id].intact:
            remedy = "send the row with its x to /v1/learn, with the same ID"
            raise bad_row(number, "id", "the waiting row with this ID is damaged in the database", remedy)
    labelled, duplicates = [], []
    position, checksum, now = head.position, head.checksum, time.time()
    about = "" if head.columns is None else head.columns.to_json()
    for id, labels in zip(change.ids, change.labels, strict=True):
        if known[id] != "waiting":
            duplicates.append(id)
            continue
        known[id] = "learned"
        position += 1
        text = json.dumps(labels)
        digest = row_digest(waiting[id].salt, waiting[id].digest, text, now)
        checksum = next_checksum(checksum, position, digest, about)
        labelled.append((position, text, now, digest, checksum, id))
    session.execute_many(
        "UPDATE mlca_rows SET position = ?, labels = ?, at = ?, digest = ?, checksum = ? WHERE id = ?", labelled
    )
    return Head(position, head.generation, head.columns, checksum), len(labelled), duplicates


def _forget(session: Session, head: Head, change: Forget) -> Written:
    known = states_of(session, change.ids)
    gone = [id for id in dict.fromkeys(change.ids) if known.get(id) in ("waiting", "learned")]
    unknown = [id for id in change.ids if id not in known]
    first = _first_position(session, gone)
    session.execute_many(
        f"UPDATE mlca_rows SET {ERASED} WHERE id = ?",
        [(id,) for id in gone],
    )
    if first is None:  # none of the erased rows had a position
        return head, len(gone), unknown
    generation = head.generation + 1
    session.execute("INSERT INTO mlca_forgettings (generation, first) VALUES (?, ?)", (generation, first))
    session.execute("DELETE FROM mlca_snapshots WHERE position >= ?", (first,))
    return replace(head, generation=generation), len(gone), unknown


_WRITERS: dict[type, Any] = {Learn: _learn, Keep: _keep, Label: _label, Forget: _forget}


def carry_out(session: Session, head: Head, change: LogChange) -> Written:
    """Apply a change; return the new head, the number of accepted rows, and skipped IDs."""
    written: Written = _WRITERS[type(change)](session, head, change)
    return written


def _agreed(head: Head, columns: Columns) -> Columns:
    """Return the columns of the log; the first row defines them, and later rows must match."""
    if head.columns is None or columns == head.columns:
        return columns
    raise bad_row(0, "x", "another request has just defined other columns", "send the columns that GET /v1/model shows")


def _groups(ids: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for start in range(0, len(ids), _LOOKED_UP):
        group = ids[start : start + _LOOKED_UP]
        yield ", ".join("?" * len(group)), group


def states_of(session: Session, ids: Sequence[str]) -> dict[str, str]:
    """Return the states of rows by ID, for the given IDs that the log contains."""
    states = {}
    for marks, group in _groups(ids):
        found = session.execute(f"SELECT id, position, x IS NULL FROM mlca_rows WHERE id IN ({marks})", group)
        for id, position, erased in found:
            states[id] = "forgotten" if erased else "waiting" if position is None else "learned"
    return states


@dataclass(frozen=True)
class _WaitingRow:
    """Prediction, salt and digest of a waiting row, and whether the row is intact."""

    predicted: str | None
    salt: bytes
    digest: bytes
    intact: bool


def _waiting_rows(session: Session, ids: Sequence[str]) -> dict[str, _WaitingRow]:
    """Return waiting rows by ID, each checked against its digest."""
    rows = {}
    for marks, group in _groups(ids):
        found = session.execute(f"SELECT id, x, predicted, salt, digest FROM mlca_rows WHERE id IN ({marks})", group)
        for id, x, predicted, salt, digest in found:
            try:
                salt, digest = stored_bytes(salt), stored_bytes(digest)
                intact = content_digest(salt, id, stored_bytes(x), predicted) == digest
            except UNREADABLE:
                intact = False
            rows[id] = _WaitingRow(predicted, salt, digest, intact)
    return rows


def _first_position(session: Session, ids: Sequence[str]) -> int | None:
    positions = []
    for marks, group in _groups(ids):
        found = session.execute(f"SELECT min(position) FROM mlca_rows WHERE id IN ({marks})", group)
        if found[0][0] is not None:
            positions.append(int(found[0][0]))
    return min(positions, default=None)

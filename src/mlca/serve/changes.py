"""What changes the log: rows to learn, rows that wait, labels for them, and rows that must go.

Each change is carried out within a transaction that is the only one writing. It is checked as a whole before any of
it is written, so that a refused one leaves no trace, and others can share its transaction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mlca.serve.database import Session
from mlca.serve.refusals import bad_row
from mlca.serve.rows import Columns

# Ids that are looked up by one statement.
_LOOKED_UP = 500


@dataclass(frozen=True)
class Head:
    """Where the log stands."""

    position: int
    generation: int
    columns: Columns | None


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
    predicted: list[list[str]]
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


LogChange = Learn | Keep | Label | Forget


Written = tuple[Head, int, list[str]]


def _learn(session: Session, head: Head, change: Learn) -> Written:
    columns = _agreed(head, change.columns)
    known = states_of(session, change.ids)
    new: list[tuple[Any, ...]] = []
    completed: list[tuple[Any, ...]] = []
    duplicates = []
    position, now, seen = head.position, time.time(), set()
    for id, x, labels in zip(change.ids, change.x, change.labels, strict=True):
        if id in seen or known.get(id, "waiting") != "waiting":
            duplicates.append(id)
            continue
        seen.add(id)
        position += 1
        (completed if id in known else new).append((position, x, json.dumps(labels), now, id))
    session.execute_many("INSERT INTO mlca_rows (position, x, labels, at, id) VALUES (?, ?, ?, ?, ?)", new)
    session.execute_many("UPDATE mlca_rows SET position = ?, x = ?, labels = ?, at = ? WHERE id = ?", completed)
    return Head(position, head.generation, columns), position - head.position, duplicates


def _keep(session: Session, head: Head, change: Keep) -> Written:
    columns = _agreed(head, change.columns)
    known = dict(states_of(session, change.ids))
    new, others = [], []
    for id, x, predicted in zip(change.ids, change.x, change.predicted, strict=True):
        if id in known:
            others.append(id)
            continue
        known[id] = "waiting"
        new.append((x, json.dumps(predicted), id))
    session.execute_many("INSERT INTO mlca_rows (x, predicted, id) VALUES (?, ?, ?)", new)
    return Head(head.position, head.generation, columns), len(new), others


def _label(session: Session, head: Head, change: Label) -> Written:
    known = dict(states_of(session, change.ids))
    for number, id in enumerate(change.ids):
        if id not in known:
            remedy = "send the row with its x to /v1/learn, or check the id"
            raise bad_row(number, "id", "no row waits under this id", remedy)
    labelled, duplicates = [], []
    position, now = head.position, time.time()
    for id, labels in zip(change.ids, change.labels, strict=True):
        if known[id] != "waiting":
            duplicates.append(id)
            continue
        known[id] = "learned"
        position += 1
        labelled.append((position, json.dumps(labels), now, id))
    session.execute_many("UPDATE mlca_rows SET position = ?, labels = ?, at = ? WHERE id = ?", labelled)
    return Head(position, head.generation, head.columns), len(labelled), duplicates


def _forget(session: Session, head: Head, change: Forget) -> Written:
    known = states_of(session, change.ids)
    gone = [id for id in dict.fromkeys(change.ids) if known.get(id) in ("waiting", "learned")]
    unknown = [id for id in change.ids if id not in known]
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


def carry_out(session: Session, head: Head, change: LogChange) -> Written:
    """Carry out a change; return where the log stands then, how many rows were taken, and the ids of the others."""
    written: Written = _WRITERS[type(change)](session, head, change)
    return written


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


def states_of(session: Session, ids: Sequence[str]) -> dict[str, str]:
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

"""Rows of (key, value) pairs that grow: label counts of nodes, sparse weights, nodes that have an attribute.

All rows live in one pool. A row owns `room` places from `start` on and uses the first `length` of
them. A row that outgrows its room moves to the end of the pool, to twice the room; what it leaves
behind is reclaimed when the pool is next enlarged (`mlca.learner.growing`). Compiled code never enlarges
anything: it asks `has_space` first and hands control back when the answer is no.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled


class Ragged(NamedTuple):
    """Rows of pairs in one pool; `used[0]` is where the free part of the pool begins."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    room: NDArray[np.int64]
    keys: NDArray[np.int32]
    values: NDArray[Any]
    used: NDArray[np.int64]


@compiled
def has_space(rows: Ragged, places: int) -> bool:
    """Whether the pool has that many free places."""
    return rows.keys.shape[0] - rows.used[0] >= places


@compiled
def open_row(rows: Ragged, row: int, room: int) -> None:
    """Make an empty row with room for some pairs."""
    rows.start[row] = rows.used[0]
    rows.length[row] = 0
    rows.room[row] = room
    rows.used[0] += room


@compiled
def open_filled(rows: Ragged, row: int, keys: np.ndarray, source: np.ndarray) -> None:
    """Make a row of these keys, each with its value in the source, and no room for more."""
    open_row(rows, row, keys.shape[0])
    start, all_keys, all_values = rows.start[row], rows.keys, rows.values
    for place in range(keys.shape[0]):
        all_keys[start + place] = keys[place]
        all_values[start + place] = source[keys[place]]
    rows.length[row] = keys.shape[0]


@compiled
def append(rows: Ragged, row: int, key: int, value: Any) -> None:
    """Add a pair to a row whose key it does not hold yet."""
    if rows.length[row] == rows.room[row]:
        start, length = rows.start[row], rows.length[row]
        room = 2 * length + 2
        moved = rows.used[0]
        for place in range(length):
            rows.keys[moved + place] = rows.keys[start + place]
            rows.values[moved + place] = rows.values[start + place]
        rows.start[row] = moved
        rows.room[row] = room
        rows.used[0] += room
    place = rows.start[row] + rows.length[row]
    rows.keys[place] = key
    rows.values[place] = value
    rows.length[row] += 1


@compiled
def places_to_append(rows: Ragged, row: int, pairs: int) -> int:
    """Return how many free places the pool needs so that a row can take that many more pairs for certain."""
    length, room = rows.length[row], rows.room[row]
    if length + pairs <= room:
        return 0
    # Rooms double: the sum of all rooms on the way is below twice the last one.
    return 4 * (length + pairs) + 4


@compiled
def add_to(rows: Ragged, row: int, key: int, value: float) -> None:
    """Add to the value of a key in a short row, starting from 0 if it is new."""
    start = rows.start[row]
    for place in range(start, start + rows.length[row]):
        if rows.keys[place] == key:
            rows.values[place] += value
            return
    append(rows, row, key, value)

"""Arrays that grow: the model's, between two calls of the compiled loop.

Room grows by half each time, so that a stream of n instances copies each of them a few times at the most,
and pages that are not yet used cost no memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.learner.kernels.dense import DenseNodes
from mlca.learner.kernels.learn import Model
from mlca.learner.kernels.overlaps import Owners
from mlca.learner.kernels.ragged import Ragged
from mlca.learner.kernels.screen import TILE
from mlca.learner.kernels.sparse import SparseNodes
from mlca.learner.kernels.stores import COMMON, INDIVIDUAL
from mlca.learner.kernels.votes import NODES


def empty_model(n_features: int, mode: int, n_neighbors: int, sparse_nodes: bool) -> Model:
    """Make a model without nodes and without labels."""
    width = 1 if mode == COMMON else n_features
    own_scales = n_features if mode == INDIVIDUAL else 0
    nodes: Any
    if sparse_nodes:
        nodes = SparseNodes(
            weights=empty_ragged(0),
            owners=Owners(empty_ragged(n_features, np.uint64), np.zeros(n_features, np.uint64), np.zeros(1, np.int64)),
            listed=np.empty(0, np.bool_),
            scales=np.empty((0, own_scales)),
            bases=np.empty(0, np.int64),
        )
    else:
        nodes = DenseNodes(
            weights=np.empty((0, n_features)),
            tiles=np.empty((0, n_features, TILE), np.float32),
            scales=np.empty((0, own_scales)),
            scale_tiles=np.empty((0, own_scales, TILE), np.float32),
            largest=np.zeros(3),
            reach=np.zeros(n_features),
        )
    return Model(
        nodes=nodes,
        counts=np.empty(0, np.int64),
        bandwidths=np.empty((0, width)),
        bandwidth_sums=np.zeros(width),
        label_counts=empty_ragged(0),
        label_totals=np.zeros(0, np.int64),
        with_=np.zeros((0, n_neighbors + 1), np.int64),
        without=np.zeros((0, n_neighbors + 1), np.int64),
        tally=np.zeros(4, np.int64),
    )


def empty_ragged(n_rows: int, dtype: type[np.generic] = np.float64) -> Ragged:
    """Make rows without any pair."""
    return Ragged(
        start=np.zeros(n_rows, np.int64),
        length=np.zeros(n_rows, np.int64),
        room=np.zeros(n_rows, np.int64),
        keys=np.empty(0, np.int32),
        values=np.empty(0, dtype),
        used=np.zeros(1, np.int64),
    )


def with_room(model: Model, n_features: int, row_labels: int, new_nodes: int = 1) -> Model:
    """Return the model with room for so many new nodes, and for an instance of so many labels that joins any node."""
    n_nodes = int(model.tally[NODES])
    capacity = len(model.counts)
    if n_nodes + new_nodes > capacity:
        capacity = max(n_nodes + new_nodes, capacity + 64, capacity + capacity // 2)
    nodes = model.nodes
    if isinstance(nodes, SparseNodes):
        # As much as `shortage` asks for: all neighbours may move and every list may move once.
        spare = (model.with_.shape[1] + 1) * (4 * n_features + 4)
        nodes = SparseNodes(
            weights=enlarged_ragged(nodes.weights, capacity, spare),
            owners=with_room_to_enter(nodes.owners, n_features),
            listed=enlarged(nodes.listed, capacity),
            scales=enlarged(nodes.scales, capacity),
            bases=enlarged(nodes.bases, capacity),
        )
    else:
        n_tiles = -(-capacity // nodes.tiles.shape[2])
        nodes = DenseNodes(
            weights=enlarged(nodes.weights, capacity),
            tiles=enlarged(nodes.tiles, n_tiles),
            scales=enlarged(nodes.scales, capacity),
            scale_tiles=enlarged(nodes.scale_tiles, n_tiles),
            largest=nodes.largest,
            reach=nodes.reach,
        )
    longest = int(model.label_counts.length[:n_nodes].max(initial=0))
    return model._replace(
        nodes=nodes,
        counts=enlarged(model.counts, capacity),
        bandwidths=enlarged(model.bandwidths, capacity),
        label_counts=enlarged_ragged(model.label_counts, capacity, 4 * (longest + row_labels) + 4),
    )


def with_room_to_enter(owners: Owners, n_entries: int) -> Owners:
    """Return the owners of attributes with lists that can take that many entries more."""
    n_features = len(owners.masks)
    places = 4 * (int(owners.lists.length.sum()) + n_entries) + 4 * n_features
    return owners._replace(lists=enlarged_ragged(owners.lists, n_features, places))


def with_labels(model: Model, n_labels: int) -> Model:
    """Return the model with counters for at least that many labels."""
    room = len(model.label_totals)
    if n_labels <= room:
        return model
    room = max(n_labels, room + room // 2)
    return model._replace(
        label_totals=enlarged(model.label_totals, room),
        with_=enlarged(model.with_, room),
        without=enlarged(model.without, room),
    )


def writable(arrays: Any) -> Any:
    """Return an array, or a tuple of arrays and tuples, with whatever cannot be written replaced by a copy."""
    if isinstance(arrays, np.ndarray):
        return arrays if arrays.flags.writeable else np.array(arrays)
    return type(arrays)(*(writable(part) for part in arrays))


def enlarged(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the array with that many rows; new ones are zero. The same array if it has them already."""
    if len(array) >= length:
        return array
    larger = np.zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def enlarged_ragged(rows: Ragged, n_rows: int, spare: int) -> Ragged:
    """Return rows with that many free places in the pool, holes closed where the pool had to be enlarged."""
    start, length, room = (enlarged(part, n_rows) for part in (rows.start, rows.length, rows.room))
    if len(rows.keys) - rows.used[0] >= spare:
        return rows._replace(start=start, length=length, room=room)
    used = int(length.sum())
    keys = np.empty(used + spare + used // 2, rows.keys.dtype)
    values = np.empty(len(keys), rows.values.dtype)
    # Without holes, rows lie one behind the other already.
    places = slice(used) if used == rows.used[0] else _places(start, length)
    keys[:used], values[:used] = rows.keys[places], rows.values[places]
    if used != rows.used[0]:
        start = np.cumsum(length) - length
    return Ragged(start, length, length.copy(), keys, values, np.array([used]))


def _places(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of all pairs, row after row."""
    ends = np.cumsum(length)
    places: NDArray[np.int64] = np.repeat(start - (ends - length), length)
    places += np.arange(len(places))
    return places


def csr_parts(rows: Ragged, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return indptr, indices and data of the first rows, with ascending keys in each."""
    length = rows.length[:n_rows]
    places = _places(rows.start[:n_rows], length)
    keys, values = rows.keys[places], rows.values[places]
    order = np.lexsort((keys, np.repeat(np.arange(n_rows), length)))
    indptr = np.concatenate(([0], np.cumsum(length)))
    return indptr, keys[order], values[order]


def ragged_from_csr(indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float64]) -> Ragged:
    """Return rows of pairs with the contents of CSR arrays."""
    length = np.diff(indptr)
    return Ragged(
        start=indptr[:-1].astype(np.int64),
        length=length.astype(np.int64),
        room=length.astype(np.int64),
        keys=indices.astype(np.int32),
        values=data.astype(np.float64),
        used=np.array([len(indices)]),
    )

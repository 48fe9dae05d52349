"""A learner's state in canonical form: plain arrays without spare room, checked before they are believed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.learner.core import Learner
from mlca.learner.growing import csr_parts, ragged_from_csr, with_labels, with_room_to_enter
from mlca.learner.kernels.dense import DenseNodes, refresh_dense, set_scales_dense
from mlca.learner.kernels.fixedpoint import SCALE
from mlca.learner.kernels.sparse import SparseNodes, list_node, refresh_base
from mlca.learner.kernels.votes import LEARNED, NODES, VOTED, VOTED_ALONE
from mlca.learner.labels import counters
from mlca.learner.similarity import Parameters
from mlca.learner.window import Window

State = dict[str, NDArray[Any]]

# name: (dtype, number of dimensions). CSR matrices are three arrays each.
_CSR = {"indptr": ("<i8", 1), "indices": ("<i4", 1), "data": ("<f8", 1)}
_COMMON_ARRAYS = {
    "tally": ("<i8", 1),
    "counts": ("<i8", 1),
    "bandwidths": ("<f8", 2),
    **{f"label_counts.{part}": kind for part, kind in _CSR.items()},
    "with": ("<i8", 2),
    "without": ("<i8", 2),
    "waiting.indptr": ("<i8", 1),
    "waiting.indices": ("<i4", 1),
    "group_centres": ("<f8", 1),
    "group_counts": ("<i8", 1),
    "group_bandwidths": ("<f8", 1),
}
_DENSE_ARRAYS = {"weights": ("<f8", 2), "recent": ("<f8", 2)}
_SPARSE_ARRAYS = {f"{name}.{part}": kind for name in ("weights", "recent") for part, kind in _CSR.items()}


def state_schema(sparse_nodes: bool) -> dict[str, tuple[str, int]]:
    """Return the name, dtype and number of dimensions of every array of a state."""
    return {**_COMMON_ARRAYS, **(_SPARSE_ARRAYS if sparse_nodes else _DENSE_ARRAYS)}


def capture(learner: Learner) -> State:
    """Return everything that a learner knows."""
    model, n_nodes = learner.model, learner.n_nodes
    with_label, without_label = counters(model, learner.n_labels)
    lengths = [len(own) for own in learner.waiting]
    state: State = {
        "tally": model.tally,
        "counts": model.counts[:n_nodes],
        "bandwidths": model.bandwidths[:n_nodes],
        **_named("label_counts", csr_parts(model.label_counts, n_nodes)),
        "with": with_label,
        "without": without_label,
        "waiting.indptr": np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        "waiting.indices": np.concatenate([np.empty(0, np.int32), *learner.waiting]),
        "group_centres": learner.groups.centres,
        "group_counts": learner.groups.counts,
        "group_bandwidths": learner.groups.bandwidths,
    }
    recent = learner.window.latest()
    if learner.sparse_nodes:
        rows = sparse.csr_array(recent)
        state.update(_named("recent", (rows.indptr, rows.indices, rows.data)))
        state.update(_named("weights", csr_parts(model.nodes.weights, n_nodes)))
    else:
        state.update(recent=recent, weights=model.nodes.weights[:n_nodes])
    kinds = state_schema(learner.sparse_nodes)
    return {name: np.ascontiguousarray(array, kinds[name][0]) for name, array in state.items()}


def restore(parameters: Parameters, n_features: int, n_labels: int, sparse_nodes: bool, state: State) -> Learner:
    """Return a learner that goes on exactly as the captured one would.

    Raises
    ------
    ValueError
        If the arrays contradict each other or could not have come from a learner. Compiled code does
        not check its indices, so nothing unchecked may reach it.
    """
    check_state(parameters, n_features, n_labels, sparse_nodes, state)
    learner = Learner(parameters, n_features, sparse_nodes)
    learner.n_labels = n_labels
    _restore_window(learner, state)
    learner.groups.set(*(state[f"group_{part}"].copy() for part in ("centres", "counts", "bandwidths")))
    model = with_labels(learner.model, n_labels)
    model.with_[:n_labels] = state["with"]
    model.without[:n_labels] = state["without"]
    model.without[:n_labels, 0] -= state["tally"][VOTED]
    model.without[:n_labels, -1] -= state["tally"][VOTED_ALONE]
    label_counts = _csr(state, "label_counts")
    model.label_totals[:n_labels] = np.bincount(label_counts[1], weights=label_counts[2], minlength=n_labels)[:n_labels]
    for bandwidths in state["bandwidths"]:  # in the order of their making, as they were first added up
        model.bandwidth_sums[:] += bandwidths
    learner.model = model._replace(
        nodes=_restore_nodes(learner, state),
        counts=state["counts"].copy(),
        bandwidths=state["bandwidths"].copy(),
        label_counts=ragged_from_csr(*label_counts),
        tally=state["tally"].copy(),
    )
    return learner


def _restore_window(learner: Learner, state: State) -> None:
    window: Window = learner.window
    indptr = state["waiting.indptr"]
    learner.waiting = [state["waiting.indices"][low:high].copy() for low, high in pairwise(indptr)]
    recent = state["recent"] if not learner.sparse_nodes else _dense(state, "recent", learner.n_features)
    window.rows[: len(recent)] = recent
    window.filled = len(recent)
    window.learned = len(recent) - len(learner.waiting)


def _restore_nodes(learner: Learner, state: State) -> DenseNodes | SparseNodes:
    n_nodes = len(state["counts"])
    nodes = learner.model.nodes
    own_scales = nodes.scales.shape[1] > 0
    if isinstance(nodes, SparseNodes):
        weights = ragged_from_csr(*_csr(state, "weights"))
        nodes = SparseNodes(
            weights=weights,
            owners=with_room_to_enter(nodes.owners, len(weights.keys)),
            listed=np.zeros(n_nodes, np.bool_),
            scales=SCALE / state["bandwidths"] if own_scales else np.empty((n_nodes, 0)),
            bases=np.zeros(n_nodes, np.int64),
        )
        for node in range(n_nodes):
            list_node(nodes, node)
            if own_scales:
                refresh_base(nodes, node)
        return nodes
    n_tiles = -(-n_nodes // nodes.tiles.shape[2])
    nodes = DenseNodes(
        weights=state["weights"].copy(),
        tiles=np.zeros((n_tiles, *nodes.tiles.shape[1:]), np.float32),
        scales=np.empty((n_nodes, nodes.scales.shape[1])),
        scale_tiles=np.zeros((n_tiles, *nodes.scale_tiles.shape[1:]), np.float32),
        largest=nodes.largest,
        reach=nodes.reach,
    )
    for node in range(n_nodes):
        if own_scales:
            set_scales_dense(nodes, node, SCALE / state["bandwidths"][node])
        refresh_dense(nodes, node)
    return nodes


def check_state(parameters: Parameters, n_features: int, n_labels: int, sparse_nodes: bool, state: State) -> None:
    """Raise ValueError, naming the array, if a state could not have come from a learner."""
    _require(len(state["tally"]) == 4 and (state["tally"] >= 0).all(), "tally", "holds no four counts")
    n_nodes, learned = int(state["tally"][NODES]), int(state["tally"][LEARNED])
    voted = int(state["tally"][VOTED]) + int(state["tally"][VOTED_ALONE])
    width = 1 if parameters.attributes == "common" else n_features
    n_bins = parameters.n_neighbors + 1
    _check_shape(state, "counts", (n_nodes,))
    _check_shape(state, "bandwidths", (n_nodes, width))
    _check_shape(state, "with", (n_labels, n_bins))
    _check_shape(state, "without", (n_labels, n_bins))
    _require((n_nodes > 0) == (learned > 0) and voted == max(learned - 1, 0), "tally", "does not add up")
    _require(n_nodes <= learned, "tally", "has more nodes than instances")
    _require((state["counts"] >= 1).all(), "counts", "has a node without instances")
    _require(bool((state["bandwidths"] > 0).all()), "bandwidths", "are not all positive")
    _require(np.isfinite(state["bandwidths"]).all(), "bandwidths", "are not all finite")
    for name in ("with", "without"):
        _require((state[name] >= 0).all(), name, "holds a negative count")
    _require(((state["with"] + state["without"]).sum(axis=1) == voted).all(), "with", "and without do not add up")
    _check_csr(state, "label_counts", n_nodes, n_labels)
    counted = state["label_counts.data"]
    _require(((counted >= 1) & (counted <= learned)).all(), "label_counts", "holds an impossible count")
    _require((counted == np.floor(counted)).all(), "label_counts", "holds a count that is not whole")
    _check_waiting(state, parameters.window, learned, n_labels)
    _check_rows(state, "weights", n_nodes, n_features, sparse_nodes)
    n_recent = len(state["waiting.indptr"]) - 1 if learned == 0 else parameters.window
    _check_rows(state, "recent", n_recent, n_features, sparse_nodes)
    _check_groups(state, parameters.attributes == "clustered" and learned > 0)


def _check_waiting(state: State, window: int, learned: int, n_labels: int) -> None:
    indptr, indices = state["waiting.indptr"], state["waiting.indices"]
    _check_indptr(indptr, len(indices), "waiting")
    n_waiting = len(indptr) - 1
    _require(n_waiting < window and (learned == 0 or n_waiting == 0), "waiting", "has too many instances")
    _require(learned == 0 or learned >= window, "tally", "has learned before the first window was full")
    _require(((indices >= 0) & (indices < n_labels)).all(), "waiting", "names a label that is not there")


def _check_groups(state: State, expected: bool) -> None:
    n = len(state["group_centres"])
    _require((n > 0) == expected, "group_centres", "do not fit the attributes' mode")
    for name in ("group_counts", "group_bandwidths"):
        _check_shape(state, name, (n,))
        _require((state[name] > 0).all(), name, "are not all positive")
    for name in ("group_centres", "group_bandwidths"):
        _require(np.isfinite(state[name]).all(), name, "are not all finite")


def _check_rows(state: State, name: str, n_rows: int, n_columns: int, sparse_rows: bool) -> None:
    if sparse_rows:
        _check_csr(state, name, n_rows, n_columns)
        name += ".data"
        _require((state[name] != 0).all(), name, "stores zeros")
    else:
        _check_shape(state, name, (n_rows, n_columns))
    _require(np.isfinite(state[name]).all(), name, "are not all finite")


def _check_csr(state: State, name: str, n_rows: int, n_columns: int) -> None:
    indptr, indices, data = _csr(state, name)
    _require(len(indptr) == n_rows + 1, name, f"has {len(indptr) - 1} rows instead of {n_rows}")
    _check_indptr(indptr, len(indices), name)
    _require(len(indices) == len(data), name, "has indices and data of different length")
    _require(((indices >= 0) & (indices < n_columns)).all(), name, "has an index out of range")
    first = np.zeros(len(indices) + 1, np.bool_)
    first[indptr[:-1]] = True
    ascending = first[1:-1] | (np.diff(indices) > 0)
    _require(bool(ascending.all()), name, "has indices out of order")


def _check_indptr(indptr: NDArray[np.int64], n_entries: int, name: str) -> None:
    fits = len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == n_entries
    _require(bool(fits and (np.diff(indptr) >= 0).all()), name, "has row bounds that do not fit")


def _check_shape(state: State, name: str, shape: tuple[int, ...]) -> None:
    _require(state[name].shape == shape, name, f"has shape {state[name].shape} instead of {shape}")


def _require(condition: Any, name: str, fault: str) -> None:
    if not condition:
        raise ValueError(f"array {name!r} {fault}")


def _csr(state: State, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return state[f"{name}.indptr"], state[f"{name}.indices"], state[f"{name}.data"]


def _named(name: str, parts: tuple[Any, Any, Any]) -> State:
    return {f"{name}.{part}": array for part, array in zip(("indptr", "indices", "data"), parts, strict=True)}


def _dense(state: State, name: str, n_columns: int) -> NDArray[np.float64]:
    indptr, indices, data = _csr(state, name)
    rows = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    dense: NDArray[np.float64] = rows.toarray()
    return dense

"""A learner's state in canonical form: out of a learner as plain arrays, and back once they are checked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.learner.checking import State, check_state, state_schema
from mlca.learner.core import Learner
from mlca.learner.growing import csr_parts, ragged_from_csr, with_labels, with_room_to_enter
from mlca.learner.kernels.dense import DenseNodes, refresh_dense, set_scales_dense
from mlca.learner.kernels.fixedpoint import SCALE
from mlca.learner.kernels.sparse import SparseNodes, list_node, refresh_base
from mlca.learner.kernels.votes import VOTED, VOTED_ALONE
from mlca.learner.labels import counters
from mlca.learner.similarity import Parameters
from mlca.learner.window import Window


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


def _csr(state: State, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return state[f"{name}.indptr"], state[f"{name}.indices"], state[f"{name}.data"]


def _named(name: str, parts: tuple[Any, Any, Any]) -> State:
    return {f"{name}.{part}": array for part, array in zip(("indptr", "indices", "data"), parts, strict=True)}


def _dense(state: State, name: str, n_columns: int) -> NDArray[np.float64]:
    indptr, indices, data = _csr(state, name)
    rows = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    dense: NDArray[np.float64] = rows.toarray()
    return dense

"""One set of verbs for dense and for sparse nodes; Numba picks the right one when it compiles.

`nearest`, `create`, `forget`, `move`, `shortage` and `unfold` have a dense and a sparse body each. Which one a
loop gets follows from the type of its nodes, so `learn` and `predict` are written once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from mlca.learner.kernels.dense import (
    DenseNodes,
    nearest_clustered_dense,
    nearest_common_dense,
    nearest_individual_dense,
    refresh_dense,
    set_scales_dense,
)
from mlca.learner.kernels.fixedpoint import SCALE
from mlca.learner.kernels.nearest import Search
from mlca.learner.kernels.overlaps import places_to_enter
from mlca.learner.kernels.ragged import has_space, open_filled
from mlca.learner.kernels.sparse import (
    SparseNodes,
    forget_sparse,
    list_node,
    move_sparse,
    nearest_clustered_sparse,
    nearest_common_sparse,
    nearest_individual_sparse,
    nonzeros,
    refresh_base,
)

COMMON, INDIVIDUAL, CLUSTERED = 0, 1, 2

Row = NDArray[np.float64]
Rows = NDArray[np.float64]


def _verb(dense: Callable[..., Any], sparse: Callable[..., Any]) -> Callable[..., Any]:
    """Make a verb whose body is chosen by the type of its first argument, the nodes."""

    def verb(nodes: Any, *arguments: Any) -> Any:
        raise NotImplementedError("only compiled code calls this")

    def choose(nodes: Any, *arguments: Any) -> Callable[..., Any] | None:
        if not isinstance(nodes, types.NamedTuple):
            return None
        return {DenseNodes: dense, SparseNodes: sparse}.get(nodes.instance_class)

    overload(verb, strict=False)(choose)
    return verb


def _nearest_dense(nodes: DenseNodes, rows: Rows, search: Search, mode: int, screen_from: int) -> None:
    search.lengths[:] = 0
    if mode == COMMON:
        nearest_common_dense(rows, nodes, search, screen_from)
    elif mode == INDIVIDUAL:
        nearest_individual_dense(rows, nodes, search, screen_from)
    else:
        nearest_clustered_dense(rows[0], nodes, search, screen_from)


def _nearest_sparse(nodes: SparseNodes, rows: Rows, search: Search, mode: int, screen_from: int) -> None:
    search.lengths[:] = 0
    for j in range(rows.shape[0]):
        x = rows[j]
        own = nonzeros(x)
        if mode == COMMON:
            nearest_common_sparse(j, x, own, nodes, search)
        elif mode == INDIVIDUAL:
            nearest_individual_sparse(j, x, own, nodes, search)
        else:
            nearest_clustered_sparse(x, own, nodes, search)


def _create_dense(nodes: DenseNodes, node: int, x: Row, bandwidths: Row) -> None:
    nodes.weights[node] = x
    if nodes.scales.shape[1] > 0:
        set_scales_dense(nodes, node, SCALE / bandwidths)
    refresh_dense(nodes, node)


def _create_sparse(nodes: SparseNodes, node: int, x: Row, bandwidths: Row) -> None:
    open_filled(nodes.weights, node, nonzeros(x), x)
    list_node(nodes, node)
    if nodes.scales.shape[1] > 0:
        nodes.scales[node] = SCALE / bandwidths
        refresh_base(nodes, node)


def _forget_dense(nodes: DenseNodes, first: int, end: int) -> None:
    """Do nothing: the next node overwrites them, and bounds that are too large do no harm."""


def _forget_sparse(nodes: SparseNodes, first: int, end: int) -> None:
    forget_sparse(nodes, first, end)


def _move_dense(nodes: DenseNodes, node: int, target: Row, step: float) -> None:
    weights = nodes.weights[node]
    for i in range(target.shape[0]):
        weights[i] += (target[i] - weights[i]) / step
    refresh_dense(nodes, node)


def _move_sparse(nodes: SparseNodes, node: int, target: Row, step: float) -> None:
    move_sparse(nodes, node, target, step)


def _shortage_dense(nodes: DenseNodes, n_nodes: int, x: Row, movers: int) -> bool:
    return n_nodes == nodes.weights.shape[0]


def _shortage_sparse(nodes: SparseNodes, n_nodes: int, x: Row, movers: int) -> bool:
    # A row that moves has at most d entries in the end.
    places = movers * (4 * x.shape[0] + 4) + x.shape[0]
    if n_nodes == nodes.listed.shape[0] or not has_space(nodes.weights, places):
        return True
    return not has_space(nodes.owners.lists, places_to_enter(nodes.owners, n_nodes))


def _unfold_dense(nodes: DenseNodes, node: int, weights: Row) -> None:
    weights[:] = nodes.weights[node]


def _unfold_sparse(nodes: SparseNodes, node: int, weights: Row) -> None:
    weights[:] = 0.0
    start = nodes.weights.start[node]
    for place in range(start, start + nodes.weights.length[node]):
        weights[nodes.weights.keys[place]] = nodes.weights.values[place]


# Fill in a search: the nearest nodes of each row, with their sums. Rows come singly where attributes are grouped.
nearest = _verb(_nearest_dense, _nearest_sparse)
# Make a new node from an instance; `bandwidths` is as wide as the mode needs.
create = _verb(_create_dense, _create_sparse)
# Unmake the youngest nodes, from `first` up to `end`.
forget = _verb(_forget_dense, _forget_sparse)
# Move a node towards a target: y += (target - y) / step.
move = _verb(_move_dense, _move_sparse)
# Whether room might run out if an instance becomes a node or moves that many nodes.
shortage = _verb(_shortage_dense, _shortage_sparse)
# Write a node's weights into a dense row.
unfold = _verb(_unfold_dense, _unfold_sparse)

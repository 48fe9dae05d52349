"""One set of verbs for dense and for sparse nodes; Numba picks the right one when it compiles.

`nearest`, `create`, `move`, `shortage` and `unfold` have a dense and a sparse body each. Which one a
loop gets follows from the type of its nodes, so `learn` and `predict` are written once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
from mlca.learner.kernels.groups import Grouping
from mlca.learner.kernels.ragged import append, has_space, open_row, places_to_append
from mlca.learner.kernels.sparse import (
    SparseNodes,
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


class Query(NamedTuple):
    """How one instance is compared with the nodes: the mode, and what the mode needs."""

    mode: int
    r: float
    grouping: Grouping
    screen_from: int


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


def _nearest_dense(nodes: DenseNodes, n_nodes: int, x: Row, query: Query, found: np.ndarray, sums: np.ndarray) -> int:
    if query.mode == COMMON:
        return nearest_common_dense(x, nodes, n_nodes, query.r, query.screen_from, found, sums)
    if query.mode == INDIVIDUAL:
        return nearest_individual_dense(x, nodes, n_nodes, query.screen_from, found, sums)
    return nearest_clustered_dense(x, nodes, n_nodes, query.grouping, query.screen_from, found, sums)


def _nearest_sparse(nodes: SparseNodes, n_nodes: int, x: Row, query: Query, found: np.ndarray, sums: np.ndarray) -> int:
    own = nonzeros(x)
    if query.mode == COMMON:
        return nearest_common_sparse(x, own, nodes, n_nodes, query.r, found, sums)
    if query.mode == INDIVIDUAL:
        return nearest_individual_sparse(x, own, nodes, n_nodes, found, sums)
    return nearest_clustered_sparse(x, own, nodes, n_nodes, query.grouping, found, sums)


def _create_dense(nodes: DenseNodes, node: int, x: Row, bandwidths: Row) -> None:
    nodes.weights[node] = x
    if nodes.scales.shape[1] > 0:
        set_scales_dense(nodes, node, SCALE / bandwidths)
    refresh_dense(nodes, node)


def _create_sparse(nodes: SparseNodes, node: int, x: Row, bandwidths: Row) -> None:
    own = nonzeros(x)
    open_row(nodes.weights, node, own.shape[0])
    for i in own:
        append(nodes.weights, node, i, x[i])
    list_node(nodes, node)
    if nodes.scales.shape[1] > 0:
        nodes.scales[node] = SCALE / bandwidths
        refresh_base(nodes, node)


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
    places = 0
    for i in nonzeros(x):
        places += places_to_append(nodes.lists, i, 1)
    return not has_space(nodes.lists, places)


def _unfold_dense(nodes: DenseNodes, node: int, weights: Row) -> None:
    weights[:] = nodes.weights[node]


def _unfold_sparse(nodes: SparseNodes, node: int, weights: Row) -> None:
    weights[:] = 0.0
    start = nodes.weights.start[node]
    for place in range(start, start + nodes.weights.length[node]):
        weights[nodes.weights.keys[place]] = nodes.weights.values[place]


# List the nearest of the first `n_nodes` nodes, with their sums; return how many there are.
nearest = _verb(_nearest_dense, _nearest_sparse)
# Make a new node from an instance; `bandwidths` is as wide as the mode needs.
create = _verb(_create_dense, _create_sparse)
# Move a node towards a target: y += (target - y) / step.
move = _verb(_move_dense, _move_sparse)
# Whether room might run out if an instance becomes a node or moves that many nodes.
shortage = _verb(_shortage_dense, _shortage_sparse)
# Write a node's weights into a dense row.
unfold = _verb(_unfold_dense, _unfold_sparse)

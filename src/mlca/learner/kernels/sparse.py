"""Similarity of one instance to sparse nodes, at the cost of their non-zeros.

An attribute where instance and node are equal adds nothing, so only entries where either is non-zero matter.
Terms are integers, so a sum may be put together from parts that are added and taken away again without
losing a bit: the sum over the instance's own non-zeros, as if the node were zero, is made once; each
node then corrects it at its own non-zeros.

Binary data cost less still. Where instance and node hold nothing but ones, the sum is the
kernel's one value times the number of attributes in which they differ, and the overlaps with all
nodes come from the lists of nodes that have an attribute. Nodes enter the lists when they are made. One that
moves leaves them for good (its entries stay behind, unread) and is computed directly from then on. On Bibtex
(1,836 attributes, 69 a row) learning is ten times as fast as on dense rows (mlca bench).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled, keep_apart
from mlca.learner.kernels.fixedpoint import dissimilarity, group_root, root_dissimilarity
from mlca.learner.kernels.groups import Grouping
from mlca.learner.kernels.nearest import insert
from mlca.learner.kernels.ragged import Ragged, append


class SparseNodes(NamedTuple):
    """Non-zero weights of nodes (attribute, weight), and what is derived from them.

    `listed[k]` tells whether node k is all ones and stands in `lists`, the nodes of each attribute. Under
    individual bandwidths `scales` holds each node's r and `bases` its sum against an instance of zeros;
    else they are empty.
    """

    weights: Ragged
    lists: Ragged
    listed: NDArray[np.bool_]
    scales: NDArray[np.float64]
    bases: NDArray[np.int64]


@compiled
def nonzeros(x: np.ndarray) -> np.ndarray:
    """Return the attributes in which a dense row is not zero."""
    found = np.empty(x.shape[0], np.int32)
    n = 0
    for i in range(x.shape[0]):
        if x[i] != 0.0:
            found[n] = i
            n += 1
    return found[:n]


@compiled
def all_ones(x: np.ndarray, own: np.ndarray) -> bool:
    """Whether every non-zero of a row is 1."""
    for i in own:  # noqa: SIM110 - Numba compiles no generators
        if x[i] != 1.0:
            return False
    return True


@compiled
def list_node(nodes: SparseNodes, node: int) -> None:
    """Enter a node into the lists of its attributes if it is all ones."""
    start, length = nodes.weights.start[node], nodes.weights.length[node]
    nodes.listed[node] = True
    for place in range(start, start + length):
        if nodes.weights.values[place] != 1.0:
            nodes.listed[node] = False
            return
    for place in range(start, start + length):
        append(nodes.lists, nodes.weights.keys[place], node, 0.0)


@compiled
def refresh_base(nodes: SparseNodes, node: int) -> None:
    """Compute a node's sum against an instance of zeros under its own bandwidths."""
    total = 0
    start = nodes.weights.start[node]
    for place in range(start, start + nodes.weights.length[node]):
        total += root_dissimilarity(nodes.weights.values[place], nodes.scales[node, nodes.weights.keys[place]])
    nodes.bases[node] = total


@compiled
def nearest_common_sparse(
    x: np.ndarray,
    own: np.ndarray,
    nodes: SparseNodes,
    n_nodes: int,
    r: float,
    found: np.ndarray,
    sums: np.ndarray,
) -> int:
    """List the nearest nodes under a common bandwidth; return how many there are."""
    alone = np.zeros(x.shape[0], np.int64)
    base = 0
    for i in own:
        alone[i] = dissimilarity(x[i], r)
        base += alone[i]
    binary = all_ones(x, own)
    overlaps = np.zeros(n_nodes if binary else 0, np.int32)
    if binary:
        _count_overlaps(own, nodes.lists, overlaps)
    one = dissimilarity(1.0, r)
    length = 0
    for k in range(n_nodes):
        if binary and nodes.listed[k]:
            total = one * (own.shape[0] + nodes.weights.length[k] - 2 * overlaps[k])
        else:
            total = base + _common_correction(x, alone, nodes.weights, k, r)
        length = insert(found, sums, length, k, total)
    return length


@compiled
def _count_overlaps(own: np.ndarray, lists: Ragged, overlaps: np.ndarray) -> None:
    """Count for every listed node the attributes that it shares with an instance."""
    keep_apart()
    for i in own:
        start = lists.start[i]
        for place in range(start, start + lists.length[i]):
            overlaps[np.uint32(lists.keys[place])] += 1  # unsigned: Numba then asks for no negative index


@compiled
def _common_correction(x: np.ndarray, alone: np.ndarray, weights: Ragged, node: int, r: float) -> int:
    """Return what a node's own non-zeros change in the sum of an instance against zeros."""
    keep_apart()
    start = weights.start[node]
    length = weights.length[node]
    keys = weights.keys[start : start + length]
    values = weights.values[start : start + length]
    total = 0
    for place in range(length):
        i = np.uint32(keys[place])  # unsigned: Numba then asks for no negative index
        total += dissimilarity(x[i] - values[place], r) - alone[i]
    return total


@compiled
def nearest_individual_sparse(
    x: np.ndarray, own: np.ndarray, nodes: SparseNodes, n_nodes: int, found: np.ndarray, sums: np.ndarray
) -> int:
    """List the nearest nodes under each node's own bandwidths; return how many there are."""
    length = 0
    for k in range(n_nodes):
        total = nodes.bases[k]
        scales = nodes.scales[k]
        for i in own:
            total += root_dissimilarity(x[i], scales[i])
        start = nodes.weights.start[k]
        for place in range(start, start + nodes.weights.length[k]):
            i = nodes.weights.keys[place]
            if x[i] != 0.0:
                y = nodes.weights.values[place]
                total += root_dissimilarity(x[i] - y, scales[i])
                total -= root_dissimilarity(y, scales[i]) + root_dissimilarity(x[i], scales[i])
        length = insert(found, sums, length, k, total)
    return length


@compiled
def nearest_clustered_sparse(
    x: np.ndarray,
    own: np.ndarray,
    nodes: SparseNodes,
    n_nodes: int,
    grouping: Grouping,
    found: np.ndarray,
    sums: np.ndarray,
) -> int:
    """List the nearest nodes under one bandwidth a group of attributes; return how many there are."""
    n_groups = grouping.size[0]
    members, scales = grouping.members, grouping.scales
    alone = np.zeros(x.shape[0], np.int64)
    bases = np.zeros(n_groups, np.int64)
    for i in own:
        alone[i] = dissimilarity(x[i], scales[members[i]])
        bases[members[i]] += alone[i]
    group_sums = np.empty(n_groups, np.int64)
    length = 0
    for k in range(n_nodes):
        group_sums[:] = bases
        start = nodes.weights.start[k]
        for place in range(start, start + nodes.weights.length[k]):
            i = nodes.weights.keys[place]
            j = members[i]
            group_sums[j] += dissimilarity(x[i] - nodes.weights.values[place], scales[j]) - alone[i]
        total = 0
        first = 0
        for j in range(n_groups):
            total += group_root(group_sums[j], grouping.ends[j] - first)
            first = grouping.ends[j]
        length = insert(found, sums, length, k, total)
    return length


@compiled
def move_sparse(nodes: SparseNodes, node: int, target: np.ndarray, step: float) -> None:
    """Move a node towards a dense target: y += (target - y) / step, entry by entry as in a dense row."""
    weights = nodes.weights
    visited = np.zeros(target.shape[0], np.bool_)
    start = weights.start[node]
    kept = start
    for place in range(start, start + weights.length[node]):
        i = weights.keys[place]
        visited[i] = True
        moved = weights.values[place] + (target[i] - weights.values[place]) / step
        if moved != 0.0:
            weights.keys[kept] = i
            weights.values[kept] = moved
            kept += 1
    weights.length[node] = kept - start
    for i in nonzeros(target):
        moved = (target[i] - 0.0) / step
        if not visited[i] and moved != 0.0:
            append(weights, node, i, moved)
    nodes.listed[node] = False
    if nodes.scales.shape[1] > 0:
        refresh_base(nodes, node)

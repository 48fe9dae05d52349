"""Similarity of one instance to sparse nodes, at the cost of their non-zeros.

An attribute where instance and node are equal adds nothing, so only entries where either is non-zero matter.
Terms are integers, so a sum may be put together from parts that are added and taken away again without
losing a bit: the sum over the instance's own non-zeros, as if the node were zero, is made once; each
node then corrects it at its own non-zeros.

Binary data cost less still. Where instance and node hold nothing but ones, the sum is the
kernel's one value times the number of attributes in which they differ, and how many they share is counted for
all nodes together (see overlaps). A node that has moved is computed directly. On Bibtex (1,836 attributes, 69 a row)
learning is 27 times as fast as on dense rows (mlca bench).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled, keep_apart
from mlca.learner.kernels.fixedpoint import dissimilarity, group_root, root_dissimilarity
from mlca.learner.kernels.nearest import NO_LIMIT, Search, offer
from mlca.learner.kernels.overlaps import Owners, count_overlaps, enter, withdraw
from mlca.learner.kernels.ragged import Ragged, append


class SparseNodes(NamedTuple):
    """Non-zero weights of nodes (attribute, weight), and what is derived from them.

    `listed[k]` tells whether node k is all ones and stands among the `owners` of its attributes. Under
    individual bandwidths `scales` holds each node's r and `bases` its sum against an instance of zeros;
    else they are empty.
    """

    weights: Ragged
    owners: Owners
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
    """Enter the next node among the owners of its attributes if it is all ones, else as one that has none."""
    start, values = nodes.weights.start[node], nodes.weights.values
    all_one = True
    for place in range(start, start + nodes.weights.length[node]):
        all_one = all_one and values[place] == 1.0
    nodes.listed[node] = all_one
    enter(nodes.owners, _listed_attributes(nodes, node), node)


@compiled
def forget_sparse(nodes: SparseNodes, first: int, end: int) -> None:
    """Unmake the youngest nodes, from `first` on; none has moved since the oldest of them was made."""
    for node in range(end - 1, first - 1, -1):
        withdraw(nodes.owners, _listed_attributes(nodes, node), node)
        nodes.weights.used[0] = nodes.weights.start[node]
        nodes.weights.length[node] = 0


@compiled
def _listed_attributes(nodes: SparseNodes, node: int) -> np.ndarray:
    start = nodes.weights.start[node]
    length = nodes.weights.length[node] if nodes.listed[node] else 0
    return nodes.weights.keys[start : start + length]


@compiled
def refresh_base(nodes: SparseNodes, node: int) -> None:
    """Compute a node's sum against an instance of zeros under its own bandwidths."""
    total = 0
    start = nodes.weights.start[node]
    for place in range(start, start + nodes.weights.length[node]):
        total += root_dissimilarity(nodes.weights.values[place], nodes.scales[node, nodes.weights.keys[place]])
    nodes.bases[node] = total


@compiled
def nearest_common_sparse(j: int, x: np.ndarray, own: np.ndarray, nodes: SparseNodes, search: Search) -> None:
    """List the nearest nodes of row j under a common bandwidth."""
    n_nodes, r = search.n_nodes[j], search.r[j]
    alone = np.zeros(x.shape[0], np.int64)
    base = 0
    for i in own:
        alone[i] = dissimilarity(x[i], r)
        base += alone[i]
    totals = np.empty(n_nodes, np.int64)
    binary = all_ones(x, own)
    if binary:
        _fill_in_overlaps(own, nodes, dissimilarity(1.0, r), totals)
    for k in range(n_nodes):
        if not (binary and nodes.listed[k]):
            totals[k] = base + _common_correction(x, alone, nodes.weights, k, r)
    limit = NO_LIMIT
    for k in range(n_nodes):
        if totals[k] < limit:
            limit = offer(search, j, k, totals[k])


@compiled
def _fill_in_overlaps(own: np.ndarray, nodes: SparseNodes, one: int, totals: np.ndarray) -> None:
    """Fill in the sums with the nodes that are all ones: `one` for each attribute that only one of the two has."""
    keep_apart()
    overlaps, lengths = count_overlaps(own, nodes.owners, totals.shape[0]), nodes.weights.length
    for k in range(totals.shape[0]):
        totals[k] = one * (own.shape[0] + lengths[k] - 2 * overlaps[k])


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
def nearest_individual_sparse(j: int, x: np.ndarray, own: np.ndarray, nodes: SparseNodes, search: Search) -> None:
    """List the nearest nodes of row j under each node's own bandwidths."""
    limit = NO_LIMIT
    for k in range(search.n_nodes[j]):
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
        if total < limit:
            limit = offer(search, j, k, total)


@compiled
def nearest_clustered_sparse(x: np.ndarray, own: np.ndarray, nodes: SparseNodes, search: Search) -> None:
    """List the nearest nodes of the one row under one bandwidth a group of attributes."""
    grouping, n_groups = search.grouping, search.grouping.size[0]
    members, scales = grouping.members, grouping.scales
    alone = np.zeros(x.shape[0], np.int64)
    bases = np.zeros(n_groups, np.int64)
    for i in own:
        alone[i] = dissimilarity(x[i], scales[members[i]])
        bases[members[i]] += alone[i]
    group_sums = np.empty(n_groups, np.int64)
    limit = NO_LIMIT
    for k in range(search.n_nodes[0]):
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
        if total < limit:
            limit = offer(search, 0, k, total)


@compiled
def move_sparse(nodes: SparseNodes, node: int, target: np.ndarray, step: float) -> None:
    """Move a node towards a dense target: y += (target - y) / step, entry by entry as in a dense row."""
    weights = nodes.weights
    visited = np.zeros(target.shape[0], np.bool_)
    start = weights.start[node]
    kept = start
    same = True
    for place in range(start, start + weights.length[node]):
        i, before = weights.keys[place], weights.values[place]
        visited[i] = True
        moved = before + (target[i] - before) / step
        same = same and moved == before
        if moved != 0.0:
            weights.keys[kept] = i
            weights.values[kept] = moved
            kept += 1
    weights.length[node] = kept - start
    for i in nonzeros(target):
        moved = (target[i] - 0.0) / step
        if not visited[i] and moved != 0.0:
            append(weights, node, i, moved)
            same = False
    if same:  # the target was the node itself, as it often is where rows are binary
        return
    nodes.listed[node] = False
    if nodes.scales.shape[1] > 0:
        refresh_base(nodes, node)

"""The N nearest nodes: a short list in order, nearest first, the older of two equals first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.groups import Grouping, empty_grouping

# Instances that are compared with the nodes together. More of them are more to throw away in foresee.
TOGETHER = 8
NO_LIMIT = 2**62


class Search(NamedTuple):
    """A search for the nearest nodes of a few instances, one entry each, and what it has found.

    `n_nodes` says how many nodes an instance is compared with, ascending; `r` is its common bandwidth as a factor.
    Where attributes are grouped, by `grouping`, there is one instance only. `found` and `sums` list the nearest nodes
    so far, `lengths` how many they are.
    """

    n_nodes: NDArray[np.int64]
    r: NDArray[np.float64]
    grouping: Grouping
    found: NDArray[np.int64]
    sums: NDArray[np.int64]
    lengths: NDArray[np.int64]


@compiled
def empty_search(n_rows: int, n_attributes: int, n_neighbors: int) -> Search:
    """Make room for a search."""
    return Search(
        np.zeros(n_rows, np.int64),
        np.zeros(n_rows),
        empty_grouping(n_attributes),
        np.empty((n_rows, n_neighbors), np.int64),
        np.empty((n_rows, n_neighbors), np.int64),
        np.zeros(n_rows, np.int64),
    )


@compiled
def offer(search: Search, row: int, node: int, total: int) -> int:
    """Offer a node to the list of a row's nearest; return the sum that the next must be below to enter it.

    Nodes must be offered in the order of their age: a newcomer goes behind its equals.
    """
    nodes, sums, length = search.found, search.sums, search.lengths[row]
    if length == nodes.shape[1]:
        if total >= sums[row, length - 1]:
            return sums[row, length - 1]
        length -= 1
    place = length
    while place > 0 and sums[row, place - 1] > total:
        nodes[row, place] = nodes[row, place - 1]
        sums[row, place] = sums[row, place - 1]
        place -= 1
    nodes[row, place] = node
    sums[row, place] = total
    search.lengths[row] = length + 1
    return sums[row, length] if length + 1 == nodes.shape[1] else NO_LIMIT


@compiled
def nth_largest(values: np.ndarray, count: int, best: np.ndarray) -> float:
    """Return the n-th largest of the first `count` values, or the smallest; `best` has room for n of them."""
    n = best.shape[0]
    length = 0
    for k in range(count):
        value = values[k]
        if length == n:
            if value <= best[n - 1]:
                continue
            length -= 1
        place = length
        while place > 0 and best[place - 1] < value:
            best[place] = best[place - 1]
            place -= 1
        best[place] = value
        length += 1
    return best[length - 1]

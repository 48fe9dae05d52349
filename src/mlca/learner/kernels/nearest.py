"""The N nearest nodes: a short list in order, nearest first, the older of two equals first."""

from __future__ import annotations

import numpy as np

from mlca.compiled import compiled


@compiled
def insert(nodes: np.ndarray, sums: np.ndarray, length: int, node: int, total: int) -> int:
    """Offer a node to the list of the nearest and return the list's length.

    Nodes must be offered in the order of their age: a newcomer goes behind its equals.
    """
    if length == nodes.shape[0]:
        if total >= sums[length - 1]:
            return length
        length -= 1
    place = length
    while place > 0 and sums[place - 1] > total:
        nodes[place] = nodes[place - 1]
        sums[place] = sums[place - 1]
        place -= 1
    nodes[place] = node
    sums[place] = total
    return length + 1


@compiled
def nth_largest(values: np.ndarray, count: int, n: int, best: np.ndarray) -> float:
    """Return the n-th largest of the first `count` values; `best` has room for n of them."""
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

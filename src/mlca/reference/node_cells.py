"""Cells: groups of similar nodes, of which a search visits only the nearest.

A row has a *place* with one coordinate per feature: its rank minus the middle rank, times the square root of the
feature's share of the total weight, rounded to a whole number. For similar rows, the squared distance between their
places is nearly proportional to the learned distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlca.options import CellLimits
from mlca.reference.arithmetic import Floats, Integers, rounded, splitmix64
from mlca.reference.paper import Node
from mlca.reference.similarity import LearnedSimilarity

REACH = 2048  # distance of a place from the origin if all its ranks are the lowest or the highest
ROUNDS = 4  # number of rounds of k-means
PER_CENTRE = 32  # number of sampled nodes per centre
MOST_FEATURES = 2**14  # with more features, places would be too coarse


class NodeCells:
    """The centres of a set of nodes, and the cell of each node."""

    def __init__(self, nodes: Sequence[Node], similarity: LearnedSimilarity, limits: CellLimits) -> None:
        self.similarity, self.limits = similarity, limits
        shares = similarity.weights / int(similarity.weights.sum())
        self.factors = np.where(similarity.nominal, 0.0, np.sqrt(shares) * (REACH / similarity.one))
        places, n_cells = self.places(np.array([node.y for node in nodes])), math.isqrt(len(nodes))
        self.centres = _drawn(places, n_cells)
        sample = _drawn(places, min(len(nodes), PER_CENTRE * n_cells))
        for _ in range(ROUNDS):
            nearest = self.by_distance(sample)[:, 0]
            for c in np.unique(nearest):
                own = sample[nearest == c]
                self.centres[c] = [rounded(total, len(own)) for total in own.sum(axis=0).tolist()]
        first = self.by_distance(places)[:, 0].tolist()
        self.cells = {node.node_id: cell for node, cell in zip(nodes, first, strict=True)}

    def places(self, X: Floats) -> Integers:
        """Return the places of rows; coordinates of missing values and of categories are 0."""
        one, known = self.similarity.one, ~np.isnan(X)
        ranks = self.similarity.ranks.from_lowest(np.where(known, X, 0.0))
        from_middle = np.clip(ranks - 0.5 * one, -one, one)
        places: Integers = np.rint(from_middle * self.factors * known).astype(np.int64)
        return places

    def by_distance(self, places: Integers) -> Integers:
        """Return, for each place, all cells in order of the distance to their centres."""
        scores = (self.centres * self.centres).sum(axis=1) - 2 * places @ self.centres.T
        return np.argsort(scores, axis=1, kind="stable")

    def join(self, node: Node) -> None:
        """Add a new node to the cell with the nearest centre, until centres are recomputed."""
        self.cells[node.node_id] = int(self.by_distance(self.places(node.y[None]))[0, 0])

    def visited(self, x: Floats, nodes: Sequence[Node]) -> list[int]:
        """Return the nodes of the nearest cells, adding cells until there are enough nodes."""
        wanted = max(self.limits.least, math.isqrt(self.limits.per_root**2 * len(nodes)))
        cells, found = np.array([self.cells[node.node_id] for node in nodes]), list[int]()
        for cell in self.by_distance(self.places(x[None]))[0]:
            if len(found) < wanted:
                found += np.flatnonzero(cells == cell).tolist()
        return found


def _drawn(places: Integers, n: int) -> Integers:
    """Return one pseudo-random place from each of n equal parts of `places`."""
    bounds = [i * len(places) // n for i in range(n + 1)]
    return places[[low + splitmix64(i) % (bounds[i + 1] - low) for i, low in enumerate(bounds[:-1])]]

"""Cells: groups of similar nodes; a search visits only the nearest groups (`search="cells"`).

All numbers are whole. A row's place has one coordinate per feature: its rank minus the middle rank, times the square
root of the feature's share of the weight. For similar rows, squared distances of places are then nearly proportional to
the learned distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlca.options import CellLimits
from mlca.reference.arithmetic import Floats, Integers, rounded, splitmix64
from mlca.reference.paper import Node
from mlca.reference.similarity import LearnedSimilarity

REACH = 2048  # the length of a place whose ranks are all as far from the middle as ranks can be
ROUNDS = 4  # of k-means
PER_CENTRE = 32  # number of sampled nodes per centre
MOST_FEATURES = 2**14  # with more features, places would be too coarse


class NodeCells:
    """The centres of a set of nodes, and the cell of each node."""

    def __init__(self, nodes: Sequence[Node], similarity: LearnedSimilarity, limits: CellLimits) -> None:
        self.similarity, self.limits = similarity, limits
        shares = similarity.weights / int(similarity.weights.sum())
        self.factors = np.sqrt(shares) * (REACH / similarity.one)
        self.factors[similarity.nominal] = 0.0
        places, n_cells = np.array([self.place(node.y) for node in nodes]), math.isqrt(len(nodes))
        self.centres = _drawn(places, n_cells)
        sample = _drawn(places, min(len(nodes), PER_CENTRE * n_cells))
        for _ in range(ROUNDS):
            nearest = np.array([self.by_distance(place)[0] for place in sample])
            for c in range(n_cells):
                own = sample[nearest == c]
                if len(own):
                    self.centres[c] = [rounded(total, len(own)) for total in own.sum(axis=0).tolist()]
        self.cells = {node.node_id: self.by_distance(place)[0] for node, place in zip(nodes, places, strict=True)}

    def place(self, x: Floats) -> Integers:
        """Return the place of a row. A missing value counts as the middle rank; categories are left out."""
        one, known = self.similarity.one, ~np.isnan(x)
        ranks = [rank.from_lowest(v) for rank, v in zip(self.similarity.ranks, np.where(known, x, 0.0), strict=True)]
        from_middle = np.clip(np.array(ranks) - 0.5 * one, -one, one)
        place: Integers = np.rint(from_middle * self.factors * known).astype(np.int64)
        return place

    def by_distance(self, place: Integers) -> list[int]:
        """Return the cells, sorted by the distance of their centres."""
        scores = (self.centres * self.centres).sum(axis=1) - 2 * self.centres @ place
        order: list[int] = np.argsort(scores, kind="stable").tolist()
        return order

    def join(self, node: Node) -> None:
        """Add a new node to the cell with the nearest centre, where it stays until centres are recomputed."""
        self.cells[node.node_id] = self.by_distance(self.place(node.y))[0]

    def visited(self, x: Floats, nodes: Sequence[Node]) -> list[int]:
        """Return the nodes of the nearest cells that together hold enough of them."""
        wanted, found = max(self.limits.least, math.isqrt(self.limits.per_root**2 * len(nodes))), list[int]()
        members: dict[int, list[int]] = {}
        for k, node in enumerate(nodes):
            members.setdefault(self.cells[node.node_id], []).append(k)
        for cell in self.by_distance(self.place(x)):
            if len(found) >= wanted:
                break
            found += members.get(cell, [])
        return found


def _drawn(places: Integers, n: int) -> Integers:
    """Return n of the places: one of each part of an equal division, drawn by the part's number."""
    bounds = [i * len(places) // n for i in range(n + 1)]
    return places[[low + splitmix64(i) % (bounds[i + 1] - low) for i, low in enumerate(bounds[:-1])]]

"""Votes, calibration and background score, and the choice of the label set.

Before a row is learned, the model predicts it. Votes are calibrated by how often labels with the same share of the
votes were true. Sums over labels and rows are sums of whole numbers, which do not depend on the order. Sums over voters
start with the nearest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from mlca.reference.arithmetic import Floats, exp_of_minus, odds
from mlca.reference.paper import NONE, Distances, Memory, Node
from mlca.reference.similarity import LearnedSimilarity

BySlot: TypeAlias = dict[int, float]  # the share of the votes, or the probability, of each slot

FEWEST_VOTERS, FEWEST_ROWS, MOST_VOTERS = 10, 50, 100
CELLS = 10  # shares are calibrated at 0, 0.1, ..., 1
PER_COUNT = 2**20  # a row is split between two neighbouring cells in units of 2^-20: 2^40 rows fit into 60 bits
PRIOR_ROWS = 3.0  # weight in each cell, as a number of rows, of the prior that the probability equals the share
NOVELTY_BINS = 64


class LocatedRow(NamedTuple):
    """A row, its distances from the nodes, and the similarity in use."""

    x: Floats
    found: Distances
    similarity: LearnedSimilarity | None


def voters(found: Distances, near: Sequence[int], nodes: Sequence[Node]) -> list[tuple[Node, float]]:
    """Return the voters and their weights.

    The voters are the nearest nodes, at least 10 and as many as stand for 50 rows, plus ties, but at most 100.
    """
    k = rows = 0
    most = min(len(near), MOST_VOTERS)
    while k < most and (k < FEWEST_VOTERS or rows < FEWEST_ROWS):
        rows += nodes[near[k]].alpha
        k += 1
    if k == 0:
        return []
    last = found.tied(found.keys[near[k - 1]])
    while k < most and found.keys[near[k]] <= last:
        k += 1
    # A node at the distance d has the weight ((E - d) / (E - d1))^2, which is 1 for the nearest node, at d1, and 0 for
    # the first node that does not vote, at E. If all nodes vote, E is the last node's distance, and 0.001 is added.
    nearest, (end, extra) = found.keys[near[0]], (near[k], 0.0) if k < len(near) else (near[-1], 0.001)
    if found.keys[end] <= found.tied(nearest):
        return [(nodes[node], 1.0) for node in near[:k]]
    d1, E = found.of(nearest), found.of(found.keys[end])
    quotients = ((node, (E - found.of(found.keys[node])) / (E - d1)) for node in near[:k])
    return [(nodes[node], q * q + extra) for node, q in quotients]


class Votes(NamedTuple):
    """Each slot's share of the votes, or its frequency if the row is far from all nodes."""

    shares: BySlot
    far: bool


def votes_of(
    found: Distances,
    memory: Memory,
    among: Iterable[int] | None = None,
    ballots: Mapping[int, tuple[float, Mapping[int, float]]] | None = None,
) -> Votes:
    """Return the votes of the nodes in `among` (default: all), from label counts or `ballots`."""
    near = found.nearest(among)
    if near and found.keys[near[0]] >= found.far:
        return Votes({slot: total / memory.n for slot, total in memory.totals.items()}, far=True)
    shares: BySlot = {}
    together = 0.0
    for node, weight in voters(found, near, memory.nodes):
        count, labels = (node.alpha, node.beta) if ballots is None else ballots[node.node_id]
        together += weight
        for slot, rows in labels.items():
            shares[slot] = shares.get(slot, 0.0) + weight * rows / count
    return Votes({slot: min(share / together, 1.0) for slot, share in shares.items()}, far=False)


def background(row: LocatedRow, memory: Memory, slots: Iterable[int]) -> BySlot | None:
    """Return each slot's probability from linear score and frequency; None if no score exists."""
    if row.similarity is None or row.similarity.background is None:
        return None
    scores, (ranks, known), slots = row.similarity.background, row.similarity.in_traits(row.x), list(slots)
    z = np.array([scores[k].score(ranks, known) / scores[k].deviation if k in scores else 0.0 for k in slots])
    result = {}
    for slot, is_up, e in zip(slots, (z >= 0).tolist(), exp_of_minus(np.abs(z)).tolist(), strict=True):
        o = odds(memory.frequency(slot))  # the odds are multiplied by exp(z)
        result[slot] = o / (o + e) if is_up else o * e / (1.0 + o * e)
    return result


def blended(p: float, slot: int, of_background: BySlot | None) -> float:
    """Blend a tenth of the background into a probability, to rank labels without votes."""
    return p if of_background is None else 0.9 * p + 0.1 * of_background[slot]


class Calibration:
    """Observed label frequencies by share of the votes.

    A label that has not occurred yet counts as absent, with a share of 0, in all earlier rows.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.cells: dict[int, tuple[list[int], list[int]]] = {}  # by slot: rows per cell, and rows with the label

    def of(self, slot: int) -> tuple[list[int], list[int]]:
        """Return the counts per cell, in units of 2^-20 rows: all rows, and those with the label."""
        nothing = [0] * CELLS
        return self.cells.get(slot, ([self.rows * PER_COUNT, *nothing], [0, *nothing]))

    @staticmethod
    def place(share: float) -> tuple[int, float]:
        """Return the cell at or below a share, and the fraction of the way to the next cell."""
        cell = min(int(share * CELLS), CELLS - 1)
        return cell, share * CELLS - cell

    def probability(self, slot: int, share: float) -> float:
        """Return the mean of the share S and cal(S), the label frequency observed at S."""
        cell, f = self.place(share)
        total, present = self.of(slot)
        low, high = (
            (present[i] / PER_COUNT + PRIOR_ROWS / CELLS * i) / (total[i] / PER_COUNT + PRIOR_ROWS)
            for i in (cell, cell + 1)
        )
        return 0.5 * share + 0.5 * ((1.0 - f) * low + f * high)

    def probabilities(self, votes: Votes, of_background: BySlot | None, slots: Iterable[int]) -> BySlot:
        """Return p0 = 0.9 (S + cal(S)) / 2 + 0.1 background per slot; frequencies if far."""
        shares = {slot: votes.shares.get(slot, 0.0) for slot in slots}
        if votes.far:
            return shares
        return {slot: blended(self.probability(slot, share), slot, of_background) for slot, share in shares.items()}

    def learn(self, shares: BySlot, own: Collection[int]) -> None:
        """Count a row, given the slots' shares of the votes and the row's slots `own`."""
        self.cells.update({slot: self.of(slot) for slot in {**shares, **dict.fromkeys(own)}})
        self.rows += 1
        for slot, (total, present) in self.cells.items():
            cell, f = self.place(shares.get(slot, 0.0))
            upper = round(f * PER_COUNT)
            for i, part in ((cell, PER_COUNT - upper), (cell + 1, upper)):
                total[i] += part
                present[i] += part if slot in own else 0


class Novelty:
    """A histogram of each row's distance to its nearest node before the row was learned."""

    def __init__(self) -> None:
        self.rows = [0] * NOVELTY_BINS

    def learn(self, distance: float) -> None:
        """Count a row at its distance to the nearest node."""
        self.rows[min(int(NOVELTY_BINS * distance), NOVELTY_BINS - 1)] += 1

    def of(self, distance: float) -> float:
        """Return the share of rows with a smaller distance, interpolated linearly in a bin."""
        if sum(self.rows) == 0:
            return 1.0 if distance > 0 else 0.0
        x = NOVELTY_BINS * distance
        place = min(int(x), NOVELTY_BINS - 1)
        return (sum(self.rows[:place]) + (x - place) * self.rows[place]) / sum(self.rows)


def chosen(p: BySlot, arrived: Sequence[int], threshold: float, margin: float) -> set[int]:
    """Return the labels above a threshold, or else the likeliest if it beats "no label"."""
    likely = {slot for slot in arrived if p[slot] > threshold}
    if likely or not arrived:
        return likely
    best = max(arrived, key=lambda slot: p[slot])  # ties: the label that arrived first
    return {best} if p[best] > (margin * p[NONE] if p[NONE] > 0.0 else 0.0) else set()

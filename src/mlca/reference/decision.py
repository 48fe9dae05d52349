"""The calibrated decision: from the nearest nodes to probabilities, and from probabilities to a label set.

Before a row is learned, the model predicts it. The decision is calibrated by how often such predictions were correct.
Sums over labels and over rows are of whole numbers, and sums over voters are taken nearest first, so every order of
summation is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from mlca.reference.arithmetic import Floats, clipped, exp_of_minus, ln, odds, power_of_half, sum_in_order
from mlca.reference.paper import NONE, Distances, Memory, Node
from mlca.reference.similarity import LearnedSimilarity

# Slot -> a number: shares of the votes, or probabilities.
BySlot: TypeAlias = dict[int, float]
# Returns the votes of a node: its number of rows, and slot -> rows.
Ballot: TypeAlias = Callable[[Node], tuple[float, Mapping[int, float]]]

FEWEST_VOTERS, FEWEST_ROWS, MOST_VOTERS = 10, 50, 100
CELLS = 10  # shares are calibrated at 0, 0.1, ..., 1
PER_COUNT = 2**20  # a row counts for two neighbouring cells, in parts of 2^-20: n * 2^20 <= 2^60
PRIOR_ROWS = 3.0  # number of prior rows per cell, in which labels were as frequent as voted
PER_NAT = 2**32  # log-likelihoods are whole numbers of 2^-32: at most 7 * 2^32 per label, for 2^28 labels
HALF_LIVES = (1, 4, 16, 64)  # of the recent label counts, in rows
PERSISTENT_FROM = 256  # counted rows from which persistence replaces the shortest half-life
NOVELTY_BINS = 64
SEGMENT, MOST_SEGMENTS = 64, 16  # drift: nodes of a segment of the past, and how many segments are kept
SPEED = 0.1  # drift: step of the trust towards its new value
LATEST = 512  # drift: nodes whose label counts fade
TRUSTED = 0.7  # drift: the share of the largest trust that a segment needs to vote
FADING = 0.8


# ------------------------------------------------------------------ voters and their shares


def voters(found: Distances, near: Sequence[int], nodes: Sequence[Node]) -> list[tuple[Node, float]]:
    """Return the voting nodes and their weights: the 10 nearest, more until they stand for 50 rows, and ties."""
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
    # Weights fall with the distance and reach 0 at the first node that does not vote, or 0.001 at the last voter.
    nearest, (end, extra) = found.keys[near[0]], (near[k], 0.0) if k < len(near) else (near[-1], 0.001)
    if found.keys[end] <= found.tied(nearest):
        return [(nodes[node], 1.0) for node in near[:k]]
    first, beyond = found.of(nearest), found.of(found.keys[end])
    quotients = ((node, (beyond - found.of(found.keys[node])) / (beyond - first)) for node in near[:k])
    return [(nodes[node], q * q + extra) for node, q in quotients]


def all_rows(node: Node) -> tuple[float, Mapping[int, float]]:
    """Return the votes of a node, which are all rows that it stands for."""
    return node.alpha, node.beta


def shares_of(
    found: Distances, memory: Memory, among: Iterable[int] | None = None, ballot: Ballot = all_rows
) -> tuple[BySlot, bool]:
    """Return slot -> share of the votes, and whether the row is far from every node: then shares are frequencies."""
    near = found.nearest(among)
    if near and found.keys[near[0]] >= found.far:
        return {slot: total / memory.n for slot, total in memory.totals.items()}, True
    shares: BySlot = {}
    together = 0.0
    for node, weight in voters(found, near, memory.nodes):
        count, labels = ballot(node)
        together += weight
        for slot, rows in labels.items():
            shares[slot] = shares.get(slot, 0.0) + weight * rows / count
    return {slot: min(share / together, 1.0) for slot, share in shares.items()}, False


# ------------------------------------------------------------------ from shares to probabilities


class Calibration:
    """How often labels with a given share of the votes were present. An unseen label counts as absent in cell 0."""

    def __init__(self) -> None:
        self.rows = 0
        self.cells: dict[int, tuple[list[int], list[int]]] = {}  # slot -> rows in each cell, rows with the label

    def of(self, slot: int) -> tuple[list[int], list[int]]:
        """Return the counts of a label's cells in parts of a row."""
        nothing = [0] * CELLS
        return self.cells.get(slot, ([self.rows * PER_COUNT, *nothing], [0, *nothing]))

    @staticmethod
    def place(share: float) -> tuple[int, float]:
        """Return the cell below a share, and the fraction of the way to the next cell."""
        cell = min(int(share * CELLS), CELLS - 1)
        return cell, share * CELLS - cell

    def probability(self, slot: int, share: float) -> float:
        """Return the mean of the share and of the observed frequency of such shares."""
        cell, f = self.place(share)
        total, present = self.of(slot)
        low, high = (
            (present[i] / PER_COUNT + PRIOR_ROWS / CELLS * i) / (total[i] / PER_COUNT + PRIOR_ROWS)
            for i in (cell, cell + 1)
        )
        return 0.5 * share + 0.5 * ((1.0 - f) * low + f * high)

    def learn(self, shares: BySlot, own: Collection[int]) -> None:
        """Count a row with these shares of the votes and the labels `own`."""
        self.cells.update({slot: self.of(slot) for slot in {**shares, **dict.fromkeys(own)}})
        self.rows += 1
        for slot, (total, present) in self.cells.items():
            cell, f = self.place(shares.get(slot, 0.0))
            upper = round(f * PER_COUNT)
            for i, part in ((cell, PER_COUNT - upper), (cell + 1, upper)):
                total[i] += part
                present[i] += part if slot in own else 0


def background(similarity: LearnedSimilarity | None, x: Floats, memory: Memory, slots: Iterable[int]) -> BySlot | None:
    """Return slot -> probability by the label's linear score and its frequency, or None if there is no score yet."""
    if similarity is None or similarity.background is None:
        return None
    of_traits, slots = similarity.in_traits(x), list(slots)
    scored = [similarity.background.get(slot) for slot in slots]
    z = np.array([0.0 if b is None else b.score(of_traits) / b.deviation for b in scored])
    small = exp_of_minus(np.abs(z)).tolist()
    result = {}
    for slot, up, e in zip(slots, (z >= 0).tolist(), small, strict=True):
        o = odds(frequency(memory, slot))  # the odds are multiplied by exp(z)
        result[slot] = o / (o + e) if up else o * e / (1.0 + o * e)
    return result


def blended(p: float, slot: int, of_background: BySlot | None) -> float:
    """Return a probability with a tenth of the background, which distinguishes labels that no voter has."""
    return p if of_background is None else 0.9 * p + 0.1 * of_background[slot]


def frequency(memory: Memory, slot: int) -> float:
    """Return the share of rows that had a label, with one row added for present and one for absent."""
    return (memory.totals.get(slot, 0) + 1) / (memory.n + 2)


def predicted(p: BySlot, arrived: Sequence[int]) -> set[int]:
    """Return the labels above 0.5; if there are none, the most likely, unless "no label" is at least as likely."""
    likely = {slot for slot in arrived if p[slot] > 0.5}
    if likely or not arrived:
        return likely
    best = max(arrived, key=lambda slot: p[slot])  # ties: the label that arrived first
    return {best} if p[best] > p[NONE] else set()


class Novelty:
    """A histogram of the distances of rows to their nearest node before they were learned."""

    def __init__(self) -> None:
        self.rows = [0] * NOVELTY_BINS

    def learn(self, distance: float) -> None:
        """Count a row."""
        self.rows[min(int(NOVELTY_BINS * distance), NOVELTY_BINS - 1)] += 1

    def of(self, distance: float) -> float:
        """Return the share of rows that were nearer; rows are assumed to be spread evenly within a bin."""
        if sum(self.rows) == 0:
            return 1.0 if distance > 0 else 0.0
        x = NOVELTY_BINS * distance
        place = min(int(x), NOVELTY_BINS - 1)
        return (sum(self.rows[:place]) + (x - place) * self.rows[place]) / sum(self.rows)


# ------------------------------------------------------------------ experts: recency and drift


class Experts:
    """A weighted mean of several experts' probabilities; experts that were right get more weight."""

    def __init__(self, n: int) -> None:
        self.log_weights = [ln(0.9)] + [ln(0.1 / (n - 1))] * (n - 1)

    def weights(self) -> list[float]:
        """Return the weights; each is at least 0.001 / n, so that it can increase again."""
        raw = exp_of_minus(max(self.log_weights) - np.array(self.log_weights)).tolist()
        together = sum_in_order(raw)
        return [0.999 * v / together + 0.001 / len(raw) for v in raw]

    def mix(self, opinions: Mapping[int, list[float]]) -> BySlot:
        """Return slot -> weighted mean of the experts' probabilities."""
        weights = self.weights()
        return {
            slot: sum_in_order(weight * p for weight, p in zip(weights, said, strict=True))
            for slot, said in opinions.items()
        }

    def learn(self, opinions: Mapping[int, list[float]], own: Collection[int]) -> None:
        """Update the weights by half of the log-likelihood of each expert's probabilities."""
        losses = [0] * len(self.log_weights)
        for slot, said in opinions.items():
            for e, p in enumerate(clipped(p, 1e-3) for p in said):
                losses[e] += round(ln(p if slot in own else 1.0 - p) * PER_NAT)
        weights = zip(self.weights(), losses, strict=True)
        self.log_weights = [ln(weight) + 0.5 * (loss / PER_NAT) for weight, loss in weights]


class Recency:
    """Counts of rows and labels that halve every 1, 4, 16 and 64 rows: one expert each."""

    def __init__(self) -> None:
        self.decay = power_of_half(1.0 / np.array(HALF_LIVES)).tolist()
        self.rows = [0.0] * len(HALF_LIVES)
        self.counts: dict[int, list[float]] = {}  # slot -> rows with the label

    def opinions(self, slot: int, p: float, prior: float) -> list[float]:
        """Return a probability, and the same adjusted to the label's recent frequencies."""
        result = [p]
        for count, rows in zip(self.counts.get(slot, [0.0] * len(HALF_LIVES)), self.rows, strict=True):
            o = odds(p) * odds((count + 0.5 * prior) / (rows + 0.5)) / odds(prior)
            result.append(o / (1.0 + o))
        return result

    def learn(self, own: Collection[int]) -> None:
        """Count a row."""
        self.rows = [v * decay + 1.0 for v, decay in zip(self.rows, self.decay, strict=True)]
        for slot in {**self.counts, **dict.fromkeys(own)}:
            old = self.counts.get(slot, [0.0] * len(HALF_LIVES))
            faded = (v * decay for v, decay in zip(old, self.decay, strict=True))
            self.counts[slot] = [(v if v >= 1e-30 else 0.0) + (slot in own) for v in faded]


class Persistence:
    """Counts of the rows that have a label, after a row with it and after a row without it."""

    def __init__(self) -> None:
        self.rows = 0  # rows whose row before is known
        # slot -> rows after a row with the label, those of them with it, and rows with it after a row without
        self.counts: dict[int, list[int]] = {}
        self.last: frozenset[int] = frozenset()

    def share(self, slot: int, prior: float) -> float:
        """Return the share of rows with a label among those whose row before agrees with the last row about it."""
        after, stayed, came = self.counts.get(slot, (0, 0, 0))
        present, rows = (stayed, after) if slot in self.last else (came, self.rows - after)
        return (present + prior) / (rows + 1.0)

    def learn(self, own: Collection[int]) -> None:
        """Count a row."""
        if self.last:
            self.rows += 1
            for slot in {*self.last, *own}:
                counts = self.counts.setdefault(slot, [0, 0, 0])
                counts[0] += slot in self.last
                if slot in own:
                    counts[1 if slot in self.last else 2] += 1
        self.last = frozenset(own)


class Segments:
    """Drift: runs of 64 consecutive nodes; trust measures how well their labels still agree with new rows."""

    def __init__(self, speed: float, most: float) -> None:
        self.speed, self.most = speed, most
        self.segments: list[list[Any]] = []  # [first node, number of merged segments, trust]

    def spans(self, memory: Memory) -> list[list[int]]:
        """Return the nodes of each segment: from its first node up to that of the next segment."""
        bounds = pairwise([*(first for first, _, _ in self.segments), memory.made])
        return [[k for k, node in enumerate(memory.nodes) if low <= node.node_id < high] for low, high in bounds]

    def trusted(self, memory: Memory) -> list[int]:
        """Return the nodes of the segments that are trusted."""
        least = TRUSTED * max((trust for _, _, trust in self.segments), default=0.0)
        spans = zip(self.spans(memory), self.segments, strict=True)
        return [k for span, (_, _, trust) in spans if trust >= least for k in span]

    def learn(self, found: Distances, own: Collection[int], memory: Memory) -> None:
        """Move each segment's trust towards the overlap of the row's labels with those of its nearest node."""
        for span, segment in zip(self.spans(memory), self.segments, strict=True):
            if span:
                node = memory.nodes[found.nearest(span)[0]]
                both = sum(node.beta.get(slot, 0) for slot in own) / node.alpha
                overlap = both / (sum(node.beta.values()) / node.alpha + len(own) - both)
                segment[2] += self.speed * (overlap - segment[2])

    def add_node(self, node: Node) -> None:
        """Start a segment at every 64th node; with too many, merge the two neighbours with the closest trust."""
        if node.node_id % SEGMENT:
            return
        self.segments.append([node.node_id, 1, self.segments[-1][2] if self.segments else 0.5])
        if len(self.segments) <= self.most:
            return
        trusts = [trust for _, _, trust in self.segments]
        i = min(range(len(trusts) - 2), key=lambda i: abs(trusts[i] - trusts[i + 1]))  # ties: the oldest pair
        (_, size, trust), (_, other_size, other_trust) = self.segments[i], self.segments.pop(i + 1)
        self.segments[i][1:] = size + other_size, (size * trust + other_size * other_trust) / (size + other_size)


class FadingCounts:
    """Drift: label counts of nodes that decay with every row that the node receives."""

    def __init__(self) -> None:
        self.counts: dict[int, tuple[float, dict[int, float]]] = {}  # id of a node -> its rows, slot -> rows

    @staticmethod
    def latest(memory: Memory) -> list[int]:
        """Return the latest nodes."""
        return [k for k, node in enumerate(memory.nodes) if node.node_id >= memory.made - LATEST]

    def ballot(self, node: Node) -> tuple[float, Mapping[int, float]]:
        """Return the votes of a node."""
        return self.counts[node.node_id]

    def learn(self, node: Node, own: Collection[int]) -> None:
        """Count a row at the node that stands for it."""
        count, labels = self.counts.get(node.node_id, (0.0, {}))
        faded = {slot: FADING * rows for slot, rows in labels.items()}
        self.counts[node.node_id] = FADING * count + 1.0, faded | {slot: faded.get(slot, 0.0) + 1.0 for slot in own}


# ------------------------------------------------------------------ the decision


class Calibrated:
    """Votes, calibration and background; with recency and drift there are several experts.

    Expert 0 uses all nodes; the experts of recency follow. Drift adds two: one uses the nodes of trusted segments, one
    the latest nodes, with label counts that decay. Each of the three has its own calibration.
    """

    def __init__(self, recency: bool, drift: bool) -> None:
        self.calibrations = [Calibration() for _ in range(3 if drift else 1)]
        self.novelty = Novelty()
        self.recency = Recency() if recency else None
        self.segments = Segments(SPEED, MOST_SEGMENTS) if drift else None
        self.fading = FadingCounts() if drift else None
        n_experts = len(self.calibrations) + (len(HALF_LIVES) if recency else 0)
        self.experts = Experts(n_experts) if n_experts > 1 else None

    def votes(self, found: Distances, memory: Memory) -> list[tuple[BySlot, bool]]:
        """Return the shares of the votes for each set of nodes."""
        votes = [shares_of(found, memory)]
        if self.segments and self.fading:
            votes.append(shares_of(found, memory, self.segments.trusted(memory)))
            votes.append(shares_of(found, memory, self.fading.latest(memory), self.fading.ballot))
        return votes

    def opinions(
        self, votes: Sequence[tuple[BySlot, bool]], memory: Memory, of_background: BySlot | None, slots: Iterable[int]
    ) -> dict[int, list[float]]:
        """Return slot -> probability by each expert."""
        result = {}
        for slot in slots:
            first, *others = (
                # A row that is far from every node gets the labels' frequencies.
                shares.get(slot, 0.0)
                if far
                else blended(calibration.probability(slot, shares.get(slot, 0.0)), slot, of_background)
                for calibration, (shares, far) in zip(self.calibrations, votes, strict=True)
            )
            recent = self.recency.opinions(slot, first, frequency(memory, slot)) if self.recency else [first]
            result[slot] = [*recent, *others]
        return result

    def probabilities(
        self, x: Floats, found: Distances, memory: Memory, similarity: LearnedSimilarity | None
    ) -> BySlot:
        """Return slot -> probability of "no label" and of every label that some row has had."""
        slots = {NONE: 0, **memory.totals}
        of_background = background(similarity, x, memory, slots)
        opinions = self.opinions(self.votes(found, memory), memory, of_background, slots)
        return self.experts.mix(opinions) if self.experts else {slot: said[0] for slot, said in opinions.items()}

    def learn(
        self, x: Floats, own: Collection[int], found: Distances, memory: Memory, similarity: LearnedSimilarity | None
    ) -> None:
        """Update the decision by the prediction for a row, before the row is learned."""
        votes = self.votes(found, memory)
        if self.experts:
            slots = {**memory.totals, **dict.fromkeys(own), NONE: 0}
            of_background = background(similarity, x, memory, slots)
            self.experts.learn(self.opinions(votes, memory, of_background, slots), own)
        for calibration, (shares, _) in zip(self.calibrations, votes, strict=True):
            calibration.learn(shares, own)
        if self.recency:
            self.recency.learn(own)
        if found.keys:
            self.novelty.learn(found.of(found.keys[found.nearest()[0]]))
        if self.segments:
            self.segments.learn(found, own, memory)

    def learn_node(
        self,
        x: Floats,
        own: Collection[int],
        node: Node | None,
        is_new: bool,
        memory: Memory,
        similarity: LearnedSimilarity | None,
    ) -> None:
        """Update the decision by the node that the row created or joined; None if the row was dropped."""
        if self.segments and self.fading and node:
            if is_new:
                self.segments.add_node(node)
            self.fading.learn(node, own)

    def counted(self, memory: Memory) -> list[Node]:
        """Return the nodes that the similarity is computed from."""
        return memory.nodes

    def choose(self, p: BySlot, arrived: Sequence[int]) -> set[int]:
        """Return the labels that are predicted."""
        return predicted(p, arrived)

"""The options `recency` and `drift`, and the calibrated decision, which mixes experts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from mlca.reference.arithmetic import Floats, exp_of_minus, limited, ln, odds, power_of_half, sum_in_order
from mlca.reference.decision import BySlot, Calibration, LocatedRow, Novelty, Votes, background, votes_of
from mlca.reference.paper import NONE, Distances, Memory, Node

PER_NAT = 2**32  # log-likelihoods are in units of 2^-32: the sum of 2^28 values of at most 7 fits into 63 bits
HALF_LIVES = (1, 4, 16, 64)  # recency: half-lives of the label counts, in rows
SEGMENT, MOST_SEGMENTS = 64, 16  # drift: number of nodes per segment, and largest number of segments
SPEED = 0.1  # drift: fraction by which the trust moves towards the latest overlap
LATEST = 512  # drift: number of latest nodes, which vote with fading label counts
TRUSTED = 0.7  # drift: the share of the largest trust that a segment needs to vote
FADING = 0.8  # drift: factor of a node's label counts for each row that it receives


class Recency:
    """Decaying counts of rows and labels, with half-lives of 1, 4, 16 and 64 rows."""

    def __init__(self) -> None:
        self.decay = power_of_half(1.0 / np.array(HALF_LIVES))
        self.rows = np.zeros(len(HALF_LIVES))
        self.counts: dict[int, Floats] = {}  # by slot: decayed numbers of rows with the label, per half-life

    def shares(self, slot: int, prior: float) -> list[float]:
        """Return the label's share of the recent rows for each half-life."""
        shares: list[float] = ((self.counts.get(slot, 0.0) + 0.5 * prior) / (self.rows + 0.5)).tolist()
        return shares

    def opinions(self, slot: int, p: float, prior: float) -> list[float]:
        """Return, for each half-life, the probability p adjusted to the label's recent share."""
        adjusted = [odds(p) * odds(share) / odds(prior) for share in self.shares(slot, prior)]
        return [o / (1.0 + o) for o in adjusted]

    def learn(self, own: Collection[int]) -> None:
        """Count a row, given its slots `own`; earlier rows lose weight."""
        self.rows = self.rows * self.decay + 1.0
        for slot in {**self.counts, **dict.fromkeys(own)}:
            faded = self.counts.get(slot, 0.0) * self.decay
            self.counts[slot] = np.where(faded >= 1e-30, faded, 0.0) + (slot in own)


class Persistence:
    """Counts of rows with a label, separately after rows with and without that label."""

    def __init__(self) -> None:
        self.rows = 0  # number of rows that follow a known row
        # By slot, three numbers of rows: all rows after a row with the label; those of them with the label; and rows
        # with the label after a row without it.
        self.counts: dict[int, list[int]] = {}
        self.last: frozenset[int] = frozenset()

    def share(self, slot: int, prior: float) -> float:
        """Return the label's frequency after rows that agree with the last row on the label."""
        after, stayed, came = self.counts.get(slot, (0, 0, 0))
        present, rows = (stayed, after) if slot in self.last else (came, self.rows - after)
        return (present + prior) / (rows + 1.0)

    def learn(self, own: Collection[int]) -> None:
        """Count a row, given its slots `own`."""
        if self.last:
            self.rows += 1
            for slot in {*self.last, *own}:
                counts = self.counts.setdefault(slot, [0, 0, 0])
                counts[0] += slot in self.last
                if slot in own:
                    counts[1 if slot in self.last else 2] += 1
        self.last = frozenset(own)


class Segments:
    """Runs of 64 consecutive nodes, each with a trust: how well it agrees with new rows."""

    def __init__(self, speed: float, most: float) -> None:
        self.speed, self.most = speed, most
        self.segments: list[list[Any]] = []  # [first node, number of merged segments, trust]

    def spans(self, memory: Memory) -> list[list[int]]:
        """Return the nodes of each segment: from its first node up to that of the next segment."""
        bounds = pairwise([*(first for first, _, _ in self.segments), memory.made])
        return [[k for k, node in enumerate(memory.nodes) if low <= node.node_id < high] for low, high in bounds]

    def trusted(self, memory: Memory) -> list[int]:
        """Return the nodes of segments whose trust is at least 0.7 of the largest."""
        least = TRUSTED * max((trust for _, _, trust in self.segments), default=0.0)
        spans = zip(self.spans(memory), self.segments, strict=True)
        return [k for span, (_, _, trust) in spans if trust >= least for k in span]

    def learn(self, found: Distances, own: Collection[int], memory: Memory) -> None:
        """Move each segment's trust towards its nearest node's label overlap with the row."""
        for span, segment in zip(self.spans(memory), self.segments, strict=True):
            if span:
                node = memory.nodes[found.nearest(span)[0]]
                both = sum(node.beta.get(slot, 0) for slot in own) / node.alpha
                overlap = both / (sum(node.beta.values()) / node.alpha + len(own) - both)
                segment[2] += self.speed * (overlap - segment[2])

    def add_node(self, node: Node) -> None:
        """Start a segment at every 64th node; above the limit, merge two adjacent segments."""
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
    """Label counts per node, which decay with every row that the node receives."""

    def __init__(self) -> None:
        self.counts: dict[int, tuple[float, dict[int, float]]] = {}  # by node ID: rows, and rows by slot

    @staticmethod
    def latest(memory: Memory) -> list[int]:
        """Return the indices of the latest nodes, at most 512."""
        return [k for k, node in enumerate(memory.nodes) if node.node_id >= memory.made - LATEST]

    def learn(self, node: Node, own: Collection[int]) -> None:
        """Count a row at the node that stands for it."""
        count, labels = self.counts.get(node.node_id, (0.0, {}))
        faded = {slot: FADING * rows for slot, rows in labels.items()}
        self.counts[node.node_id] = FADING * count + 1.0, faded | {slot: faded.get(slot, 0.0) + 1.0 for slot in own}


class Experts:
    """A weighted mean of experts' probabilities; accurate experts gain weight."""

    def __init__(self, n: int) -> None:
        self.log_weights = [ln(0.9)] + [ln(0.1 / (n - 1))] * (n - 1)

    def weights(self) -> list[float]:
        """Return the weights of the n experts, each at least 0.001 / n so that it can recover."""
        raw = exp_of_minus(max(self.log_weights) - np.array(self.log_weights)).tolist()
        together = sum_in_order(raw)
        return [0.999 * v / together + 0.001 / len(raw) for v in raw]

    def mix(self, opinions: Mapping[int, list[float]]) -> BySlot:
        """Return the weighted mean of the experts' probabilities for each slot."""
        weights = self.weights()
        return {
            slot: sum_in_order(weight * p for weight, p in zip(weights, by_expert, strict=True))
            for slot, by_expert in opinions.items()
        }

    def learn(self, opinions: Mapping[int, list[float]], own: Collection[int]) -> None:
        """Add half of the log-likelihood of each expert's probabilities to its log-weight."""
        losses = [0] * len(self.log_weights)
        for slot, by_expert in opinions.items():
            for e, p in enumerate(limited(p, 0.001, 0.999) for p in by_expert):
                losses[e] += round(ln(p if slot in own else 1.0 - p) * PER_NAT)
        weights = zip(self.weights(), losses, strict=True)
        self.log_weights = [ln(weight) + 0.5 * (loss / PER_NAT) for weight, loss in weights]


class Calibrated:
    """The calibrated decision: calibrated votes and background; experts for recency and drift.

    Expert 0 uses all nodes; the experts for recency follow. Drift adds two experts: one uses the nodes of trusted
    segments, the other the latest nodes, with label counts that decay. These two and expert 0 have separate
    calibrations.
    """

    def __init__(self, memory: Memory, recency: bool, drift: bool) -> None:
        self.memory, self.novelty = memory, Novelty()
        self.calibrations = [Calibration() for _ in range(3 if drift else 1)]
        self.recency = Recency() if recency else None
        self.segments = Segments(SPEED, MOST_SEGMENTS) if drift else None
        self.fading = FadingCounts() if drift else None
        n_experts = len(self.calibrations) + (len(HALF_LIVES) if recency else 0)
        self.experts = Experts(n_experts) if n_experts > 1 else None

    def votes(self, found: Distances) -> list[Votes]:
        """Return all nodes' votes and, with drift experts, those of trusted and recent nodes."""
        votes = [votes_of(found, self.memory)]
        if self.segments and self.fading:
            votes.append(votes_of(found, self.memory, self.segments.trusted(self.memory)))
            votes.append(votes_of(found, self.memory, self.fading.latest(self.memory), self.fading.counts))
        return votes

    def opinions(self, row: LocatedRow, votes: Iterable[Votes], slots: Collection[int]) -> dict[int, list[float]]:
        """Return the experts' probabilities for each slot."""
        of_background = background(row, self.memory, slots)
        pairs = zip(self.calibrations, votes, strict=True)
        by_votes = [calibration.probabilities(own, of_background, slots) for calibration, own in pairs]
        result = {}
        for slot in slots:
            first, *others = (p[slot] for p in by_votes)
            recent = self.recency.opinions(slot, first, self.memory.frequency(slot)) if self.recency else []
            result[slot] = [first, *recent, *others]
        return result

    def predict(self, row: LocatedRow) -> BySlot:
        """Return the probability of each slot: "no label", and every label learned so far."""
        opinions = self.opinions(row, self.votes(row.found), {NONE: 0, **self.memory.totals})
        return (
            self.experts.mix(opinions) if self.experts else {slot: by_expert[0] for slot, by_expert in opinions.items()}
        )

    def learn(self, row: LocatedRow, own: Collection[int]) -> None:
        """Update calibrations, experts and counts by a row's labels, before its node changes."""
        votes = self.votes(row.found)
        if self.experts:
            slots = {**self.memory.totals, **dict.fromkeys(own), NONE: 0}
            self.experts.learn(self.opinions(row, votes, slots), own)
        for calibration, (shares, _) in zip(self.calibrations, votes, strict=True):
            calibration.learn(shares, own)
        if row.found.keys:
            self.novelty.learn(row.found.least())
        if self.recency:
            self.recency.learn(own)
        if self.segments:
            self.segments.learn(row.found, own, self.memory)

    def learn_node(self, row: LocatedRow, own: Collection[int], node: Node | None) -> None:
        """With drift, record the node that the row created or joined (None if it was dropped)."""
        if self.segments and self.fading and node:
            if node.is_new:
                self.segments.add_node(node)
            self.fading.learn(node, own)

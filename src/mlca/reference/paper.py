"""MLCA, MLCA-I and MLCA-C with the symbols and equation numbers of the paper.

Masuyama, Nojima, Loo, Ishibuchi, "Multi-label Classification via Adaptive Resonance Theory-based Clustering", IEEE
TPAMI 45(7), 2023. Where the printed text and the program behind its tables differ, this module follows the program.

A missing value (NaN) is left out of all sums and their divisors. Values of nominal features are compared for equality.

Labels are identified by *slots*: label i has slot i + 1, and slot 0 stands for "no label", which the paper does not
have.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlca.reference.arithmetic import (
    PER_UNIT,
    SCALE,
    Floats,
    in_units,
    power_of_half,
    rounded,
    splitmix64,
    sum_in_order,
)

NONE = 0  # the slot of "no label"
NOMINAL_GROUP = -1  # MLCA-C: the group of the nominal features, which has no centre
DEVIATION_OF_CONSTANTS = 1e-6  # assumed for a feature that is constant in the window, to avoid dividing by 0


@dataclass
class Node:
    """A prototype: it stands for one row or for several similar rows."""

    y: Floats  # weight y_k, one value per feature
    alpha: int  # number of rows that the node stands for, eq. (14)
    beta: dict[int, int]  # number of those rows with each label, by slot, eq. (15)
    sigma: Any  # bandwidth: a number (MLCA, eq. (8)), or one per feature (MLCA-I, MLCA-C, eq. (30))
    node_id: int  # number of nodes created before this one

    @property
    def is_new(self) -> bool:
        """Whether no other row has joined the node."""
        return self.alpha == 1


@dataclass
class Distances:
    """Distances of a row from all nodes as whole numbers, the oldest node first.

    A whole number `key` stands for the distance key / unit, or for its square root if `squared`. `far` is the key of a
    node that has nothing in common with the row, and `threshold` that of the vigilance. `nearest` returns only
    `visited` nodes, or any node if `visited` is None.
    """

    keys: list[int]
    unit: float
    far: int
    squared: bool
    threshold: float = math.inf
    visited: Collection[int] | None = None

    def nearest(self, among: Iterable[int] | None = None) -> list[int]:
        """Return the indices of nodes, nearest first; of equally near nodes the oldest first."""
        nodes = range(len(self.keys)) if among is None else among
        listed = nodes if self.visited is None else set(nodes) & set(self.visited)
        return sorted(listed, key=lambda k: (self.keys[k], k))

    def of(self, key: int) -> float:
        """Return the distance that a key stands for."""
        return math.sqrt(key / self.unit) if self.squared else key / self.unit

    def least(self) -> float:
        """Return the distance to the nearest node."""
        return self.of(self.keys[self.nearest()[0]])

    def tied(self, key: int) -> int:
        """Return the largest key that counts as equal to `key`: at most 1 + 5e-7 times as far."""
        return key + key // (10**6 if self.squared else 2 * 10**6)


def bandwidths(window: Floats, nominal: Collection[int] = ()) -> Floats:
    """Return Sigma, eqs. (7), (30): a bandwidth per feature, from its values in the window."""
    d, known = window.shape[1], ~np.isnan(window)
    m = np.maximum(known.sum(axis=0), 1)  # lambda: the number of values of each feature
    mean = np.cumsum(np.where(known, window, 0.0), axis=0)[-1] / m  # cumsum adds row after row, unlike sum
    squares = np.cumsum(np.where(known, (window - mean) * (window - mean), 0.0), axis=0)[-1]
    gamma = np.sqrt(squares / np.maximum(m - 1, 1))
    varies = (np.fmax.reduce(window) > np.fmin.reduce(window)) & (gamma > 0.0)  # fmax and fmin ignore missing values
    varies[list(nominal)] = False
    # Python's power is that of the C library; NumPy's may differ in the last bit.
    of_m = np.array([rows ** (-1.0 / (4.0 + d)) for rows in m.tolist()])
    of_d: float = (4.0 / (2.0 + d)) ** (1.0 / (4.0 + d))
    sigma: Floats = of_d * np.where(varies, gamma, DEVIATION_OF_CONSTANTS) * of_m
    return sigma


def common_bandwidth(window: Floats, nominal: Collection[int] = ()) -> float:
    """Return the median of Sigma, eq. (8), over numeric features with values in the window."""
    numeric = [i for i, column in enumerate(window.T) if i not in nominal and not np.isnan(column).all()]
    sigma = bandwidths(window, nominal)[numeric] if numeric else bandwidths(np.zeros_like(window))
    return float(np.median(sigma))


def kernel(difference: Floats, sigma: Any) -> Floats:
    """Return the Gaussian kernel kappa of a difference, eq. (3)."""
    with np.errstate(over="ignore"):
        z = difference * (SCALE / sigma)
        return power_of_half(z * z)


def in_full(total: int, compared: int, parts: int) -> int:
    """Scale a sum over the compared parts up to all parts; the maximum if none is compared."""
    if compared == parts:
        return total
    return rounded(total * parts, compared) if compared else parts * 2**40


class FeatureGroups:
    """Feature groups of MLCA-C, found by a one-dimensional MLCA over the features' means."""

    def __init__(self, vigilance: float, window: int) -> None:
        self.V, self.window = vigilance, window
        self.centres: list[list[Any]] = []  # [centre, count, bandwidth], the oldest first

    def learn(self, window: Floats, order: Iterable[int], nominal: Collection[int]) -> None:
        """Group the features by their means in the window, in the given order."""
        columns = (window[~np.isnan(window[:, i]), i] for i in order if i not in nominal)
        means = [sum_in_order(column) / len(column) for column in columns if len(column)]
        for i, mean in enumerate(means):
            first = max(0, min(i - self.window + 1, len(means) - self.window))
            own_window = np.array(means[first : first + self.window])[:, None]
            self.learn_value(mean, 1, bandwidths(own_window)[0])

    def learn_value(self, value: float, count: int, sigma: float) -> None:
        """Make `count` equal values a new centre, or move the nearest centre towards them."""
        if self.centres:
            s = sum_in_order(centre[2] for centre in self.centres) / len(self.centres)
            apart = value - np.array([centre[0] for centre in self.centres])
            sums = in_units(1.0 - kernel(apart, s)).tolist()
        if not self.centres or min(sums) > round(self.V * self.V * PER_UNIT):
            self.centres.append([value, count, sigma])
            return
        winner = self.centres[sums.index(min(sums))]
        winner[0] += (value - winner[0]) / ((winner[1] + count - 1) / count)
        winner[1] += count

    def members(self, x: Floats, nominal: Collection[int]) -> dict[int, list[int]]:
        """Return the indices of known features, by group; nominal ones form a separate group."""
        members: dict[int, list[int]] = {}
        for i in np.flatnonzero(~np.isnan(x)).tolist():
            apart = [abs(float(x[i]) - centre[0]) for centre in self.centres] or [0.0]
            members.setdefault(NOMINAL_GROUP if i in nominal else apart.index(min(apart)), []).append(i)
        return members


@dataclass
class Memory:
    """The nodes, their updates, and the number of rows with each label."""

    V: float  # vigilance
    N_y: int  # n_neighbors
    window: int
    attributes: str = "common"
    rule: str = "published"
    max_nodes: int | None = None
    nominal: Sequence[int] = ()
    nodes: list[Node] = field(default_factory=list)
    n: int = 0  # number of rows learned
    totals: dict[int, int] = field(default_factory=dict)  # number of rows, by slot in order of arrival
    made: int = 0  # number of nodes created
    candidates: int = 0  # number of rows that passed the test to become a node

    def __post_init__(self) -> None:
        self.groups = FeatureGroups(self.V, self.window)

    @property
    def arrived(self) -> list[int]:
        """The labels seen so far, in order of arrival."""
        return [slot for slot in self.totals if slot != NONE]

    def frequency(self, slot: int) -> float:
        """Return the share of rows with a label, smoothed by one row with it and one without."""
        return (self.totals.get(slot, 0) + 1) / (self.n + 2)

    def bandwidth(self, window: Floats) -> Any:
        """Return the bandwidth of a new node: eq. (8), or eq. (30) for MLCA-I and MLCA-C."""
        return (common_bandwidth if self.attributes == "common" else bandwidths)(window, self.nominal)

    def distances(self, x: Floats, predicting: bool = False) -> Distances:
        """Return the CIM between a row and each node, eqs. (9) to (12), and the threshold of V."""
        d, common, clustered = len(x), self.attributes == "common", self.attributes == "clustered"
        groups = list(self.groups.members(x, self.nominal).values()) or [[]] if clustered else []
        parts = len(groups) if clustered else d  # J groups, or d features
        threshold = round(self.V * self.V * d * PER_UNIT) if common else self.V * parts * PER_UNIT
        if not self.nodes:
            return Distances([], parts * PER_UNIT, parts * 2**40, common, threshold)
        Y = np.array([node.y for node in self.nodes])
        compared = ~(np.isnan(x) | np.isnan(Y))
        difference = np.where(compared, x - Y, 0.0)
        unlike = 1.0 - kernel(difference, self._kernel_bandwidth(groups, predicting))  # eqs. (2), (29), (32)
        unlike[:, self.nominal] = difference[:, self.nominal] != 0.0
        if common:  # MLCA, eq. (4), without the mean and the root, which change no comparison
            terms = in_units(unlike)
        elif not clustered:  # MLCA-I, eq. (28): one root per feature
            terms = in_units(np.sqrt(unlike))
        else:  # MLCA-C, eq. (31): one root per group
            sums = np.transpose([in_units(unlike)[:, group].sum(axis=1) for group in groups])
            sizes = np.transpose([compared[:, group].sum(axis=1) for group in groups])
            terms, compared = in_units(np.sqrt(sums / PER_UNIT / np.maximum(sizes, 1))), sizes > 0
        totals = zip(terms.sum(axis=1).tolist(), compared.sum(axis=1).tolist(), strict=True)
        keys = [in_full(*of_node, parts) for of_node in totals]
        return Distances(keys, parts * PER_UNIT, parts * 2**40, common, threshold)

    def _kernel_bandwidth(self, groups: list[list[int]], predicting: bool) -> Any:
        """Return sigma of the kernel: common, per node and feature (-I), or per feature (-C)."""
        sigmas = np.array([node.sigma for node in self.nodes])
        if self.attributes == "individual":
            return sigmas
        if self.attributes == "common":  # mean(S), eqs. (9) to (12); the authors' program predicts with the median
            return float(np.median(sigmas)) if predicting else sum_in_order(sigmas.tolist()) / len(sigmas)
        of_features, of_groups = np.cumsum(sigmas, axis=0)[-1], np.ones(sigmas.shape[1])
        for group in groups:  # eq. (33), with d instead of d_j
            of_groups[group] = sum_in_order(of_features[group]) / (len(sigmas) * max(len(group), 1))
        return of_groups

    def learn(self, x: Floats, beta: Mapping[int, int], found: Distances, sigma: Any, count: int = 1) -> Node | None:
        """Let a row create or move a node; return that node, or None if the row was dropped.

        When models are merged, x is a node of another model, which stands for `count` rows.
        """
        order = found.nearest()[: self.N_y]
        if not order or found.keys[order[0]] > found.threshold:  # case I, eq. (13)
            return self._add(x, beta, count, sigma)
        winner, *others = (self.nodes[k] for k in order)  # k1, eq. (9), and its neighbours, k2 first, eq. (10)
        for slot, rows in beta.items():
            winner.beta[slot] = winner.beta.get(slot, 0) + rows  # eq. (15)
        before = winner.alpha + (self.rule == "released")
        self._move(winner, x, before, count)  # eq. (18); the divisor is the count before eq. (14)
        winner.alpha += count  # eq. (14)
        if not others or found.keys[order[1]] > found.threshold:  # case II, eq. (16)
            return winner
        if self.rule == "text":  # case III, eq. (17): eq. (19) as it is printed
            for neighbour in others:
                self._move(neighbour, winner.y, self.N_y * neighbour.alpha, count)
        else:  # both of the authors' programs move only the second winner, and towards the row
            self._move(others[0], x, (10 if self.rule == "released" else self.N_y) * others[0].alpha, count)
        return winner

    def _add(self, x: Floats, beta: Mapping[int, int], count: int, sigma: Any) -> Node | None:
        """Add a node. At `max_nodes`, reservoir sampling drops it or replaces another node."""
        self.candidates += 1
        if len(self.nodes) == self.max_nodes:
            drawn = splitmix64(self.n) % self.candidates
            if drawn >= self.max_nodes:
                return None
            del self.nodes[drawn]
        self.nodes.append(Node(x, count, dict(beta), sigma, self.made))
        self.made += 1
        return self.nodes[-1]

    def _move(self, node: Node, target: Floats, step: float, count: int) -> None:
        """Move a node 1/step of the way to a row, eqs. (18), (19); `count` repeats the row."""
        step = (step + count - 1) / count
        moved = node.y + (target - node.y) / step
        # A nominal value changes if the node moves more than half of the way.
        moved[self.nominal] = (target if step < 2 else node.y)[self.nominal]
        node.y = np.where(np.isnan(target), node.y, np.where(np.isnan(node.y), target, moved))


class LabelCounters:
    """The counters c+ and c-: numbers of rows per vote bin, with and without each label."""

    def __init__(self, n_neighbors: int, smoothing: float, vote: str) -> None:
        self.N_y, self.s, self.vote = n_neighbors, smoothing, vote
        self.counters: dict[int, tuple[list[int], list[int]]] = {}  # by slot: (c+, c-) of bins 0..N_y
        self.rows_of_several = self.rows_of_one = 0  # rows counted with several neighbours, and with one

    def of(self, slot: int) -> tuple[list[int], list[int]]:
        """Return (c+, c-) of a label; an unseen label counts as absent in all rows."""
        absent = [self.rows_of_several, *[0] * (self.N_y - 1), self.rows_of_one]
        return self.counters.get(slot, ([0] * (self.N_y + 1), absent))

    def bins(self, neighbours: Sequence[Node], slots: Iterable[int]) -> dict[int, int]:
        """Return the bin of each slot, eqs. (22) and (23)."""
        N, slots = len(neighbours), list(slots)
        if N == 1:
            return dict.fromkeys(slots, self.N_y)
        if self.vote == "frequencies":  # not in the paper: votes are shares of rows with the label
            shares = {i: sum_in_order(node.beta.get(i, 0) / node.alpha for node in neighbours) for i in slots}
            return {i: math.floor(share + 0.5) for i, share in shares.items()}
        g = {i: sum(node.beta.get(i, 0) for node in neighbours) for i in slots}  # eq. (22)
        most = max(g.values(), default=0)
        return {i: math.floor(N * votes / most + 0.5) if most else 0 for i, votes in g.items()}  # eq. (23)

    def learn(self, neighbours: Sequence[Node], beta: Mapping[int, int], count: int = 1) -> None:
        """Count a row, eq. (21); the first row has no neighbours and is not counted."""
        labels = {slot: self.of(slot) for slot in [*self.counters, *beta] if slot != NONE}
        self.counters.update(labels)
        if not neighbours:
            return
        for slot, j in self.bins(neighbours, labels).items():
            present, absent = labels[slot]
            present[j] += beta.get(slot, 0)
            absent[j] += count - beta.get(slot, 0)
        self.rows_of_several += count * (len(neighbours) > 1)
        self.rows_of_one += count * (len(neighbours) == 1)

    def posteriors(self, neighbours: Sequence[Node], slots: Iterable[int], memory: Memory) -> dict[int, float]:
        """Return the posterior P(H+|E) of each slot, eq. (26)."""
        N, s, result = len(neighbours), self.s, {}
        for slot, j in self.bins(neighbours, slots).items():
            prior = (s + memory.totals.get(slot, 0)) / (2 * s + memory.n)  # eqs. (24), (25)
            likelihoods = [(s + c[j]) / (s * (N + 1) + sum(c)) if j <= N else 0.0 for c in self.of(slot)]  # eq. (20)
            yes, no = likelihoods[0] * prior, likelihoods[1] * (1 - prior)
            result[slot] = yes / (yes + no) if yes + no > 0 else prior
        return result

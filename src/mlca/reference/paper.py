"""MLCA, MLCA-I and MLCA-C: nodes and Bayes' rule, with the symbols and equation numbers of the paper.

Masuyama, Nojima, Loo, Ishibuchi, "Multi-label Classification via Adaptive Resonance Theory-based Clustering", IEEE
TPAMI 45(7), 2023. Where the printed text and the program behind its tables differ, this is the program.

A missing value (NaN) is left out of all sums and their divisors. A nominal feature has values that are equal or not.

Labels have slots: label i has slot i + 1, and slot 0 counts rows without any label, which the paper does not count.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlca.reference.arithmetic import (
    PER_UNIT,
    SCALE,
    Floats,
    Integers,
    in_units,
    power_of_half,
    rounded,
    splitmix64,
    sum_in_order,
)

# The slot of "no label".
NONE = 0

# The group of the nominal features in MLCA-C, which has no centre.
NOMINAL_GROUP = -1

# The deviation of a feature that is constant in the window; a bandwidth of zero would divide by zero.
DEVIATION_OF_CONSTANTS = 1e-6


@dataclass
class Node:
    """A prototype.

    Attributes
    ----------
    y : weight y_k, one value per feature
    alpha : number of rows that the node stands for, eq. (14)
    beta : number of those rows that had each label, eq. (15), as slot -> rows
    sigma : bandwidth: a number (MLCA, eq. (8)), or one per feature (MLCA-I, MLCA-C)
    node_id : number of nodes made before this one
    """

    y: Floats
    alpha: int
    beta: dict[int, int]
    sigma: Any
    node_id: int


@dataclass
class Distances:
    """Distances of a row from all nodes as whole numbers, the oldest node first.

    A whole number `key` stands for the distance key / unit, or for its square root. `far` is the key of a node that
    has nothing in common with the row, and `threshold` that of the vigilance. Only `visited` nodes are ever listed, or
    all nodes if that is None.
    """

    keys: list[int]
    unit: float
    far: int
    squared: bool
    threshold: float = math.inf
    visited: Collection[int] | None = None

    def nearest(self, among: Iterable[int] | None = None) -> list[int]:
        """Return nodes, nearest first; of equally near nodes the oldest comes first."""
        nodes = range(len(self.keys)) if among is None else among
        listed = nodes if self.visited is None else set(nodes) & set(self.visited)
        return sorted(listed, key=lambda k: (self.keys[k], k))

    def of(self, key: int) -> float:
        """Return the distance that a key stands for."""
        return math.sqrt(key / self.unit) if self.squared else key / self.unit

    def tied(self, key: int) -> int:
        """Return the largest key that counts as tied: its distance is larger by a factor of at most 1 + 5e-7."""
        return key + key // (10**6 if self.squared else 2 * 10**6)


# ------------------------------------------------------------------ bandwidths, eqs. (5) to (8) and (30)


def bandwidths(window: Floats, nominal: Collection[int] = ()) -> Floats:
    """Return Sigma, eq. (7), of the rows of a window: one bandwidth per feature."""
    d, known = window.shape[1], ~np.isnan(window)
    m = known.sum(axis=0)
    values = np.where(known, window, 0.0)
    at_least_one = np.maximum(m, 1)
    mean = np.cumsum(values, axis=0)[-1] / at_least_one  # cumsum adds row after row, unlike sum
    squares = np.cumsum(np.where(known, (values - mean) * (values - mean), 0.0), axis=0)[-1]
    gamma = np.sqrt(squares / np.maximum(m - 1, 1))
    low, high = (np.where(known, window, end).T for end in (math.inf, -math.inf))
    is_constant = ~(high.max(axis=1) > low.min(axis=1)) | (gamma == 0.0)
    is_constant[list(nominal)] = True
    gamma = np.where(is_constant, DEVIATION_OF_CONSTANTS, gamma)
    return silverman(gamma, at_least_one.tolist(), d)


def silverman(gamma: Floats | float, m: Sequence[int], d: int) -> Floats:
    """Return the bandwidths of features with deviations `gamma` over m rows each, eq. (7)."""
    # Python's power is that of the C library; NumPy's may differ in the last bit.
    of_m = np.array([rows ** (-1.0 / (4.0 + d)) for rows in m])
    of_d: float = (4.0 / (2.0 + d)) ** (1.0 / (4.0 + d))
    return of_d * gamma * of_m


def common_bandwidth(window: Floats, nominal: Collection[int] = ()) -> float:
    """Return the median of Sigma, eq. (8), over the numeric features that have a value in the window."""
    numeric = [i for i, column in enumerate(window.T) if i not in nominal and not np.isnan(column).all()]
    if not numeric:
        return float(silverman(DEVIATION_OF_CONSTANTS, [len(window)], window.shape[1])[0])
    return float(np.median(bandwidths(window, nominal)[numeric]))


# ------------------------------------------------------------------ groups of features, MLCA-C


class FeatureGroups:
    """A separate one-dimensional MLCA learns the features' means; a value belongs to the nearest centre."""

    def __init__(self, vigilance: float, window: int) -> None:
        self.V, self.window = vigilance, window
        self.centres: list[list[Any]] = []  # [centre, count, bandwidth], the oldest first

    def learn(self, window: Floats, order: Iterable[int], nominal: Collection[int]) -> None:
        """Learn the means of the window's columns in a given order."""
        columns = {i: window[~np.isnan(window[:, i]), i] for i in order if i not in nominal}
        means = [sum_in_order(column) / len(column) for column in columns.values() if len(column)]
        for i, mean in enumerate(means):
            first = max(0, min(i - self.window + 1, len(means) - self.window))
            own_window = np.array(means[first : first + self.window])[:, None]
            self.learn_value(mean, 1, bandwidths(own_window)[0])

    def learn_value(self, value: float, count: int, sigma: float) -> None:
        """Turn a value into a centre, or move the nearest centre; merging learns `count` equal values at once."""
        if self.centres:
            s = sum_in_order(centre[2] for centre in self.centres) / len(self.centres)
            sums = [int(v) for v in dissimilarity(value - np.array([centre[0] for centre in self.centres]), s)]
        if not self.centres or min(sums) > round(self.V * self.V * PER_UNIT):
            self.centres.append([value, count, sigma])
            return
        winner = self.centres[sums.index(min(sums))]
        winner[0] += (value - winner[0]) / ((winner[1] + count - 1) / count)
        winner[1] += count

    def members(self, x: Floats, nominal: Collection[int]) -> dict[int, list[int]]:
        """Return group -> the features that the row has a value of; nominal features are a group."""
        members: dict[int, list[int]] = {}
        for i in np.flatnonzero(~np.isnan(x)).tolist():
            apart = [abs(float(x[i]) - centre[0]) for centre in self.centres] or [0.0]
            members.setdefault(NOMINAL_GROUP if i in nominal else apart.index(min(apart)), []).append(i)
        return members


# ------------------------------------------------------------------ the correntropy-induced metric (CIM)


def kernel(difference: Floats, sigma: Any) -> Floats:
    """Return kappa, eq. (3)."""
    with np.errstate(over="ignore"):
        z = difference * (SCALE / sigma)
        return power_of_half(z * z)


def dissimilarity(difference: Floats, sigma: Any) -> Integers:
    """Return 1 - kappa in units of 2^-40."""
    return in_units(1.0 - kernel(difference, sigma))


def in_full(total: int, compared: int, parts: int) -> int:
    """Return a sum over the compared parts, scaled to all parts; if none was compared, the largest possible sum."""
    if compared == parts:
        return total
    return rounded(total * parts, compared) if compared else parts * 2**40


# ------------------------------------------------------------------ nodes


class Memory:
    """The nodes, their updates, and the number of rows with each label.

    Parameters are those of `mlca.MLCA`; `nominal` are the numbers of the nominal features.
    """

    def __init__(
        self,
        vigilance: float,
        n_neighbors: int = 10,
        window: int = 50,
        attributes: str = "common",
        rule: str = "published",
        max_nodes: int | None = None,
        nominal: Collection[int] = (),
    ) -> None:
        self.V, self.N_y, self.attributes, self.rule = vigilance, n_neighbors, attributes, rule
        self.max_nodes, self.nominal = max_nodes, sorted(nominal)
        self.nodes: list[Node] = []
        self.groups = FeatureGroups(vigilance, window)
        self.n = 0  # rows learned
        self.totals: dict[int, int] = {}  # slot -> rows that had the label, in the order of arrival
        self.made = self.candidates = 0  # nodes created, and rows that passed the test to become one

    # ---- CIM: eqs. (4), (28) and (31)

    def distances(self, x: Floats, predicting: bool = False) -> Distances:
        """Return the CIM of a row and every node, eqs. (9) to (12), and the threshold of the vigilance V."""
        d, common = len(x), self.attributes == "common"
        members = self.groups.members(x, self.nominal) if self.attributes == "clustered" else {}
        parts = max(len(members), 1) if self.attributes == "clustered" else d
        threshold = round(self.V * self.V * d * PER_UNIT) if common else self.V * parts * PER_UNIT
        keys = self._keys(x, members, parts, predicting) if self.nodes else []
        return Distances(keys, parts * PER_UNIT, parts * 2**40, common, threshold)

    def _keys(self, x: Floats, members: dict[int, list[int]], parts: int, predicting: bool) -> list[int]:
        Y, K = np.array([node.y for node in self.nodes]), len(self.nodes)
        both = ~(np.isnan(x) | np.isnan(Y))
        difference = np.where(both, x - Y, 0.0)
        sigmas = [node.sigma for node in self.nodes]
        if self.attributes == "common":  # eq. (4), without the root
            s = float(np.median(sigmas)) if predicting else sum_in_order(sigmas) / K
            terms = self._with_nominal(dissimilarity(difference, s), difference)
        elif self.attributes == "individual":  # eqs. (28), (29): each node has its own bandwidths
            terms = self._with_nominal(in_units(np.sqrt(1.0 - kernel(difference, np.array(sigmas)))), difference)
        else:  # eqs. (31), (32): one root per group, over the features of the group
            of_features = np.cumsum(sigmas, axis=0)[-1]
            totals, compared = np.zeros(K, np.int64), np.zeros(K, np.int64)
            for number, group in members.items():
                s = sum_in_order(of_features[group]) / (K * len(group))  # eq. (33), with d instead of d_j
                apart, size = difference[:, group], both[:, group].sum(axis=1)
                terms = (apart != 0.0) * 2**40 if number == NOMINAL_GROUP else dissimilarity(apart, s)
                totals += in_units(np.sqrt(terms.sum(axis=1) / PER_UNIT / np.maximum(size, 1)))
                compared += size > 0
            return [in_full(*of_node, parts) for of_node in zip(totals.tolist(), compared.tolist(), strict=True)]
        of_nodes = zip(terms.sum(axis=1).tolist(), both.sum(axis=1).tolist(), strict=True)
        return [in_full(total, compared, parts) for total, compared in of_nodes]

    def _with_nominal(self, terms: Integers, difference: Floats) -> Integers:
        """Return terms in which those of nominal features are 0 for equal values, else 1."""
        terms[:, self.nominal] = (difference[:, self.nominal] != 0.0) * 2**40
        return terms

    # ---- the vigilance test and its consequences

    def learn(
        self,
        x: Floats,
        beta: Mapping[int, int],
        found: Distances,
        window: Floats | None,
        count: int = 1,
        sigma: Any = 0,
    ) -> tuple[Node | None, bool]:
        """Let a row create or move a node; return the node that stands for the row and whether it is new.

        When models are merged, `x` is a node with `count` rows and bandwidth `sigma`.
        """
        near = [self.nodes[k] for k in found.nearest()[: self.N_y]]
        keys = sorted(found.keys)[:2]
        if not near or keys[0] > found.threshold:  # case I, eq. (13)
            return self._add(x, beta, count, sigma if window is None else self.bandwidth(window))
        winner = near[0]
        for slot, rows in beta.items():
            winner.beta[slot] = winner.beta.get(slot, 0) + rows  # eq. (15)
        before = winner.alpha + (self.rule == "released")
        self._move(winner, x, before, count)  # eq. (18); the divisor is the count before eq. (14)
        winner.alpha += count  # eq. (14)
        if len(near) > 1 and keys[1] <= found.threshold:  # case III, eq. (17); case II, eq. (16), ends here
            if self.rule == "text":  # eq. (19) as it is printed
                for neighbour in near[1:]:
                    self._move(neighbour, winner.y, self.N_y * neighbour.alpha, count)
            else:  # both programs move only the second winner, and towards the row
                share = 10 if self.rule == "released" else self.N_y
                self._move(near[1], x, share * near[1].alpha, count)
        return winner, False

    def bandwidth(self, window: Floats) -> Any:
        """Return the bandwidth of a new node: eq. (8), or eq. (30) for MLCA-I and MLCA-C."""
        return (common_bandwidth if self.attributes == "common" else bandwidths)(window, self.nominal)

    def _add(self, x: Floats, beta: Mapping[int, int], count: int, sigma: Any) -> tuple[Node | None, bool]:
        """Add a node. `max_nodes` samples a reservoir: the s-th candidate replaces a drawn node or is dropped."""
        self.candidates += 1
        if len(self.nodes) == self.max_nodes:
            drawn = splitmix64(self.n) % self.candidates
            if drawn >= self.max_nodes:
                return None, False
            del self.nodes[drawn]
        self.nodes.append(Node(x, count, dict(beta), sigma, self.made))
        self.made += 1
        return self.nodes[-1], True

    def _move(self, node: Node, target: Floats, step: float, count: int) -> None:
        """Move a node by 1/step of the way, eqs. (18), (19); `count` rows at once make `count` times that step."""
        step = (step + count - 1) / count
        moved = node.y + (target - node.y) / step
        # A nominal value changes if the node moves more than half of the way.
        moved[self.nominal] = (target if step < 2 else node.y)[self.nominal]
        node.y = np.where(np.isnan(target), node.y, np.where(np.isnan(node.y), target, moved))


# ------------------------------------------------------------------ label probabilities, eqs. (20) to (27)


class LabelCounters:
    """The counters c+ and c-: how many rows whose neighbours put a label into bin j had the label, and had not."""

    def __init__(self, n_neighbors: int, smoothing: float, vote: str) -> None:
        self.N_y, self.s, self.vote = n_neighbors, smoothing, vote
        self.counters: dict[int, tuple[list[int], list[int]]] = {}  # slot -> (c+, c-) of bins 0..N_y
        self.rows_of_several = self.rows_of_one = 0  # rows counted with several neighbours, and with one

    def of(self, slot: int) -> tuple[list[int], list[int]]:
        """Return (c+, c-) of a label; an unseen label counts as absent in all rows, in bin 0 or N_y."""
        absent = [self.rows_of_several, *[0] * (self.N_y - 1), self.rows_of_one]
        return self.counters.get(slot, ([0] * (self.N_y + 1), absent))

    def bins(self, neighbours: Sequence[Node], slots: Iterable[int]) -> dict[int, int]:
        """Return slot -> bin, eqs. (22) and (23)."""
        N, slots = len(neighbours), list(slots)
        if N == 1:
            return dict.fromkeys(slots, self.N_y)
        if (
            self.vote == "frequencies"
        ):  # our variant: each neighbour votes with the share of its rows that had the label
            shares = {i: sum_in_order(node.beta.get(i, 0) / node.alpha for node in neighbours) for i in slots}
            return {i: math.floor(share + 0.5) for i, share in shares.items()}
        g = {i: sum(node.beta.get(i, 0) for node in neighbours) for i in slots}
        most = max(g.values(), default=0)
        return {i: math.floor(N * votes / most + 0.5) if most else 0 for i, votes in g.items()}

    def learn(self, neighbours: Sequence[Node], beta: Mapping[int, int], count: int = 1) -> None:
        """Count a row, eq. (21); the very first row has no neighbours and is not counted."""
        labels = {slot: self.of(slot) for slot in [*self.counters, *beta] if slot != NONE}
        self.counters.update(labels)
        if not neighbours:
            return
        for slot, place in self.bins(neighbours, labels).items():
            present, absent = labels[slot]
            present[place] += beta.get(slot, 0)
            absent[place] += count - beta.get(slot, 0)
        self.rows_of_several += count * (len(neighbours) > 1)
        self.rows_of_one += count * (len(neighbours) == 1)

    def posteriors(self, neighbours: Sequence[Node], slots: Sequence[int], memory: Memory) -> dict[int, float]:
        """Return slot -> P(H+|E), eq. (26)."""
        N, s, result = len(neighbours), self.s, {}
        for slot, j in self.bins(neighbours, slots).items():
            prior = (s + memory.totals.get(slot, 0)) / (2 * s + memory.n)  # eqs. (24), (25)
            likelihoods = [(s + c[j]) / (s * (N + 1) + sum(c)) if j <= N else 0.0 for c in self.of(slot)]  # eq. (20)
            yes, no = likelihoods[0] * prior, likelihoods[1] * (1 - prior)
            result[slot] = yes / (yes + no) if yes + no > 0 else prior
        return result


def absorb(memory: Memory, counters: LabelCounters, other: Memory) -> None:
    """Replay the nodes of another model of the paper's algorithms, as `mlca.merge` does: each as `alpha` equal rows."""
    for node in other.nodes:
        found = memory.distances(node.y)
        near = [memory.nodes[k] for k in found.nearest()[: memory.N_y]]
        placed, is_new = memory.learn(node.y, node.beta, found, None, node.alpha, node.sigma)
        counters.learn([placed, *near][: memory.N_y] if placed and is_new else near, node.beta, node.alpha)
    for centre in other.groups.centres:
        memory.groups.learn_value(*centre)
    memory.n += other.n
    for slot, rows in other.totals.items():
        memory.totals[slot] = memory.totals.get(slot, 0) + rows

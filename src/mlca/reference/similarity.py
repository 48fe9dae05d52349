"""The learned similarity: ranks, feature weights, and a background score per label.

It is a function of the nodes alone, recomputed after certain numbers of rows (`due_after`). Every sum whose order could
matter is a sum of integers, in these units: ranks 1 / (m 2^18) for m knots, or 2^-22 for values of 0 and 1; squared
correlations 2^-40; weights and the terms of a distance 2^-50. A distance has seven decimals. The compiled learner uses
the same units; src/kernels/similarity/fit_similarity.hpp proves that 64 or 128 bits are enough.

Only differences of ranks matter, so the rank of 0 is subtracted from all ranks, which keeps sparse rows sparse.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlca.reference.arithmetic import SCALE, Floats, Integers, power_of_half, rounded
from mlca.reference.paper import NONE, Distances, Node

MOST_KNOTS = 17
RANK_STEP = 2**17  # half the distance between two knots
BINARY_ONE = 2**22  # the rank of 1 where all node values are 0 or 1
FARTHEST_RANK = 2**29
LARGEST_VALUE = 2.0**1000  # differences of such values are finite
WIDTH = 0.289  # width of the kernel on ranks: the standard deviation of a uniform distribution
WHOLE_WEIGHT = 2**50
PER_KEY = 10**7  # distances are compared to seven decimals
WEIGH_FROM = 20  # with fewer nodes, all features have the same weight
TOP = 32  # number of traits in the background score of a label
OFTEN_UNTIL = 50  # the similarity is recomputed after each of the first 50 rows


def due_after(rows: int) -> int:
    """Return the row count at which a similarity computed after `rows` rows is recomputed."""
    return rows + 1 if rows < OFTEN_UNTIL else rows + rows // 4


def knots_of(column: Floats) -> Floats:
    """Return the knots of a feature: evenly spaced quantiles of the nodes' values, at most 17."""
    n, values = min(len(column), MOST_KNOTS), np.sort(column[~np.isnan(column)] + 0.0)
    if not len(values):
        return np.zeros(n)
    knots: Floats = values[np.rint(np.arange(n) * (len(values) - 1) / max(n - 1, 1)).astype(int)]  # halves to even
    return knots


class FeatureRanks:
    """Ranks of values among the nodes' values of the same feature, as whole numbers."""

    def __init__(self, Y: Floats, binary: bool) -> None:
        # One row per knot. None if all node values are 0 or 1, because these values are then the ranks.
        self.knots = None if binary else np.array([knots_of(column) for column in Y.T]).T
        self.one = BINARY_ONE if self.knots is None else 2 * len(self.knots) * RANK_STEP
        self.zero = self.from_lowest(np.zeros(Y.shape[1]))

    def __call__(self, X: Floats) -> Integers:
        """Return the ranks of a row or of rows, minus the ranks of 0; missing values have rank 0."""
        return self.from_lowest(np.where(np.isnan(X), 0.0, X)) - self.zero

    def from_lowest(self, x: Floats) -> Integers:
        """Return ranks without subtracting the rank of 0; knots have ranks from 0 to `one`."""
        x = np.clip(x, -LARGEST_VALUE, LARGEST_VALUE)
        with np.errstate(all="ignore"):  # errors in values that np.where discards
            ranks = self._outside(x, 1.0) if self.knots is None else self._among(self.knots, x)
        return np.clip(ranks, -FARTHEST_RANK, FARTHEST_RANK).astype(np.int64)

    def _among(self, u: Floats, x: Floats) -> Floats:
        m, first, last, columns = len(u), u[0], u[-1], np.arange(u.shape[1])
        less, up_to = (u < x[..., None, :]).sum(axis=-2), (u <= x[..., None, :]).sum(axis=-2)  # knots below x, up to x
        below, above = u[np.maximum(less - 1, 0), columns], u[np.minimum(less, m - 1), columns]
        ranks = np.rint((x - below) / (above - below) * (2 * RANK_STEP)) + (2 * less - 1) * RANK_STEP
        ranks = np.where(less < up_to, (less + up_to) * RANK_STEP, ranks)  # where x is a knot
        low, high = (u == first).sum(axis=0) * RANK_STEP, ((u < last).sum(axis=0) + m) * RANK_STEP
        ranks = np.where(x < first, low - self._outside(first - x, last - first), ranks)
        ranks = np.where(x > last, high + self._outside(x - last, last - first), ranks)
        result: Floats = np.where(first == last, (np.sign(x - first) + 1.0) * (self.one // 2), ranks)
        return result

    def _outside(self, distance: Floats, span: Floats | float) -> Floats:
        """Convert a distance beyond the knots to ranks; the caller clips to FARTHEST_RANK."""
        return np.rint(np.clip(distance / span, -4096.0, 4096.0) * self.one)


@dataclass
class Traits:
    """The traits that are correlated with labels: numeric features and nominal values.

    A node's rank in a trait is the rank of its numeric value; for a nominal value, it is `one` if the node has that
    value, else 0. Sums skip missing values, and consist of Python integers, which cannot overflow.
    """

    ranks: Integers  # one row per node
    known: Any
    counts: Integers  # number of rows of each node

    def __post_init__(self) -> None:
        ranks = self.ranks.astype(object)
        self.n, self.sums = self.total(self.counts)
        self.variances = self.n * (self.counts.astype(object) @ (ranks * ranks)) - self.sums * self.sums  # times n^2

    def total(self, rows: Integers) -> tuple[Any, Any]:
        """Return, for each trait, the number of rows with a value, and the sum of their ranks."""
        return (rows @ self.known).astype(object), (rows @ self.ranks).astype(object)


class Background:
    """A centred linear score of one label's strongest traits, with its standard deviation."""

    def __init__(self, traits: Traits, slopes: Floats) -> None:
        n = int(traits.counts.sum())
        # The spread is scaled by n / traits.n, so that traits with missing values have the same scale as others.
        spread = np.sqrt(traits.variances.astype(float)) * (n / np.maximum(traits.n, 1)).astype(float)
        sizes = np.abs(slopes) * spread * (traits.n > 0)
        least = np.sort(sizes)[-TOP] if len(sizes) > TOP else 0.0
        self.kept = np.flatnonzero((sizes >= least) & (slopes != 0))
        largest = np.abs(slopes[self.kept]).max(initial=0.0)
        shift = 31 - len(self.kept).bit_length() - math.frexp(largest)[1]
        self.coefficients = np.rint(np.ldexp(slopes[self.kept], shift)).astype(np.int64)
        products, rows = self.coefficients.astype(object) * traits.sums[self.kept], traits.n[self.kept]
        # A missing value is replaced by the mean of the others.
        self.means = np.array([rounded(*of) for of in zip(products, rows, strict=True)], np.int64)
        everywhere = (rows == n).astype(bool)
        self.centre = rounded(int(products[everywhere].sum()), n) + int(self.means[~everywhere].sum())
        coarse = (self.score(traits.ranks, traits.known) >> 22).astype(object)
        self.squares = int(traits.counts.astype(object) @ (coarse * coarse))
        self.deviation = math.sqrt(float(self.squares) / n) * 2.0**22

    def score(self, ranks: Integers, known: Any) -> Integers:
        """Return the scores of rows, from their ranks in every trait."""
        terms = np.where(known[..., self.kept], self.coefficients * ranks[..., self.kept], self.means)
        score: Integers = terms.sum(axis=-1) - self.centre
        return score


class LearnedSimilarity:
    """The similarity learned from a set of nodes: ranks, weights, background, distances."""

    def __init__(self, nodes: Sequence[Node], nominal: Collection[int] = ()) -> None:
        Y, d, counts = np.array([node.y for node in nodes]), len(nodes[0].y), np.array([node.alpha for node in nodes])
        self.nominal = np.isin(np.arange(d), list(nominal))
        numbers = Y[:, ~self.nominal]
        numbers = numbers[~np.isnan(numbers)]
        self.binary = bool(((numbers == 0.0) | (numbers == 1.0)).all())
        self.sparse = 2 * int((numbers == 0.0).sum()) > numbers.size  # more than half of the values are zero
        self.ranks = FeatureRanks(self._numbers(Y), self.binary)
        self.one = self.ranks.one
        # Two categories differ by 1 if all values are 0 or 1, otherwise by enough to make the kernel 0. Rows that
        # differ in this way in every feature have nothing in common: their distance is `far`.
        self.apart = BINARY_ONE if self.binary else 4 * self.one
        self.far = round(PER_KEY * float(1.0 - self._kernel(np.array([self.apart]))[0]))
        self.weights = np.full(d, rounded(WHOLE_WEIGHT, d))
        self.middles = np.zeros(0) if self.binary or self.sparse else self._middles(Y, counts)
        self.traits: list[tuple[int, float | None]] = []
        self.background: dict[int, Background] | None = None  # by slot
        if len(nodes) >= WEIGH_FROM and any(slot != NONE for node in nodes for slot in node.beta):
            self._learn(Y, counts, nodes)

    def _numbers(self, X: Floats) -> Floats:
        """Return rows with 0 for nominal values."""
        return np.where(self.nominal, 0.0, X)

    def distances(self, x: Floats, nodes: Sequence[Node]) -> Distances:
        """Return a row's distances to nodes: the weighted mean of 1 - kernel over known features."""
        if not nodes:
            return Distances([], float(PER_KEY), self.far, squared=True)
        Y = np.array([node.y for node in nodes])
        both = ~(np.isnan(x) | np.isnan(Y))
        difference = self.ranks(self._numbers(x)) - self.ranks(self._numbers(Y))
        difference = np.where(self.nominal, (x != Y) * self.apart, difference)
        terms = self.weights * 2.0**-50 * (1.0 - self._kernel(difference))
        above = ((((6.0 + terms) - 6.0) * 2.0**50) * both).astype(np.int64).sum(axis=1)  # adding 6 rounds to 2^-50
        # With sparse rows, features that are zero in both rows do not count as agreement.
        counted = both & ((x != 0.0) | (Y != 0.0) | self.nominal) if self.sparse else both
        below = (self.weights * counted).sum(axis=1)
        # Two rows of zeros are equal; rows without a feature known in both have nothing in common.
        nothing = np.where(both.any(axis=1), 0, self.far)
        keys = np.where(below > 0, np.rint(above / np.maximum(below, 1) * float(PER_KEY)), nothing)
        return Distances(keys.astype(np.int64).tolist(), float(PER_KEY), self.far, squared=True)

    def _kernel(self, difference: Integers) -> Floats:
        z = difference * (SCALE / WIDTH / self.one)
        return power_of_half(z * z)

    def in_traits(self, X: Floats) -> tuple[Integers, Any]:
        """Return the ranks of rows in every trait, and a mask of the ranks that are known."""
        features = [j for j, _ in self.traits]
        values = np.array([0.0 if value is None else value for _, value in self.traits])
        ranks, has = self.ranks(self._numbers(X))[..., features], X[..., features] == values
        return np.where(self.nominal[features], self.one * has, ranks), ~np.isnan(X[..., features])

    def _learn(self, Y: Floats, counts: Integers, nodes: Sequence[Node]) -> None:
        """Weight each feature by its largest squared label correlation, shrunk for few rows."""
        d = Y.shape[1]
        for j in range(d):
            values = np.unique(Y[~np.isnan(Y[:, j]), j]).tolist() if self.nominal[j] else [None]
            self.traits += [(j, value) for value in values]
        traits = Traits(*self.in_traits(Y), counts)
        n, features = traits.n, [j for j, _ in self.traits]
        spreads = (traits.variances + 3 * n * (self.one // 2) ** 2).astype(float)
        r, self.background = np.zeros(d, np.int64), {}
        for slot in sorted({NONE}.union(*(node.beta for node in nodes))):
            rows, sums = traits.total(np.array([node.beta.get(slot, 0) for node in nodes]))
            covariances = (n * sums - traits.sums * rows).astype(float)
            slopes = np.where(n > 0, covariances / np.where(n > 0, spreads, 1.0), 0.0)
            if slot != NONE:
                squared = slopes * (covariances / np.maximum(rows * (n - rows) + 3 * n, 1).astype(float))
                np.maximum.at(r, features, np.rint(squared * 2.0**40).astype(np.int64))
            background = Background(traits, slopes)
            if background.squares > 0:
                self.background[slot] = background
        total = int(r.sum())
        if total > 0:  # half of the weight is shared evenly, half by correlation
            self.weights = np.array([rounded(WHOLE_WEIGHT * (total + of * d), 2 * d * total) for of in r.tolist()])

    def _middles(self, Y: Floats, counts: Integers) -> Floats:
        """Return each numeric feature's mean rank over the rows with a value."""
        known = ~np.isnan(Y) & ~self.nominal
        n, sums = counts @ known, counts @ (self.ranks.from_lowest(np.where(known, Y, 0.0)) * known)
        middles: Floats = np.where(n > 0, sums / np.maximum(n, 1), float(self.one // 2))
        return middles

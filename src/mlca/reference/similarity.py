"""The learned similarity: ranks, weights from correlations with labels, and a linear background score per label.

It is a function of the nodes alone, recomputed after certain numbers of rows (`due_after`). Every sum whose order could
matter is a sum of whole numbers; d <= 2^22 features and n <= 2^40 rows keep all of them within 64 or 128 bits:

=====================  ==========================================  ====================================================
number                 unit                                        bound
=====================  ==========================================  ====================================================
rank of a value        1 / (m 2^18), m <= 17 knots; 2^-22 binary   2^29; 34 * 2^17 < 2^22.1 for nodes when recomputed
sum of count * rank    the same                                    n * 2^22.1 < 2^62.1
sum of count * rank^2  its square                                  n * 2^44.2 < 2^84.2
variance * n^2         its square                                  n * 2^84.2 < 2^124.2
covariance * n^2       the same                                    n * 2^62.1 < 2^102.1
squared correlation    2^-40                                       1 each (Cauchy-Schwarz), d * 2^40 <= 2^62 in all
weight                 2^-50                                       about 2^50 in all: each is rounded once, 2^50 + d/2
term of D              2^-50                                       the feature's weight, so 2^50 + d/2 in all
D                      10^-7                                       10^7
coefficient            a power of two, the label's own             2^31 in all
score                  coefficient * rank                          2^31 * 2^30 = 2^61
score of a node^2      2^44 of them                                2^62.2 each, n * 2^62.2
=====================  ==========================================  ====================================================

Only differences of ranks matter, so the rank of 0 is subtracted from all, which keeps sparse rows sparse.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np

from mlca.reference.arithmetic import SCALE, Floats, Integers, power_of_half, rounded
from mlca.reference.paper import NONE, Distances, Node

MOST_KNOTS = 17
RANK_STEP = 2**17  # half the distance between two knots
BINARY_ONE = 2**22  # the rank of 1 where all node values are 0 or 1
FARTHEST_RANK = 2**29
LARGEST_VALUE = 2.0**1000  # differences of such values are finite
WIDTH = 0.289  # of the kernel on ranks: the deviation of a uniform distribution
WHOLE_WEIGHT = 2**50
PER_KEY = 10**7  # distances are compared to seven decimals
WEIGH_FROM = 20  # with fewer nodes, all features have the same weight
TOP = 32  # number of traits in the background score of a label
OFTEN_UNTIL = 50  # the similarity is recomputed after each of the first 50 rows


def due_after(rows: int) -> int:
    """Return the number of rows after which the similarity is recomputed next, after `rows`."""
    return rows + 1 if rows < OFTEN_UNTIL else rows + rows // 4


# ------------------------------------------------------------------ ranks


def knots_of(column: Floats) -> list[float]:
    """Return the knots of the ranks: evenly spaced quantiles of the values, one per node, at most 17."""
    values, n = sorted((column[~np.isnan(column)] + 0.0).tolist()) or [0.0], min(len(column), MOST_KNOTS)
    if n == 1:
        return values
    return [values[round(Fraction(i * (len(values) - 1), n - 1))] for i in range(n)]  # halves to even


class FeatureRanks:
    """The rank of a value among the nodes' values of one feature, minus the rank of 0, as a whole number."""

    def __init__(self, knots: list[float] | None) -> None:
        self.knots = knots  # None: all node values are 0 or 1, and ranks are the values
        self.one = BINARY_ONE if knots is None else 2 * len(knots) * RANK_STEP
        self.zero = self.from_lowest(0.0)

    def __call__(self, x: float) -> int:
        """Return the rank of a value."""
        return self.from_lowest(x) - self.zero if x else 0

    def from_lowest(self, x: float) -> int:
        """Return the rank without subtracting that of 0: the knots have ranks from 0 to `one`."""
        x = min(max(x, -LARGEST_VALUE), LARGEST_VALUE)
        rank = self._outside(x, 1.0) if self.knots is None else self._among(self.knots, x)
        return min(max(rank, -FARTHEST_RANK), FARTHEST_RANK)

    def _among(self, u: list[float], x: float) -> int:
        first, last, less, up_to = u[0], u[-1], bisect_left(u, x), bisect_right(u, x)
        if first == last:
            return 0 if x < first else self.one if x > first else self.one // 2
        if x < first:
            return bisect_right(u, first) * RANK_STEP - self._outside(first - x, last - first)
        if x > last:
            return (bisect_left(u, last) + len(u)) * RANK_STEP + self._outside(x - last, last - first)
        if less < up_to:  # x is a knot
            return (less + up_to) * RANK_STEP
        below, above = u[less - 1], u[less]
        return (2 * less - 1) * RANK_STEP + round((x - below) / (above - below) * (2 * RANK_STEP))

    def _outside(self, distance: float, span: float) -> int:
        if abs(distance) >= 4096.0 * span:  # beyond FARTHEST_RANK; the quotient might not be finite
            return FARTHEST_RANK * 2 if distance > 0 else -FARTHEST_RANK * 2
        return round(distance / span * self.one)


# ------------------------------------------------------------------ what correlates with labels


class Trait:
    """The ranks of a feature at all nodes; for one value of a nominal feature, whether each node has it.

    Sums are over the nodes that have a value of the feature.
    """

    def __init__(self, feature: int, value: float | None, ranks: Integers, known: Integers, counts: Integers) -> None:
        self.feature, self.value = feature, value
        self.ranks, self.known = ranks, known
        self.n = int(counts @ known)
        self.sum = int(counts @ ranks)
        squares = sum(c * r * r for c, r in zip(counts.tolist(), ranks.tolist(), strict=True))
        self.variance = self.n * squares - self.sum * self.sum  # times n^2

    def mean(self, coefficient: int) -> int:
        """Return what a coefficient of this trait adds to a score on average."""
        return rounded(coefficient * self.sum, self.n)


class Background:
    """A linear score of one label: its strongest traits, centred, and the deviation of the score over the nodes."""

    def __init__(
        self, traits: list[Trait], slopes: list[float], counts: list[int], of_nodes: Sequence[Sequence[int | None]]
    ) -> None:
        n = sum(counts)
        # The scale is the same for traits that fewer rows have.
        sizes = [
            abs(slope) * (math.sqrt(float(trait.variance)) * (n / trait.n)) if trait.n else 0.0
            for slope, trait in zip(slopes, traits, strict=True)
        ]
        least = sorted(sizes)[-TOP] if len(sizes) > TOP else 0.0
        kept = [t for t, size in enumerate(sizes) if size >= least and slopes[t] != 0]
        shift = 31 - len(kept).bit_length() - math.frexp(max((abs(slopes[t]) for t in kept), default=0.0))[1]
        self.coefficients = {t: round(math.ldexp(slopes[t], shift)) for t in kept}  # trait number -> coefficient
        # A missing value is replaced by the mean of the others.
        self.means = {t: traits[t].mean(b) for t, b in self.coefficients.items()}
        complete = {t: b for t, b in self.coefficients.items() if traits[t].n == n}
        self.centre = rounded(sum(b * traits[t].sum for t, b in complete.items()), n)
        self.centre += sum(mean for t, mean in self.means.items() if t not in complete)
        self.squares = 0
        for count, of_traits in zip(counts, of_nodes, strict=True):
            coarse = self.score(of_traits) >> 22
            self.squares += count * coarse * coarse
        self.deviation = math.sqrt(float(self.squares) / n) * 2.0**22

    def score(self, of_traits: Sequence[int | None]) -> int:
        """Return the score of a row, from its rank in every trait."""
        ranks = ((of_traits[t], t, b) for t, b in self.coefficients.items())
        return sum(self.means[t] if rank is None else b * rank for rank, t, b in ranks) - self.centre


# ------------------------------------------------------------------ the similarity


class LearnedSimilarity:
    """FeatureRanks, weights and backgrounds of a set of nodes, and distances from these nodes."""

    def __init__(self, nodes: Sequence[Node], nominal: Collection[int] = ()) -> None:
        Y, self.nominal = np.array([node.y for node in nodes]), sorted(nominal)
        numbers = np.delete(Y, self.nominal, axis=1)
        numbers = numbers[~np.isnan(numbers)]
        self.binary = bool(((numbers == 0.0) | (numbers == 1.0)).all())
        self.sparse = 2 * int((numbers == 0.0).sum()) > numbers.size  # more than half of the values are zero
        columns = [np.zeros(len(Y)) if j in self.nominal else column for j, column in enumerate(Y.T)]
        self.ranks = [FeatureRanks(None if self.binary else knots_of(column)) for column in columns]
        self.one = self.ranks[0].one
        # Two categories differ by 1 if all values are 0 or 1, otherwise by enough to make the kernel 0. Rows that
        # differ in this way in every feature have nothing in common: their distance is `far`.
        self.apart = BINARY_ONE if self.binary else 4 * self.one
        self.far = round(PER_KEY * float(1.0 - self._kernel(np.array([self.apart]))[0]))
        d = Y.shape[1]
        self.weights = np.full(d, rounded(WHOLE_WEIGHT, d))
        self.middles = [] if self.binary or self.sparse else self._middles_of(Y, [node.alpha for node in nodes])
        self.traits: list[Trait] = []
        self.background: dict[int, Background] | None = None  # slot -> its score
        self._ranked: dict[
            int, tuple[Floats, Integers]
        ] = {}  # node -> its weight and ranks, which every row is compared with
        if len(nodes) >= WEIGH_FROM and any(slot != NONE for node in nodes for slot in node.beta):
            self._learn(Y, nodes)

    def rank(self, x: Floats) -> Integers:
        """Return the ranks of a row; 0 where a value is missing or nominal."""
        values = np.where(np.isnan(x), 0.0, x)
        values[self.nominal] = 0.0
        return np.array([rank(v) for rank, v in zip(self.ranks, values.tolist(), strict=True)])

    def in_traits(self, x: Floats) -> list[int | None]:
        """Return a row's rank in every trait; None where its value is missing."""
        ranks, values, missing = self.rank(x).tolist(), x.tolist(), np.isnan(x).tolist()
        return [
            None if missing[j] else ranks[j] if value is None else self.one * (values[j] == value)
            for j, value in ((trait.feature, trait.value) for trait in self.traits)
        ]

    def distances(self, x: Floats, nodes: Sequence[Node]) -> Distances:
        """Return D of a row and every node: the weighted mean of 1 - kernel over the features that both have."""
        if not nodes:
            return Distances([], float(PER_KEY), self.far, squared=True)
        for k, node in enumerate(nodes):
            if self._ranked.get(k, (None,))[0] is not node.y:
                self._ranked[k] = node.y, self.rank(node.y)
        Y, S = np.array([node.y for node in nodes]), np.array([self._ranked[k][1] for k in range(len(nodes))])
        both = ~(np.isnan(x) | np.isnan(Y))
        difference = self.rank(x) - S
        difference[:, self.nominal] = (x != Y)[:, self.nominal] * self.apart
        terms = self.weights * 2.0**-50 * (1.0 - self._kernel(difference))
        above = ((((6.0 + terms) - 6.0) * 2.0**50) * both).astype(np.int64).sum(axis=1)  # adding 6 rounds to 2^-50
        counted = both.copy()
        if self.sparse:  # features that are zero in both rows do not count as agreement
            counted &= (x != 0.0) | (Y != 0.0) | np.isin(np.arange(len(x)), self.nominal)
        below = (self.weights * counted).sum(axis=1)
        # Rows of zeros are equal; rows that share no feature have nothing in common.
        nothing = np.where(both.any(axis=1), 0, self.far)
        keys = np.where(below > 0, np.rint(above / np.maximum(below, 1) * float(PER_KEY)), nothing)
        return Distances(keys.astype(np.int64).tolist(), float(PER_KEY), self.far, squared=True)

    def _kernel(self, difference: Integers) -> Floats:
        z = difference * (SCALE / WIDTH / self.one)
        return power_of_half(z * z)

    def _learn(self, Y: Floats, nodes: Sequence[Node]) -> None:
        """Weigh each feature by its largest squared correlation with a label, shrunk towards 0 for few rows."""
        d, counts = Y.shape[1], [node.alpha for node in nodes]
        self.traits = self._traits_of(Y, np.array(counts))
        of_nodes = [self.in_traits(y) for y in Y]
        correlations, self.background = [0] * d, {}
        for slot in sorted({NONE}.union(*(node.beta for node in nodes))):
            own = np.array([node.beta.get(slot, 0) for node in nodes])
            slopes = []
            for trait in self.traits:
                n, rows = trait.n, int(own @ trait.known)
                covariance = float(n * int(own @ trait.ranks) - trait.sum * rows)
                spread = float(trait.variance + 3 * n * (self.one // 2) ** 2)
                slopes.append(covariance / spread if n else 0.0)
                if slot != NONE and n:
                    squared = slopes[-1] * (covariance / float(rows * (n - rows) + 3 * n))
                    correlations[trait.feature] = max(correlations[trait.feature], round(squared * 2.0**40))
            background = Background(self.traits, slopes, counts, of_nodes)
            if background.squares > 0:
                self.background[slot] = background
        together = sum(correlations)
        if together > 0:  # half of the weight is shared evenly, half by correlation
            self.weights = np.array(
                [rounded(WHOLE_WEIGHT * (together + r * d), 2 * d * together) for r in correlations]
            )

    def _middles_of(self, Y: Floats, counts: list[int]) -> list[float]:
        """Return the mean rank, from the lowest, of each numeric feature over the rows that have a value."""
        middles = []
        for j, column in enumerate(Y.T.tolist()):
            known = [(c, v) for c, v in zip(counts, column, strict=True) if v == v and j not in self.nominal]
            together, n = sum(c * self.ranks[j].from_lowest(v) for c, v in known), sum(c for c, _ in known)
            middles.append(float(together) / float(n) if known else float(self.one // 2))
        return middles

    def _traits_of(self, Y: Floats, counts: Integers) -> list[Trait]:
        ranks, traits = np.array([self.rank(y) for y in Y]), []
        for j, column in enumerate(Y.T):
            known = (~np.isnan(column)).astype(np.int64)
            if j not in self.nominal:
                traits.append(Trait(j, None, ranks[:, j], known, counts))
                continue
            values = np.unique(column[known == 1]).tolist()
            traits += [Trait(j, value, (column == value) * np.int64(self.one), known, counts) for value in values]
        return traits

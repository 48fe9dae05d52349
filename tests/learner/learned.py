"""The learned similarity in plain Python, and the units of everything that spec/beyond.md adds up.

What is a floating-point sum in the specification and could depend on an order is a sum of whole numbers here:

=====================  ==========================================  ====================================================
number                 unit                                        bound (d <= 2^22 attributes, n <= 2^40 rows)
=====================  ==========================================  ====================================================
rank of a value        1 / (m 2^18), m <= 17 knots; 2^-22 binary   2^29; 34 * 2^17 < 2^22.1 for nodes when recomputed
sum of count * rank    the same                                    n * 2^22.1 < 2^62.1
sum of count * rank^2  its square                                  n * 2^44.2 < 2^84.2 (128 bits)
variance * n^2         its square                                  n * 2^84.2 < 2^124.2 (128 bits)
covariance * n^2       the same                                    n * 2^62.1 < 2^102.1 (128 bits)
squared correlation    2^-40                                       1 each (Cauchy-Schwarz), d * 2^40 <= 2^62 in all
weight                 2^-50                                       about 2^50 in all: each is rounded once, 2^50 + d/2
term of D              2^-50                                       the attribute's weight, so 2^50 + d/2 in all
D                      10^-7                                       10^7
coefficient            a power of two, the label's own             2^31 in all
score                  coefficient * rank                          2^31 * 2^30 = 2^61
score of a node^2      2^44 of them                                2^62.2 each, n * 2^62.2 (128 bits)
calibration counter    2^-20                                       n * 2^20 <= 2^60
log-likelihood         2^-32                                       7 * 2^32 a label, 2^28 labels
=====================  ==========================================  ====================================================

So a sum does not depend on whether attributes come dense or sparse, in which order, or to how many threads. Only
differences of ranks enter: a whole number subtracted from all ranks of an attribute changes no bit of anything. Here it
is the rank of 0, which makes sparse rows sparse; for the bounds of the sums over nodes it may be any rank between the
smallest and the largest node. A quotient is that of two whole numbers, rounded once. What is left to floating point
are functions of one attribute, and sums whose order is defined: over the voters, nearest first, and over time.

Labels have slots: 0 is the pseudo-label "none" of rows without labels, label i has slot i + 1.

What correlates with labels are traits: an attribute's ranks, or, of a nominal attribute, one of its values (rank `one`
where the node has it, else 0). All sums of a trait are over the nodes that have a value at all (docs/mixed.md).
"""

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

from tests.learner.reference import SCALE, is_missing, power_of_half, present, rounded

NONE = 0
RANK_STEP = 2**17  # half a knot
BINARY_ONE = 2**22
FARTHEST_RANK = 2**29
LARGEST_VALUE = 2.0**1000  # differences of such values are finite
WIDTH = 0.289
WHOLE_WEIGHT = 2**50
WEIGH_FROM = 20
TOP = 32


def knots_of(column):
    """Return the values that ranks are measured by, evenly spread over those present: one a node, 17 at most."""
    values, n = sorted(v + 0.0 for v in present(column)) or [0.0], min(len(column), 17)
    if n == 1:
        return values
    return [values[round(Fraction(i * (len(values) - 1), n - 1))] for i in range(n)]  # halves to even


class Ranks:
    """The rank of a value among one attribute's knots less that of 0, as a whole number of steps."""

    def __init__(self, knots):
        self.knots = knots  # None: all nodes are 0 or 1
        self.one = BINARY_ONE if knots is None else 2 * len(knots) * RANK_STEP
        self.zero = self.limited(0.0)

    def __call__(self, x):
        return self.limited(x) - self.zero if x else 0

    def limited(self, x):
        x = min(max(x, -LARGEST_VALUE), LARGEST_VALUE)
        rank = self.beyond(x, 1.0) if self.knots is None else self.among_knots(x)
        return min(max(rank, -FARTHEST_RANK), FARTHEST_RANK)

    def among_knots(self, x):
        u, first, last = self.knots, self.knots[0], self.knots[-1]
        less, up_to = bisect_left(u, x), bisect_right(u, x)
        if first == last:
            return 0 if x < first else self.one if x > first else self.one // 2
        if x < first:
            return bisect_right(u, first) * RANK_STEP - self.beyond(first - x, last - first)
        if x > last:
            return (bisect_left(u, last) + len(u)) * RANK_STEP + self.beyond(x - last, last - first)
        if less < up_to:
            return (less + up_to) * RANK_STEP
        below, above = u[less - 1], u[less]
        return (2 * less - 1) * RANK_STEP + round((x - below) / (above - below) * (2 * RANK_STEP))

    def beyond(self, gap, span):
        if abs(gap) >= 4096.0 * span:  # beyond FARTHEST_RANK; the quotient might not be finite
            return FARTHEST_RANK * 2 if gap > 0 else -FARTHEST_RANK * 2
        return round(gap / span * self.one)


class Trait:
    """What an attribute says of nodes: their ranks, or whether they have `value` where it is nominal."""

    def __init__(self, attribute, value, ranks, column, counts):
        self.attribute, self.value, self.ranks = attribute, value, ranks
        self.absent = {k for k, v in enumerate(column) if is_missing(v)}
        self.n = sum(counts) - sum(counts[k] for k in self.absent)
        self.sum = sum(counts[k] * r for k, r in ranks.items())
        self.variance = self.n * sum(counts[k] * r * r for k, r in ranks.items()) - self.sum * self.sum

    def spread(self, one):
        return float(self.variance + 3 * self.n * (one // 2) ** 2)

    def rows(self, own):
        """Return how many of a label's rows have a value; `own` is node -> rows."""
        return sum(own.values()) - sum(own.get(k, 0) for k in self.absent)

    def covariance(self, own):
        return float(self.n * sum(own[k] * r for k, r in self.ranks.items() if k in own) - self.sum * self.rows(own))

    def rank_of(self, ranks):
        """Return the rank in a row of ranks, None if there is no value."""
        rank = ranks[self.attribute]
        return rank if self.value is None or rank is None else rank.one * (rank.value == self.value)


class Category:
    """A nominal value in the place of a rank."""

    def __init__(self, value, one):
        self.value, self.one = value, one


class Similarity:
    """Ranks, weights and background, from the nodes' weights, counts and label counts (slot -> rows)."""

    def __init__(self, nodes, counts, labels, nominal=()):
        d = len(nodes[0])
        self.nominal = frozenset(nominal)
        columns = list(zip(*nodes, strict=True))
        values = [v for j, column in enumerate(columns) if j not in self.nominal for v in present(column)]
        self.binary = all(v in (0.0, 1.0) for v in values)
        self.sparse = 2 * sum(v == 0 for v in values) > len(values)
        self.ranks = [
            Ranks(None if self.binary else knots_of([0.0] * len(nodes) if j in self.nominal else column))
            for j, column in enumerate(columns)
        ]
        self.one = self.ranks[0].one
        self.r = SCALE / WIDTH / self.one
        self.ranked = {}  # values of nodes meet every row
        # Two categories differ as much as any two values can: by 1 where all are 0 or 1, else so that the kernel is 0.
        # Rows that differ like that everywhere have nothing in common.
        self.apart = BINARY_ONE if self.binary else 4 * self.one
        self.far = round(1e7 * (1.0 - power_of_half((self.apart * self.r) ** 2)))
        self.weights = [rounded(WHOLE_WEIGHT, d)] * d
        self.background = None
        if len(nodes) >= WEIGH_FROM and any(slot != NONE for own in labels for slot in own):
            self.learn(columns, counts, labels)

    def traits(self, columns, counts):
        result = []
        for j, column in enumerate(columns):
            if j not in self.nominal:
                ranks = {k: self.ranks[j](v) for k, v in enumerate(column) if v and not is_missing(v)}
                result.append(Trait(j, None, ranks, column, counts))
                continue
            for value in sorted(set(present(column))):
                ranks = {k: self.one for k, v in enumerate(column) if v == value}
                result.append(Trait(j, value, ranks, column, counts))
        return result

    def learn(self, columns, counts, labels):
        d, traits = len(columns), self.traits(columns, counts)
        correlations, self.background = [0] * d, {}
        for slot in sorted({NONE}.union(*labels)):
            own = {k: of[slot] for k, of in enumerate(labels) if slot in of}
            slopes = []
            for trait in traits:
                cov, spread, rows = trait.covariance(own), trait.spread(self.one), trait.rows(own)
                slopes.append(cov / spread if trait.n else 0.0)
                if slot != NONE and trait.n:
                    squared = slopes[-1] * (cov / float(rows * (trait.n - rows) + 3 * trait.n))
                    correlations[trait.attribute] = max(correlations[trait.attribute], round(squared * 2.0**40))
            background = Background(traits, slopes, counts)
            if background.squares > 0:
                self.background[slot] = background
        together = sum(correlations)
        if together > 0:
            self.weights = [rounded(WHOLE_WEIGHT * (together + r * d), 2 * d * together) for r in correlations]

    def row(self, x):
        """Return the ranks of a row, a Category where the attribute is nominal, None where there is no value."""
        return [
            None if is_missing(v) else Category(v, self.one) if j in self.nominal else self.ranks[j](v)
            for j, v in enumerate(x)
        ]

    def key(self, x, x_ranks, k, y):
        """Return D of a row and node k in units of 10^-7."""
        if self.ranked.get(k, (None,))[0] is not y:
            self.ranked[k] = y, self.row(y)
        above = below = compared = 0
        for j, (r, s, weight) in enumerate(zip(x_ranks, self.ranked[k][1], self.weights, strict=True)):
            if r is None or s is None:
                continue
            compared += 1
            if j in self.nominal:
                below += weight
                above += self.term(self.apart, weight) if x[j] != y[j] else 0
                continue
            if not self.sparse or x[j] != 0 or y[j] != 0:
                below += weight
            if r != s:
                above += self.term(r - s, weight)
        if below == 0:  # rows of zeros are equal; rows without a common attribute have nothing in common
            return 0 if compared else self.far
        return round(above / below * 1e7)

    def term(self, difference, weight):
        z = difference * self.r
        term = weight * 2.0**-50 * (1.0 - power_of_half(z * z))
        return int(((6.0 + term) - 6.0) * 2.0**50)


class Background:
    """One linear score of a label: coefficients of its strongest traits, centred, and the score's deviation."""

    def __init__(self, traits, slopes, counts):
        n = sum(counts)
        # Traits of which fewer rows have a value are measured on the same scale.
        sizes = [
            abs(b) * (math.sqrt(float(trait.variance)) * (n / trait.n)) if trait.n else 0.0
            for b, trait in zip(slopes, traits, strict=True)
        ]
        least = sorted(sizes)[-TOP] if len(sizes) > TOP else 0.0
        kept = [t for t, size in enumerate(sizes) if size >= least and slopes[t] != 0]
        self.squares = 0
        if not kept:
            return
        largest = max(abs(slopes[t]) for t in kept)
        shift = 31 - len(kept).bit_length() - math.frexp(largest)[1]
        self.coefficients = [(traits[t], round(math.ldexp(slopes[t], shift))) for t in kept]
        # Where a row has no value it is taken to have the mean of those that have one.
        self.means = [rounded(b * trait.sum, trait.n) for trait, b in self.coefficients]
        whole = [(trait, b) for trait, b in self.coefficients if trait.n == n]
        self.centre = rounded(sum(b * trait.sum for trait, b in whole), n)
        self.centre += sum(m for m, (trait, _) in zip(self.means, self.coefficients, strict=True) if trait.n < n)
        for k, count in enumerate(counts):
            coarse = (
                self.sum(None if k in trait.absent else trait.ranks.get(k, 0) for trait, _ in self.coefficients) >> 22
            )
            self.squares += count * coarse * coarse
        self.deviation = math.sqrt(float(self.squares) / n) * 2.0**22

    def sum(self, ranks):
        terms = zip(ranks, self.coefficients, self.means, strict=True)
        return sum(mean if rank is None else b * rank for rank, (_, b), mean in terms) - self.centre

    def score(self, ranks):
        return self.sum(trait.rank_of(ranks) for trait, _ in self.coefficients)


def due_after(rows):
    """Return after how many rows the similarity is computed anew, if it was after `rows`."""
    return rows + 1 if rows < 50 else rows + rows // 4

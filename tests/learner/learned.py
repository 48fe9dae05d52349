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
"""

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

from tests.learner.elementary import rounded
from tests.learner.reference import SCALE, power_of_half

NONE = 0
RANK_STEP = 2**17  # half a knot
BINARY_ONE = 2**22
FARTHEST_RANK = 2**29
LARGEST_VALUE = 2.0**1000  # differences of such values are finite
WIDTH = 0.289
WHOLE_WEIGHT = 2**50
WEIGH_FROM = 20
TOP = 32


def knots_of(values):
    """Return the node values that ranks are measured by: 17 of them, evenly spread, or all."""
    values, last = sorted(v + 0.0 for v in values), len(values) - 1
    if last < 17:
        return values
    return [values[round(Fraction(i * last, 16))] for i in range(17)]  # halves to even


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


class Similarity:
    """Ranks, weights and background, from the nodes' weights, counts and label counts (slot -> rows)."""

    def __init__(self, nodes, counts, labels):
        d = len(nodes[0])
        values = [v for y in nodes for v in y]
        binary = all(v in (0.0, 1.0) for v in values)
        self.sparse = 2 * sum(v == 0 for v in values) > len(values)
        columns = list(zip(*nodes, strict=True))
        self.ranks = [Ranks(None if binary else knots_of(column)) for column in columns]
        self.r = SCALE / WIDTH / self.ranks[0].one
        self.ranked = {}  # values of nodes meet every row
        # The key of rows that have nothing in common: their kernels are 0, or that of 0 and 1 where all are 0 or 1.
        self.far = round(1e7 * (1.0 - power_of_half((BINARY_ONE * self.r) ** 2))) if binary else 10**7
        self.weights = [rounded(WHOLE_WEIGHT, d)] * d
        self.background = None
        if len(nodes) >= WEIGH_FROM and any(slot != NONE for own in labels for slot in own):
            self.learn(columns, counts, labels)
        self.total = sum(self.weights)

    def learn(self, columns, counts, labels):
        d, n = len(columns), sum(counts)
        ranks = [
            {k: rank(v) for k, v in enumerate(column) if v} for rank, column in zip(self.ranks, columns, strict=True)
        ]
        sums = [sum(counts[k] * r for k, r in column.items()) for column in ranks]
        variances = [
            n * sum(counts[k] * r * r for k, r in column.items()) - s * s for column, s in zip(ranks, sums, strict=True)
        ]
        spreads = [float(v + 3 * n * (rank.one // 2) ** 2) for v, rank in zip(variances, self.ranks, strict=True)]
        correlations, self.background = [0] * d, {}
        for slot in sorted({NONE}.union(*labels)):
            own = {k: of[slot] for k, of in enumerate(labels) if slot in of}
            rows = sum(own.values())
            label_spread = float(rows * (n - rows) + 3 * n)
            covariances = [
                float(n * sum(own[k] * r for k, r in column.items() if k in own) - s * rows)
                for column, s in zip(ranks, sums, strict=True)
            ]
            slopes = [cov / spread for cov, spread in zip(covariances, spreads, strict=True)]
            if slot != NONE:
                squared = [slope * (cov / label_spread) for slope, cov in zip(slopes, covariances, strict=True)]
                correlations = [max(old, round(r * 2.0**40)) for old, r in zip(correlations, squared, strict=True)]
            sizes = [abs(b) * math.sqrt(float(v)) for b, v in zip(slopes, variances, strict=True)]
            background = Background(slopes, sizes, ranks, sums, counts, n)
            if background.squares > 0:
                self.background[slot] = background
        together = sum(correlations)
        if together > 0:
            self.weights = [rounded(WHOLE_WEIGHT * (together + r * d), 2 * d * together) for r in correlations]

    def row(self, x):
        """Return the ranks of a row."""
        return [rank(v) for rank, v in zip(self.ranks, x, strict=True)]

    def key(self, x, x_ranks, k, y):
        """Return D of a row and node k in units of 10^-7."""
        if self.ranked.get(k, (None,))[0] is not y:
            self.ranked[k] = y, self.row(y)
        above, below = 0, 0 if self.sparse else self.total
        for a, b, r, s, weight in zip(x, y, x_ranks, self.ranked[k][1], self.weights, strict=True):
            if self.sparse and (a != 0 or b != 0):
                below += weight
            if r != s:
                above += self.term(r - s, weight)
        return round(above / below * 1e7) if below else 0

    def term(self, difference, weight):
        z = difference * self.r
        term = weight * 2.0**-50 * (1.0 - power_of_half(z * z))
        return int(((6.0 + term) - 6.0) * 2.0**50)


class Background:
    """One linear score of a label: coefficients of its strongest attributes, centred, and the score's deviation."""

    def __init__(self, slopes, sizes, ranks, sums, counts, n):
        least = sorted(sizes)[-TOP] if len(sizes) > TOP else 0.0
        kept = [j for j, size in enumerate(sizes) if size >= least and slopes[j] != 0]
        self.coefficients, self.squares = {}, 0
        if not kept:
            return
        largest = max(abs(slopes[j]) for j in kept)
        shift = 31 - len(kept).bit_length() - math.frexp(largest)[1]
        self.coefficients = {j: round(math.ldexp(slopes[j], shift)) for j in kept}
        self.centre = rounded(sum(b * sums[j] for j, b in self.coefficients.items()), n)
        for k, count in enumerate(counts):
            coarse = self.score({j: ranks[j].get(k, 0) for j in kept}) >> 22
            self.squares += count * coarse * coarse
        self.deviation = math.sqrt(float(self.squares) / n) * 2.0**22

    def score(self, ranks):
        return sum(b * ranks[j] for j, b in self.coefficients.items()) - self.centre


def due_after(rows):
    """Return after how many rows the similarity is computed anew, if it was after `rows`."""
    return rows + 1 if rows < 50 else rows + rows // 4

"""Screening: which nodes cannot be among the nearest, found in float32 at a fifth of the cost.

For each node a rough sum of k over the attributes is computed in float32. If E bounds its error, and L is
the N-th largest of the rough sums less E, then N nodes have an exact sum of at least L, and a node whose
rough sum plus E stays below L is excluded for certain, ties included. What survives, a dozen nodes as
a rule, is computed again exactly. float32 never decides.

Why it is fast. k = 2^-w is evaluated as p(w / 8)^8 with a cubic p: three multiply-adds and three
squarings, no exponent arithmetic. Weights are kept a second time, in float32, as tiles of nodes:
tile[i, j] is attribute i of the tile's node j, so that one attribute of many nodes is one vector load and
nothing is ever summed across a vector. Measured here: 5.9 billion pairs a second on one thread,
five times the exact kernel (mlca bench: exp32, exp64). Where several instances are at hand, when predicting and
when threads look ahead, each tile is read once for 8 of them: a model of some megabytes need not come through the
caches for every instance. That gained 5 % on one thread. Keeping strips of a tile in the first cache as well gained
nothing; the arithmetic is the limit. Nor did abandoning a tile half-way: all of its 64 nodes would have to be
hopeless, which would have spared 1 % of the terms on Yeast and 14 % on Mediamill, before the cost of asking. (Sums
that are not screened are abandoned node by node; see `dense`.)

Why the bound holds. Per attribute, with u = 2^-24 and z = t r the exact argument:
  the polynomial      |p(min(w, 14) / 8)^8 - 2^-w| <= FIT_ERROR for all w >= 0 (tested on a grid finer than
                      its slope needs);
  rounding in p       below 48 u, as p^8 magnifies the relative error of p by eight;
  t = x - y, z = t r  x, y, r and both operations are rounded: the error of z is at most
                      u r (|x| + |y|) + 4 u |z| <= 2 u r |y| + 5 u |z|, and 2^-z^2 changes by at most 0.72 a
                      unit of z, and z times its slope is at most 0.74.
Adding d such terms, none negative, in float32 errs by at most d u times the sum. So for node y
  E = d (FIT_ERROR + 52 u) + 1.5 u r sum|y| + 1.01 d u sum_k(rough).
The fixed-point rounding of the exact terms (2^-41 each) is below 1 u a term and is contained in the 52.

The root of MLCA-I, 1 - sqrt(1 - 2^-z^2), is a smooth function of |z| with slope at most 0.84; a quartic to the
eighth power takes the cubic's place and 2 u r |y| is added up with each attribute's own r.

MLCA-C's sum is one of roots of group means. If D bounds the error of a group's mean, sqrt(D) bounds that of its root;
D is the bound above for one attribute, with the largest |y| of any node in the group's attributes, plus the error of
adding. Learning Yeast became about three times as fast by it.
"""

from __future__ import annotations

import numpy as np

from mlca.compiled import compiled, compiled_loosely, keep_apart
from mlca.learner.kernels.groups import Grouping

TILE = 64

# min over cubics p of max |p(v)^8 - 2^-8v| on [0, 14/8], by Lawson's iteration.
P0 = np.float32(0.99999385)
P1 = np.float32(-0.69267252)
P2 = np.float32(0.23561754)
P3 = np.float32(-0.04327093)
LARGEST_V = np.float32(14.0 / 8.0)
FIT_ERROR = 5.1e-5
# w / 8 = (t r / sqrt 8)^2
SHRINK = float(np.sqrt(1.0 / 8.0))

# min over quartics q of max |q(a)^8 - (1 - sqrt(1 - 2^-a^2))| on [0, 4.1].
Q0 = np.float32(0.99999865)
Q1 = np.float32(-0.10409658)
Q2 = np.float32(-0.03767946)
Q3 = np.float32(-0.00212399)
Q4 = np.float32(0.00160147)
LARGEST_A = np.float32(4.1)
ROOT_FIT_ERROR = 1.8e-5

HALF_ULP = 2.0**-24
ROUNDING = 52 * HALF_ULP
# Beyond these, float32 could overflow, and nothing is screened.
LARGEST_NORM = 1e18
LARGEST_SCALE = 1e18


@compiled_loosely
def rough_kernel(difference: np.float32, r: np.float32) -> np.float32:
    """Return about 2^-(8 v) for v = (difference r)^2."""
    z = difference * r
    v = min(z * z, LARGEST_V)
    p = ((P3 * v + P2) * v + P1) * v + P0
    p *= p
    p *= p
    return p * p


@compiled_loosely
def rough_root_kernel(difference: np.float32, r: np.float32) -> np.float32:
    """Return about 1 - sqrt(1 - 2^-a^2) for a = |difference r|."""
    a = min(abs(difference * r), LARGEST_A)
    q = (((Q4 * a + Q3) * a + Q2) * a + Q1) * a + Q0
    q *= q
    q *= q
    return q * q


@compiled
def put_in_tile(tiles: np.ndarray, node: int, values: np.ndarray) -> None:
    """Store a node's values in its place among the tiles."""
    width = tiles.shape[2]
    tile, place = node // width, node % width
    for i in range(values.shape[0]):
        tiles[tile, i, place] = np.float32(values[i])


@compiled_loosely
def rough_sums(rows: np.ndarray, tiles: np.ndarray, n_nodes: int, r: np.ndarray, sums: np.ndarray) -> None:
    """Add up about k over the attributes, each row with its r, for the first `n_nodes` nodes and their last tile."""
    keep_apart()
    width = tiles.shape[2]
    for tile in range((n_nodes + width - 1) // width):
        for row in range(rows.shape[0]):
            x, scale = rows[row], np.float32(r[row] * SHRINK)
            part = sums[row, tile * width : (tile + 1) * width]
            part[:] = np.float32(0.0)
            for i in range(x.shape[0]):
                value = x[i]
                column = tiles[tile, i]
                for j in range(width):
                    part[j] += rough_kernel(value - column[j], scale)


@compiled_loosely
def rough_root_sums(rows: np.ndarray, tiles: np.ndarray, scales: np.ndarray, n_nodes: int, sums: np.ndarray) -> None:
    """Add up about 1 - sqrt(1 - k) over the attributes for each row, each node with its own scales."""
    keep_apart()
    width = tiles.shape[2]
    for tile in range((n_nodes + width - 1) // width):
        for row in range(rows.shape[0]):
            x = rows[row]
            part = sums[row, tile * width : (tile + 1) * width]
            part[:] = np.float32(0.0)
            for i in range(x.shape[0]):
                value = x[i]
                column, r = tiles[tile, i], scales[tile, i]
                for j in range(width):
                    part[j] += rough_root_kernel(value - column[j], r[j])


@compiled
def rough_error(n_attributes: int, fit_error: float, scaled_norm: float, largest_sum: float) -> float:
    """Bound the error of every rough sum of nodes whose r sum|y| is at most `scaled_norm`."""
    d = float(n_attributes)
    adding = 1.01 * d * HALF_ULP * largest_sum
    return d * (fit_error + ROUNDING) + 1.7 * HALF_ULP * scaled_norm + adding


@compiled_loosely
def rough_group_sums(x: np.ndarray, tiles: np.ndarray, grouping: Grouping, n_nodes: int, sums: np.ndarray) -> None:
    """Add up about the roots of the groups' means of 1 - k, negated: the largest sum is the nearest node's."""
    keep_apart()
    width = tiles.shape[2]
    part = np.empty(width, np.float32)
    for tile in range((n_nodes + width - 1) // width):
        total = sums[tile * width : (tile + 1) * width]
        total[:] = np.float32(0.0)
        start = 0
        for j in range(grouping.size[0]):
            end = grouping.ends[j]
            r = np.float32(grouping.scales[j] * SHRINK)
            part[:] = np.float32(0.0)
            for place in range(start, end):
                i = grouping.order[place]
                value = x[i]
                column = tiles[tile, i]
                for lane in range(width):
                    part[lane] += rough_kernel(value - column[lane], r)
            share = np.float32(1.0) / np.float32(end - start)
            for lane in range(width):
                mean = np.float32(1.0) - part[lane] * share
                total[lane] -= np.sqrt(max(mean, np.float32(0.0)))
            start = end


@compiled
def rough_group_error(grouping: Grouping, reach: np.ndarray) -> float:
    """Bound the error of every rough sum of groups' roots; `reach[i]` is the largest |y| of any node in attribute i."""
    total = 0.0
    start = 0
    for j in range(grouping.size[0]):
        end = grouping.ends[j]
        size = float(end - start)
        farthest = 0.0
        for place in range(start, end):
            farthest = max(farthest, reach[grouping.order[place]])
        in_mean = FIT_ERROR + ROUNDING + 1.7 * HALF_ULP * grouping.scales[j] * farthest + 1.01 * size * HALF_ULP
        total += np.sqrt(min(in_mean, 1.0))
        start = end
    n_groups = float(grouping.size[0])
    return total + 2.0 * HALF_ULP * n_groups * (n_groups + 2.0)

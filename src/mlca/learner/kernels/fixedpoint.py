"""The one kernel function and sums of it that do not depend on the order of adding.

k(t, s) = exp(-t^2 / (2 s^2)) is computed as 2^-(t r)^2 with r = SCALE / s. Every path of the package
takes it from `kernel`, so all of them see the same bits: the polynomial is evaluated by explicit fused
multiply-adds, which round the same way on every machine, in vectors and in scalars. (1.2 billion evaluations a
second on one core of an idle 2.3 GHz Sapphire Rapids; `mlca bench` prints it as exp64.)

Each term of a similarity, a number in [0, 1], is rounded to a multiple of 2^-40 and then added as an
integer. Adding 1.5 * 2^12 moves the multiple into the low bits of the significand, where an integer
addition picks it up: the rounding costs one floating-point addition, and as integer sums may be
taken in any order, LLVM is free to vectorise them. Sums are int64 in units of 2^-40; d terms need
d < 2^22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mlca.compiled import compiled, keep_apart

UNIT = 2.0**-40
PER_UNIT = 2.0**40
# exp(-t^2 / (2 s^2)) = 2^-(t SCALE / s)^2
SCALE = float(np.sqrt(np.log2(np.e) / 2.0))

# 2^f on [-1/2, 1/2] as 1 + f q(f): interpolation of q at Chebyshev points, relative error below 1e-17
# (tests/learner/test_fixedpoint.py computes it anew with 50 digits). 2^0 is 1 exactly.
C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = (
    float.fromhex(digits)
    for digits in (
        "0x1.62e42fefa39efp-1",
        "0x1.ebfbdff82c598p-3",
        "0x1.c6b08d704a0c2p-5",
        "0x1.3b2ab6fba1ddap-7",
        "0x1.5d87fe78a5276p-10",
        "0x1.430913096fd9fp-13",
        "0x1.ffcbfc670dcd4p-17",
        "0x1.62bfd47773353p-20",
        "0x1.b524fae627834p-24",
        "0x1.e6063f7217bc6p-28",
        "0x1.e9d3fe3952179p-32",
    )
)

# Adding 1.5 * 2^52 rounds to whole numbers and leaves them in the low bits.
ROUND_TO_ONES = 1.5 * 2.0**52
ROUND_TO_UNITS = 1.5 * 2.0**12
ZERO_UNITS = int(np.float64(ROUND_TO_UNITS).view(np.int64))
# 2^-64 rounds away against 1: larger exponents change nothing.
LARGEST_EXPONENT = 64.0


def _intrinsic(build: Callable[..., Any]) -> Callable[..., Any]:
    """Make an instruction of LLVM callable from compiled code."""
    return intrinsic(build)


@_intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), build


@_intrinsic
def bits_of(typing_context: Any, number: Any) -> Any:
    """Return the 64 bits of a float as an integer."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), build


@_intrinsic
def float_of(typing_context: Any, number: Any) -> Any:
    """Return the float that has the 64 bits of an integer."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), build


@compiled
def power_of_half(w: float) -> float:
    """Return 2^-w for w >= 0, to 3e-16 relative; beyond 2^-64 it stays there."""
    w = min(w, LARGEST_EXPONENT)
    shifted = ROUND_TO_ONES - w
    f = (ROUND_TO_ONES - shifted) - w
    p = fused(C11, f, C10)
    p = fused(p, f, C9)
    p = fused(p, f, C8)
    p = fused(p, f, C7)
    p = fused(p, f, C6)
    p = fused(p, f, C5)
    p = fused(p, f, C4)
    p = fused(p, f, C3)
    p = fused(p, f, C2)
    p = fused(p, f, C1)
    p = fused(p, f, 1.0)
    return float_of(bits_of(p) + (bits_of(shifted) << 52))


@compiled
def kernel(difference: float, r: float) -> float:
    """Return k = 2^-(difference r)^2."""
    z = difference * r
    return power_of_half(z * z)


@compiled
def in_units(term: float) -> int:
    """Round a term in [0, 1] to a whole number of units."""
    return bits_of(ROUND_TO_UNITS + term) - ZERO_UNITS


@compiled
def dissimilarity(difference: float, r: float) -> int:
    """Return 1 - k in units: what one attribute adds under a common bandwidth."""
    return in_units(1.0 - kernel(difference, r))


@compiled
def root_dissimilarity(difference: float, r: float) -> int:
    """Return sqrt(1 - k) in units: what one attribute adds under its own bandwidth."""
    return in_units(np.sqrt(1.0 - kernel(difference, r)))


@compiled
def common_sum(x: np.ndarray, y: np.ndarray, r: float) -> int:
    """Return the sum of 1 - k over the attributes, in units."""
    keep_apart()
    total = 0
    for i in range(x.shape[0]):
        total += dissimilarity(x[i] - y[i], r)
    return total


@compiled
def common_sums(
    x: np.ndarray, weights: np.ndarray, low: int, high: int, r: float, stretch: int, limit: int, totals: np.ndarray
) -> int:
    """Fill in the sums of the nodes from `low` to `high`; return how many terms were computed.

    After every `stretch` attributes, nodes whose sum has reached the limit are abandoned: they keep what they have.
    """
    keep_apart()
    active = np.arange(low, high)
    n_active = active.shape[0]
    totals[:n_active] = 0
    done = 0
    for first in range(0, x.shape[0], stretch):
        part = x[first : first + stretch]
        done += n_active * part.shape[0]
        kept = 0
        for place in range(n_active):
            k = active[place]
            y = weights[k, first : first + stretch]
            total = totals[k - low]
            for i in range(part.shape[0]):
                total += dissimilarity(part[i] - y[i], r)
            totals[k - low] = total
            active[kept] = k
            kept += total < limit  # no branch that could be guessed wrong
        n_active = kept
    return done


@compiled
def individual_sum(x: np.ndarray, y: np.ndarray, r: np.ndarray) -> int:
    """Return the sum of sqrt(1 - k) over the attributes, each with its own r, in units."""
    keep_apart()
    total = 0
    for i in range(x.shape[0]):
        total += root_dissimilarity(x[i] - y[i], r[i])
    return total


@compiled
def group_root(total: int, size: int) -> int:
    """Return sqrt(mean of 1 - k over a group) in units, from the group's sum in units."""
    return in_units(np.sqrt(total * UNIT / size))

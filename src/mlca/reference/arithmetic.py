"""Arithmetic that gives the same bits on every machine: exp, log and integer sums.

A distance is a sum of many small terms, and the order of a floating-point sum changes its last bits. Those bits would
decide between equally near nodes, of which there are hundreds in 0/1 data. So each term is first rounded to a whole
number of small units. Whole numbers have the same sum in any order: dense or sparse, permuted, or in threads.

The exponential is a polynomial evaluated with fused multiply-adds, as processors compute them: a * b + c, rounded
once. NumPy has no such operation, so `fma` computes it from ordinary additions and multiplications.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# Terms of the paper's distance lie between 0 and 1 and are rounded to multiples of 2^-40.
PER_UNIT = 2.0**40

# exp(-t^2 / (2 s^2)) = 2^-(t SCALE / s)^2, where SCALE is the square root of log2(e) / 2.
SCALE = float.fromhex("0x1.b2da4e9808a53p-1")

# Coefficients of a polynomial q, its constant first: 2^f = 1 + f q(f) for f in [-1/2, 1/2], with a relative error below
# 1e-17.
POWER_COEFFICIENTS = (
    *map(float.fromhex, ("0x1.62e42fefa39efp-1", "0x1.ebfbdff82c598p-3", "0x1.c6b08d704a0c2p-5")),
    *map(float.fromhex, ("0x1.3b2ab6fba1ddap-7", "0x1.5d87fe78a5276p-10", "0x1.430913096fd9fp-13")),
    *map(float.fromhex, ("0x1.ffcbfc670dcd4p-17", "0x1.62bfd47773353p-20", "0x1.b524fae627834p-24")),
    *map(float.fromhex, ("0x1.e6063f7217bc6p-28", "0x1.e9d3fe3952179p-32")),
)


def exact_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded sum a + b and its rounding error (Knuth's TwoSum)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded product a * b and its rounding error (Dekker's algorithm)."""
    product, (a_high, a_low), (b_high, b_low) = a * b, _halves(a), _halves(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(v: Any) -> tuple[Any, Any]:
    shifted = v * (2.0**27 + 1.0)
    high = shifted - (shifted - v)
    return high, v - high


def fma(a: Floats, b: Floats, c: Any) -> Floats:
    """Return a * b + c rounded once (Boldo and Melquiond, 2008).

    The last addition rounds correctly if the error terms were added with rounding to odd: an inexact sum then has an
    odd last bit, so it is never mistaken for the midpoint of two numbers.
    """
    product, lost = exact_product(a, b)
    sum_high, sum_low = exact_sum(c, lost)
    high, low = exact_sum(product, sum_high)
    rest, below = exact_sum(low, sum_low)
    bits = rest.view(np.int64)
    is_even_and_inexact = (below != 0.0) & (bits & 1 == 0)
    towards = np.where((below > 0.0) == (rest > 0.0), 1, -1)
    odd = (bits + is_even_and_inexact * towards).view(np.float64)
    result: Floats = high + odd
    return result


def power_of_half(w: Any) -> Floats:
    """Return 2^-w for 0 <= w <= 64, and 2^-64 for larger w, because 1 - 2^-64 rounds to 1."""
    w = np.minimum(np.asarray(w, np.float64), 64.0)
    whole = np.rint(w)
    f = whole - w
    q = np.full_like(f, POWER_COEFFICIENTS[-1])
    for coefficient in reversed(POWER_COEFFICIENTS[:-1]):
        q = fma(q, f, coefficient)
    result: Floats = np.ldexp(fma(q, f, 1.0), -whole.astype(np.int64))
    return result


def exp_of_minus(t: Any) -> Floats:
    """Return exp(-t) for t >= 0, but at least 2^-64."""
    return power_of_half(t * (2 * SCALE * SCALE))


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), with z clipped to -30 and 30."""
    small = exp_of_minus(np.minimum(np.abs(z), 30.0))
    result: Floats = np.where(z >= 0.0, 1.0, small) / (1.0 + small)
    return result


def ln(x: float) -> float:
    """Return the natural logarithm of x > 0 by the artanh series on [sqrt(1/2), sqrt(2)]."""
    mantissa, exponent = math.frexp(x)
    if mantissa < math.sqrt(0.5):
        mantissa, exponent = 2 * mantissa, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square, series = s * s, 1.0 / 23.0
    for odd in range(21, 0, -2):
        series = series * square + 1.0 / odd
    return exponent * math.log(2.0) + (2.0 * s) * series


def limited(value: float, least: float, most: float) -> float:
    """Clip a value to the range from `least` to `most`."""
    return min(max(value, least), most)


def odds(p: float, margin: float = 1e-6) -> float:
    """Return p / (1 - p), with p clipped to `margin` and 1 - `margin`."""
    p = limited(p, margin, 1.0 - margin)
    return p / (1.0 - p)


def logit(p: float, margin: float) -> float:
    """Return ln(p / (1 - p)), with p clipped to `margin` and 1 - `margin`."""
    return ln(odds(p, margin))


def in_units(terms: Floats) -> Integers:
    """Return terms from 0 to 1 as integers in units of 2^-40; adding 1.5 * 2^12 rounds them."""
    return (((terms + 1.5 * 2.0**12) - 1.5 * 2.0**12) * PER_UNIT).astype(np.int64)


def rounded(numerator: int, denominator: int) -> int:
    """Return a quotient of integers, rounded to the nearest integer; halves are rounded up."""
    return (2 * numerator + denominator) // (2 * denominator)


def sum_in_order(values: Iterable[float]) -> float:
    """Sum floats from first to last; Python's `sum` corrects rounding errors since 3.12."""
    return functools.reduce(operator.add, values, 0.0)


def splitmix64(x: int) -> int:
    """Return a pseudo-random number from a counter (Steele, Lea and Flood, 2014)."""
    word = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & word
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
    return x ^ (x >> 31)

"""Logarithm, exponential and rounding as the learner defines them: the same bits in every language and machine."""

import math

from tests.learner.reference import SCALE, power_of_half


def ln(x):
    """Return the logarithm of x > 0: artanh's series on [sqrt(1/2), sqrt(2)], no more than + - * /."""
    mantissa, exponent = math.frexp(x)
    if mantissa < math.sqrt(0.5):
        mantissa, exponent = 2 * mantissa, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square, series = s * s, 1.0 / 23.0
    for odd in range(21, 0, -2):
        series = series * square + 1.0 / odd
    return exponent * math.log(2.0) + (2.0 * s) * series


def exp_of_minus(t):
    """Return exp(-t) for t >= 0; beyond 2^-64 it stays there."""
    return power_of_half(t * (2 * SCALE * SCALE))


def shifted(o, z):
    """Return the probability whose odds are o exp(z)."""
    small = exp_of_minus(abs(z))
    return o / (o + small) if z >= 0 else o * small / (1.0 + o * small)


def clipped(p, margin):
    return min(max(p, margin), 1.0 - margin)


def odds(p):
    p = clipped(p, 1e-6)
    return p / (1.0 - p)

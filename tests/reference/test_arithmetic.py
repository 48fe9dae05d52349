"""The arithmetic of the reference: correctly rounded as documented, and equal to the kernels to the last bit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlca.kernels import native
from mlca.reference import arithmetic, experts, similarity
from mlca.reference.arithmetic import fma, ln, power_of_half

MODERATE = st.floats(-(2.0**100), 2.0**100).filter(lambda v: v == 0.0 or abs(v) > 2.0**-100)


@given(MODERATE, MODERATE, MODERATE)
def test_fma_rounds_once(a, b, c):
    exact = float(Fraction(a) * Fraction(b) + Fraction(c))
    assert fma(np.array([a]), np.array([b]), c)[0] == exact


@given(st.integers(1, 2**53 - 1), st.integers(1, 2**53 - 1), st.integers(-3, 3), st.integers(0, 110))
def test_fma_rounds_once_near_a_tie(a, b, nudge, exponent):
    a, b = a * 2.0**-52, b * 2.0**-52
    c = (1.0 + nudge * 2.0**-52) * 2.0**-exponent - a * b
    exact = float(Fraction(a) * Fraction(b) + Fraction(c))
    assert fma(np.array([a]), np.array([b]), c)[0] == exact


def test_exponential_equals_that_of_the_kernels():
    rng = np.random.default_rng(0)
    halves = np.arange(0, 65, 0.5)
    w = np.concatenate([rng.uniform(0, 66, 20_000), 10.0 ** rng.uniform(-320, 2, 20_000), halves, halves + 1e-15])
    expected = [native.probes.power_of_half(v) for v in w.tolist()]
    np.testing.assert_array_equal(power_of_half(w), expected)


@pytest.mark.parametrize("x", [1e-300, 0.001, 0.5, 2**-0.5, 0.999, 1.0, 1.001, 2**0.5, 3.0, 1e300])
def test_logarithm_is_within_its_stated_error(x):
    assert ln(x) == pytest.approx(np.log(x), rel=1e-15, abs=1e-16)


def test_constants_are_those_of_the_kernels():
    assert arithmetic.SCALE == native.probes.SCALE
    assert 1.0 / arithmetic.PER_UNIT == native.probes.UNIT
    assert list(arithmetic.POWER_COEFFICIENTS) == list(native.probes.POWER_COEFFICIENTS)
    assert native.HALF_LIVES == experts.HALF_LIVES
    assert native.RANKS_PER_KNOT == 2 * similarity.RANK_STEP
    assert native.RANK_OF_BINARY_ONE == similarity.BINARY_ONE

"""The exponential function, and sums that do not depend on the order."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlca.kernels import native

SCALE, UNIT = native.probes.SCALE, native.probes.UNIT
common_sum, individual_sum = native.probes.common_sum, native.probes.individual_sum
group_root, kernel, power_of_half = native.probes.group_root, native.probes.kernel, native.probes.power_of_half


def test_relative_error_of_the_exponential_is_below_3e_16():
    for w in np.concatenate([np.linspace(0, 60, 4001), np.logspace(-12, 1, 500), np.arange(0, 60.5, 0.5)]):
        exact = mpmath.power(2, -mpmath.mpf(float(w)))
        assert abs(mpmath.mpf(power_of_half(w)) / exact - 1) < 3e-16


def test_polynomial_is_within_its_stated_error():
    coefficients = native.probes.POWER_COEFFICIENTS
    assert len(coefficients) == 11
    with mpmath.workdps(50):
        for f in np.linspace(-0.5, 0.5, 501):
            f = mpmath.mpf(float(f))
            value = 1 + sum(mpmath.mpf(c) * f**j for j, c in enumerate(coefficients, start=1))
            assert abs(value / mpmath.power(2, f) - 1) < 3e-17


def test_near_polynomial_is_within_its_stated_error():
    with mpmath.workdps(50):
        for f in np.linspace(-0.5, 0.5, 2001):
            f = mpmath.mpf(float(f))
            value = sum(mpmath.mpf(c) * f**j for j, c in enumerate(native.probes.NEAR_COEFFICIENTS))
            assert abs(value / mpmath.power(2, f) - 1) < native.probes.NEAR_ERROR


def test_kernel_is_exact_at_special_values():
    assert power_of_half(0.0) == 1.0
    assert power_of_half(1e300) == 2.0**-64
    assert kernel(0.0, 1e12) == 1.0
    assert kernel(1e154, 1e154) == 2.0**-64


def test_kernel_approximates_the_gaussian():
    t = np.linspace(-5, 5, 1001)
    values = [kernel(x, SCALE / 0.7) for x in t]
    np.testing.assert_allclose(values, np.exp(-(t**2) / (2 * 0.7**2)), rtol=2e-14)


@given(st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_sums_do_not_depend_on_the_order(seed, d):
    rng = np.random.default_rng(seed)
    x, y, r = rng.normal(0, 1, d), rng.normal(0, 1, d), rng.uniform(0.1, 5, d)
    order = rng.permutation(d)
    assert common_sum(x, y, 1.3) == common_sum(x[order], y[order], 1.3)
    assert individual_sum(x, y, r) == individual_sum(x[order], y[order], r[order])
    terms = [round((1 - kernel(a - b, 1.3)) / UNIT) for a, b in zip(x, y, strict=True)]
    assert common_sum(x, y, 1.3) == sum(terms)
    roots = [round(np.sqrt(1 - kernel(a - b, s)) / UNIT) for a, b, s in zip(x, y, r, strict=True)]
    assert individual_sum(x, y, r) == sum(roots)


@pytest.mark.parametrize(("total", "size"), [(0, 1), (2**40, 1), (3 * 2**40, 4), (12345678901, 7)])
def test_group_root_is_the_rounded_root_of_the_mean(total, size):
    assert group_root(total, size) == round(np.sqrt(total * UNIT / size) / UNIT)


def test_many_features_do_not_overflow():
    d = 100_000
    assert common_sum(np.zeros(d), np.full(d, 1e9), 1.0) == d * 2**40

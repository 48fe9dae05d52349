"""The error bounds of screening hold, on usual and on adversarial data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca.kernels import native

probes = native.probes
TILE, UNIT, FIT_ERROR, ROOT_FIT_ERROR = probes.TILE, probes.UNIT, probes.FIT_ERROR, probes.ROOT_FIT_ERROR
# The additional error of the polynomials in float32.
ROUNDING = 48 * 2.0**-24


def test_cubic_is_within_its_stated_error():
    w = np.concatenate([np.linspace(0, 16, 100_001), [100.0, 1e6, 1e30]])
    rough = np.array([probes.rough_kernel_at(1.0, z) for z in np.sqrt(w)])
    assert np.abs(rough - 2.0**-w).max() < FIT_ERROR + ROUNDING


def test_quartic_is_within_its_stated_error():
    a = np.concatenate([np.linspace(0, 5, 100_001), [100.0, 1e6, 1e30]])
    rough = np.array([probes.rough_root_kernel_at(1.0, z) for z in a])
    assert np.abs(rough - (1 - np.sqrt(1 - 2.0 ** (-a * a)))).max() < ROOT_FIT_ERROR + ROUNDING


@st.composite
def nodes(draw):
    """Draw a row and nodes of any scale, with any distance from the origin and from each other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 60))
    spread = 10.0 ** draw(st.integers(-6, 6))
    offset = spread * 10.0 ** draw(st.integers(-3, 5))
    W = offset * rng.normal(0, 1, d) + spread * rng.normal(0, 1, (n, d))
    x = W[rng.integers(n)] + spread * rng.normal(0, 1, d) * draw(st.sampled_from([0.0, 1e-3, 1.0]))
    r = 10.0 ** draw(st.floats(-2, 2)) / spread
    return x, W, r, rng


def tile_of(rows):
    """Arrange up to 64 rows as a tile: all values of the first feature, then of the second, and so on."""
    tile = np.zeros((rows.shape[1], TILE), np.float32)
    tile[:, : len(rows)] = rows.T
    return tile


@settings(max_examples=300, deadline=None)
@given(nodes())
def test_rough_root_sums_stay_within_their_bound(case):
    x, W, r, rng = case
    scales = r * 10.0 ** rng.uniform(-1, 1, W.shape)
    rough = probes.rough_root_sums(x.astype(np.float32), tile_of(W), tile_of(scales))[: len(W)].astype(np.float64)
    exact = len(x) - np.array([probes.individual_sum(x, w, s) for w, s in zip(W, scales, strict=True)]) * UNIT
    bound = probes.rough_error(ROOT_FIT_ERROR, (scales * np.abs(W)).max(), len(x))  # of the mean
    assert np.abs(rough - exact).max() <= len(x) * bound


@pytest.mark.parametrize("value", [1e18, -1e18, 1e-300])
def test_rough_sums_of_extreme_rows_saturate(value):
    tile = np.zeros((3, TILE), np.float32)
    rough = probes.rough_root_sums(np.full(3, value, np.float32), tile, tile + 1)
    assert np.abs(rough - 3 * (abs(value) < 1)).max() < 3e-4

"""The error bounds of screening hold, on friendly data and on hostile data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca.learner.kernels import screen
from mlca.learner.kernels.fixedpoint import UNIT, common_sum, dissimilarity, group_root, individual_sum
from mlca.learner.kernels.groups import Grouping
from mlca.learner.kernels.screen import (
    FIT_ERROR,
    LARGEST_A,
    LARGEST_V,
    ROOT_FIT_ERROR,
    SHRINK,
    put_in_tile,
    rough_error,
    rough_group_error,
    rough_group_sums,
    rough_root_sums,
    rough_sums,
)


def polynomial(coefficients, values):
    result = np.zeros_like(values)
    for c in coefficients:
        result = result * values + np.float64(c)
    return result**8


def test_the_cubic_is_as_near_as_it_says():
    v = np.linspace(0, float(LARGEST_V), 2_000_001)
    cubic = [screen.P3, screen.P2, screen.P1, screen.P0]
    error = np.abs(polynomial(cubic, v) - 2.0 ** (-8 * v)).max()
    # Between grid points both functions, of slope below 6 in v, move by less than 6e-6.
    assert error + 6 * (v[1] - v[0]) < FIT_ERROR + 5e-6
    assert error < FIT_ERROR
    last = polynomial(cubic, v[-1:])[0]
    assert max(last, 2.0**-14 - last) < FIT_ERROR


def test_the_quartic_is_as_near_as_it_says():
    a = np.linspace(0, float(LARGEST_A), 2_000_001)
    quartic = [screen.Q4, screen.Q3, screen.Q2, screen.Q1, screen.Q0]
    error = np.abs(polynomial(quartic, a) - (1 - np.sqrt(1 - 2.0 ** (-a * a)))).max()
    assert error < ROOT_FIT_ERROR
    last = polynomial(quartic, a[-1:])[0]
    assert max(last, 2.0**-17.7 - last) < ROOT_FIT_ERROR


@st.composite
def nodes(draw):
    """Draw an instance and nodes: of any scale, far from the origin or not, and near each other or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 60))
    spread = 10.0 ** draw(st.integers(-6, 6))
    offset = spread * 10.0 ** draw(st.integers(-3, 5))
    W = offset * rng.normal(0, 1, d) + spread * rng.normal(0, 1, (n, d))
    x = W[rng.integers(n)] + spread * rng.normal(0, 1, d) * draw(st.sampled_from([0.0, 1e-3, 1.0]))
    r = 10.0 ** draw(st.floats(-2, 2)) / spread
    tiles = np.zeros((-(-n // 8), d, 8), np.float32)
    for k in range(n):
        put_in_tile(tiles, k, W[k])
    return x, W, r, tiles, rng


def rough_common(rows, tiles, n_nodes, r):
    rough = np.empty((len(rows), tiles.shape[0] * 8), np.float32)
    rough_sums(rows.astype(np.float32), tiles, n_nodes, r, rough)
    return rough


@settings(max_examples=100, deadline=None)
@given(nodes())
def test_rows_that_pass_together_have_the_sums_that_they_have_alone(case):
    x, W, r, tiles, _ = case
    rows, scales = np.array([x, W[0], -x]), r * np.array([1.0, 0.5, 2.0])
    together = rough_common(rows, tiles, len(W), scales)
    for j in range(3):
        np.testing.assert_array_equal(
            together[j : j + 1], rough_common(rows[j : j + 1], tiles, len(W), scales[j : j + 1])
        )


@settings(max_examples=300, deadline=None)
@given(nodes())
def test_rough_sums_stay_within_their_bound(case):
    x, W, r, tiles, _ = case
    rough = rough_common(np.array([x]), tiles, len(W), np.array([r]))[0]
    exact = len(x) - np.array([common_sum(x, w, r) for w in W]) * UNIT
    bound = rough_error(len(x), FIT_ERROR, r * np.abs(W).sum(axis=1).max(), rough[: len(W)].max())
    assert np.abs(rough[: len(W)].astype(np.float64) - exact).max() <= bound


@settings(max_examples=300, deadline=None)
@given(nodes())
def test_rough_root_sums_stay_within_their_bound(case):
    x, W, r, tiles, rng = case
    scales = r * 10.0 ** rng.uniform(-1, 1, W.shape)
    scale_tiles = np.zeros_like(tiles)
    for k in range(len(W)):
        put_in_tile(scale_tiles, k, scales[k])
    rough = np.empty((1, tiles.shape[0] * 8), np.float32)
    rough_root_sums(x[None].astype(np.float32), tiles, scale_tiles, len(W), rough)
    rough = rough[0]
    exact = len(x) - np.array([individual_sum(x, w, s) for w, s in zip(W, scales, strict=True)]) * UNIT
    bound = rough_error(len(x), ROOT_FIT_ERROR, (scales * np.abs(W)).sum(axis=1).max(), rough[: len(W)].max())
    assert np.abs(rough[: len(W)].astype(np.float64) - exact).max() <= bound


@settings(max_examples=300, deadline=None)
@given(nodes())
def test_rough_group_sums_stay_within_their_bound(case):
    x, W, r, tiles, rng = case
    d = len(x)
    n_groups = rng.integers(1, d + 1)
    members = np.sort(np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, d - n_groups)]))
    order = rng.permutation(d)
    ends = np.searchsorted(members, np.arange(n_groups), side="right")
    scales = np.zeros(d)
    scales[:n_groups] = r * 10.0 ** rng.uniform(-1, 1, n_groups)
    grouping = Grouping(order, np.resize(ends, d), scales, members, np.array([n_groups]))
    rough = np.empty(tiles.shape[0] * 8, np.float32)
    rough_group_sums(x.astype(np.float32), tiles, grouping, len(W), rough)
    exact = []
    for w in W:
        total = 0
        for j, group in enumerate(np.split(order, ends[:-1])):
            total += group_root(sum(dissimilarity(x[i] - w[i], scales[j]) for i in group), len(group))
        exact.append(-total * UNIT)
    bound = rough_group_error(grouping, np.abs(W).max(axis=0))
    assert np.abs(rough[: len(W)].astype(np.float64) - exact).max() <= bound


@pytest.mark.parametrize("value", [1e30, -1e30, 1e39, 1e-300])
def test_extreme_instances_saturate(value):
    tiles = np.zeros((1, 3, 8), np.float32)
    with np.errstate(over="ignore"):
        rough = rough_common(np.full((1, 3), value), tiles, 8, np.array([1.0 / SHRINK]))
    assert np.abs(rough - 3 * (abs(value) < 1)).max() < 3e-4

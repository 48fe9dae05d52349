"""Counting in windows of zeros and ones gives the bandwidths of adding up, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA
from mlca.learner.kernels.bandwidth import attribute_bandwidths, median
from mlca.learner.kernels.binary_window import LONGEST, median_bandwidth, no_ones, slide
from mlca.learner.kernels.foresee import foresee_bandwidths
from mlca.learner.kernels.learn import window_bandwidths, window_bounds
from mlca.learner.kernels.stores import COMMON


def added_up(window):
    """Return the common bandwidth by the general way, which asks for nothing of the window."""
    bandwidths, means = np.empty(window.shape[1]), np.empty(window.shape[1])
    attribute_bandwidths(window, bandwidths, means)
    return median(bandwidths, means)


def is_binary(rows):
    return bool(np.isin(rows, [0.0, 1.0]).all())


@st.composite
def binary_rows(draw):
    """Draw rows of zeros (of either sign) and ones; attributes are alike, or each has a density of its own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 150)), draw(st.one_of(st.integers(1, 12), st.integers(60, 140)))
    density = draw(st.sampled_from([0.0, 0.01, 0.03, 0.2, 0.5, 0.8, 0.98, 1.0, None]))
    rows = (rng.random((n, d)) < (rng.random(d) ** 2 if density is None else density)).astype(float)
    rows[(rows == 0) & (rng.random((n, d)) < draw(st.sampled_from([0.0, 0.5])))] = -0.0
    return rows, rng


@st.composite
def rows_with_others(draw):
    """Draw such rows with some among them that hold another value, in one place or in all."""
    rows, rng = draw(binary_rows())
    for position in draw(st.lists(st.integers(0, len(rows) - 1), max_size=4)):
        column = rng.integers(rows.shape[1]) if draw(st.booleans()) else slice(None)
        rows[position, column] = draw(st.sampled_from([0.5, -1.0, 2.0, 1 + 2**-52, 5e-324]))
    return rows, rng


@settings(max_examples=400, deadline=None)
@given(st.one_of(binary_rows(), rows_with_others()), st.integers(2, 60), st.sampled_from([1.0, 0.7, 0.05]))
def test_sliding_gives_the_bits_of_adding_up(case, size, share):
    rows, rng = case
    ones, same = (no_ones(rows.shape[1], min(size, len(rows))) for _ in range(2))
    for position in np.flatnonzero(rng.random(len(rows)) < share):
        low, high = window_bounds(position, len(rows), size)
        assert high - low == min(size, len(rows))
        expected = added_up(rows[low:high])
        if is_binary(rows[low:high]):
            assert slide(rows, low, high, ones)
            assert ones.stretch.tolist() == [low, high]
            np.testing.assert_array_equal(ones.counts, rows[low:high].sum(axis=0))
            assert median_bandwidth(rows[low:high], ones) == expected
        else:
            assert not slide(rows, low, high, ones)
        assert window_bandwidths(rows, position, len(rows), size, COMMON, same) == expected


def test_windows_of_zeros_and_ones_are_counted():
    """What is known of single ones is made wrong; whoever counts believes it, whoever adds up does not."""
    rows = np.eye(20, 7)
    ones = no_ones(7, 5)
    ones.lone[:] = 400.0
    assert window_bandwidths(rows, 4, 20, 5, COMMON, ones) > 10 * added_up(rows[:5])
    rows[6, 6] = 0.5
    for position in (6, 8, 10):
        bandwidths = window_bandwidths(rows, position, 20, 5, COMMON, ones)
        assert bandwidths == added_up(rows[position - 4 : position + 1])


@settings(max_examples=100, deadline=None)
@given(st.one_of(binary_rows(), rows_with_others()), st.sampled_from([2, 7, 50]), st.integers(1, 3), st.data())
def test_each_thread_slides_by_itself(case, size, n_parts, data):
    rows, _ = case
    chosen = MLCA(window=size).fit(rows[:1], np.ones((1, 1)))._learner.settings
    first = data.draw(st.integers(0, len(rows) - 1))
    out = np.empty((len(rows) - first, 1))
    for part in range(n_parts):
        foresee_bandwidths(rows, first, len(rows), chosen, out, part, n_parts)
    for j in range(len(out)):
        low, high = window_bounds(first + j, len(rows), size)
        assert out[j, 0] == added_up(rows[low:high])


@pytest.mark.parametrize("m", [2, 3, 50, 1023, LONGEST])
def test_no_order_of_ones_brings_one_class_past_the_next(m):
    """Ones first, ones last and ones anywhere: sums of squares stay within the error that was proved."""
    rng = np.random.default_rng(m)
    classes = np.unique([0, 1, 2, m // 4, m // 2 - 2, m // 2 - 1, m // 2])
    squares = {}
    for e in classes[(classes >= 0) & (classes <= m // 2)]:
        columns = []
        for c in {e, m - e}:
            column = np.arange(m) < c
            columns += [column, column[::-1], *(rng.permutation(column) for _ in range(20))]
        values = np.array(columns).T.astype(float)
        squares[e] = np.add.accumulate((values - values.mean(axis=0)) ** 2)[-1]
        np.testing.assert_allclose(squares[e], e * (m - e) / m, rtol=4 * (m + 2) * 2.0**-53)
    for e in squares:
        if e + 1 in squares:
            assert squares[e].max() < squares[e + 1].min()


def test_windows_beyond_the_proof_are_added_up():
    rows = (np.random.default_rng(0).random((LONGEST + 3, 3)) < 0.5).astype(float)
    ones = no_ones(3, LONGEST)
    assert slide(rows, 0, LONGEST, ones)
    assert median_bandwidth(rows[:LONGEST], ones) == added_up(rows[:LONGEST])
    ones = no_ones(3, LONGEST + 1)
    for position in (LONGEST, LONGEST + 1):
        assert not slide(rows, *window_bounds(position, len(rows), LONGEST + 1), ones)
        bandwidth = window_bandwidths(rows, position, len(rows), LONGEST + 1, COMMON, ones)
        assert bandwidth == added_up(rows[slice(*window_bounds(position, len(rows), LONGEST + 1))])

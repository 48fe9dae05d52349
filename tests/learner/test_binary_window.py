"""In windows of zeros and ones, counting gives the same bandwidths as summing, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca.kernels import native

LONGEST, window_around = native.probes.LONGEST_COUNTED, native.probes.window_around


def added_up(window):
    """Return the common bandwidth by the general method, for any window."""
    return native.probes.median(native.probes.bandwidths_dense(np.ascontiguousarray(window), len(window), 0))


def in_passing(rows, size, positions):
    """Return the common bandwidths at positions of a stream, from a dense and from a sparse window."""
    positions = np.asarray(positions, np.int64)
    thin = sparse.csr_array(rows)
    parts = (thin.indptr.astype(np.int64), thin.indices.astype(np.int32), thin.data)
    return (
        native.probes.common_bandwidths_dense(rows, size, positions),
        native.probes.common_bandwidths_sparse(*parts, rows.shape[1], size, positions),
    )


@st.composite
def binary_rows(draw):
    """Draw rows of zeros (of either sign) and ones; all features have the same density, or different ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 150)), draw(st.one_of(st.integers(1, 12), st.integers(60, 140)))
    density = draw(st.sampled_from([0.0, 0.01, 0.03, 0.2, 0.5, 0.8, 0.98, 1.0, None]))
    rows = (rng.random((n, d)) < (rng.random(d) ** 2 if density is None else density)).astype(float)
    rows[(rows == 0) & (rng.random((n, d)) < draw(st.sampled_from([0.0, 0.5])))] = -0.0
    return rows, rng


@st.composite
def rows_with_others(draw):
    """Draw rows of zeros and ones, some of which also have another value, in one feature or in all."""
    rows, rng = draw(binary_rows())
    for position in draw(st.lists(st.integers(0, len(rows) - 1), max_size=4)):
        column = rng.integers(rows.shape[1]) if draw(st.booleans()) else slice(None)
        rows[position, column] = draw(st.sampled_from([0.5, -1.0, 2.0, 1 + 2**-52, 5e-324]))
    return rows, rng


@settings(max_examples=400, deadline=None)
@given(st.one_of(binary_rows(), rows_with_others()), st.integers(2, 60), st.sampled_from([1.0, 0.7, 0.05]))
def test_sliding_window_equals_a_new_sum(case, size, share):
    rows, rng = case
    positions = np.flatnonzero(rng.random(len(rows)) < share)
    windows = [window_around(position, len(rows), size) for position in positions]
    assert all(high - low == min(size, len(rows)) for low, high in windows)
    expected = [added_up(rows[low:high]) for low, high in windows]
    for bandwidths in in_passing(rows, size, positions):
        np.testing.assert_array_equal(bandwidths, expected)


@settings(max_examples=100, deadline=None)
@given(rows_with_others(), st.integers(2, 60), st.data())
def test_sparse_windows_give_the_bandwidths_of_dense_ones(case, size, data):
    rows, _ = case
    position = data.draw(st.integers(0, len(rows) - 1))
    thin = sparse.csr_array(rows)
    parts = (thin.indptr.astype(np.int64), thin.indices.astype(np.int32), thin.data)
    np.testing.assert_array_equal(
        native.probes.bandwidths_sparse(*parts, rows.shape[1], size, position),
        native.probes.bandwidths_dense(rows, size, position),
    )


@pytest.mark.parametrize("m", [2, 3, 50, 1023, LONGEST])
def test_order_of_ones_is_preserved_between_classes(m):
    """Ones first, last or anywhere: the error of sums of squares stays within the proved bound."""
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


def test_windows_beyond_the_proof_are_summed():
    rows = (np.random.default_rng(0).random((LONGEST + 3, 3)) < 0.5).astype(float)
    for size in (LONGEST, LONGEST + 1):
        positions = [LONGEST - 1, LONGEST, LONGEST + 1]
        expected = [added_up(rows[slice(*window_around(position, len(rows), size))]) for position in positions]
        for bandwidths in in_passing(rows, size, positions):
            np.testing.assert_array_equal(bandwidths, expected)

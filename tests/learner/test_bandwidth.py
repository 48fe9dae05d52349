"""Medians equal those of sorting, also if values arrive one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca.kernels import native

median, partition = native.probes.median, native.probes.partition


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([1, 2, 5, 1000]))
def test_the_median_is_the_middle_of_the_sorted_values(seed, n, n_distinct):
    values = np.random.default_rng(seed).integers(0, n_distinct, n) * 0.1
    ordered = np.sort(values)
    expected = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    assert median(values) == expected


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled", "equal"])
@pytest.mark.parametrize("n", [1, 2, 9, 10])
def test_partitions_keep_the_values(order, n):
    values = np.arange(n, dtype=float)
    if order == "equal":
        values[:] = 3.0
    elif order != "ascending":
        values = values[::-1].copy() if order == "descending" else np.random.default_rng(n).permutation(values)
    for target in range(n):
        parted = values.copy()
        partition(parted, target)
        np.testing.assert_array_equal(np.sort(parted), np.sort(values))
        assert parted[:target].max(initial=-1) <= parted[target] <= parted[target:].min()


@given(st.integers(0, 2**32 - 1), st.integers(1, 100), st.sampled_from([1, 3, 1000]))
def test_a_running_median_is_that_of_all_values_so_far(seed, n, n_distinct):
    values = np.random.default_rng(seed).integers(0, n_distinct, n) * 0.1
    expected = [median(values[: k + 1]) for k in range(n)]
    np.testing.assert_array_equal(native.probes.running_medians(values), expected)

"""Shortcuts of the neighbour search compared with the full computation: screening, and overlaps counted by bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA
from mlca.kernels import native
from tests.learner.model_comparison import assert_same_state, learned

SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
@pytest.mark.parametrize("spread", [0.05, 10.0], ids=["few survive screening", "most survive it"])
def test_screening_does_not_change_the_model(spread, attributes):
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 1, (6, 200))
    X = centres[rng.integers(6, size=400)] + spread * rng.normal(0, 1, (400, 200))
    X[100:110] = X[:10]
    Y = (rng.random((400, 4)) < 0.4).astype(int)
    screened, plain = (learned({"attributes": attributes}, X, Y, screen_from) for screen_from in (1, 10**9))
    assert_same_state(screened, plain)
    np.testing.assert_array_equal(screened.answers(X).probabilities, plain.answers(X).probabilities)


def attributes_of(row):
    return np.flatnonzero(row).astype(np.int32)


def overlaps_of(B):
    """Return bitmap counts with one node per row of B, which has the features of that row."""
    overlaps = native.probes.BitmapCounts()
    for row in B:
        overlaps.enter(attributes_of(row))
    return overlaps


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from([1, 5, 300, 700]), st.integers(1, 200), st.sampled_from([0.01, 0.2, 0.9, 1.0]))
def test_overlap_counts_are_numbers_of_common_features(seed, d, n_nodes, density):
    rng = np.random.default_rng(seed)
    B = rng.random((n_nodes, d)) < density
    x = rng.random(d) < density
    overlaps = overlaps_of(B)
    for some in {n_nodes, n_nodes // 2, 0}:  # some nodes may be excluded from the search
        np.testing.assert_array_equal(overlaps.count(attributes_of(x), some), (B & x).sum(axis=1)[:some])


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 200), st.integers(0, 200), st.integers(0, 100), st.sampled_from([0.05, 0.5, 1.0]))
def test_withdrawn_nodes_do_not_change_later_overlap_counts(seed, n_nodes, n_withdrawn, n_others, density):
    rng = np.random.default_rng(seed)
    B, others = (rng.random((n, 12)) < density for n in (n_nodes, n_others))
    kept = max(0, n_nodes - n_withdrawn)
    overlaps = overlaps_of(B)
    for _ in range(n_nodes - kept):
        overlaps.withdraw()
    for row in others:
        overlaps.enter(attributes_of(row))
    now = np.concatenate([B[:kept], others])
    for x in (np.ones(12, bool), rng.random(12) < 0.5):
        np.testing.assert_array_equal(overlaps.count(attributes_of(x), len(now)), (now & x).sum(axis=1))


def test_sparse_rows_with_more_than_255_ones_equal_dense_ones():
    rng = np.random.default_rng(0)
    X = (rng.random((150, 900)) < 0.6).astype(float)
    Y = (rng.random((150, 3)) < 0.5).astype(int)
    dense, thin = MLCA(window=20).fit(X, Y), MLCA(window=20).fit(sparse.csr_array(X), Y)
    assert_same_state(dense, thin)
    np.testing.assert_array_equal(dense.predict_proba(X), thin.predict_proba(sparse.csr_array(X)))

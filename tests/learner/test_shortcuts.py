"""Shortcuts of the neighbour search against what they spare: sums abandoned half-way, overlaps counted by bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA
from mlca.learner import similarity
from mlca.learner.growing import empty_ragged, with_room_to_enter
from mlca.learner.kernels.fixedpoint import common_sum, common_sums
from mlca.learner.kernels.overlaps import Owners, count_overlaps, enter, withdraw
from tests.learner.states import assert_same_state

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.integers(1, 40), st.integers(1, 30), st.integers(1, 45), st.floats(0, 1.2))
def test_an_abandoned_sum_has_reached_the_limit_and_any_other_is_exact(seed, d, n_nodes, stretch, share):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(0, 1, d), rng.normal(0, 1, (n_nodes, d))
    exact = np.array([common_sum(x, y, 0.7) for y in weights])
    limit = int(share * exact.max())
    totals = np.empty(n_nodes, np.int64)
    done = common_sums(x, weights, 0, n_nodes, 0.7, stretch, limit, totals)
    assert done <= n_nodes * d
    assert ((totals == exact) | ((totals >= limit) & (exact >= totals))).all()
    if limit > exact.max():
        assert done == n_nodes * d
        np.testing.assert_array_equal(totals, exact)


@pytest.mark.parametrize("spread", [0.05, 10.0], ids=["abandoning pays", "it does not"])
def test_models_do_not_depend_on_what_was_abandoned(monkeypatch, spread):
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 1, (6, 200))
    X = centres[rng.integers(6, size=400)] + spread * rng.normal(0, 1, (400, 200))
    X[100:110] = X[:10]
    Y = (rng.random((400, 4)) < 0.4).astype(int)
    screened = MLCA().fit(X, Y)
    monkeypatch.setattr(similarity, "SCREEN_FROM", 10**9)
    abandoned = MLCA().fit(X, Y)
    assert_same_state(screened, abandoned)
    np.testing.assert_array_equal(screened.predict_proba(X), abandoned.predict_proba(X))


def owners_of(B, end):
    """Enter the first nodes, which have the attributes of the rows of B, where there is room for all of them."""
    d = B.shape[1]
    nobody = Owners(empty_ragged(d, np.uint64), np.zeros(d, np.uint64), np.zeros(1, np.int64))
    owners = with_room_to_enter(nobody, int(B.sum()))
    for node in range(end):
        enter(owners, np.flatnonzero(B[node]).astype(np.int32), node)
    return owners


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from([1, 5, 300, 700]), st.integers(1, 200), st.sampled_from([0.01, 0.2, 0.9, 1.0]))
def test_overlaps_are_the_attributes_that_both_have(seed, d, n_nodes, density):
    rng = np.random.default_rng(seed)
    B = rng.random((n_nodes, d)) < density
    x = rng.random(d) < density
    owners = owners_of(B, n_nodes)
    own = np.flatnonzero(x).astype(np.int32)
    for some in {n_nodes, n_nodes // 2, 0}:  # there may be nodes that are not asked for
        np.testing.assert_array_equal(count_overlaps(own, owners, some)[:some], (B & x).sum(axis=1)[:some])


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 150), st.integers(0, 150), st.sampled_from([0.05, 0.5, 1.0]))
def test_withdrawn_nodes_leave_no_trace(seed, n_nodes, n_withdrawn, density):
    rng = np.random.default_rng(seed)
    B = rng.random((n_nodes, 12)) < density
    kept = max(0, n_nodes - n_withdrawn)
    owners, never = owners_of(B, n_nodes), owners_of(B, kept)
    for node in range(n_nodes - 1, kept - 1, -1):
        withdraw(owners, np.flatnonzero(B[node]).astype(np.int32), node)
    np.testing.assert_array_equal(owners.masks, never.masks)
    assert owners.tile == never.tile
    for i in range(12):
        for part in ("keys", "values"):
            one, other = (
                getattr(some.lists, part)[some.lists.start[i] : some.lists.start[i] + some.lists.length[i]]
                for some in (owners, never)
            )
            np.testing.assert_array_equal(one, other)


def test_rows_with_more_ones_than_a_byte_counts():
    rng = np.random.default_rng(0)
    X = (rng.random((150, 900)) < 0.6).astype(float)
    Y = (rng.random((150, 3)) < 0.5).astype(int)
    dense, thin = MLCA(window=20).fit(X, Y), MLCA(window=20).fit(sparse.csr_array(X), Y)
    assert_same_state(dense, thin)
    np.testing.assert_array_equal(dense.predict_proba(X), thin.predict_proba(sparse.csr_array(X)))


def test_a_row_that_comes_again_leaves_its_node_on_the_lists():
    X = sparse.csr_array(np.eye(40)[np.repeat(np.arange(40), 2)])
    model = MLCA(window=10).fit(X, np.ones((80, 1), int))
    assert model._learner.model.nodes.listed[: model.n_nodes_].all()

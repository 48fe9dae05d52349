"""The seven guarantees of the specification: bit for bit, whatever the stream."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA
from tests.learner.states import assert_same_state, assert_threads_do_not_matter, state
from tests.learner.streams import parameters, streams

FEW = settings(max_examples=60, deadline=None)


@FEW
@given(streams(max_rows=130), parameters(), st.data())
def test_chunks_and_predictions_in_between_do_not_matter(stream, chosen, data):
    X, Y = stream
    whole = MLCA(**chosen).fit(X, Y)
    parts = MLCA(**chosen)
    edges = sorted(data.draw(st.sets(st.integers(1, len(X)), max_size=6)) | {0, len(X)})
    for low, high in pairwise(edges):
        parts.partial_fit(X[low:high], Y[low:high])
        parts.predict(X[:2])
        assert parts.n_nodes_ > 0
    assert_same_state(whole, parts)
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))


@FEW
@given(streams(max_rows=130), parameters(), st.integers(0, 130))
def test_labels_may_come_late(stream, chosen, known_until):
    X, Y = stream
    from_the_start = MLCA(**chosen).fit(X, Y)
    late = MLCA(**chosen)
    cut = min(known_until, len(X))
    known = max(int(np.flatnonzero(Y[:cut].any(axis=0)).max(initial=0)) + 1, 1)
    if cut:
        late.partial_fit(X[:cut], Y[:cut, :known])
    if cut < len(X):
        late.partial_fit(X[cut:], Y[cut:])
    else:
        late.partial_fit(X[:1], np.zeros((1, Y.shape[1])))
        from_the_start.partial_fit(X[:1], np.zeros((1, Y.shape[1])))
    assert_same_state(from_the_start, late)
    np.testing.assert_array_equal(from_the_start.predict_proba(X), late.predict_proba(X))


@FEW
@given(streams(), parameters(), st.randoms(use_true_random=False))
def test_columns_may_be_permuted(stream, chosen, random):
    if chosen["attributes"] == "clustered":
        chosen = chosen | {"attributes": "individual"}
    X, Y = stream
    order = random.sample(range(X.shape[1]), X.shape[1])
    straight, permuted = MLCA(**chosen).fit(X, Y), MLCA(**chosen).fit(X[:, order], Y)
    first, second = state(straight), state(permuted)
    np.testing.assert_array_equal(first.pop("weights")[:, order], second.pop("weights"))
    first_bandwidths, second_bandwidths = first.pop("bandwidths"), second.pop("bandwidths")
    if chosen["attributes"] == "individual":
        first_bandwidths = first_bandwidths[:, order]
    np.testing.assert_array_equal(first_bandwidths, second_bandwidths)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    np.testing.assert_array_equal(straight.predict_proba(X), permuted.predict_proba(X[:, order]))


@FEW
@given(streams(), parameters(), st.sampled_from([sparse.csr_array, sparse.csr_matrix, sparse.coo_array]))
def test_sparse_rows_give_the_same_model(stream, chosen, kind):
    X, Y = stream
    dense, thin = MLCA(**chosen).fit(X, Y), MLCA(**chosen).fit(kind(X), Y)
    assert sparse.issparse(thin.weights_)
    assert_same_state(dense, thin)
    np.testing.assert_array_equal(dense.predict_proba(X), thin.predict_proba(kind(X)))
    np.testing.assert_array_equal(dense.predict_proba(X), thin.predict_proba(X))


@FEW
@given(
    streams(max_rows=300, features=st.sampled_from([3, 65, 300])),
    parameters(),
    st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_any_number_of_threads_gives_the_same_model(stream, chosen, kind):
    """Threads look ahead together where there is enough to compare: wide rows reach that."""
    X, Y = kind(stream[0]), stream[1]
    assert_threads_do_not_matter(X, Y, chosen)


@pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
def test_threads_that_make_nodes_side_by_side_do_not_matter(attributes):
    """Long blocks are made together, and the screen is renewed by all; now and then a row joins a node."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (2300, 24)), (rng.random((2300, 3)) < 0.3).astype(int)
    X[100::97] = X[50 : len(X) - 50 : 97]
    one, _ = assert_threads_do_not_matter(X, Y, {"attributes": attributes, "vigilance": 0.01})
    assert 2048 < one.n_nodes_ < len(X)


@FEW
@given(streams(max_rows=70), parameters(), st.integers(2, 3))
def test_epochs_are_passes_over_the_same_rows(stream, chosen, epochs):
    X, Y = stream
    repeated = MLCA(**chosen).fit(np.tile(X, (epochs, 1)), np.tile(Y, (epochs, 1)))
    assert_same_state(repeated, MLCA(**chosen, epochs=epochs).fit(X, Y))


@FEW
@given(streams(), parameters(), st.integers(-20, 20))
def test_powers_of_two_change_nothing_but_the_scale(stream, chosen, exponent):
    if chosen["attributes"] == "clustered" and stream[0].shape[1] < 4:
        chosen = chosen | {"attributes": "common"}  # a window of few means may be constant
    X, Y = stream
    # No attribute may be constant in any window: neighbours in the stream always differ. Two rows at least.
    X = np.concatenate([X, X[:1]]) + np.linspace(0, 1, len(X) + 1)[:, None] * np.arange(1, X.shape[1] + 1)
    assume((np.diff(X, axis=0) != 0.0).all())
    Y = np.concatenate([Y, Y[:1]])
    plain, scaled = MLCA(**chosen).fit(X, Y), MLCA(**chosen).fit(X * 2.0**exponent, Y)
    first, second = state(plain), state(scaled)
    # Nor may the mean of some attributes be: what is constant has a bandwidth near 1e-6 at any scale.
    assume((first["centre_bandwidths"] > 1e-4).all())
    for name in first:
        factor = 2.0**exponent if name in ("weights", "bandwidths", "centres", "centre_bandwidths") else 1
        np.testing.assert_array_equal(first[name] * factor, second[name], err_msg=name)
    np.testing.assert_array_equal(plain.predict_proba(X), scaled.predict_proba(X * 2.0**exponent))

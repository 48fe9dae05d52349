"""Drifting streams: the requested rows, the same for any chunk size, with the change at the documented row."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from mlca.datasets import random_rbf, random_tree, rotate_labels, rotating_hyperplane
from mlca.datasets.drifting import CHANGES

STREAMS = [rotating_hyperplane, random_rbf, random_tree]
FEW = settings(max_examples=8, deadline=None)


def whole(stream):
    X, Y = zip(*stream, strict=True)
    return np.concatenate(X), np.concatenate(Y)


def judge(kind):
    """Return a model that can learn the concept."""
    if kind is rotating_hyperplane:
        return MultiOutputClassifier(LogisticRegression(C=100))
    return RandomForestClassifier(60, random_state=0)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("change", CHANGES)
@FEW
@given(seed=st.integers(0, 2**31 - 2), chunks=st.tuples(st.integers(1, 90), st.integers(1, 90)))
def test_chunk_size_does_not_change_the_stream(kind, change, seed, chunks):
    one, other = (whole(kind(100, change=change, chunk=chunk, random_state=seed)) for chunk in chunks)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("kind", STREAMS)
def test_stream_depends_on_its_seeds_only(kind):
    (X, Y), (X_again, Y_again), (X_other, _) = (whole(kind(200, random_state=seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(X, X_again)
    np.testing.assert_array_equal(Y, Y_again)
    assert (X_other != X).any()
    shared = np.random.RandomState(3)
    assert (whole(kind(200, random_state=shared))[0] != whole(kind(200, random_state=shared))[0]).any()


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("cardinality", [1.0, 2.5])
def test_mean_number_of_labels_is_as_requested(kind, cardinality):
    quiet = {"noise": 0.0} if kind is rotating_hyperplane else {}
    means = [
        whole(kind(2000, n_labels=6, cardinality=cardinality, change="none", random_state=seed, **quiet))[1]
        .sum(axis=1)
        .mean()
        for seed in range(8)
    ]
    spare = 0.4 if cardinality == 1.0 else 0.1  # a third of the sets is empty and gets a label
    assert cardinality - 0.25 <= np.mean(means) <= cardinality + spare + 0.15


@pytest.mark.parametrize("kind", STREAMS)
def test_stream_without_change_has_the_same_concept_in_both_halves(kind):
    X, Y = whole(kind(6000, change="none"))
    errors = []
    for start in (0, 3000):
        model = judge(kind).fit(X[start : start + 2000], Y[start : start + 2000])
        errors.append(np.mean(model.predict(X[5000:]) != Y[5000:]))
    assert errors[0] < errors[1] + 0.03
    assert max(errors) < 0.2


@pytest.mark.parametrize("kind", STREAMS)
def test_change_happens_at_the_documented_rows(kind):
    """A model of the first concept is right while the concept holds, and wrong elsewhere."""
    n = 6000
    X, Y = whole(kind(n, change="none"))
    model = judge(kind).fit(X[: n // 2], Y[: n // 2])

    def errors(change, start, stop):
        X, Y = whole(kind(n, change=change))
        return np.mean(model.predict(X[start:stop]) != Y[start:stop])

    calm = errors("none", n // 2, n)
    assert errors("sudden", 0, n // 2) < calm + 0.02
    assert errors("sudden", n // 2, n) > calm + 0.15
    assert errors("recurrent", n // 3, 2 * n // 3) > calm + 0.15
    assert errors("recurrent", 2 * n // 3, n) < calm + 0.05
    assert errors("gradual", 0, n // 3) < calm + 0.02
    assert errors("gradual", 2 * n // 3, n) > calm + 0.15
    between = errors("gradual", n // 2 - n // 40, n // 2 + n // 40)
    assert calm + 0.03 < between < errors("gradual", 2 * n // 3, n)


@pytest.mark.parametrize(("kind", "speed"), [(rotating_hyperplane, 0.01), (random_rbf, 0.0005), (random_tree, None)])
def test_incremental_change_grows_with_the_rows(kind, speed):
    chosen = {} if speed is None else {"speed": speed}
    X, Y = whole(kind(9000, change="incremental", **chosen))
    model = judge(kind).fit(X[:1500], Y[:1500])
    near, far = (np.mean(model.predict(X[rows]) != Y[rows]) for rows in (slice(1500, 2500), slice(8000, 9000)))
    assert far > near + 0.05


def test_hyperplanes_are_flat_and_noise_has_the_requested_rate():
    quiet, noisy = (whole(rotating_hyperplane(4000, change="none", noise=noise)) for noise in (0.0, 0.1))
    np.testing.assert_array_equal(quiet[0], noisy[0])
    assert np.mean(quiet[1] != noisy[1]) == pytest.approx(0.1, abs=0.01)
    X, Y = quiet
    assert X.min() >= 0 and X.max() <= 1
    assert judge(rotating_hyperplane).fit(X, Y).score(X, Y) > 0.9


def test_categories_of_the_tree_are_columns_of_0_and_1():
    X, _ = whole(random_tree(500))
    assert X.shape[1] == 30
    assert set(np.unique(X[:, 5:])) == {0.0, 1.0}
    np.testing.assert_array_equal(X[:, 5:].reshape(500, 5, 5).sum(axis=2), 1.0)


@pytest.mark.parametrize("kind", STREAMS)
def test_memory_is_bounded_by_the_chunk(kind):
    """For a stream of ten million rows, memory stays constant after a few chunks."""
    stream = kind(10_000_000)
    tracemalloc.start()
    try:
        for _ in islice(stream, 5):
            pass
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in islice(stream, 60):
            pass
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200_000
    assert peak - before < 5_000_000


@pytest.mark.parametrize("kind", STREAMS)
def test_invalid_arguments_are_rejected_at_once(kind):
    with pytest.raises(ValueError, match=r"`change` must be one of .*; got 'slow'"):
        kind(100, change="slow")
    with pytest.raises(ValueError, match="`n_rows` and `chunk` must be at least 1; got 0"):
        kind(0)
    with pytest.raises(ValueError, match="`cardinality` must be between 0 and the number of labels, 5; got 5"):
        kind(100, n_labels=5, cardinality=5)


@FEW
@given(
    seed=st.integers(0, 1000),
    n=st.integers(0, 60),
    q=st.integers(1, 5),
    change=st.sampled_from(CHANGES[1:3] + CHANGES[4:]),
)
def test_rotated_labels_move_one_column(seed, n, q, change):
    Y = np.random.default_rng(seed).integers(2, size=(n, q), dtype=np.uint8)
    rotated = rotate_labels(Y, change, random_state=seed)
    moved = (rotated != Y).any(axis=1)
    np.testing.assert_array_equal(rotated[moved], np.roll(Y, 1, axis=1)[moved])
    np.testing.assert_array_equal(rotate_labels(sp.csr_matrix(Y), change, random_state=seed).toarray(), rotated)
    np.testing.assert_array_equal(rotate_labels(Y.tolist() if n else Y, change, random_state=seed), rotated)
    if q > 1 and change == "sudden":
        np.testing.assert_array_equal(rotated, np.concatenate((Y[: n // 2], np.roll(Y[n // 2 :], 1, axis=1))))
    if q > 1 and change == "recurrent":
        assert not moved[: n // 3].any() and not moved[2 * n // 3 :].any()


def test_gradual_rotation_mixes_both_concepts_around_the_middle():
    Y = np.tile(np.array([[1, 0]], dtype=np.uint8), (1000, 1))
    moved = rotate_labels(Y, "gradual")[:, 1] == 1
    assert not moved[:300].any() and moved[700:].all()
    assert 0.3 < moved[450:550].mean() < 0.7
    with pytest.raises(ValueError, match="'incremental'"):
        rotate_labels(Y, "incremental")

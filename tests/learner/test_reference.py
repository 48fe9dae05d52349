"""The compiled learner equals the plain one bit for bit, on every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from mlca.bench.rivals import PlainNumPy
from mlca.learner.parameters import SCREEN_FROM
from tests.learner.reference import Reference
from tests.learner.states import assert_same_arrays, learned, state
from tests.learner.streams import parameters, streams


def assert_equals_reference(X, Y, chosen, rows, screen_from=SCREEN_FROM, n_queries=5):
    reference = Reference(**chosen).fit(X, Y)
    learner = learned(chosen, rows, Y, screen_from).settled()
    expected = {
        "weights": reference.y,
        "counts": reference.alpha,
        "label_counts": reference.beta,
        "bandwidths": reference.bandwidth,
        "with": reference.with_,
        "without": reference.without,
        "n": reference.n,
        "centres": [centre for centre, _, _ in reference.centres],
        "centre_counts": [count for _, count, _ in reference.centres],
        "centre_bandwidths": [bandwidth for _, _, bandwidth in reference.centres],
    }
    assert_same_arrays(state(learner), {name: np.array(value) for name, value in expected.items()})
    queries = np.concatenate([X[:n_queries], X[: n_queries // 2 + 1] + 0.25])
    rows_of = type(rows) if sparse.issparse(rows) else np.asarray
    said = learner.answers(rows_of(queries)).probabilities
    np.testing.assert_array_equal(said, [reference.predict_proba(x) for x in queries])


@pytest.mark.parametrize("screen_from", [10**9, 1, SCREEN_FROM], ids=["never", "always", "as users have it"])
@settings(max_examples=100, deadline=None)
@given(streams(), parameters())
def test_dense_rows_equal_the_plain_learner(screen_from, stream, chosen):
    X, Y = stream
    assert_equals_reference(X, Y, chosen, X, screen_from)


@settings(max_examples=150, deadline=None)
@given(streams(), parameters())
def test_sparse_rows_equal_the_plain_learner(stream, chosen):
    X, Y = stream
    assert_equals_reference(X, Y, chosen, sparse.csr_array(X))


# Widths around those of vectors, of tiles and of what is counted in a byte; few rows where they are wide.
REACH = {7: 310, 65: 90, 257: 60, 300: 50}
USUAL = {"vigilance": 0.1, "n_neighbors": 10, "smoothing": 1.0, "rule": "published", "vote": "counts"}


def far_stream(n, d, binary, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, d))
    X[rng.random(X.shape) < 0.6] = 0.0
    if binary:
        X = (X != 0).astype(float)
    again = rng.random(n) < 0.15
    X[again] = X[rng.integers(0, n, again.sum())] + (0.0 if binary else 1e-3)
    return X, (rng.random((n, 4)) < 0.3).astype(int)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
@pytest.mark.parametrize(("d", "n"), REACH.items())
def test_wide_rows_and_long_streams_equal_the_plain_learner(d, n, attributes, kind):
    # Each width meets binary and real rows; all combinations are met in the slow test.
    binary = (attributes == "individual") == (kind is np.asarray)
    X, Y = far_stream(n if attributes == "common" else n * 2 // 3 if n < 300 else n, d, binary)
    assert_equals_reference(X, Y, USUAL | {"attributes": attributes, "window": 20}, kind(X), n_queries=2)


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("binary", [False, True], ids=["real", "binary"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
@pytest.mark.parametrize("d", REACH)
def test_the_same_for_three_hundred_rows_of_every_kind(d, attributes, kind, binary):
    X, Y = far_stream(320, d, binary, seed=1)
    assert_equals_reference(X, Y, USUAL | {"attributes": attributes, "window": 50}, kind(X), n_queries=4)


@pytest.mark.parametrize("vigilance", [0.01, 0.35])
@pytest.mark.parametrize(("n", "d"), [(40, 3), (300, 8), (200, 65)])
def test_the_plain_numpy_rival_of_the_benchmark_learns_the_same_model(n, d, vigilance):
    rng = np.random.default_rng(d)
    X, Y = rng.normal(0, 1, (n, d)), (rng.random((n, 4)) < 0.3).astype(np.uint8)
    rival, model = PlainNumPy(vigilance).fit(X, Y), state(learned({"vigilance": vigilance}, X, Y))
    k = rival.n_nodes
    np.testing.assert_array_equal(rival.counts[:k], model["counts"])
    np.testing.assert_array_equal(rival.labels[:k], model["label_counts"])
    np.testing.assert_array_equal(rival.with_, model["with"])
    np.testing.assert_array_equal(rival.without, model["without"])
    np.testing.assert_allclose(rival.weights[:k], model["weights"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rival.bandwidths[:k], model["bandwidths"], rtol=1e-12)

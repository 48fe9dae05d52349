"""The compiled learner equals the plain one bit for bit, on every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

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
    np.testing.assert_array_equal(
        learner.probabilities(rows_of(queries)), [reference.predict_proba(x) for x in queries]
    )


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

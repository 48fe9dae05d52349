"""The compiled learner equals the plain one bit for bit, on every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from mlca import MLCA
from mlca.learner import growing, similarity
from tests.learner.reference import Reference
from tests.learner.states import state
from tests.learner.streams import parameters, streams


def assert_equals_reference(X, Y, chosen, rows):
    reference = Reference(**chosen).fit(X, Y)
    model = MLCA(**chosen).fit(rows, Y)
    learned = state(model)
    expected = {
        "weights": reference.y,
        "counts": reference.alpha,
        "label_counts": reference.beta,
        "bandwidths": reference.bandwidth,
        "with": reference.with_,
        "without": reference.without,
        "centres": [centre for centre, _, _ in reference.centres],
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(learned[name], np.array(value), err_msg=name)
    queries = np.concatenate([X[:5], X[:3] + 0.25])
    rows_of = type(rows) if sparse.issparse(rows) else np.asarray
    np.testing.assert_array_equal(model.predict_proba(rows_of(queries)), [reference.predict_proba(x) for x in queries])


@pytest.fixture(params=["never screened", "always screened, tiles of 4", "as users have it"], scope="module")
def path(request):
    patch = pytest.MonkeyPatch()
    if request.param == "never screened":
        patch.setattr(similarity, "SCREEN_FROM", 10**9)
    elif request.param == "always screened, tiles of 4":
        patch.setattr(similarity, "SCREEN_FROM", 1)
        patch.setattr(growing, "TILE", 4)
    yield request.param
    patch.undo()


@settings(max_examples=150, deadline=None)
@given(streams(), parameters())
def test_dense_rows_equal_the_plain_learner(path, stream, chosen):
    X, Y = stream
    assert_equals_reference(X, Y, chosen, X)


@settings(max_examples=150, deadline=None)
@given(streams(), parameters())
def test_sparse_rows_equal_the_plain_learner(stream, chosen):
    X, Y = stream
    assert_equals_reference(X, Y, chosen, sparse.csr_array(X))

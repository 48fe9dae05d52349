"""Memory that runs out, at every allocation in turn: the model is that of the rows it has seen, and goes on."""

import pickle

import numpy as np
import pytest

from mlca import MLCA
from mlca.dask import merge
from mlca.kernels import native
from tests.learner.attacks import KINDS, MODES, assert_whole_rows, stream
from tests.learner.states import assert_exactly_same


@pytest.fixture(autouse=True)
def nothing_fails_later():
    yield
    native.fail_allocation(-1)


def failing(attempt, step=1):
    """Let each step-th allocation of an attempt fail, one an attempt; yield what `attempt` was given to work on."""
    for n in range(0, 100_000, step):
        subject, act = attempt()
        native.fail_allocation(n)
        try:
            act()
        except MemoryError:
            native.fail_allocation(-1)
            yield subject
        else:
            native.fail_allocation(-1)
            return
    raise AssertionError("allocations never ended")


@pytest.mark.parametrize(
    ("rule", "step"), [("published", 4), ("text", 9), pytest.param("text", 1, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_learning_goes_on_after_any_allocation_failed(attributes, kind, rule, step):
    X, y = stream(90, 5, kind)

    def make():
        return MLCA(attributes=attributes, window=20, vigilance=0.3, rule=rule)

    def attempt():
        model = make()
        return model, lambda: model.partial_fit(X, y)

    for model in failing(attempt, step):
        assert_whole_rows(model, make, X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_the_same_while_threads_look_ahead(attributes, kind):
    X, y = stream(150, 300, kind)
    half = make(attributes).partial_fit(X[:70], y[:70])

    def attempt():
        model = pickle.loads(pickle.dumps(half))
        return model, lambda: model.set_params(n_jobs=2).partial_fit(X[70:], y[70:])

    seen = []
    for model in failing(attempt, step=67):
        seen.append(model.n_seen_)
        assert_whole_rows(model, lambda: make(attributes), X, y)
    assert len(seen) > 2  # how far a failing run came depends on whether threads looked ahead


def make(attributes):
    return MLCA(attributes=attributes, window=20, vigilance=0.05)


@pytest.mark.parametrize("n", [15, 60], ids=["waiting", "learned"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_questions_that_fail_change_nothing(attributes, kind, n):
    X, y = stream(n, 6, kind)
    model, other, expected = (MLCA(attributes=attributes, window=20, n_jobs=2).fit(X, y) for _ in range(3))
    questions = [
        lambda: model.predict_proba(X),
        lambda: model.explain(X[:1]),
        lambda: model.weights_,
        lambda: pickle.dumps(model),
        lambda: merge([model, other]),
    ]
    for question in questions:
        failures = sum(1 for _ in failing(lambda question=question: (None, question), step=5))
        assert failures > 0
    assert_exactly_same(model, expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_a_model_whose_first_row_failed_has_learned_nothing():
    X, y = stream(30, 4)
    model = MLCA()
    native.fail_allocation(0)
    with pytest.raises(MemoryError):
        model.partial_fit(X, y)
    assert not hasattr(model, "labels_")
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)
    assert_exactly_same(model.partial_fit(X, y), MLCA().partial_fit(X, y))

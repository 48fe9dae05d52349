"""Memory allocations that fail, one after another: the model is that of the learned rows, and can continue."""

import copy
import pickle
from bisect import bisect_left
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, merge
from mlca.kernels import native
from tests.learner.attacks import EVERY, KINDS, MODES, SOME, WholeRows, stream
from tests.learner.model_comparison import assert_exactly_same

MOST_ALLOCATIONS, MOST_OF_A_FEW_ROWS = 100_000, 8192


@pytest.fixture(autouse=True)
def nothing_fails_later():
    yield
    native.probes.fail_allocation(-1)


def failing(attempt, step=1, first=0):
    """Repeat an attempt with one failing allocation, every step-th in turn; yield the object that it worked on."""
    for n in range(first, MOST_ALLOCATIONS, step):
        subject, has_failed = with_a_failure(attempt, n)
        if not has_failed:
            return
        yield subject
    raise AssertionError("allocations never ended")


def with_a_failure(attempt, n):
    """Let allocation n of an attempt fail; return the object that it worked on, and whether allocation n occurred."""
    subject, act = attempt()
    native.probes.fail_allocation(n)
    try:
        act()
    except MemoryError:
        return subject, True
    finally:
        native.probes.fail_allocation(-1)
    return subject, False


def going_on(half, X, y, n_jobs):
    """Return a function that continues training a model with further rows."""
    known = pickle.dumps(half)

    def attempt():
        model = pickle.loads(known)
        return model, lambda: model.set_params(n_jobs=n_jobs).partial_fit(X[half.n_seen_ :], y[half.n_seen_ :])

    return attempt


def first_allocation_behind(attempt, n_rows):
    """Return the index of the first allocation after a given number of learned rows."""
    return bisect_left(
        range(MOST_OF_A_FEW_ROWS),
        True,
        key=lambda n: not (tried := with_a_failure(attempt, n))[1] or tried[0].n_seen_ > n_rows,
    )


def n_allocations(attempt):
    return bisect_left(range(MOST_OF_A_FEW_ROWS), True, key=lambda n: not with_a_failure(attempt, n)[1])


def assert_failures_while_threads_look_ahead(make, kind, step):
    """Let allocations fail after the first rows, including those of threads that look ahead (search for later rows).

    The first decision of threads to look ahead does not depend on the clock; later ones do.
    """
    X, y = wide_stream(kind)
    half = make().partial_fit(X[:70], y[:70])
    attempt = going_on(half, X, y, n_jobs=2)
    first = first_allocation_behind(attempt, 70)
    whole_rows, seen = WholeRows(make, X, y), []
    for model in failing(attempt, step, first):
        seen.append(model.n_seen_)
        whole_rows.check(model)
        if seen[-1] > 100:
            break  # looking ahead allocates all of its memory in its first block
    assert len(seen) > 2 and max(seen) > 70  # the first allocation after row 70 varies with the threads


def assert_looking_ahead_allocates(make, kind, step):
    """Assert that looking ahead with threads makes more than `step` additional allocations.

    The first allocation after row 70 depends on the scheduling of the two threads, so it is counted several times.
    """
    X, y = wide_stream(kind)
    half = make().partial_fit(X[:70], y[:70])

    def n_behind(n_jobs):
        attempt = going_on(half, X, y, n_jobs)
        return n_allocations(attempt) - first_allocation_behind(attempt, 70)

    alone = n_behind(1)
    assert any(n_behind(2) - alone > step for _ in range(20))


def wide_stream(kind):
    """Return rows that are numerous and wide enough for threads to look ahead after the first 70."""
    return stream(140, {"dense": 300, "sparse": 900}[kind], kind)


@pytest.mark.parametrize(
    ("rule", "step"),
    [
        ("published", 29),
        ("text", 61),
        pytest.param("published", 3, marks=pytest.mark.slow),
        pytest.param("text", 1, marks=EVERY),
        pytest.param("text", 7, marks=SOME),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_learning_continues_after_any_failed_allocation(attributes, kind, rule, step):
    X, y = stream(90, 5, kind)

    def make():
        return MLCA(attributes=attributes, window=20, vigilance=0.3, rule=rule)

    def attempt():
        model = make()
        return model, lambda: model.partial_fit(X, y)

    whole_rows = WholeRows(make, X, y)
    for model in failing(attempt, step):
        whole_rows.check(model)


@pytest.mark.parametrize("attributes", MODES)
def test_learning_continues_after_failures_with_shared_nodes(attributes):
    X, y = stream(90, 5)

    def make():
        return MLCA(attributes=attributes, window=20, vigilance=0.3)

    half, twins = make().partial_fit(X[:60], y[:60]), []
    whole_rows = WholeRows(make, X, y)

    def attempt():
        model = copy.deepcopy(half)
        twins.append(copy.deepcopy(model))
        return model, lambda: model.partial_fit(X[60:], y[60:])

    for model in failing(attempt):
        whole_rows.check(model)
        assert_exactly_same(twins[-1], half)
    assert len(twins) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_first_missing_value_is_learned_after_any_failed_allocation(kind):
    X, y = stream(60, 5, kind)
    rows = X if kind == "dense" else X.toarray()
    rows[50:, 2] = np.nan
    X = rows if kind == "dense" else sparse.csr_array(rows)

    def make():
        return MLCA(window=20, vigilance=0.3)

    half = make().partial_fit(X[:50], y[:50])

    def attempt():
        model = copy.deepcopy(half)
        return model, lambda: model.partial_fit(X[50:], y[50:])

    whole_rows = WholeRows(make, X, y)
    for model in failing(attempt, step=5):
        whole_rows.check(model)


STEP = 19


FEW = [("common", "dense"), ("common", "sparse")]
OTHERS = [pytest.param(*pair, marks=pytest.mark.slow) for pair in product(MODES, KINDS) if pair not in FEW]


@pytest.mark.parametrize(("attributes", "kind"), FEW + OTHERS)
def test_learning_continues_after_failures_in_threads(attributes, kind):
    assert_failures_while_threads_look_ahead(lambda: make(attributes), kind, STEP)


@pytest.mark.parametrize(("attributes", "kind"), FEW + OTHERS)
def test_looking_ahead_allocates_its_own_memory(attributes, kind):
    assert_looking_ahead_allocates(lambda: make(attributes), kind, STEP)


def make(attributes):
    return MLCA(attributes=attributes, window=20, vigilance=0.05)


@pytest.mark.parametrize("n", [15, 60], ids=["waiting", "learned"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_failed_predictions_change_nothing(attributes, kind, n):
    X, y = stream(n, 6, kind)
    model, other, expected = (MLCA(attributes=attributes, window=20, n_jobs=2).fit(X, y) for _ in range(3))
    questions = [
        lambda: model.predict_proba(X),
        lambda: model.explain(X[:1]),
        lambda: model.prototypes_,
        lambda: pickle.dumps(model),
        lambda: merge([model, other]),
        lambda: merge([model, other], how="append"),
    ]
    for question in questions:
        failures = sum(1 for _ in failing(lambda question=question: (None, question), step=5))
        assert failures > 0
    assert_exactly_same(model, expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS)
def test_bounded_models_are_unchanged_after_a_failed_append(kind):
    X, y = stream(60, 6, kind)
    model, other, expected = (MLCA(window=20, max_nodes=30, drift="follow").fit(X, y) for _ in range(3))
    assert sum(1 for _ in failing(lambda: (None, lambda: merge([model, other], how="append")), step=5)) > 0
    assert_exactly_same(model, expected)
    assert_exactly_same(other, expected)


def test_model_whose_first_row_failed_is_empty():
    X, y = stream(30, 4)
    model = MLCA()
    native.probes.fail_allocation(0)
    with pytest.raises(MemoryError):
        model.partial_fit(X, y)
    assert not hasattr(model, "labels_")
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)
    assert_exactly_same(model.partial_fit(X, y), MLCA().partial_fit(X, y))

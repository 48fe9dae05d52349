"""Categories and gaps (docs/mixed.md): the compiled learner equals the plain one, and all guarantees hold."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters
from mlca.learner.state import capture, restore
from tests.learner.beyond import Beyond
from tests.learner.drift import Drift
from tests.learner.states import assert_same_arrays, unfolded
from tests.learner.streams import mixed_streams, parameters

BEYOND = st.fixed_dictionaries(
    {
        "similarity": st.sampled_from(["learned", "correntropy"]),
        "decision": st.sampled_from(["calibrated", "bayes"]),
        "recency": st.booleans(),
        "drift": st.sampled_from(["off", "follow"]),
    }
)
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def told(chosen, beyond, nominal):
    """Return parameters of the learner, and a plain learner of the same."""
    if beyond["decision"] == "bayes":
        beyond = beyond | {"recency": False, "drift": "off"}
    plain = {name: beyond[name] for name in ("similarity", "decision", "recency")}
    kind = Drift if beyond["drift"] == "follow" else Beyond
    parameters = Parameters(**chosen | beyond, categorical_features=tuple(nominal))
    return parameters, kind(**chosen | plain, nominal=nominal)


def learn(learner, rows, Y, n_jobs=1):
    labels = sparse.csr_array(Y)
    learner.learn(rows, labels.indptr.astype(np.int64), labels.indices.astype(np.int32), Y.shape[1], n_jobs)
    return learner


def fitted(parameters, rows, Y, n_jobs=1):
    """Return a learner of the rows that screens from the first node on."""
    return learn(Learner(parameters, rows.shape[1], sparse.issparse(rows), screen_from=1), rows, Y, n_jobs)


def queries_of(X):
    """Return rows to ask about: known ones, ones beside them with unknown categories, and one of nothing but gaps."""
    return np.concatenate([X[:4], X[:3] + 0.25, np.full((1, X.shape[1]), np.nan), np.zeros((1, X.shape[1]))])


@settings(max_examples=40, **PATIENT)
@given(mixed_streams(), parameters(), BEYOND, st.booleans())
def test_it_equals_the_plain_learner(stream, chosen, beyond, is_sparse):
    X, Y, nominal = stream
    parameters, plain = told(chosen, beyond, nominal)
    form = sparse.csr_array if is_sparse else np.asarray
    learner = fitted(parameters, form(X), Y).settled()
    plain.fit(X, Y)
    held = learner.state()
    np.testing.assert_array_equal(unfolded(held, "weights", X.shape[1]), plain.y)
    np.testing.assert_array_equal(held["counts"], plain.alpha)
    np.testing.assert_array_equal(held["bandwidths"].reshape(np.shape(plain.bandwidth)), plain.bandwidth)
    queries = queries_of(X)
    expected = [plain.predict_proba(x) for x in queries]
    np.testing.assert_array_equal(learner.answers(form(queries)).probabilities, np.clip(expected, 5e-324, 1 - 2**-53))


@settings(max_examples=40, **PATIENT)
@given(mixed_streams(), parameters(), BEYOND, st.data())
def test_chunks_forms_threads_and_files_do_not_matter(stream, chosen, beyond, data):
    X, Y, nominal = stream
    parameters, _ = told(chosen, beyond, nominal)
    whole = fitted(parameters, X, Y)
    cut = data.draw(st.integers(0, len(X)))
    begun = fitted(parameters, X[:cut], Y[:cut])
    begun.settled().answers(queries_of(X))
    saved = restore(parameters, X.shape[1], Y.shape[1], False, capture(begun))
    thin = fitted(parameters, sparse.csr_array(X), Y, n_jobs=2)
    for other in (learn(begun, X[cut:], Y[cut:]), learn(saved, sparse.csr_array(X[cut:]), Y[cut:])):
        assert_same_arrays(capture(whole), capture(other))
    probabilities = whole.settled().answers(queries_of(X)).probabilities
    np.testing.assert_array_equal(probabilities, thin.settled().answers(queries_of(X)).probabilities)


@settings(max_examples=15, **PATIENT)
@given(mixed_streams(), parameters(), BEYOND, st.randoms(use_true_random=False))
def test_columns_may_be_permuted(stream, chosen, beyond, random):
    X, Y, nominal = stream
    if chosen["attributes"] == "clustered":
        chosen = chosen | {"attributes": "common"}
    order = random.sample(range(X.shape[1]), X.shape[1])
    straight, _ = told(chosen, beyond, nominal)
    permuted, _ = told(chosen, beyond, sorted(order.index(j) for j in nominal))
    first = fitted(straight, X, Y).settled()
    second = fitted(permuted, X[:, order], Y).settled()
    np.testing.assert_array_equal(
        first.answers(queries_of(X)).probabilities, second.answers(queries_of(X)[:, order]).probabilities
    )


@settings(max_examples=15, **PATIENT)
@given(mixed_streams(), parameters(), BEYOND)
def test_a_learner_that_meets_its_first_gap_late_is_the_one_that_was_ready(stream, chosen, beyond):
    X, Y, _ = stream
    parameters, _ = told(chosen, beyond, [])
    X[: len(X) // 2] = np.nan_to_num(X[: len(X) // 2])
    late = fitted(parameters, X[: len(X) // 2], Y[: len(X) // 2])
    empty = capture(Learner(parameters, X.shape[1], False))
    ready = Learner.from_state(parameters, X.shape[1], 0, False, empty, mixed=True)
    learn(ready, X[: len(X) // 2], Y[: len(X) // 2])
    asked = queries_of(X)
    for _ in range(2):
        np.testing.assert_array_equal(
            late.settled().answers(asked).probabilities, ready.settled().answers(asked).probabilities
        )
        learn(late, X[len(X) // 2 :], Y[len(X) // 2 :])
        learn(ready, X[len(X) // 2 :], Y[len(X) // 2 :])
    assert_same_arrays(capture(late), capture(ready))


@pytest.mark.parametrize("is_sparse", [False, True])
def test_gaps_in_what_is_asked_leave_the_learner_as_it_is(is_sparse):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 4)), rng.integers(0, 2, (80, 2))
    learner = fitted(
        Parameters(similarity="learned", decision="calibrated"), sparse.csr_array(X) if is_sparse else X, Y
    )
    before = capture(learner)
    asked = X[:3].copy()
    asked[:, 1] = np.nan
    said = learner.answers(sparse.csr_array(asked) if is_sparse else asked)
    assert np.isfinite(said.probabilities).all()
    assert not learner._mixed
    assert_same_arrays(before, capture(learner))
    assert len(learner.explain(asked[0])["nodes"]) >= 10

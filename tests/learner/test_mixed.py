"""Categories and missing values (docs/mixed.md): all guarantees hold for them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca.learner.checking import capture, restore
from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters
from tests.learner.algorithm_options import any_options
from tests.learner.model_comparison import FEW_NODES, assert_same_arrays, parameters_of
from tests.learner.random_streams import mixed_streams
from tests.learner.reference_comparison import (
    FORMS,
    assert_equals_reference,
    assert_same_predictions,
    assert_same_state,
    reference_of,
)

PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def parameters(chosen, nominal):
    return parameters_of(chosen | {"categorical_features": nominal})


def learn(learner, rows, Y, n_jobs=1):
    labels = sparse.csr_array(Y)
    learner.learn(rows, labels.indptr.astype(np.int64), labels.indices.astype(np.int32), Y.shape[1], n_jobs)
    return learner


def fitted(parameters, rows, Y, n_jobs=1):
    """Return a learner of the rows that screens from the first node on."""
    learner = Learner(parameters, rows.shape[1], sparse.issparse(rows), screen_from=1, cell_limits=FEW_NODES)
    return learn(learner, rows, Y, n_jobs)


def queries_of(X):
    """Return rows to predict: known ones, similar ones with unknown categories, and one of missing values only."""
    return np.concatenate([X[:4], X[:3] + 0.25, np.full((1, X.shape[1]), np.nan), np.zeros((1, X.shape[1]))])


@settings(max_examples=40, **PATIENT)
@given(mixed_streams(), any_options(), st.data())
def test_chunks_row_formats_threads_and_files_do_not_change_the_model(stream, chosen, data):
    X, Y, nominal = stream
    told = parameters(chosen, nominal)
    whole = fitted(told, X, Y)
    cut = data.draw(st.integers(0, len(X)))
    begun = fitted(told, X[:cut], Y[:cut])
    begun.settled().answers(queries_of(X))
    saved = restore(told, X.shape[1], Y.shape[1], False, capture(begun), FEW_NODES)
    thin = fitted(told, sparse.csr_array(X), Y, n_jobs=2)
    for other in (learn(begun, X[cut:], Y[cut:]), learn(saved, sparse.csr_array(X[cut:]), Y[cut:])):
        assert_same_arrays(capture(whole), capture(other))
    probabilities = whole.settled().answers(queries_of(X)).probabilities
    np.testing.assert_array_equal(probabilities, thin.settled().answers(queries_of(X)).probabilities)


@settings(max_examples=15, **PATIENT)
@given(mixed_streams(), any_options(), st.randoms(use_true_random=False))
def test_permuted_columns_give_the_same_probabilities(stream, chosen, random):
    X, Y, nominal = stream
    if chosen["attributes"] == "clustered":
        chosen = chosen | {"attributes": "common"}
    order = random.sample(range(X.shape[1]), X.shape[1])
    straight, permuted = parameters(chosen, nominal), parameters(chosen, sorted(order.index(j) for j in nominal))
    first = fitted(straight, X, Y).settled()
    second = fitted(permuted, X[:, order], Y).settled()
    np.testing.assert_array_equal(
        first.answers(queries_of(X)).probabilities, second.answers(queries_of(X)[:, order]).probabilities
    )


@settings(max_examples=25, **PATIENT)
@given(mixed_streams(), any_options(), st.sampled_from(["dense", "sparse"]), st.integers(1, 2))
def test_first_missing_value_after_complete_rows_equals_the_reference(stream, chosen, form, n_jobs):
    X, Y, _ = stream
    half = (len(X) + 1) // 2
    X[:half] = np.nan_to_num(X[:half])
    learner = fitted(parameters(chosen, []), FORMS[form](X[:half]), Y[:half], n_jobs)
    asked = np.concatenate([queries_of(X), X[half:][:8], X[half:][:8]])  # enough predictions for bounds to be built
    for rows in (half, len(X)):
        learn(learner, FORMS[form](X[half:rows]), Y[half:rows], n_jobs)
        expected = reference_of(X[:rows], Y[:rows], chosen)
        assert_same_state(learner.settled(), expected)
        assert_same_predictions(learner.settled(), expected, asked, form, n_jobs)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_missing_values_in_predictions_do_not_change_the_learner(is_sparse):
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
    assert_same_arrays(before, capture(learner))
    assert len(learner.explain(asked[0])["nodes"]) >= 10


@pytest.mark.parametrize("share", [0.01, 0.06, 0.15, 0.6], ids=lambda share: f"{share:.0%}")
@pytest.mark.parametrize("decision", ["mixed", "bayes"])
def test_word_counts_beside_a_category_and_missing_values_equal_the_reference(share, decision):
    """In windows of eight rows, few, about half or all of the words occur; most counts are one."""
    rng = np.random.default_rng(int(100 * share))
    counts = (rng.random((130, 24)) < share) * rng.choice(
        [1.0, 1.0, 1.0, 1.0 + np.log(2.0), 1.0 + np.log(3.0)], (130, 24)
    )
    number = np.where(rng.random(130) < 0.2, np.nan, rng.normal(size=130))
    X = np.column_stack([counts, rng.integers(1, 4, 130), number])
    Y = np.column_stack([counts[:, 0] > 0, X[:, 24] == 2, rng.random(130) < 0.2])
    chosen = {
        "window": 8,
        "vigilance": 0.01,
        "similarity": "learned",
        "decision": decision,
        "categorical_features": [24],
    }
    assert_equals_reference(X, Y, chosen, "sparse", queries=queries_of(X))

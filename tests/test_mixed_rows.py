"""Categories and missing values in the public interface of MLCA."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load, merge

pytestmark = pytest.mark.traced


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(0, 1, (150, 2)), rng.integers(0, 5, (150, 2))])
    Y = np.column_stack([X[:, 0] > 0, X[:, 2] == 3]).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, Y


def test_columns_may_be_given_by_number_mask_or_name(table):
    pd = pytest.importorskip("pandas")
    X, Y = table
    X = np.nan_to_num(X)
    expected = MLCA(categorical_features=[2, 3]).fit(X, Y).predict_proba(X)
    masked = MLCA(categorical_features=np.array([False, False, True, True])).fit(X, Y)
    named = MLCA(categorical_features=["c", "d"]).fit(pd.DataFrame(X, columns=list("abcd")), Y)
    np.testing.assert_array_equal(masked.predict_proba(X), expected)
    np.testing.assert_array_equal(named.predict_proba(pd.DataFrame(X, columns=list("abcd"))), expected)


def test_number_of_a_category_does_not_matter(table):
    X, Y = table
    other = X.copy()
    for column, numbers in ((2, [7.5, -2.0, 0.0, 1e9, 3.0]), (3, [1.0, 0.0, 2.0, 4.0, 3.0])):
        known = ~np.isnan(X[:, column])
        other[known, column] = np.array(numbers)[X[known, column].astype(int)]
    for parameters in ({}, {"attributes": "individual", "vigilance": 0.3, "decision": "bayes"}):
        first, second = (MLCA(categorical_features=[2, 3], **parameters).fit(rows, Y) for rows in (X, other))
        np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(other))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_model_with_missing_values_is_saved_and_continues(table, tmp_path, form):
    X, Y = table
    model = MLCA(categorical_features=[2, 3]).fit(form(X[:100]), Y[:100])
    model.save(tmp_path / "model.mlca")
    again = load(tmp_path / "model.mlca")
    for one in (model, again):
        one.partial_fit(form(X[100:]), Y[100:])
    np.testing.assert_array_equal(model.predict_proba(form(X)), again.predict_proba(form(X)))
    weights = model.prototypes_
    assert sparse.issparse(weights) == (form is sparse.csr_array)
    assert np.isnan(weights.data if sparse.issparse(weights) else weights).any()


def test_row_of_missing_values_gets_the_labels_frequencies(table):
    X, Y = table
    model = MLCA().fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 4), np.nan))[0], Y.mean(axis=0))


def test_missing_values_are_predicted_by_current_knowledge(table):
    """A learner without missing values predicts such rows by a converted copy, which must stay current."""
    X, Y = table
    learned = np.nan_to_num(X)
    model = MLCA().fit(learned[:75], Y[:75])
    model.predict_proba(X)
    model.partial_fit(learned[75:], np.column_stack([Y[75:], learned[75:, 1] > 0]))
    found = model.predict_proba(X)
    np.testing.assert_array_equal(found, pickle.loads(pickle.dumps(model)).predict_proba(X))
    assert found.shape == (150, 3) and found[:, 2].any()


def test_evidence_of_a_category_is_shown_for_its_column(table):
    X, Y = table
    scores = MLCA(categorical_features=[2, 3]).fit(X, Y).background_coef_.toarray()
    assert scores.shape == (2, 4) and np.abs(scores).argmax(axis=1).tolist() == [0, 2] and scores[1, 2] > 0


def test_models_with_and_without_missing_values_are_merged(table):
    X, Y = table
    parts = [MLCA().fit(np.nan_to_num(X[:75]), Y[:75]), MLCA().fit(X[75:], Y[75:])]
    for order in (parts, parts[::-1]):
        merged = merge(order)
        assert merged.n_seen_ == 150
        assert np.isfinite(merged.predict_proba(X)).all()


def test_other_categories_than_before_are_rejected_and_change_nothing(table):
    X, Y = table
    model = MLCA(categorical_features=[2, 3]).fit(X, Y)
    before = model.predict_proba(X)
    model.categorical_features = [2]
    with pytest.raises(ValueError, match=r"were columns \[2, 3\] when training began and are \[2\] now"):
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([4], "names column 4; X has 4 columns"),
        ([-1], "names column -1"),
        ([True, False], "mask of 2 columns; X has 4"),
        (["a"], "X has no column names"),
        ("all", "pass columns by index"),
        ([1.5], "pass columns by index"),
        ([1, "a"], "pass columns by index"),
    ],
)
def test_missing_columns_are_rejected(table, told, message):
    with pytest.raises(ValueError, match=message):
        MLCA(categorical_features=told).fit(*table)


def test_infinity_is_not_a_missing_value(table):
    X, Y = table
    X = X.copy()
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        MLCA().fit(X, Y)

"""Learners of other packages, and the controls, each against a direct implementation."""

import numpy as np
import pytest
from river.multioutput import PerOutputClassifier
from river.neighbors import KNNClassifier, LazySearch
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from mlca.experiments.algorithms import make
from mlca.experiments.rivals import LastLabels, RiverNeighbours, SlidingWindow


def some_rows(n_rows=80, seed=0):
    """Return rows of four groups with their labels; the last group has none, so no row has the last label."""
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=n_rows)
    X = rng.normal(group[:, None], 0.5, (n_rows, 5))
    Y = (np.arange(4) == group[:, None]).astype(np.uint8)
    Y[:, 3] = 0
    return X, Y


def test_forest_equals_scikit_learn_and_unseen_labels_are_unlikely():
    X, Y = some_rows()
    rival = make("RandomForest", {"n_estimators": 15}, seed=3).fit(X, Y)
    forest = RandomForestClassifier(15, random_state=3).fit(X, Y)
    np.testing.assert_array_equal(rival.predict(X), forest.predict(X))
    np.testing.assert_array_equal(rival.predict_proba(X)[:, 0], forest.predict_proba(X)[0][:, 1])
    assert not rival.predict_proba(X)[:, 3].any()


def test_fallback_leaves_rows_without_labels_only_if_likely():
    X, Y = some_rows()
    blurred = X + np.random.default_rng(1).normal(0, 1.5, X.shape)
    rival = make("RandomForest", {"n_estimators": 40, "fallback": True}, seed=0).fit(X, Y)
    predicted, proba = rival.predict(blurred), rival.predict_proba(blurred)
    assert predicted.shape == proba.shape == Y.shape
    unsure = ~(proba > 0.5).any(axis=1)
    assert unsure.any()
    assert (predicted[~unsure] == (proba[~unsure] > 0.5)).all()
    filled = unsure & predicted.any(axis=1)
    assert filled.any()
    assert (predicted[filled].sum(axis=1) == 1).all()
    assert (proba[filled, predicted[filled].argmax(axis=1)] == proba[filled].max(axis=1)).all()
    assert not predicted.any(axis=1).all()


def test_logistic_regression_is_per_label_on_standardised_features():
    X, Y = some_rows()
    rival = make("LogisticPerLabel", {}, seed=0).fit(X, Y)
    scaler = StandardScaler().fit(X)
    by_hand = LogisticRegression(max_iter=1000).fit(scaler.transform(X), Y[:, 1]).predict_proba(scaler.transform(X))
    np.testing.assert_allclose(rival.predict_proba(X)[:, 1], by_hand[:, 1])
    assert not rival.predict(X)[:, 3].any()
    as_sparse = make("LogisticPerLabel", {}, seed=0).fit(sparse.csr_array(abs(X)), Y)
    assert as_sparse.predict_proba(sparse.csr_array(abs(X))).shape == Y.shape


def test_boosting_learns_separable_data():
    X, Y = some_rows(200)
    assert (make("BoostingPerLabel", {}, seed=0).fit(X, Y).predict(X) == Y).mean() > 0.95


def test_shared_search_equals_rivers_neighbours_per_label():
    X, Y = some_rows(60)
    ours = RiverNeighbours()
    theirs = PerOutputClassifier(KNNClassifier(engine=LazySearch(window_size=1000)))
    for x, y in zip(X.round(1).tolist(), Y.tolist(), strict=True):
        row, labels = dict(enumerate(x)), {label: bool(has) for label, has in enumerate(y)}
        expected = {label: bool(has) for label, has in theirs.predict_one(row).items()}
        assert {label: has for label, has in ours.predict_one(row).items() if label in expected} == expected
        ours.learn_one(row, labels)
        theirs.learn_one(row, labels)


def test_last_labels_baseline_repeats_the_latest_label_set():
    model = LastLabels().partial_fit(np.zeros((2, 1)), np.array([[1, 0], [0, 1]]))
    assert model.predict(np.ones((3, 1))).tolist() == [[0, 1]] * 3


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_sliding_window_forgets(form):
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(120, 1)) + rng.normal(0, 0.01, (120, 1))
    Y = np.column_stack((X[:, 0] > 0.5, X[:, 0] <= 0.5)).astype(np.uint8)
    Y[60:] = 1 - Y[60:]
    window = SlidingWindow(kept=30, every=10)
    for i in range(120):
        window.partial_fit(form(X[i : i + 1]), Y[i : i + 1])
    assert (window.predict(form(X[60:])) == Y[60:]).mean() > 0.95

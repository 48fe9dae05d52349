"""Compatibility of every classifier of the package with scikit-learn's tools."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.contract.all_classifiers import CLASSIFIERS

GRIDS = {
    "MLCA": {"vigilance": [0.01, 0.3]},
    "MLkNN": {"k": [2, 4]},
    "MLSAkNN": {"m_max": [20, 60]},
    "MCIC": {"theta": [0.1, 0.4]},
    "MuENL": {"lambda1": [1e-6, 1.0]},
    "MLODM": {"theta": [0.3, 0.7]},
    "GLOCAL": {"lambda3": [1e-6, 1.0]},
}


def expected_failures(model):
    if type(model).__name__ == "MLSAkNN":
        return {
            "check_classifiers_multilabel_output_format_predict_proba": "wants probabilities strictly between "
            "0 and 1, but a unanimous vote is 0 or 1"
        }
    return {}


@parametrize_with_checks(list(CLASSIFIERS.values()), expected_failed_checks=expected_failures)
def test_classifiers_pass_scikit_learn_checks(estimator, check):
    check(estimator)


def test_clone_keeps_parameters_without_the_fitted_model(model, data):
    fitted = clone(model).fit(data.X, data.Y)
    copy = clone(fitted)
    assert not hasattr(copy, "labels_")
    assert copy.get_params() == model.get_params()
    name, (value, other) = next(iter(GRIDS[type(model).__name__].items()))
    assert copy.set_params(**{name: other}).get_params()[name] == other != value
    assert repr(copy).startswith(type(model).__name__)


def test_pickled_model_predicts_and_learns_as_the_original(model, data):
    model.fit(data.X, data.Y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(data.queries), model.predict_proba(data.queries))
    if hasattr(model, "partial_fit"):
        for each in (model, copy):
            each.partial_fit(data.X[::-1], data.Y)
        assert_array_equal(copy.predict_proba(data.queries), model.predict_proba(data.queries))


def test_grid_search_finds_a_score_and_predicts(model, data):
    search = GridSearchCV(model, GRIDS[type(model).__name__], cv=2, error_score="raise")
    search.fit(data.X, data.Y)
    assert search.predict(data.queries).shape == (15, 3)
    assert 0 <= search.best_score_ <= 1


def test_pipelines_and_cross_validation_predict_every_row(model, data):
    pipeline = make_pipeline(MinMaxScaler(), model)
    assert pipeline.fit(data.X, data.Y).predict(data.queries).shape == (15, 3)
    predicted = cross_val_predict(pipeline, data.X, data.Y, cv=3, method="predict_proba")
    assert np.asarray(predicted).shape == (70, 3)


def test_score_equals_exact_match(model, data):
    predicted = model.fit(data.X, data.Y).predict(data.X)
    assert model.score(data.X, data.Y) == pytest.approx(np.mean((predicted == data.Y).all(axis=1)))

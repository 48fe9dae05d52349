"""Inputs that every classifier of the package accepts, and how it rejects others."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mlca import MLCA
from mlca.peers import GLOCAL


def bad_rows(X):
    infinite, large = X.copy(), X.copy()
    infinite[3, 1], large[3, 1] = np.inf, -1e200
    return {
        "infinity": (infinite, "infinity .* row 3, column 1 of X holds inf; .* leave the row out"),
        "infinity in a frame": (pd.DataFrame(infinite).add_prefix("x"), "infinity .* row 3, column 'x1' of X"),
        "a number whose square is infinite": (large, r"row 3, column 1 of X holds -1e\+200, beyond 1e\+150"),
        "no rows": (X[:0], "0 sample"),
        "one dimension": (X[:, 0], "Expected 2D array"),
        "words": (np.full(X.shape, "word"), "could not convert string to float|dtype='numeric'"),
    }


def bad_labels(Y):
    two, hole = Y.copy(), Y.astype(float)
    two[3, 1], hole[3, 1] = 2, np.nan
    return {
        "two": (two, "row 3, column 1"),
        "NaN": (hole, "row 3, column 1"),
        "too few rows": (Y[:-1], "X has 70 rows but y has 69"),
        "nothing": (None, "requires y"),
        "words": (np.full(Y.shape, "word"), "indicator matrix of 0 and 1"),
        "a name for a row": (["sea", *[["sun"]] * 69], "row 0 of y|rows of 0 and 1|iterable of label names"),
    }


BAD_ROWS = list(bad_rows(np.zeros((70, 2))))
BAD_LABELS = list(bad_labels(np.zeros((70, 3))))


def assert_untouched(model, call, message):
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        call()
    assert pickle.dumps(model) == before


def with_a_gap(X):
    X = X.copy()
    X[3, 1] = np.nan
    return X


def allows_gaps(model):
    return model.__sklearn_tags__().input_tags.allow_nan


def test_missing_values_are_supported_as_the_tags_declare(model, data):
    X = with_a_gap(data.X)
    if allows_gaps(model):
        learned = clone(model).fit(X, data.Y)
        assert np.isfinite(learned.predict_proba(X)).all() and np.isin(learned.predict(X), (0, 1)).all()
        assert not np.array_equal(learned.predict_proba(X), learned.predict_proba(data.X))
    else:
        assert_untouched(model, lambda: model.fit(X, data.Y), "NaN")
        model.fit(data.X, data.Y)
        assert_untouched(model, lambda: model.predict(X), "NaN")
        assert_untouched(model, lambda: model.predict_proba(X), "NaN")


def test_partial_fit_supports_missing_values_as_the_tags_declare(stream_model, data):
    X = with_a_gap(data.X)
    stream_model.partial_fit(data.X, data.Y)
    if allows_gaps(stream_model):
        assert np.isfinite(stream_model.partial_fit(X, data.Y).predict_proba(X)).all()
    else:
        assert_untouched(stream_model, lambda: stream_model.partial_fit(X, np.hstack((data.Y, data.Y))), "NaN")


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows_are_rejected_and_change_nothing(model, data, kind):
    X, message = bad_rows(data.X)[kind]
    assert_untouched(model, lambda: model.fit(X, data.Y[: len(X)]), f"{message}|as many|labels")
    model.fit(data.X, data.Y)
    assert_untouched(model, lambda: model.predict(X), message)
    assert_untouched(model, lambda: model.predict_proba(X), message)


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_bad_labels_are_rejected_and_change_nothing(model, data, kind):
    Y, message = bad_labels(data.Y)[kind]
    assert_untouched(model, lambda: model.fit(data.X, Y), message)
    model.fit(data.X, data.Y)
    assert_untouched(model, lambda: model.fit(data.X, Y), message)


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_partial_fit_rejects_bad_rows(stream_model, data, kind):
    X, message = bad_rows(data.X)[kind]
    stream_model.partial_fit(data.X, data.Y)
    wider = np.hstack((data.Y, data.Y))[: len(X)]
    assert_untouched(stream_model, lambda: stream_model.partial_fit(X, wider), message)


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_partial_fit_rejects_bad_labels(stream_model, data, kind):
    Y, message = bad_labels(data.Y)[kind]
    stream_model.partial_fit(data.X, data.Y)
    assert_untouched(stream_model, lambda: stream_model.partial_fit(data.X, Y), message)


def test_wrong_columns_are_rejected(model, data):
    model.fit(data.X, data.Y)
    message = "X has 3 features, but .* is expecting 2 features"
    assert_untouched(model, lambda: model.predict(np.zeros((2, 3))), message)
    if hasattr(model, "partial_fit"):
        assert_untouched(model, lambda: model.partial_fit(np.zeros((2, 3)), [[1, 0, 0], [0, 0, 1]]), message)


def test_predicting_before_training_is_rejected(model, data):
    for method in (model.predict, model.predict_proba, model.predict_labels):
        with pytest.raises(NotFittedError):
            method(data.queries)


def test_inputs_are_not_modified(model, data):
    X, Y, queries = (part.copy() for part in data)
    model.fit(X, Y)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X, Y)
    model.predict_proba(queries)
    for after, before in zip((X, Y, queries), data, strict=True):
        assert_array_equal(after, before)


def test_model_keeps_no_reference_to_its_inputs(model, data):
    X, Y, queries = (part.copy() for part in data)
    expected = model.fit(X, Y).predict_proba(queries)
    X[:], Y[:] = 0, 0
    assert_array_equal(model.predict_proba(queries), expected)


def test_read_only_inputs_are_accepted(model, data):
    for part in data:
        part.flags.writeable = False
    model.fit(data.X, data.Y).predict_proba(data.queries)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(object),
        pd.DataFrame,
    ],
    ids=["lists", "Fortran order", "every other row", "objects", "DataFrame"],
)
def test_all_row_formats_give_the_same_probabilities(model, data, convert):
    expected = clone(model).fit(data.X, data.Y).predict_proba(data.queries)
    model.fit(convert(data.X), data.Y)
    assert_array_equal(model.predict_proba(convert(data.queries)), expected)


@pytest.mark.parametrize(
    "convert",
    [
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(float),
        lambda Y: Y.tolist(),
        sparse.csr_array,
        sparse.coo_matrix,
        pd.DataFrame,
    ],
    ids=["bool", "float", "lists", "csr_array", "coo_matrix", "DataFrame"],
)
def test_all_label_formats_give_the_same_probabilities(model, data, convert):
    expected = clone(model).fit(data.X, data.Y).predict_proba(data.queries)
    assert_array_equal(model.fit(data.X, convert(data.Y)).predict_proba(data.queries), expected)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_sparse_rows_equal_dense_rows_or_are_rejected(model, data, form):
    X = np.where(data.X < 0.3, 0, data.X)
    if not model.__sklearn_tags__().input_tags.sparse:
        with pytest.raises(TypeError, match=r"Sparse data was passed for X.*toarray"):
            model.fit(form(X), data.Y)
        model.fit(X, data.Y)
        with pytest.raises(TypeError, match=r"Sparse data was passed for X.*toarray"):
            model.predict(form(data.queries))
        return
    expected = clone(model).fit(X, data.Y).predict_proba(data.queries)
    model.fit(form(X), data.Y)
    # Sums over sparse rows round differently, which GLOCAL's line searches amplify round by round.
    tolerance = 0.02 if isinstance(model, GLOCAL) else 1e-6
    assert_allclose(model.predict_proba(form(data.queries)), expected, rtol=tolerance)
    assert_allclose(model.predict_proba(data.queries), expected, rtol=tolerance)


def test_column_names_are_stored_and_checked(model, data):
    X = pd.DataFrame(data.X, columns=["width", "height"])
    Y = pd.DataFrame(data.Y, columns=["sea", "sun", "sand"])
    model.fit(X, Y)
    assert_array_equal(model.feature_names_in_, ["width", "height"])
    assert_array_equal(model.classes_, ["sea", "sun", "sand"])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"width": "depth"}))
    if isinstance(model, MLCA):
        assert_array_equal(model.predict(X[["height", "width"]]), model.predict(X))

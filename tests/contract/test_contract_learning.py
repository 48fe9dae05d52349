"""Behaviour of every classifier of the package with rows and labels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import mlca.peers
from mlca.peers import GLOCAL, MCIC, MLODM, MuENL
from tests.contract.all_classifiers import CLASSIFIERS


def test_all_classifiers_are_covered_by_the_contract():
    assert {type(model).__name__ for model in CLASSIFIERS.values()} == {"MLCA", *mlca.peers.__all__}


def test_outputs_have_the_documented_shapes_and_types(model, data):
    assert model.fit(data.X, data.Y) is model
    predicted, probabilities = model.predict(data.queries), model.predict_proba(data.queries)
    assert predicted.shape == probabilities.shape == (15, 3)
    assert predicted.dtype.kind == "i"
    assert set(np.unique(predicted)) <= {0, 1}
    assert probabilities.dtype == np.float64
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.n_features_in_ == 2
    assert model.predict_labels(data.queries) == [set(np.flatnonzero(row)) for row in predicted]
    assert model.predict(data.queries[:1]).shape == (1, 3)


def test_learns_separable_data(model, data):
    predicted = model.fit(data.X, data.Y).predict(data.X)
    assert np.mean(predicted == data.Y) > 0.7


def test_rows_are_predicted_independently(model, data):
    model.fit(data.X, data.Y)
    one_by_one = np.vstack([model.predict_proba(row[None]) for row in data.queries])
    assert_allclose(one_by_one, model.predict_proba(data.queries), rtol=1e-12)


def test_permuted_label_columns_permute_the_output(model, data):
    order = [2, 0, 1]
    expected = clone(model).fit(data.X, data.Y).predict_proba(data.queries)[:, order]
    permuted = model.fit(data.X, data.Y[:, order])
    if isinstance(model, MuENL | MLODM | GLOCAL):
        # Labels are optimised one after the other (MuENL, MLODM) or start from values drawn in column order (GLOCAL).
        # So the path to the optimum differs: most decisions agree, but not all probabilities.
        agree = (permuted.predict_proba(data.queries) > 0.5) == (expected > 0.5)
        assert agree.mean() > 0.8
        return
    assert_array_equal(permuted.predict_proba(data.queries), expected)
    if not isinstance(model, MCIC):  # MCIC predicts the first of tied labels, so the order of columns matters
        expected_labels = clone(model).fit(data.X, data.Y).predict(data.queries)[:, order]
        assert_array_equal(permuted.predict(data.queries), expected_labels)


def test_same_seed_gives_the_same_model(model, data):
    again = clone(model).fit(data.X, data.Y)
    assert_array_equal(model.fit(data.X, data.Y).predict_proba(data.queries), again.predict_proba(data.queries))


def test_fit_starts_from_an_empty_model(model, data):
    expected = clone(model).fit(data.X, data.Y).predict_proba(data.queries)
    model.fit(np.hstack((data.X, data.X)), data.Y[:, :2])
    assert_array_equal(model.fit(data.X, data.Y).predict_proba(data.queries), expected)


def test_label_that_never_occurs_gets_a_low_probability(model, data):
    never = np.zeros((70, 1), dtype=int)
    model.fit(data.X, np.hstack((never, data.Y)))
    probabilities = model.predict_proba(data.queries)
    assert np.isfinite(probabilities).all()
    assert probabilities[:, 0].max() <= 0.5
    assert probabilities[:, 0].mean() < probabilities[:, 1:].mean()


def test_label_that_always_occurs_gets_the_highest_probability(model, data):
    always = np.ones((70, 1), dtype=int)
    probabilities = model.fit(data.X, np.hstack((data.Y, always))).predict_proba(data.queries)
    assert np.isfinite(probabilities).all()
    assert probabilities[:, 3].mean() > probabilities[:, :3].mean()


def test_rows_without_labels_are_learned(model, data):
    Y = data.Y.copy()
    Y[5::2] = 0
    probabilities = model.fit(data.X, Y).predict_proba(data.queries)
    assert np.isfinite(probabilities).all()
    if isinstance(model, MLODM):  # MLODM learns from pairs of labels, which rows without labels lack
        return
    assert probabilities.mean() < clone(model).fit(data.X, data.Y).predict_proba(data.queries).mean()


def test_data_without_any_label_are_learned_or_rejected(model, data):
    Y = np.zeros((70, 2), dtype=int)
    if isinstance(model, MLODM):
        with pytest.raises(ValueError, match="each row has none or all"):
            model.fit(data.X, Y)
        return
    model.fit(data.X, Y)
    assert np.isfinite(model.predict_proba(data.queries)).all()
    assert model.predict_proba(data.queries).max() <= 0.5


def test_empty_label_sets_only_give_no_labels_or_are_rejected(model, data):
    if isinstance(model, GLOCAL | MLODM):
        with pytest.raises(ValueError, match=r"no row of y has a label|each row has none or all"):
            model.fit(data.X, [[]] * 70)
        assert not hasattr(model, "n_features_in_")
        return
    assert model.fit(data.X, [[]] * 70).predict_proba(data.queries).shape == (15, 0)
    assert model.predict_labels(data.queries) == [set()] * 15


def test_single_label_is_learned_or_rejected(model, data):
    if isinstance(model, MLODM):
        with pytest.raises(ValueError, match="each row has none or all"):
            model.fit(data.X, data.Y[:, :1])
        return
    model.fit(data.X, data.Y[:, :1])
    assert model.predict(data.queries).shape == (15, 1)


def test_one_class_per_row_is_learned_and_predicted(model, data):
    y = np.array(["left", "right"])[data.Y[:, 0]]
    predicted = model.fit(data.X, y).predict(data.queries)
    probabilities = model.predict_proba(data.queries)
    assert predicted.shape == (15,)
    assert_array_equal(model.classes_, ["left", "right"])
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], predicted)
    assert model.score(data.X, y) > 0.7
    assert model.predict_labels(data.queries) == [{name} for name in predicted]


def test_label_names_give_the_model_of_indicator_columns(model, data):
    names = np.array(["sea", "sun", "sand"])
    rows = [set(names[row == 1]) if i else list(names) for i, row in enumerate(data.Y)]
    model.fit(data.X, rows)
    assert_array_equal(model.classes_, names)
    expected = clone(model).fit(data.X, data.Y)
    assert_array_equal(model.predict_proba(data.queries), expected.predict_proba(data.queries))
    assert model.predict_labels(data.queries) == [set(names[row == 1]) for row in expected.predict(data.queries)]


def test_first_partial_fit_equals_fit(stream_model, data):
    expected = clone(stream_model).fit(data.X, data.Y).predict_proba(data.queries)
    stream_model.partial_fit(data.X, data.Y)
    assert_array_equal(stream_model.predict_proba(data.queries), expected)


def test_wider_matrix_adds_a_label(stream_model, data):
    stream_model.partial_fit(data.X[:40], data.Y[:40, :2])
    assert stream_model.predict(data.queries).shape == (15, 2)
    stream_model.partial_fit(data.X[40:], data.Y[40:])
    assert_array_equal(stream_model.classes_, [0, 1, 2])
    probabilities = stream_model.predict_proba(data.queries)
    assert probabilities.shape == (15, 3)
    assert np.isfinite(probabilities).all()
    stream_model.partial_fit(data.X, data.Y)
    assert stream_model.predict(data.X)[:, 2].any()


def test_new_name_adds_a_label(stream_model, data):
    stream_model.partial_fit(data.X[:2], [["sea"], ["sun"]])
    stream_model.partial_fit(data.X[2:4], [["sand", "sea"], []], classes=["snow"])
    assert_array_equal(stream_model.classes_, ["sea", "sun", "snow", "sand"])
    assert stream_model.predict_proba(data.queries).shape == (15, 4)


def test_new_classes_in_1d_targets_are_added(stream_model, data):
    y = np.array(["a", "b", "c"])[np.arange(70) % 3]
    stream_model.partial_fit(data.X[:2], y[:2]).partial_fit(data.X, y)
    assert_array_equal(stream_model.classes_, ["a", "b", "c"])
    assert_allclose(stream_model.predict_proba(data.queries).sum(axis=1), 1)


def test_labels_are_never_removed(stream_model, data):
    stream_model.partial_fit(data.X, data.Y)
    with pytest.raises(ValueError, match="labels are never removed"):
        stream_model.partial_fit(data.X, data.Y[:, :2])

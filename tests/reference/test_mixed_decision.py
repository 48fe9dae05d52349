"""The mixed decision of the reference: its parts, its guarantees, its objectives, and drift."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca.reference import MLCA
from mlca.reference.arithmetic import sigmoid
from mlca.reference.mixed import THRESHOLDS, LinearModels, linear_features, newton_step
from tests.learner.random_streams import late_label_streams

FEW = settings(max_examples=12, deadline=None)
OPTIONS = st.fixed_dictionaries(
    {"vigilance": st.sampled_from([0.01, 0.3]), "recency": st.booleans(), "drift": st.sampled_from(["off", "follow"])}
)


def fitted(X, Y, options):
    return MLCA(decision="mixed", window=20, **options).partial_fit(X, Y)


def test_sigmoid_is_within_its_stated_error():
    z = np.linspace(-30, 30, 1001)
    np.testing.assert_allclose(sigmoid(z), 1 / (1 + np.exp(-z)), rtol=1e-14)
    assert sigmoid(np.array([-1e9, 1e9])).tolist() == sigmoid(np.array([-30.0, 30.0])).tolist()


def test_newton_step_solves_the_equations():
    rng = np.random.default_rng(0)
    A, g = rng.normal(size=(8, 8)), rng.normal(size=8)
    H = A @ A.T + 30 * np.eye(8)
    np.testing.assert_allclose(newton_step(H, g), np.linalg.solve(H, g), rtol=1e-12)


def test_late_label_has_the_model_as_if_known_from_the_start():
    rng = np.random.default_rng(0)
    early, late = LinearModels(), LinearModels()
    early.admit([1])
    for n in range(50, 80):
        features = {(j, "number"): float(f) for j, f in enumerate(rng.normal(size=4))}
        for models in (early, late):
            models.step(features, {0: 1.0}, n, skips=False)
    late.admit([1])
    np.testing.assert_array_equal(early.W[early.rows[1]], late.W[late.rows[1]])
    np.testing.assert_array_equal(early.G[early.rows[1]], late.G[late.rows[1]])


def test_features_are_centred_ranks_indicators_of_values_and_cells():
    X = np.column_stack([np.linspace(0, 1, 62), np.arange(62) % 3])  # the similarity is recomputed after row 62
    model = MLCA(decision="mixed", vigilance=0.0, categorical_features=[1]).partial_fit(X, [["a"]] * 62)
    middle, similarity = np.array([0.5, 2.0]), model.similarity_
    found = linear_features(similarity, middle, rows=60)
    assert set(found) == {(0, "number"), (1, "category", 2.0)}
    assert abs(found[0, "number"]) < 0.05
    assert linear_features(similarity, np.array([9.0, np.nan]), rows=60)[1, "missing"] == 1.0
    assert linear_features(similarity, middle, rows=2000)[0, "cell", 4] == 0.5


@FEW
@given(late_label_streams(), OPTIONS, st.integers(1, 110))
def test_chunks_and_late_labels_do_not_change_the_model(stream, options, cut):
    X, Y = stream
    cut = min(cut, len(X))
    known = max(int(np.flatnonzero(Y[:cut].any(axis=0)).max(initial=0)) + 1, 1)
    parts = fitted(X[:cut], Y[:cut, :known], options)
    parts.predict(X[:1])
    if cut < len(X):
        parts.partial_fit(X[cut:], Y[cut:])
    whole, known = fitted(X, Y, options), parts.n_labels_
    np.testing.assert_array_equal(whole.predict_proba(X[:9])[:, :known], parts.predict_proba(X[:9]))
    np.testing.assert_array_equal(whole.predict(X[:9])[:, :known], parts.predict(X[:9]))


@FEW
@given(late_label_streams(), OPTIONS, st.randoms(use_true_random=False))
def test_permuted_columns_give_the_same_probabilities(stream, options, random):
    X, Y = stream
    order = random.sample(range(X.shape[1]), X.shape[1])
    straight, permuted = fitted(X, Y, options), fitted(X[:, order], Y, options)
    np.testing.assert_array_equal(straight.predict_proba(X[:9]), permuted.predict_proba(X[:9, order]))


def test_objectives_choose_the_threshold_and_the_fallback():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    Y = (X[:, :3] + rng.normal(size=(150, 3)) > 1).astype(int)
    models = {name: fitted(X, Y, {"objective": name}) for name in ("exact", "f1", "hamming")}
    p = models["exact"].predict_proba(X)
    threshold = models["f1"].decision_.threshold()
    assert threshold in THRESHOLDS and threshold < 0.5
    sets = {name: model.predict(X) for name, model in models.items()}
    np.testing.assert_array_equal(sets["hamming"], p > 0.5)
    assert (sets["f1"] >= (p > threshold)).all() and (sets["exact"] >= (p > 0.5)).all()
    assert (sets["exact"] != sets["hamming"]).any()


@pytest.mark.parametrize("max_nodes", [None, 100])
def test_following_drift_improves_predictions_after_a_change(max_nodes):
    """Linear models alone cannot learn these labels, which are exchanged after 200 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(340, 2))
    same_sign = X.prod(axis=1) > 0
    Y = np.column_stack([same_sign, ~same_sign]).astype(int)
    Y[200:] = 1 - Y[200:]
    right = {}
    for drift in ("off", "follow"):
        model = fitted(X[:260], Y[:260], {"drift": drift, "max_nodes": max_nodes})
        right[drift] = (model.predict(X[260:]) == Y[260:]).all(axis=1).mean()
    assert right["follow"] > right["off"] + 0.2

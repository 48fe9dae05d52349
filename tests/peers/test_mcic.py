from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mlca.metrics import evaluate
from mlca.peers import MCIC

X_TOY = np.array([[0, 0], [0.2, 0], [0.4, 0.2], [5, 5], [0.1, 0.1]])
Y_TOY = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 0]])


def toy_model(n_rows):
    return MCIC(theta=0.3, decay=0, initial_labels=2).fit(X_TOY[:n_rows], Y_TOY[:n_rows])


def stream(n=400, seed=0):
    """Return a stream of three groups that move through the unit square, each with its usual labels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    centre = rng.random((3, 2))[group] * np.linspace(1, 0.5, n)[:, None]
    X = np.clip(centre + rng.normal(scale=0.08, size=(n, 2)), 0, 1)
    usual = np.array([[0.9, 0.1, 0.5, 0], [0.1, 0.8, 0, 0.3], [0, 0, 0.1, 0.9]])
    return X, (rng.random((n, 4)) < usual[group]).astype(int)


def clusters_of(model, which):
    return np.array({"mature": model._mature, "immature": model._immature}[which], dtype=int)


def predict_then_learn(model, X, Y):
    """Predict each row but the first before it is learned; return the predictions of the others."""
    model.partial_fit(X[:1], Y[:1])
    predictions = []
    for x, y in zip(X[1:, None], Y[1:, None], strict=True):
        predictions.append(model.predict(x)[0])
        model.partial_fit(x, y)
    return np.array(predictions)


def test_toy_example_equals_the_specification():
    two = toy_model(2)
    assert (two.n_mature_, two.n_immature_, two.n_labels_predicted_) == (0, 1, 1)
    assert two._clusters.weights[two._immature] == 2
    three = toy_model(3)
    assert (three.n_mature_, three.n_immature_) == (1, 0)
    assert three._clusters.weights[three._mature] == 3
    assert_array_equal(three._clusters.label_counts[three._mature], [[3, 1, 0]])
    five = toy_model(5)
    assert five._clusters.weights[five._mature] == 4
    assert_array_equal(five._clusters.label_counts[five._mature], [[4, 2, 0]])
    assert_array_equal(five._clusters.sums[five._immature], [[5, 5]])
    assert_array_equal(five.predict_proba([[0.1, 0.1]]), [[1, 0.5, 0]])
    assert_array_equal(five.predict([[0.1, 0.1]]), [[1, 0, 0]])


@pytest.mark.data
@pytest.mark.parametrize(
    ("center", "published", "clusters"),
    [
        ("reference", (0.405271, 0.301588, 0.408272, 0.076076), (51, 19)),
        ("exact", (0.381007, 0.278544), None),
    ],
)
def test_measures_on_enron_equal_the_published_ones(dataset, center, published, clusters):
    enron = dataset("enron")
    model = MCIC(center=center)
    predicted = predict_then_learn(model, enron.X, enron.Y)
    measured = evaluate(enron.Y[1:], predicted.astype(float), Y_pred=predicted)
    # A label that neither occurs nor is predicted counts as F1 = 0 in the published macro average.
    occurs = enron.Y[1:].any(axis=0) | predicted.any(axis=0)
    figures = (measured.example_f1, measured.jaccard, measured.micro_f1, measured.macro_f1 * occurs.mean())
    assert figures[: len(published)] == pytest.approx(published, abs=5e-4)
    if clusters:
        assert (model.n_mature_, model.n_immature_) == clusters


@pytest.mark.parametrize("decay", [0, 0.1, 1])
def test_cluster_invariants_hold_after_every_row(decay):
    X, Y = stream()
    model = MCIC(theta=0.08, decay=decay, speed=20)
    for i in range(len(X)):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        mature, immature = clusters_of(model, "mature"), clusters_of(model, "immature")
        everything = np.concatenate((mature, immature))
        assert len(set(everything) | set(model._clusters.unused)) == len(model._clusters.weights)
        assert np.all(model._clusters.radii[everything] <= 0.08)
        assert np.all(model._clusters.weights[mature] > 0)
        if decay == 0:
            assert model._clusters.n_rows[everything].sum() == i + 1
        scores, predicted = model.predict_proba(X[:5]), model.predict(X[:5])
        assert np.all((scores >= 0) & (scores <= 1))
        assert_array_equal(predicted.sum(axis=1), min(model.n_labels_predicted_, 4))
    assert mature.size


def test_speed_has_no_effect_without_decay():
    X, Y = stream()
    slow, fast = (MCIC(theta=0.05, decay=0, speed=v).fit(X, Y) for v in (1, 1000))
    assert_array_equal(slow.predict_proba(X), fast.predict_proba(X))


def test_cluster_radius_may_reach_but_not_exceed_theta():
    assert MCIC(theta=0.5, decay=0).fit([[0.0], [1.0]], np.array([[1], [1]])).n_immature_ == 1
    assert MCIC(theta=0.499, decay=0).fit([[0.0], [1.0]], np.array([[1], [1]])).n_immature_ == 2


@pytest.mark.parametrize(("maturity", "n_needed"), [(2, 3), (2.5, 3), (3, 4), (4.9, 5)])
def test_maturity_requires_more_than_the_threshold(maturity, n_needed):
    model = MCIC(decay=0, maturity=maturity)
    sizes = [model.partial_fit([[0.5]], np.array([[1]])).n_mature_ for _ in range(n_needed)]
    assert sizes == [0] * (n_needed - 1) + [1]


@pytest.mark.parametrize(("decay", "maturity", "period"), [(0.25, 2, 4), (0.25, 3, 3), (0.05, 3, 9)])
def test_time_between_clean_ups_depends_on_decay_and_maturity(decay, maturity, period):
    assert MCIC(decay=decay, maturity=maturity)._period() == period


def test_clusters_fade_by_units_of_time_and_are_removed():
    model = MCIC(theta=0.1, decay=1, maturity=1.5, speed=1)  # one unit of time per row, a clean-up every third unit
    assert model._period() == 2
    model.partial_fit([[0.0], [0.0]], np.array([[1, 0], [1, 0]]))  # times 1 and 2: weight 1.5 is not yet mature
    assert (model.n_mature_, model.n_immature_) == (0, 1)
    assert model._clusters.weights[model._immature] == 1.5
    model.partial_fit([[0.0]], np.array([[1, 0]]))  # time 3: weight 1.75
    assert (model.n_mature_, model.n_immature_) == (1, 0)
    model.partial_fit([[1.0]], np.array([[0, 1]]))  # time 4: the weight of the first cluster is 0.875, so it is removed
    assert (model.n_mature_, model.n_immature_) == (0, 1)
    assert_array_equal(model.predict_proba([[0.0]]), [[0, 1]])


@pytest.mark.parametrize(("n_rows", "n_kept"), [(8, 2), (7, 1)])
def test_a_mature_cluster_stays_while_it_weighs_as_much_as_maturity(n_rows, n_kept):
    model = MCIC(theta=0.1, decay=1, maturity=2, speed=10)  # a clean-up every second unit
    X = np.where(np.arange(20) < n_rows, 0.0, 9.0)[:, None]  # at row 20 (unit 2), a weight of 8 or 7 is a quarter
    assert model.fit(X, np.ones((20, 1))).n_mature_ == n_kept


def test_an_immature_cluster_must_grow_to_stay():
    model = MCIC(theta=0.1, decay=0.25, speed=1)  # a clean-up every fourth unit
    model.partial_fit([[0.0], [1.0], [2.0]], np.array([[1], [1], [1]]))  # times 1, 2, 3
    assert model.n_immature_ == 3
    # At time 4 the three weigh 2^-0.75, 2^-0.5 and 2^-0.25, below 1: only the newest row stays.
    assert model.partial_fit([[3.0]], np.array([[1]])).n_immature_ == 1


def test_reference_centre_drifts_to_the_origin():
    X, Y = [[4.0], [4.2]], np.array([[1], [1]])
    far = {}
    for center in ("reference", "exact"):
        model = MCIC(decay=0.5, speed=1, center=center).fit(X, Y)
        far[center] = model._distances(np.array([4.0]), clusters_of(model, "immature"), time=4)[0]
    f = 2**-0.5
    mean = (4.0 * f + 4.2) / (f + 1)
    assert far["exact"] == pytest.approx(mean - 4.0)
    assert far["reference"] == pytest.approx(4.0 - mean / 2)


def test_votes_are_weighted_and_use_the_nearest_clusters():
    model = MCIC(theta=0.1, decay=0, n_clusters=2, maturity=10)
    model.fit([[0.0], [0.0], [0.0], [1.0], [9.0]], np.array([[1, 0], [1, 1], [1, 0], [0, 1], [0, 1]]))
    assert_allclose(model.predict_proba([[0.2]]), [[3 / 4, (1 + 1) / 4]])


def test_rounding_does_not_lift_a_score_above_one():
    X = np.arange(60.0)[:, None]
    model = MCIC(theta=0, decay=0.01, n_clusters=20, maturity=3, speed=2)
    for i in range(60):
        assert model.partial_fit(X[i : i + 1], np.array([[1, 1]])).predict_proba(X[:1]).max() <= 1


def test_number_of_predicted_labels_follows_the_stream():
    X = np.zeros((200, 1))
    Y = np.zeros((200, 6), dtype=int)
    Y[:, :3] = 1
    Y[100:, 3:] = 1
    model = MCIC(decay=0).partial_fit(X[:100], Y[:100])
    assert model.n_labels_predicted_ == 3
    assert model.partial_fit(X[100:], Y[100:]).n_labels_predicted_ == 6
    assert model.predict([[0.0]]).sum() == 6


def test_number_of_predicted_labels_may_be_zero_or_above_the_known_ones():
    few = MCIC().fit([[0.0]], np.array([[1, 0]]))
    assert few.predict([[0.0]]).sum() == min(few.n_labels_predicted_, 2)
    rare = MCIC().fit(np.zeros((300, 1)), np.arange(300)[:, None] == 5)
    assert rare.n_labels_predicted_ == 0
    assert rare.predict([[0.0]]).sum() == 0


def test_half_a_label_is_rounded_up():
    model = MCIC(initial_labels=0, delta=0.9, decay=0)
    model.fit(np.zeros((2, 1)), np.array([[0, 0], [1, 0]]))
    assert model.n_labels_predicted_ == 1


def test_rows_without_labels_keep_the_number_of_predicted_labels():
    assert MCIC().fit(np.zeros((50, 1)), np.zeros((50, 2))).n_labels_predicted_ == 5


def test_all_clusters_may_fade_away():
    model = MCIC(theta=0.5, decay=6, maturity=1.5, speed=3)
    model.fit(np.zeros((5, 1)), np.ones((5, 1)))  # mature at time 1; at time 2 the weight is 2^-6 plus one row
    model.partial_fit([[0.0]], np.array([[1]]))
    assert (model.n_mature_, model.n_immature_) == (0, 0)
    assert_array_equal(model.predict_proba([[0.0]]), [[0.0]])


def test_predict_changes_nothing():
    X, Y = stream()
    model = MCIC(theta=0.1).fit(X, Y)
    before = pickle.dumps(model)
    model.predict(X)
    assert pickle.dumps(model) == before


def test_new_label_does_not_change_the_scores_of_others():
    X, Y = stream()
    Y[:200, 3] = 0
    whole = MCIC(theta=0.1).fit(X, Y)
    grown = MCIC(theta=0.1).partial_fit(X[:200], Y[:200, :3]).partial_fit(X[200:], Y[200:])
    assert_array_equal(grown.predict_proba(X), whole.predict_proba(X))


def test_storage_of_removed_clusters_is_reused():
    X, Y = stream(2000)
    model = MCIC(theta=0.02, speed=20).fit(X, Y)
    assert len(model._clusters.weights) < 1000


@pytest.mark.data
@pytest.mark.parametrize(("scaled", "expected"), [(True, (0.443, 0.106, 0.510)), (False, (0.317, 0.152, 0.620))])
def test_measures_on_emotions_equal_the_expected_figures(dataset, mean_over_ten_folds, scaled, expected):
    emotions = dataset("emotions")
    data = emotions.scaled() if scaled else emotions
    measured = mean_over_ten_folds(MCIC(theta=0.1, decay=0, maturity=3), data)
    names = ("hamming_loss", "exact_match", "average_precision")
    assert [measured[name] for name in names] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"theta": -0.1}, "theta must be at least 0"),
        ({"decay": np.inf}, "decay must be a finite number"),
        ({"delta": 1}, "delta must be above 0 and below 1"),
        ({"n_clusters": 0}, "n_clusters must be at least 1"),
        ({"maturity": 1}, "maturity must be above 1"),
        ({"speed": 0}, "speed must be at least 1"),
        ({"initial_labels": -1}, "initial_labels must be at least 0"),
        ({"center": "mean"}, "center must be one of 'reference', 'exact'"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        MCIC(**parameters).fit([[0.0]], np.array([[1]]))

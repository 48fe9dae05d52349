"""`decision="mixed"` through the public classifier: objectives, thresholds, files, late columns and missing values."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mlca import MLCA, load
from mlca.reference.arithmetic import sigmoid

pytestmark = pytest.mark.traced


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    return X, (X[:, :3] + rng.normal(0, 0.5, (160, 3)) > 0.4).astype(int)


def test_saved_model_continues_as_the_original(stream, tmp_path):
    X, Y = stream
    model = MLCA(decision="mixed").fit(X[:120], Y[:120])
    model.save(tmp_path / "model.mlca")
    loaded = load(tmp_path / "model.mlca")
    for continued in (model, loaded):
        continued.partial_fit(X[120:], Y[120:])
    np.testing.assert_array_equal(model.predict_proba(X), loaded.predict_proba(X))


@pytest.mark.parametrize("objective", ["exact", "f1", "hamming"])
def test_objectives_choose_from_the_same_probabilities(stream, objective):
    X, Y = stream
    model = MLCA(decision="mixed", objective=objective).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), MLCA(decision="mixed").fit(X, Y).predict_proba(X))
    if objective == "hamming":
        np.testing.assert_array_equal(model.predict(X), model.predict(X, threshold=0.5))


def test_thresholds_per_label_apply_and_invalid_ones_are_rejected(stream):
    X, Y = stream
    sets = [[name for name, true in zip("abc", row, strict=True) if true] for row in Y]
    model = MLCA().partial_fit(X, sets, classes=["a", "b", "c"])
    names, p = model.classes_.tolist(), model.predict_proba(X)
    cuts = np.array([{"a": 0.1, "c": 0.8}.get(name, 0.5) for name in names])
    np.testing.assert_array_equal(model.predict(X, threshold={"a": 0.1, "c": 0.8}), p > cuts)
    np.testing.assert_array_equal(model.predict(X, threshold=0.3), p > 0.3)
    for wrong, message in [
        ({"d": 0.1}, "the label 'd', which the model does not know; it knows 'a', 'b', 'c'"),
        ({"a": 1.5}, "threshold of the label 'a' must be at least 0 and at most 1, not 1.5"),
        (float("nan"), "threshold must be a finite number, not nan; a mapping of labels"),
        ("0.5", "threshold must be a finite number"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict(X, threshold=wrong)


def test_no_sample_weight_is_accepted_and_others_are_rejected(stream):
    X, Y = stream
    assert MLCA().fit(X, Y, sample_weight=None).partial_fit(X, Y, sample_weight=None).n_seen_ == 320
    for learn in (MLCA().fit, MLCA().partial_fit):
        with pytest.raises(TypeError, match="sample_weight is not supported, because"):
            learn(X, Y, sample_weight=np.ones(len(X)))


def test_most_likely_labels_have_their_probabilities(stream):
    X, Y = stream
    model = MLCA().fit(X, Y)
    p = model.predict_proba(X)
    for row, top in zip(p, model.predict_top(X, k=2), strict=True):
        assert [value for _, value in top] == sorted(row.tolist(), reverse=True)[:2]
        assert all(row[label] == value for label, value in top)


@pytest.mark.parametrize("recency", [False, True])
@pytest.mark.parametrize("single", [False, True], ids=["label sets", "one class per row"])
def test_explained_contributions_add_up_to_the_predicted_probabilities(stream, recency, single):
    X, Y = stream
    model = MLCA(recency=recency).fit(X, Y.argmax(axis=1) if single else Y)
    for x, predicted in zip(X[:20], model.predict_proba(X[:20]), strict=True):
        explanation = model.explain(x)
        total = np.zeros(len(predicted) + 1)
        for added in explanation.contributions.T:
            total += added
        np.testing.assert_array_equal(total, explanation.logits)
        p = sigmoid(total)[1:]
        np.testing.assert_array_equal(p / p.sum() if single else p, predicted)
        np.testing.assert_array_equal(explanation.posterior, predicted)
        np.testing.assert_array_equal(explanation.input_weights, model._learner.state("none")["mixer.weights"])
        assert f"Weights of the inputs: nodes {explanation.input_weights[0]:.3f}, linear model" in str(explanation)
        reasons = explanation.to_frame()
        for slot, label in enumerate([None, *explanation.labels]):
            terms = explanation.linear_none if label is None else explanation.linear[label]
            occurred = explanation.frequencies[slot] > 0.01  # with one class per row, "no label" never occurs
            expected = {"bias", "x0", "x1", "x2", "x3"} if occurred else set()
            assert {name.split(" ")[0] for name, _ in terms} == expected
            of_label = reasons[reasons["label"].isna() if label is None else reasons["label"] == label]
            added = dict(zip(of_label["reason"], of_label["contribution"], strict=True))
            assert added.items() >= {(name, value) for name, value in terms if name != "bias"}
            assert of_label["contribution"].sum() == pytest.approx(total[slot], abs=1e-12)


@pytest.mark.parametrize(("decision", "objective"), [("mixed", "exactly"), ("calibrated", "f1"), ("bayes", "f1")])
def test_objective_changed_after_training_is_checked(stream, decision, objective):
    X, Y = stream
    model = MLCA(decision=decision).fit(X, Y).set_params(objective=objective)
    for predict in (model.predict, model.predict_labels, lambda rows: model.explain(rows[0])):
        with pytest.raises(ValueError, match="objective"):
            predict(X)
    np.testing.assert_array_equal(model.set_params(objective="hamming").predict(X), model.predict(X, threshold=0.5))


def test_sparse_probabilities_are_those_of_at_least_the_bound(stream):
    X, Y = stream
    model = MLCA().fit(X, Y)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X, sparse=True, least=0.2).toarray(), np.where(p >= 0.2, p, 0.0))
    for wrong in ({"sparse": "no"}, {"sparse": True, "least": 1.5}):
        with pytest.raises(ValueError, match=next(reversed(wrong))):
            model.predict_proba(X, **wrong)


def test_late_columns_and_missing_values_are_learned(stream):
    X, Y = stream
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = MLCA(decision="mixed").partial_fit(frame[:100], Y[:100])
    model.partial_fit(frame[100:].assign(e=1.5), Y[100:])
    gaps = frame.assign(e=np.nan).mask(frame.assign(e=0.0) > 1.0)
    model.partial_fit(gaps, Y)
    assert model.n_seen_ == 320
    assert np.isfinite(model.predict_proba(gaps)).all()


def test_linear_models_hold_eight_bytes_per_feature_and_label_that_occurred():
    """Of 100,000 hashed features and 300 labels, those that did not occur need no memory."""
    rng = np.random.default_rng(0)
    n, d, q = 120, 100_000, 300
    X = sparse.csr_array((np.ones(20 * n), rng.integers(0, d, 20 * n), np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    labels = rng.integers(0, 40, n)
    model = MLCA().partial_fit(X, [[int(label)] for label in labels], classes=range(q))
    state = model._learner.state()
    weights, squares = state["linear.weights"], state["linear.squares"]
    n_labels, n_features = len(set(labels.tolist())), len(np.unique(X.indices))
    # There are also models of "none" and "unseen", and a bias beside the features.
    assert len(weights) <= n_features + 1 < d / 40
    assert weights.shape == squares.shape == (len(state["linear.features"]), n_labels + 2)
    assert weights.nbytes + squares.nbytes == 8 * weights.size
    assert sum(array.nbytes for name, array in state.items() if name.startswith("linear.")) < 9 * weights.size


def test_ranges_of_numbers_are_named_once_there_are_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2100, 2))
    model = MLCA(vigilance=0.1).fit(X, (X > 0).astype(int))
    edges = model._learner.cell_edges()
    assert edges.shape == (2, 9) and (np.diff(edges) > 0).all()
    reasons = model.explain(X[0]).reasons(0)
    assert any(" from " in name for name, _ in reasons)


def test_segments_are_followed_only_on_demand(stream):
    X, Y = stream
    segments = MLCA(drift="follow").fit(X, Y)._learner.segments()
    assert segments and segments[0][0] == 0 and all(0 <= trust <= 1 for _, trust in segments)
    assert MLCA().fit(X, Y)._learner.segments() == ()


def test_sparse_probabilities_are_cut_off(stream):
    X, Y = stream
    answers = MLCA().fit(X, Y).predict_details(X)
    np.testing.assert_array_equal(answers.between(2, 5).probabilities, answers.probabilities[2:5])


def test_slowly_changing_labels_are_predicted_as_well_as_by_repeating_them():
    """Some labels stay for five rows, others for two hundred, and features hardly show them."""
    rng = np.random.default_rng(0)
    changes = rng.random((1200, 4)) < [0.1, 0.03, 0.01, 0.002]
    Y = np.zeros((1200, 4), int)
    for i in range(1, 1200):
        Y[i] = np.where(changes[i], rng.random(4) < [0.3, 0.2, 0.3, 0.5], Y[i - 1])
    X = Y @ rng.normal(size=(4, 3)) + rng.normal(0, 2, (1200, 3))
    model, right = MLCA(recency=True).partial_fit(X[:400], Y[:400]), []
    for i in range(400, 1200):
        right.append((model.predict(X[i : i + 1])[0] == Y[i]).all())
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    repeated = (Y[400:] == Y[399:-1]).all(axis=1)
    assert np.mean(right) >= repeated.mean() - 0.005

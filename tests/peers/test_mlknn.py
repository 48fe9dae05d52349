from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mlca.peers import MLkNN, mlknn

X_TOY = np.array([[0.0], [1.0], [2.5], [6.0], [10.0]])
Y_TOY = np.array([[1, 0], [1, 1], [0, 1], [0, 1], [0, 0]])


def plain_probabilities(X, Y, queries, k, s):
    """ML-kNN as in the paper: one row at a time, distances from differences, stable sort."""

    def count(query, left_out=None):
        distances = np.sqrt([sum((a - b) ** 2 for a, b in zip(query, row, strict=True)) for row in X])
        if left_out is not None:
            distances[left_out] = np.inf
        return Y[np.argsort(distances, kind="stable")[:k]].sum(axis=0)

    n, q = Y.shape
    present, absent = np.zeros((q, k + 1)), np.zeros((q, k + 1))
    for i in range(n):
        for j, c in enumerate(count(X[i], left_out=i)):
            (present if Y[i, j] else absent)[j, c] += 1
    prior = (s + Y.sum(axis=0)) / (2 * s + n)
    like1 = (s + present) / (s * (k + 1) + present.sum(axis=1, keepdims=True))
    like0 = (s + absent) / (s * (k + 1) + absent.sum(axis=1, keepdims=True))
    probabilities = []
    for query in queries:
        c, label = count(query), np.arange(q)
        u, v = prior * like1[label, c], (1 - prior) * like0[label, c]
        probabilities.append(u / (u + v))
    return np.array(probabilities)


def test_toy_example_equals_the_specification():
    model = MLkNN(k=2).fit(X_TOY, Y_TOY)
    assert_allclose(model.prior_, [3 / 7, 4 / 7])
    assert_allclose(model.likelihood_present_, [[0.2, 0.6, 0.2], [1 / 6, 2 / 3, 1 / 6]])
    assert_allclose(model.likelihood_absent_, [[0.5, 1 / 6, 1 / 3], [0.2, 0.2, 0.6]])
    expected = [[0.310345, 0.816327], [0.230769, 0.270270]]
    assert_allclose(model.predict_proba([[0.4], [5.0]]), expected, atol=1e-6)
    assert_array_equal(model.predict([[0.4], [5.0]]), [[0, 1], [0, 0]])


def test_likelihoods_sum_to_1_and_probabilities_are_between_0_and_1():
    rng = np.random.default_rng(0)
    model = MLkNN(k=5, smoothing=0.5).fit(rng.random((80, 3)), rng.random((80, 4)) < 0.3)
    assert_allclose(model.likelihood_present_.sum(axis=1), 1)
    assert_allclose(model.likelihood_absent_.sum(axis=1), 1)
    assert np.all((model.prior_ > 0) & (model.prior_ < 1))
    probabilities = model.predict_proba(rng.random((50, 3)))
    assert np.all((probabilities > 0) & (probabilities < 1))


def test_order_of_rows_does_not_change_probabilities_without_ties():
    rng = np.random.default_rng(1)
    X, Y, order = rng.random((60, 3)), rng.random((60, 4)) < 0.3, rng.permutation(60)
    queries = rng.random((20, 3))
    expected = MLkNN(k=4).fit(X, Y).predict_proba(queries)
    assert_array_equal(MLkNN(k=4).fit(X[order], Y[order]).predict_proba(queries), expected)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("kind", ["bits", "repeated rows", "far from zero"])
def test_probabilities_equal_a_plain_implementation_with_tied_distances(kind, k):
    rng = np.random.default_rng(2)
    X = {
        "bits": rng.integers(0, 2, (90, 6)).astype(float),
        "repeated rows": rng.normal(size=(12, 5))[rng.integers(0, 12, 90)] / 3,
        "far from zero": 1e7 + rng.integers(0, 3, (90, 4)) / 10,
    }[kind]
    Y = rng.integers(0, 2, (90, 3))
    expected = plain_probabilities(X[:70], Y[:70], X[60:], k, 1.0)
    assert_array_equal(MLkNN(k).fit(X[:70], Y[:70]).predict_proba(X[60:]), expected)


def test_sparse_rows_give_the_same_bits():
    rng = np.random.default_rng(3)
    X = rng.integers(-2, 3, (70, 12)) * (rng.random((70, 12)) < 0.3) / 3
    Y = rng.integers(0, 2, (70, 3))
    dense = MLkNN(k=5).fit(X[:50], Y[:50])
    compressed = MLkNN(k=5).fit(sparse.csr_array(X[:50]), Y[:50])
    expected = dense.predict_proba(X)
    assert_array_equal(compressed.predict_proba(sparse.csr_matrix(X)), expected)
    assert_array_equal(compressed.predict_proba(X), expected)
    assert_array_equal(dense.predict_proba(sparse.coo_array(X)), expected)


def test_block_size_does_not_change_probabilities(monkeypatch):
    rng = np.random.default_rng(4)
    X, Y = rng.integers(0, 3, (100, 3)).astype(float), rng.integers(0, 2, (100, 3))
    expected = MLkNN(k=5).fit(X, Y).predict_proba(X)
    monkeypatch.setattr(mlknn, "_DISTANCES_PER_BLOCK", 1)
    monkeypatch.setattr(mlknn, "_MIN_QUERIES_PER_BLOCK", 7)
    assert_array_equal(MLkNN(k=5).fit(X, Y).predict_proba(X), expected)


def test_query_may_be_its_own_neighbour_but_a_training_row_not():
    model = MLkNN(k=1).fit(X_TOY, Y_TOY)
    # The nearest other rows of the five rows are 1, 0, 1, 2, 3; rows 0 and 1 have label 0.
    assert_allclose(model.likelihood_present_[0], [1 / 4, 3 / 4])
    assert_allclose(model.likelihood_absent_[0], [3 / 5, 2 / 5])
    assert model.predict_proba([[0.0]])[0, 0] == pytest.approx(9 / 28 / (9 / 28 + 8 / 35))


def test_probability_of_one_half_is_predicted():
    # Half of the rows have the label, and uninformative neighbours do not change that.
    model = MLkNN(k=3).fit([[0.0], [1.0], [2.0], [3.0]], np.array([[1], [0], [1], [0]]))
    model.likelihood_absent_ = model.likelihood_present_
    assert model.predict_proba([[0.0]]) == 0.5
    assert model.predict([[0.0]]) == 1


def test_without_smoothing_an_unseen_count_leaves_the_prior():
    X = [[0.0], [1.0], [10.0], [11.0], [30.0]]
    model = MLkNN(k=2, smoothing=0).fit(X, np.array([[0], [0], [1], [1], [0]]))
    assert_array_equal(model.likelihood_present_ + model.likelihood_absent_ > 0, [[False, True, True]])
    assert_array_equal(model.predict_proba([[-5.0]]), [[2 / 5]])


def test_without_smoothing_a_label_never_seen_is_impossible():
    model = MLkNN(k=2, smoothing=0).fit(X_TOY, np.zeros((5, 1)))
    assert_array_equal(model.predict_proba([[0.0]]), [[0.0]])


def test_huge_values_are_compared_by_their_differences():
    X, Y = np.array([[1.0], [2.0], [2.1], [9.0]]), np.array([[0], [1], [1], [0]])
    small, huge = MLkNN(k=1).fit(X, Y), MLkNN(k=1).fit(X * 1e149, Y)
    assert_array_equal(huge.predict_proba(X * 1e149), small.predict_proba(X))


def test_too_few_rows_for_k_are_rejected():
    model = MLkNN(k=2).fit(X_TOY, Y_TOY)
    with pytest.raises(ValueError, match=r"k=5 neighbours.*n_samples=5; pass more rows or a smaller k"):
        model.set_params(k=5).fit(X_TOY, Y_TOY)
    assert_array_equal(model.predict([[0.4]]), [[0, 1]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"k": 0}, "k must be at least 1"), ({"k": 2.5}, "k must be"), ({"smoothing": -1}, "smoothing must be")],
)
def test_invalid_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        MLkNN(**parameters).fit(X_TOY, Y_TOY)


@pytest.mark.data
def test_measures_on_yeast_are_in_the_published_range(dataset, mean_over_ten_folds):
    measured = mean_over_ten_folds(MLkNN(k=10), dataset("yeast"))
    assert 0.190 <= measured["hamming_loss"] <= 0.197
    assert 0.758 <= measured["average_precision"] <= 0.772


@pytest.mark.data
def test_measures_on_scaled_yeast_equal_the_specification(dataset, mean_over_ten_folds):
    # The figures of the specification; with each row in its own neighbourhood they are 0.1963, 0.2039, 0.1710.
    measured = mean_over_ten_folds(MLkNN(k=10), dataset("yeast").scaled())
    expected = {
        "hamming_loss": 0.1920,
        "exact_match": 0.1878,
        "ranking_loss": 0.1643,
        "average_precision": 0.7655,
        "one_error": 0.2330,
        "coverage": 6.216 / 13,
        "example_f1": 0.6242,
    }
    assert {name: measured[name] for name in expected} == pytest.approx(expected, abs=1e-4)


@pytest.mark.data
@pytest.mark.parametrize(
    ("k", "scaled", "expected"),
    [
        (10, True, (0.1948, 0.2848, 0.1631, 0.7943)),
        (3, True, (0.2075, 0.2545, 0.1754, 0.7895)),
        (10, False, (0.2651, 0.1282, 0.2624, 0.7067)),
        (3, False, (0.2688, 0.1450, 0.2774, 0.6984)),
    ],
)
def test_measures_on_emotions_equal_the_expected_figures(dataset, mean_over_ten_folds, k, scaled, expected):
    emotions = dataset("emotions")
    measured = mean_over_ten_folds(MLkNN(k), emotions.scaled() if scaled else emotions)
    names = ("hamming_loss", "exact_match", "ranking_loss", "average_precision")
    assert [measured[name] for name in names] == pytest.approx(expected, abs=1e-4)


@pytest.mark.data
def test_measures_on_image_are_near_the_published_figures(dataset, mean_over_ten_folds):
    measured = mean_over_ten_folds(MLkNN(k=10), dataset("image"))
    expected = {"hamming_loss": 0.169, "one_error": 0.300, "ranking_loss": 0.168, "average_precision": 0.803}
    assert {name: measured[name] for name in expected} == pytest.approx(expected, abs=0.01)
    assert 4 * measured["coverage"] == pytest.approx(0.939, abs=0.03)

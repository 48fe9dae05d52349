from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

from mlca.peers.mlodm import MLODM, best_cuts

OPTIMUM = {"max_sweeps": 2000, "tol": 1e-13}


def small_data(n_rows=30, n_labels=4, seed=0):
    """Rows of 4 features; every label depends on them, and every row has some labels but not all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    Y = (X @ rng.normal(size=(4, n_labels)) + 0.5 * rng.normal(size=(n_rows, n_labels)) > 0).astype(int)
    mixed = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < n_labels)
    return X[mixed], Y[mixed]


def primal(scores, Y, theta, mu, C):
    """Return the loss and its derivative with respect to the scores, pair by pair as in the specification."""
    loss, slope = 0.0, np.zeros_like(scores)
    for i, y in enumerate(Y):
        relevant, irrelevant = np.flatnonzero(y), np.flatnonzero(y == 0)
        cost = C / (len(relevant) * len(irrelevant) * (1 - theta) ** 2)
        for p in relevant:
            for q in irrelevant:
                margin = scores[i, p] - scores[i, q]
                short, long = max(0.0, 1 - theta - margin), max(0.0, margin - 1 - theta)
                loss += cost / 2 * (short**2 + mu * long**2)
                pull = cost * (short - mu * long)
                slope[i, p] -= pull
                slope[i, q] += pull
    return loss, slope


def minimise_primal(X, Y, theta, mu, C):
    def objective(flat):
        W = flat.reshape(Y.shape[1], -1)
        loss, slope = primal(X @ W.T, Y, theta, mu, C)
        return loss + flat @ flat / 2, (slope.T @ X + W).ravel()

    start = np.zeros(Y.shape[1] * X.shape[1])
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-12, "ftol": 1e-16}
    )
    return found.x.reshape(Y.shape[1], -1), found.fun


class TestOptimum:
    def test_worked_example_reaches_the_known_optimum(self):
        model = MLODM(theta=0.5, C=1.0, kernel="precomputed").fit([[1.0]], np.array([[1, 0]]))
        assert model.dual_ == pytest.approx(np.array([[2 / 9, -2 / 9]]))
        assert model.decision_function([[1.0]]) == pytest.approx(np.array([[2 / 9, -2 / 9]]))
        assert model.primal_ == pytest.approx(0.0555556, abs=1e-7)
        assert model.dual_value_ == pytest.approx(0.0555556, abs=1e-7)

    @pytest.mark.parametrize(("theta", "mu", "C"), [(0.5, 0.3, 1.0), (0.0, 0.9, 0.2), (0.9, 0.1, 3.0)])
    def test_optimum_agrees_with_minimising_the_primal(self, theta, mu, C):
        X, Y = small_data()
        model = MLODM(theta, mu, C, kernel="linear", **OPTIMUM).fit(X, Y)
        W, value = minimise_primal(X, Y, theta, mu, C)
        weights = model.dual_.T @ X
        assert weights == pytest.approx(W, abs=1e-6)
        assert model.primal_ == pytest.approx(value, rel=1e-9)
        assert model.dual_value_ == pytest.approx(value, rel=1e-9)

    def test_model_with_tiny_mu_is_a_squared_hinge_rank_svm(self):
        X, Y = small_data()
        model = MLODM(0.3, 1e-12, kernel="linear", **OPTIMUM).fit(X, Y)
        W, _ = minimise_primal(X, Y, 0.3, 0.0, 1.0)
        weights = model.dual_.T @ X
        assert weights == pytest.approx(W, abs=1e-6)

    def test_dual_weights_are_the_negative_slope_of_the_primal(self):
        X, Y = small_data()
        model = MLODM(mu=0.5, **OPTIMUM).fit(X, Y)
        _, slope = primal(model.decision_function(X), Y, 0.5, 0.5, 1.0)
        assert model.dual_ == pytest.approx(-slope, abs=1e-9)

    def test_weights_and_scores_of_a_row_sum_to_zero(self):
        X, Y = small_data()
        model = MLODM().fit(X, Y)
        assert model.dual_.sum(axis=1) == pytest.approx(0, abs=1e-12)
        assert model.decision_function(2 * X + 1).sum(axis=1) == pytest.approx(0, abs=1e-12)

    def test_every_sweep_raises_the_dual_value_towards_the_primal(self):
        X, Y = small_data(60)
        models = [MLODM(theta=0.8, max_sweeps=sweeps).fit(X, Y) for sweeps in range(1, 9)]
        duals = [model.dual_value_ for model in models]
        assert np.all(np.diff(duals) >= 0)
        assert all(model.primal_ >= model.dual_value_ for model in models)
        best = MLODM(theta=0.8, **OPTIMUM).fit(X, Y)
        assert duals[-1] <= best.dual_value_ * (1 + 1e-12)
        assert best.primal_ == pytest.approx(best.dual_value_, rel=1e-12)
        assert best.n_sweeps_ < 2000

    def test_order_of_visits_changes_only_results_before_the_optimum(self):
        X, Y = small_data()
        early, other = (MLODM(max_sweeps=2, random_state=seed).fit(X, Y).dual_ for seed in (0, 1))
        assert np.abs(early - other).max() > 1e-6
        late, other = (MLODM(random_state=seed, **OPTIMUM).fit(X, Y).dual_ for seed in (0, 1))
        assert late == pytest.approx(other, abs=1e-9)


class TestThreshold:
    def test_best_cuts_are_below_between_or_above_the_scores(self):
        scores = np.array([[0.0, 1.0, 3.0]] * 4)
        relevant = np.array([[1, 1, 1], [0, 0, 1], [0, 0, 0], [1, 0, 1]], dtype=bool)
        assert best_cuts(scores, relevant) == pytest.approx([-0.1, 2.0, 3.1, -0.1])

    def test_best_cuts_make_the_fewest_errors(self):
        rng = np.random.default_rng(0)
        scores, relevant = rng.normal(size=(50, 5)), rng.random((50, 5)) < 0.5
        for row, truth, cut in zip(scores, relevant, best_cuts(scores, relevant), strict=True):
            ranked = np.sort(row)
            candidates = [ranked[0] - 0.1, *(ranked[1:] + ranked[:-1]) / 2, ranked[-1] + 0.1]
            errors = [np.count_nonzero((row > candidate) != truth) for candidate in candidates]
            assert cut == pytest.approx(candidates[int(np.argmin(errors))])

    def test_labels_with_scores_at_or_above_the_threshold_are_predicted(self):
        X, Y = small_data()
        model = MLODM().fit(X, Y)
        scores = model.decision_function(X)
        thresholds = scores @ model.threshold_[:-1] + model.threshold_[-1]
        assert np.array_equal(model.predict(X), scores >= thresholds[:, None])
        logistic = 1 / (1 + np.exp(thresholds[:, None] - scores))
        assert model.predict_proba(X) == pytest.approx(logistic)

    def test_shortest_of_equal_thresholds_is_chosen(self):
        for seed in range(10):
            model = MLODM().fit(*small_data(seed=seed))
            assert model.threshold_[:-1].sum() == pytest.approx(0, abs=1e-9)
            assert np.abs(model.threshold_).max() < 10

    def test_score_equal_to_the_threshold_is_predicted(self):
        model = MLODM().fit(*small_data())
        assert model._decide(np.array([[0.5, 0.4999]]), np.empty((1, 4))).tolist() == [[True, False]]


class TestKernels:
    X, Y = small_data(60)

    def test_precomputed_kernel_gives_the_scores_of_the_rbf_kernel(self):
        plain = MLODM(gamma=0.2).fit(self.X[:40], self.Y[:40])
        kernel = rbf_kernel(self.X, self.X[:40], gamma=0.2)
        given = MLODM(kernel="precomputed").fit(kernel[:40], self.Y[:40])
        assert given.decision_function(kernel) == pytest.approx(plain.decision_function(self.X))

    def test_cross_validation_slices_rows_and_columns_of_precomputed_kernels(self):
        kernel = rbf_kernel(self.X, gamma=0.5)
        given = cross_val_score(MLODM(kernel="precomputed"), kernel, self.Y, cv=3)
        assert given == pytest.approx(cross_val_score(MLODM(), self.X, self.Y, cv=3))

    @pytest.mark.parametrize("kernel", ["rbf", "linear"])
    def test_sparse_rows_give_the_scores_of_dense_ones(self, kernel):
        dense = MLODM(kernel=kernel).fit(self.X, self.Y)
        thin = MLODM(kernel=kernel).fit(sparse.csr_array(self.X), self.Y)
        assert thin.decision_function(sparse.csr_matrix(self.X)) == pytest.approx(dense.decision_function(self.X))

    def test_sparse_or_non_square_kernel_is_rejected(self):
        with pytest.raises(ValueError, match="toarray"):
            MLODM(kernel="precomputed").fit(sparse.eye_array(len(self.Y)).tocsr(), self.Y)
        with pytest.raises(ValueError, match="square"):
            MLODM(kernel="precomputed").fit(self.X, self.Y)

    def test_zero_rows_have_no_effect_with_a_linear_kernel(self):
        X = np.vstack([self.X, np.zeros(4)])
        model = MLODM(kernel="linear", **OPTIMUM).fit(X, np.vstack([self.Y, [1, 0, 0, 1]]))
        without = MLODM(kernel="linear", **OPTIMUM).fit(self.X, self.Y)
        assert model.decision_function(self.X) == pytest.approx(without.decision_function(self.X), abs=1e-9)


class TestRows:
    X, Y = small_data()

    def test_rows_without_pairs_are_left_out(self):
        X = np.vstack([[[9.0] * 4], self.X, [[-9.0] * 4]])
        Y = np.vstack([[0] * 4, self.Y, [1] * 4])
        model = MLODM().fit(X, Y)
        without = MLODM().fit(self.X, self.Y)
        assert np.array_equal(model.decision_function(self.X), without.decision_function(self.X))
        assert len(model.dual_) == len(self.X)

    @pytest.mark.parametrize("labels", [[0, 0, 0, 0], [1, 1, 1, 1]])
    def test_data_without_pairs_are_rejected(self, labels):
        with pytest.raises(ValueError, match="each row has none or all"):
            MLODM().fit(self.X, np.tile(labels, (len(self.X), 1)))

    def test_excessive_memory_is_rejected_and_changes_nothing(self):
        model = MLODM().fit(self.X, self.Y)
        before = model.decision_function(self.X)
        n_pairs = int((self.Y.sum(axis=1) * (4 - self.Y.sum(axis=1))).sum())
        size = 8 * (len(self.X) ** 2 + n_pairs) / 2**30
        model.set_params(max_gib=size * 0.999)
        with pytest.raises(ValueError, match=rf"{len(self.X)} x {len(self.X)} rows.*{n_pairs} label pairs"):
            model.fit(self.X, self.Y[:, ::-1])
        assert np.array_equal(model.decision_function(self.X), before)
        model.set_params(max_gib=size * 1.001).fit(self.X, self.Y)

    def test_kernel_beyond_the_default_memory_limit_is_rejected(self):
        n_rows = 17_000
        with pytest.raises(ValueError, match=r"17000 x 17000 rows .* 2\.15 GiB.*max_gib=2\.0"):
            MLODM().fit(np.zeros((n_rows, 1)), np.tile([0, 1], (n_rows, 1)))

    @pytest.mark.parametrize(
        ("name", "value"),
        [("theta", 1.0), ("theta", -0.1), ("mu", 0.0), ("C", 0.0), ("gamma", 0.0), ("kernel", "poly")],
    )
    def test_invalid_parameters_are_rejected(self, name, value):
        with pytest.raises(ValueError, match=name):
            MLODM(**{name: value}).fit(self.X, self.Y)


@pytest.mark.data
class TestRealData:
    def test_duality_gap_on_emotions_equals_the_expected_figures(self, dataset):
        X, Y = dataset("emotions").scaled()
        gaps = []
        for sweeps in range(1, 7):
            model = MLODM(max_sweeps=sweeps, random_state=0).fit(X[:120], Y[:120])
            gaps.append((model.primal_, model.dual_value_))
        figures = [
            (18.60, 9.29),
            (14.85, 11.70),
            (13.36, 12.28),
            (12.60, 12.44),
            (12.54, 12.49),
            (12.52, 12.50),
        ]
        assert np.array(gaps) == pytest.approx(np.array(figures), abs=0.0051)
        best = MLODM(**OPTIMUM).fit(X[:120], Y[:120])
        assert best.primal_ == pytest.approx(12.510597, abs=5e-7)
        assert best.dual_value_ == pytest.approx(12.510597, abs=5e-7)

    @pytest.mark.parametrize(
        ("theta", "mu", "figures"),
        [(0.7, 0.1, (0.1833, 0.3203, 0.1384, 0.8259)), (0.5, 0.3, (0.1838, 0.3086, 0.1306, 0.8346))],
    )
    def test_measures_on_emotions_equal_the_expected_figures(self, dataset, mean_over_ten_folds, theta, mu, figures):
        found = mean_over_ten_folds(MLODM(theta, mu), dataset("emotions").scaled())
        names = ("hamming_loss", "exact_match", "ranking_loss", "average_precision")
        assert [found[name] for name in names] == pytest.approx(figures, abs=1e-3)

    def test_training_on_langlog_reaches_a_small_duality_gap(self, dataset):
        X, Y = dataset("langlog").scaled()
        model = MLODM().fit(X, Y)
        assert Y.shape[1] == 75
        assert model.primal_ - model.dual_value_ < 1e-3 * model.primal_

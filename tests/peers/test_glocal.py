from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse
from scipy.optimize import approx_fprime
from sklearn.metrics import f1_score

from mlca.metrics import average_precision
from mlca.peers.glocal import GLOCAL, find_groups
from mlca.peers.glocal_factors import Factors, Penalties, descend, settled, spectral_square, stands_still, unit_rows

pytestmark = pytest.mark.plain

PENALTIES = Penalties(latent=0.7, overall=0.3, local=0.4, U=0.11, V=0.13, W=0.17)


def random_factors(missing=True, penalties=PENALTIES, n_rows=12, n_features=5, n_labels=4, k=3, rank=2):
    rng = np.random.default_rng(0)
    targets = np.where(rng.random((n_rows, n_labels)) < 0.5, 1.0, -1.0)
    observed = (rng.random((n_rows, n_labels)) < 0.7).astype(float) if missing else None
    groups = np.arange(n_rows) % 3
    factors = Factors(rng.normal(size=(n_rows, n_features)), targets, observed, groups, penalties, 60)
    factors.U, factors.V = rng.random((n_labels, k)), rng.random((n_rows, k))
    factors.W = rng.normal(size=(n_features, k))
    factors.Z = [rng.random((n_labels, rank)) for _ in range(3)]
    return factors, groups


def objective(factors, groups, U, V, W, Z):
    """Return the objective as in the specification, with samples as columns and all matrices computed."""
    X, Y, V = factors.rows.T, factors.targets.T, V.T
    known = 1.0 if factors.observed is None else factors.observed.T
    weights = factors.penalties
    total = np.sum((known * (Y - U @ V)) ** 2) + weights.latent * np.sum((V - W.T @ X) ** 2)
    total += weights.U * np.sum(U**2) + weights.V * np.sum(V**2) + weights.W * np.sum(W**2)
    F = U @ W.T @ X
    for m, factor in enumerate(Z):
        L, here = factor @ factor.T, F[:, groups == m]
        total += weights.overall * np.mean(groups == m) * np.trace(F.T @ L @ F)
        total += weights.local * np.trace(here.T @ L @ here)
    return total / 2


def blobs(seed, n_rows=200):
    """Rows in four corners with a constant column; labels 0 and 1 occur together, and never with label 2."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(4, size=n_rows)
    X = np.column_stack([corner % 2, corner // 2, np.ones(n_rows)]) + 0.1 * rng.normal(size=(n_rows, 3))
    left = corner % 2 == 0
    return X, np.column_stack([left, left, ~left, corner // 2 == 1]).astype(int)


class TestGradients:
    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize("name", ["U", "V", "W", "Z"])
    def test_gradients_equal_numerical_ones_of_the_objective(self, name, missing):
        factors, groups = random_factors(missing)
        blocks = {"U": factors.U, "V": factors.V, "W": factors.W, "Z": factors.Z[1]}
        start = blocks[name]

        def value(flat):
            moved = flat.reshape(start.shape)
            Z = [factors.Z[0], moved if name == "Z" else factors.Z[1], factors.Z[2]]
            U, V, W = (moved if name == block else blocks[block] for block in "UVW")
            return objective(factors, groups, U, V, W, Z)

        gradient = {
            "U": lambda: factors.gradient_U(start, factors.moments()),
            "V": lambda: factors.gradient_V(start),
            "W": lambda: factors.gradient_W(start, factors.mixing()),
            "Z": lambda: factors.gradient_Z(start, factors.moments()[1]),
        }[name]()
        assert gradient.ravel() == pytest.approx(approx_fprime(start.ravel(), value, 1e-7), abs=2e-5)

    def test_costs_differ_from_the_objective_by_a_constant(self):
        factors, groups = random_factors()
        moved, _ = random_factors()
        rng = np.random.default_rng(1)
        U, V, W = (rng.normal(size=block.shape) for block in (factors.U, factors.V, factors.W))
        Z = [rng.normal(size=block.shape) for block in factors.Z]
        rest = (factors.U, factors.V, factors.W, factors.Z)
        before = objective(factors, groups, *rest)
        moments, mixing = factors.moments(), factors.mixing()
        gains = {
            "U": factors.cost_U(U, moments) - factors.cost_U(factors.U, moments),
            "V": factors.cost_V(V) - factors.cost_V(factors.V),
            "W": factors.cost_W(W, mixing) - factors.cost_W(factors.W, mixing),
            "Z": sum(
                factors.cost_Z(new, R) - factors.cost_Z(old, R)
                for new, old, R in zip(Z, factors.Z, moments, strict=True)
            ),
        }
        after = {
            "U": objective(moved, groups, U, *rest[1:]),
            "V": objective(moved, groups, rest[0], V, *rest[2:]),
            "W": objective(moved, groups, *rest[:2], W, rest[3]),
            "Z": objective(moved, groups, *rest[:3], Z),
        }
        assert gains == pytest.approx({name: value - before for name, value in after.items()})

    def test_reference_costs_have_spectral_norms_and_no_halves(self):
        factors, _ = random_factors()
        moments, mixing = factors.moments(), factors.mixing()
        U, W, P = factors.U, factors.W, factors.P
        correlation = sum(np.trace(U @ R @ U.T @ Z @ Z.T) for R, Z in zip(moments, factors.Z, strict=True))
        errors = factors.observed * (factors.targets - factors.V @ U.T)
        norm = np.linalg.norm(errors, 2) ** 2 + PENALTIES.U * np.linalg.norm(U, 2) ** 2
        assert factors.cost_U(U, moments, reference=True) == pytest.approx(norm + correlation)
        norm = PENALTIES.latent * np.linalg.norm(factors.V - P, 2) ** 2
        norm += PENALTIES.W * np.linalg.norm(W, 2) ** 2
        assert factors.cost_W(W, mixing, reference=True) == pytest.approx(norm + correlation)

    @pytest.mark.parametrize("shape", [(3, 7), (7, 3)])
    def test_spectral_square_equals_the_squared_spectral_norm(self, shape):
        matrix = np.random.default_rng(0).normal(size=shape)
        assert spectral_square(matrix) == pytest.approx(np.linalg.norm(matrix, 2) ** 2)


class TestBlocks:
    @pytest.mark.parametrize("reference", [False, True])
    def test_updates_never_raise_their_own_cost(self, reference):
        factors, _ = random_factors()
        factors.Z = [unit_rows(Z) for Z in factors.Z]
        for _ in range(3):
            moments = factors.moments()
            before = [factors.cost_Z(Z, R) for Z, R in zip(factors.Z, moments, strict=True)]
            factors.improve_Z()
            after = [factors.cost_Z(Z, R) for Z, R in zip(factors.Z, moments, strict=True)]
            assert np.all(np.array(after) <= before)
            before = factors.cost_V(factors.V)
            factors.improve_V()
            assert factors.cost_V(factors.V) <= before
            before = factors.cost_U(factors.U, moments, reference)
            factors.improve_U(correlated=True, reference=reference)
            assert factors.cost_U(factors.U, moments, reference) <= before
            mixing = factors.mixing()
            before = factors.cost_W(factors.W, mixing, reference)
            factors.improve_W(correlated=True, reference=reference)
            assert factors.cost_W(factors.W, mixing, reference) <= before

    def test_correlations_keep_unit_length(self):
        factors, _ = random_factors()
        factors.improve_Z()
        for Z in factors.Z:
            assert np.diag(Z @ Z.T) == pytest.approx(1, abs=1e-12)

    def test_Z_is_unchanged_without_correlation_penalties(self):
        factors, _ = random_factors(penalties=PENALTIES._replace(overall=0.0, local=0.0))
        before = [Z.copy() for Z in factors.Z]
        factors.improve_Z()
        assert all(np.array_equal(new, old) for new, old in zip(factors.Z, before, strict=True))

    @pytest.mark.parametrize("missing", [False, True])
    def test_V_converges_to_its_closed_form(self, missing):
        factors, _ = random_factors(missing, PENALTIES._replace(overall=0.0, local=0.0))
        factors.max_steps = 1000
        U, ridge = factors.U, (PENALTIES.latent + PENALTIES.V) * np.eye(3)
        known = np.ones_like(factors.targets) if factors.observed is None else factors.observed
        exact = [
            np.linalg.solve((U.T * seen) @ U + ridge, U.T @ (seen * target) + PENALTIES.latent * latent)
            for seen, target, latent in zip(known, factors.targets, factors.P, strict=True)
        ]
        assert np.abs(factors.gradient_V(np.array(exact))).max() < 1e-13
        factors.improve_V()
        assert np.abs(factors.V - exact).max() < 5e-3

    def test_descend_finds_the_minimum(self):
        scale = np.array([1.0, 3.0, 10.0])
        found = descend(np.ones(3), lambda x: float(np.sum(scale * x**2)), lambda x: 2 * scale * x, 200)
        assert found == pytest.approx(0, abs=1e-2)

    def test_descend_returns_the_start_if_no_step_lowers_the_cost(self):
        start = np.ones(3)
        assert descend(start, lambda x: float(np.sum(x)), lambda x: -np.ones(3), 60) is start

    def test_descend_returns_the_start_where_the_cost_is_flat(self):
        start = np.ones(3)
        assert descend(start, lambda x: 1e-7 * float(np.sum(x)), lambda x: np.full(3, 1e-7), 60) is start

    def test_descent_stops_when_earlier_costs_are_equal(self):
        assert not stands_still([5.0, 5.0, 5.0, 5.0])
        assert stands_still([5.0, 5.0, 5.0, 5.0, 4.0])  # the last gain is ignored
        assert not stands_still([5.1, 5.0, 5.0, 5.0, 5.0])
        assert stands_still([9.0, 5.0, 5.0, 5.0, 5.0, 5.0])

    @pytest.mark.parametrize("cost", ["reference", "consistent"])
    def test_rounds_take_the_factors_in_the_order_of_the_specification(self, cost):
        (factors, _), (by_hand, _) = random_factors(), random_factors()
        losses = GLOCAL(cost=cost, max_rounds=1)._alternate(factors)
        by_hand.improve_U(correlated=False)
        by_hand.improve_V()
        by_hand.improve_W(correlated=False)
        first = by_hand.loss()
        by_hand.improve_Z()
        by_hand.improve_V()
        by_hand.improve_U(correlated=True, reference=cost == "reference")
        by_hand.improve_W(correlated=True, reference=cost == "reference")
        assert losses == [first, by_hand.loss()]
        assert np.array_equal(factors.W, by_hand.W)

    def test_rounds_are_settled_when_earlier_costs_are_equal(self):
        assert not settled([5.0, 5.0, 5.0, 5.0], 1e-3)
        assert settled([5.0, 5.0, 5.0, 9.0, 5.0], 1e-3)  # the previous round is ignored
        assert not settled([5.1, 5.0, 5.0, 5.0, 5.0], 1e-3)
        assert settled([9.0, 5.0, 5.0, 5.0, 5.0, 5.0], 1e-3)


class TestClassifier:
    X, Y = blobs(0)

    @pytest.mark.parametrize("cost", ["reference", "consistent"])
    def test_separated_blobs_are_learned(self, cost):
        model = GLOCAL(cost=cost).fit(self.X, self.Y)
        X, Y = blobs(1)
        assert f1_score(Y, model.predict(X), average="micro") > 0.98
        assert np.array_equal(model.predict(X), model.decision_function(X) > 0)
        assert model.predict_proba(X) == pytest.approx(1 / (1 + np.exp(-model.decision_function(X))))

    def test_losses_are_reported_for_both_phases(self):
        losses = GLOCAL(max_rounds=4).fit(self.X, self.Y).losses_
        assert len(losses) == 8
        assert losses[3] < losses[0]

    def test_same_seed_gives_the_same_factors(self):
        first, second, other = (GLOCAL(max_rounds=2, random_state=s).fit(self.X, self.Y).U_ for s in (3, 3, 4))
        assert np.array_equal(first, second)
        assert not np.array_equal(first, other)

    def test_unobserved_cells_do_not_change_the_factors(self):
        observed = np.random.default_rng(0).random(self.Y.shape) < 0.6
        flipped = np.where(observed, self.Y, 1 - self.Y)
        masked, changed = (GLOCAL(max_rounds=3).fit(self.X, Y, observed=observed) for Y in (self.Y, flipped))
        assert np.array_equal(masked.U_, changed.U_)
        assert np.array_equal(masked.W_, changed.W_)

    def test_missing_labels_are_recovered(self):
        observed = np.random.default_rng(0).random(self.Y.shape) < 0.5
        model = GLOCAL().fit(self.X, np.where(observed, self.Y, 0), observed=observed)
        assert f1_score(self.Y[~observed], model.predict(self.X)[~observed]) > 0.95

    def test_full_mask_equals_no_mask(self):
        full = GLOCAL(max_rounds=2).fit(self.X, self.Y, observed=np.ones(self.Y.shape))
        assert np.array_equal(full.U_, GLOCAL(max_rounds=2).fit(self.X, self.Y).U_)

    @pytest.mark.parametrize(
        ("observed", "message"),
        [
            (np.ones((200, 3)), r"\(200, 3\), but the labels have \(200, 4\)"),
            (np.full((200, 4), 0.5), "only 1, for known"),
            (np.zeros((200, 4)), "mark at least one"),
        ],
    )
    def test_mismatching_mask_is_rejected_and_changes_nothing(self, observed, message):
        model = GLOCAL(max_rounds=2).fit(self.X, self.Y)
        before = model.decision_function(self.X)
        with pytest.raises(ValueError, match=message):
            model.fit(2 * self.X, self.Y, observed=observed)
        assert np.array_equal(model.decision_function(self.X), before)

    def test_sparse_rows_give_the_scores_of_dense_ones(self):
        # Few steps, because more would amplify the rounding of another order of summation.
        dense = GLOCAL(max_rounds=1, max_steps=5).fit(self.X, self.Y)
        thin = GLOCAL(max_rounds=1, max_steps=5).fit(sparse.csr_matrix(self.X), self.Y)
        scores = thin.decision_function(sparse.csr_array(self.X))
        assert scores == pytest.approx(dense.decision_function(self.X), abs=1e-6)

    def test_wide_rows_form_no_square_matrix_of_features(self):
        n_features = 20_000
        rng = np.random.default_rng(0)
        X = sparse.random_array((100, n_features), density=0.005, format="csr", rng=rng)
        Y = (rng.random((100, 5)) < 0.3).astype(int)
        tracemalloc.start()
        GLOCAL(max_rounds=2, max_steps=5).fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.05 * 8 * n_features**2

    def test_penalties_are_rescaled_to_the_size_of_the_data(self):
        weights = GLOCAL(lambda3=2, lambda4=3, lambda1=5, lambda2=7, k=10)._rescaled(600, 100, 20, 6, 4)
        assert weights == pytest.approx((3.0, 0.12, 2.88, 70.0, 4.2, 21.0))

    def test_as_many_groups_are_found_as_distinct_rows_allow(self):
        rng = np.random.RandomState(0)
        assert len(np.unique(find_groups(self.X, 3, rng))) == 3
        assert find_groups(np.ones((5, 2)), 3, rng).tolist() == [0] * 5
        assert sorted(find_groups(np.array([[0.0], [1.0]]), 3, rng)) == [0, 1]

    @pytest.mark.parametrize(("name", "value"), [("lambda3", -1), ("k", 0), ("g", 1.5), ("cost", "true")])
    def test_invalid_parameters_are_rejected(self, name, value):
        with pytest.raises(ValueError, match=name):
            GLOCAL(**{name: value}).fit(self.X, self.Y)


@pytest.fixture(scope="module")
def package():
    """Return the inputs given to the authors' package, and its scores of the test rows."""
    if "MLCA_DATA" not in os.environ:
        pytest.skip("MLCA_DATA names no folder of datasets")
    folder = Path(os.environ["MLCA_DATA"]).parent / "oracle"
    if not (folder / "glocal_emotions_inputs.mat").exists():
        pytest.skip(f"{folder} holds no outputs of GLOCAL's package")
    given = io.loadmat(folder / "glocal_emotions_inputs.mat")
    given["F"] = io.loadmat(folder / "glocal_emotions_octave_outputs.mat")["F"]
    return given


def as_the_package_began(given, rounding=0.0):
    """Return the package's initial factors, with noise as small as another computer's rounding errors."""
    noise = np.random.default_rng(int(rounding * 1e15))
    groups = given["T"].ravel().astype(int) - 1
    penalties = GLOCAL()._rescaled(6 * 400, 400, 72, 6, 3)
    X = np.ascontiguousarray(given["X"].T)
    factors = Factors(X, given["Y"].T, None, groups, penalties, 60)
    factors.U = given["U0"] * (1 + rounding * noise.normal(size=(6, 20)))
    factors.V = np.ascontiguousarray(given["V0"].T)
    factors.W = np.zeros((72, 20))
    factors.Z = [given[name] for name in ("L1", "L2", "L3")]
    return factors


@pytest.mark.data
class TestPackage:
    def test_first_costs_equal_those_of_the_released_package(self, package):
        factors = as_the_package_began(package)
        assert np.linalg.norm(factors.gradient_U(factors.U, [])) == pytest.approx(12075.965, rel=1e-6)
        costs = [factors.cost_U(factors.U, [])]
        for steps in range(1, 6):
            factors = as_the_package_began(package)
            factors.max_steps = steps
            factors.improve_U(correlated=False)
            costs.append(factors.cost_U(factors.U, []))
        figures = [37245.25613, 26180.18482, 1509.190157, 1180.18735, 1163.899999, 1150.925652]
        assert costs == pytest.approx(figures, rel=1e-6)

    @pytest.mark.parametrize(
        ("cost", "figure"), [("reference", 0.8099), pytest.param("consistent", 0.8170, marks=pytest.mark.slow)]
    )
    def test_average_precision_is_near_that_of_the_released_package(self, package, cost, figure):
        """The line search amplifies rounding without bound, so runs with similar starts are averaged."""
        truth = package["Yte"].T > 0
        if cost == "reference":
            assert average_precision(truth, package["F"].T) == pytest.approx(figure, abs=5e-5)
        found = []
        for rounding in range(5):
            factors = as_the_package_began(package, rounding * 1e-13)
            losses = GLOCAL(cost=cost)._alternate(factors)
            assert losses[14] == pytest.approx(36.08, abs=0.5)
            found.append(average_precision(truth, package["Xte"].T @ factors.W @ factors.U.T))
        assert np.mean(found) == pytest.approx(figure, abs=0.02)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("lambda3", "lambda4", "figures"),
        [
            (1e-3, 1e-5, (0.1974, 0.2797, 0.1561, 0.8074)),
            (1e-4, 1.0, (0.1991, 0.2612, 0.1542, 0.8071)),
            (0.0, 0.0, (0.1977, 0.2731, 0.1554, 0.8089)),
        ],
    )
    def test_measures_on_emotions_are_as_expected(self, dataset, mean_over_ten_folds, lambda3, lambda4, figures):
        found = mean_over_ten_folds(GLOCAL(lambda3, lambda4), dataset("emotions").scaled())
        names = ("hamming_loss", "exact_match", "ranking_loss", "average_precision")
        assert [found[name] for name in names] == pytest.approx(figures, abs=0.02)

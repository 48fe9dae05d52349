from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.metrics import f1_score

from mlca.kernels import native
from mlca.peers.muenl import MuENL
from mlca.peers.muenl_forest import Forest, TreeShape, grow_tree
from mlca.peers.muenl_ranking import PairwiseRanking

SHAPE = TreeShape(sample=64, height=5, min_leaf=4, feature_columns=5, score_columns=3, tries=10)


def random_problem(lambda1=0.7, lambda2=0.05, exact=True, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 5))
    targets = np.where(rng.random((30, n_labels)) < 0.4, 1.0, -1.0)
    return PairwiseRanking(X, targets, rng.random((n_labels, 6)), lambda1, lambda2, exact)


def blobs(seed, n_rows, n_blobs):
    """Well separated blobs: the first has labels 0 and 1, the next two one of them, the fourth neither."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((4, 6))
    centres[1, :2], centres[2, 2:4], centres[3, 4:] = 1, 1, 1
    blob = rng.integers(n_blobs, size=n_rows)
    Y = np.column_stack([np.isin(blob, [0, 1]), np.isin(blob, [0, 2])]).astype(int)
    return centres[blob] + 0.05 * rng.normal(size=(n_rows, 6)), Y, blob == 3


class TestRanking:
    @pytest.mark.parametrize(("exact", "slope"), [(False, -1 - 0.7), (True, -1 - 2 * 0.7)])
    def test_worked_example_has_the_known_cost_and_gradient(self, exact, slope):
        targets = np.array([[1.0, -1.0], [-1.0, 1.0]])
        problem = PairwiseRanking(np.array([[1.0], [-1.0]]), targets, np.zeros((2, 2)), 0.7, 0.0, exact)
        assert problem.cost(0) == pytest.approx(1.7)
        assert problem.gradient(0) == pytest.approx([slope, 0.0])

    def finite_differences(self, problem, label):
        def cost(weights):
            problem.weights[label] = weights
            again = PairwiseRanking(
                problem.rows, problem.targets, problem.weights, problem.lambda1, problem.lambda2, True
            )
            if label in problem._emphasis:
                again.balance(label)
            return again.cost(label)

        start = problem.weights[label].copy()
        slopes = approx_fprime(start, cost, 1e-7)
        problem.weights[label] = start
        return slopes

    @pytest.mark.parametrize("label", range(4))
    @pytest.mark.parametrize("balanced", [False, True])
    def test_exact_gradient_equals_finite_differences_of_the_cost(self, label, balanced):
        problem = random_problem()
        if balanced:
            problem.balance(label)
        assert problem.gradient(label) == pytest.approx(self.finite_differences(problem, label), abs=1e-5)

    def test_reference_gradient_differs_from_that_of_the_cost_unless_both_weights_are_zero(self):
        off = random_problem(exact=False)
        assert np.abs(off.gradient(0) - self.finite_differences(off, 0)).max() > 0.01
        plain = random_problem(0.0, 0.0, exact=False)
        assert plain.gradient(0) == pytest.approx(self.finite_differences(plain, 0), abs=1e-5)

    @pytest.mark.parametrize("exact", [False, True])
    def test_descent_never_raises_the_cost(self, exact):
        problem = random_problem(exact=exact)
        for label in (0, 1, 2, 3, 0):
            costs = [problem.cost(label)]
            for _ in range(10):
                problem.descend(label, 1)
                costs.append(problem.cost(label))
            assert np.all(np.diff(costs) <= 0)
            assert costs[-1] < costs[0]

    def test_updated_scores_equal_those_recomputed_from_the_weights(self):
        problem = random_problem()
        problem.sweep(3, 10)
        fresh = PairwiseRanking(problem.rows, problem.targets, problem.weights, 0.7, 0.05, True)
        assert problem.scores == pytest.approx(fresh.scores, abs=1e-12)

    def test_single_label_has_no_ranking_loss(self):
        without, with_ranking = (random_problem(lambda1, n_labels=1) for lambda1 in (0.0, 5.0))
        assert without.cost(0) == with_ranking.cost(0)
        assert np.array_equal(without.gradient(0), with_ranking.gradient(0))

    def test_balance_gives_both_sides_half_the_weight(self):
        problem = random_problem()
        problem.balance(1)
        emphasis, positive = problem._emphasis[1], problem.targets[:, 1] > 0
        assert emphasis[positive].sum() == pytest.approx(15)
        assert emphasis[~positive].sum() == pytest.approx(15)

    @pytest.mark.parametrize(("lambda2", "flat"), [(1e-4, True), (1e-3, False)])
    def test_descent_stops_where_the_cost_is_flat(self, lambda2, flat):
        """Both margins are wide, so the gradient is that of the norm: 6 lambda2."""
        X, targets = np.array([[1.0], [-1.0]]), np.array([[1.0], [-1.0]])
        problem = PairwiseRanking(X, targets, np.array([[3.0, 0.0]]), 1.0, lambda2, True)
        assert problem.descend(0, 1) == flat
        assert (problem.weights[0, 0] == 3.0) == flat


class TestForest:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 8))
    S = rng.normal(size=(200, 4))
    forest = Forest(X, S, 20, SHAPE, np.random.default_rng(0))
    queries = 1.5 * rng.normal(size=(100, 8))
    said = rng.normal(size=(100, 4))

    def test_novelty_falls_as_balls_grow(self):
        shares = [self.forest.novelty(self.queries, self.said, ratio) for ratio in (0.5, 1.0, 1.5, 3.0)]
        assert np.all((np.array(shares) >= 0) & (np.array(shares) <= 1))
        assert np.all(np.diff(shares, axis=0) <= 0)
        assert 0 < shares[1].mean() < 1

    def test_distant_rows_have_a_novelty_of_1(self):
        assert self.forest.novelty(self.X + 50, self.S, 1.0) == pytest.approx(1.0)

    def test_trees_respect_the_least_leaf_size_and_the_greatest_height(self):
        split = 0
        for tree in self.forest.trees:
            assert tree.sizes[tree.child < 0].min() >= SHAPE.min_leaf
            assert tree.sizes[tree.child < 0].sum() == SHAPE.sample
            heights = np.ones(len(tree.child), dtype=int)
            for node in np.flatnonzero(tree.child >= 0):
                heights[tree.child[node] : tree.child[node] + 2] = heights[node] + 1
                split += 1
            assert heights.max() <= SHAPE.height
        assert split > 20 * 3

    def test_tree_finds_no_novelty_in_its_own_sample(self):
        rng = np.random.default_rng(2)
        for _ in range(20):
            drawn = rng.choice(200, 64, replace=False)
            tree = grow_tree(self.X[drawn], self.S[drawn], SHAPE, rng)
            alone = Forest.__new__(Forest)
            alone.trees = [tree]
            assert not alone.novelty(self.X[drawn], self.S[drawn], 1.0).any()

    def test_sparse_rows_give_the_same_votes(self):
        forest = Forest(sparse.csr_array(self.X), self.S, 20, SHAPE, np.random.default_rng(0))
        judged = forest.novelty(sparse.csr_array(self.queries), self.said, 1.0)
        assert np.array_equal(judged, self.forest.novelty(self.queries, self.said, 1.0))

    def test_fewer_rows_than_a_sample_are_drawn_repeatedly(self):
        forest = Forest(self.X[:10], self.S[:10], 5, SHAPE, np.random.default_rng(0))
        assert all(tree.sizes[0] == SHAPE.sample for tree in forest.trees)

    def test_equal_rows_cannot_be_split(self):
        tree = grow_tree(np.ones((64, 8)), np.ones((64, 4)), SHAPE, np.random.default_rng(0))
        assert tree.child.tolist() == [-1]

    def test_equal_rows_with_different_scores_are_split_by_scores(self):
        tree = grow_tree(np.ones((64, 8)), self.S[:64], SHAPE, np.random.default_rng(0))
        assert tree.child[0] == 1
        assert np.count_nonzero(tree.columns[0] >= 8) == SHAPE.score_columns

    def test_two_means_ends_with_the_means_of_its_sides(self):
        points = np.ascontiguousarray(self.X[:50, :3])
        means, first, settled = native.two_means(points, 0, 1)
        assert settled
        assert means == pytest.approx(np.array([points[first].mean(axis=0), points[~first].mean(axis=0)]))


class TestClassifier:
    X, Y, _ = blobs(0, 300, 3)

    def test_separated_blobs_are_learned(self):
        model = MuENL().fit(self.X, self.Y)
        X, Y, _ = blobs(1, 300, 3)
        assert np.array_equal(model.predict(X), Y)
        assert np.array_equal(model.decision_function(X) > 0, Y)

    def test_same_seed_gives_the_same_weights(self):
        first, second, other = (MuENL(sweeps=3, random_state=s).fit(self.X, self.Y) for s in (5, 5, 6))
        assert np.array_equal(first.weights_, second.weights_)
        assert not np.array_equal(first.weights_, other.weights_)

    def test_building_the_forest_changes_no_weights(self):
        asked, not_asked = MuENL(sweeps=2).fit(self.X, self.Y), MuENL(sweeps=2).fit(self.X, self.Y)
        asked.novelty(self.X)
        wider = np.column_stack([self.Y, self.X[:, 0] > 0.5])
        for model in (asked, not_asked):
            model.partial_fit(self.X, wider)
        assert np.array_equal(asked.weights_, not_asked.weights_)

    def test_sparse_rows_give_the_weights_of_dense_ones(self):
        dense = MuENL(sweeps=3).fit(self.X, self.Y)
        thin = MuENL(sweeps=3).fit(sparse.csr_matrix(self.X), self.Y)
        assert thin.weights_ == pytest.approx(dense.weights_, abs=1e-6)
        thin.partial_fit(self.X[:5], self.Y[:5])
        dense.partial_fit(sparse.csr_array(self.X[:5]), self.Y[:5])
        assert thin.weights_ == pytest.approx(dense.weights_, abs=1e-6)

    def test_probabilities_of_large_scores_stay_between_0_and_1(self):
        model = MuENL(sweeps=1).fit(self.X, self.Y)
        likely = model.predict_proba(1e6 * self.X)
        assert likely.min() > 0 and likely.max() < 1

    def test_two_classes_have_one_score(self):
        model = MuENL(sweeps=3).fit(self.X, np.where(self.Y[:, 0], "yes", "no"))
        decision = model.decision_function(self.X)
        assert decision.shape == (300,)
        assert np.array_equal(model.predict(self.X), np.where(decision > 0, "yes", "no"))
        assert model.predict_proba(self.X)[:, 1] == pytest.approx(1 / (1 + np.exp(-decision)))

    def test_class_with_the_best_score_is_predicted(self):
        blob = self.Y @ [1, 2]
        model = MuENL(sweeps=3).fit(self.X, blob)
        far = 1e4 * self.X
        assert np.array_equal(model.predict(far), model.classes_[np.argmax(model.decision_function(far), axis=1)])

    def test_fit_starts_from_an_empty_model(self):
        used = MuENL(sweeps=2, buffer_size=10).fit(self.X, self.Y)
        used.observe(self.X + 5)
        assert np.array_equal(used.fit(self.X, self.Y).weights_, clone(used).fit(self.X, self.Y).weights_)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("lambda1", -1.0),
            ("lambda2", np.nan),
            ("sweeps", 0),
            ("gradient", "true"),
            ("detection_threshold", 2),
        ],
    )
    def test_invalid_parameters_are_rejected(self, name, value):
        with pytest.raises(ValueError, match=name):
            MuENL(**{name: value}).fit(self.X, self.Y)


class TestLabelledStream:
    def test_named_label_may_appear_late(self):
        X, Y, _ = blobs(0, 300, 3)
        more, known, is_new = blobs(1, 120, 4)
        model = MuENL().partial_fit(X, Y)
        model.partial_fit(more, np.column_stack([known, is_new]))
        test, truth, new = blobs(2, 300, 4)
        assert np.array_equal(model.predict(test), np.column_stack([truth, new]))

    def test_single_rows_with_named_labels_are_learned(self):
        X, Y, _ = blobs(0, 60, 3)
        model = MuENL(sweeps=5)
        for x, y in zip(X, Y, strict=True):
            model.partial_fit(x[None], [set(np.flatnonzero(y))])
        assert model.classes_.tolist() == ([0, 1] if Y[0, 0] else [1, 0])
        assert f1_score(Y, model.predict(X)[:, np.argsort(model.classes_)], average="micro") > 0.95

    def test_pool_is_an_even_sample_of_all_rows(self):
        X, Y, _ = blobs(0, 400, 3)
        model = MuENL(sweeps=1, steps=1, pool_size=100)
        for start in range(0, 400, 50):
            model.partial_fit(X[start : start + 50], Y[start : start + 50])
        places = [np.flatnonzero((row == X).all(axis=1))[0] for row in model._pool]
        assert len(set(places)) == 100
        assert 15 < np.count_nonzero(np.array(places) < 100) < 35
        assert np.array_equal(model._pool_labels, Y[places])


class TestUnlabelledStream:
    X, Y, _ = blobs(0, 400, 3)

    @pytest.mark.parametrize("seed", range(3))
    def test_emerging_label_is_detected_and_learned(self, seed):
        model = MuENL(random_state=seed).fit(self.X, self.Y)
        stream, _, is_new = blobs(seed + 10, 400, 4)
        seen = model.observe(stream)
        assert len(model.classes_) >= 3
        before = np.flatnonzero(seen.labels[:, 2])[0]
        assert seen.is_new[:before][is_new[:before]].mean() > 0.95
        test, truth, new = blobs(seed + 20, 400, 4)
        predicted = model.predict(test)
        assert f1_score(new, predicted[:, 2]) > 0.8
        # The known labels of the new blob are the classifiers' own predictions, unchanged.
        assert np.array_equal(predicted[~new, :2], truth[~new])

    def test_wider_balls_raise_no_false_alarm(self):
        model = MuENL(radius_ratio=2.0).fit(self.X, self.Y)
        stream, _, is_new = blobs(10, 600, 4)
        seen = model.observe(stream)
        assert model.classes_.tolist() == [0, 1, 2]
        assert not seen.is_new[~is_new].any()
        full = np.flatnonzero(is_new)[49]
        assert seen.is_new[: full + 1].sum() == 50
        assert np.array_equal(seen.labels[full + 1 :, 2], is_new[full + 1 :])

    def test_known_rows_create_no_label(self):
        model = MuENL(radius_ratio=2.0).fit(self.X, self.Y)
        seen = model.observe(blobs(3, 300, 3)[0])
        assert not seen.is_new.any()
        assert seen.labels.shape == (300, 2)
        assert model._buffer == []

    def test_observing_in_portions_gives_the_same_labels(self):
        stream, _, _ = blobs(11, 300, 4)
        whole, pieces = (MuENL(sweeps=5).fit(self.X, self.Y) for _ in range(2))
        at_once = whole.observe(stream)
        parts = [pieces.observe(part) for part in np.array_split(stream, [1, 40, 41, 200])]
        assert np.array_equal(np.concatenate([part.is_new for part in parts]), at_once.is_new)
        for part, rows in zip(parts, np.array_split(at_once.labels, [1, 40, 41, 200]), strict=True):
            width = part.labels.shape[1]
            assert np.array_equal(part.labels, rows[:, :width])
            assert not rows[:, width:].any()
        assert np.array_equal(whole.weights_, pieces.weights_)

    def test_new_labels_get_names_if_known_labels_have_names(self):
        names = [{name for name, has in zip("ab", row, strict=True) if has} for row in self.Y]
        model = MuENL(sweeps=5, buffer_size=20, radius_ratio=2.0).fit(self.X, names)
        stream, _, is_new = blobs(12, 100, 4)
        model.observe(stream[is_new][:20])
        model.observe(np.full((20, 6), -3.0))
        assert model.classes_.tolist()[2:] == ["new label 1", "new label 2"]

    def test_true_labels_may_arrive_while_rows_wait(self):
        model = MuENL(sweeps=5, buffer_size=20, radius_ratio=2.0).fit(self.X, self.Y)
        stream, known, is_new = blobs(13, 200, 4)
        model.observe(stream[is_new][:10])
        model.partial_fit(self.X[:50], np.column_stack([self.Y[:50], self.X[:50, 0] > 0.5]))
        model.observe(stream[is_new][10:20])
        assert len(model.classes_) == 4
        assert f1_score(is_new, model.predict(stream)[:, 3]) > 0.8
        assert np.array_equal(model.predict(stream[~is_new])[:, :2], known[~is_new])

    def test_emerging_label_in_sparse_rows_is_learned(self):
        model = MuENL(sweeps=5, radius_ratio=2.0).fit(sparse.csr_array(self.X), self.Y)
        stream, _, is_new = blobs(10, 600, 4)
        seen = model.observe(sparse.csr_array(stream))
        assert f1_score(is_new[400:], seen.labels[400:, 2]) > 0.8

    def test_model_pickled_within_a_stream_continues_as_the_original(self):
        stream, _, _ = blobs(14, 300, 4)
        model = MuENL(sweeps=5).fit(self.X, self.Y)
        model.observe(stream[:30])
        copy = pickle.loads(pickle.dumps(model))
        assert np.array_equal(model.observe(stream[30:]).labels, copy.observe(stream[30:]).labels)

    def test_one_class_per_row_supports_no_new_label(self):
        model = MuENL(sweeps=1).fit(self.X, self.Y[:, 0])
        with pytest.raises(ValueError, match="1-D y"):
            model.observe(self.X)


@pytest.mark.data
class TestEmotions:
    @pytest.mark.parametrize(
        ("options", "figures"),
        [
            ({"lambda1": 1e-6, "lambda2": 1e-6}, (0.1954, 0.2798, 0.1620, 0.8014)),
            ({}, (0.2027, 0.2427, 0.1527, 0.8116)),
            ({"gradient": "exact"}, (0.2019, 0.2461, 0.1519, 0.8119)),
        ],
    )
    def test_measures_equal_the_expected_figures(self, dataset, mean_over_ten_folds, options, figures):
        found = mean_over_ten_folds(MuENL(random_state=1, **options), dataset("emotions").scaled())
        names = ("hamming_loss", "exact_match", "ranking_loss", "average_precision")
        assert [found[name] for name in names] == pytest.approx(figures, abs=1e-3)

    def test_novelty_of_training_rows_is_below_that_of_other_rows(self, dataset):
        X, Y = dataset("emotions").scaled()
        model = MuENL(n_trees=50).fit(X[:400], Y[:400])
        assert 0.05 < model.novelty(X[:400]).mean() < model.novelty(X[400:]).mean() < 0.3

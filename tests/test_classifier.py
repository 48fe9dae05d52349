"""The scikit-learn interface of MLCA."""

import pickle
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mlca import MLCA
from tests.learner.model_comparison import assert_same_state

pytestmark = pytest.mark.traced


@pytest.fixture
def stream():
    rng = np.random.default_rng(7)
    X = rng.normal(0, 1, (300, 4)) + np.repeat(np.arange(3), 100)[:, None] * 2
    Y = np.column_stack([X[:, 0] > 1, X[:, 1] > 3, X[:, 2] + X[:, 3] > 4]).astype(int)
    return X, Y


@parametrize_with_checks([MLCA()])
def test_default_classifier_passes_scikit_learn_checks(estimator, check):
    """Other options are checked in tests/contract, with parameters for small data."""
    check(estimator)


class TestInScikitLearn:
    def test_pipeline_grid_search_and_cross_validation_accept_the_classifier(self, stream):
        X, Y = stream
        folds = KFold(3, shuffle=True, random_state=0)
        pipeline = make_pipeline(StandardScaler(), MLCA())
        search = GridSearchCV(pipeline, {"mlca__vigilance": [0.01, 0.3]}, cv=folds)
        assert search.fit(X, Y).best_score_ > 0.5
        probabilities = cross_val_predict(MLCA(), X, Y, cv=folds, method="predict_proba")
        assert probabilities.shape == Y.shape

    def test_predictions_by_joblib_equal_those_of_one_process(self, stream):
        X, Y = stream
        model = MLCA().fit(X, Y)
        parts = Parallel(n_jobs=2)(delayed(model.predict_proba)(part) for part in np.array_split(X, 3))
        np.testing.assert_array_equal(np.concatenate(parts), model.predict_proba(X))

    def test_rows_and_models_may_be_read_only(self, stream, tmp_path):
        X, Y = stream
        model = MLCA().fit(X, Y)
        expected = model.predict_proba(X)
        joblib.dump((model, X), tmp_path / "both")
        read_only, rows = joblib.load(tmp_path / "both", mmap_mode="r")
        assert not rows.flags.writeable
        np.testing.assert_array_equal(read_only.predict_proba(rows), expected)
        assert_same_state(model.partial_fit(X, Y), read_only.partial_fit(rows, Y))

    def test_threads_may_predict_at_the_same_time(self, stream):
        X, Y = stream
        model = MLCA(n_jobs=2).fit(X, Y)
        parts = Parallel(n_jobs=4, backend="threading")(delayed(model.predict_proba)(X) for _ in range(8))
        for part in parts:
            np.testing.assert_array_equal(part, parts[0])

    def test_clone_has_the_parameters_and_not_the_model(self, stream):
        X, Y = stream
        model = MLCA(vigilance=0.2, attributes="clustered").fit(X, Y)
        assert clone(model).get_params() == model.get_params()
        assert not hasattr(clone(model), "labels_")

    @pytest.mark.parametrize("n", [30, 300])
    def test_pickled_model_continues_training_as_the_original(self, stream, n):
        X, Y = stream
        model = MLCA(attributes="clustered").fit(X[:n], Y[:n])
        twin = pickle.loads(pickle.dumps(model))
        assert_same_state(model.partial_fit(X, Y), twin.partial_fit(X, Y))

    def test_random_generators_are_accepted_as_seeds(self, stream):
        X, Y = stream
        make = [lambda: MLCA(attributes="clustered", random_state=np.random.RandomState(3))] * 2
        first, second = (maker().fit(X, Y) for maker in make)
        assert_same_state(first, second)
        MLCA(attributes="clustered", random_state=None).fit(X, Y)


class TestLabels:
    def test_indicator_matrix_grows_to_the_right(self, stream):
        X, Y = stream
        model = MLCA().partial_fit(X[:100], Y[:100, :1]).partial_fit(X[100:], Y[100:])
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.predict(X).shape == Y.shape

    def test_names_grow_in_order_of_appearance(self, stream):
        X, _ = stream
        model = MLCA(vigilance=0.1, decision="calibrated")
        model.partial_fit(X[:100], [{"first"}] * 100)
        model.partial_fit(X[200:], [("second", "first")] * 50 + [["third"]] * 50)
        assert model.classes_.tolist() == ["first", "second", "third"]
        assert model.predict_labels(X[:1]) == [{"first"}]

    def test_names_and_indicator_give_the_same_model(self, stream):
        X, Y = stream
        named = [[f"label {j}" for j in np.flatnonzero(row)] for row in Y]
        by_name = MLCA().partial_fit(X, named, classes=["label 0", "label 1", "label 2"])
        assert_same_state(MLCA().fit(X, Y), by_name)

    def test_sparse_indicator_and_frame_give_the_same_model(self, stream):
        X, Y = stream
        plain = MLCA().fit(X, Y)
        assert_same_state(plain, MLCA().fit(X, sparse.csr_array(Y)))
        frame = MLCA().fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]))
        assert_same_state(plain, frame)
        assert frame.classes_.tolist() == ["a", "b", "c"]

    def test_frame_columns_are_matched_by_name(self, stream):
        X, Y = stream
        frame = pd.DataFrame(Y, columns=["a", "b", "c"])
        straight = MLCA().partial_fit(X, frame).partial_fit(X, frame)
        turned = MLCA().partial_fit(X, frame).partial_fit(X, frame[["c", "a", "b"]])
        assert_same_state(straight, turned)

    def test_one_class_per_row_is_learned_and_predicted(self, stream):
        X, Y = stream
        y = np.array(["low", "high"])[Y[:, 0]]
        model = MLCA().fit(X, y)
        assert model.classes_.tolist() == ["high", "low"]
        assert (model.predict(X) == y).mean() > 0.9
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)

    def test_rows_without_labels_and_labels_never_true_are_learned(self, stream):
        X, Y = stream
        Y = np.column_stack([Y, np.zeros(len(Y), dtype=int)])
        Y[::3] = 0
        model = MLCA().fit(X, Y)
        probabilities = model.predict_proba(X)
        assert ((probabilities > 0) & (probabilities < 1)).all()
        assert not model.predict(X)[:, 3].any()

    def test_data_without_labels_give_empty_predictions(self, stream):
        X, _ = stream
        model = MLCA().fit(X, [()] * len(X))
        assert model.predict_proba(X[:3]).shape == (3, 0)
        assert model.predict_labels(X[:2]) == [set(), set()]


class TestFeatures:
    def test_names_are_stored_and_checked(self, stream):
        X, Y = stream
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = MLCA().fit(frame, Y)
        assert model.feature_names_in_.tolist() == list("abcd")
        np.testing.assert_array_equal(model.predict_proba(frame[list("dcba")]), model.predict_proba(frame))
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"a": "z"}))

    def test_nodes_of_sparse_rows_stay_sparse(self, stream):
        X, Y = stream
        X = np.where(X > 1, X, 0)
        model = MLCA(vigilance=0.3).fit(sparse.csr_matrix(X), Y)
        assert isinstance(model.prototypes_, sparse.csr_array)
        assert model.prototypes_.nnz < X.size
        assert_same_state(model, MLCA(vigilance=0.3).fit(X, Y))

    def test_rows_may_change_from_dense_to_sparse(self, stream):
        X, Y = stream
        X = np.where(X > 1, X, 0)
        mixed = MLCA().partial_fit(sparse.csr_array(X[:100]), Y[:100]).partial_fit(X[100:], Y[100:])
        assert_same_state(mixed, MLCA().fit(X, Y))


class TestExplain:
    @pytest.mark.parametrize("vote", ["counts", "frequencies"])
    @pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
    def test_posterior_can_be_recomputed_by_hand(self, stream, vote, attributes):
        X, Y = stream
        chosen = {"vigilance": 0.3, "vote": vote, "attributes": attributes, "smoothing": 0.7}
        model = MLCA(similarity="correntropy", decision="bayes", **chosen).fit(X, Y)
        for x in X[::40]:
            explained = model.explain(x)
            n = len(explained.nodes)
            if vote == "counts":
                votes = explained.label_counts.sum(axis=0)
                bins = np.floor(n * votes / max(votes.max(), 1) + 0.5)
            else:
                votes = (explained.label_counts / explained.counts[:, None]).sum(axis=0)
                bins = np.floor(votes + 0.5)
            np.testing.assert_allclose(explained.votes, votes)
            np.testing.assert_array_equal(explained.bins, bins)
            prior = (0.7 + model.label_counts_.sum(axis=0)) / (2 * 0.7 + model.n_seen_)
            np.testing.assert_allclose(explained.prior, prior)
            yes, no = explained.likelihood_with * prior, explained.likelihood_without * (1 - prior)
            np.testing.assert_allclose(explained.posterior, yes / (yes + no), rtol=1e-12)
            np.testing.assert_array_equal(explained.posterior, model.predict_proba(x[None])[0])
            assert explained.predicted == model.predict_labels(x[None])[0]
            assert (np.diff(explained.distances) >= 0).all()
            np.testing.assert_array_equal(explained.counts, model.counts_[explained.nodes])
            np.testing.assert_array_equal(explained.label_counts, model.label_counts_.toarray()[explained.nodes])

    @pytest.mark.parametrize("similarity", ["learned", "correntropy"])
    @pytest.mark.parametrize("streaming", [{}, {"recency": True}, {"drift": "follow"}])
    def test_the_calibrated_probability_can_be_recomputed_by_hand(self, stream, similarity, streaming):
        X, Y = stream
        model = MLCA(vigilance=0.3, similarity=similarity, decision="calibrated", **streaming).fit(X, Y)
        for x in X[::40]:
            explained = model.explain(x)
            slots = np.column_stack((explained.unlabelled, explained.label_counts)) / explained.counts[:, None]
            np.testing.assert_allclose(
                explained.shares, explained.weights @ slots / explained.weights.sum(), rtol=1e-9, atol=1e-12
            )
            nodes = (explained.shares + explained.calibrated) / 2
            if len(explained.background):
                nodes = 0.9 * nodes + 0.1 * explained.background
            assert bool(len(explained.background)) == (similarity == "learned")
            np.testing.assert_allclose(explained.opinions[:, 0], nodes, rtol=1e-9)
            np.testing.assert_allclose(explained.expert_weights.sum(), 1, rtol=1e-9)
            mixed = explained.opinions @ explained.expert_weights
            np.testing.assert_allclose([explained.none, *explained.posterior], mixed, rtol=1e-9)
            assert len(explained.experts) == len(explained.expert_weights) == explained.opinions.shape[1]
            np.testing.assert_array_equal(explained.posterior, model.predict_proba(x[None])[0])
            assert explained.predicted == model.predict_labels(x[None])[0]
            assert explained.novelty == model.novelty(x[None])[0]

    @pytest.mark.parametrize("options", [{}, {"recency": True}, {"drift": "follow"}, {"objective": "f1"}])
    def test_contributions_add_up_to_the_mixed_probability(self, stream, options):
        X, Y = stream
        model = MLCA(vigilance=0.3, **options).fit(X, Y)
        for x in X[::40]:
            explained = model.explain(x)
            logits = np.zeros(4)
            for contribution in explained.contributions.T:
                logits = logits + contribution
            np.testing.assert_array_equal(explained.logits, logits)
            np.testing.assert_allclose(1 / (1 + np.exp(-logits)), [explained.none, *explained.posterior], rtol=1e-12)
            np.testing.assert_array_equal(explained.posterior, model.predict_proba(x[None])[0])
            assert explained.predicted == model.predict_labels(x[None])[0]
            assert (
                explained.contributions.shape == (4, len(explained.inputs)) == (4, 8 if options.get("recency") else 4)
            )
            assert "Evidence for " in str(explained)

    def test_linear_terms_name_features_and_add_up(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=400), rng.integers(0, 3, 400), rng.normal(size=400)])
        X[::7, 2] = np.nan
        y = [[name for name, has in (("a", row[1] == 2), ("b", row[0] > 0)) if has] for row in X]
        model = MLCA(categorical_features=[1], window=20).fit(X, y)
        explained = model.explain(X[0])
        assert {name.split(" = ")[0] for name, _ in explained.linear["a"]} == {"x0", "x1", "x2 missing", "bias"}
        state = model._learner.state()
        weight, n, n_a = state["mixer.weights"][1], len(X), sum("a" in names for names in y)
        prior = np.log((n_a + 1) / (n + 1 - n_a))
        of_prior = -weight * n_a / (n_a + 20) * prior
        place = model.classes_.tolist().index("a") + 1
        together = sum(added for _, added in explained.linear["a"]) + of_prior
        np.testing.assert_allclose(explained.contributions[place, 1], together, rtol=1e-9)

    def test_classes_have_the_probability_that_predict_proba_returns(self, stream):
        X, Y = stream
        for decision in ("mixed", "calibrated", "bayes"):
            model = MLCA(decision=decision).fit(X, Y[:, 0])
            for x in X[::60]:
                explained = model.explain(x)
                np.testing.assert_array_equal(explained.posterior, model.predict_proba(x[None])[0])
                assert explained.predicted == set(model.predict(x[None]).tolist())

    def test_distance_of_the_common_bandwidth_is_a_metric(self, stream):
        X, Y = stream
        model = MLCA(vigilance=0.3, similarity="correntropy", decision="calibrated").fit(X, Y)
        explained = model.explain(X[5])
        s = np.median(model.bandwidths_)
        kernel = np.exp(-((X[5] - model.prototypes_[explained.nodes]) ** 2) / (2 * s * s))
        np.testing.assert_allclose(explained.distances, np.sqrt((1 - kernel).mean(axis=1)), atol=1e-12)

    def test_explanation_prints_as_tables(self, stream):
        X, Y = stream
        for model, words in ((MLCA(), ("observed", "Novelty")), (MLCA.published(), ("prior", "posterior"))):
            text = str(model.fit(X, Y).explain(X[0]))
            assert all(word in text for word in ("distance", *words))

    def test_sparse_row_is_explained_by_a_single_node(self, stream):
        X, Y = stream
        model = MLCA().fit(sparse.csr_array(X[:1]), Y[:1])
        explained = model.explain(sparse.csr_array(X[:1]))
        assert explained.nodes.tolist() == [0]
        np.testing.assert_array_equal(explained.posterior, model.predict_proba(X[:1])[0])

    @pytest.mark.parametrize("decision", ["calibrated", "bayes"])
    def test_long_and_many_names_stay_readable(self, stream, decision):
        X, _ = stream
        names = ["", " ", "x" * 1000, *(f"label {i}" for i in range(400))]
        model = MLCA(decision=decision).fit(X, [{names[i % len(names)]} for i in range(len(X))])
        explained = str(model.explain(X[0])).splitlines()
        assert len(explained) < 70 and max(map(len, explained)) < 140
        assert f"... and {len(model.classes_) + (decision == 'calibrated') - 30} more, less likely" in explained
        assert any(line.startswith("''") for line in explained) or any(line.endswith("'' 1") for line in explained)

    def test_all_predicted_labels_are_shown(self, stream):
        X, _ = stream
        names = [f"label {i:02}" for i in range(45)]
        explanation = MLCA().fit(X, [names] * len(X)).explain(X[0])
        assert len(explanation.predicted) == 45 and all(f"\n{name}  " in str(explanation) for name in names)

    def test_number_of_hundreds_of_digits_is_rejected(self, stream):
        with pytest.raises(ValueError, match=r"x is not a row of numbers .*too large"):
            MLCA().fit(*stream).explain([1, 2, 3, 10**400])

    def test_several_rows_are_rejected(self, stream):
        X, Y = stream
        with pytest.raises(ValueError, match="one row, got 2"):
            MLCA().fit(X, Y).explain(X[:2])


def bad_rows(X, Y, last):
    X = X.copy()
    X[-1, -1] = last
    return X, Y


BAD_BATCHES = {
    "infinity": (lambda X, Y: bad_rows(X, Y, np.inf), "infinity"),
    "infinity in sparse rows": (
        lambda X, Y: (sparse.csr_array(bad_rows(X, Y, np.inf)[0]), Y),
        "infinity .*row 999, column 3 of X holds inf; write NaN for a missing value",
    ),
    "overflow": (lambda X, Y: bad_rows(X, Y, -1e200), "row 999, column 3 of X holds -1e.200, .* overflow; rescale"),
    "overflow in sparse rows": (
        lambda X, Y: (sparse.csr_array(bad_rows(X, Y, 1e200)[0]), Y),
        "row 999, column 3 of X holds 1e.200, .* overflow; rescale",
    ),
    "a number of hundreds of digits": (
        lambda X, Y: ([*X.tolist()[:-1], [1, -(10**400), 2, 3]], Y),
        "row 999, column 1 of X holds a whole number of 1329 bits, .* leave the row out",
    ),
    "columns": (lambda X, Y: (X[:, :3], Y), "3 features"),
    "length": (lambda X, Y: (X, Y[:-1]), "X has 1000 rows but y has 999"),
    "not bits": (lambda X, Y: (X, Y + 1), "row 11, column 0 holds"),
    "narrower": (lambda X, Y: (X, Y[:, :2]), "2 columns, but 3 labels are known"),
    "empty": (lambda X, Y: (X[:0], Y[:0]), "0 sample"),
    "empty sparse": (lambda X, Y: (sparse.csr_array(X[:0]), Y[:0]), "0 sample"),
    "unhashable": (
        lambda X, Y: (X, [[["nested"]]] * len(X)),
        r"row 0 of y names a label .* not hashable|label names per row",
    ),
    "1-D": (lambda X, Y: (X, Y[:, 0]), "1-D"),
    "no labels": (lambda X, Y: (X, None), "requires y"),
    "generator": (lambda X, Y: ((row for row in X), Y), r"X is a generator, .*np\.array\(list\(X\)\)"),
    "words in a list": (
        lambda X, Y: ([*X.tolist()[:-1], [1.0, "2.5", "word", 3.0]], Y),
        "row 999, column 2 of X holds 'word'; .*DataFrame",
    ),
    "words in an array": (
        lambda X, Y: (np.vstack([X[1:].astype(object), [[1.0, 2.0, 3.0, "word"]]]), Y),
        "row 999, column 3 of X holds 'word'; .*DataFrame",
    ),
    "no row": (lambda X, Y: (X, [{0}] * 999 + [7]), r"row 999 of y is 7|label names per row"),
}


class TestBadInput:
    @pytest.mark.filterwarnings("error")
    def test_huge_numbers_of_both_signs_are_rejected_without_a_warning(self):
        X = np.repeat([1e308, -1e308], 200)[:, None]
        with pytest.raises(ValueError, match=r"row 0, column 0 of X holds 1e.308, .* rescale"):
            MLCA().fit(X, np.zeros(400, int))

    @pytest.mark.parametrize("fault", BAD_BATCHES)
    @pytest.mark.parametrize("learned", [40, 300])
    def test_bad_batch_is_rejected_and_changes_nothing(self, stream, fault, learned):
        X, Y = stream
        model, untouched = (MLCA().fit(X[:learned], Y[:learned]) for _ in range(2))
        spoil, message = BAD_BATCHES[fault]
        batch = spoil(np.tile(X, (4, 1))[:1000], np.tile(Y, (4, 1))[:1000])
        for method in (
            (model.partial_fit, model.fit) if fault not in ("columns", "narrower", "1-D") else (model.partial_fit,)
        ):
            with pytest.raises(ValueError, match=message):
                method(*batch)
        assert_same_state(model, untouched)
        assert model.labels_ == untouched.labels_
        assert_same_state(model.partial_fit(X, Y), untouched.partial_fit(X, Y))

    @pytest.mark.parametrize(
        ("parameter", "value", "message"),
        [
            ("vigilance", 1.0, "below 1"),
            ("vigilance", -0.1, "at least 0"),
            ("vigilance", "high", "finite number"),
            ("vigilance", float("nan"), "finite number"),
            ("vigilance", 10**400, "finite number"),
            ("vigilance", np.array([0.1, 0.2]), "finite number"),
            ("rule", np.array(["text", "text"]), "'published', 'released', 'text'"),
            ("n_neighbors", 1, "at least 2"),
            ("n_neighbors", 2.5, "whole number"),
            ("window", 1, "at least 2"),
            ("smoothing", 0, "above 0"),
            ("attributes", "grouped", "'common', 'individual', 'clustered'"),
            ("rule", "mine", "'published', 'released', 'text'"),
            ("vote", "loud", "'counts', 'frequencies'"),
            ("epochs", 0, "at least 1"),
            ("n_jobs", 0, "-1 for one per core, not 0"),
            ("n_jobs", "two", "whole number"),
            ("n_jobs", 5000, "at most 1024"),
            ("n_jobs", -5000, "at least -1024"),
            ("max_nodes", 2**63, "at most 9223372036854775807"),
            ("random_state", -1, "at least 0"),
            ("random_state", 2**63, "at most 9223372036854775807"),
            ("random_state", True, "whole number"),
        ],
    )
    def test_bad_parameters_are_rejected(self, stream, parameter, value, message):
        with pytest.raises(ValueError, match=f"{parameter} must be .*{message}"):
            MLCA(**{parameter: value}).fit(*stream)

    @pytest.mark.parametrize(("n_jobs", "message"), [("two", "whole number"), (0, "-1 for one per core, not 0")])
    def test_invalid_n_jobs_after_training_is_rejected(self, stream, n_jobs, message):
        with pytest.raises(ValueError, match=f"n_jobs must be .*{message}"):
            MLCA().fit(*stream).set_params(n_jobs=n_jobs).predict(stream[0])

    def test_parameters_cannot_change_during_training(self, stream):
        model = MLCA().fit(*stream).set_params(vigilance=0.5)
        with pytest.raises(ValueError, match=r"vigilance was 0\.01 .* is 0\.5"):
            model.partial_fit(*stream)
        assert model.fit(*stream).n_nodes_ < 300

    @pytest.mark.parametrize("third", [Fraction(1, 3), np.longdouble(1) / 3])
    def test_training_continues_with_a_rounded_parameter(self, stream, third):
        assert MLCA(vigilance=third, smoothing=third, decision="bayes").fit(*stream).partial_fit(*stream).n_seen_ == 600

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_labels", "explain"])
    def test_unfitted_model_predicts_nothing(self, stream, method):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(MLCA(), method)(stream[0][:1])

    @pytest.mark.parametrize("attribute", ["n_nodes_", "prototypes_", "counts_", "bandwidths_"])
    def test_unfitted_model_has_no_attributes(self, attribute):
        assert not hasattr(MLCA(), attribute)

    def test_arguments_are_not_modified(self, stream):
        X, Y = stream
        rows = sparse.csr_array(X)
        copies = X.copy(), Y.copy(), rows.copy()
        MLCA(vigilance=0.4).fit(X, Y).predict(X)
        MLCA(vigilance=0.4).fit(rows, Y).predict(rows)
        np.testing.assert_array_equal(X, copies[0])
        np.testing.assert_array_equal(Y, copies[1])
        np.testing.assert_array_equal(rows.data, copies[2].data)


def test_memory_for_label_counts_follows_the_labels_that_occur():
    rng = np.random.default_rng(0)
    n, q = 15_000, 4_000
    X = rng.normal(0, 1, (n, 2)) * 100
    labels = [rng.choice(q, 5, replace=False).tolist() for _ in range(n)]
    before = psutil.Process().memory_info().rss
    model = MLCA(vigilance=0.01).partial_fit(X, labels, classes=range(q))
    assert model.n_nodes_ > 10_000
    assert psutil.Process().memory_info().rss - before < 150e6  # a dense table of nodes and labels would need 400 MB


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"vigilance": "high"}, "vigilance must be a finite number, not 'high'; \"auto\" estimates it"),
        ({"vigilance": 3}, 'vigilance must be at least 0 and below 1, not 3; "auto" estimates it'),
        ({"max_nodes": 0}, r"max_nodes must be at least 2, not 0; leave it out to keep all nodes"),
    ],
)
def test_invalid_parameters_are_rejected_with_what_is_expected(parameters, message):
    with pytest.raises(ValueError, match=message):
        MLCA(**parameters).fit([[0.0], [1.0]], [["a"], ["b"]])


def test_positional_parameters_are_rejected_with_the_correct_call():
    with pytest.raises(
        TypeError, match=r"MLCA takes its parameters by name, but got 0\.3 .* write for instance MLCA\(vigilance=0\.1\)"
    ):
        MLCA(0.3)


@pytest.mark.parametrize(
    ("old", "new"),
    [("weights_", "prototypes_"), ("attribute_weights_", "feature_weights_"), ("background_", "background_coef_")],
)
def test_renamed_attribute_warns_and_returns_the_new_one(old, new):
    model = MLCA().fit(np.random.default_rng(0).normal(size=(60, 2)), [["a"], ["b"]] * 30)
    with pytest.warns(FutureWarning, match=f"{old} was renamed to {new}"):
        before = getattr(model, old)
    after = getattr(model, new)
    assert (before != after).sum() == 0


def test_judge_warns_and_returns_predict_details():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = MLCA().fit(X, [["a"], ["b"]] * 30)
    with pytest.warns(FutureWarning, match="judge was renamed to predict_details"):
        answers = model.judge(X)
    np.testing.assert_array_equal(answers.probabilities, model.predict_proba(X))

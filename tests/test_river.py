"""MLCA for River: dicts in and out, with the same model as `partial_fit`."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from river import checks, datasets, evaluate, metrics, preprocessing

from mlca import MLCA, load
from mlca.river import MLCAClassifier
from mlca.targets import LabelSet
from tests.learner.algorithm_options import any_options, paper_options
from tests.learner.model_comparison import assert_same_state, state
from tests.learner.random_streams import streams

pytestmark = pytest.mark.traced

FEW = settings(max_examples=40, deadline=None)


def as_rows(X, Y):
    return [
        ({f"x{j}": value for j, value in enumerate(x)}, {f"y{j}": bool(value) for j, value in enumerate(y)})
        for x, y in zip(X.tolist(), Y.tolist(), strict=True)
    ]


def learned(rows, model=None, **chosen):
    model = MLCAClassifier(**chosen) if model is None else model
    for x, y in rows:
        model.learn_one(x, y)
    return model


def inside(model):
    """Return the MLCA inside a River model."""
    shell = MLCA()
    shell._learner, shell.labels_ = model._learner, LabelSet(tuple(model._labels))
    return shell


def rivers_own_checks():
    """List River's checks; its bundled Yeast dataset replaces the one that they would download."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "Music", datasets.Yeast)
        return list(checks.yield_checks(MLCAClassifier()))


@pytest.mark.races
def test_threads_that_learn_take_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    model, rows = MLCAClassifier(window=10, decision="bayes"), 100

    def teach(name):
        for row in range(rows):
            model.learn_one({"x": float(row)}, {f"{name} {row}": True})

    threads = [threading.Thread(target=teach, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sys.setswitchinterval(before)
    assert model._learner.n_seen == 3 * rows
    assert sorted(model._labels.values()) == list(range(3 * rows))


@pytest.mark.parametrize("check", rivers_own_checks(), ids=lambda check: check.__name__)
def test_classifier_passes_rivers_own_checks(check):
    check(MLCAClassifier())


@FEW
@given(streams(max_rows=130), any_options())
def test_row_equals_partial_fit_on_the_same_row(stream, chosen):
    X, Y = stream
    rows = as_rows(X, Y)
    model, expected = MLCAClassifier(**chosen), MLCA(**chosen)
    names = [f"y{j}" for j in range(Y.shape[1])]
    for j, (x, y) in enumerate(rows):
        model.learn_one(x, y)
        expected.partial_fit(X[j : j + 1], Y[j : j + 1], classes=names)
        if j % 17 == 0:
            of_true = [chances[True] for chances in model.predict_proba_one(x).values()]
            assert of_true == expected.predict_proba(X[j : j + 1])[0].tolist()
    assert_same_state(inside(model), expected)
    for x, row in zip(X[:9], rows, strict=False):
        assert list(model.predict_one(row[0]).values()) == expected.predict([x])[0].astype(bool).tolist()


@pytest.mark.parametrize("objective", ["exact", "f1", "hamming"])
def test_objectives_thresholds_and_likeliest_labels_are_those_of_the_classifier(objective):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = (X + rng.normal(0, 0.7, X.shape) > 0.4).astype(int)
    rows, names = as_rows(X, Y), ["y0", "y1", "y2"]
    model = learned(rows, objective=objective)
    expected = (
        MLCA(objective=objective, recency=True).partial_fit(X[:1], Y[:1], classes=names).partial_fit(X[1:], Y[1:])
    )
    frame = pd.DataFrame([x for x, _ in rows])
    for threshold in (None, 0.3, {"y1": 0.1}):
        sets = expected.predict(X, threshold=threshold).astype(bool)
        assert [list(model.predict_one(x, threshold).values()) for x, _ in rows[:9]] == sets[:9].tolist()
        np.testing.assert_array_equal(model.predict_many(frame, threshold), sets)
    assert [model.predict_top_one(x, 2) for x, _ in rows[:9]] == expected.predict_top(X[:9], 2)
    with pytest.raises(ValueError, match="the label 'y9', which the model does not know"):
        model.predict_one(rows[0][0], threshold={"y9": 0.1})
    assert MLCAClassifier().predict_top_one({"x0": 1.0}, 3) == []


@FEW
@given(streams(max_rows=90), paper_options(), st.randoms(use_true_random=False))
def test_order_of_features_and_zeros_left_out_do_not_matter(stream, chosen, random):
    rows = as_rows(*stream)
    thinned = []
    for x, y in rows[1:]:
        features = [name for name, value in x.items() if value != 0 or random.random() < 0.5]
        random.shuffle(features)
        thinned.append(({name: x[name] for name in features}, y))
    assert_same_state(inside(learned(rows, **chosen)), inside(learned([rows[0], *thinned], **chosen)))


@FEW
@given(streams(max_rows=90), paper_options(), st.data())
def test_features_within_the_first_window_equal_known_ones(stream, chosen, data):
    X, Y = stream
    last = min(chosen["window"], len(X)) - 1
    births = sorted(data.draw(st.lists(st.integers(0, last), min_size=X.shape[1], max_size=X.shape[1])))
    for j, birth in enumerate(births):
        X[:birth, j] = 0.0
    rows = [
        ({name: value for (name, value), birth in zip(x.items(), births, strict=True) if birth <= number}, y)
        for number, (x, y) in enumerate(as_rows(X, Y))
    ]
    assert_same_state(inside(learned(rows, **chosen)), inside(learned(as_rows(X, Y), **chosen)))


@FEW
@given(streams(max_rows=90), paper_options())
def test_later_feature_is_a_column_of_zeros_before(stream, chosen):
    X, Y = stream
    assume(len(X) >= 2)
    chosen["window"] = min(chosen["window"], len(X))
    rows = as_rows(X, Y)
    model = learned(rows, **chosen)
    before, d = state(inside(model)), X.shape[1]
    queries = [x for x, _ in rows[:5]]
    expected = [model.predict_proba_one(x) for x in queries]
    model._add_features({"late": 1.0, "later": 2.0})
    after = state(inside(model))
    np.testing.assert_array_equal(after["weights"], np.pad(before["weights"], ((0, 0), (0, 2))))
    for name in ("counts", "label_counts", "with", "without", "n", "centres"):
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    if chosen["attributes"] == "common":
        np.testing.assert_array_equal(after["bandwidths"], before["bandwidths"])
    else:
        np.testing.assert_array_equal(after["bandwidths"][:, :d], before["bandwidths"])
        np.testing.assert_array_equal(after["bandwidths"][:, d:], constant_bandwidth(chosen["window"], d + 2))
    if chosen["attributes"] != "clustered":  # with clustered features, zeros belong to a group, and group sizes matter
        assert [model.predict_proba_one(x) for x in queries] == expected
        assert [model.predict_proba_one({**x, "late": 3.0}) for x in queries] == expected
    learned([({**x, "late": 1.0}, y) for x, y in rows[:2]], model)
    assert model._learner.n_seen == len(X) + 2


def constant_bandwidth(m, d):
    return (4.0 / (2.0 + d)) ** (1.0 / (4.0 + d)) * 1e-6 * float(m) ** (-1.0 / (4.0 + d))


def test_words_make_sparse_nodes_and_change_no_bit(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(150):
        words = (rng.pareto(0.7, size=15) * 3).astype(int)
        rows.append(
            (
                {f"w{word}": int(n) for word, n in zip(*np.unique(words, return_counts=True), strict=True)},
                {"even": bool(words[0] % 2 == 0), "one": bool(1 in words)},
            )
        )
    model = learned(rows)
    assert model._learner.sparse_nodes
    monkeypatch.setattr("mlca.learner.widening._WIDE", 10**9)
    dense = learned(rows)
    assert not dense._learner.sparse_nodes
    for x, _ in rows[:20]:
        assert model.predict_proba_one(x) == dense.predict_proba_one(x)
        assert model.novelty_one(x) == dense.novelty_one(x)
    assert str(model.explain_one(rows[0][0])) == str(dense.explain_one(rows[0][0]))
    np.testing.assert_array_equal(inside(model).prototypes_.toarray(), inside(dense).prototypes_)
    model.save(tmp_path / "words.mlca")
    again = MLCAClassifier.load(tmp_path / "words.mlca")
    assert again.predict_proba_one(rows[3][0]) == model.predict_proba_one(rows[3][0])
    learned(rows[:5], again)
    learned(rows[:5], dense)
    assert again.predict_proba_one(rows[9][0]) == dense.predict_proba_one(rows[9][0])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_values_are_those_of_an_array(missing):
    X = np.random.default_rng(5).normal(size=(120, 3))
    Y = (X[:, :2] > 0).astype(int)
    X[7::7, 1] = np.nan
    rows = [({k: missing if v != v else v for k, v in x.items()}, y) for x, y in as_rows(X, Y)]
    model, expected = learned(rows), MLCA(recency=True).partial_fit(X, Y)
    assert_same_state(inside(model), expected)
    chances = [p[True] for p in model.predict_proba_one(rows[7][0]).values()]
    assert chances == expected.predict_proba(X[7:8])[0].tolist()
    frames = pd.DataFrame([x for x, _ in rows]), pd.DataFrame([y for _, y in rows])
    many = MLCAClassifier()
    many.learn_many(*frames)
    assert_same_state(inside(many), expected)
    assert many.predict_proba_many(frames[0][:9]).to_numpy().tolist() == expected.predict_proba(X[:9]).tolist()


def test_first_text_of_a_stream_of_numbers_is_predicted_before_it_is_learned():
    model, plain = MLCAClassifier(), {"wind": 3}
    for k in range(20):
        model.learn_one({"wind": k % 5}, {"calm": k % 5 < 2, "storm": k % 5 > 2})
    row = {"wind": 3, "sky": "grey", "seen": [1.0, 2.0]}
    with pytest.raises(ValueError, match="feature 'wind' is 'strong', not a number"):
        model.predict_one({"wind": "strong"})
    assert model.predict_one(row) == model.predict_one(plain)
    assert model.predict_proba_one(row) == model.predict_proba_one(plain)
    frame = pd.DataFrame([row, {**row, "sky": None}])
    pd.testing.assert_frame_equal(model.predict_many(frame), model.predict_many(frame[["wind"]]))
    np.testing.assert_array_equal(model.explain_one(row).posterior, model.explain_one(plain).posterior)
    model.learn_one(row, {"storm": True})
    assert set(model.predict_one({"wind": 1, "sky": "blue"})) == {"calm", "storm"}


def test_unknown_features_are_ignored_in_prediction():
    rows = as_rows(np.random.default_rng(0).normal(0, 1, (80, 3)), np.ones((80, 1), int))
    model = learned(rows)
    x = rows[0][0]
    assert model.predict_proba_one({**x, "unknown": 5.0}) == model.predict_proba_one(x)
    assert "unknown" not in model._features


def test_labels_may_appear_late_and_be_omitted():
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (120, 3))
    Y = np.column_stack([X[:, 0] > 0, (X[:, 1] > 0) & (np.arange(120) > 60)]).astype(int)
    rows = as_rows(X, Y)
    only_true = [(x, {name: True for name, true in y.items() if true}) for x, y in rows]
    early, late = learned(rows), learned(only_true)
    assert_same_state(inside(early), inside(late))
    assert late.predict_one(rows[0][0]) == early.predict_one(rows[0][0])


def test_label_that_is_always_false_is_known():
    model = learned([({"a": 1.0}, {"never": False}), ({"a": 2.0}, {"never": False})])
    assert model.predict_one({"a": 1.0}) == {"never": False}
    chances = model.predict_proba_one({"a": 1.0})["never"]
    assert 0 < chances[True] < 0.5
    assert chances[False] + chances[True] == 1.0


def test_unfitted_model_predicts_nothing():
    assert MLCAClassifier().predict_one({"a": 1.0}) == {}
    assert MLCAClassifier().predict_proba_one({}) == {}


def test_rows_without_features_are_rows_of_zeros():
    model = learned([({}, {"quiet": True}), ({}, {"quiet": True}), ({"noise": 3.0}, {"loud": True})])
    zeros = learned([({"noise": 0.0}, {"quiet": True})] * 2 + [({"noise": 3.0}, {"loud": True})])
    assert_same_state(inside(model), inside(zeros))
    assert model.predict_one({}) == zeros.predict_one({"noise": 0.0})


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ({"a": "red"}, {"l": True}, "as column 'a' requires"),
        ({"a": 1.0, 1: 2.0, "1": "red"}, {"l": True}, "two feature names are equal when converted to strings"),
        ({"new": float("inf")}, {"l": True}, "feature 'new' is inf"),
        ({"a": -1e200}, {"l": True}, "within 1e"),
        ({"a": 10**400}, {"l": True}, "within 1e"),
        ({"new": 1.0}, {"l"}, r"y is a set; pass labels as a dict \{label: bool\}"),
        ({"new": 1.0}, {"l": "no"}, "y maps the label 'l' to 'no'; a dict must map labels to True or False"),
        ({"new": 1.0}, {"l": True, "new": None}, "y maps the label 'new' to None"),
        ({"new": 1.0}, {float("nan"): True}, "y names a label nan"),
        ({"new": 1.0}, {1.5: False}, "y names a label 1.5"),
        ([1.0], {"l": True}, r"x is a list; pass features as a dict"),
        (pd.Series({"a": 1.0}), {"l": True}, r"x is a Series; pass features as a dict"),
    ],
)
def test_invalid_row_is_named_and_changes_nothing(x, y, message):
    model = learned([({"a": 1.0}, {"l": True}), ({"a": 2.0}, {"m": True})])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_label_columns_without_names_are_rejected():
    model = learned([({"a": 1.0}, {"l": True})])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="y names a label nan"):
        model.learn_many(pd.DataFrame({"new": [1.0]}), pd.DataFrame([[True]], columns=[float("nan")]))
    assert pickle.dumps(model) == before


def test_numbers_of_any_type_are_supported():
    rows = [({"a": np.float32(1.5), "b": np.int64(2), "c": True, "d": np.bool_(False)}, {"l": True})]
    plain = [({"a": 1.5, "b": 2.0, "c": 1.0, "d": 0.0}, {"l": True})]
    assert_same_state(inside(learned(rows)), inside(learned(plain)))


def test_parameters_are_checked_at_once():
    with pytest.raises(ValueError, match="vigilance must be"):
        MLCAClassifier(vigilance=1.5)


def test_pickled_model_continues_exactly():
    rng = np.random.default_rng(2)
    rows = as_rows(rng.normal(0, 1, (100, 3)), rng.integers(0, 2, (100, 2)))
    model = learned(rows[:70], vigilance=0.2)
    twin = learned(rows[70:], pickle.loads(pickle.dumps(model)))
    assert_same_state(inside(learned(rows[70:], copy.deepcopy(model))), inside(twin))


class TestMany:
    X = pd.DataFrame(np.random.default_rng(3).normal(0, 1, (90, 3)), columns=["a", "b", "c"], index=range(5, 95))
    Y = pd.DataFrame({"l": X["a"] > 0, "m": X["b"] > 0})

    def model(self):
        model = MLCAClassifier(vigilance=0.1)
        model.learn_many(self.X, self.Y)
        return model

    def test_learn_many_equals_single_rows(self):
        rows = [(x, y) for x, y in zip(self.X.to_dict("records"), self.Y.to_dict("records"), strict=True)]
        assert_same_state(inside(self.model()), inside(learned(rows, vigilance=0.1)))

    def test_columns_may_come_in_any_order_and_late(self):
        model = MLCAClassifier(vigilance=0.1)
        model.learn_many(self.X[:40], self.Y[["l"]][:40])
        model.learn_many(self.X[["c", "a", "b"]][40:], self.Y[["m", "l"]][40:])
        first = self.Y.copy()
        first.iloc[:40, 1] = False
        expected = MLCAClassifier(vigilance=0.1)
        expected.learn_many(self.X, first)
        assert_same_state(inside(model), inside(expected))

    def test_predictions_are_those_of_single_rows(self):
        model = self.model()
        probabilities, decided = model.predict_proba_many(self.X), model.predict_many(self.X)
        assert probabilities.index.equals(self.X.index) and list(decided.columns) == ["l", "m"]
        for i, x in enumerate(self.X.to_dict("records")):
            assert decided.iloc[i].to_dict() == model.predict_one(x)
            assert probabilities.iloc[i]["l"] == model.predict_proba_one(x)["l"][True]
        assert MLCAClassifier().predict_many(self.X).shape == (90, 0)

    @pytest.mark.parametrize(
        ("X", "Y", "message"),
        [
            (X.assign(a=np.inf), Y, "feature 'a' is inf"),
            (X.assign(b="red"), Y, "as column 'b' requires"),
            (X[:5], Y, "X has 5 rows but y has 90"),
            (X, Y.astype(int) + 1, "values other than True and False"),
            (X.set_axis(["a", "a", "c"], axis=1), Y, "X has two columns called 'a'"),
            (X, Y.set_axis(["l", "l"], axis=1), "y has two columns called 'l'"),
            (X.to_numpy(), Y, "X is a ndarray; pass several rows as a DataFrame"),
            (X, Y["l"], "y is a Series; pass several rows as a DataFrame"),
        ],
    )
    def test_rejected_rows_change_nothing(self, X, Y, message):
        model = self.model()
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=message):
            model.learn_many(X, Y)
        assert pickle.dumps(model) == before

    def test_features_called_true_and_false_are_not_a_mask(self):
        known, renamed = MLCAClassifier(), MLCAClassifier()
        X, Y = self.X[["a", "b"]], self.Y
        known.learn_many(X, Y)
        renamed.learn_many(X.set_axis([True, False], axis=1), Y)
        assert_same_state(inside(known), inside(renamed))
        np.testing.assert_array_equal(
            known.predict_proba_many(X[:2]), renamed.predict_proba_many(X[:2].set_axis([True, False], axis=1))
        )

    def test_memory_usage_grows_with_the_nodes(self):
        model = MLCAClassifier()
        model.learn_many(self.X, self.Y)
        before = model._raw_memory_usage
        model.learn_many(self.X + 9.0, self.Y)
        assert model._raw_memory_usage - before >= (self.X.size + len(self.X)) * 8

    def test_explanation_matches_the_prediction(self):
        model = self.model()
        x = self.X.iloc[0].to_dict()
        explanation = model.explain_one(x)
        assert explanation.labels == ("l", "m")
        assert explanation.posterior[0] == model.predict_proba_one(x)["l"][True]
        with pytest.raises(ValueError, match="nothing is learned yet"):
            MLCAClassifier().explain_one(x)

    def test_saved_model_continues_exactly(self, tmp_path):
        model = self.model()
        model.save(tmp_path / "model.mlca")
        twin = MLCAClassifier.load(tmp_path / "model.mlca")
        assert twin._get_params() == model._get_params()
        for each in (model, twin):
            each.learn_one({"b": 1.0, "d": 2.0}, {"n": True})
        assert_same_state(inside(model), inside(twin))
        plain = load(tmp_path / "model.mlca")
        assert plain.classes_.tolist() == ["l", "m"] and plain.feature_names_in_.tolist() == ["a", "b", "c"]

    def test_rows_without_labels_are_learned_rows(self, tmp_path):
        model = learned([({"a": float(i)}, {}) for i in range(30)])
        X = np.arange(30.0)[:, None]
        plain = MLCA(recency=True).fit(X, [[]] * 30)
        asked = [3.0, 14.5, 300.0]
        assert [model.novelty_one({"a": a}) for a in asked] == plain.novelty([[a] for a in asked]).tolist()
        assert model.novelty_one({"a": 3.0}) < 1
        assert str(model.explain_one({"a": 3.0})) and model.predict_one({"a": 3.0}) == {}
        model.save(tmp_path / "model.mlca")
        twin = MLCAClassifier.load(tmp_path / "model.mlca")
        for each in (model, twin):
            each.learn_one({"a": 31.0}, {"l": True})
        assert_same_state(inside(model), inside(twin))

    def test_unsupported_names_are_rejected_on_saving(self, tmp_path):
        with pytest.raises(ValueError, match="nothing is learned yet"):
            MLCAClassifier().save(tmp_path / "model.mlca")
        with pytest.raises(ValueError, match="the feature name 7 is not a string"):
            learned([({7: 1.0}, {"l": True})]).save(tmp_path / "model.mlca")
        MLCA().fit([[0.0], [1.0]], [{"l"}, {"m"}]).save(tmp_path / "model.mlca")
        with pytest.raises(ValueError, match="not a model with named"):
            MLCAClassifier.load(tmp_path / "model.mlca")


def test_in_a_pipeline_progressive_validation_scores_what_a_loop_scores():
    stream = list(datasets.Yeast().take(300))
    pipeline = preprocessing.StandardScaler() | MLCAClassifier()
    measured = evaluate.progressive_val_score(stream, pipeline, metrics.multioutput.ExactMatch())
    scaler, model, hits = preprocessing.StandardScaler(), MLCAClassifier(), []
    for x, y in stream:
        predicted = model.predict_one(scaler.transform_one(x))
        if predicted:  # River does not count a row for which nothing is predicted
            hits.append(predicted == y)
        scaler.learn_one(x)
        model.learn_one(scaler.transform_one(x), y)
    assert measured.get() == pytest.approx(np.mean(hits))
    assert measured.get() > 0.05


@pytest.mark.parametrize("module", ["mlca.river", "mlca.river_metrics"])
def test_missing_river_is_reported_with_the_extra(module):
    code = f"import sys; sys.modules['river'] = None; import {module}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.stderr.splitlines()[-1] == f'ImportError: {module} needs river: pip install "mlca[river]"'


class TestTables:
    """Rows with text, categories and dates are learned as frames are."""

    @staticmethod
    def rows(n, seed=0):
        rng = np.random.default_rng(seed)
        texts = ["the printer is out of toner", "I cannot log in today", "no wifi in room two"]
        for i in range(n):
            kind = int(rng.integers(3))
            day = pd.Timestamp("2024-01-01") + pd.Timedelta(days=int(rng.integers(90)))
            number = None if i % 5 == 0 else float(rng.normal())
            x = {"text": f"{texts[kind]} {i % 9}", "team": "xyz"[int(rng.integers(3))], "hours": number, "opened": day}
            yield x, {"printer": kind == 0, "login": kind == 1, "late": i % 2 == 0}

    @staticmethod
    def names(y):
        return [label for label, true in y.items() if true]

    @pytest.mark.filterwarnings("ignore:left out")
    @pytest.mark.parametrize("n", [1, 30, 150])
    def test_rows_equal_a_frame(self, n):
        rows = list(self.rows(n))
        frame = pd.DataFrame([x for x, _ in rows])
        expected = MLCA(recency=True)
        expected.partial_fit(frame, [self.names(y) for _, y in rows], classes=["printer", "login", "late"])
        model, many = learned(rows), MLCAClassifier()
        many.learn_many(frame, pd.DataFrame([y for _, y in rows]))
        for one in (model, many):
            found = [[p[True] for p in one.predict_proba_one(x).values()] for x, _ in rows[:9]]
            assert found == expected.predict_proba(frame[:9]).tolist()
            assert one.predict_proba_many(frame[:9]).to_numpy().tolist() == found

    def test_saved_model_continues_exactly(self, tmp_path):
        rows = list(self.rows(80))
        model = learned(rows[:60])
        model.save(tmp_path / "model.mlca")
        again = MLCAClassifier.load(tmp_path / "model.mlca")
        copied = pickle.loads(pickle.dumps(model))
        for one in (model, again, copied):
            for x, y in rows[60:]:
                one.learn_one(x, y)
        assert again.predict_proba_one(rows[0][0]) == model.predict_proba_one(rows[0][0])
        assert copied.predict_proba_one(rows[0][0]) == model.predict_proba_one(rows[0][0])
        assert load(tmp_path / "model.mlca").columns_

    def test_category_may_appear_late_and_be_omitted(self):
        model = learned([({"a": float(i % 3)}, {"low": i % 3 == 0}) for i in range(60)])
        for i in range(60):
            model.learn_one({"colour": "red" if i % 2 else "blue"}, {"red": i % 2 == 1})
        assert model.predict_one({"colour": "red"})["red"]
        assert not model.predict_one({"colour": "blue"})["red"]

    def test_kinds_hold_for_numbers_and_for_columns_without_a_first_value(self):
        """In an earlier version, kinds had no effect on leading numbers, and missing texts became numbers."""
        kinds = {"text": "text", "team": "category", "size": "category"}
        model, frame = MLCAClassifier(columns=kinds, text_features=64), []
        for i in range(40):
            x = {"hours": float(i % 7), "text": None, "team": None, "size": i % 3}
            frame.append(x | ({"text": "no wifi today", "team": "net"} if i >= 10 else {}))
            model.learn_one(frame[-1], {"odd": i % 2 == 1})
        expected = MLCA(columns=kinds, text_features=64)
        expected.partial_fit(pd.DataFrame(frame), [["odd"] if i % 2 else [] for i in range(40)], classes=["odd"])
        probable = expected.predict_proba(pd.DataFrame(frame[-1:]))[0, 0]
        assert model.predict_proba_one(frame[-1])["odd"][True] == probable
        assert [column.kind for column in expected.columns_] == ["number", "text", "category", "category"]

    def test_kinds_may_be_set_and_words_are_explained(self):
        model = MLCAClassifier(columns={"team": "ignore"}, text_features=64)
        for x, y in self.rows(60):
            model.learn_one(x, y)
        x = {"text": "no wifi in room two"}
        reasons = [name for name, _ in model.explain_one(x).reasons("login")]
        assert any(name.startswith("text: ") for name in reasons)
        assert not any(name.startswith("team") for name in reasons)

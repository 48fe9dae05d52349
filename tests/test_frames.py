"""Data frames as input: columns of any kind, matched by name, in any portions, in Python and on the command line."""

import copy
import threading
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mlca import MLCA, load
from mlca.cli import main
from mlca.datasets import load_dataset
from mlca.frames import recipe_of
from mlca.merging import merge
from mlca.peers import MLkNN
from mlca.tables import Recipe
from tests.learner.model_comparison import assert_exactly_same
from tests.tables.tickets import tickets

USUAL, TOPICS = tickets(300, 1)
FRAME = USUAL.copy()
FRAME.loc[[150, 222], "priority"] = ["critical", "none"]  # late categories
NEW, _ = tickets(40, 2)

pytestmark = [pytest.mark.traced, pytest.mark.filterwarnings("ignore:left out")]


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 60)


def computed_later(columns):
    return pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(columns), npartitions=1)


OTHER_LIBRARIES = {
    "Arrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "polars, lazy": lambda columns: pytest.importorskip("polars").LazyFrame(columns),
    "Dask": computed_later,
}


def assert_same(a, b, frame=NEW):
    assert a.classes_.tolist() == b.classes_.tolist()
    np.testing.assert_array_equal(a.predict_proba(frame), b.predict_proba(frame))
    assert a.n_nodes_ == b.n_nodes_ and a.n_seen_ == b.n_seen_


def in_portions(frame, cuts):
    model, start = MLCA(vigilance=0.1), 0
    for stop in [*cuts, 300]:
        if stop > start:
            model.partial_fit(frame[start:stop], TOPICS[start:stop])
            model.predict(NEW[:2])
        start = stop
    return model


@pytest.fixture(scope="module")
def whole():
    return MLCA(vigilance=0.1).fit(FRAME, TOPICS)


class TestMixedFrames:
    def test_frame_is_encoded_by_its_recipe(self):
        model = MLCA(vigilance=0.1).fit(USUAL, TOPICS)
        recipe = Recipe().fit(USUAL)
        rows = recipe.transform(USUAL)
        expected = MLCA(vigilance=0.1, categorical_features=recipe.categorical_features_).fit(rows, TOPICS)
        np.testing.assert_array_equal(model.predict_proba(USUAL), expected.predict_proba(rows))

    @settings(max_examples=8, deadline=None)
    @given(st.lists(st.integers(1, 299), max_size=5).map(sorted))
    def test_portions_do_not_change_the_model(self, cuts):
        """The stream may be cut anywhere, also after a late category."""
        assert_same(in_portions(FRAME, cuts), in_portions(FRAME, []))

    def test_seed_is_drawn_once_for_all_portions(self):
        frame = NUMBERS.assign(tree=["ash"] * 10 + ["ash", "beech"] * 55)
        models = []
        for cuts in ((0, 120), (0, 5, 20, 120)):
            model = MLCA.published("MLCA-C", random_state=np.random.RandomState(0))
            for start, stop in pairwise(cuts):
                model.partial_fit(frame[start:stop], LABELS[start:stop])
            models.append(model)
        assert models[0]._learner.parameters == models[1]._learner.parameters
        assert_same(*models, frame)

    def test_late_categories_equal_known_ones(self):
        declared = FRAME.assign(priority=FRAME["priority"].astype("category"))
        assert_same(in_portions(FRAME, [100]), in_portions(declared, []))

    @pytest.mark.parametrize("declared", [(True, True), (False, True), (True, False)])
    def test_each_table_may_declare_its_own_categories(self, declared):
        words, sizes = ["ash", "beech"] * 20 + ["beech", "cedar"] * 20, np.arange(80) % 7
        frame, y = pd.DataFrame({"tree": words, "size": sizes}), [[word] for word in words]
        model = MLCA()
        for start, categories in zip((0, 40), declared, strict=True):
            part = frame[start : start + 40]
            part = part.assign(tree=part["tree"].astype("category")) if categories else part
            model.partial_fit(part, y[start : start + 40])
        assert_same(model, MLCA().fit(frame, y), frame)
        (tree, _) = recipe_of(model).layout.columns
        assert set(tree.values) == {"ash", "beech", "cedar"}

    def test_held_frames_are_learned_again_only_if_columns_change(self, monkeypatch):
        frame = pd.DataFrame({"size": np.arange(50) % 7 / 2, "tree": ["ash", "beech"] * 20 + ["alder"] * 10})
        learned, learn, model = [], MLCA._learn, MLCA()

        def learn_and_note(self, rows, targets):
            learned.append(rows.shape[0])
            learn(self, rows, targets)

        monkeypatch.setattr(MLCA, "_learn", learn_and_note)
        for start in range(0, 50, 10):
            model.partial_fit(frame[start : start + 10], [["a"]] * 10)
        assert learned == [8, 2, 10, 10, 10, 10]
        model.partial_fit(frame[40:], [["a"]] * 10)  # the columns become final: 60 rows are learned again
        assert learned[6:] == [60]

    def test_unknown_category_is_unlike_all_known_ones(self):
        model, rows = MLCA(vigilance=0.1).fit(FRAME, TOPICS), NEW.copy()
        probabilities = [model.predict_proba(rows.assign(priority=p)) for p in ("never heard of", "nor of this")]
        np.testing.assert_array_equal(*probabilities)
        assert not np.array_equal(probabilities[0], model.predict_proba(rows.assign(priority=None)))
        assert not np.array_equal(probabilities[0], model.predict_proba(rows.assign(priority="low")))
        # Once learned, the category is known, and other unknown categories are not confused with it.
        model.partial_fit(rows.assign(priority="never heard of"), [["new"]] * 40)
        place = recipe_of(model).categorical_features_[0]
        codes = np.array([model.prototypes_[[k]].toarray()[0, place] for k in range(model.n_nodes_)])
        assert -1 not in codes and 6 in codes
        new = [model.predict_proba(rows.assign(priority=p))[:, -1].mean() for p in ("never heard of", "nor of this")]
        assert new[0] > new[1]

    def test_columns_are_matched_by_name(self, whole):
        shuffled = NEW[NEW.columns[::-1]]
        np.testing.assert_array_equal(whole.predict_proba(shuffled), whole.predict_proba(NEW))
        assert whole.score(FRAME[FRAME.columns[::-1]], TOPICS) == whole.score(FRAME, TOPICS)
        with pytest.raises(ValueError, match="X lacks the columns 'priority'"):
            whole.predict(NEW.drop(columns="priority"))

    def test_rejected_frame_changes_nothing(self, whole):
        model = MLCA(vigilance=0.1).partial_fit(FRAME, TOPICS)
        before = model.predict_proba(NEW)
        for frame, topics, message in [
            (FRAME.assign(hours="soon"), TOPICS, "row 0 of X: 'soon' is not a number"),
            (FRAME, TOPICS[1:], "X has 300 rows but y has 299"),
            (FRAME, [["a"], None, *TOPICS[2:]], "row 1 of y is None"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.partial_fit(frame, topics)
        assert model.n_seen_ == 300
        np.testing.assert_array_equal(model.predict_proba(NEW), before)

    def test_new_columns_values_and_labels_are_supported(self):
        model = MLCA(vigilance=0.1).partial_fit(FRAME, TOPICS)
        width = model.n_features_in_
        more = NEW.assign(priority="deferred", floor=np.arange(40) % 7.0)
        model.partial_fit(more, [["roof"]] * 40)
        assert model.n_features_in_ == width + 1 and model.classes_.tolist()[-1] == "roof"
        roof = model.predict_proba(more)[:, -1].mean()
        assert roof > model.predict_proba(NEW)[:, -1].mean()  # this frame lacks the late columns
        model.partial_fit(FRAME, TOPICS)
        assert model.n_seen_ == 640

    def test_rows_before_a_late_column_have_missing_values(self):
        model = MLCA(vigilance=0.1).partial_fit(FRAME, TOPICS)
        known = model.n_nodes_
        more = NEW.assign(floor=np.arange(40) % 7.0, lift=["left", "right"] * 20)
        model.partial_fit(more, [["roof"]] * 40)
        recipe, nodes = recipe_of(model), model.prototypes_.toarray()
        assert recipe.get_feature_names_out().tolist()[-2:] == ["floor", "lift"]
        assert model.prototypes_.shape[1] - 1 in recipe.categorical_features_
        assert np.isnan(nodes[:known, -2:]).mean() > 0.5  # only nodes that the new rows have not moved
        assert not np.isnan(nodes[known:, -2:]).any()

    def test_evidence_stays_with_its_column_when_another_is_added(self):
        frame = FRAME[["hours", "priority"]]
        model = MLCA(vigilance=0.1).partial_fit(frame, TOPICS)
        names, before = recipe_of(model).get_feature_names_out().tolist(), model.background_coef_.toarray()
        assert names == ["hours", "priority"] and before.any(axis=0).all()
        model.partial_fit(frame[:1].assign(floor=3.0), TOPICS[:1])  # one row: the similarity is not recomputed
        assert recipe_of(model).get_feature_names_out().tolist() == [*names, "floor"]
        np.testing.assert_array_equal(model.background_coef_.toarray(), np.pad(before, ((0, 0), (0, 1))))

    def test_late_column_gives_nearly_the_model_that_had_known_it(self):
        known = NUMBERS.assign(c=NUMBERS["c"].where(NUMBERS.index >= 60))
        start = MLCA().fit(known, LABELS)
        late = MLCA().partial_fit(NUMBERS[["a", "b"]][:60], LABELS[:60]).partial_fit(NUMBERS[60:], LABELS[60:])
        assert late.n_nodes_ == start.n_nodes_
        assert np.abs(late.predict_proba(NUMBERS) - start.predict_proba(NUMBERS)).mean() < 0.01

    def test_declared_categories_are_used(self):
        frame = NEW.assign(room=np.arange(40.0) % 5)
        model = MLCA(categorical_features=["room"]).partial_fit(frame, TOPICS[:40]).partial_fit(frame, TOPICS[:40])
        assert {c.name: c.kind for c in recipe_of(model).layout.columns}["room"] == "categorical"

    def test_late_columns_within_the_first_rows_equal_known_ones(self):
        late = FRAME[:50].copy()
        late.loc[late.index[:20], "hours"] = None
        portions = MLCA(vigilance=0.1)
        portions.partial_fit(late[:20].drop(columns="hours"), TOPICS[:20]).partial_fit(late[20:], TOPICS[20:50])
        at_once = MLCA(vigilance=0.1).partial_fit(late, TOPICS[:50])
        order = ["ticket", "text", "priority", "returning", "opened", "hours"]
        assert sorted(portions.predict_proba(NEW).ravel()) == sorted(at_once.predict_proba(NEW[order]).ravel())

    @pytest.mark.parametrize("start", [20, 40])  # the kinds are decided again after 32 and after 64 rows
    def test_late_columns_within_the_first_rows_may_be_absent_later(self, start, tmp_path):
        model = MLCA(vigilance=0.1).partial_fit(FRAME[:start].drop(columns="hours"), TOPICS[:start])
        model.partial_fit(FRAME[start:80], TOPICS[start:80])
        gaps = NEW.assign(hours=None)
        expected = model.predict_proba(gaps)
        np.testing.assert_array_equal(model.predict_proba(NEW.drop(columns="hours")), expected)
        model.save(tmp_path / "m.mlca")
        np.testing.assert_array_equal(load(tmp_path / "m.mlca").predict_proba(NEW.drop(columns="hours")), expected)
        with pytest.raises(ValueError, match="X lacks the columns 'text'"):
            model.predict(NEW.drop(columns=["text", "hours"]))

    def test_an_explanation_names_columns_and_values(self, whole):
        row = NEW.iloc[0]
        explanation = whole.explain(row)
        names = [name for name, _ in explanation.values]
        assert {"text", "hours"} <= set(names) and "ticket" not in names
        assert dict(explanation.values)["hours"][0] == f"{row['hours']:.4g}"
        text = str(explanation)
        assert "distance" in text and "similarity" not in text and "the row" in text
        np.testing.assert_array_equal(explanation.posterior, whole.predict_proba(NEW[:1])[0])

    def test_score_takes_label_lists_and_frames(self, whole):
        indicator = pd.DataFrame(
            {name: [int(name in own) for own in TOPICS] for name in reversed(whole.classes_.tolist())}
        )
        assert whole.score(FRAME, TOPICS) == whole.score(FRAME, indicator) > 0.3

    def test_sample_weight_is_rejected_with_a_remedy(self):
        with pytest.raises(TypeError, match=r"sample_weight.*np\.repeat.*X\.iloc\[rows\] of a DataFrame"):
            MLCA().fit(FRAME, TOPICS, sample_weight=np.ones(300))


class TestStreamsOfFrames:
    @pytest.mark.parametrize(
        "cells",
        [["x", *[1.0, 2.0] * 20], ["soon", *["2024-05-01", "2024-06-01"] * 20], ["u", *[1.0] * 20, 1e200, *[2.0] * 20]],
    )
    def test_accepted_rows_do_not_block_later_ones(self, cells):
        model, rejected = MLCA(), []
        with pytest.warns(UserWarning, match="the kinds of columns stay unchanged"):
            for cell in cells:
                try:
                    model.partial_fit(pd.DataFrame({"v": [cell], "k": ["u"]}), [{"a"}])
                except ValueError:
                    rejected.append(cell)
        assert rejected == [] and model.n_seen_ == len(cells)

    def test_column_of_distinct_words_continues(self):
        model = MLCA()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(40):
                model.partial_fit(pd.DataFrame({"word": [f"w{number}"]}), [{"a"}])
        assert model.n_seen_ == 40

    def test_rejected_row_is_named_by_its_position_in_the_frame(self):
        frame = USUAL.assign(hours=USUAL["hours"].astype(object))
        frame.loc[200, "hours"] = "soon"
        for learn in (MLCA().fit, MLCA().partial_fit):
            with pytest.raises(ValueError, match="row 200 of X: 'soon' is not a number"):
                learn(frame, TOPICS)

    @pytest.mark.parametrize("epochs", [0, -1, 1.5, "2", None])
    def test_invalid_epochs_are_rejected(self, epochs):
        with pytest.raises(ValueError, match="epochs must be"):
            MLCA(epochs=epochs).fit(FRAME, TOPICS)

    def test_several_epochs_see_the_columns_of_one(self):
        frame = pd.DataFrame(
            {"id": [f"T-{k}" for k in range(50)], "tree": ["ash", "beech"] * 25, "n": np.arange(50) % 7}
        )
        frame, labels = frame.assign(n=frame["n"] / 2), [{tree} for tree in frame["tree"]]
        once, twice = MLCA().fit(frame, labels), MLCA(epochs=2).fit(frame, labels)
        assert twice.n_features_in_ == once.n_features_in_ == 3
        assert twice.prototypes_.shape[1] == once.prototypes_.shape[1] == 2
        rows = Recipe().fit(frame).transform(frame)
        expected = MLCA(epochs=2, categorical_features=[0]).fit(rows, labels)
        np.testing.assert_array_equal(twice.predict_proba(frame), expected.predict_proba(rows))

    def test_saved_model_continues_as_the_original(self, tmp_path):
        model = MLCA().partial_fit(pd.DataFrame({"k": ["u", "v"] * 5, "x": np.arange(10.0) % 4}), [{"a"}, {"b"}] * 5)
        model.save(tmp_path / "begun.mlca")
        loaded = load(tmp_path / "begun.mlca")
        more = pd.DataFrame({"k": [f"lots of words here {i}" for i in range(10)], "x": np.arange(10.0)})
        for each in (model, loaded):
            each.partial_fit(more, [{"a"}, {"b"}] * 5)
        assert_same(model, loaded, more)

    def test_failed_save_settles_nothing(self, tmp_path):
        begun = pd.DataFrame({"k": ["u", "v"] * 5, "x": np.arange(10.0) % 4}), [{"a"}, {"b"}] * 5
        model, expected = MLCA().partial_fit(*begun), MLCA().partial_fit(*begun)
        with pytest.raises(FileNotFoundError):
            model.save(tmp_path / "nowhere" / "begun.mlca")
        more = pd.DataFrame({"k": [f"lots of words here {i}" for i in range(10)], "x": np.arange(10.0)})
        for each in (model, expected):
            each.partial_fit(more, [{"a"}, {"b"}] * 5)
        assert model.n_features_in_ == expected.n_features_in_
        assert_same(model, expected, more)

    def test_held_rows_are_copies(self):
        numbers, trees = np.arange(25.0) % 4, ["ash", "beech", "cedar", "elm", "fir"] * 5
        frame = pd.Series(numbers, copy=False).to_frame("n").assign(tree=trees)
        labels = [{tree} for tree in trees]
        late = pd.DataFrame({"n": np.arange(25.0) % 5, "tree": trees, "late": np.arange(25.0) % 3})
        expected = MLCA().partial_fit(frame, labels).partial_fit(late, labels)
        model = MLCA().partial_fit(frame, labels)
        numbers[:] = 1e3
        model.partial_fit(late, labels)
        np.testing.assert_array_equal(model.predict_proba(late), expected.predict_proba(late))

    def test_grid_search_and_pipelines_accept_frames(self):
        model, labels = make_pipeline("passthrough", MLCA()), FRAME["priority"].eq("low").to_numpy(dtype=int)
        assert model.fit(FRAME, labels).predict(NEW).shape == (40,)
        search = GridSearchCV(MLCA(), {"vigilance": [0.01, 0.1]}, cv=2, error_score="raise").fit(FRAME, labels)
        assert search.best_estimator_.n_seen_ == 300


class TestRowsThatAreNotHeld:
    """Frames are held until the kinds of columns are final; rows learned by other calls meanwhile are not lost."""

    @pytest.fixture
    def begun(self):
        return MLCA().partial_fit(USUAL[:40], TOPICS[:40])

    NEW_CATEGORY = USUAL[40:50].assign(priority="critical")

    def test_frame_is_learned_after_rows_of_an_array(self, begun):
        begun.partial_fit(recipe_of(begun).transform(USUAL[:15]), TOPICS[:15])
        assert begun.partial_fit(self.NEW_CATEGORY, TOPICS[40:50]).n_seen_ == 65

    def test_frame_is_learned_after_a_new_fit_on_numbers(self):
        """An earlier version confused these rows with as many held rows, which `fit` had dropped."""
        more = pd.DataFrame({"size": [101.0, 102.0], "tree": ["ash", "fir"]})
        begun, fresh = MLCA().partial_fit(USUAL[:10], [{"forgotten"}] * 10), MLCA()
        for model in (begun, fresh):
            model.fit(pd.DataFrame({"size": np.arange(100.0, 110)}), [{"new"}] * 10)
            model.partial_fit(more, [{"new"}] * 2)
        np.testing.assert_array_equal(begun.prototypes_, fresh.prototypes_)
        assert_same(begun, fresh, more)

    def test_frame_is_learned_by_a_merged_model(self, begun):
        whole = merge([begun, MLCA().partial_fit(USUAL[:40], TOPICS[:40])])
        assert whole.partial_fit(self.NEW_CATEGORY, TOPICS[40:50]).n_seen_ == 90
        assert begun.partial_fit(self.NEW_CATEGORY, TOPICS[40:50]).n_seen_ == 50


NUMBERS = pd.DataFrame(np.random.default_rng(5).normal(size=(120, 3)), columns=["a", "b", "c"])
LABELS = [["up"] if a > 0 else ["down"] for a in NUMBERS["a"]]


def test_models_with_different_recipes_are_not_merged():
    one = MLCA(vigilance=0.1).fit(FRAME[:60], TOPICS[:60])
    other = MLCA(vigilance=0.1).fit(FRAME[60:120], TOPICS[60:120])
    assert one.n_features_in_ == other.n_features_in_
    with pytest.raises(ValueError, match="reads its tables differently"):
        merge([one, other])
    recipe = Recipe().fit(FRAME)
    parts = [MLCA(vigilance=0.1).fit(recipe.transform(FRAME[i : i + 100]), TOPICS[i : i + 100]) for i in (0, 100, 200)]
    assert merge(parts).n_seen_ == 300


class TestPlainFrames:
    def test_frame_of_numbers_equals_an_array(self):
        framed, plain = MLCA().fit(NUMBERS, LABELS), MLCA().fit(NUMBERS.to_numpy(), LABELS)
        np.testing.assert_array_equal(framed.predict_proba(NUMBERS), plain.predict_proba(NUMBERS.to_numpy()))
        np.testing.assert_array_equal(framed.prototypes_, plain.prototypes_)

    @pytest.mark.filterwarnings("default:left out", "default:columns that look like row IDs")
    def test_row_ids_are_left_out_with_a_warning_as_in_the_shell(self):
        rows = NUMBERS.assign(count=range(7, 7 + len(NUMBERS)), row_id=np.arange(len(NUMBERS))[::-1] * 3.0)
        with pytest.warns(UserWarning, match="left out: 'count' .an id.*'row_id' .an id") as caught:
            model = MLCA().fit(rows, LABELS)
        assert len(caught) == 1
        np.testing.assert_array_equal(model.predict_proba(rows), MLCA().fit(NUMBERS, LABELS).predict_proba(NUMBERS))
        with pytest.warns(UserWarning, match="learned as numbers.*'count', 'row_id'; drop them"):
            portions = MLCA().partial_fit(rows[:50], LABELS[:50])
        single = MLCA()
        for row in range(50):
            single.partial_fit(rows[row : row + 1], LABELS[row : row + 1])
        np.testing.assert_array_equal(portions.predict_proba(rows), single.predict_proba(rows))

    @pytest.mark.parametrize(
        ("name", "values"),
        [("count", np.arange(0.0, 40.0, 2.0)), ("id", np.arange(20) // 2), ("id", np.arange(20) / 2)],
    )
    def test_other_whole_numbers_are_learned(self, name, values):
        frame = pd.DataFrame({"a": NUMBERS["a"][:20], name: values})
        assert [column.kind for column in MLCA().fit(frame, LABELS[:20]).columns_] == ["number", "number"]

    def test_only_row_ids_are_learned_as_numbers(self):
        assert MLCA().fit(pd.DataFrame({"id": range(len(LABELS))}), LABELS).n_features_in_ == 1

    def test_columns_are_matched_by_name(self):
        model = MLCA().fit(NUMBERS, LABELS)
        shuffled = NUMBERS[["c", "a", "b"]]
        np.testing.assert_array_equal(model.predict_proba(shuffled), model.predict_proba(NUMBERS))
        assert model.explain(shuffled.iloc[0]).values[0][0] in ("a", "b", "c")
        with pytest.raises(ValueError, match="feature names"):
            model.predict(NUMBERS.rename(columns={"a": "z"}))

    @pytest.mark.parametrize("other", [1.5, "word"])
    def test_columns_that_were_not_learned_are_left_out(self, other):
        model = MLCA().fit(NUMBERS, LABELS)
        wider = NUMBERS.assign(other=other)[["c", "other", "a", "b"]]
        np.testing.assert_array_equal(model.predict_proba(wider), model.predict_proba(NUMBERS))
        assert model.score(wider, LABELS) == model.score(NUMBERS, LABELS)
        np.testing.assert_array_equal(model.explain(wider.iloc[4]).distances, model.explain(NUMBERS.iloc[4]).distances)

    def test_columns_without_names_are_counted(self):
        model = MLCA().fit(NUMBERS.to_numpy(), LABELS)
        with pytest.raises(ValueError, match="X has 4 features, but MLCA is expecting 3"):
            model.predict(pd.DataFrame(np.zeros((2, 4))))

    def test_missing_values_equal_those_of_an_array(self):
        rng = np.random.default_rng(6)
        gaps = NUMBERS.mask(rng.random(NUMBERS.shape) < 0.2)
        framed = MLCA().partial_fit(gaps[:50], LABELS[:50]).partial_fit(gaps[["c", "a", "b"]][50:], LABELS[50:])
        plain = MLCA().fit(gaps.to_numpy(), LABELS)
        np.testing.assert_array_equal(framed.predict_proba(gaps.convert_dtypes()), plain.predict_proba(gaps.to_numpy()))
        np.testing.assert_array_equal(framed.prototypes_, plain.prototypes_)
        assert dict(framed.explain(gaps[gaps["b"].isna()].iloc[0]).values)["b"][0] == "missing"

    def test_missing_values_and_new_columns_are_supported(self):
        model = MLCA().fit(NUMBERS, LABELS)
        with_gap = NUMBERS.copy()
        with_gap.loc[3, "b"] = None
        model.partial_fit(with_gap, LABELS)
        model.partial_fit(NUMBERS.assign(colour="red"), LABELS)
        assert model.n_seen_ == 360 and model.n_features_in_ == 4
        assert model.predict(with_gap).shape == (120, 2)


class TestNamesOfColumns:
    """Column names of other types than text."""

    @pytest.mark.parametrize("names", [[0, 1, 2], [7, 3, 5], ["a", 1, 2.5], [("g", "a"), ("g", "b"), ("h", "a")]])
    def test_columns_are_matched_by_names_of_any_type(self, names):
        frame = NUMBERS.set_axis(pd.Index(names), axis=1)
        shuffled = frame[[names[2], names[0], names[1]]]
        model = MLCA().partial_fit(frame[:60], LABELS[:60]).partial_fit(shuffled[60:], LABELS[60:])
        plain = MLCA().fit(NUMBERS.to_numpy(), LABELS)
        np.testing.assert_array_equal(model.predict_proba(shuffled), plain.predict_proba(NUMBERS.to_numpy()))
        assert model.score(shuffled, LABELS) == plain.score(NUMBERS.to_numpy(), LABELS)
        np.testing.assert_array_equal(
            model.explain(shuffled.iloc[4]).distances, plain.explain(NUMBERS.to_numpy()[4]).distances
        )

    @pytest.mark.parametrize("order", [[2, 0, 1], [1, 0]])
    def test_numbered_columns_are_in_numeric_order(self, order):
        rows = np.random.default_rng(0).normal(size=(80, len(order))) * [1, 9, 40][: len(order)]
        frame, labels = pd.DataFrame(rows), [{"a"} if row[0] > 0 else {"b"} for row in rows]
        expected = MLCA().fit(rows, labels).partial_fit(rows, labels).predict_proba(rows)
        for learned, again, asked in ((order, None, None), (None, order, order), (order, order, order)):
            first, more, questions = (frame if places is None else frame[places] for places in (learned, again, asked))
            model = MLCA().fit(first, labels).partial_fit(more, labels)
            np.testing.assert_array_equal(model.predict_proba(questions), expected)
            np.testing.assert_array_equal(model.predict_proba(rows), expected)

    def test_columns_called_true_and_false_are_numbered(self):
        rows = np.random.default_rng(0).normal(size=(80, 2))
        frame, labels = pd.DataFrame(rows, columns=[True, False]), [{"a"} if row[0] > 0 else {"b"} for row in rows]
        model = MLCA().fit(frame, labels)
        np.testing.assert_array_equal(model.predict(frame), model.predict(frame.iloc[:, ::-1]))
        assert model.score(frame, labels) > 0.9

    def test_columns_that_are_only_numbered_are_those_of_an_array(self):
        model = MLCA().fit(pd.DataFrame(NUMBERS.to_numpy()), LABELS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # scikit-learn warns if names appear or disappear
            model.partial_fit(NUMBERS.to_numpy(), LABELS).predict(pd.DataFrame(NUMBERS.to_numpy()))

    @pytest.mark.parametrize("words", [False, True])
    def test_duplicate_columns_are_rejected_by_name(self, words):
        frame = NUMBERS.assign(b="red") if words else NUMBERS
        for names in (["a", "twice", "twice"], ["1", 1, "a"]):
            with pytest.raises(ValueError, match=f"X has two columns called '{'twice' if 'twice' in names else 1}'"):
                MLCA().fit(frame.set_axis(pd.Index(names), axis=1), LABELS)

    def test_words_among_numbers_are_named_with_their_position(self):
        words = NUMBERS.assign(b=[1.5] * 7 + ["red"] + [2.5] * 112)
        named, plain = MLCA().fit(NUMBERS, LABELS), MLCA().fit(NUMBERS.to_numpy(), LABELS)
        for ask in (named.predict, named.explain, lambda rows: named.partial_fit(rows, [[]] * len(rows))):
            with pytest.raises(
                ValueError, match="'red' is not a number within bounds, as column 'b' requires; correct the cell"
            ):
                ask(words[7:8])
        with pytest.raises(ValueError, match="X lacks the columns 'a', 'c'"):
            named.predict(words[["b"]])
        for ask in (plain.predict, lambda rows: plain.partial_fit(rows, LABELS)):
            with pytest.raises(ValueError, match="the model learned numbers without names; pass an array"):
                ask(words)
        assert named.n_seen_ == plain.n_seen_ == 120
        digits = NUMBERS.assign(b=NUMBERS["b"].map(repr))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(named.predict_proba(digits), named.predict_proba(NUMBERS))


class TestEmptyTables:
    def test_no_columns_are_rejected(self):
        with pytest.raises(ValueError, match="X has no columns"):
            MLCA().fit(pd.DataFrame(index=range(3)), [["a"]] * 3)

    def test_no_rows_are_rejected(self):
        model = MLCA().partial_fit(FRAME[:50], TOPICS[:50])
        settled = MLCA().fit(FRAME[:80], TOPICS[:80])
        for ask in (
            lambda: MLCA().fit(FRAME[:0], []),
            lambda: MLCA().partial_fit(FRAME[:0], TOPICS[:0]),
            lambda: model.partial_fit(FRAME[:0], TOPICS[:0]),
            lambda: settled.partial_fit(FRAME[:0], TOPICS[:0]),
        ):
            with pytest.raises(ValueError, match="X has no rows"):
                ask()
        with pytest.raises(ValueError, match="0 sample"):
            settled.predict(FRAME[:0])
        assert model.n_seen_ == 50 and settled.n_seen_ == 80


class TestOddTables:
    """Tables with unusual cells and types."""

    Y = ["ab", "a", "b", ""] * 20
    X = np.random.default_rng(5).integers(0, 99, (80, 2)).astype(float)

    def probabilities(self, **columns):
        frame = pd.DataFrame({"word": ["x", "y"] * 40, "a": self.X[:, 0], **columns})
        return MLCA().fit(frame, self.Y).predict_proba(frame)

    def test_spans_of_time_are_seconds(self):
        spans = self.probabilities(b=pd.to_timedelta(self.X[:, 1], unit="s"))
        np.testing.assert_array_equal(spans, self.probabilities(b=self.X[:, 1]))

    def test_periods_are_dates(self):
        periods = pd.PeriodIndex(pd.date_range("2024-01-01", periods=80), freq="D")
        np.testing.assert_array_equal(self.probabilities(b=periods), self.probabilities(b=periods.to_timestamp()))

    def test_intervals_are_categories(self):
        intervals = pd.cut(self.X[:, 1], 4)
        frame = pd.DataFrame({"a": self.X[:, 0], "b": intervals.astype(object)})
        model = MLCA().fit(frame, self.Y)
        as_words = frame.assign(b=frame["b"].astype(str))
        np.testing.assert_array_equal(model.predict_proba(frame), MLCA().fit(as_words, self.Y).predict_proba(as_words))

    def test_a_row_of_sparse_columns_is_explained(self):
        frame = pd.DataFrame({"a": self.X[:, 0], "b": pd.arrays.SparseArray(np.where(self.X[:, 1] > 50, 1.0, np.nan))})
        model = MLCA().fit(frame, self.Y)
        assert str(model.explain(frame.iloc[3])) == str(model.explain(frame.iloc[[3]]))

    def test_dict_is_rejected_as_a_row(self):
        with pytest.raises(ValueError, match="x is a dict; pass numbers, a Series or a DataFrame of one row"):
            MLCA().fit(self.X, self.Y).explain({"a": 1.0, "b": 2.0})
        with pytest.raises(ValueError, match=r"x is not a row of numbers \(.*'red'\); pass numbers, a Series"):
            MLCA().fit(self.X, self.Y).explain([1.0, "red"])

    def test_explained_row_is_read_like_a_predicted_one(self):
        model = MLCA().fit(self.X, self.Y)
        masked = np.ma.masked_array(self.X[0], [False, True])
        gap = np.array([self.X[0, 0], np.nan])
        assert str(model.explain(masked)) == str(model.explain(gap)) != str(model.explain(self.X[0]))
        with pytest.raises(ValueError, match="an array of dates or times"):
            model.explain(np.array(["2024", "2025"], dtype="M8[D]"))
        with pytest.raises(ValueError, match="explain takes one row, got 2"):
            model.explain(self.X[:2].tolist())

    def test_masked_cells_are_missing(self):
        mask = self.X > 80
        masked = MLCA().fit(np.ma.masked_array(self.X, mask), self.Y)
        gaps = MLCA().fit(np.where(mask, np.nan, self.X), self.Y)
        np.testing.assert_array_equal(masked.predict_proba(self.X), gaps.predict_proba(self.X))
        with pytest.raises(ValueError, match="NaN"):
            MLkNN().fit(np.ma.masked_array(self.X, mask), self.X > 50)

    def test_array_of_dates_is_rejected(self):
        with pytest.raises(ValueError, match="array of dates or times; put it into a DataFrame column"):
            MLCA().fit(np.array(["2024-01-01"] * 80, dtype="datetime64[D]").reshape(-1, 1), self.Y)

    @pytest.mark.parametrize("library", OTHER_LIBRARIES)
    def test_tables_of_other_libraries_give_the_same_model(self, library):
        frame = pd.DataFrame(
            {"word": ["x", "y"] * 40, "a": self.X[:, 0], "day": pd.date_range("2024-01-01", periods=80)}
        )
        other = OTHER_LIBRARIES[library]({name: column.tolist() for name, column in frame.items()})
        expected = MLCA().fit(frame, self.Y)
        for model in (MLCA().fit(other, self.Y), MLCA().partial_fit(other, self.Y)):
            np.testing.assert_array_equal(model.predict_proba(other), expected.predict_proba(frame))
        np.testing.assert_array_equal(Recipe().fit(other).transform(other), Recipe().fit(frame).transform(frame))

    @pytest.mark.parametrize("library", OTHER_LIBRARIES)
    def test_rows_of_other_libraries_are_explained(self, library):
        frame = pd.DataFrame({"word": ["x", "y"] * 40, "a": self.X[:, 0]})
        model = MLCA().fit(frame, self.Y)
        row = OTHER_LIBRARIES[library]({"word": ["x"], "a": self.X[:1, 0]})
        assert str(model.explain(row)) == str(model.explain(frame[:1]))

    @pytest.mark.parametrize("orient", ["list", "records"])
    def test_dicts_are_rejected_as_tables(self, orient):
        frame = pd.DataFrame({"word": ["x", "y"] * 40, "a": self.X[:, 0]})
        with pytest.raises(ValueError, match=r"X holds values by name in dicts; pass pandas.DataFrame\(X\)"):
            MLCA().fit(frame.to_dict(orient), self.Y)

    @pytest.mark.filterwarnings("default:left out")
    def test_ignored_columns_raise_one_warning(self):
        frame = pd.DataFrame({"a": self.X[:, 0], "word": ["x", "y"] * 40, "ticket": [f"T{i}" for i in range(80)]})
        frame = frame.assign(parts=[["bolt"]] * 80, nothing=None, pair=1j)
        with pytest.warns(UserWarning, match="'ticket' .an id.*'parts' .lists.*'nothing' .no value.*'pair'") as caught:
            MLCA().fit(frame[:50], self.Y[:50])
        assert len(caught) == 1
        model = MLCA()
        with pytest.warns(UserWarning, match="left out: 'ticket'") as caught:
            for start in range(0, 50, 10):
                model.partial_fit(frame[start : start + 10], self.Y[start : start + 10])
        caught = " ".join(str(warning.message) for warning in caught)
        assert [caught.count(f"{name!r} (") for name in ("ticket", "parts", "nothing", "pair")] == [1, 1, 1, 1]

    @pytest.mark.filterwarnings("default:left out")
    def test_single_rows_report_a_column_once_and_late_columns_too(self):
        frame = pd.DataFrame(
            {"a": self.X[:, 0], "ticket": [f"T{i}" for i in range(80)], "code": [f"C{i}" for i in range(40)] * 2}
        )
        frame = pd.concat([frame] * 2, ignore_index=True).assign(ticket=[f"T{i}" for i in range(160)])
        labels = [*self.Y, *self.Y]
        with pytest.warns(UserWarning, match="left out: 'ticket'") as caught:
            model = MLCA()
            for row in range(160):
                model.partial_fit(frame[row : row + 1], labels[row : row + 1])
        assert len(caught) == 1 and "'code'" not in str(caught[0].message)
        with pytest.warns(UserWarning, match="left out: 'late'") as caught:
            model.partial_fit(frame[:20].assign(late=[f"L{i}" for i in range(20)]), labels[:20])
            model.partial_fit(frame[:20].assign(late=[f"M{i}" for i in range(20)]), labels[:20])
        assert len(caught) == 1


class TestShell:
    def test_model_of_the_command_line_predicts_a_frame(self, tmp_path):
        FRAME.assign(tags=["|".join(own) for own in TOPICS]).to_csv(tmp_path / "a.csv", index=False)
        words = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", "--vigilance", ".1"]
        assert main([*map(str, words), "--json"]) == 0
        model = load(tmp_path / "m.mlca")
        again = pd.read_csv(tmp_path / "a.csv")
        assert model.score(again.drop(columns="tags"), TOPICS) > 0.3
        model.partial_fit(NEW, [["new"]] * 40)
        assert "new" in model.classes_.tolist()

    def test_model_of_python_predicts_a_file(self, tmp_path, capsys):
        model = MLCA(vigilance=0.1).fit(FRAME, TOPICS)
        model.save(tmp_path / "m.mlca")
        NEW.to_csv(tmp_path / "new.csv", index=False)
        words = ["predict", tmp_path / "m.mlca", tmp_path / "new.csv", "--id", "ticket", "--top", "1"]
        assert main([*map(str, words), "--out", str(tmp_path / "p.csv")]) == 0
        found = pd.read_csv(tmp_path / "p.csv")
        assert found["ticket"].tolist() == NEW["ticket"].tolist()
        probabilities = model.predict_proba(pd.read_csv(tmp_path / "new.csv"))
        np.testing.assert_allclose(found["probabilities"], probabilities.max(axis=1), rtol=1e-5)
        FRAME.assign(tags=["|".join(own) for own in TOPICS]).to_csv(tmp_path / "a.csv", index=False)
        for words in (["evaluate", "--json"], ["update", "--json"]):
            command = [words[0], str(tmp_path / "m.mlca"), str(tmp_path / "a.csv"), *words[1:]]
            assert main(command) == 1
            assert "--labels tags" in capsys.readouterr().err
            assert main([*command, "--labels", "tags"]) == 0
        assert load(tmp_path / "m.mlca").n_seen_ == 600

    def test_labels_that_are_numbers_stay_numbers(self, tmp_path):
        frame = NUMBERS
        MLCA().fit(frame, [{7} if a > 0 else {9} for a in frame["a"]]).save(tmp_path / "m.mlca")
        frame.assign(tags=["7" if a > 0 else "9" for a in frame["a"]]).to_csv(tmp_path / "a.csv", index=False)
        words = ["update", tmp_path / "m.mlca", tmp_path / "a.csv", "--labels", "tags", "--json"]
        assert main([*map(str, words)]) == 0
        assert set(load(tmp_path / "m.mlca").classes_.tolist()) == {7, 9}


@pytest.mark.data
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "name", ["flags", "emotions", "birds", "yeast", pytest.param("genbase", marks=pytest.mark.slow)]
)
def test_portions_and_column_order_of_real_tables_do_not_change_probabilities(name, monkeypatch):
    """Categories by name, numbers and missing values, learned in portions with shuffled columns."""
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 1000)
    data = load_dataset(name)
    rows = data.X.toarray() if sparse.issparse(data.X) else data.X
    frame = pd.DataFrame(rows, columns=data.feature_names)
    for column, values in data.categories.items():
        frame[column] = frame[column].map(lambda code, values=values: values[int(code)] if code == code else None)
    rng = np.random.default_rng(0)
    frame = frame.astype(object).mask(rng.random(frame.shape) < 0.02)
    frame = frame.infer_objects()
    labels = [[data.label_names[j] for j in row] for row in np.split(data.Y.indices, data.Y.indptr[1:-1])]
    n = min(400, len(frame))
    half = n // 2
    # By `fit`, all rows up to the thousandth decide what columns are; by `partial_fit`, the first 1, 2, 4, ... do.
    at_once = MLCA().partial_fit(frame[:n], labels[:n])
    portions = MLCA().partial_fit(frame[:half], labels[:half])
    portions.partial_fit(frame[frame.columns[::-1]][half:n], labels[half:n])
    np.testing.assert_array_equal(portions.predict_proba(frame[:50]), at_once.predict_proba(frame[:50]))
    assert at_once.score(frame[:n], labels[:n]) > 0


class TestRowsAndTexts:
    @pytest.mark.parametrize("columns", [list(FRAME.columns), None])
    def test_series_row_is_predicted_as_frame_of_one_row(self, columns):
        frame = FRAME[columns] if columns else FRAME.select_dtypes("number")
        model = MLCA().fit(frame, TOPICS)
        for row in (0, 7):
            assert model.predict_labels(frame.iloc[row]) == model.predict_labels(frame.iloc[[row]])
            assert model.predict_proba(frame.iloc[row]).tolist() == model.predict_proba(frame.iloc[[row]]).tolist()

    def test_series_row_with_half_a_surrogate_pair_is_read_like_its_frame(self):
        words = pd.Series(["in ord\ud800nung", "out of order"] * 20, dtype=object)
        frame = pd.DataFrame({"words": words, "size": np.arange(0.0, 20.0, 0.5)})
        model = MLCA().fit(frame, [["p"], ["q"]] * 20)
        assert model.predict_labels(frame.iloc[0]) == model.predict_labels(frame[:1]) == [{"p"}]
        assert str(model.explain(frame.iloc[0])) == str(model.explain(frame[:1]))

    @pytest.mark.parametrize("form", [list, pd.Series, np.array, tuple])
    def test_texts_without_columns_are_rejected_with_a_frame_as_remedy(self, form):
        texts = form(["the sea is calm", "storm"])
        with pytest.raises(ValueError, match=r"got the string 'the sea is calm'.*pandas.DataFrame\(\{\"text\": X\}\)"):
            MLCA().fit(texts, [["calm"], ["storm"]])
        model = MLCA().fit(pd.DataFrame({"text": texts}), [["calm"], ["storm"]])
        with pytest.raises(ValueError, match="got the string"):
            model.predict(texts)
        with pytest.raises(ValueError, match=r"the string 'storm' \(str\).*pandas.DataFrame\(\{\"text\": \[X\]\}\)"):
            model.predict("storm")


@pytest.mark.parametrize("name", ["compute", "to_pandas", "to_frame"])
def test_columns_may_be_called_like_methods_of_other_tables(name):
    frame = FRAME.rename(columns={"hours": name})
    model, expected = MLCA().fit(frame, TOPICS), MLCA().fit(FRAME, TOPICS)
    assert model.predict_proba(frame).tolist() == expected.predict_proba(FRAME).tolist()
    assert model.predict_labels(frame.iloc[0]) == model.predict_labels(frame[:1])
    assert model.explain(frame[:1]).posterior.tolist() == model.explain(frame.iloc[0]).posterior.tolist()
    labels = pd.DataFrame({name: [0, 1], "other": [1, 1]})
    assert MLCA().fit([[0.0], [1.0]], labels).classes_.tolist() == [name, "other"]


@pytest.mark.parametrize("columns", [["text", "hours"], ["priority", "hours"]])
def test_output_setting_of_transformers_does_not_matter(columns):
    """Predicting text failed in an earlier version, because scikit-learn has no frames of sparse rows."""
    expected = MLCA().fit(FRAME[columns], TOPICS).predict_proba(FRAME[columns]).tolist()
    with config_context(transform_output="pandas"):
        model = MLCA().fit(FRAME[columns], TOPICS)
        assert model.predict_proba(FRAME[columns]).tolist() == expected
        assert model.explain(FRAME.iloc[0]).posterior.tolist() == expected[0]


class TestProgress:
    @pytest.mark.parametrize("form", ["frame", "numbers", "sparse"])
    def test_verbose_and_callback_report_rows_and_change_no_bit(self, form, monkeypatch, capsys):
        monkeypatch.setattr("mlca.progress.PAUSE", 0.0)
        monkeypatch.setattr("mlca.model.REPORTED_ROWS", 70)
        X = {"frame": FRAME, "numbers": FRAME[["hours"]], "sparse": sparse.csr_array(np.eye(300, 40))}[form]
        seen = []
        model = MLCA(verbose=True, epochs=2).fit(X, TOPICS, callback=lambda rows, nodes: seen.append(rows))
        expected = MLCA(epochs=2).fit(X, TOPICS)
        assert model.predict_proba(X).tolist() == expected.predict_proba(X).tolist()
        assert seen == sorted(set(seen)) and seen[-1] == 600 and max(np.diff([0, *seen])) <= 70
        assert "600 rows" in capsys.readouterr().err.splitlines()[-1]
        assert "_report" not in vars(model)

    def test_callback_may_end_the_fit(self):
        def stop(rows, nodes):
            raise InterruptedError

        X = np.random.default_rng(0).normal(size=(1000, 3))
        model = MLCA()
        with pytest.raises(InterruptedError):
            model.fit(X, X > 0, callback=stop)
        assert model.n_seen_ == 200 and "_report" not in vars(model)

    def test_rows_that_decide_the_kinds_stay_after_an_exception(self, monkeypatch):
        """An earlier version kept only rows after the thousandth of a frame."""
        monkeypatch.setattr("mlca.model.REPORTED_ROWS", 40)

        def stop(rows, nodes):
            raise InterruptedError

        model, expected = MLCA(), MLCA().fit(FRAME, TOPICS)
        with pytest.raises(InterruptedError):
            model.fit(FRAME, TOPICS, callback=stop)
        assert model.n_seen_ == 40
        model.partial_fit(FRAME[40:], TOPICS[40:])
        assert model.predict_proba(FRAME).tolist() == expected.predict_proba(FRAME).tolist()
        assert model.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()

    @pytest.mark.parametrize("form", ["frame", "numbers"])
    def test_callback_may_use_the_model_but_not_train_it(self, form, tmp_path):
        """In an earlier version, training inside a callback gave later labels the columns of others."""
        X, y = {"frame": FRAME, "numbers": FRAME[["hours"]]}[form], [["early"]] * 250 + [["late"]] * 50
        model, rejected, copies = MLCA().fit(X[:10], y[:10]), [], []

        def train(rows, nodes):
            for learn in (model.fit, model.partial_fit):
                try:
                    learn(X[:5], [["between"]] * 5)
                except RuntimeError as error:
                    rejected.append(str(error))
            model.save(tmp_path / "model.mlca")
            copies.append(copy.deepcopy(model).partial_fit(X[:5], [["between"]] * 5))
            assert model.predict_proba(X[:3]).shape[0] == 3

        model.fit(X, y, callback=train)
        assert len(rejected) == 2 * len(copies) >= 4 and "a callback of `fit` must not train the model" in rejected[0]
        assert_exactly_same(model, MLCA().fit(X, y))
        assert all("between" in one.classes_ for one in copies)
        assert model.partial_fit(X[:5], [["after"]] * 5).n_seen_ == 305

    def test_other_threads_wait_for_the_end_of_a_fit_with_callback(self):
        X, y = np.random.default_rng(0).normal(size=(600, 3)), [["a"]] * 600
        model, waiting = MLCA(), []

        def begin(rows, nodes):
            if not waiting:
                waiting.append(threading.Thread(target=model.partial_fit, args=(X[:7], [["b"]] * 7)))
                waiting[0].start()

        model.fit(X, y, callback=begin)
        waiting[0].join(60)
        assert_exactly_same(model, MLCA().fit(X, y).partial_fit(X[:7], [["b"]] * 7))


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, sparse.csr_array])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_kinds_of_columns_without_names_are_rejected(form, method):
    model = MLCA(columns={"size": "number"})
    with pytest.raises(ValueError, match="X has no column names; pass X as a DataFrame"):
        getattr(model, method)(form(np.eye(2)), [["a"], ["b"]])

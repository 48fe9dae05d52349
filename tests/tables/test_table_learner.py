"""The table learner: any table, in any portions, from the first row on."""

import copy
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA, load
from mlca.frames import contributions_of_columns
from mlca.tables import TableLearner
from mlca.tables.columns import ColumnSettings
from mlca.tables.first_rows import TableRows
from mlca.tables.table_learner import recipe_of
from tests.tables.tickets import tickets

FRAME, TOPICS = tickets(300, 1)

pytestmark = [
    pytest.mark.filterwarnings("ignore:left out"),
    pytest.mark.filterwarnings("ignore:columns stay"),
]

# Possible cells of a column; most columns have one kind, with some unusual cells.
KINDS = [
    st.floats(-1e6, 1e6) | st.none(),
    st.integers(-5, 5),
    st.booleans() | st.none(),
    st.sampled_from(["red", "green", "blue", None]),
    st.sampled_from(["2024-01-01", "2024-05-17 12:00", None]),
    st.sampled_from(["the roof leaks again today", "no wifi in room four since monday", ""]),
    st.integers(0, 10**6).map(lambda k: f"v{k}"),
    st.sampled_from(["1,5", "2,25", "1.234,5"]),
    st.none(),
    st.sampled_from(
        [0, 1.5, "", "?", "x", "1", "nan", "inf", "1,234", "a b c d e", True, None, "2024-02-30", "9" * 400]
    ),
]
NAMES = ["a", "b*", "[x]", "id", "Unnamed: 0", " ", "é", "size"]


@st.composite
def tables(draw):
    n_rows = draw(st.integers(1, 40))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    columns = {}
    for name in names:
        kind = draw(st.sampled_from(KINDS))
        columns[name] = draw(st.lists(kind, min_size=n_rows, max_size=n_rows))
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def learned(frame, cuts):
    """Return the model of a frame in portions; None if a portion is rejected."""
    model, start = MLCA(), 0
    for stop in [*cuts, len(frame)]:
        if stop > start:
            try:
                model.partial_fit(frame[start:stop], [{f"l{k % 3}"} for k in range(start, stop)])
            except ValueError:
                return None
        start = stop
    return model


@settings(max_examples=60, deadline=None)
@given(tables(), st.lists(st.integers(1, 39), max_size=4).map(sorted), st.integers(1, 50))
def test_any_table_gives_one_model_in_any_portions(frame, cuts, first_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlca.tables.columns.FIRST_ROWS", first_rows)
        whole = learned(frame, [])
        portions = learned(frame, [min(cut, len(frame)) for cut in cuts])
        settled_early = [
            model is None or (model._held is None) == (len(frame) < first_rows) for model in (whole, portions)
        ]
        if any(settled_early):  # rejected, or settled early so that no row is rejected
            return
        assert recipe_of(whole).layout == recipe_of(portions).layout
        np.testing.assert_array_equal(whole.predict_proba(frame), portions.predict_proba(frame))


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 8, 61, 100])
def test_rows_one_by_one_give_the_model_of_the_frame(n_rows):
    frame, topics = FRAME[:n_rows], TOPICS[:n_rows]
    at_once, one_by_one = MLCA().partial_fit(frame, topics), MLCA()
    for row in range(n_rows):
        one_by_one.partial_fit(frame[row : row + 1], topics[row : row + 1])
    assert recipe_of(at_once).layout == recipe_of(one_by_one).layout
    np.testing.assert_array_equal(at_once.predict_proba(FRAME), one_by_one.predict_proba(FRAME))


def test_column_is_decided_again_until_it_is_settled(monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 16)
    frame = pd.DataFrame({"size": [1, 2, "a", 3, 4, "b"], "tree": ["ash", "fir"] * 3}, dtype=object)
    for cuts in ([], [1, 2, 3, 4, 5], [2], [3]):
        model = learned(frame, cuts)
        assert [column.kind for column in recipe_of(model).layout.columns] == ["categorical", "categorical"]
        assert model.n_seen_ == 6
    model = MLCA().partial_fit(pd.DataFrame({"size": np.arange(16) % 7 / 2, "tree": ["ash", "fir"] * 8}), [{"a"}] * 16)
    with pytest.raises(ValueError, match="row 0 of X: 'a' is not a number"):
        model.partial_fit(frame[2:3], [{"a"}])
    assert model.n_seen_ == 16


def test_first_rows_one_by_one_cost_little():
    start = time.process_time()
    model = MLCA()
    for row in range(150):
        model.partial_fit(FRAME[row : row + 1], TOPICS[row : row + 1])
    assert time.process_time() - start < 6


def test_recipe_is_kept_as_an_object_and_written_as_json(tmp_path):
    model = MLCA().fit(FRAME, TOPICS)
    assert recipe_of(model) is recipe_of(model)
    model.save(tmp_path / "m.mlca")
    loaded = load(tmp_path / "m.mlca")
    assert recipe_of(loaded).to_json() == recipe_of(model).to_json() and recipe_of(loaded) is recipe_of(loaded)
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))


def test_bad_cells_may_be_missing_values():
    cells = {"size": [1.0, 2.0, 3.0, 4.0], "tree": ["ash", "fir", "ash", "fir"]}
    models = []
    for odd in ("tall", None):
        model = MLCA()
        table = TableLearner(model, "missing")
        table.learn(TableRows(cells, 4), [["a"], ["b"]] * 2)
        table.learn(TableRows({"size": [odd], "tree": ["ash"]}, 1), [["a"]])
        models.append(model)
    np.testing.assert_array_equal(models[0].prototypes_, models[1].prototypes_)
    assert models[0].n_seen_ == 5


def test_settings_of_the_model_apply_if_the_call_gives_none():
    cells = TableRows({"note": ["red sky tonight", "calm sea", "rough sea ahead"] * 2, "code": [1, 2, 3] * 2}, 6)
    table = TableLearner(MLCA(columns={"note": "text", "code": "category"}, text_features=32))
    table.learn(cells, [["a"], ["b"], ["a"]] * 2)
    assert [column.kind for column in table.layout.columns] == ["text", "categorical"]
    assert table.layout.columns[0].width == 32


@pytest.mark.parametrize("settle", [False, True])
def test_rows_with_bad_cells_may_be_skipped(settle):
    sizes, trees, labels = ["tall", 1, 2, "wide", 4.5], ["ash", "fir", "ash", "fir", "oak"], list("ababc")
    more = {"size": ["low", 3], "tree": ["elm", "fir"]}
    settings = ColumnSettings.of_kinds({"size": "number"})
    table, expected = (TableLearner(MLCA(), bad_cells, settings=settings) for bad_cells in ("skip", "raise"))
    table.learn(TableRows({"size": sizes, "tree": trees}, 5), [[label] for label in labels], list("abc"), settle=settle)
    table.learn(TableRows(more, 2), [["a"], ["b"]])
    table.learn(TableRows({"size": ["high"], "tree": ["ash"]}, 1), [["new"]])
    good = [1, 2, 4]
    readable = TableRows({"size": [sizes[i] for i in good], "tree": [trees[i] for i in good]}, 3)
    expected.learn(readable, [[labels[i]] for i in good], list("abc"), settle=settle)
    expected.learn(TableRows({"size": [3], "tree": ["fir"]}, 1), [["b"]])
    assert table.n_skipped == 4 and table.model.n_seen_ == 4
    assert "new" not in table.model.classes_
    assert table.layout.columns[0] == expected.layout.columns[0]
    rows = TableRows({"size": [2, 4], "tree": ["ash", "oak"]}, 2)
    chances = [t.model.predict_proba(t.encode(rows.by_column, 2)) for t in (table, expected)]
    np.testing.assert_array_equal(*chances)


@settings(max_examples=40, deadline=None)
@given(tables(), st.sampled_from(["raise", "missing", "skip"]), st.lists(st.integers(1, 39), max_size=3).map(sorted))
def test_any_table_is_learned_or_rejected_without_a_change(frame, bad_cells, cuts):
    """Rows that are learned count; skipped rows are counted; with "missing" no row is rejected."""
    model, start, n_rejected = MLCA(window=5), 0, 0
    table = TableLearner(model, bad_cells)
    for stop in [*(min(cut, len(frame)) for cut in cuts), len(frame)]:
        part = {name: frame[name].tolist()[start:stop] for name in frame}
        if stop > start:
            try:
                table.learn(TableRows(part, stop - start), [[f"l{k % 3}"] for k in range(start, stop)])
            except ValueError:
                assert bad_cells != "missing"
                n_rejected += stop - start
        start = stop
    n_seen = model.n_seen_ if hasattr(model, "labels_") else 0
    assert n_seen + table.n_skipped + n_rejected == len(frame)
    if n_seen:
        cells = {name: frame[name].tolist() for name in frame}
        good = TableLearner(model, "missing", held=table.held).encode(cells, len(frame))
        assert np.isfinite(model.predict_proba(good)).all()


def test_skipping_many_bad_rows_takes_time_that_grows_with_their_number():
    """In the worst order, each of the first rows changes the kind of the column again."""
    n = 4000
    sizes = [f"w{k}" if k % 2 else float(k) for k in range(n)]
    table = TableLearner(MLCA(max_nodes=20), "skip", settings=ColumnSettings.of_kinds({"size": "number"}))
    start = time.process_time()
    table.learn(TableRows({"size": sizes, "tree": ["ash", "fir"] * (n // 2)}, n), [["a"], ["b"]] * (n // 2))
    table.learn(TableRows({"size": sizes, "tree": ["ash", "fir"] * (n // 2)}, n), [["a"], ["b"]] * (n // 2))
    assert table.n_skipped == n and table.model.n_seen_ == n
    assert time.process_time() - start < 20


def test_vectors_are_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = [{"up"} if row[0] > 0 else {"down"} for row in X]
    plain = MLCA().fit(np.column_stack([X, np.arange(60) % 5]), y)
    for cells in (X.tolist(), list(X), [tuple(row) for row in X.tolist()]):
        frame = pd.DataFrame({"embedding": pd.Series(cells, dtype=object), "size": np.arange(60) % 5})
        model = MLCA().fit(frame, y)
        assert [column.kind for column in recipe_of(model).layout.columns] == ["vector", "numeric"]
        np.testing.assert_array_equal(model.prototypes_, plain.prototypes_)
    names = recipe_of(model).get_feature_names_out().tolist()
    assert names == ["embedding[0]", "embedding[1]", "embedding[2]", "size"]
    short = pd.DataFrame({"embedding": [[1.0]], "size": [1]})
    with pytest.raises(ValueError, match=r"row 0 of X: '\[1.0\]' is not a list of 3 numbers within bounds"):
        model.predict(short)
    none = pd.DataFrame({"embedding": [None], "size": [1]})
    np.testing.assert_array_equal(model.predict_proba(none), plain.predict_proba([[np.nan] * 3 + [1]]))


def test_many_short_codes_are_one_category(tmp_path):
    codes = [f"N{k * 7919 % 4001}AA" for k in range(6000)]
    frame = pd.DataFrame({"tail": codes, "size": np.arange(6000) % 9 / 2})
    model = MLCA(max_nodes=50).fit(frame[:1500].assign(tail=codes[:750] * 2), [{"a"}, {"b"}] * 750)
    model.partial_fit(frame[1500:], [{"a"}, {"b"}] * 2250)
    model.save(tmp_path / "m.mlca")
    (tail, _) = recipe_of(load(tmp_path / "m.mlca")).layout.columns
    assert tail.kind == "categorical" and len(tail.values) == 4001


KINDS_SET = {"tail": "text", "room": "category", "note": "ignore", "size": "number"}


def test_kinds_of_columns_can_be_set(tmp_path):
    n = 40
    frame = pd.DataFrame(
        {
            "tail": [f"N{k % 9}" for k in range(n)],
            "room": np.arange(n) % 4,
            "note": ["a", "b"] * 20,
            "size": [str(k / 2) for k in range(n)],
        }
    )
    y = [{"a"}, {"b"}] * 20
    model = MLCA(columns=KINDS_SET, text_features=64).fit(frame, y)
    assert {column.name: column.kind for column in model.columns_} == KINDS_SET
    one_by_one = MLCA(columns=KINDS_SET, text_features=64)
    for row in range(n):
        one_by_one.partial_fit(frame[row : row + 1], y[row : row + 1])
    assert {column.name: column.kind for column in one_by_one.columns_} == KINDS_SET
    model.save(tmp_path / "m.mlca")
    loaded = load(tmp_path / "m.mlca")
    assert (loaded.columns, loaded.text_features) == (KINDS_SET, 64)
    assert repr(loaded.columns_) == repr(model.columns_)
    numbers = MLCA(columns={"room": "category"}).fit(frame[["room"]], y)
    assert numbers.columns_[0].kind == "category"
    with pytest.raises(ValueError, match="`columns` names 'nothing', which is not among the columns of X"):
        MLCA(columns={"nothing": "text"}).fit(frame, y)
    for wrong in ({"tail": "word"}, ["tail"], {3: "text"}):
        with pytest.raises(ValueError, match="`columns` m"):
            MLCA(columns=wrong).fit(frame, y)


@pytest.mark.parametrize("kind", ["text", "category", "number", "vector"])
def test_column_of_a_set_kind_may_begin_with_missing_values(kind, tmp_path):
    """An earlier version rejected the first row without a value."""
    value = {"text": "no wifi", "category": "net", "number": 1.5, "vector": [1.0, 2.0]}[kind]
    frame = pd.DataFrame({"hours": [1.0, 2.5, 4.0] * 5, "late": pd.Series([None] * 5 + [value] * 10, dtype=object)})
    labels, model = [["a"], ["b"], []] * 5, MLCA(columns={"late": kind})
    for row in range(15):
        model.partial_fit(frame[row : row + 1], labels[row : row + 1])
        copy.deepcopy(model).save(tmp_path / "m.mlca")
    expected = MLCA(columns={"late": kind}).partial_fit(frame, labels)
    assert [(column.name, column.kind) for column in model.columns_] == [("hours", "number"), ("late", kind)]
    assert model.predict_proba(frame).tolist() == expected.predict_proba(frame).tolist()
    assert load(tmp_path / "m.mlca").predict_proba(frame).tolist() == expected.predict_proba(frame).tolist()


def test_columns_are_shown_as_text_and_html():
    table = MLCA().fit(FRAME.assign(**{"<b>": FRAME["priority"]}), TOPICS).columns_
    by_name = {column.name: column for column in table}
    assert [column.kind for column in table] == [
        "ignore",
        "text",
        "category",
        "number",
        "yes or no",
        "date",
        "category",
    ]
    assert 0 < by_name["hours"].missing < 0.5 and by_name["ticket"].values.startswith("an id")
    assert sum(column.contribution or 0 for column in table) == pytest.approx(1)
    assert str(table).splitlines()[0].split()[:3] == ["name", "kind", "values"]
    assert "<td>&lt;b&gt;</td>" in table._repr_html_() and "<b>" not in table._repr_html_()
    with pytest.raises(AttributeError, match="without column names"):
        _ = MLCA().fit([[0.0], [1.0]], [{"a"}, {"b"}]).columns_


def test_contribution_is_the_effect_of_a_column_on_predictions():
    rng = np.random.default_rng(0)
    words = ["alpha beta gamma", "delta epsilon zeta", "eta theta iota", "kappa lambda mu"]
    frame = pd.DataFrame(
        {
            "note": [" ".join(rng.permutation(" ".join(words).split())) for _ in range(300)],
            "kind": rng.choice(["a", "b", "c"], 300),
            "noise": rng.normal(size=300),
        }
    )
    model = MLCA(columns={"note": "text"}).fit(frame, [{kind} for kind in frame["kind"]])
    contributions = contributions_of_columns(model)
    assert next(iter(contributions)) == "kind" and contributions["kind"] > 0.5
    assert sum(contributions.values()) == pytest.approx(1)
    assert {column.name: column.contribution for column in model.columns_} == contributions


def test_columns_are_part_of_the_representation(tmp_path):
    model = MLCA(vigilance=0.1)
    assert repr(model) == "MLCA(vigilance=0.1)" and "<th>kind</th>" not in model._repr_html_()
    model.fit(FRAME.assign(**{"<b>": FRAME["priority"]}), TOPICS)
    first, second = repr(model).split("\n")
    assert first == "MLCA(vigilance=0.1)"
    assert second.startswith("columns: ticket (ignore), text (text), priority (category), hours (number)")
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert "<td>&lt;b&gt;</td><td>category</td>" in bundle["text/html"] and "sk-top-container" in bundle["text/html"]
    model.save(tmp_path / "m.mlca")
    assert repr(load(tmp_path / "m.mlca")).endswith(second)

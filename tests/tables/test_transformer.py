"""The public recipe: every kind of column, matched by name, learned in any portions, the same in every process."""

import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from itertools import pairwise
from math import log
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from mlca.tables import Recipe
from mlca.tables.kinds import Boolean, Categorical, Date, Ignored, Numeric, Text
from mlca.tables.words import hashed, places_of, seed_of, words_of
from tests.tables.tickets import tickets

FRAME, TOPICS = tickets(300, 1)
FRAME.loc[[150, 222], "priority"] = ["urgent", "none"]  # late categories


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 60)


def fitted(frame=FRAME, **settings):
    with pytest.warns(UserWarning, match="left out"):
        return Recipe(**settings).fit(frame)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def test_kinds_of_columns_are_detected():
    kinds = {column.name: type(column) for column in fitted().layout.columns}
    assert kinds == {
        "ticket": Ignored,
        "text": Text,
        "priority": Categorical,
        "hours": Numeric,
        "returning": Boolean,
        "opened": Date,
    }


def test_user_settings_have_priority():
    columns = fitted(categorical=["hours"], ignore=["o*"], text_features=64).layout.columns
    by_name = {column.name: column for column in columns}
    assert isinstance(by_name["hours"], Categorical) and by_name["opened"] == Ignored("opened", "as you wish")
    assert by_name["text"].width == 64
    with pytest.raises(ValueError, match="no column is called 'nothing'"):
        Recipe(text=["nothing"]).fit(FRAME)
    assert isinstance(Recipe(text=["ticket"]).fit(FRAME).layout.columns[0], Text)


def test_column_name_is_not_a_pattern():
    sizes = {name: [1.5, 2.5, 3.5, 2.0] * 5 for name in ("size [cm]", "size c", "old?", "older", "n*", "name", "kept")}
    recipe = Recipe(categorical=["size [cm]", "old?", "n*"], ignore=["k*"]).fit(pd.DataFrame(sizes))
    late = pd.DataFrame({**sizes, "size m": sizes["kept"], "oldy": sizes["kept"], "keen": sizes["kept"]})
    kinds = {column.name: type(column) for column in recipe.partial_fit(late).layout.columns}
    assert {name for name, kind in kinds.items() if kind is Categorical} == {"size [cm]", "old?", "n*"}
    assert {name for name, kind in kinds.items() if kind is Ignored} == {"kept", "keen"}


@pytest.mark.filterwarnings("ignore:left out")
@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 299), max_size=6).map(sorted), st.randoms(use_true_random=False))
def test_portions_and_order_of_columns_do_not_change_the_features(cuts, random):
    recipe, start = Recipe(), 0
    for stop in [*cuts, 300]:
        columns = list(FRAME.columns)
        random.shuffle(columns)
        if stop > start:
            recipe.partial_fit(FRAME[columns][start:stop])
        start = stop
    whole = Recipe().partial_fit(FRAME)
    shuffled = FRAME[columns]
    names, others = whole.get_feature_names_out(), recipe.get_feature_names_out()
    assert sorted(names) == sorted(others)
    place = {name: k for k, name in enumerate(others)}
    rows = recipe.transform(shuffled)[:, [place[name] for name in names]]
    np.testing.assert_array_equal(dense(rows), dense(whole.transform(FRAME)))
    assert {others[k] for k in recipe.categorical_features_} == {"priority"}


@pytest.mark.filterwarnings("ignore:left out")
def test_early_transform_changes_nothing():
    asked = Recipe().partial_fit(FRAME[:20])
    asked.transform(FRAME)
    asked.partial_fit(FRAME[20:])
    np.testing.assert_array_equal(dense(asked.transform(FRAME)), dense(Recipe().partial_fit(FRAME).transform(FRAME)))


def test_numbers_are_scaled_beside_text_and_missing_values_stay():
    recipe = fitted()
    place = recipe.get_feature_names_out().tolist().index("hours")
    hours = FRAME["hours"].to_numpy()
    column = dense(recipe.transform(FRAME))[:, place]
    known = ~np.isnan(hours)
    np.testing.assert_allclose(np.corrcoef(column[known], hours[known])[0, 1], 1.0)
    first = hours[:60][known[:60]]
    np.testing.assert_allclose(column[known], (hours[known] - first.mean()) / first.std())
    assert np.isnan(column[~known]).all()


@pytest.mark.parametrize("kind", ["priority", "hours", "returning", "opened"])
def test_missing_values_become_nan(kind):
    recipe = fitted()
    rows = dense(recipe.transform(FRAME.assign(**{kind: None})))
    own = [name.split(" ")[0] == kind for name in recipe.get_feature_names_out()]
    assert np.isnan(rows[:, own]).all()
    text = dense(recipe.transform(FRAME.assign(text=None)))
    assert not text[:, [name.startswith("text#") for name in recipe.get_feature_names_out()]].any()


def test_new_categories_get_codes_and_new_columns_are_on_the_right():
    recipe = fitted()
    before, names = dense(recipe.transform(FRAME)), recipe.get_feature_names_out().tolist()
    more = FRAME[:5].assign(priority="critical", floor=[1.0, 2.0, 3.0, 4.0, 5.0])
    recipe.partial_fit(more)
    assert recipe.get_feature_names_out().tolist() == [*names, "floor"]
    np.testing.assert_array_equal(dense(recipe.transform(FRAME))[:, : len(names)], before)
    new = dense(recipe.transform(more))[:, len(names) :]
    np.testing.assert_allclose(new[:, 0], (np.arange(5) - 2) / np.sqrt(2))
    priority = names.index("priority")
    known = len(set(before[:, priority][~np.isnan(before[:, priority])]))
    assert dense(recipe.transform(more))[:, priority].tolist() == [known + 1.0] * 5
    assert dense(recipe.transform(more.assign(priority="?!")))[:, priority].tolist() == [-1.0] * 5


def test_absent_columns_and_wrong_cells_are_reported():
    recipe = fitted()
    with pytest.raises(ValueError, match="X lacks the columns 'hours'"):
        recipe.transform(FRAME.drop(columns="hours"))
    with pytest.raises(ValueError, match="row 2 of X: 'soon' is not a number within bounds, as column 'hours'"):
        recipe.transform(FRAME.assign(hours=FRAME["hours"].astype(object).where(FRAME.index != 2, "soon")))
    with pytest.raises(ValueError, match="row 0 of X: 'then' is not a date, as column 'opened'"):
        recipe.transform(FRAME.assign(opened="then"))


def test_dates_are_cyclic(monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 1000)
    days = pd.DataFrame({"day": pd.date_range("2023-12-25", periods=400, freq="D"), "x": 1.0})
    recipe = Recipe().fit(days)
    assert recipe.layout.columns[0].cycles == ("year", "week")
    rows = recipe.transform(days)

    def apart(i, j, names):
        places = [recipe.get_feature_names_out().tolist().index(name) for name in names]
        return np.linalg.norm(rows[i, places] - rows[j, places])

    year = ["day sine of year", "day cosine of year"]
    assert apart(6, 7, year) < 0.02 < apart(6, 100, year)  # New Year's Eve and New Year's Day
    assert apart(0, 7, ["day sine of week", "day cosine of week"]) < 1e-9
    assert np.all(np.diff(rows[:, 0]) > 0)


def test_text_and_typed_columns_give_the_same_features():
    typed = FRAME.drop(columns=["ticket", "text"])
    written = typed.astype(object).map(lambda cell: "" if pd.isna(cell) else str(cell))
    as_category = typed.assign(priority=typed["priority"].astype("category"))
    expected = Recipe().fit(typed)
    for frame in (written, as_category):
        other = Recipe().fit(frame)
        assert [type(column) for column in other.layout.columns] == [type(c) for c in expected.layout.columns]
        # pandas declares categories beforehand, so that none comes late.
        assert other.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
        rows, wanted = other.transform(frame), expected.transform(typed)
        code = expected.categorical_features_[0]
        values = [recipe.layout.columns[0].values for recipe in (other, expected)]
        for row, like in zip(rows, wanted, strict=True):
            if not np.isnan(like[code]):  # the same category with another code
                assert values[0][int(row[code]) - 1] == values[1][int(like[code]) - 1]
        np.testing.assert_allclose(np.delete(rows, code, axis=1), np.delete(wanted, code, axis=1))


class TestWords:
    def test_words_of_three_languages_are_separated(self):
        assert words_of("Contraseña caducada, ¡ya!") == ["contraseña", "caducada", "ya"]
        assert words_of("打印机2楼 WIFI") == ["打", "印", "机", "2", "楼", "wifi"]
        assert words_of("ＦＵＬＬ width naïve_word") == ["full", "width", "naïve", "word"]

    def test_word_pairs_count_and_repeated_words_count_logarithmically(self):
        rows, _, values = hashed(["a b", "", "a " * 20, "b"], 2**20, 0)
        assert values[rows == 0].tolist() == [1.0, 1.0, 1.0]  # two words and a pair
        assert max(values[rows == 2]) == pytest.approx(1 + np.log(20))
        assert values[rows == 3].tolist() == [1.0]  # no pair across texts

    def test_features_of_many_texts_are_those_of_each_token(self):
        texts = ["Red red lamp", "", "打印机 坏了", "don't panic: don't", "lamp"]
        rows, places, values = hashed(texts, 4096, 7)
        for number, text in enumerate(texts):
            words = words_of(text)
            tokens = [*words, *map(" ".join, pairwise(words))]
            expected = Counter(crc32(token.encode(), 7) % 4096 for token in tokens)
            found = dict(zip(places[rows == number].tolist(), values[rows == number].tolist(), strict=True))
            assert found == {place: 1.0 + log(count) for place, count in expected.items()}
            assert places_of(text, 4096, 7) == {token: crc32(token.encode(), 7) % 4096 for token in tokens}

    def test_memory_of_hashing_does_not_grow_with_the_number_of_texts(self):
        """In an earlier version, a request with 16 MB of one character that expands to four words took 4 GB."""
        texts = ["\ufdfa " * 2_000 + "end", "lamp", ""]
        expected = [part.tolist() for part in hashed(texts, 64, 0)]
        peaks = []
        for times in (20, 60):
            tracemalloc.start()
            found = hashed(texts * times, 64, 0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < 1.1 * peaks[0]
        for first in (0, 3 * 59):
            here = (found[0] >= first) & (found[0] < first + 3)
            assert [(found[0][here] - first).tolist(), found[1][here].tolist(), found[2][here].tolist()] == expected

    def test_hash_is_the_same_in_every_process(self):
        code = "from mlca.tables.words import hashed, seed_of; print(hashed(['the same words'], 4096, seed_of('text')))"
        encodings = {
            subprocess.run(
                [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
            ).stdout
            for seed in ("0", "1", "77")
        }
        assert len(encodings) == 1

    def test_column_name_may_be_any_json_text(self):
        assert len({seed_of(name) for name in ("\ud800", "\ud801", "text")}) == 3

    def test_features_of_different_columns_differ(self):
        frame = pd.DataFrame({"a": FRAME["text"], "b": FRAME["text"]})
        rows = Recipe(text_features=512).fit(frame).transform(frame).toarray()
        assert not np.array_equal(rows[:, :512], rows[:, 512:])


def test_recipe_works_as_a_scikit_learn_transformer():
    recipe = Recipe(text_features=32)
    assert clone(recipe).get_params() == recipe.get_params()
    with pytest.warns(UserWarning):
        rows = recipe.fit_transform(FRAME)
    assert rows.shape == (300, len(recipe.get_feature_names_out()))
    with pytest.raises(ValueError, match="text_features must be"):
        Recipe(text_features=0).fit(FRAME)
    with pytest.raises(ValueError, match="no column is left"):
        Recipe(ignore=["*"]).fit(FRAME)


def test_rows_that_are_arrays_have_numbered_columns():
    rows = np.array([[1.5, "red"], [2.5, "blue"]], dtype=object)
    recipe = Recipe().fit(rows)
    assert recipe.get_feature_names_out().tolist() == ["x0", "x1"] and recipe.categorical_features_ == [1]
    np.testing.assert_array_equal(recipe.transform(rows), [[1.5, 2], [2.5, 1]])


def test_ten_thousand_rows_of_all_kinds_give_sparse_finite_features():
    frame, _ = tickets(10_000, 2)
    recipe = fitted(frame)
    rows = recipe.transform(frame)
    assert rows.shape[0] == 10_000 and rows.nnz < 100 * 10_000
    assert not np.isinf(rows.data).any() and 0 < np.isnan(rows.data).mean() < 0.05

"""Unusual cells: treated as missing, reported with their position, or left out, but never guessed."""

import json
from decimal import Decimal
from pathlib import PurePath

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.tables import Recipe
from mlca.tables.byte_streams import ByteStream
from mlca.tables.cells import numbers_among, plain_numbers
from mlca.tables.dates import as_days, in_words
from mlca.tables.first_rows import TableRows
from mlca.tables.formats import open_source
from mlca.tables.kinds import Categorical, Date, Ignored, Numeric, column_from_json, column_to_json
from mlca.tables.label_columns import LabelReader, decide_labels
from mlca.tables.table_learner import TableLearner

SIZES = [float(i * i % 7) for i in range(20)]


def decided(cells):
    """Return the kind of a column of objects beside a numeric one, and its numbers."""
    frame = pd.DataFrame({"size": SIZES[: len(cells)], "odd": pd.Series(cells, dtype=object)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlca.tables.recipe.warn_of_columns", lambda left_out: None)
        recipe = Recipe().fit(frame)
    column = recipe.layout.columns[1]
    return column, None if isinstance(column, Ignored) else recipe.transform(frame)[:, 1]


@pytest.mark.parametrize("gap", [Decimal("NaN"), Decimal("sNaN"), np.float32("nan"), pd.NA, pd.NaT])
def test_invalid_numbers_are_missing_values(gap):
    column, numbers = decided([Decimal("1.5"), gap, Decimal("2.5"), gap] * 5)
    assert isinstance(column, Numeric)
    np.testing.assert_array_equal(numbers[:4], [1.5, np.nan, 2.5, np.nan])


@pytest.mark.parametrize("huge", [np.inf, -np.inf, 10**400, -(10**400), 1e200, "1e999"])
@pytest.mark.parametrize("share", [1, 2, 20])
def test_numbers_out_of_bounds_are_faults_not_categories(huge, share):
    kind = object if isinstance(huge, int) else None  # pandas 2 infers the kind itself, and overflows
    odd = pd.Series([huge if i % share == 0 else 1.5 for i in range(20)], dtype=kind)
    frame = pd.DataFrame({"size": SIZES, "odd": odd})
    frame["kind"] = ["plain", "other"] * 10
    with pytest.raises(ValueError, match=r"row 0 of X: '.*' is not a number within bounds, as column 'odd' requires"):
        MLCA().fit(frame, [["a"]] * 20)


def test_missing_value_is_not_a_category_called_nan():
    frame = pd.DataFrame({"kind": pd.Categorical(["nan", None, "u", "None"])})
    recipe = Recipe().fit(frame)
    np.testing.assert_array_equal(recipe.transform(frame)[:, 0], [2.0, np.nan, 3.0, 1.0])


def test_categories_with_the_same_text_are_one(tmp_path):
    frame = pd.DataFrame({"kind": pd.Categorical([1, "1", 2, "2"])})
    model = MLCA().fit(frame, [["a"], ["a"], ["b"], ["b"]])
    model.save(tmp_path / "model.mlca")
    assert load(tmp_path / "model.mlca").predict_labels(frame) == model.predict_labels(frame)


def test_numpy_times_in_object_columns_are_dates_or_seconds():
    days, _ = decided([np.datetime64("2024-01-01"), np.datetime64("2024-03-02T12:00:00.5", "ns")] * 5)
    assert isinstance(days, Date)
    spans, numbers = decided([np.timedelta64(1, "h"), np.timedelta64(90, "s"), np.timedelta64("NaT")] * 5)
    assert isinstance(spans, Numeric)
    np.testing.assert_array_equal(numbers[:3], [3600.0, 90.0, np.nan])


def test_times_of_nanoseconds_are_not_numbers():
    days, _ = decided([np.datetime64(f"2024-03-{day:02}", "ns") for day in range(1, 11)])
    assert isinstance(days, Date)
    spans, numbers = decided([np.timedelta64(second, "s").astype("timedelta64[ns]") for second in (1, 90)] * 5)
    assert isinstance(spans, Numeric)
    np.testing.assert_array_equal(numbers[:2], [1.0, 90.0])


@pytest.mark.parametrize("cells", [["1_000", 3.5], [3.5, "1_000"], [3.5, np.datetime64("2024-01-01", "ns")]])
def test_non_numbers_alone_and_beside_others_are_missing(cells):
    assert plain_numbers(cells) is None
    assert numbers_among(cells).tolist() == [3.5]


def test_numbers_and_numbers_in_text_are_numbers():
    assert plain_numbers([3.5, "4", True, 2]).tolist() == [3.5, 4.0, 1.0, 2.0]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:00-05:00"])
def test_time_beyond_the_calendar_is_not_a_date(moment):
    assert as_days(moment) is None


@pytest.mark.parametrize("day", ["0001-01-01", "1969-12-31", "1970-01-05", "2024-02-29", "9999-12-31"])
def test_all_days_of_the_calendar_are_shown_as_dates(day):
    assert in_words(as_days(day)) == in_words(as_days(day) + 0.75) == day


def test_number_of_eight_digits_is_not_a_date():
    assert as_days("20240131") is None and as_days("20240131T00:00") == as_days("2024-01-31")


def test_date_with_slashes_is_read_where_the_first_rows_have_some():
    days = ["2024/02/28", "2024/2/29 12:00", "2024-03-01", "2024/02/30", "24/02/28"]
    assert [as_days(day, slashes=True) for day in days] == [19777.0, 19778.5, 19779.0, None, None]
    assert [as_days(day) for day in days] == [None, None, 19779.0, None, None]
    frame = pd.DataFrame({"day": ["2024/02/28", "2024/02/29"] * 10, "x": range(0, 40, 2)})
    date = MLCA().fit(frame, ["a", "b"] * 10)
    assert date.columns_[0].kind == "date"
    iso = frame.assign(day=frame["day"].str.replace("/", "-"))
    np.testing.assert_array_equal(date.predict_proba(iso), date.predict_proba(frame))
    np.testing.assert_array_equal(MLCA().fit(iso, ["a", "b"] * 10).predict_proba(iso), date.predict_proba(frame))
    with pytest.raises(ValueError, match="'2024/02/28' is not a date, as column 'day' requires"):
        MLCA().fit(iso, ["a", "b"] * 10).predict(frame)


def test_dates_with_slashes_stay_codes_in_the_service_and_in_files(tmp_path):
    cells = {"day": ["2024/02/28", "2024/02/29"] * 10}
    table = TableLearner(MLCA(), "missing")
    table.learn(TableRows(cells, 20), [["a"], ["b"]] * 10)
    assert table.layout.columns[0].kind == "categorical"
    model = MLCA().fit(pd.DataFrame(cells), [["a"], ["b"]] * 10)
    model.save(tmp_path / "m.mlca")
    assert load(tmp_path / "m.mlca").columns_ == model.columns_ and model.columns_[0].kind == "date"
    plain = column_to_json(Date("day", 0.0, 1.0, ()))
    assert "slashes" not in plain and not column_from_json(plain).slashes


class Nameless:
    """An object whose text is only its memory address."""


@pytest.mark.parametrize("cell", [frozenset("ab"), range(3), pd.DataFrame({"a": [1]}), Nameless(), 1j])
def test_columns_of_objects_are_left_out(cell):
    column, _ = decided([cell] * 20)
    assert isinstance(column, Ignored) and column.reason == "lists, objects or complex numbers"


def test_named_objects_are_categories():
    names = [PurePath("ab"[i % 2]) for i in range(20)]
    column, _ = decided(names)
    assert column == Categorical("odd", tuple(sorted({str(name) for name in names})))


@pytest.mark.parametrize("cells", [["0,957", "12,345"], ["-0,500", "7,125"], ["1,5", "12,345"]])
def test_comma_after_a_leading_zero_is_a_decimal_comma(cells):
    column, numbers = decided(cells * 10)
    assert isinstance(column, Numeric) and column.comma
    np.testing.assert_array_equal(numbers[:2], [float(cell.replace(",", ".")) for cell in cells])


@pytest.mark.parametrize("tags", ['"sea|sun"', '["sea", "sun"]'])
def test_missing_label_is_not_a_label_called_nan(tmp_path, tags):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"size": 1, "tags": {cell}}}\n' for cell in ("NaN", tags, "null", '""')))
    with ByteStream(str(path)) as stream:
        source = open_source(stream)
        rows = [cells for _, cells in source.rows()]
    labels = LabelReader(decide_labels(source, rows, "tags", None), source.columns)
    assert [labels.read(cells) for cells in rows] == [[], ["sea", "sun"], [], []]


def read_all(path):
    with ByteStream(path) as stream:
        source = open_source(stream)
        return source, [row for _, row in source.rows()]


@pytest.mark.parametrize(
    ("separator", "cells", "problem"),
    [
        (None, [{"sea": True, "sun": False}], "the labels {'sea': True, 'sun': False} are not a list"),
        ("|", [{"sea": True}], "the labels {'sea': True} are not a list"),
    ],
)
def test_brackets_are_not_part_of_labels(tmp_path, separator, cells, problem):
    """An earlier version learned objects as labels such as "{'sea': True"."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": 1, "tags": cell}) + "\n" for cell in cells))
    source, rows = read_all(path)
    read = LabelReader(decide_labels(source, rows, "tags", separator), source.columns).read
    assert [read(row).problem[: len(problem)] for row in rows] == [problem] * len(cells)


def test_lists_are_read_beside_text_with_a_separator(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "tags": "sea|sun"}\n{"x": 2, "tags": ["sea", "sun"]}\n{"x": 3, "tags": "[\'sea\']"}\n')
    source, rows = read_all(path)
    read = LabelReader(decide_labels(source, rows[:1], "tags", None), source.columns).read
    assert [read(row) for row in rows] == [["sea", "sun"], ["sea", "sun"], ["sea"]]


def test_blank_name_is_not_a_label(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "tags": ["sea", ""]}\n{"x": 2, "tags": ["  "]}\n')
    source, rows = read_all(path)
    read = LabelReader(decide_labels(source, rows, "tags", None), source.columns).read
    assert [read(row) for row in rows] == [["sea"], []]


ODD_VECTORS = {
    "no axis": np.array(1.5),
    "two axes": np.ones((2, 2)),
    "empty": [],
    "empty array": np.empty(0),
    "short": [1.0],
    "long": [1.0, 2.0, 3.0, 4.0],
    "missing number": [1.0, None, 2.0],
    "not a number": [1.0, np.nan, 2.0],
    "infinite": np.array([np.inf, 0.0, 1.0]),
    "too large": [1e151, 0.0, 1.0],
    "many digits": [10**400, 0, 1],
    "text": ["a", "b", "c"],
    "nested": [[1.0], [2.0], [3.0]],
    "ragged": [[1.0], 2.0, [3.0, 4.0]],
    "bits": [True, False, True],
    "complex": np.array([1j, 0, 1]),
    "objects": np.array([1.0, object(), None], dtype=object),
    "times": np.array(["2024-01-01"] * 3, dtype="M8[D]"),
    "records": np.zeros(3, dtype=[("a", "f8")]),
    "dict": {"a": 1.0, "b": 2.0, "c": 3.0},
    "set": {1.0, 2.0, 3.0},
    "text of a list": "[1.0, 2.0, 3.0]",
    "a number": 7.0,
}


@pytest.mark.parametrize("kinds", [None, {"embedding": "vector"}], ids=["found", "set"])
@pytest.mark.parametrize("odd", ODD_VECTORS)
def test_odd_vectors_are_faults_with_their_place(odd, kinds):
    vectors = [[float(i), 1.0, -float(i)] for i in range(30)]
    frame = pd.DataFrame({"embedding": pd.Series(vectors, dtype=object), "size": SIZES + SIZES[:10]})
    y = [["a"], ["b"]] * 15
    model = MLCA(columns=kinds).fit(frame, y)
    before = model.predict_proba(frame)
    more = frame[:2].copy()
    more.at[1, "embedding"] = ODD_VECTORS[odd]
    for use in (model.predict, model.explain, lambda rows: model.partial_fit(rows, y[:2])):
        with pytest.raises(ValueError, match=r"row [01] of X: .* is not a list of 3 numbers within bounds"):
            use(more[1:] if use == model.explain else more)
    np.testing.assert_array_equal(model.predict_proba(frame), before)
    # If odd vectors are among the first rows, the table is learned or rejected.
    for n_odd in (1, 15, 30):
        first = frame.copy()
        for row in range(n_odd):
            first.at[row, "embedding"] = ODD_VECTORS[odd]
        try:
            learned = MLCA(columns=kinds).fit(first, y)
        except ValueError:
            continue
        assert learned.predict_proba(first).shape == (30, 2)


def test_vectors_of_many_lengths_are_rejected_in_time_that_grows_with_them():
    cells = [[0.0] * (1 + row % 997) for row in range(3000)]
    frame = pd.DataFrame({"embedding": pd.Series(cells, dtype=object), "size": SIZES * 150})
    with pytest.raises(ValueError, match="column 'embedding' holds no lists of numbers of equal length"):
        MLCA(columns={"embedding": "vector"}).fit(frame, [["a"]] * 3000)

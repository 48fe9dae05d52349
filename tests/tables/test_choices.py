"""Inference of columns and labels from the first rows, and conversion of cells to numbers."""

import tracemalloc

import numpy as np
import pytest

from mlca.cli.tablefiles import FORMATS
from mlca.limits import TEXT_FEATURES
from mlca.tables.batches import TableFile
from mlca.tables.byte_streams import ByteStream
from mlca.tables.cells import as_text, plain_numbers
from mlca.tables.columns import ColumnSettings
from mlca.tables.encoding import encode_growing
from mlca.tables.formats import READERS, open_source
from mlca.tables.kinds import Boolean, Categorical, Date, Ignored, Numeric, OneHot, Text
from mlca.tables.layout import LabelLayout, TableLayout


@pytest.fixture
def layout_of(tmp_path):
    def decide(content, labels="tags", separator=None, **settings):
        (tmp_path / "file").write_text(content)
        with ByteStream(str(tmp_path / "file")) as stream:
            return TableFile(open_source(stream)).decide_layout(labels, separator, ColumnSettings(**settings))

    return decide


def table(columns):
    """A CSV of the columns, given by name, with a column of tags."""
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join([*columns, "tags"]), *(",".join([*cells, "t"]) for cells in rows)])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", " 2.5 ", "1e3", "?", "", "NaN", "-4"], Numeric("x")),
        (["1"] * 18 + ["9", "oops"], Numeric("x")),
        (["1"] * 8 + ["oops", "no"], Categorical("x", ("1", "no", "oops"))),
        (["b", "a", "a", "null", "N/A"], Categorical("x", ("a", "b"))),
        (["1_000", "2_000", "1_000"], Categorical("x", ("1_000", "2_000"))),
        (["", "?", "na"], Ignored("x", "no value in the first rows")),
        ([f"id{i}" for i in range(9)], Categorical("x", tuple(f"id{i}" for i in range(9)))),
        (
            [f"id{i}" for i in range(10)],
            Ignored("x", "an id: all 10 values differ; to learn it, declare it text"),
        ),
        ([str(7 * i) for i in range(10)], Numeric("x")),
        (
            [str(7 + i) for i in range(10)],
            Ignored("x", "an id: all 10 numbers differ; to learn it, declare it numeric"),
        ),
        (["true", "False", "", "true"], Boolean("x")),
        (["yes", "no"] * 5, Boolean("x")),
        (["2024-01-01", "2024-01-03", "", "2024-01-02"], Date("x", 19720.0, (2 / 3) ** 0.5, ("week",))),
        (["2024/1/01", "2024/01/03 ", "", "2024/01/02"], Date("x", 19720.0, (2 / 3) ** 0.5, ("week",), slashes=True)),
        (["01/02/2024"] * 4, Categorical("x", ("01/02/2024",))),
        ([f"the printer number {i} is broken" for i in range(20)], Text("x", TEXT_FEATURES)),
        (["1;5", "2"], Categorical("x", ("1;5", "2"))),
        (["out of toner", "no wifi here"] * 10, Categorical("x", ("no wifi here", "out of toner"))),
        (["the printer is out of toner", "no wifi in my room"] * 10, Text("x", TEXT_FEATURES)),
        (["非常紧急", "不紧急"] * 10, Categorical("x", ("不紧急", "非常紧急"))),
        (["打印机没有墨粉了需要更换", "会议室没有无线网络"] * 10, Text("x", TEXT_FEATURES)),
        ([f"id{i % 100:02}" for i in range(300)], Categorical("x", tuple(f"id{i:02}" for i in range(100)))),
        ([f"id{i % 101}" for i in range(300)], Categorical("x", tuple(sorted(f"id{i}" for i in range(101))), 100_000)),
        ([f"{i % 101} to {i % 7}" for i in range(300)], Text("x", TEXT_FEATURES)),
    ],
)
def test_kind_of_a_column_is_detected_from_its_cells(layout_of, cells, expected):
    layout = layout_of(table({"x": cells, "other": ["1"] * len(cells)}))
    assert layout.columns[0] == expected


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas_are_recognised(layout_of, delimiter):
    rows = [["x", "y", "tags"], ["1,5", "1.234,5", "a"], ["2", "12,25", "b"], ["", "-,5", "a"]]
    layout = layout_of("\n".join(delimiter.join(cells) for cells in rows))
    assert layout.columns == (Numeric("x", comma=True), Numeric("y", comma=True))


def test_ambiguous_decimal_or_thousands_is_rejected(layout_of):
    content = "x;tags\n1,234;a\n5,678;b\n"
    with pytest.raises(ValueError, match=r"column 'x' holds '1,234'.*--decimal"):
        layout_of(content)
    assert layout_of(content, decimal=",").columns == (Numeric("x", comma=True),)


def test_point_is_not_a_decimal_separator_beside_commas(layout_of):
    assert layout_of("x;tags\n1.234;a\n5.678;b\n", decimal=",").columns == (Numeric("x", comma=True),)


def test_numbers_beside_text_are_scaled(layout_of):
    texts = [f"the {i}th ticket about {i % 7} things" for i in range(20)]
    layout = layout_of(table({"x": [str(5 * i % 11) for i in range(20)], "note": texts}))
    number, text = layout.columns
    assert layout.sparse and text == Text("note", TEXT_FEATURES)
    values = np.array([5 * i % 11 for i in range(20)])
    assert (number.centre, number.spread) == pytest.approx((values.mean(), values.std()))


@pytest.mark.parametrize(
    ("cells", "form", "separator"),
    [
        (["a|b", "c", ""], "separated", "|"),
        (["a;b", "c;d", "e|f"], "separated", ";"),
        (["a b", "c"], "separated", None),
        (["0", "1", "0"], "flags", None),
        (["0", "1", "2"], "separated", None),
        (["0", "1"] * 10 + ["oops"], "flags", None),
        (["['a' 'b']", "[]"], "lists", None),
        (["{'a'}", "set()"], "lists", None),
    ],
)
def test_form_and_separator_of_labels_are_detected(layout_of, cells, form, separator):
    labels = layout_of("x,tags\n" + "".join(f"1,{cell}\n" for cell in cells)).labels
    assert (labels.form, labels.separator) == (form, separator)


def test_given_separator_is_used(layout_of):
    assert layout_of("x,tags\n1,a|b c\n", separator=" ").labels.separator == " "


def test_labels_are_stripped(tmp_path):
    (tmp_path / "a.csv").write_text("x,tags\n1, a | b||\n2,|\n")
    with ByteStream(str(tmp_path / "a.csv")) as stream:
        file = TableFile(open_source(stream))
        batch = next(file.batches(file.decide_layout("tags", None, ColumnSettings()), pytest.fail))
    assert batch.labels == [("a", "b"), ()]


@pytest.mark.parametrize(
    ("values", "words"), [([0, 1], "red"), ([0.29, 0.71], "red 71%"), ([0.9, 0.1], "blue 90%"), ([0, 0], "other")]
)
def test_one_hot_values_are_shown_as_text(values, words):
    assert OneHot("colour", ("blue", "red")).in_words(np.array(values, dtype=float)) == words


@pytest.mark.parametrize(("code", "words"), [(2, "red"), (1, "blue"), (-1, "other"), (np.nan, "missing")])
def test_category_codes_are_shown_as_text(code, words):
    assert Categorical("colour", ("blue", "red")).in_words(np.array([code], dtype=float)) == words


def test_after_a_thousand_values_the_rest_is_one_category():
    layout = TableLayout((Categorical("x", ("v0", "v1")),))
    cells = {"x": [f"v{i}" for i in range(1500)]}
    parts, remarks = encode_growing(layout, cells, 1500)
    assert len(parts) == 1 and parts[0].X[:, 0].tolist() == [*range(1, 1001), *[-1] * 500]
    assert list(remarks.unseen["x"]) == list(range(1000, 1500))


def test_the_command_line_offers_every_format():
    assert set(FORMATS) == set(READERS)


def test_many_new_categories_do_not_fill_the_memory(tmp_path):
    (tmp_path / "a.csv").write_text("x,tags\n" + "".join(f"v{i},a\n" for i in range(3000)))
    layout = TableLayout((Categorical("x", ("v0", "v1")),), LabelLayout("separated", ("tags",), "|"))
    with ByteStream(str(tmp_path / "a.csv")) as stream:
        file = TableFile(open_source(stream))
        assert sum(len(batch.numbers) for batch in file.batches(layout, pytest.fail)) == 3000
    assert len(file.unseen) == 1001
    assert (file.unseen["x=v2"], file.unseen["x=..."]) == (1, 1998)


def test_label_column_name_may_contain_a_comma(layout_of):
    labels = layout_of('x,"tags, all"\n1,a|b\n', labels="tags, all").labels
    assert labels.columns == ("tags, all",)


def test_fast_path_of_a_column_equals_the_slow_one():
    words = ["1", "-2.5e3", " 7 ", "0.1"]
    np.testing.assert_array_equal(plain_numbers(words), [1, -2500, 7, 0.1])
    for odd in ("", "1_0", "nan", "inf", "1e200", "x", None):
        assert plain_numbers([*words, odd]) is None


@pytest.mark.parametrize(("cell", "text"), [(" a ", "a"), (3, "3"), (3.0, "3"), (2.5, "2.5"), (True, "true")])
def test_text_is_the_same_from_all_formats(cell, text):
    assert as_text(cell) == text


def peak_of_reading(path):
    """Return the peak memory of reading a file in batches."""
    tracemalloc.start()
    with ByteStream(str(path)) as stream:
        file = TableFile(open_source(stream))
        layout = file.decide_layout("tags", None, ColumnSettings())
        n_rows = sum(len(batch.numbers) for batch in file.batches(layout, pytest.fail))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return n_rows, peak


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 1000)
    (tmp_path / "short.csv").write_text("x,tags\n" + "1.5,a|b\n" * 4000)
    (tmp_path / "long.csv").write_text("x,tags\n" + "1.5,a|b\n" * 40_000)
    n_short, short = peak_of_reading(tmp_path / "short.csv")
    n_long, long = peak_of_reading(tmp_path / "long.csv")
    assert (n_short, n_long) == (4000, 40_000)
    assert long < 1.2 * short


def test_progress_follows_the_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 10_000)
    (tmp_path / "a.csv").write_text("x,tags\n" + "1.5,a\n" * 5000)
    with ByteStream(str(tmp_path / "a.csv")) as stream:
        file = TableFile(open_source(stream))
        layout = file.decide_layout("tags", None, ColumnSettings())
        fractions = [file.fraction() for _ in file.batches(layout, pytest.fail)]
    assert fractions == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])

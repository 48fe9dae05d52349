"""Labels are read as intended or rejected, never guessed."""

from __future__ import annotations

import warnings
from enum import Enum
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA, labels_from
from mlca.targets import LabelSet, exact_share, read_targets, read_truth
from mlca.targets.text import list_in_text

pytestmark = pytest.mark.traced

NAMES = [["sea"], ["sea", "sun"], []]
INDICATOR = np.array([[1, 0], [1, 1], [0, 0]])

# Forms of y, each with the form that the label set keeps.
FORMS = {
    "names": (NAMES, "names"),
    "sets": ([set(row) for row in NAMES], "names"),
    "numbers as names": ([[3], [3, 7], []], "names"),
    "Series of lists": (pd.Series(NAMES), "names"),
    "array": (INDICATOR, "indicator"),
    "nested lists": (INDICATOR.tolist(), "indicator"),
    "sparse": (sparse.csr_array(INDICATOR), "indicator"),
    "frame": (pd.DataFrame(INDICATOR), "indicator"),
    "one column": (INDICATOR[:, :1], "indicator"),
    "classes": (["sea", "sun", "sea"], None),
    "numbers": (np.array([3, 7, 3]), None),
}


def rows_of(y, known=None, classes=None):
    labels, rows = read_targets(y, known, classes)
    ends = rows.indptr.tolist()
    return labels, [[labels.names[j] for j in rows.indices[a:b]] for a, b in pairwise(ends)]


class TestFormOfTheFirstBatch:
    @pytest.mark.parametrize("first", FORMS)
    def test_form_of_the_first_batch_is_kept(self, first):
        y, form = FORMS[first]
        labels, rows = read_targets(y)
        assert (labels.form, labels.single) == (form, form is None)
        again, rows_again = read_targets(y, labels)
        assert again == labels
        assert rows_again.indices.tolist() == rows.indices.tolist()

    @pytest.mark.parametrize("second", FORMS)
    @pytest.mark.parametrize("first", FORMS)
    def test_other_form_is_rejected_with_a_remedy(self, first, second):
        (y, form), (z, other) = FORMS[first], FORMS[second]
        # scikit-learn reads a column of numbers as a 1-D y, the form that the model has learned.
        if form == other or (first, second) == ("numbers", "one column"):
            return
        labels, _ = read_targets(y)
        with pytest.raises(ValueError, match=r"learned|rows of 0 and 1|use one type"):
            read_targets(z, labels)

    def test_lists_of_0_and_1_are_names_after_names(self):
        labels, _ = read_targets([[3, 1], [0]])
        assert rows_of([[0, 1], [1, 0]], labels)[1] == [[1, 0], [1, 0]]

    def test_lists_of_0_and_1_are_not_names_after_text(self):
        labels, _ = read_targets(NAMES)
        with pytest.raises(ValueError, match=r"names such as \['sea'\].*classes_"):
            read_targets([[0, 1], [1, 0]], labels)

    @pytest.mark.parametrize("y", [pd.Series([1, None], dtype="Int64"), np.array([1.0, np.nan]), ["sea", None]])
    def test_missing_value_is_not_a_class_in_a_later_batch(self, y):
        with pytest.raises(ValueError, match=r"row 1 of y is .*NaN.*leave such rows out"):
            read_targets(y)

    def test_a_column_of_classes_stays_one(self):
        labels, _ = read_targets(np.array([[0], [2]]))
        with pytest.warns(match="1d array"):
            assert read_targets(np.array([[0], [1]]), labels)[0].single

    def test_label_set_of_an_old_file_accepts_any_form(self):
        old = LabelSet(("sea", "sun"))
        assert rows_of(NAMES, old) == (LabelSet(("sea", "sun"), form="names"), NAMES)
        assert rows_of(INDICATOR, old)[0].form == "indicator"

    def test_suggested_remedies_work(self):
        classes = np.array(["sea", "sun"])
        assert rows_of([set(classes[row == 1]) for row in INDICATOR])[1] == NAMES
        assert rows_of([[name] for name in ["sea", "sun"]])[1] == [["sea"], ["sun"]]
        single, _ = read_targets(["sea", "sun"])
        with pytest.raises(ValueError, match=r"such as \[name for name, in y\]"):
            read_targets([["sea"], ["sun"]], single)
        assert rows_of([name for (name,) in [["sea"], ["sun"]]], single)[1] == [["sea"], ["sun"]]
        with pytest.raises(ValueError, match=r"such as model.classes_\[y.argmax\(axis=1\)\]"):
            read_targets(np.eye(2), single)
        assert rows_of(classes[np.eye(2).argmax(axis=1)], single)[1] == [["sea"], ["sun"]]


class TestAmbiguity:
    @pytest.mark.parametrize(
        "y",
        [
            [[0], [1]],
            [[1], [1]],
            [np.array([0]), np.array([1])],
            pd.Series([[0], [1]]),
            [(0, 0, 1), (1, 0, 1)],
            [(0, 1), (1, 0)],
        ],
    )
    def test_rows_that_may_be_names_or_indicators_are_rejected(self, y):
        with pytest.raises(ValueError, match=r"ambiguous.*np\.array\(y\).*set\(row\) for row in y"):
            read_targets(y)

    def test_message_shows_both_spellings(self):
        y = [[0], [1], [1]]
        assert rows_of(np.array(y))[1] == [[], [0], [0]]
        assert rows_of([set(row) for row in y])[1] == [[0], [1], [1]]

    def test_known_form_resolves_ambiguity(self):
        indicator, _ = read_targets(np.array([[0], [1]]))
        names, _ = read_targets([{0}, {5}])
        assert rows_of([[0], [1]], indicator)[1] == [[], [0]]
        assert rows_of([[0], [1]], names)[1] == [[0], [1]]

    @given(st.lists(st.lists(st.sampled_from([0, 1]), min_size=3, max_size=3), min_size=1, max_size=8))
    def test_wide_lists_of_0_and_1_are_read_as_indicator_rows(self, y):
        labels, rows = read_targets(y)
        assert labels.form == "indicator"
        assert rows.to_dense().tolist() == y


class TestFramesOfLabels:
    @pytest.mark.parametrize("name", [None, float("nan"), 1.5, np.float32(2), pd.NaT])
    def test_missing_values_and_floats_are_not_column_names(self, name):
        frame = pd.DataFrame([[1, 0], [0, 1]])
        frame.columns = pd.Index(["sea", name], dtype=object)
        with pytest.raises(ValueError, match="a column of y names a label"):
            read_targets(frame)
        for y in (["sea"], ["sun"]), np.eye(2):
            with pytest.raises(ValueError, match="`classes` names a label"):
                read_targets(y, None, ["sea", name])

    def test_whole_numbers_of_numpy_are_names(self):
        frame = pd.DataFrame([[1, 0], [0, 1]], columns=pd.Index([np.int64(3), np.int64(7)], dtype=object))
        assert rows_of(frame)[1] == [[3], [7]]

    @pytest.mark.parametrize(
        ("cell", "remedy"),
        [
            (None, "write 0 if"),
            (pd.NA, "write 0 if"),
            (["sea"], "y\\['tags'\\]"),
            ("sea", "labels_from"),
            (7, "7"),
        ],
    )
    def test_cell_other_than_0_and_1_is_rejected(self, cell, remedy):
        frame = pd.DataFrame({"sea": [1, 0, 1], "tags": pd.Series([True, cell, False], dtype=object)})
        with pytest.raises(ValueError, match=f"row 1, column 1 holds .*{remedy}"):
            read_targets(frame)


class TestNames:
    def test_trailing_nul_is_part_of_a_name(self):
        assert read_targets([["sea\0"], ["sea"]])[0].to_array().tolist() == ["sea\0", "sea"]
        labels, rows = read_targets(["sea\0", "sea", "sea\0"])  # one class per row
        assert (labels.names, rows.indices.tolist()) == (("sea", "sea\0"), [1, 0, 1])

    @pytest.mark.parametrize("form", [lambda name: name, lambda name: [name]], ids=["classes", "names"])
    def test_very_long_name_costs_its_own_length_only(self, form):
        """An array of text has room for the longest name in each place: 160 GB here."""
        names = [*(f"n{j:05}" for j in range(20_000)), "x" * 2_000_000]
        model = MLCA(max_nodes=10, decision="bayes").partial_fit(
            np.zeros((2, 1)), [form(names[0]), form(names[-1])], classes=names
        )
        assert model.classes_.tolist() == names
        assert model.predict_labels([[0.0]]) <= [{names[0]}, {names[-1]}]
        labels, rows = read_targets([form(name) for name in names])
        assert (labels.names, rows.n_rows) == (tuple(names), len(names))

    @pytest.mark.parametrize("large", [2**63, 2**63 + 1])
    def test_large_whole_numbers_stay_whole_numbers(self, large):
        names = read_targets([{5}, {large}])[0].to_array().tolist()
        assert names == [5, large]
        assert {type(name) for name in names} == {int}

    @pytest.mark.parametrize("form", [list, tuple, pd.Series])
    def test_enumeration_members_are_their_values(self, form):
        text = Enum("Tag", {"RED": "red", "REED": "reed"}, type=str)
        number = Enum("Code", {"LOW": 3, "HIGH": 7}, type=int)
        for members in (text, number):
            values = [member.value for member in members]
            labels, rows = rows_of(form([*members, *members]))
            assert (labels.names, rows) == (tuple(values), [[value] for value in values * 2])
            labels, rows = rows_of([{member, member.value} for member in members], None, classes=list(members))
            assert (labels.names, rows) == (tuple(values), [[value] for value in values])
            assert {type(name) for name in labels.names} == {type(values[0])}
            assert labels.to_array().dtype.kind in "Ui"

    def test_dict_gives_its_true_keys_as_labels(self):
        assert rows_of([{"sea": True, "sun": False}, {"sun": np.bool_(True)}, {}])[1] == [["sea"], ["sun"], []]

    @pytest.mark.parametrize("value", [1, 0.7, "yes", None])
    def test_dict_with_other_values_is_rejected(self, value):
        with pytest.raises(ValueError, match=r"row 1 of y maps the label 'sea'"):
            read_targets([{"sea": True}, {"sea": value}])

    @pytest.mark.parametrize("name", [None, float("nan"), np.nan, 1.5, np.float32(2), pd.NA, pd.NaT])
    def test_missing_values_and_floats_are_not_label_names(self, name):
        with pytest.raises(ValueError, match="row 1 of y names a label"):
            read_targets([["sea"], ["sun", name]])

    @pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
    def test_missing_value_is_not_a_row_of_names(self, gap):
        with pytest.raises(ValueError, match=r"row 1 of y is .*empty list"):
            read_targets(pd.Series([["sea"], gap]))

    @pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
    def test_missing_value_is_not_a_class(self, gap):
        with pytest.raises(ValueError, match=r"row 1 of y is .*not a class"):
            read_targets(["sea", gap, "sun"])

    def test_text_among_numbers_is_rejected(self):
        with pytest.raises(ValueError, match="y mixes 1 and '1'"):
            read_targets(["1", 1])

    def test_word_is_not_a_list_of_classes(self):
        with pytest.raises(ValueError, match=r"`classes` must list label names, not 'hot'; write \['hot'\]"):
            read_targets([["hot"]], None, classes="hot")

    def test_classes_declared_later_are_appended_and_validated(self):
        labels, _ = read_targets(NAMES, None, ["sea"])
        assert read_targets(NAMES, labels, ["sea", "sun", "snow"])[0].names == ("sea", "sun", "snow")
        with pytest.raises(ValueError, match="`classes`"):
            read_targets(NAMES, labels, ["sea", "sun", float("nan")])

    def test_late_classes_are_appended_in_order_of_appearance(self):
        labels, _ = read_targets(["m", "k"])
        later, rows = rows_of(["z", "b", "k", "z"], labels)
        assert later.names == ("k", "m", "z", "b")
        assert rows == [["z"], ["b"], ["k"], ["z"]]

    def test_numbered_labels_accept_no_column_names(self):
        numbered, _ = read_targets(INDICATOR)
        with pytest.raises(ValueError, match="to_numpy"):
            read_targets(pd.DataFrame(INDICATOR, columns=["sea", "sun"]), numbered)
        assert rows_of(pd.DataFrame(INDICATOR[:, ::-1], columns=[1, 0]), numbered)[1] == [[0], [0, 1], []]

    def test_classes_order_the_columns_of_a_frame_and_may_name_more(self):
        frame = pd.DataFrame(INDICATOR, columns=["sun", "sea"])
        labels, rows = rows_of(frame, None, ["snow", "sea"])
        assert labels.names == ("snow", "sea", "sun")
        assert rows == [[name for name in ("sea", "sun") if row[name]] for _, row in frame.iterrows()]
        # Without `classes`, later frames must have all labels; with `classes`, they may lack some.
        with pytest.raises(ValueError, match="lacks the columns of known labels"):
            read_targets(frame, labels)
        again, rows_again = rows_of(frame[["sea", "sun"]], labels, ["snow"])
        assert (again.names, rows_again) == (labels.names, rows)
        with pytest.raises(ValueError, match="`classes`"):
            read_targets(frame, None, [0.5])


class TestText:
    def test_joined_names_warn_once(self):
        with pytest.warns(UserWarning, match=r"'a,b'.*labels_from\(y, sep=','\)"):
            labels, _ = read_targets(["a,b", "a"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_targets(["a,b", "b,c"], labels)
            read_targets(["a", "b"])

    def test_lists_converted_to_text_are_rejected(self):
        with pytest.raises(ValueError, match="labels_from"):
            read_targets(["['a', 'b']", "[]"])

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            (["sea, sun", "", None, np.nan, pd.NA], [("sea", "sun"), (), (), (), ()]),
            ([["sea"], ("sea", "sun"), np.array(["sun"]), 5], [("sea",), ("sea", "sun"), ("sun",), (5,)]),
            (pd.Series(["['sea', 'sun']", "[]"]), [("sea", "sun"), ()]),
        ],
    )
    def test_labels_from_splits_cells(self, column, expected):
        assert labels_from(column) == expected

    def test_labels_from_rejects_values_that_are_not_labels(self):
        with pytest.raises(ValueError, match=r"row 1 of the column is 1\.5"):
            labels_from(["sea", 1.5])
        with pytest.raises(ValueError, match="sep is empty"):
            labels_from(["sea"], sep="")

    def test_labels_from_rejects_a_single_text(self):
        with pytest.raises(ValueError, match=r"got the string 'sea,sun': for a single row write \[text\]"):
            labels_from("sea,sun")

    @given(st.lists(st.text(max_size=6), max_size=5))
    def test_lists_written_by_pandas_and_numpy_are_read(self, names):
        assert list_in_text(str(names)) == names
        assert list_in_text(str(tuple(names))) == names
        assert list_in_text(str(set(names))) == sorted(set(names), key=repr)
        assert list_in_text(str(np.array(names, dtype=object)).replace("\n", "")) == names

    @pytest.mark.parametrize(
        "text", ["sea", "[sea]", "[1, 2", "{'a': 1}", "(((((", "['a' + 'b']", "[__import__('os')]", ""]
    )
    def test_text_that_is_not_a_list_is_not_split(self, text):
        assert list_in_text(text) is None

    def test_printed_array_of_numbers_is_parsed(self):
        assert list_in_text(str(np.array([3, 10, -2]))) == [3, 10, -2]


class TestExactMatch:
    KNOWN = LabelSet(("sea", "sun"), form="names")

    @pytest.mark.parametrize(
        "y",
        [
            NAMES,
            INDICATOR,
            INDICATOR.tolist(),
            sparse.csr_array(INDICATOR),
            pd.DataFrame(INDICATOR[:, ::-1], columns=["sun", "sea"]),
            pd.Series(NAMES, index=[5, 3, 1]),
            [{"sea": True}, {"sea": True, "sun": True}, {"sun": False}],
        ],
        ids=["names", "array", "lists", "sparse", "shuffled frame", "Series", "dicts"],
    )
    @pytest.mark.parametrize("form", ["names", "indicator", None])
    def test_any_form_of_the_truth_is_accepted(self, y, form):
        predicted = np.array([[1, 0], [0, 1], [0, 0]])
        assert exact_share(y, LabelSet(("sea", "sun"), form=form), predicted) == pytest.approx(2 / 3)

    def test_unknown_label_counts_as_missed(self):
        predicted = np.array([[1, 0], [0, 1]])
        assert exact_share([["sea", "wind"], ["sun"]], self.KNOWN, predicted) == 0.5
        assert exact_share([["sea", "wind"], ["sun"]], self.KNOWN, predicted, weights=[3, 1]) == 0.25

    @pytest.mark.parametrize("weights", [[1], [[1, 1]], [0, 0], [-1, 2], [np.nan, 1]])
    def test_invalid_weights_are_rejected(self, weights):
        with pytest.raises(ValueError, match="sample_weight"):
            exact_share([["sea"], ["sun"]], self.KNOWN, np.eye(2), weights=weights)

    def test_share_of_correct_classes_is_exact(self):
        known = LabelSet(("sea", "sun"), single=True)
        assert exact_share(["sun", "wind", "sea"], known, np.array(["sun", "sun", "sea"])) == pytest.approx(2 / 3)
        with pytest.raises(ValueError, match="X has 2 rows but y has 3"):
            exact_share(["sun", "wind", "sea"], known, np.array(["sun", "sun"]))

    def test_frame_without_a_known_label_is_rejected(self):
        with pytest.raises(ValueError, match=r"lacks the columns of known labels \['sun'\]"):
            exact_share(pd.DataFrame({"sea": [1, 0]}), self.KNOWN, np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ({"sea": 1}, None, r"y must hold one entry per row, .* got the dict .*write \[y\]"),
        ("sea", None, r"y must hold one entry per row, .* got the str 'sea': for a single row write \[\['sea'\]\]"),
        (pd.DataFrame(INDICATOR, columns=["sea", "sea"]), None, "two columns of the same name"),
        (INDICATOR, ["sea"], "y has 2 columns but `classes` names 1 labels; name them all"),
        (NAMES, [["sea"], ["sun"]], "`classes` must list hashable label names"),
        (NAMES, ["sea", "sun", "sea"], "`classes` names a label twice"),
    ],
)
def test_invalid_targets_are_rejected_by_name(y, classes, message):
    with pytest.raises(ValueError, match=message):
        read_targets(y, None, classes)


class TestClassesOfAnIndicatorMatrix:
    KNOWN = read_targets(INDICATOR, None, ["sea", "sun", "wind"])[0]

    def test_same_call_can_be_repeated(self):
        labels, rows = read_targets(INDICATOR, self.KNOWN, ["sea", "sun", "wind"])
        assert labels.names == ("sea", "sun", "wind") and rows.indices.tolist() == [0, 0, 1]
        with pytest.raises(ValueError, match="y has 2 columns, but 3 labels are known"):
            read_targets(INDICATOR, self.KNOWN)

    @pytest.mark.parametrize("classes", [["sun", "sea", "wind"], ["sun", "wind"]])
    def test_reordered_columns_are_not_confused_with_the_known_ones(self, classes):
        with pytest.raises(ValueError, match="`classes` must begin with the known labels"):
            read_targets(INDICATOR, self.KNOWN, classes)


class TestTables:
    """The columns of a table are labels by name, for all libraries and all types of names."""

    def test_arrow_tables_are_matched_by_name(self):
        table = pa.table({"sea": INDICATOR[:, 0], "sun": INDICATOR[:, 1]})
        labels, rows = rows_of(table)
        assert (labels.names, rows) == (("sea", "sun"), NAMES)
        assert rows_of(table.select(["sun", "sea"]), labels) == (labels, NAMES)

    @pytest.mark.parametrize("n_rows", [2, 3])
    def test_labels_called_true_and_false_are_not_a_mask(self, n_rows):
        labels, rows = rows_of(pd.DataFrame(INDICATOR[:n_rows], columns=[True, False]))
        assert labels.names == (True, False)
        assert rows == [[True], [True, False], []][:n_rows]


@pytest.mark.parametrize("y", [INDICATOR, np.array([3, 7, 3])])
def test_masked_labels_are_rejected(y):
    with pytest.raises(ValueError, match="y has masked cells"):
        read_targets(np.ma.masked_equal(y, y.max()))
    assert read_targets(np.ma.asarray(y))[0] == read_targets(y)[0]


def test_sparse_y_with_a_column_out_of_range_is_rejected():
    y = sparse.csr_array(INDICATOR)
    y.indices[0] = 10_000
    with pytest.raises(ValueError, match="must be < 2"):
        read_targets(y)


def test_duplicate_cells_of_a_sparse_y_are_summed():
    y = sparse.csr_array((np.ones(4), [0, 0, 1, 0], [0, 2, 4]))
    with pytest.raises(ValueError, match=r"row 0, column 0 holds 2\.0"):
        read_targets(y)


def test_sparse_y_is_not_modified():
    y = sparse.csr_array((np.array([1, 0, 1]), [1, 0, 1], [0, 2, 3]))
    assert rows_of(y)[1] == [[1], [1]]
    assert y.data.tolist() == [1, 0, 1] and y.indices.tolist() == [1, 0, 1] and y.nnz == 3


def test_invalid_truth_is_rejected_like_targets():
    with pytest.raises(ValueError, match="one entry per row"):
        read_truth("sea", LabelSet(("sea", "sun")))

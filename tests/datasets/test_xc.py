"""Text files of the Extreme Classification repository."""

import bz2
import gzip
import re

import numpy as np
import pytest

from mlca.datasets import read_xc

TEXT = "4 3 2\n0,1 0:0.5 2:-1e1\n1 1:2\n 0:3.0\n0\n"
X = [[0.5, 0, -10], [0, 2, 0], [3, 0, 0], [0, 0, 0]]
Y = [[1, 1], [0, 1], [0, 0], [1, 0]]


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_zero_based_file_is_read_as_sparse_matrices(write):
    table = read_xc(write(TEXT))
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.Y.toarray(), Y)
    assert (table.X.dtype, table.Y.dtype) == (np.float64, np.uint8)
    assert table.feature_names is table.label_names is table.categorical is table.split is None


def test_one_based_numbering_is_detected_or_declared(write):
    from_one = "4 3 2\n1,2 1:0.5 3:-1e1\n2 2:2\n 1:3.0\n1\n"
    for table in (read_xc(write(from_one)), read_xc(write(from_one), one_based=True)):
        np.testing.assert_array_equal(table.X.toarray(), X)
        np.testing.assert_array_equal(table.Y.toarray(), Y)


def test_numbering_is_detected_separately_for_features_and_labels(write):
    table = read_xc(write("2 2 2\n1 0:5\n2 1:6\n"))
    np.testing.assert_array_equal(table.X.toarray(), [[5, 0], [0, 6]])
    np.testing.assert_array_equal(table.Y.toarray(), [[1, 0], [0, 1]])


def test_ambiguous_numbering_of_labels_follows_that_of_features(write):
    table = read_xc(write("1 3 3\n1 1:5 3:6\n"))
    np.testing.assert_array_equal(table.X.toarray(), [[5, 0, 6]])
    np.testing.assert_array_equal(table.Y.toarray(), [[1, 0, 0]])


def test_undetectable_numbering_starts_at_zero(write):
    table = read_xc(write("1 3 3\n1 1:5\n"))
    np.testing.assert_array_equal(table.X.toarray(), [[0, 5, 0]])
    np.testing.assert_array_equal(table.Y.toarray(), [[0, 1, 0]])


def test_blank_line_is_a_row_except_at_the_end(write):
    table = read_xc(write("2 1 1\n\n0 0:1\n\n\n"))
    np.testing.assert_array_equal(table.X.toarray(), [[0], [1]])


def test_order_of_cells_does_not_matter(write):
    table = read_xc(write("1 3 3\n2,0 2:3 0:1\n"))
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0, 3]])
    np.testing.assert_array_equal(table.Y.toarray(), [[1, 0, 1]])
    assert table.X.has_canonical_format


def test_same_column_in_adjacent_cells_of_two_rows_is_not_a_duplicate(write):
    table = read_xc(write("3 3 1\n 2:3 0:1\n\n 2:5\n"))
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0, 3], [0, 0, 0], [0, 0, 5]])


def test_file_without_cells_gives_empty_matrices(write):
    table = read_xc(write("2 3 2\n\n\n"))
    assert (table.X.shape, table.Y.shape) == ((2, 3), (2, 2))
    assert (table.X.dtype, table.Y.dtype) == (np.float64, np.uint8)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed_file_is_read(tmp_path, suffix, pack):
    path = tmp_path / f"data.txt{suffix}"
    path.write_bytes(pack(TEXT.encode()))
    np.testing.assert_array_equal(read_xc(path).X.toarray(), X)


@pytest.mark.parametrize(
    ("train", "test"),
    [("1\n3\n4\n", "2\n"), ("0\n2\n3\n", "1\n"), ("1 9 9\n3 9 9\n4 9 9\n\n", " 2\n"), ("1\n3\n4", "2")],
)
def test_split_files_count_from_one_unless_a_zero_occurs(write, train, test):
    table = read_xc(write(TEXT), train_split=write(train, "train"), test_split=write(test, "test"))
    np.testing.assert_array_equal(table.split[0], [0, 2, 3])
    np.testing.assert_array_equal(table.split[1], [1])


@pytest.mark.parametrize(
    ("train", "test", "problem"),
    [
        ("1\nx\n", "2\n", "train, line 2: 'x' is not a row number"),
        ("1\n-3\n", "2\n", "train, line 2: '-3' is not a row number"),
        ("1\n", "2\n5\n", "test, line 2: row 5 is out of range; the data have 4 rows"),
        ("1\n2\n", "2\n", "test, line 1: row 2 occurs twice"),
        ("1\n2\n1\n", "3\n", "train, line 3: row 1 occurs twice"),
        ("0\n", "4\n", "train, line 1: rows 0 and 4 both occur"),
    ],
)
def test_invalid_split_files_are_rejected(write, train, test, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_xc(write(TEXT), train_split=write(train, "train"), test_split=write(test, "test"))


def test_split_files_are_passed_in_pairs(write):
    with pytest.raises(ValueError, match="pass both train_split and test_split, or neither"):
        read_xc(write(TEXT), train_split=write("1\n", "train"))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is empty"),
        ("\n", 1, "expected three numbers"),
        ("0,1 0:1\n", 1, "expected three numbers"),
        ("1 2 9999999999\n0 0:1\n", 1, "more than 2147483647"),
        ("3 3 2\n0 0:1\n1 1:1\n", 3, "declares 3 rows, but there are 2"),
        ("1 3 2\n0 0:1\n1 1:1\n", 3, "declares 1 rows"),
        ("2 3 2\n0 0:1\n0 3:1 0:2\n", 3, "attribute 3 is out of range; the header declares 3"),
        ("2 3 2\n0 0:1\n0 4:1\n", 3, "attribute 4 is out of range; the header declares 3"),
        ("2 3 2\n0 0:1\n0,2 1:1\n", 3, "label 2 is out of range; the header declares 2"),
        ("1 3 2\n0 0:1 0:2\n", 2, "attribute 0 occurs twice"),
        ("1 3 2\n0,0 0:1\n", 2, "label 0 occurs twice"),
        ("1 3 2\n0 0:1:2 1\n", 2, "expected labels"),
        ("1 3 2\n0 0:1,1:2\n", 2, "expected labels"),
        ("1 3 2\n0 1 0:1\n", 2, "expected labels"),
        ("1 3 2\n0 0:nan\n", 2, "expected labels"),
        ("1 3 2\n0 -1:2\n", 2, "expected labels"),
        ("1 3 2\n0 0:1e\n", 2, "not a number"),
        ("1 3 2\n0 99999999999:1\n", 2, "attribute 99999999999 is too large"),
        ("1 3 2\n0 0:1e999\n", 2, "infinite"),
    ],
)
def test_errors_name_file_line_and_problem(write, text, line, problem):
    path = write(text)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}, line {line}: .*{re.escape(problem)}"):
        read_xc(path)


def test_zero_in_a_file_numbered_from_one_is_rejected(write):
    with pytest.raises(ValueError, match=r"line 2: attribute 0 is out of range; .* 3, numbered from 1"):
        read_xc(write("1 3 2\n1 0:1\n"), one_based=True)

"""ARFF files as written by Mulan and MEKA, and error messages for invalid ones."""

import bz2
import gzip
import re

import numpy as np
import pytest
from scipy import sparse

from mlca.datasets import read_arff, read_meka, read_mulan, read_mulan_xml

DENSE = """% a comment
@RELATION 'flowers and \\'fruit\\''

@Attribute "petal length" REAL
@attribute\tcolour\t{red, 'dark blue', "it's"}  % trailing remark
@attribute count INTEGER
@attribute 'Stellar\\'s Jay' {YES, NO}
@attribute sweet {0,1}
@attribute sour {1, 0}
@DATA
% another comment
1.5, red, 3, NO, 1, 0

-2e-1,'dark blue',?,YES,0,1
?,"it's", 7 , ? ,1,1
"""

SPARSE = """@relation words
@attribute a {0,1}
@attribute b numeric
@attribute c {none, some, 'very many'}
@attribute y {0,1}
@attribute z {0, 1}
@data
{0 1, 1 2.5, 3 1}
{}
{ 2 'very many' , 4 1 }
{1 ?,0 0}
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.arff"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_dense_file_is_read_with_names_categories_and_missing_values(write):
    table = read_arff(write(DENSE), labels=["sour", "sweet"])
    nan = np.nan
    np.testing.assert_array_equal(table.X, [[1.5, 0, 3, 0], [-0.2, 1, nan, 1], [nan, 2, 7, nan]])
    assert table.X.dtype == np.float64
    assert table.feature_names == ("petal length", "colour", "count", "Stellar's Jay")
    np.testing.assert_array_equal(table.categorical, [False, True, False, True])
    assert table.categories == {"colour": ("red", "dark blue", "it's"), "Stellar's Jay": ("NO", "YES")}
    assert table.label_names == ("sweet", "sour")  # the order of the file, not of the request
    np.testing.assert_array_equal(table.Y.toarray(), [[1, 0], [0, 1], [1, 1]])
    assert table.Y.dtype == np.uint8
    assert table.split is None


def test_sparse_file_gives_sparse_rows_without_stored_zeros(write):
    table = read_arff(write(SPARSE), labels=["y", "z"])
    assert isinstance(table.X, sparse.csr_array)
    np.testing.assert_array_equal(table.X.toarray(), [[1, 2.5, 0], [0, 0, 0], [0, 0, 2], [0, np.nan, 0]])
    assert table.X.nnz == 4  # an explicit zero is not stored
    np.testing.assert_array_equal(table.Y.toarray(), [[1, 0], [0, 0], [0, 1], [0, 0]])


def test_cells_of_sparse_rows_may_be_in_any_order(write):
    table = read_arff(write(SPARSE.replace("{0 1, 1 2.5, 3 1}", "{3 1, 1 2.5, 0 1}")), labels=["y", "z"])
    np.testing.assert_array_equal(table.X[[0]].toarray(), [[1, 2.5, 0]])
    assert table.X.has_canonical_format


def test_file_without_labels_gives_an_empty_label_matrix(write):
    table = read_arff(write(SPARSE))
    assert table.X.shape == (4, 5)
    assert table.Y.shape == (4, 0)


def test_file_with_labels_only_gives_no_features(write):
    text = "@relation r\n@attribute y {0,1}\n@data\n1\n0\n"
    table = read_arff(write(text), labels=["y"])
    assert table.X.shape == (2, 0)
    np.testing.assert_array_equal(table.Y.toarray(), [[1], [0]])


@pytest.mark.parametrize("choice", ["{0,1}", "{1,0}", "{NO,YES}", "{YES, NO}", "{no,Yes}", "{FALSE,TRUE}"])
def test_yes_and_no_are_1_and_0_in_any_order(write, choice):
    values = choice.strip("{}").replace(" ", "").split(",")
    rows = "\n".join(f"{value},{value}" for value in values)
    text = f"@relation r\n@attribute x {choice}\n@attribute y {choice}\n@data\n{rows}\n"
    table = read_arff(write(text), labels=["y"])
    expected = [[int(value.lower() in ("1", "yes", "true"))] for value in values]
    np.testing.assert_array_equal(table.X, expected)
    np.testing.assert_array_equal(table.Y.toarray(), expected)


def test_nominal_codes_follow_the_header(write):
    text = "@relation r\n@attribute x {3,1,2}\n@data\n1\n2\n3\n"
    np.testing.assert_array_equal(read_arff(write(text)).X, [[1], [2], [0]])


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed_file_gives_the_same_data(tmp_path, write, suffix, pack):
    path = tmp_path / f"data.arff{suffix}"
    path.write_bytes(pack(DENSE.encode()))
    packed = read_arff(path, labels=["sweet"])
    np.testing.assert_array_equal(packed.X, read_arff(write(DENSE), labels=["sweet"]).X)


def test_byte_order_mark_is_skipped_and_other_encodings_are_rejected(tmp_path):
    text = "@relation r\n@attribute mañana numeric\n@data\n1\n"
    path = tmp_path / "file.arff"
    path.write_bytes(text.encode("utf-8-sig"))
    assert read_arff(path).feature_names == ("mañana",)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"file\.arff, line 2: byte 0xf1 is not UTF-8; convert the file"):
        read_arff(path)
    path.write_bytes(text.replace("mañana", "a").replace("1\n", "1%\n% ñ\n'ñ'\n").encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 4: .* is not a number"):
        read_arff(path)


def test_windows_line_endings_are_accepted(tmp_path):
    path = tmp_path / "data.arff"
    path.write_bytes(DENSE.replace("\n", "\r\n").encode())
    assert read_arff(path).X.shape == (3, 6)


def broken(find, replacement, labels=("y", "z"), source=SPARSE):
    assert find in source
    return source.replace(find, replacement), labels


@pytest.mark.parametrize(
    ("case", "line", "problem"),
    [
        (broken("@data", "@dato"), 7, "expected @relation, @attribute or @data"),
        (("@relation r\n@attribute a numeric\n", ()), 2, "ends before @data"),
        (("", ()), 1, "the file is empty"),
        (("@relation r\n@data\n1\n", ()), 2, "before any @attribute"),
        (("@relation r\n@attribute a numeric\n@data\n", ()), 3, "no row follows @data"),
        (broken("b numeric", "a numeric"), 3, "two attributes are called 'a'"),
        (broken("b numeric", "b string"), 3, "attribute 'b' has the type 'string'"),
        (broken("b numeric", "b"), 3, "expected a name"),
        (broken("b numeric", "'b numeric"), 3, "expected a name"),
        (broken("none, some", "some, some"), 4, "lists a value twice"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 9 2.5, 3 1}"), 8, "'9' is not an attribute index; expected 0 to 4"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, -1 2.5, 3 1}"), 8, "'-1' is not an attribute index; expected 0 to 4"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 1 abc, 3 1}"), 8, "'abc' is not a number, as attribute 'b'"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 1 1_0, 3 1}"), 8, "'1_0' is not a number"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 2, 1 1, 3 1}"), 8, "'2' is not among the values of attribute 'a'"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 1, 3 1}"), 8, "expected an attribute index and a value"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 1 2.5, 3 1"), 8, "must be enclosed in braces"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 1 2.5, 3 '1}"), 8, "a quote is not closed"),
        (broken("{0 1, 1 2.5, 3 1}", "{0 1, 0 1}"), 8, "attribute 0 ('a') occurs twice"),
        (broken("{0 1, 1 2.5, 3 1}", "{3 1, 3 1}"), 8, "attribute 3 ('y') occurs twice"),
        (broken("{0 1, 1 2.5, 3 1}", "{1 1e999}"), 8, "attribute 1 is infinite"),
        (broken("{0 1, 1 2.5, 3 1}", "{3 ?}"), 8, "label 'y' must be 0 or 1"),
        (broken("{}", "0,0,none,0,0"), 9, "a sparse row must be enclosed in braces"),
        (broken("y {0,1}", "y numeric\n% more", labels=("y", "q")), 8, "the label list contains 'q'"),
        (broken("{}", "{}", labels=("c",)), 7, "label 'c' does not have the values 0 and 1"),
        (broken("1.5, red", "red", (), DENSE), 12, "has 5 values, but the header declares 6 attributes"),
        (broken("1.5, red", "x, red", (), DENSE), 12, "'x' is not a number, as attribute 'petal length'"),
        (
            broken("1.5, red", "1.5, pink", (), DENSE),
            12,
            "'pink' is not among the values of attribute 'colour'",
        ),
        (broken("1.5, red", "inf, red", (), DENSE), 12, "infinite"),
        (broken("-2e-1,'dark blue'", "{0 1}%", (), DENSE), 14, "the row is sparse, but the first row is dense"),
        (broken("NO, 1, 0", "NO, ?, 0", ("sweet",), DENSE), 12, "label 'sweet' must be 0 or 1"),
    ],
)
def test_errors_name_file_line_and_problem(write, case, line, problem):
    text, labels = case
    path = write(text)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}, line {line}: .*{re.escape(problem)}"):
        read_arff(path, labels=labels)


def test_sparse_row_with_nonzero_default_is_rejected(write):
    text = "@relation r\n@attribute a {0,1}\n@attribute b {YES,NO}\n@data\n{0 1, 1 NO}\n{1 YES}\n"
    np.testing.assert_array_equal(read_arff(write(text)).X.toarray(), [[1, 0], [0, 1]])
    with pytest.raises(ValueError, match=r"line 7: the row omits attribute 'b'.*put NO or 0 first"):
        read_arff(write(text + "{0 1}\n"))


def test_damaged_archives_are_rejected(tmp_path):
    whole = gzip.compress(DENSE.encode())
    for name, raw in (("cut.gz", whole[:-20]), ("none.gz", b"not gzip"), ("none.bz2", b"not bzip2")):
        path = tmp_path / name
        path.write_bytes(raw)
        with pytest.raises(ValueError, match=rf"{name}, line \d+: the compressed file is damaged"):
            read_arff(path)


def test_excessive_expansion_is_rejected(tmp_path):
    path = tmp_path / "bomb.arff.bz2"
    path.write_bytes(bz2.compress(b"%" + b" " * 70_000_000))
    with pytest.raises(ValueError, match=r"bomb\.arff\.bz2, line 1: the file expands to more than 50 times"):
        read_arff(path)


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.arff"):
        read_arff(tmp_path / "nothing.arff")


def test_mulan_xml_selects_the_label_columns(write):
    xml = write(
        '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n'
        '<label name="z"><label name="y"/></label>\n</labels>\n',
        "data.xml",
    )
    assert read_mulan_xml(xml) == ["z", "y"]
    table = read_mulan(write(SPARSE), xml)
    assert table.label_names == ("y", "z")
    assert table.feature_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is not well-formed XML"),
        ("<labels>\n<label name='a'>\n</labels>", 3, "the file is not well-formed XML"),
        ("<labels></labels>", 1, "the list contains no labels"),
        ("<labels>\n<label/></labels>", 2, "a label has no name"),
        ("<labels>\n<label name='a'/>\n<label name='a'/></labels>", 3, "label 'a' is listed twice"),
        ("<labels>\n<tag name='a'/></labels>", 2, "found <tag>"),
        ("<html/>", 1, "found <html>"),
        ("<!DOCTYPE labels [<!ENTITY a 'aaaa'>]>\n<labels/>", 1, "needs no DOCTYPE"),
    ],
)
def test_invalid_label_lists_are_rejected(write, text, line, problem):
    path = write(text, "labels.xml")
    with pytest.raises(ValueError, match=rf"labels\.xml, line {line}: .*{re.escape(problem)}"):
        read_mulan_xml(path)


def test_entities_and_encodings_of_label_names_are_decoded(tmp_path):
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><labels><label name='R&amp;B ñ'/></labels>"
    for name, encoding in (("latin.xml", "latin-1"), ("utf.xml", "utf-8")):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        assert read_mulan_xml(path) == ["R&B ñ"]


@pytest.mark.parametrize(
    ("relation", "labels"),
    [
        ("'words: -C 2'", ("a", "b")),
        ("'words: -C -2'", ("y", "z")),
        ("'words: -split-percentage 60 -C 1'", ("a",)),
        ('"-C -1"', ("z",)),
        ("words:-C 1", ("a",)),
    ],
)
def test_meka_relation_declares_the_labels(write, relation, labels):
    text = SPARSE.replace("words", relation).replace("b numeric", "b {0,1}").replace("1 2.5", "1 1")
    table = read_meka(write(text.replace("{1 ?,0 0}", "{0 0}")))
    assert table.label_names == labels


@pytest.mark.parametrize(
    ("relation", "problem"),
    [
        ("words", "lacks MEKA's -C"),
        ("'w: -C 9'", "-C 9 is out of range; the file has 5"),
        ("'w: -C 0'", "-C 0 is out of range"),
    ],
)
def test_mismatching_meka_relation_is_rejected(write, relation, problem):
    with pytest.raises(ValueError, match=rf"data\.arff, line 1: .*{re.escape(problem)}"):
        read_meka(write(SPARSE.replace("words", relation)))

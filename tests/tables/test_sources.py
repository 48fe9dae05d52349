"""Rows of cells from files, with line numbers and faults."""

import gzip
import os
import threading
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mlca.tables.byte_streams import ByteStream
from mlca.tables.formats import open_source
from mlca.tables.sources import Fault


def read(path, format=None):
    """Return the columns and all rows; faults as text."""
    with ByteStream(str(path)) as stream:
        source = open_source(stream, format)
        rows = [(line, cells.problem if isinstance(cells, Fault) else list(cells)) for line, cells in source.rows()]
        return source.columns, rows


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="file"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return write_file


class TestDelimited:
    def test_line_numbers_are_those_of_an_editor(self, write):
        content = '\ufeffa,b\r\n1,"two\r\nlines"\r\n\r\n3,4\r\nlong,row,here\r\n5,"x""y"'
        columns, rows = read(write(content))
        assert columns == ("a", "b")
        assert rows == [
            (2, ["1", "two\r\nlines"]),
            (5, ["3", "4"]),
            (6, "the row has 3 cells, but the first line names 2 columns"),
            (7, ["5", 'x"y']),
        ]

    def test_unbalanced_quote_costs_one_row(self, write):
        _, rows = read(write('a,b\n1,"x"y\n3,4\n'), "csv")
        assert [line for line, _ in rows] == [2, 3]
        assert "quote" in rows[0][1]
        assert rows[1][1] == ["3", "4"]

    def test_invalid_utf8_costs_one_row_even_inside_quotes(self, write):
        _, rows = read(write(b'a,b\n1,"x\n\xe9"\n3,\xc3\xa9\n'))
        assert rows[0] == (2, "byte 0xe9 is not UTF-8; convert the file, for example: iconv -f latin1 -t utf-8")
        assert rows[1] == (4, ["3", "é"])

    def test_row_with_both_faults_costs_one_row(self, write):
        _, rows = read(write(b'a,b\n1,"\xe9"y\n3,4\n'), "csv")
        assert [line for line, _ in rows] == [2, 3]
        assert rows[1][1] == ["3", "4"]

    def test_unnamed_columns_get_a_name(self, write):
        assert read(write(",a, b ,\n0,1,2,3\n"))[0] == ("unnamed 1", "a", "b", "unnamed 4")

    @pytest.mark.parametrize(("content", "columns"), [("a;b,c;d\n", 3), ("a,b;c,d\n", 3), ("a\tb,c\td\n", 3)])
    def test_delimiters_are_detected(self, write, content, columns):
        assert len(read(write(content))[0]) == columns


def test_suffix_has_priority_over_the_content(write):
    assert read(write(gzip.compress(b"a\tb,c\n1,2\n"), "x.csv.gz"))[0] == ("a\tb", "c")
    assert read(write(gzip.compress(b"a\tb,c\n1\t2\n"), "x.gz"))[0] == ("a", "b,c")


class TestJsonLines:
    def test_columns_are_the_first_names_and_faults_have_lines(self, write):
        content = b'{"a": 1}\n\n{"b": [1, 2], "a": null}\n[1]\n{"a": \n{"a": "\xe9"}\n{"c": 5, "a": true}\n'
        columns, rows = read(write(content))
        assert columns == ("a", "b", "c")
        assert rows[:2] == [(1, [1, None, None]), (3, [None, [1, 2], None])]
        assert [line for line, _ in rows] == [1, 3, 4, 5, 6, 7]
        assert "found a list" in rows[2][1] and "not JSON" in rows[3][1] and "0xe9" in rows[4][1]
        assert rows[5][1] == [True, None, 5]

    def test_file_of_faults_only_is_rejected(self, write):
        with pytest.raises(ValueError, match="no line holds a JSON object"):
            read(write("[1]\n", "x.jsonl"))

    @pytest.mark.parametrize("content", ['[{"a": 1}, {"a": 2}]', '[\n  {\n    "a": 1\n  }\n]\n', '\ufeff [{"a": 1},\n'])
    @pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
    def test_array_of_objects_is_recognised(self, write, content, name):
        with pytest.raises(ValueError, match="the file is a JSON array; write JSON lines"):
            read(write(content, name))

    def test_duplicate_name_in_an_object_is_reported(self, write):
        _, rows = read(write('{"a": 1}\n{"b": 1, "a": 2, "a": 2}\n{"a": {"c": 1, "c": 2}}\n', "x.jsonl"))
        assert [line for line, _ in rows] == [1, 2, 3] and rows[0][1] == [1]
        assert "'a' occurs twice in an object" in rows[1][1] and "'c' occurs twice" in rows[2][1]


class TestArff:
    HEAD = "% a comment\n@relation r\n@attribute a numeric\n@attribute b {no, yes}\n@data\n"

    def test_dense_rows_are_read_and_faults_reported_by_line(self, write):
        columns, rows = read(write(self.HEAD + "1, 'yes'\n% nothing\n\n2\n'3, no\n?,no\n"))
        assert columns == ("a", "b")
        assert rows[0] == (6, ["1", "yes"])
        assert rows[1] == (9, "the row has 1 values, but the header declares 2 attributes")
        assert rows[2][0] == 10 and "a quote is not closed" in rows[2][1]
        assert rows[3] == (11, ["?", "no"])

    def test_sparse_rows_are_filled_with_zero_and_the_first_value(self, write):
        _, rows = read(write(self.HEAD + "{1 yes}\n{}\n{0 2.5}\n{7 1}\n{-1 1}\n{0}\n1,yes\n"))
        assert [cells for _, cells in rows[:3]] == [["0", "yes"], ["0", "no"], ["2.5", "no"]]
        assert all("expected 0 to 1" in problem for _, problem in rows[3:5])
        assert "index and a value; found '0'" in rows[5][1]
        assert "in braces" in rows[6][1]

    def test_invalid_number_of_labels_is_rejected(self, write):
        with pytest.raises(ValueError, match="line 2: -C 9 is out of range; the file has 2 attributes"):
            read(write(self.HEAD.replace("relation r", "relation 'r: -C 9'")))


class TestXc:
    def test_rows_are_read_and_faults_reported_by_line(self, write):
        columns, rows = read(write("8 4 3\n0,2 1:0.5 3:2\n 0:1\n\n1\n1 2:x\n1 2:1 2:1\n2:1e\n1 1:" + "\n\n"))
        assert columns == ()
        assert rows[0] == (2, [[0, 2], [1, 3], [0.5, 2.0]])
        assert rows[1] == (3, [[], [0], [1.0]])
        assert rows[2] == (4, [[], [], []])
        assert rows[3] == (5, [[1], [], []])
        assert [line for line, _ in rows] == list(range(2, 10))
        assert "attribute:value" in rows[4][1] and "twice" in rows[5][1] and "could not convert" in rows[6][1]

    def test_header_is_required(self, write):
        with pytest.raises(ValueError, match="line 1: expected three numbers"):
            read(write("0 1:2\n", "a.xc"))


class TestParquet:
    def test_rows_are_numbered_and_missing_is_none(self, tmp_path):
        pq.write_table(pa.table({"a": [1.5, None], "b": ["x", "y"], "c": [["p"], []]}), tmp_path / "t.parquet")
        columns, rows = read(tmp_path / "t.parquet")
        assert columns == ("a", "b", "c")
        assert rows == [(1, [1.5, "x", ["p"]]), (2, [None, "y", []])]

    def test_truncated_file_is_rejected(self, tmp_path, write):
        pq.write_table(pa.table({"a": list(range(1000))}), tmp_path / "t.parquet")
        content = (tmp_path / "t.parquet").read_bytes()
        with pytest.raises(ValueError, match="not a Parquet file, or truncated"):
            read(write(content[:-100]))

    def test_dates_beyond_the_calendar_are_faults(self, tmp_path):
        """PostgreSQL's infinity is such a date; it has no effect if the column is not learned."""
        days = pa.array([0, 2**31 - 1, None], pa.date32())
        pq.write_table(pa.table({"a": [1, 2, 3], "d": days}), tmp_path / "t.parquet")
        _, rows = read(tmp_path / "t.parquet")
        assert rows == [(1, [1, date(1970, 1, 1)]), (2, [2, "<value out of range: 2147483647>"]), (3, [3, None])]

    def test_row_that_is_not_utf8_is_a_fault(self, tmp_path):
        ends = np.array([0, 1, 2], dtype=np.int32)
        texts = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"a\xe9")])
        pq.write_table(pa.table({"t": texts}), tmp_path / "t.parquet")
        _, rows = read(tmp_path / "t.parquet")
        assert rows[0] == (1, ["a"]) and rows[1][1].startswith("byte 0xe9 in column 't' is not UTF-8")

    def test_text_shared_by_rows_is_read_once(self, tmp_path):
        text = "wide " * 1000
        pq.write_table(pa.table({"t": [text, None, text], "b": [b"x"] * 3}), tmp_path / "t.parquet")
        _, rows = read(tmp_path / "t.parquet")
        assert rows == [(1, [text, b"x"]), (2, [None, b"x"]), (3, [text, b"x"])]
        assert rows[0][1][0] is rows[2][1][0]

    def test_too_long_text_is_a_fault_of_its_rows(self, tmp_path):
        """A small file with one text of 20 MB shared by 1,000 rows once needed more than 6 GB."""
        texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array(["a" * (2**20 + 1), "b"]))
        pq.write_table(pa.table({"t": texts}), tmp_path / "t.parquet", compression="zstd")
        _, rows = read(tmp_path / "t.parquet")
        assert rows[1] == (2, ["b"])
        assert rows[0][1] == rows[2][1] == "column 't' holds a string of 1,048,577 characters; the limit is 1,048,576"

    def test_excessive_expansion_of_a_row_group_is_rejected(self, tmp_path):
        texts = ["a" * 2**19] * 200
        pq.write_table(pa.table({"t": texts}), tmp_path / "t.parquet", compression="zstd", use_dictionary=False)
        with pytest.raises(ValueError, match="a row group expands to more than 50 times the size of the file"):
            read(tmp_path / "t.parquet")

    def test_pipe_is_read_completely(self, tmp_path):
        pq.write_table(pa.table({"a": [1.5, 2.5]}), tmp_path / "t.parquet")
        os.mkfifo(tmp_path / "pipe")
        content = (tmp_path / "t.parquet").read_bytes()
        feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
        feeder.start()
        assert read(tmp_path / "pipe") == (("a",), [(1, [1.5]), (2, [2.5])])
        feeder.join(10)


def test_the_fraction_read_is_known_for_files(write):
    with ByteStream(str(write(gzip.compress(b"a,b\n" + b"1,2\n" * 100)))) as stream:
        source = open_source(stream)
        list(source.rows())
        assert source.fraction() == 1.0

"""Reading files: the same limits and encodings for every reader."""

import bz2
import gzip
import io
import sys
from types import SimpleNamespace

import pytest
from scipy import sparse

from mlca.datasets import LabelledTable, read_arff, read_mulan_xml, read_xc
from mlca.tables import byte_streams
from mlca.tables.byte_streams import ByteStream
from mlca.tables.formats import READERS, open_source
from mlca.tables.sources import Fault

TEXTS = {
    "csv": "a,b\n1,2\n",
    "tsv": "a\tb\n1\t2\n",
    "jsonl": '{"a": 1}\n',
    "arff": "@relation r\n@attribute a numeric\n@data\n1\n",
    "xc": "1 2 1\n0 0:1\n",
}


def read(path, format):
    """Return the names of a table's columns and its rows."""
    with ByteStream(path) as stream:
        source = open_source(stream, format)
        return source.columns, list(source.rows())


# All ways to read a text file: as a table source, or as a whole dataset.
READ = {format: lambda path, format=format: read(path, format) for format in TEXTS}
READ |= {"read_arff": read_arff, "read_xc": read_xc}


def comparable(content):
    """Return names and values of a table in a form that can be compared."""
    if not isinstance(content, LabelledTable):
        return content
    parts = (part.toarray() if sparse.issparse(part) else part for part in (content.X, content.Y))
    return content.feature_names, content.label_names, *(part.tolist() for part in parts)


def text_of(name):
    return TEXTS[name.removeprefix("read_")].encode()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
@pytest.mark.parametrize("name", READ)
class TestCompressed:
    def test_compression_is_detected_by_first_bytes(self, tmp_path, name, pack):
        path = tmp_path / "file"
        path.write_bytes(pack(text_of(name)))
        READ[name](path)

    def test_truncated_compressed_file_is_rejected(self, tmp_path, name, pack):
        path = tmp_path / "file.gz"
        path.write_bytes(pack(text_of(name))[:-6])
        with pytest.raises(ValueError, match=r"file\.gz, line \d+: the compressed file is damaged or truncated"):
            READ[name](path)

    def test_excessive_expansion_is_rejected(self, tmp_path, name, pack, monkeypatch):
        monkeypatch.setattr(byte_streams, "SMALL", 1000)
        path = tmp_path / "bomb"
        path.write_bytes(pack(text_of(name) + b"\n" * 3_000_000))
        with pytest.raises(ValueError, match=r"bomb, line \d+: the file expands to more than 50 times"):
            READ[name](path)


@pytest.mark.parametrize("name", READ)
class TestPlain:
    def test_uncompressed_file_with_compressed_name_is_rejected(self, tmp_path, name):
        path = tmp_path / "file.gz"
        path.write_bytes(text_of(name))
        with pytest.raises(ValueError, match=r"file\.gz, line 1: the compressed file is damaged.*rename it"):
            READ[name](path)

    def test_excessive_lines_are_rejected(self, tmp_path, name, monkeypatch):
        monkeypatch.setattr(byte_streams, "LONGEST_LINE", 1000)
        path = tmp_path / "file"
        path.write_bytes(text_of(name) + b"1" * 2000)
        with pytest.raises(ValueError, match=r"file, line \d+: longer than 1000 characters"):
            READ[name](path)

    def test_utf16_and_empty_files_are_rejected(self, tmp_path, name):
        path = tmp_path / "file"
        path.write_bytes(text_of(name).decode().encode("utf-16"))
        with pytest.raises(ValueError, match="line 1: the file is UTF-16"):
            READ[name](path)
        path.write_bytes(b"")
        with pytest.raises(ValueError, match="line 1: the file is empty"):
            READ[name](path)

    def test_byte_order_mark_is_not_part_of_the_text(self, tmp_path, name):
        plain, marked = tmp_path / "plain", tmp_path / "marked"
        plain.write_bytes(text_of(name))
        marked.write_bytes(b"\xef\xbb\xbf" + text_of(name))
        assert comparable(READ[name](marked)) == comparable(READ[name](plain))


def test_all_text_formats_are_tested():
    assert {*TEXTS} == {*READERS} - {"parquet"}


def test_standard_input_is_bounded(monkeypatch):
    monkeypatch.setattr(byte_streams, "SMALL", 1000)
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(packed))))
    with pytest.raises(ValueError, match=r"standard input, line \d+: the file expands"):
        read("-", "csv")


@pytest.mark.parametrize("name", [*TEXTS, "gzip", "semicolons"])
def test_pipe_may_deliver_single_bytes(tmp_path, monkeypatch, name):
    """The format was once detected from the first bytes that arrived, however few."""
    content = {"gzip": gzip.compress(text_of("csv")), "semicolons": text_of("csv").replace(b",", b";")}.get(name)
    content = text_of(name) if content is None else content
    (tmp_path / "whole").write_bytes(content)

    class Slow(io.BytesIO):
        def readinto(self, buffer):
            return super().readinto(memoryview(buffer)[:1])

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(Slow(content))))
    with ByteStream("-") as slow, ByteStream(tmp_path / "whole") as whole:
        slow_source, source = open_source(slow), open_source(whole)
        assert slow_source.columns == source.columns
        assert list(slow_source.rows()) == list(source.rows())


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("3 2 1\n0 0:1\n", 2, "declares 3 rows, but there are 1"),
        ("1 2 1\n0 0:1\n0 1:1\n", 3, "declares 1 rows"),
        ("1 2 1\n0 0:1e999\n", 2, "infinite"),
        ("1 2 1\n0 99999999999:1\n", 2, "attribute 99999999999 is too large"),
    ],
)
def test_xc_rows_are_checked_against_the_header(tmp_path, text, line, problem):
    path = tmp_path / "file"
    path.write_text(text)
    number, fault = read(path, "xc")[1][-1]
    assert number == line and isinstance(fault, Fault) and problem in fault.problem
    with pytest.raises(ValueError, match=rf"file, line {line}: .*{problem}"):
        read_xc(path)


def test_excessive_header_is_rejected(tmp_path):
    from mlca.tables.batches import TableFile
    from mlca.tables.columns import ColumnSettings

    path = tmp_path / "file"
    path.write_text("1 2000000000 1\n0 0:1\n")
    with ByteStream(path) as stream, pytest.raises(ValueError, match="header declares 2,000,000,000 attributes"):
        TableFile(open_source(stream)).decide_layout(None, None, ColumnSettings())


def test_encoding_declared_in_xml_is_used(tmp_path):
    path = tmp_path / "labels.xml"
    path.write_bytes("<labels><label name='ñ'/></labels>".encode("latin-1"))
    with pytest.raises(ValueError, match=r"labels\.xml, line 1: the file is not well-formed"):
        read_mulan_xml(path)
    path.write_bytes("<?xml version='1.0' encoding='klingon'?><labels><label name='ñ'/></labels>".encode("latin-1"))
    with pytest.raises(ValueError, match=r"labels\.xml, line 1: "):
        read_mulan_xml(path)

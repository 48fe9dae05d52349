"""Selection of the reader for a file, by the user's choice, the suffix or the first bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from mlca.tables.arff import ArffSource
from mlca.tables.byte_streams import ByteStream
from mlca.tables.delimited import DelimitedSource
from mlca.tables.jsonlines import ARRAY, JsonLinesSource
from mlca.tables.parquet import ParquetSource
from mlca.tables.sources import Source
from mlca.tables.xc import FIRST_LINE, XcSource

READERS: dict[str, Callable[[ByteStream], Source]] = {
    "csv": lambda stream: DelimitedSource(stream, None),
    "tsv": lambda stream: DelimitedSource(stream, "\t"),
    "jsonl": JsonLinesSource,
    "parquet": ParquetSource,
    "arff": ArffSource,
    "xc": XcSource,
}

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".xc": "xc",
}


def open_source(stream: ByteStream, format: str | None = None) -> Source:
    """Return the reader for a file.

    Parameters
    ----------
    stream : ByteStream
        The file.
    format : str, optional
        A key of `READERS` (default: detected from the suffix, or else from the first bytes).

    Returns
    -------
    Source
    """
    first = stream.peek()
    return READERS[format or _by_suffix(stream.path) or _by_content(first)](stream)


def _by_suffix(path: str) -> str | None:
    file = PurePath(path)
    if file.suffix in (".gz", ".bz2"):
        file = file.with_suffix("")
    return _SUFFIXES.get(file.suffix.lower())


def _by_content(first: bytes) -> str:
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"PAR1"):
        return "parquet"
    if text.startswith(b"{") or ARRAY.match(text):
        return "jsonl"
    if text.startswith(b"%") or text[:9].lower() == b"@relation":
        return "arff"
    if FIRST_LINE.match(text):
        return "xc"
    return "tsv" if b"\t" in text.split(b"\n", 1)[0] else "csv"

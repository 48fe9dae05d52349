"""Predicted labels in files: CSV, JSON lines or Parquet, written atomically."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import IO, Any, NamedTuple, Protocol, TextIO

from mlca.messages import shown
from mlca.optional import needing
from mlca.replacing import replacing

KINDS = (".csv", ".jsonl", ".parquet")


class Prediction(NamedTuple):
    """The labels of one row, most likely first, and their probabilities.

    `id` is empty without an ID column; `novelty` is None if the model does not compute it.
    """

    row: int
    labels: list[str]
    probabilities: list[float]
    id: str = ""
    novelty: float | None = None

    def by_name(self, identity: str | None) -> dict[str, Any]:
        """Return the fields by name, with the ID under the name of the ID column."""
        carried = {} if identity is None else {identity: self.id}
        prediction = {"labels": self.labels, "probabilities": self.probabilities, "novelty": self.novelty}
        return {"row": self.row, **carried, **prediction}


def require_free_name(identity: str | None) -> None:
    """Raise ValueError if the ID column has the name of an output column."""
    if identity in Prediction(0, [], []).by_name(None):
        raise ValueError(f"--id {identity}: `predict` writes a column of this name; rename yours")


class Writer(Protocol):
    """Writes predictions to a file, batch by batch."""

    def write(self, predictions: Sequence[Prediction]) -> None:
        """Write a batch of predictions."""


# Spreadsheets run a cell that starts with one of these characters as a formula, unless it is a number.
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def as_cell(text: str) -> str:
    """Return text as a spreadsheet cell; an apostrophe keeps a formula from being run.

    Examples
    --------
    >>> as_cell("=HYPERLINK(A1)"), as_cell("-1.5"), as_cell("sun|sea")
    ("'=HYPERLINK(A1)", '-1.5', 'sun|sea')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


class _LineEnds:
    """Makes `csv` quote carriage returns, which it does by default only since Python 3.13."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(row.removesuffix("\r\n") + "\n")


class _CsvWriter:
    def __init__(self, file: IO[str], separator: str, identity: str | None) -> None:
        self._rows = csv.writer(_LineEnds(file), lineterminator="\r\n")
        self._separator = separator
        self._identity = identity
        self._show: Callable[[str], str] = shown if file.isatty() else str
        header = Prediction(0, [], []).by_name(identity)
        self._rows.writerow([self._show(as_cell(name)) for name in header])

    def write(self, predictions: Sequence[Prediction]) -> None:
        self._rows.writerows(
            (p.row, *self._id(p), self._labels(p), self._separator.join(_probabilities(p)), _novelty(p))
            for p in predictions
        )

    def _id(self, prediction: Prediction) -> tuple[str, ...]:
        return () if self._identity is None else (self._show(as_cell(prediction.id)),)

    def _labels(self, prediction: Prediction) -> str:
        return self._show(as_cell(self._separator.join(prediction.labels)))


def _probabilities(prediction: Prediction) -> Iterator[str]:
    return (f"{x:.6g}" for x in prediction.probabilities)


def _novelty(prediction: Prediction) -> str:
    return "" if prediction.novelty is None else f"{prediction.novelty:.4g}"


class _JsonLinesWriter:
    def __init__(self, file: TextIO, identity: str | None) -> None:
        self._file = file
        self._identity = identity
        # Escape non-ASCII characters on terminals, where some act as controls, and in encodings that lack some of them.
        self._ascii = file.isatty() or not (file.encoding or "").lower().startswith("utf")

    def write(self, predictions: Sequence[Prediction]) -> None:
        for prediction in predictions:
            self._file.write(json.dumps(prediction.by_name(self._identity), ensure_ascii=self._ascii) + "\n")


class _ParquetWriter:
    def __init__(self, arrow: Any, writer: Any, schema: Any, identity: str | None) -> None:
        self._arrow, self._writer, self._schema, self._identity = arrow, writer, schema, identity

    def write(self, predictions: Sequence[Prediction]) -> None:
        rows = [prediction.by_name(self._identity) for prediction in predictions]
        self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))


@contextmanager
def writing(out: str, separator: str, identity: str | None = None, *, as_json: bool) -> Iterator[Writer]:
    """Open a file or standard output, and yield a writer of predictions.

    Parameters
    ----------
    out : str
        The target; the suffix is one of `KINDS`. ``-`` is standard output: CSV, or JSON lines.
    separator : str
        The separator between the labels of a CSV cell.
    identity : str, optional
        The name of the ID column.
    as_json : bool
        Whether standard output is JSON lines.
    """
    if out == "-":
        yield _JsonLinesWriter(sys.stdout, identity) if as_json else _CsvWriter(sys.stdout, separator, identity)
        return
    with replacing(out) as file, _open_writer(file, PurePath(out).suffix, separator, identity) as writer:
        yield writer


@contextmanager
def _open_writer(file: IO[bytes], suffix: str, separator: str, identity: str | None) -> Iterator[Writer]:
    if suffix == ".parquet":
        with needing("Parquet", "frames"):
            import pyarrow as pa
            from pyarrow.parquet import ParquetWriter
        carried = {} if identity is None else {identity: pa.string()}
        lists = {"labels": pa.list_(pa.string()), "probabilities": pa.list_(pa.float64())}
        kinds = {"row": pa.int64(), **carried, **lists, "novelty": pa.float64()}
        schema = pa.schema(list(kinds.items()))
        with ParquetWriter(file, schema) as table:
            yield _ParquetWriter(pa, table, schema, identity)
        return
    text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="")
    try:
        yield _CsvWriter(text, separator, identity) if suffix == ".csv" else _JsonLinesWriter(text, identity)
    finally:
        text.detach()  # flushes the buffer, and leaves the file open

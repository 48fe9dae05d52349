"""Predicted labels in files: CSV, JSON lines or Parquet, whole or not at all."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

KINDS = (".csv", ".jsonl", ".parquet")


class Prediction(NamedTuple):
    """The labels of one row, most likely first, and their probabilities."""

    row: int
    labels: list[str]
    probabilities: list[float]


class Writer(Protocol):
    """Takes predictions, some at a time."""

    def write(self, predictions: Sequence[Prediction]) -> None:
        """Write them."""


class _CsvWriter:
    def __init__(self, file: IO[str], separator: str) -> None:
        self._rows = csv.writer(file, lineterminator="\n")
        self._separator = separator
        self._rows.writerow(Prediction._fields)

    def write(self, predictions: Sequence[Prediction]) -> None:
        join = self._separator.join
        self._rows.writerows((p.row, join(p.labels), join(f"{x:.6g}" for x in p.probabilities)) for p in predictions)


class _JsonLinesWriter:
    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, predictions: Sequence[Prediction]) -> None:
        self._file.writelines(json.dumps(p._asdict(), ensure_ascii=False) + "\n" for p in predictions)


class _ParquetWriter:
    def __init__(self, arrow: Any, writer: Any, schema: Any) -> None:
        self._arrow, self._writer, self._schema = arrow, writer, schema

    def write(self, predictions: Sequence[Prediction]) -> None:
        rows = [prediction._asdict() for prediction in predictions]
        self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))


@contextmanager
def writing(out: str, separator: str, *, as_json: bool) -> Iterator[Writer]:
    """Open a file for predictions.

    Parameters
    ----------
    out : str
        Where to; the suffix is one of `KINDS`. ``-`` is standard output: CSV, or JSON lines.
    separator : str
        What stands between the labels of a CSV cell.
    as_json : bool
        Whether standard output is JSON lines.
    """
    if out == "-":
        yield _JsonLinesWriter(sys.stdout) if as_json else _CsvWriter(sys.stdout, separator)
        return
    path = Path(out)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with _open_writer(unfinished, path.suffix, separator) as writer:
            yield writer
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _open_writer(path: Path, suffix: str, separator: str) -> Iterator[Writer]:
    if suffix == ".parquet":
        try:
            import pyarrow as pa
            from pyarrow.parquet import ParquetWriter
        except ImportError:
            raise ValueError('Parquet needs pyarrow: pip install "mlca[frames]"') from None
        kinds = {"row": pa.int64(), "labels": pa.list_(pa.string()), "probabilities": pa.list_(pa.float64())}
        schema = pa.schema(list(kinds.items()))
        with ParquetWriter(path, schema) as file:
            yield _ParquetWriter(pa, file, schema)
        return
    with path.open("w", encoding="utf-8", newline="") as text:
        yield _CsvWriter(text, separator) if suffix == ".csv" else _JsonLinesWriter(text)

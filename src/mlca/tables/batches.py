"""Some rows at a time: matrices and label names out of a source, by a layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mlca.limits import LARGEST_VALUE
from mlca.tables.cells import as_number, as_text, codes_of, is_missing, numbers_among, plain_numbers
from mlca.tables.columns import Wishes, decide_columns
from mlca.tables.labels import LabelReader, decide_labels
from mlca.tables.layout import Categorical, Layout, Numeric, TableLayout, XcLayout
from mlca.tables.sources import Fault, Row, Source
from mlca.tables.streams import bad_file
from mlca.tables.xc import XcRow, XcSource

BATCH_ROWS = 1000

# The first rows, by which kinds and categories are decided: at most so many, and of so many cells.
FIRST_ROWS = 10_000
FIRST_CELLS = 5_000_000

# Attributes that a file may announce: sums over more could overflow.
MOST_ATTRIBUTES = 2**22

# Different unknown categories that are counted by name: a stream may bring ever new ones.
MOST_UNSEEN = 1000


@dataclass(frozen=True)
class Batch:
    """Some rows.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        The rows, as a model takes them.
    labels : list of tuples of str
        The labels of each; empty where they were not asked for.
    numbers : list of int
        The number of each row among the rows of the file, from 1; faulty rows count too.
    """

    X: Any
    labels: list[tuple[str, ...]]
    numbers: list[int]


class _Encoder(Protocol):
    """Makes a matrix and labels of rows; replaces rows that it cannot read by faults."""

    def encode(self, rows: Sequence[Any]) -> tuple[Any, list[list[str] | Fault]]: ...


class TableFile:
    """A file whose first rows have been looked at.

    Parameters
    ----------
    source : Source
        The file.

    Attributes
    ----------
    first : list of cells
        Its first readable rows.
    missing, unseen : Counter
        How many cells of each column had no value, or a category that the recipe does not know.
    n_faulty : int
        The number of rows that could not be read.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.n_faulty = 0
        rows = source.rows()
        look = max(BATCH_ROWS, min(FIRST_ROWS, FIRST_CELLS // max(1, len(source.columns))))
        first = list(islice(rows, look))
        self._rows: Iterator[Row] = chain(first, rows)
        self._n_first, self._n_done = len(first), 0
        self.first = [cells for _, cells in first if not isinstance(cells, Fault)]
        if not self.first:
            faults = [f", {source.place} {line}: {cells.problem}" for line, cells in first if isinstance(cells, Fault)]
            raise ValueError(source.name + (faults[0] if faults else ": there is no row, only a header"))

    def fraction(self) -> float | None:
        """Return what part of the file the batches so far are; None where its size is unknown.

        Before the first rows are through, less has been handed out than was read.
        """
        read = self.source.fraction()
        return None if read is None else read * min(1.0, self._n_done / self._n_first)

    def count_unseen(self, column: Categorical, value: str) -> None:
        """Count a category that the recipe does not know; of too many different ones, only that there are."""
        named = f"{column.name}={value}"
        full = len(self.unseen) >= MOST_UNSEEN and named not in self.unseen
        self.unseen[f"{column.name}=..." if full else named] += 1

    def decide_layout(self, labels: str | None, separator: str | None, wishes: Wishes) -> Layout:
        """Decide by the first rows what the columns mean."""
        source = self.source
        if isinstance(source, XcSource):
            if labels is not None or wishes != Wishes():
                raise ValueError(f"{source.name}: XC text has no columns to name, and carries its labels")
            return _xc_layout(source, self.first)
        chosen = decide_labels(source, self.first, labels, separator)
        columns = decide_columns(source, self.first, chosen.among(source.columns), wishes)
        return TableLayout(tuple(columns), chosen, source.sparse)

    def declared_labels(self, layout: Layout) -> tuple[str, ...]:
        """Return the labels that the file names before any row has one: those with a column of their own."""
        if isinstance(layout, XcLayout) or layout.labels.form != "flags":
            return ()
        return layout.labels.among(self.source.columns)

    def spreads(self, columns: Sequence[Numeric]) -> dict[str, float]:
        """Return the standard deviation of each of the columns over the first rows, if it varies there."""
        spreads = {}
        for column in columns:
            place = self.source.columns.index(column.name)
            numbers = numbers_among([row[place] for row in self.first])
            spreads[column.name] = float(np.std(numbers)) if len(numbers) else 0.0
        return {name: spread for name, spread in spreads.items() if spread > 0}

    def batches(self, layout: Layout, on_fault: Callable[[str], None], *, labels: bool = True) -> Iterator[Batch]:
        """Yield the rows of the file in batches.

        Parameters
        ----------
        layout : Layout
            How to read them.
        on_fault : callable
            Called with a sentence for every row that cannot be read; the row is left out.
        labels : bool, default=True
            Whether to read the labels too.

        Yields
        ------
        Batch
        """
        encoder = self._encoder(layout, labels)
        while rows := list(islice(self._rows, BATCH_ROWS)):
            numbers = range(self._n_done + 1, self._n_done + len(rows) + 1)
            self._n_done += len(rows)
            cells = [own for _, own in rows if not isinstance(own, Fault)]
            X, encoded = encoder.encode(cells)
            results = iter(encoded)
            targets = [own if isinstance(own, Fault) else next(results) for _, own in rows]
            for (line, _), target in zip(rows, targets, strict=True):
                if isinstance(target, Fault):
                    self.n_faulty += 1
                    on_fault(f"{self.source.name}, {self.source.place} {line}: {target.problem}")
            kept = [i for i, target in enumerate(encoded) if not isinstance(target, Fault)]
            if kept:
                yield Batch(
                    X=X if len(kept) == len(encoded) else X[kept],
                    labels=[tuple(target) for target in targets if not isinstance(target, Fault)],
                    numbers=[n for n, target in zip(numbers, targets, strict=True) if not isinstance(target, Fault)],
                )

    def _encoder(self, layout: Layout, labels: bool) -> _Encoder:
        if isinstance(layout, XcLayout):
            return _XcEncoder(layout)
        return _TableEncoder(layout, self, labels)


class _TableEncoder:
    def __init__(self, layout: TableLayout, file: TableFile, labels: bool) -> None:
        place_of = {name: place for place, name in enumerate(file.source.columns)}
        self._layout, self._file = layout, file
        self._places = [place_of[column.name] for column in layout.learned()]
        self._labels = LabelReader(layout.labels, file.source.columns) if labels else None

    def encode(self, rows: Sequence[Any]) -> tuple[Any, list[list[str] | Fault]]:
        """Make a matrix of the learned columns, and read the labels."""
        targets: list[list[str] | Fault] = [self._labels.read(cells) if self._labels else [] for cells in rows]
        X = np.zeros((len(rows), self._layout.n_features))
        if rows:
            by_column = list(zip(*rows, strict=True))
            start = 0
            for column, place in zip(self._layout.learned(), self._places, strict=True):
                block = X[:, start : start + column.width]
                if isinstance(column, Numeric):
                    self._fill_numbers(block, column, by_column[place], targets)
                else:
                    self._fill_categories(block, column, by_column[place])
                start += column.width
        return (sparse.csr_array(X) if self._layout.sparse else X), targets

    def _fill_numbers(self, block: Any, column: Numeric, cells: Sequence[Any], targets: list[Any]) -> None:
        numbers = plain_numbers(cells)
        if numbers is not None:
            block[:, 0] = numbers
            return
        for i, cell in enumerate(cells):
            if is_missing(cell):
                block[i] = column.fill
                self._file.missing[column.name] += 1
                continue
            try:
                block[i] = as_number(cell)
            except ValueError:
                problem = f"{str(cell)[:40]!r} is no number within bounds, as column {column.name!r} asks for"
                targets[i] = Fault(problem)

    def _fill_categories(self, block: Any, column: Categorical, cells: Sequence[Any]) -> None:
        codes = codes_of(cells, column.places)
        known = np.flatnonzero(codes >= 0)
        block[known, codes[known]] = 1
        for i in np.flatnonzero(codes < 0).tolist():
            if is_missing(cells[i]):
                self._file.missing[column.name] += 1
            else:
                self._file.count_unseen(column, as_text(cells[i]))


class _XcEncoder:
    def __init__(self, layout: XcLayout) -> None:
        self._layout = layout

    def encode(self, rows: Sequence[XcRow]) -> tuple[Any, list[list[str] | Fault]]:
        """Put the rows together, with faults where attributes or values are out of bounds."""
        targets = [self._labels_or_fault(row) for row in rows]
        usable = [
            ([], []) if isinstance(target, Fault) else (row.attributes, row.values)
            for row, target in zip(rows, targets, strict=True)
        ]
        ends = np.cumsum([0, *(len(attributes) for attributes, _ in usable)])
        columns = np.array([a for attributes, _ in usable for a in attributes], dtype=np.int32) - self._layout.first
        values = np.array([value for _, values in usable for value in values], dtype=np.float64)
        X = sparse.csr_array((values, columns, ends), shape=(len(rows), self._layout.n_features))
        return X, targets

    def _labels_or_fault(self, row: XcRow) -> list[str] | Fault:
        first, last = self._layout.first, self._layout.first + self._layout.n_features - 1
        outside = [attribute for attribute in row.attributes if not first <= attribute <= last]
        if outside:
            return Fault(f"attribute {outside[0]} is none of {first} to {last}")
        if not all(abs(value) <= LARGEST_VALUE for value in row.values):
            return Fault("a value is too large")
        return [str(label) for label in row.labels]


def _xc_layout(source: XcSource, rows: Sequence[Any]) -> XcLayout:
    """Attributes count from 1 if the number that is one too high occurs and 0 does not."""
    if not 0 < source.n_features <= MOST_ATTRIBUTES:
        raise bad_file(
            source.name, 1, f"{source.n_features:,} attributes; a model can learn 1 to {MOST_ATTRIBUTES:,} of them"
        )
    numbers = [attribute for row in rows for attribute in row.attributes]
    one_based = max(numbers, default=0) == source.n_features and min(numbers) > 0
    return XcLayout(source.n_features, int(one_based))

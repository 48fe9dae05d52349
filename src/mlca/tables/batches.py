"""Batches of encoded rows and label names, read from a source with a layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from mlca.limits import LARGEST_VALUE, MOST_FEATURES
from mlca.tables import columns as deciding
from mlca.tables.byte_streams import bad_file
from mlca.tables.cells import as_text, id_of, numbers_among
from mlca.tables.columns import ColumnSettings, decide_columns, names_of
from mlca.tables.encoding import Part, encode, encode_growing
from mlca.tables.first_rows import CellsByColumn
from mlca.tables.kinds import Column, Numeric, Text
from mlca.tables.label_columns import LabelReader, decide_labels
from mlca.tables.layout import Layout, TableLayout, XcLayout
from mlca.tables.sources import Fault, NumberedRow, Source
from mlca.tables.xc import XcRow, XcSource

BATCH_ROWS = 1000

# Largest number of unknown categories that are counted by name; a stream may contain any number of them.
MOST_UNSEEN = 1000


@dataclass(frozen=True)
class Batch:
    """A batch of encoded rows with their labels.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        The encoded rows.
    labels : list of tuples of str
        The labels of each row; empty if labels are not read.
    numbers : list of int
        The number of each row in the file, from 1; faulty rows also count.
    ids : list of str or None
        The value of the ID column for each row; None without an ID column.
    layout : Layout
        The layout of X: that of the previous batch, or an extension of it.
    cells : mapping of str to sequence
        The cells of each column; empty for XC text.
    """

    X: Any
    labels: list[tuple[str, ...]]
    numbers: list[int]
    ids: list[str] | None
    layout: Layout
    cells: CellsByColumn = field(default_factory=dict)

    def where(self, keep: Sequence[bool]) -> Batch:
        """Return the batch reduced to the rows for which `keep` is true."""
        if all(keep):
            return self
        kept = [i for i, wanted in enumerate(keep) if wanted]
        ids = None if self.ids is None else [self.ids[i] for i in kept]
        return replace(
            self,
            X=self.X[kept],
            labels=[self.labels[i] for i in kept],
            numbers=[self.numbers[i] for i in kept],
            ids=ids,
            cells={name: [cells[i] for i in kept] for name, cells in self.cells.items()},
        )


class _Encoder(Protocol):
    """Encodes rows and reads their labels, with a `Fault` for each unreadable row."""

    def encode(self, rows: Sequence[Any]) -> tuple[Sequence[Any], list[list[str] | Fault]]: ...

    def ids(self, rows: Sequence[Any]) -> list[str] | None: ...


class TableFile:
    """A table file, whose first rows are read in advance to decide its layout.

    Parameters
    ----------
    source : Source
        The file.
    wanted : callable
        Takes a row number, from 1, and returns whether to encode that row. Missing values, unknown categories and
        faults in other rows are not counted.

    Attributes
    ----------
    first : list of cells
        The cells of the first readable rows.
    missing, unseen : Counter
        The number of missing values per column, and of cells per unknown category, such as ``colour=red``.
    n_faulty : int
        The number of rows that could not be read.
    """

    def __init__(self, source: Source, wanted: Callable[[int], bool] = lambda number: True) -> None:
        self.source = source
        self._wanted = wanted
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.n_faulty = 0
        rows = source.rows()
        first = list(islice(rows, deciding.FIRST_ROWS))
        self._rows: Iterator[NumberedRow] = chain(first, rows)
        self._n_first, self._n_done = len(first), 0
        self.first = [cells for _, cells in first if not isinstance(cells, Fault)]
        if not self.first:
            faults = [f", {source.place} {line}: {cells.problem}" for line, cells in first if isinstance(cells, Fault)]
            raise ValueError(source.name + (faults[0] if faults else ": the file has a header, but no rows"))

    @property
    def n_read(self) -> int:
        """The number of rows read for the batches so far, including faulty and unwanted ones."""
        return self._n_done

    def fraction(self) -> float | None:
        """Return the share of the file that the batches so far cover; None if unknown.

        The share does not include first rows that were read in advance but not returned yet.
        """
        read = self.source.fraction()
        return None if read is None else read * min(1.0, self._n_done / self._n_first)

    def count_unseen(self, column: str, value: str) -> None:
        """Count an unknown category, as ``column=...`` if `MOST_UNSEEN` others are counted."""
        named = f"{column}={value}"
        full = len(self.unseen) >= MOST_UNSEEN and named not in self.unseen
        self.unseen[f"{column}=..." if full else named] += 1

    def decide_layout(
        self, labels: str | None, separator: str | None, settings: ColumnSettings, identity: str | None = None
    ) -> Layout:
        """Infer the kinds of the columns and the form of the labels from the first rows."""
        source = self.source
        if isinstance(source, XcSource):
            if labels is not None or identity is not None or settings != ColumnSettings():
                raise ValueError(
                    f"{source.name}: XC text has no named columns and includes its labels; omit column options"
                )
            return _xc_layout(source, self.first)
        chosen = decide_labels(source, self.first, labels, separator)
        label_columns = chosen.among(source.columns)
        if identity is not None:
            names_of([identity], source.columns, source.name)
            if identity in label_columns:
                raise ValueError(f"column {identity!r} is selected by two options; leave it out of one")
        settings.check(source.columns, [*label_columns, *([] if identity is None else [identity])], source.name)
        apart = {*label_columns, identity}
        cells = {name: cells for name, cells in self.cells_of_first().items() if name not in apart}
        columns = decide_columns(cells, source.nominal, settings, source.name)
        rows_are_sparse = source.sparse or any(isinstance(column, Text) for column in columns)
        return TableLayout(tuple(columns), chosen, rows_are_sparse, identity)

    def cells_of_first(self) -> dict[str, Sequence[Any]]:
        """Return the cells of each column in the first rows."""
        return dict(zip(self.source.columns, zip(*self.first, strict=True), strict=True))

    def declared_labels(self, layout: Layout) -> tuple[str, ...]:
        """Return the names of the 0/1 label columns; empty if labels have another form."""
        if isinstance(layout, XcLayout) or layout.labels is None or layout.labels.form != "flags":
            return ()
        return layout.labels.among(self.source.columns)

    def spreads(self, columns: Sequence[Numeric]) -> dict[str, float]:
        """Return each column's standard deviation over the first rows, unless it is 0."""
        cells, spreads = self.cells_of_first(), {}
        for column in columns:
            numbers = numbers_among(cells[column.name], comma=column.comma) / column.spread
            spreads[column.name] = float(np.std(numbers)) if len(numbers) else 0.0
        return {name: spread for name, spread in spreads.items() if spread > 0}

    def batches(
        self,
        layout: Layout,
        on_fault: Callable[[str], None],
        *,
        labels: bool = True,
        one_label: bool = False,
        decide: Callable[[str, Sequence[Any]], Column] | None = None,
    ) -> Iterator[Batch]:
        """Yield the rows of the file in batches.

        Parameters
        ----------
        layout : Layout
            The layout used to encode the rows.
        on_fault : callable
            Called with a message for every row that cannot be read; the row is left out.
        labels : bool, default=True
            Whether to read the labels.
        one_label : bool, default=False
            Whether a row without labels, or with several, is a fault.
        decide : callable, optional
            Returns the kind of a new column, given its name and cells. If passed, the layout grows with new categories
            and columns.

        Yields
        ------
        Batch
        """
        encoder = self._encoder(layout, labels, one_label, decide)
        while rows := list(islice(self._rows, BATCH_ROWS)):
            n_before, self._n_done = self._n_done, self._n_done + len(rows)
            wanted = [i for i in range(len(rows)) if self._wanted(n_before + i + 1)]
            readable = [i for i in wanted if not isinstance(rows[i][1], Fault)]
            targets: list[list[str] | Fault] = [row if isinstance(row, Fault) else [] for _, row in rows]
            parts, encoded = encoder.encode([rows[i][1] for i in readable])
            for i, target in zip(readable, encoded, strict=True):
                targets[i] = target
            for i in wanted:
                target = targets[i]
                if isinstance(target, Fault):
                    self.n_faulty += 1
                    on_fault(f"{self.source.name}, {self.source.place} {rows[i][0]}: {target.problem}")
            for part in parts:
                places = readable[part.start : part.stop]
                batch = Batch(
                    X=part.X,
                    labels=[_names(targets[i]) for i in places],
                    numbers=[n_before + i + 1 for i in places],
                    ids=encoder.ids([rows[i][1] for i in places]),
                    layout=part.layout,
                    # Empty for XC text, which has no columns.
                    cells=dict(zip(self.source.columns, zip(*(rows[i][1] for i in places), strict=True), strict=False)),
                ).where([not isinstance(targets[i], Fault) for i in places])
                if batch.numbers:
                    yield batch

    def _encoder(
        self, layout: Layout, labels: bool, one_label: bool, decide: Callable[[str, Sequence[Any]], Column] | None
    ) -> _Encoder:
        if isinstance(layout, XcLayout):
            return _XcEncoder(layout, one_label)
        return _TableEncoder(layout, self, labels, one_label, decide)


def _as_wanted(target: list[str] | Fault, one_label: bool) -> list[str] | Fault:
    if isinstance(target, Fault) or not one_label or len(target) == 1:
        return target
    return Fault(f"the row has {len(target) or 'no'} labels, but the model learned exactly one per row")


def _names(target: list[str] | Fault) -> tuple[str, ...]:
    return () if isinstance(target, Fault) else tuple(target)


class _TableEncoder:
    def __init__(
        self,
        layout: TableLayout,
        file: TableFile,
        labels: bool,
        one_label: bool,
        decide: Callable[[str, Sequence[Any]], Column] | None,
    ) -> None:
        self._layout = layout
        self._file, self._one_label, self._decide = file, one_label, decide
        self._names = file.source.columns
        self._labels = LabelReader(layout.labels, self._names) if labels and layout.labels is not None else None
        self._id = self._names.index(layout.id) if layout.id in self._names else None

    def encode(self, rows: Sequence[Any]) -> tuple[Sequence[Part], list[list[str] | Fault]]:
        """Encode the learned columns as matrices, and read the labels."""
        read = self._labels.read if self._labels else None
        targets: list[list[str] | Fault] = [_as_wanted(read(cells), self._one_label) if read else [] for cells in rows]
        if not rows:
            return [], targets
        cells = dict(zip(self._names, zip(*rows, strict=True), strict=True))
        if self._decide is None:
            X, remarks = encode(self._layout, cells, len(rows))
            parts = [Part(0, len(rows), X, self._layout)]
        else:
            unusable = [i for i, target in enumerate(targets) if isinstance(target, Fault)]
            parts, remarks = encode_growing(self._layout, cells, len(rows), unusable, self._decide)
            self._layout = parts[-1].layout
        for i, problem in remarks.faulty.items():
            targets[i] = Fault(problem)
        self._count(remarks.missing, remarks.unseen, cells)
        return parts, targets

    def ids(self, rows: Sequence[Any]) -> list[str] | None:
        """Return the values of the ID column."""
        return None if self._id is None else [id_of(cells[self._id]) for cells in rows]

    def _count(
        self,
        missing: Mapping[str, Sequence[int]],
        unseen: Mapping[str, Sequence[int]],
        cells: Mapping[str, Sequence[Any]],
    ) -> None:
        for name, rows in missing.items():
            self._file.missing[name] += len(rows)
        for name, rows in unseen.items():
            for i in rows:
                self._file.count_unseen(name, as_text(cells[name][i]))


class XcPart(NamedTuple):
    """Encoded rows of XC text, with the fields of `mlca.tables.encoding.Part`."""

    start: int
    stop: int
    X: sparse.csr_array
    layout: XcLayout


class _XcEncoder:
    def __init__(self, layout: XcLayout, one_label: bool) -> None:
        self.layout = layout
        self._one_label = one_label

    def ids(self, rows: Sequence[Any]) -> list[str] | None:
        """Return None: XC text has no IDs."""
        return None

    def encode(self, rows: Sequence[XcRow]) -> tuple[Sequence[XcPart], list[list[str] | Fault]]:
        """Return the rows as a sparse matrix, and for each row its labels or its Fault."""
        targets = [_as_wanted(self._labels_or_fault(row), self._one_label) for row in rows]
        usable = [
            ([], []) if isinstance(target, Fault) else (row.attributes, row.values)
            for row, target in zip(rows, targets, strict=True)
        ]
        ends = np.cumsum([0, *(len(attributes) for attributes, _ in usable)])
        columns = np.array([a for attributes, _ in usable for a in attributes], dtype=np.int32) - self.layout.first
        values = np.array([value for _, values in usable for value in values], dtype=np.float64)
        X = sparse.csr_array((values, columns, ends), shape=(len(rows), self.layout.n_features))
        return [XcPart(0, len(rows), X, self.layout)], targets

    def _labels_or_fault(self, row: XcRow) -> list[str] | Fault:
        first, last = self.layout.first, self.layout.first + self.layout.n_features - 1
        outside = [attribute for attribute in row.attributes if not first <= attribute <= last]
        if outside:
            return Fault(f"attribute {outside[0]} is out of range; expected {first} to {last}")
        if not all(abs(value) <= LARGEST_VALUE for value in row.values):
            return Fault("a value is too large")
        return [str(label) for label in row.labels]


def _xc_layout(source: XcSource, rows: Sequence[Any]) -> XcLayout:
    """Return the layout; features start at 1 if the index `n_features` occurs and 0 does not."""
    if not 0 < source.n_features <= MOST_FEATURES:
        raise bad_file(
            source.name, 1, f"the header declares {source.n_features:,} attributes; expected 1 to {MOST_FEATURES:,}"
        )
    numbers = [attribute for row in rows for attribute in row.attributes]
    one_based = max(numbers, default=0) == source.n_features and min(numbers) > 0
    return XcLayout(source.n_features, int(one_based))

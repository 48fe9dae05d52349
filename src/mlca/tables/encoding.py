"""Encoding of cells as a matrix; the layout may grow with new categories and columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from mlca.tables.cells import as_text
from mlca.tables.columns import ColumnSettings, decide_column, scaled
from mlca.tables.first_rows import CellsByColumn
from mlca.tables.kinds import MOST_VALUES_EVER, Categorical, Column, Date, Encoded, LearnedColumn, OneHot, Text
from mlca.tables.layout import TableLayout


class CellError(ValueError):
    """Raised for cells that do not fit their column; `rows` are the indices of their rows."""

    def __init__(self, faulty: Mapping[int, str]) -> None:
        row = min(faulty)
        remedy = "correct the cell, make it missing, or train with another kind of column (`columns`)"
        super().__init__(f"row {row} of X: {faulty[row]}; {remedy}")
        self.rows = frozenset(faulty)

    @classmethod
    def reject(cls, remarks: Remarks, first_row: int = 0) -> None:
        """Raise this error if any row is faulty; row indices start at `first_row`."""
        if remarks.faulty:
            raise cls({first_row + row: problem for row, problem in remarks.faulty.items()})


@dataclass
class Remarks:
    """Rows with missing values or unknown categories by column, and problems by row."""

    missing: dict[str, Sequence[int]] = field(default_factory=dict)
    unseen: dict[str, Sequence[int]] = field(default_factory=dict)
    faulty: dict[int, str] = field(default_factory=dict)


def encode(layout: TableLayout, cells: CellsByColumn, n_rows: int) -> tuple[Any, Remarks]:
    """Encode cells as a matrix.

    Parameters
    ----------
    layout : TableLayout
        The layout.
    cells : mapping of str to sequence
        The cells of each column. The values of an absent column are missing.
    n_rows : int
        The number of cells per column.

    Returns
    -------
    X : ndarray or csr_array of shape (n_rows, layout.n_features)
        The rows. Faulty cells have an arbitrary value.
    remarks : Remarks
        Missing values, unknown categories and faults.
    """
    remarks = Remarks()
    parts = []
    for column, places in zip(layout.learned, layout.places, strict=True):
        column_cells = cells.get(column.name)
        encoded = column.encode([None] * n_rows if column_cells is None else column_cells)
        parts.append((encoded, places))
        if column_cells is not None:
            _remark(remarks, column, encoded, column_cells)
    shape = (n_rows, layout.n_features)
    return (_sparse if layout.sparse else _dense)(parts, shape), remarks


def _remark(remarks: Remarks, column: LearnedColumn, encoded: Encoded, cells: Sequence[Any]) -> None:
    if encoded.missing:
        remarks.missing[column.name] = encoded.missing
    if encoded.unseen:
        remarks.unseen[column.name] = encoded.unseen
    for i in encoded.faulty:
        remarks.faulty.setdefault(i, f"{str(cells[i])[:40]!r} is {column.fault}, as column {column.name!r} requires")


def _dense(parts: Sequence[tuple[Encoded, Any]], shape: tuple[int, int]) -> Any:
    X = np.zeros(shape)
    for encoded, places in parts:
        X[encoded.rows, places[encoded.places]] = encoded.values
    return X


def _sparse(parts: Sequence[tuple[Encoded, Any]], shape: tuple[int, int]) -> Any:
    rows = np.concatenate([encoded.rows for encoded, _ in parts])
    columns = np.concatenate([places[encoded.places] for encoded, places in parts])
    values = np.concatenate([encoded.values for encoded, _ in parts])
    if shape[0] == 1:  # faster than SciPy's conversion, which several rows require
        order = np.flatnonzero(values != 0)
        order = order[np.argsort(columns[order])]
        return sparse.csr_array((values[order], columns[order], np.array([0, len(order)])), shape=shape)
    X = sparse.csr_array((values, (rows, columns)), shape=shape)
    X.eliminate_zeros()
    return X


@dataclass(frozen=True)
class Part:
    """Encoded rows from `start` up to, but excluding, `stop`; all have the same layout."""

    start: int
    stop: int
    X: Any
    layout: TableLayout


def encode_growing(
    layout: TableLayout,
    cells: CellsByColumn,
    n_rows: int,
    unusable: Collection[int] = (),
    decide: Callable[[str, Sequence[Any]], Column] | None = None,
) -> tuple[list[Part], Remarks]:
    """Encode cells with a layout that grows with the rows.

    A new category gets the next code. A new column is added at the first row. With a recipe from an older file, a new
    category adds a feature at the row where it first occurs, so the batch size does not change the result.

    Parameters
    ----------
    layout : TableLayout
        The layout so far.
    cells : mapping of str to sequence
        The cells of each column.
    n_rows : int
        The number of cells per column.
    unusable : collection of int
        Indices of faulty rows, which add no categories and do not affect the kinds of new columns.
    decide : callable, optional
        Returns the kind of a new column, given its name and cells. Default: new columns are ignored.

    Returns
    -------
    parts : list of Part
        The rows in order, including faulty ones.
    remarks : Remarks
        Missing values, faults, and categories beyond the limit.
    """
    steps = layout_steps(layout, cells, unusable, decide)
    X, remarks = encode(steps[-1][1], cells, n_rows)
    ends = [*(row for row, _ in steps[1:]), n_rows]
    parts = [
        Part(row, stop, X[row:stop, : known.n_features], known)
        for (row, known), stop in zip(steps, ends, strict=True)
        if stop > row
    ]
    return parts, remarks


def layout_steps(
    layout: TableLayout,
    cells: CellsByColumn,
    unusable: Collection[int] = (),
    decide: Callable[[str, Sequence[Any]], Column] | None = None,
) -> list[tuple[int, TableLayout]]:
    """Return (row index, layout) for row 0 and for each row at which the layout changes.

    The parameters are those of `encode_growing`.
    """
    if decide is not None:
        layout = _with_new_columns(layout, cells, unusable, decide)
    layout = _with_new_codes(layout, cells, unusable)
    events: dict[int, list[tuple[int, str]]] = {}
    for place, column in enumerate(layout.columns):
        if isinstance(column, OneHot):
            for row, text in _new_values(column, cells, unusable):
                events.setdefault(row, []).append((place, text))
    steps = [(0, layout)]
    for row in sorted(events):
        columns = list(steps[-1][1].columns)
        for place, text in events[row]:
            known = columns[place]
            assert isinstance(known, OneHot)
            columns[place] = OneHot(known.name, (*known.values, text))
        steps.append((row, steps[-1][1].with_late(columns)))
    return steps


def _with_new_codes(layout: TableLayout, cells: CellsByColumn, unusable: Collection[int]) -> TableLayout:
    """Give new categories the next codes; the number of features stays the same."""
    columns = list(layout.columns)
    for place, column in enumerate(columns):
        if isinstance(column, Categorical):
            new = _new_values(column, cells, unusable)
            columns[place] = replace(column, values=(*column.values, *(text for _, text in new)))
    return layout if tuple(columns) == layout.columns else replace(layout, columns=tuple(columns))


def _new_values(column: Categorical | OneHot, cells: CellsByColumn, unusable: Collection[int]) -> list[tuple[int, str]]:
    """Return (first row, category) of each new category of a column, up to its limit."""
    column_cells, left_out = cells.get(column.name, ()), set(unusable)
    most = column.most if isinstance(column, Categorical) else MOST_VALUES_EVER
    new: dict[str, int] = {}
    for row in column.encode(column_cells).unseen if len(column_cells) else ():
        text = as_text(column_cells[row])
        if len(column.values) + len(new) < most and row not in left_out:
            new.setdefault(text, row)
    return [(row, text) for text, row in new.items()]


def _with_new_columns(
    layout: TableLayout,
    cells: CellsByColumn,
    unusable: Collection[int],
    decide: Callable[[str, Sequence[Any]], Column],
) -> TableLayout:
    left_out = set(unusable)
    new = [
        decide(name, [cell for i, cell in enumerate(cells[name]) if i not in left_out])
        for name in layout.new_names(cells)
    ]
    return layout.with_late([*layout.columns, *new]) if new else layout


def kind_by(settings: ColumnSettings, layout: TableLayout) -> Callable[[str, Sequence[Any]], Column]:
    """Return a function that infers the kind of a new column from its name and cells."""
    beside_words = any(isinstance(column, Text | Date) for column in layout.columns)
    settings = settings.among([column.name for column in layout.columns])

    def decide(name: str, cells: Sequence[Any]) -> Column:
        column = decide_column(name, cells, settings)
        return scaled(column, cells) if beside_words else column

    return decide

"""From cells to a matrix, by a layout; and a layout that grows with what the cells bring."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from mlca.tables.columns import Wishes, decide_column, scaled
from mlca.tables.kinds import Categorical, Column, Date, Encoded, Learned, Text
from mlca.tables.layout import TableLayout

Cells = Mapping[str, Sequence[Any]]

# Values that a category may have. More would be text, or ids, and each makes the model wider.
MOST_VALUES_EVER = 1000


@dataclass
class Remarks:
    """What was odd about cells: by column, the rows without a value, with an unknown category, or with a fault."""

    missing: dict[str, Sequence[int]] = field(default_factory=dict)
    unseen: dict[str, Sequence[int]] = field(default_factory=dict)
    faulty: dict[int, str] = field(default_factory=dict)


def encode(layout: TableLayout, cells: Cells, n_rows: int) -> tuple[Any, Remarks]:
    """Make a matrix of cells.

    Parameters
    ----------
    layout : TableLayout
        What the columns mean.
    cells : mapping of str to sequence
        The cells of each column. A column that is not there is missing in every row.
    n_rows : int
        The number of cells of each.

    Returns
    -------
    X : ndarray or csr_array of shape (n_rows, layout.n_features)
        The rows. Those that are faulty have anything where the fault is.
    remarks : Remarks
        What was odd.
    """
    remarks = Remarks()
    parts = []
    for column, places in zip(layout.learned(), layout.places, strict=True):
        own = cells.get(column.name)
        encoded = column.encode([None] * n_rows if own is None else own)
        parts.append((encoded, places))
        if own is not None:
            _remark(remarks, column, encoded, own)
    shape = (n_rows, layout.n_features)
    return (_sparse if layout.sparse else _dense)(parts, shape), remarks


def _remark(remarks: Remarks, column: Learned, encoded: Encoded, cells: Sequence[Any]) -> None:
    if encoded.missing:
        remarks.missing[column.name] = encoded.missing
    if encoded.unseen:
        remarks.unseen[column.name] = encoded.unseen
    for i in encoded.faulty:
        remarks.faulty.setdefault(i, f"{str(cells[i])[:40]!r} is {column.wanted}, as column {column.name!r} asks for")


def _dense(parts: Sequence[tuple[Encoded, Any]], shape: tuple[int, int]) -> Any:
    X = np.zeros(shape)
    for encoded, places in parts:
        X[encoded.rows, places[encoded.places]] = encoded.values
    return X


def _sparse(parts: Sequence[tuple[Encoded, Any]], shape: tuple[int, int]) -> Any:
    rows = np.concatenate([encoded.rows for encoded, _ in parts])
    columns = np.concatenate([places[encoded.places] for encoded, places in parts])
    values = np.concatenate([encoded.values for encoded, _ in parts])
    X = sparse.csr_array((values, (rows, columns)), shape=shape)
    X.eliminate_zeros()
    return X


def grown(
    layout: TableLayout,
    cells: Cells,
    usable: Collection[int] | None,
    decide: Callable[[str, Sequence[Any]], Column] | None,
) -> TableLayout:
    """Return a layout that knows the new values and columns of cells.

    Parameters
    ----------
    layout : TableLayout
        What is known.
    cells : mapping of str to sequence
        The cells of each column.
    usable : collection of int or None
        The rows that count; None for all.
    decide : callable or None
        What decides the kind of a new column by its name and cells; None where new columns are left alone.
    """

    def counting(column: str) -> Sequence[Any]:
        return cells[column] if usable is None else [cells[column][i] for i in usable]

    columns: list[Column] = []
    for column in layout.columns:
        if isinstance(column, Categorical) and column.name in cells:
            column = column.grown(counting(column.name), MOST_VALUES_EVER)
        columns.append(column)
    known = {column.name for column in columns} | {layout.id}
    known |= set(layout.labels.among(list(cells))) if layout.labels is not None else set()
    if decide is not None:
        columns += [decide(name, counting(name)) for name in cells if name not in known]
    if tuple(columns) == layout.columns:
        return layout
    return layout.with_late(columns)


def kind_by(wishes: Wishes, layout: TableLayout) -> Callable[[str, Sequence[Any]], Column]:
    """Return what decides the kind of a new column: what the user said of it, its cells, and its neighbours."""
    beside_words = any(isinstance(column, Text | Date) for column in layout.columns)

    def decide(name: str, cells: Sequence[Any]) -> Column:
        column = decide_column(name, cells, wishes)
        return scaled(column, cells) if beside_words else column

    return decide

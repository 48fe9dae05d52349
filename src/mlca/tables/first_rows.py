"""The first rows of a table, kept until the kinds of columns can be inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlca.tables.cells import as_text, is_missing
from mlca.tables.columns import ColumnSettings, decide_columns
from mlca.tables.kinds import Text
from mlca.tables.layout import TableLayout

CellsByColumn = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class TableRows:
    """The cells of some rows of a table, by column.

    Attributes
    ----------
    by_column : mapping of str to sequence
        The cells of each column.
    n_rows : int
        The number of cells per column.
    nominal : mapping of str to tuple of str
        Columns that are declared categorical, with their values.
    later : tuple of str
        Columns that were absent from the first batch of rows.
    """

    by_column: CellsByColumn
    n_rows: int
    nominal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    later: tuple[str, ...] = ()

    def between(self, start: int, stop: int) -> TableRows:
        """Return the rows from `start` up to, but excluding, `stop`."""
        if start <= 0 and stop >= self.n_rows:
            return self
        start, stop = max(start, 0), min(stop, self.n_rows)
        by_column = {name: cells[start:stop] for name, cells in self.by_column.items()}
        return TableRows(by_column, max(stop - start, 0), self.nominal)

    def take(self, rows: Sequence[int]) -> TableRows:
        """Return the rows with the given indices."""
        by_column = {name: [cells[row] for row in rows] for name, cells in self.by_column.items()}
        return TableRows(by_column, len(rows), self.nominal)


@dataclass(frozen=True)
class FirstRows:
    """The first rows, in the batches in which they arrived; joined to infer column kinds."""

    portions: tuple[TableRows, ...] = ()

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(portion.n_rows for portion in self.portions)

    def with_rows(self, more: TableRows) -> FirstRows:
        """Return a copy with more rows appended."""
        return FirstRows((*self.portions, more)) if more.n_rows else self

    def joined(self, n_rows: int | None = None) -> TableRows:
        """Join the first `n_rows` rows (default: all); absent columns become missing values."""
        by_column: dict[str, list[Any]] = {}
        nominal: dict[str, tuple[str, ...]] = {}
        left, done = self.n_rows if n_rows is None else n_rows, 0
        for portion in self.portions:
            part = portion.between(0, left - done)
            if not part.n_rows:
                break
            for name, cells in part.by_column.items():
                by_column.setdefault(name, [None] * done).extend(cells)
            done += part.n_rows
            for cells in by_column.values():
                cells.extend([None] * (done - len(cells)))
            for name, values in part.nominal.items():
                nominal[name] = (*nominal.get(name, ()), *values)
        later = tuple(name for name in by_column if name not in self.portions[0].by_column)
        return TableRows(by_column, done, nominal, later)


def decide_layout(first: TableRows, settings: ColumnSettings) -> TableLayout:
    """Infer the kinds of the columns; ValueError if the user must set a kind."""
    # The declared values, then all others that occur, because each frame declares only its own values.
    nominal = {
        name: tuple(
            dict.fromkeys([*values, *(as_text(cell) for cell in first.by_column[name] if not is_missing(cell))])
        )
        for name, values in first.nominal.items()
    }
    columns = decide_columns(first.by_column, nominal, settings, "X")
    return TableLayout(tuple(columns), sparse=any(isinstance(column, Text) for column in columns), later=first.later)

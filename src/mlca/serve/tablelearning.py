"""A model that learns the rows of a table log, by a recipe that these rows decide.

The model at a position is a function of the rows up to it, not of how they came: requests, chapters and snapshots cut
the log anywhere. So everything here goes by the row. The kinds of columns are decided by the first 1000 rows, as
`mlca.tables.Recipe` decides them. Until these have come they are held, and whenever their number has doubled all are
learned anew by what they say together: after each row would be exact as well, but costs minutes where rows come one by
one. In between, and when the recipe has settled, a new category has the next code, and a new column begins with the
first row that has a value in it, whose cell decides its kind.

Nothing here fails on a row of the log. A cell that its column cannot read is a gap; columns that nobody could decide
about are text; where all would be left out, as ids are, all are learned; columns beyond a limit are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from mlca.limits import LARGEST_VALUE
from mlca.recipes import recipe_of, set_recipe
from mlca.serve.tablerows import MOST_CELLS, NamedCells, known_names, new_names
from mlca.tables import columns as deciding
from mlca.tables.cells import is_missing, plain_numbers
from mlca.tables.columns import Wishes, decide_column, scaled
from mlca.tables.encoding import encode, encode_growing
from mlca.tables.kinds import Column, Date, Ignored, Numeric, Text
from mlca.tables.layout import TableLayout
from mlca.tables.recipe import Recipe
from mlca.targets import read_targets

if TYPE_CHECKING:
    from mlca.classifier import MLCA

# Numbers that the cells of a row may become.
MOST_NUMBERS = 100_000

LabelNames = tuple[str, ...]


class TableLearner:
    """Lets a model learn and read rows of cells.

    Parameters
    ----------
    model : MLCA
        A model that has learned nothing, or one that carries a recipe, which has then settled.

    Attributes
    ----------
    layout : TableLayout or None
        What the columns mean, as far as the rows have told; None before the first.
    """

    def __init__(self, model: MLCA) -> None:
        self.model = model
        recipe = recipe_of(model) if hasattr(model, "labels_") else None
        layout = None if recipe is None else recipe.layout
        assert layout is None or isinstance(layout, TableLayout)
        self.layout: TableLayout | None = layout
        self._growth = () if recipe is None else recipe.growth
        self._first: list[NamedCells] | None = [] if recipe is None else None
        self._first_labels: list[LabelNames] = []

    @property
    def settled(self) -> bool:
        """Whether enough rows have come to decide about the columns for good."""
        return self._first is None

    def encode(self, rows: Sequence[NamedCells]) -> Any:
        """Return rows as the model takes them: what cannot be read, or was never learned, is a gap."""
        assert self.layout is not None
        X, _ = encode(self.layout, _by_column(rows, _learned(self.layout)), len(rows))
        return _within_bounds(X)

    def learn(self, rows: Sequence[NamedCells], labels: Sequence[LabelNames]) -> None:
        """Learn rows of the log; there is at least one."""
        start = 0
        while self._first is not None and start < len(rows):
            stop = start + _next_decision(len(self._first)) - len(self._first)
            self._hold(self._first, rows[start:stop], labels[start:stop])
            start = stop
        if start < len(rows):
            self._go_on(rows[start:], labels[start:])

    def _hold(self, first: list[NamedCells], rows: Sequence[NamedCells], labels: Sequence[LabelNames]) -> None:
        """Learn some of the first rows, at most up to the next decision about the columns."""
        due = _next_decision(len(first)) == len(first) + len(rows)
        first.extend(rows)
        self._first_labels.extend(labels)
        layout = decide_layout(first) if due else self.layout
        if layout == self.layout:
            self._go_on(rows, labels)
        else:
            assert layout is not None
            self.layout = layout
            self.model.__dict__ = clone(self.model).__dict__
            self._learn(self.encode(first), layout, self._first_labels)
            set_recipe(self.model, Recipe.by_layout(layout))
        if len(first) >= deciding.FIRST_ROWS:
            self._first, self._first_labels = None, []

    def _go_on(self, rows: Sequence[NamedCells], labels: Sequence[LabelNames]) -> None:
        """Learn rows by what is known of columns, up to each that brings a new one."""
        assert self.layout is not None
        before: TableLayout = self.layout
        start = 0
        while start < len(rows):
            self.layout = _with_columns(self.layout, rows[start])
            stop = start + 1 + self._same_columns(rows[start + 1 :])
            cells = _by_column(rows[start:stop], _learned(self.layout))
            for part in encode_growing(self.layout, cells, stop - start)[0]:
                self._learn(_within_bounds(part.X), part.layout, labels[start + part.start : start + part.stop])
                self.layout = part.layout
            start = stop
        if self.layout is not before:
            set_recipe(self.model, Recipe.by_layout(self.layout, self._growth))

    def _same_columns(self, rows: Sequence[NamedCells]) -> int:
        """Return how many rows there are before the first that brings a column."""
        assert self.layout is not None
        known = known_names(self.layout)
        if len(self.layout.columns) >= MOST_CELLS:
            return len(rows)
        return next((i for i, row in enumerate(rows) if new_names(row, self.layout, known)), len(rows))

    def _learn(self, X: Any, layout: TableLayout, labels: Sequence[LabelNames]) -> None:
        from mlca.frames import learn_rows

        known, targets = read_targets(list(labels), getattr(self.model, "labels_", None))
        learn_rows(self.model, X, layout, known, targets)


def _next_decision(n_rows: int) -> int:
    """Return after how many rows the columns are decided about next: 1, 2, 4, ... and the last time when settled."""
    return min(1 << n_rows.bit_length(), deciding.FIRST_ROWS)


def decide_layout(rows: Sequence[NamedCells]) -> TableLayout:
    """Decide what the columns of the first rows are: as a recipe does, but whatever they hold.

    Examples
    --------
    >>> layout = decide_layout([{"size": 1.5, "colour": "red"}, {"size": 2, "colour": "blue", "sold": None}])
    >>> [(column.name, column.kind) for column in layout.columns]
    [('size', 'numeric'), ('colour', 'categorical')]
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    # A column without a value is not there yet: what it is, the first value will tell.
    there = dict.fromkeys(name for row in rows for name, cell in row.items() if not is_missing(cell))
    cells = _by_column(rows, list(there)[:MOST_CELLS])
    if not cells:
        return TableLayout(tuple(Numeric(name) for name in names[:MOST_CELLS]))
    columns = [_decided(name, values) for name, values in cells.items()]
    if all(isinstance(column, Ignored) for column in columns):
        columns = [_learned_anyway(name, values) for name, values in cells.items()]
    columns = _bounded(columns)
    if any(isinstance(column, Text | Date) for column in columns):
        columns = [scaled(column, cells[column.name]) for column in columns]
    return TableLayout(tuple(columns), sparse=any(isinstance(column, Text) for column in columns))


def _decided(name: str, cells: Sequence[Any]) -> Column:
    """Decide about a column; it is text where a recipe would ask its user."""
    try:
        return decide_column(name, cells, Wishes())
    except ValueError:
        return decide_column(name, cells, Wishes(text=(name,)))


def _learned_anyway(name: str, cells: Sequence[Any]) -> Column:
    """Decide about a column that is not to be left out."""
    numbers = plain_numbers([cell for cell in cells if not is_missing(cell)])
    return decide_column(name, cells, Wishes(text=(name,)) if numbers is None else Wishes(numeric=(name,)))


def _with_columns(layout: TableLayout, row: NamedCells) -> TableLayout:
    """Return the layout with the columns that a row brings, as far as there is room."""
    room = max(0, MOST_CELLS - len(layout.columns))
    new = [_decided(name, [row[name]]) for name in new_names(row, layout, known_names(layout))[:room]]
    if any(isinstance(column, Text | Date) for column in layout.columns):
        new = [scaled(column, [row[column.name]]) for column in new]
    return layout.with_late([*layout.columns, *_bounded(new, layout.n_features)]) if new else layout


def _bounded(columns: Sequence[Column], width: int = 0) -> list[Column]:
    """Leave out columns that would make rows, which have a width already, too wide."""
    bounded: list[Column] = []
    for column in columns:
        fits = width + column.width <= MOST_NUMBERS
        bounded.append(column if fits else Ignored(column.name, "rows would become too wide"))
        width += bounded[-1].width
    return bounded


def _learned(layout: TableLayout) -> list[str]:
    return [column.name for column in layout.learned]


def _by_column(rows: Sequence[NamedCells], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in names}


def _within_bounds(X: Any) -> Any:
    """Leave a gap where a number has become too large to learn, as one far away from all others may when scaled."""
    values = X if isinstance(X, np.ndarray) else X.data
    values[np.abs(values) > LARGEST_VALUE] = np.nan
    return X

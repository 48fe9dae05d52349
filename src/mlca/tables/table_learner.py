"""The table learner, which infers the kinds of columns, and encodes and learns rows.

Training on data frames, on the command line and in the service uses this class. The kinds of columns are inferred from
the first 1000 rows. Until then rows are kept, and the kinds are inferred again after 1, 2, 4, ... rows; if they have
changed, the model is retrained on all rows so far. Inferring them after each row would give the same final model, but
in time that grows with the square of the number of rows. Between and after these decisions, a new category gets the
next code, and new columns are added on the right.

The model after a number of rows does not depend on the batches in which they arrived. With `bad_cells="missing"`, a
new column therefore begins at the first row that has a value in it, and that value determines its kind. In the other
modes, all rows of the call determine it, because all rows of a frame have the same columns.

`bad_cells` sets how cells that do not fit their column are handled:

* "raise": the whole call is rejected, and the model is unchanged. If the columns are not settled, their kinds are first
  inferred again from the rows up to that cell.
* "skip": rows with such a cell are skipped and counted. As with "raise", the kinds of columns that are not settled are
  first inferred again.
* "missing": the cell is treated as missing, and no row is rejected. A column whose kind is unclear becomes text. If all
  columns would be ignored as IDs, all are learned. Columns beyond a limit are ignored. If the cells contradict a kind
  that the user set, the column becomes text. The service needs this mode, because it replays its log at each start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from mlca.learner.widening import widened
from mlca.limits import LARGEST_VALUE
from mlca.messages import warn
from mlca.model import RECIPE, LearnedModel, extra_of, set_extra
from mlca.tables import columns as deciding
from mlca.tables import first_rows
from mlca.tables.cells import is_missing, plain_numbers
from mlca.tables.columns import ColumnSettings, decide_column, scaled
from mlca.tables.encoding import CellError, Part, encode, encode_growing, kind_by
from mlca.tables.first_rows import CellsByColumn, FirstRows, TableRows
from mlca.tables.kinds import Column, Date, Ignored, Numeric, Text
from mlca.tables.layout import Layout, TableLayout
from mlca.tables.recipe import Growth, Recipe, recipe_from_json, reject_missing_columns, warn_of_columns
from mlca.targets import LabelRows, LabelSet, read_targets

BadCells: TypeAlias = Literal["raise", "missing", "skip"]

# Limits with `bad_cells="missing"`: learned columns, and features per row. The limit of features is raised if
# MOST_TEXTS text columns have more.
MOST_CELLS = 10_000
MOST_NUMBERS = 100_000
MOST_TEXTS = 24

# If rows arrive one by one, ignored columns are reported after this number of rows.
_REPORTED_FROM = 100


def recipe_of(model: LearnedModel) -> Recipe | None:
    """Return the recipe of a model; None if it was not trained on tables.

    Raises
    ------
    ValueError
        If the model comes from a file whose recipe is damaged, or belongs to another model.
    """
    kept = extra_of(model, RECIPE)
    if kept is None or isinstance(kept, Recipe):
        return kept
    recipe = recipe_from_json(kept, model._learner.n_features)
    set_recipe(model, recipe)
    return recipe


def set_recipe(model: LearnedModel, recipe: Recipe) -> None:
    """Attach a recipe to a model, and name the model's features after its columns."""
    set_extra(model, RECIPE, recipe)
    if isinstance(recipe.layout, TableLayout):
        names = [column.name for column in recipe.layout.columns]
        model.n_features_in_, model.feature_names_in_ = len(names), np.array(names, dtype=object)


def recipe_for(model: LearnedModel) -> Recipe | None:
    """Return a model's recipe, or one made from its column names; None without names."""
    recipe = recipe_of(model)
    if recipe is None and hasattr(model, "feature_names_in_"):
        columns = tuple(Numeric(str(name)) for name in model.feature_names_in_)
        recipe = Recipe.by_layout(TableLayout(columns, sparse=model._learner.sparse_nodes))
    return recipe


def widen_model(model: LearnedModel, layout: Layout) -> None:
    """Append the new features of a layout to a model; they are missing in all earlier rows.

    `mlca.learner.widening` describes to what extent this is exact.
    """
    before = model._learner.n_features
    if layout.n_features <= before:
        return
    gaps, nominal = ([place for place in places if place >= before] for places in (layout.gaps, layout.nominal))
    fresh = model._apart()
    fresh._learner = widened(model._learner, layout.n_features, gaps, nominal)
    model.__dict__ = fresh.__dict__


class Held(NamedTuple):
    """Rows and labels kept until columns are settled, and ignored columns reported so far."""

    rows: FirstRows = FirstRows()
    targets: tuple[LabelRows, ...] = ()
    reported: frozenset[str] = frozenset()


class _Plan(NamedTuple):
    """The changes that a call will make after it has been validated."""

    begun: tuple[TableLayout, Any] | None  # a new layout, and all rows so far encoded with it, which are learned again
    parts: list[Part]  # further rows to learn; `start` and `stop` are row indices within the call
    first: FirstRows | None  # the rows to keep afterwards; None if columns are settled
    warning: str | None = None


class TableLearner:
    """Trains a model on the rows of a table with columns of any kind.

    Parameters
    ----------
    model : MLCA
        An empty model, or one with named columns. Their kinds are final unless `held` is passed.
    bad_cells : {"raise", "missing", "skip"}, default="raise"
        How cells that do not fit their column are handled.
    settings : ColumnSettings, optional
        The user's column settings (default: those of the model).
    held : Held, optional
        The rows kept so far, if the columns of the model are not settled.

    Attributes
    ----------
    held : Held or None
        The rows kept so far; None if columns are settled.
    n_skipped : int
        The number of rows that were skipped so far, with `bad_cells="skip"`.

    Examples
    --------
    >>> from mlca import MLCA
    >>> from mlca.tables import TableLearner
    >>> from mlca.tables.first_rows import TableRows
    >>> table = TableLearner(MLCA())
    >>> table.learn(TableRows({"size": [1.5, 3.0], "colour": ["red", "blue"]}, 2), [["warm"], ["cold"]])
    >>> [(column.name, column.kind) for column in table.layout.columns], table.settled
    ([('size', 'numeric'), ('colour', 'categorical')], False)
    >>> table.encode({"size": [2.0], "colour": ["red"]}, 1)
    array([[2., 2.]])
    """

    def __init__(
        self,
        model: LearnedModel,
        bad_cells: BadCells = "raise",
        *,
        settings: ColumnSettings | None = None,
        held: Held | None = None,
    ) -> None:
        self.model = model
        self.held = held if hasattr(model, "labels_") else Held()
        self.n_skipped = 0
        self._tolerant, self._skips = bad_cells == "missing", bad_cells == "skip"
        settings = settings or ColumnSettings.of_kinds(model.columns or {}, text_features=model.text_features)
        # The service replays logs written by earlier versions, which must give the same column kinds again.
        self._settings = replace(settings, first_version=True) if self._tolerant else settings

    @property
    def layout(self) -> TableLayout:
        """The current layout, inferred from the rows so far."""
        recipe = recipe_for(self.model)
        if recipe is None:
            raise ValueError("the model learned numbers without names; pass an array with the same columns")
        return recipe.table_layout

    @property
    def settled(self) -> bool:
        """Whether enough rows have arrived to make the kinds of columns final."""
        return self.held is None

    def encode(self, cells: CellsByColumn, n_rows: int) -> Any:
        """Return encoded rows; absent columns become missing values, and unknown ones are ignored."""
        return self._encoded(self.layout, TableRows(cells, n_rows))

    def learn(
        self, cells: TableRows, y: Any, classes: Iterable[Hashable] | None = None, *, settle: bool = False
    ) -> None:
        """Learn rows and their labels.

        Parameters
        ----------
        cells : TableRows
            At least one row.
        y, classes : object
            The labels, as for `MLCA.partial_fit`. Labels that occur only in skipped rows also become known, if any row
            of the call is learned.
        settle : bool, default=False
            Whether to make the kinds of columns final after these rows, even if they are few.
        """
        model = self.model
        labels, targets = read_targets(y, getattr(model, "labels_", None), classes)
        if targets.n_rows != cells.n_rows:
            raise ValueError(f"X has {cells.n_rows} rows but y has {targets.n_rows}; each row needs its labels")
        read = self._plan_readable(cells, targets, settle)
        if read is None:
            self.n_skipped += cells.n_rows
            return
        self.n_skipped += cells.n_rows - read[1].n_rows
        plan, cells, targets = read
        held, n_before = self.held, self._n_seen
        reported = frozenset(self.layout.left_out) if held is None else held.reported
        try:
            self._carry_out(plan, cells, labels, targets)
        finally:  # after an interrupt, only the learned rows are kept
            self.held = _held_after(plan, held, cells, targets, self._n_seen - n_before)
        if plan.warning is not None:
            warn(plan.warning)
        if not self._tolerant:
            self._report_left_out(reported, cells.n_rows)

    def _report_left_out(self, reported: frozenset[str], n_new: int) -> None:
        """Warn once about each ignored column, as soon as enough rows have arrived."""
        left_out, held = self.layout.left_out, self.held
        if held is not None:
            if n_new < deciding.FEW_ROWS and held.rows.n_rows < _REPORTED_FROM:
                self.held = held._replace(reported=reported)
                return
            self.held = held._replace(reported=reported | left_out.keys())
        warn_of_columns({name: reason for name, reason in left_out.items() if name not in reported})

    @property
    def _n_seen(self) -> int:
        return self.model._learner.n_seen if hasattr(self.model, "labels_") else 0

    def _carry_out(self, plan: _Plan, cells: TableRows, labels: LabelSet, targets: LabelRows) -> None:
        """Learn the rows in a plan."""
        model, held = self.model, self.held
        if plan.begun is not None:
            assert held is not None
            n_known, (layout, rows) = held.rows.n_rows, plan.begun
            learned = _joined([*held.targets, targets.between(0, rows.shape[0] - n_known)])
            fresh = model._apart()  # so that an interrupt leaves the old model unchanged
            seed = model._learner.parameters.seed  # the same seed whenever rows are learned again
            fresh._start_afresh(rows, rows, labels, categories=layout.nominal, seed=seed)
            recipe = Recipe.by_layout(layout)
            set_recipe(fresh, recipe)
            fresh._learn(rows, learned)
            for portion in (*held.rows.portions, cells.between(0, rows.shape[0] - n_known)):
                recipe.words.learn(layout.columns, portion.by_column, portion.n_rows)
            model.__dict__ = fresh.__dict__
        for part in plan.parts:
            portion = cells.between(part.start, part.stop)
            self.learn_part(part.X, part.layout, labels, targets.between(part.start, part.stop), portion.by_column)

    def learn_part(
        self, X: Any, layout: Layout, labels: LabelSet, targets: LabelRows, cells: CellsByColumn | None = None
    ) -> None:
        """Learn rows that were encoded with the model's layout or an extension of it.

        Parameters
        ----------
        X : ndarray or csr_array
            The rows.
        layout : Layout
            The layout of the rows.
        labels, targets : LabelSet, LabelRows
            All labels known so far, and the labels of each row.
        cells : mapping of str to sequence, optional
            The cells of the rows, whose words are stored for display.
        """
        model = self.model
        rows = model._read_rows(X, targets)
        # Other threads must always see a recipe that matches the learner, and a name for each of its labels. A new
        # learner is therefore prepared in a copy of the model; otherwise, names are added before rows are learned.
        begins = not hasattr(model, "labels_")
        fresh = model._apart() if begins or layout.n_features > model._learner.n_features else model
        if begins:
            fresh._start_afresh(rows, rows, labels, categories=layout.nominal)
        else:
            widen_model(fresh, layout)
        fresh.labels_ = labels
        recipe = recipe_of(fresh)
        if recipe is None or recipe.layout is not layout or begins:
            known = ((), None) if recipe is None else (recipe.growth, recipe.words)
            recipe = Recipe.by_layout(layout, *known)
            set_recipe(fresh, recipe)
        model.__dict__ = fresh.__dict__
        n_before = model._learner.n_seen
        try:
            model._learn(rows, targets)
        finally:  # after an interrupt, only some of the rows may have been learned
            if cells is not None and isinstance(layout, TableLayout):
                recipe.words.learn(layout.columns, cells, model._learner.n_seen - n_before)

    def note_growth(self, *, final: bool = False) -> None:
        """Append the model's current size to the recipe's `growth`, if an entry is due."""
        model, recipe = self.model, recipe_of(self.model)
        assert recipe is not None
        set_recipe(model, recipe.grown(Growth(model.n_seen_, model.n_nodes_, len(model.classes_)), final=final))

    def _plan_readable(
        self, cells: TableRows, targets: LabelRows, settle: bool
    ) -> tuple[_Plan, TableRows, LabelRows] | None:
        """Return the plan, the valid rows and their labels; None if no row is valid."""
        while cells.n_rows:
            try:
                return self._plan(cells, settle), cells, targets
            except CellError as error:
                if not self._skips:
                    raise
                kept = [row for row in range(cells.n_rows) if row not in error.rows]
                cells, targets = cells.take(kept), targets.take(kept)
        return None

    def _plan(self, cells: TableRows, settle: bool) -> _Plan:
        """Encode all rows of a call; raise CellError if a row is invalid."""
        if self.held is None:
            return _Plan(None, self._grown(self.layout, cells, 0, settled=True), None)
        known, n_known = self.held.rows, self.held.rows.n_rows
        first = known.with_rows(cells.between(0, deciding.FIRST_ROWS - n_known))
        settled = settle or first.n_rows >= deciding.FIRST_ROWS
        due = first.n_rows if settled else _last_decision(first.n_rows)
        layout, done, begun = self.layout if n_known else None, n_known, None
        if due > n_known:
            try:
                decided = self._decided(first.joined(due))
            except ValueError as error:
                if not n_known:
                    raise
                # Keep the current kinds, because earlier rows must not cause the rows of this call to be rejected.
                parts = self._grown(self.layout, cells, 0, settled=True)
                kept = f"the kinds of columns stay unchanged; they cannot be inferred from all rows so far: {error}"
                return _Plan(None, parts, None, kept)
            if decided[0] != layout:
                layout, done, begun = decided[0], due, decided
        while True:
            assert layout is not None
            start = done - n_known
            rest = cells.between(start, cells.n_rows)
            try:
                parts = self._grown(layout, rest, start, settled=settled) if rest.n_rows else []
                if begun and not n_known:  # nothing is relearned, so an interrupt may keep some rows
                    parts, begun = [Part(0, done, begun[1], layout), *parts], None
                return _Plan(begun, parts, None if settled else first)
            except CellError as error:
                if settled:
                    raise
                # Infer the kinds again from the rows up to the first invalid one: its column may get another kind.
                done = n_known + min(error.rows) + 1
                try:
                    begun = self._decided(first.joined(done))
                except ValueError:
                    raise error from None
                layout = begun[0]

    def _decided(self, first: TableRows) -> tuple[TableLayout, Any]:
        """Infer the kinds of columns from the first rows, and encode these rows."""
        layout = (_decide_any if self._tolerant else first_rows.decide_layout)(first, self._settings)
        return layout, self._encoded(layout, first)

    def _encoded(self, layout: TableLayout, cells: TableRows) -> Any:
        X, remarks = encode(layout, cells.by_column, cells.n_rows)
        if self._tolerant:
            return _within_bounds(X)
        CellError.reject(remarks)
        return self.model._read_rows(X)

    def _grown(self, layout: TableLayout, cells: TableRows, first_row: int, *, settled: bool) -> list[Part]:
        """Encode rows, and extend the layout as needed."""
        if self._tolerant:
            return _grown_by_rows(layout, cells, first_row, self._settings)
        decide = kind_by(self._settings, layout)
        parts, remarks = encode_growing(layout, cells.by_column, cells.n_rows, (), decide)
        CellError.reject(remarks, first_row)
        if settled:
            reject_missing_columns(parts[-1].layout, list(cells.by_column))
        return [_moved(part, first_row, self.model._read_rows(part.X)) for part in parts]


def _held_after(plan: _Plan, held: Held | None, cells: TableRows, targets: LabelRows, n_learned: int) -> Held | None:
    """Return the rows to keep after `n_learned` rows of a call have been learned."""
    if held is None or not n_learned:
        return held
    if n_learned >= targets.n_rows:
        return None if plan.first is None else Held(plan.first, (*held.targets, targets))
    rows = held.rows.with_rows(cells.between(0, n_learned))
    settled = rows.n_rows >= deciding.FIRST_ROWS
    return None if settled else Held(rows, (*held.targets, targets.between(0, n_learned)))


def _last_decision(n_rows: int) -> int:
    """Return the largest power of 2 up to `n_rows`: kinds are inferred after 1, 2, 4, ..."""
    return 1 << (n_rows.bit_length() - 1)


def _moved(part: Part, first_row: int, X: Any) -> Part:
    return Part(part.start + first_row, part.stop + first_row, X, part.layout)


def _grown_by_rows(layout: TableLayout, cells: TableRows, first_row: int, settings: ColumnSettings) -> list[Part]:
    """Encode rows; a new column begins at the first row that has a value in it."""
    n_allowed = max(0, MOST_CELLS - len(layout.columns))
    brought: dict[int, list[str]] = {}
    for row, name in _first_values(cells.by_column, layout.new_names(cells.by_column))[:n_allowed]:
        brought.setdefault(row, []).append(name)
    bounds = sorted({0, cells.n_rows, *brought})
    parts = []
    for start, stop in pairwise(bounds):
        new = {name: cells.by_column[name][start] for name in brought.get(start, ())}
        layout = _with_columns(layout, new, settings) if new else layout
        portion = cells.between(start, stop)
        for part in encode_growing(layout, portion.by_column, portion.n_rows)[0]:
            parts.append(_moved(part, first_row + start, _within_bounds(part.X)))
            layout = part.layout
    return parts


def _first_values(cells: CellsByColumn, names: Iterable[str]) -> list[tuple[int, str]]:
    """Return (index of first row with a value, name) of each non-empty column, in order."""
    found = []
    for name in names:
        row = next((row for row, cell in enumerate(cells[name]) if not is_missing(cell)), None)
        if row is not None:
            found.append((row, name))
    return sorted(found)


def _decide_any(first: TableRows, settings: ColumnSettings) -> TableLayout:
    """Infer the kinds of columns from the first rows, without raising an error."""
    # A column without a value does not exist yet: its first value will determine its kind.
    names = [name for _, name in _first_values(first.by_column, first.by_column)][:MOST_CELLS]
    cells = {name: first.by_column[name] for name in names}
    if not cells:
        return TableLayout(tuple(Numeric(name) for name in list(first.by_column)[:MOST_CELLS]))
    columns = [_decide_one(name, values, settings) for name, values in cells.items()]
    if all(isinstance(column, Ignored) for column in columns):
        wanted = {name for name in cells if settings.kind_of(name) != "ignore"} or set(cells)
        columns = [_learned_anyway(c.name, cells[c.name], settings) if c.name in wanted else c for c in columns]
    columns = _bounded(columns, settings)
    if any(isinstance(column, Text | Date) for column in columns):
        columns = [scaled(column, cells[column.name]) for column in columns]
    return TableLayout(tuple(columns), sparse=any(isinstance(column, Text) for column in columns))


def _decide_one(name: str, cells: Sequence[Any], settings: ColumnSettings) -> Column:
    """Infer the kind of a column; text if `decide_column` raises ValueError."""
    try:
        return decide_column(name, cells, settings)
    except ValueError:
        return decide_column(name, cells, ColumnSettings(text=(name,), text_features=settings.text_features))


def _learned_anyway(name: str, cells: Sequence[Any], settings: ColumnSettings) -> Column:
    """Infer the kind of a column that must not be ignored."""
    numbers = plain_numbers([cell for cell in cells if not is_missing(cell)])
    as_text = ColumnSettings(text=(name,), text_features=settings.text_features)
    return decide_column(name, cells, as_text if numbers is None else ColumnSettings(numeric=(name,)))


def _with_columns(layout: TableLayout, brought: dict[str, Any], settings: ColumnSettings) -> TableLayout:
    """Return the layout with the new columns in a row, whose cells determine their kinds."""
    new = [_decide_one(name, [cell], settings) for name, cell in brought.items()]
    if any(isinstance(column, Text | Date) for column in layout.columns):
        new = [scaled(column, [brought[column.name]]) for column in new]
    return layout.with_late([*layout.columns, *_bounded(new, settings, layout.n_features)])


def _bounded(columns: Sequence[Column], settings: ColumnSettings, width: int = 0) -> list[Column]:
    """Ignore columns that would make rows of `width` features exceed the limit."""
    bounded: list[Column] = []
    widest = max(MOST_NUMBERS, MOST_TEXTS * settings.text_features)
    for column in columns:
        fits = width + column.width <= widest
        bounded.append(column if fits else Ignored(column.name, "rows would become too wide"))
        width += bounded[-1].width
    return bounded


def _within_bounds(X: Any) -> Any:
    """Replace values that are too large after scaling, such as outliers, with NaN."""
    values = X if isinstance(X, np.ndarray) else X.data
    values[np.abs(values) > LARGEST_VALUE] = np.nan
    return X


def _joined(parts: Sequence[LabelRows]) -> LabelRows:
    ends = np.cumsum([0, *(len(part.indices) for part in parts)])
    indptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(parts, ends, strict=False))])
    indices = np.concatenate([part.indices for part in parts])
    n_before = max(part.n_before for part in parts)
    ids = None
    if any(part.ids is not None for part in parts):
        ids = tuple(chain.from_iterable(part.ids or (None,) * part.n_rows for part in parts))
    return LabelRows(indptr.astype(np.int64), indices, max(part.n_labels for part in parts), n_before, ids)

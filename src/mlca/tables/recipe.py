"""The recipe: from a table with columns of any kind to numbers, learned with the stream and kept with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mlca.tables import columns as deciding
from mlca.tables.cells import as_text, is_missing
from mlca.tables.columns import TEXT_PLACES, Wishes, decide_columns, some
from mlca.tables.encoding import Part, Remarks, encode, encode_growing, kind_by, layout_steps
from mlca.tables.frame_cells import cells_of, joined, n_rows_of
from mlca.tables.kinds import AS_YOU_WISH, MOST_PLACES, Date, Ignored, OneHot, Text
from mlca.tables.layout import Layout, TableLayout, XcLayout, layout_from_json
from mlca.validation import check_whole
from mlca.warning import warn

# A growth note is taken when the rows have become more by this factor.
_NEXT_NOTE = 1.25


class Growth(NamedTuple):
    """How large a model was after some rows."""

    rows: int
    nodes: int
    labels: int


class Recipe(TransformerMixin, BaseEstimator):
    """Columns of any kind to numbers, learned row by row.

    The first 1000 rows decide what the columns are, or as many as have come when a row is first transformed: numbers,
    yes or no, dates, categories, or free text. Ids and columns without a name are left out, with a message. Later
    rows may bring new categories, which are new codes, and new columns, which become numbers on the right of a row.
    Columns are matched by name; one that came late may be lacking, and is then missing in all rows.

    What is missing becomes NaN: MLCA leaves it out of each comparison.

    * A number stays as it is, unless free text or dates stand beside it: then it is scaled to mean 0 and deviation 1
      of the first rows.
    * Yes and no are 1 and 0.
    * A date becomes a number that grows with time, and a place in the year, in the week and in the day, where the
      first rows differ in it.
    * A category becomes a code, 1, 2, ...: equal to another or not. One never learned is -1, which equals none of
      them (after 1000 values: all that came later). `categorical_features_` tells which numbers of a row are codes.
    * Of free text, words and pairs of words fall on `text_features` places by their hash, each counting 1 + log n if
      it occurs n times. No vocabulary is kept, and rows become sparse.

    Parameters
    ----------
    numeric, categorical, text, ignore : sequence of str, default=()
        Names of columns, or patterns such as ``"note_*"``, whose kind you know better.
    text_features : int, default=4096
        Places for the words of each column of free text.

    Attributes
    ----------
    layout : TableLayout
        What the columns were found to be.
    categorical_features_ : list of int
        Which numbers of a row are codes: for `MLCA(categorical_features=...)` where rows are transformed by hand.

    Examples
    --------
    >>> import pandas as pd
    >>> from mlca.tables import Recipe
    >>> table = pd.DataFrame({"size": [1.5, 3.0, None], "colour": ["red", "blue", "red"], "sold": [True, False, True]})
    >>> recipe = Recipe().fit(table)
    >>> recipe.transform(table)
    array([[1.5, 2. , 1. ],
           [3. , 1. , 0. ],
           [nan, 2. , 1. ]])
    >>> recipe.get_feature_names_out().tolist(), recipe.categorical_features_
    (['size', 'colour', 'sold'], [1])
    >>> recipe.partial_fit(pd.DataFrame({"colour": ["green"], "weight": [7.5]})).get_feature_names_out().tolist()
    ['size', 'colour', 'sold', 'weight']
    """

    growth: tuple[Growth, ...]
    _layout: Layout | None
    _first: dict[str, list[Any]] | None
    _nominal: dict[str, tuple[str, ...]]

    def __init__(
        self,
        *,
        numeric: Sequence[str] = (),
        categorical: Sequence[str] = (),
        text: Sequence[str] = (),
        ignore: Sequence[str] = (),
        text_features: int = TEXT_PLACES,
    ) -> None:
        self.numeric = numeric
        self.categorical = categorical
        self.text = text
        self.ignore = ignore
        self.text_features = text_features

    @classmethod
    def by_layout(cls, layout: Layout, growth: tuple[Growth, ...] = ()) -> Self:
        """Return a recipe whose columns are decided."""
        recipe = cls()
        recipe._layout, recipe._first, recipe.growth = layout, None, growth
        return recipe

    @property
    def layout(self) -> Layout:
        """What the columns mean, as far as the rows have told."""
        check_is_fitted(self, "_layout")
        if self._layout is None:
            self._layout = self._decide(self._first or {})
        return self._layout

    @property
    def categorical_features_(self) -> list[int]:
        """The numbers of a row that are codes of categories."""
        return list(self.layout.nominal)

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are not learned though nobody wished it, and why."""
        columns = self.layout.columns if isinstance(self.layout, TableLayout) else ()
        ignored = {column.name: column.reason for column in columns if isinstance(column, Ignored)}
        return {name: reason for name, reason in ignored.items() if reason != AS_YOU_WISH}

    def warn_of_columns(self) -> None:
        """Tell which columns are left out."""
        reasons = [f"{name!r} ({reason})" for name, reason in self.left_out.items()]
        if reasons:
            more = f" and {len(reasons) - 20} more" if len(reasons) > 20 else ""
            warn(
                f"left out: {', '.join(reasons[:20])}{more}; name them in `numeric`, `categorical` or `text` of "
                "mlca.tables.Recipe to learn them, or in `ignore`"
            )

    @property
    def settled(self) -> bool:
        """Whether enough rows have come to decide about the columns for good."""
        return hasattr(self, "_layout") and self._first is None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a table from scratch, and settle what its columns are.

        Parameters
        ----------
        X : DataFrame
            The table. An array has columns called x0, x1 and so on.
        y : object
            Not used.

        Returns
        -------
        self
        """
        for name in ("_layout", "_first"):
            self.__dict__.pop(name, None)
        self.partial_fit(X)
        if self._first is not None:
            self._settle(self._first)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning what columns and categories there are.

        Parameters
        ----------
        X : DataFrame
            More rows of the table.
        y : object
            Not used.

        Returns
        -------
        self
        """
        cells, nominal = cells_of(X)
        if not hasattr(self, "_layout"):
            self._begin(cells)
        if self._first is None:
            self._grow(cells)
            return self
        known = n_rows_of(self._first)
        room = max(0, deciding.FIRST_ROWS - known)
        declared = {name: (*self._nominal.get(name, ()), *values) for name, values in nominal.items()}
        self._nominal = self._nominal | declared  # a new one: copies may share the old
        first = joined(self._first, known, {name: column[:room] for name, column in cells.items()})
        self._layout, self._first = None, first
        if n_rows_of(first) >= deciding.FIRST_ROWS:
            self._settle(first)
            if n_rows_of(cells) > room:
                self._grow({name: column[room:] for name, column in cells.items()})
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows of a table as numbers.

        Parameters
        ----------
        X : DataFrame
            The table; its columns are found by name.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            Sparse where there is free text.

        Raises
        ------
        ValueError
            If a cell is of another kind than its column, or a column is not there that was there from the first; the
            message names column and row.
        """
        self.require_columns(X)
        return self.encode(X)

    def require_columns(self, X: Any) -> None:
        """Raise ValueError if a table lacks columns that were there from the first."""
        lacking = [] if isinstance(self.layout, XcLayout) else self.layout.lacking(cells_of(X)[0])
        if lacking:
            raise ValueError(
                f"X lacks the columns {some([column.name for column in lacking])}; columns are found by name: rename "
                "yours, or add these with None where nothing is known"
            )

    def encode(self, X: Any) -> Any:
        """Return the rows of a table as numbers, as `transform` does, whatever columns it lacks."""
        cells, _ = cells_of(X)
        rows, remarks = encode(self._table(), cells, n_rows_of(cells))
        _refuse(remarks)
        return rows

    def parts(self, X: Any, first_row: int = 0) -> list[Part]:
        """Return the rows of a table as numbers, in parts: each by what is known when its first row comes.

        The recipe itself is left as it is; `by_layout` makes one of the last part's layout. Messages count rows from
        `first_row` on.
        """
        layout, (cells, _) = self._table(), cells_of(X)
        parts, remarks = encode_growing(layout, cells, n_rows_of(cells), (), kind_by(self._wishes, layout))
        _refuse(remarks, first_row)
        return parts

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the name of each number of a row: of its column, and of the cycle or place."""
        layout = self.layout
        names = np.empty(len(layout.owners), dtype=object)
        if not isinstance(layout, TableLayout):
            names[:] = [layout.name_of(place) for place in range(len(names))]
            return names
        for column, places in zip(layout.learned, layout.places, strict=True):
            names[places] = _parts(column)
        return names

    def grown(self, now: Growth, *, final: bool = False) -> Recipe:
        """Return the recipe with a note of how large the model is now, if one is due."""
        last = self.growth[-1].rows if self.growth else 0
        due = now.rows >= _NEXT_NOTE * max(last, 1) or (final and now.rows > last)
        return Recipe.by_layout(self.layout, (*self.growth, now)) if due else self

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as JSON has it."""
        return {**self.layout.to_json(), "growth": [list(note) for note in self.growth]}

    def _begin(self, cells: Mapping[str, Sequence[Any]]) -> None:
        check_whole("text_features", self.text_features, at_least=1)
        if self.text_features > MOST_PLACES:
            raise ValueError(f"text_features must be at most {MOST_PLACES}, not {self.text_features}")
        self._wishes.check(list(cells), (), "X")
        self._layout, self._first, self._nominal, self.growth = None, {}, {}, ()

    @property
    def _wishes(self) -> Wishes:
        return Wishes(
            tuple(self.numeric),
            tuple(self.categorical),
            tuple(self.text),
            tuple(self.ignore),
            text_features=self.text_features,
        )

    def _decide(self, first: Mapping[str, Sequence[Any]]) -> TableLayout:
        # Each table declares the values that it has itself: those of other tables are known as well.
        nominal = {
            name: tuple(dict.fromkeys([*values, *(as_text(cell) for cell in first[name] if not is_missing(cell))]))
            for name, values in self._nominal.items()
        }
        columns = decide_columns(first, nominal, self._wishes, "X")
        return TableLayout(tuple(columns), sparse=any(isinstance(column, Text) for column in columns))

    def _settle(self, first: Mapping[str, Sequence[Any]]) -> None:
        layout = self._decide(first)
        self._layout, self._first = layout, None
        self.warn_of_columns()

    def _grow(self, cells: Mapping[str, Sequence[Any]]) -> None:
        layout = self._table()
        self._layout = layout_steps(layout, cells, (), kind_by(self._wishes, layout))[-1][1]

    def _table(self) -> TableLayout:
        layout = self.layout
        if not isinstance(layout, TableLayout):
            raise ValueError("the model was trained on XC text, whose attributes have no names; pass numbers")
        return layout


def _refuse(remarks: Remarks, first_row: int = 0) -> None:
    if remarks.faulty:
        row, problem = next(iter(remarks.faulty.items()))
        raise ValueError(f"row {first_row + row} of X: {problem}")


def recipe_from_json(plain: Any, n_features: int) -> Recipe:
    """Read a recipe that may have been tampered with.

    Parameters
    ----------
    plain : object
        What `Recipe.to_json` gave.
    n_features : int
        The number of columns that the model learned.

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        If it is no recipe, or not of a model with that many columns.
    """
    try:
        recipe = Recipe.by_layout(layout_from_json(plain), tuple(_growth(note) for note in plain["growth"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the recipe is damaged ({error})") from None
    if recipe.layout.n_features != n_features:
        raise ValueError(f"the recipe gives {recipe.layout.n_features} columns, the model has {n_features}")
    return recipe


def _parts(column: Any) -> list[str]:
    match column:
        case OneHot():
            return [f"{column.name}={value}" for value in column.values]
        case Date():
            cycles = [f"{column.name} {part} of {cycle}" for cycle in column.cycles for part in ("sine", "cosine")]
            return [column.name, *cycles]
        case Text():
            return [f"{column.name}#{place}" for place in range(column.width)]
    return [column.name]


def _growth(note: Any) -> Growth:
    if len(note) != 3 or any(type(count) is not int or count < 0 for count in note):
        raise ValueError(f"{note!r} is no note of growth")
    return Growth(*note)

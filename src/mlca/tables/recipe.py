"""The recipe, which encodes columns as numbers and is stored with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mlca.limits import MOST_TEXT_FEATURES, TEXT_FEATURES
from mlca.messages import shown, warn
from mlca.tables import columns as deciding
from mlca.tables.columns import ColumnSettings, some
from mlca.tables.encoding import CellError, encode, kind_by, layout_steps
from mlca.tables.feature_names import FeatureNames
from mlca.tables.first_rows import FirstRows, TableRows, decide_layout
from mlca.tables.frame_cells import as_table, cells_of, names_of_columns
from mlca.tables.kinds import Text, kind_in_words
from mlca.tables.layout import Layout, TableLayout, layout_from_json
from mlca.tables.vocabulary import Vocabulary, vocabulary_from_json
from mlca.validation import check_whole

# Number of columns listed in the representation of a model.
_SHOWN_COLUMNS = 12

# Factor by which the number of rows grows between two entries in `growth`.
_NEXT_NOTE = 1.25


class Growth(NamedTuple):
    """The size of a model after a number of rows."""

    rows: int
    nodes: int
    labels: int


class Recipe(TransformerMixin, BaseEstimator):
    """Encodes columns of any kind as numbers, learned row by row.

    The kinds of columns (number, boolean, date, category, free text) are inferred from the first 1000 rows, or from
    fewer if a row is transformed earlier. IDs and columns without a name are left out, with a warning. Later rows may
    contain new categories, which get new codes, and new columns, which become features on the right. Columns are
    matched by name. Columns that were added later may be absent; their values are then missing.

    A missing value becomes NaN: MLCA leaves it out of each comparison.

    * A number is unchanged, unless the table also has free text or dates. Then it is scaled to mean 0 and standard
      deviation 1 over the first rows.
    * True and false, or yes and no, are 1 and 0.
    * A date becomes a number that grows with time, plus its position in the year, the week and the day, each only if
      the first rows differ in it.
    * A category becomes a code, 1, 2, ...; codes are only tested for equality. An unknown category is -1, which
      equals no other. Once a column has 1000 categories (100,000 if it holds short codes or you set it to categorical),
      additional ones are unknown. `categorical_features_` lists the features that hold codes.
    * Words and pairs of words of free text are hashed to `text_features` features. The value is 1 + log n for n
      occurrences, and rows become sparse. The most frequent words of a feature are stored to name it.

    Parameters
    ----------
    numeric, categorical, text, ignore : sequence of str, default=()
        Names of the columns whose kinds you set, or patterns such as ``"note_*"``.
    text_features : int, default=16384
        The number of features per text column.

    Attributes
    ----------
    layout : TableLayout
        The columns and their kinds.
    categorical_features_ : list of int
        Indices of the features that are codes, for `MLCA(categorical_features=...)` if you transform rows yourself.

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
    words: Vocabulary
    _layout: Layout | None
    _first: FirstRows | None

    def __init__(
        self,
        *,
        numeric: Sequence[str] = (),
        categorical: Sequence[str] = (),
        text: Sequence[str] = (),
        ignore: Sequence[str] = (),
        text_features: int = TEXT_FEATURES,
    ) -> None:
        self.numeric = numeric
        self.categorical = categorical
        self.text = text
        self.ignore = ignore
        self.text_features = text_features

    @classmethod
    def by_layout(cls, layout: Layout, growth: tuple[Growth, ...] = (), words: Vocabulary | None = None) -> Self:
        """Return a fitted recipe with this layout; the kinds of its columns are final."""
        recipe = cls()
        recipe._layout, recipe._first, recipe.growth, recipe.words = layout, None, growth, words or Vocabulary()
        return recipe

    def copy(self) -> Recipe:
        """Return a copy of the recipe, including its vocabulary."""
        return Recipe.by_layout(self.layout, self.growth, self.words.copy())

    @property
    def layout(self) -> Layout:
        """The current layout, inferred from the rows so far."""
        check_is_fitted(self, "_layout")
        if self._layout is None:
            self._layout = decide_layout((self._first or FirstRows()).joined(), self._settings)
        return self._layout

    @property
    def table_layout(self) -> TableLayout:
        """The layout, if its columns have names; raises ValueError otherwise."""
        layout = self.layout
        if not isinstance(layout, TableLayout):
            raise ValueError("the model was trained on XC text, whose features have no names; pass an array")
        return layout

    @property
    def categorical_features_(self) -> list[int]:
        """The indices of the features that are categorical codes."""
        return list(self.layout.nominal)

    @property
    def settled(self) -> bool:
        """Whether enough rows have arrived to make the kinds of columns final."""
        return hasattr(self, "_layout") and self._first is None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns of a table from scratch, and make their kinds final.

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
        """Learn columns and categories from more rows.

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
        cells = cells_of(X)
        if not hasattr(self, "_layout"):
            self._begin(cells)
        if self._first is None:
            self._grow(cells)
            return self
        n_needed = deciding.FIRST_ROWS - self._first.n_rows
        first = self._first.with_rows(cells.between(0, n_needed))
        self._layout, self._first = None, first
        if first.n_rows >= deciding.FIRST_ROWS:
            self._settle(first)
            if cells.n_rows > n_needed:
                self._grow(cells.between(n_needed, cells.n_rows))
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows of a table as numbers.

        Parameters
        ----------
        X : DataFrame
            The table; its columns are matched by name.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            Sparse if there is free text.

        Raises
        ------
        ValueError
            If a cell does not fit its column, or a required column is missing; the message names column and row.
        """
        return self.encoded(as_table(X))

    def encoded(self, X: Any) -> Any:
        """Transform a table that `as_table` returned, regardless of `set_output`."""
        layout = self.table_layout
        reject_missing_columns(layout, names_of_columns(X))
        cells = cells_of(X, {column.name for column in layout.learned})
        rows, remarks = encode(layout, cells.by_column, cells.n_rows)
        CellError.reject(remarks)
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the name of each feature: its column, with the word, cycle or position."""
        return FeatureNames(self.layout, self.words).all()

    def in_short(self) -> str:
        """Return the first columns and their kinds in one line."""
        kinds = [f"{shown(name)} ({kind})" for name, kind in self._kinds()]
        more = f" and {len(kinds) - _SHOWN_COLUMNS} more" if len(kinds) > _SHOWN_COLUMNS else ""
        return f"columns: {', '.join(kinds[:_SHOWN_COLUMNS])}{more}" if kinds else "no columns"

    def kinds_as_html(self) -> str:
        """Return the columns and their kinds as an HTML table."""
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(kind)}</td></tr>" for name, kind in self._kinds())
        return f"<table><thead><tr><th>column</th><th>kind</th></tr></thead><tbody>{rows}</tbody></table>"

    def _kinds(self) -> list[tuple[str, str]]:
        columns = self.layout.columns if isinstance(self.layout, TableLayout) else ()
        return [(column.name, kind_in_words(column)) for column in columns]

    def grown(self, now: Growth, *, final: bool = False) -> Recipe:
        """Return the recipe with `now` appended to `growth`, if an entry is due.

        An entry is due once the number of rows has grown by a quarter since the last entry; with `final`, once it has
        grown at all.
        """
        last = self.growth[-1].rows if self.growth else 0
        due = now.rows >= _NEXT_NOTE * max(last, 1) or (final and now.rows > last)
        return Recipe.by_layout(self.layout, (*self.growth, now), self.words) if due else self

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as JSON."""
        words = {"words": self.words.to_json()} if _widths_of_texts(self.layout) else {}
        return {**self.layout.to_json(), "growth": [list(note) for note in self.growth], **words}

    def _begin(self, cells: TableRows) -> None:
        check_whole("text_features", self.text_features, at_least=1, at_most=MOST_TEXT_FEATURES)
        self._settings.check(list(cells.by_column), (), "X")
        self._layout, self._first, self.growth, self.words = None, FirstRows(), (), Vocabulary()

    @property
    def _settings(self) -> ColumnSettings:
        return ColumnSettings(
            tuple(self.numeric),
            tuple(self.categorical),
            tuple(self.text),
            tuple(self.ignore),
            text_features=self.text_features,
        )

    def _settle(self, first: FirstRows) -> None:
        rows = first.joined()
        layout = decide_layout(rows, self._settings)
        self._layout, self._first = layout, None
        self.words.learn(layout.columns, rows.by_column, rows.n_rows)
        warn_of_columns(layout.left_out)

    def _grow(self, cells: TableRows) -> None:
        layout = self.table_layout
        self._layout = layout_steps(layout, cells.by_column, (), kind_by(self._settings, layout))[-1][1]
        self.words.learn(self._layout.columns, cells.by_column, cells.n_rows)


def reject_missing_columns(layout: TableLayout, names: Sequence[str]) -> None:
    """Raise ValueError if a table with these columns lacks required ones."""
    lacking = layout.lacking(names)
    if lacking:
        raise ValueError(
            f"X lacks the columns {some([column.name for column in lacking])}; columns are matched by name: "
            "rename yours, or add these with missing values"
        )


def warn_of_columns(left_out: Mapping[str, str]) -> None:
    """Warn about ignored columns, with the reasons."""
    reasons = [f"{name!r} ({reason})" for name, reason in left_out.items()]
    if reasons:
        more = f" and {len(reasons) - 20} more" if len(reasons) > 20 else ""
        example = f"MLCA(columns={{{next(iter(left_out))!r}: 'number'}}), or 'text'"
        warn(f"columns left out: {', '.join(reasons[:20])}{more}; to learn one, set its kind, for example {example}")


def recipe_from_json(plain: Any, n_features: int) -> Recipe:
    """Read a recipe from an untrusted file.

    Parameters
    ----------
    plain : object
        The result of `Recipe.to_json`.
    n_features : int
        The number of features that the model learned.

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        If `plain` is not a recipe, or is for a model with another number of features.
    """
    try:
        layout = layout_from_json(plain)
        # Files of earlier releases store no words.
        words = vocabulary_from_json(plain["words"], _widths_of_texts(layout)) if "words" in plain else None
        recipe = Recipe.by_layout(layout, tuple(_growth(note) for note in plain["growth"]), words)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the recipe is damaged ({error})") from None
    if recipe.layout.n_features != n_features:
        raise ValueError(f"the recipe has {recipe.layout.n_features} features, but the model has {n_features}")
    return recipe


def _widths_of_texts(layout: Layout) -> dict[str, int]:
    columns = layout.learned if isinstance(layout, TableLayout) else []
    return {column.name: column.width for column in columns if isinstance(column, Text)}


def _growth(note: Any) -> Growth:
    if len(note) != 3 or any(type(count) is not int or count < 0 for count in note):
        raise ValueError(f"the growth entry {note!r} must hold three counts: of rows, nodes and labels")
    return Growth(*note)

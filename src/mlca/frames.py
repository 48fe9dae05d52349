"""Tables straight into a model: frames with columns of any kind, matched by name.

A frame of nothing but numbers, perhaps with gaps, is rows of numbers, and its model the one that an array gives. Any
other frame goes by a recipe (`mlca.tables.Recipe`), which the model keeps: it was found out from the first rows, or
trained by the command line, and grows with what later frames bring. While fewer rows have come than the recipe needs to
settle, the frames are held and learned again with each that follows, so that it does not matter in which portions they
came.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.base import without_mask
from mlca.categories import resolve_categories
from mlca.learner.widening import widened
from mlca.model import LearnedModel
from mlca.recipes import has_recipe as has_recipe
from mlca.recipes import recipe_of, set_recipe
from mlca.tables import columns as deciding
from mlca.tables.encoding import Part
from mlca.tables.frame_cells import as_table as as_table
from mlca.tables.frame_cells import is_dict
from mlca.tables.kinds import Numeric
from mlca.tables.layout import Layout, TableLayout
from mlca.tables.recipe import Recipe
from mlca.tables.telling import beside, dense_row
from mlca.targets import LabelRows, LabelSet, read_targets
from mlca.warning import warn

if TYPE_CHECKING:
    from mlca.explanation import Explanation

# What a model has learned, as its attributes: `fit` forgets these.
_LEARNED = ("_learner", "_labels", "_held", "extras_", "n_features_in_", "feature_names_in_")

# Of an explanation, the nodes and columns that are shown by value.
_SHOWN_NODES = 5
_SHOWN_COLUMNS = 12


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def needs_recipe(X: Any) -> bool:
    """Whether X is a frame with columns that are no plain numbers."""
    return is_frame(X) and not all(_is_plain(kind) for kind in X.dtypes)


def _is_plain(kind: Any) -> bool:
    if hasattr(kind, "fill_value"):  # of a sparse column, the kind of its numbers; intervals have one of their ends
        kind = kind.subtype
    return getattr(kind, "kind", "O") in "biuf"


def recipe_for(model: LearnedModel) -> Recipe | None:
    """Return how a model reads tables: its recipe, or one made of the names of its columns; None if it has none."""
    recipe = recipe_of(model)
    if recipe is None and hasattr(model, "feature_names_in_"):
        columns = tuple(Numeric(str(name)) for name in model.feature_names_in_)
        recipe = Recipe.by_layout(TableLayout(columns, sparse=sparse.issparse(model.weights_)))
    return recipe


def goes_by_recipe(model: LearnedModel, X: Any) -> bool:
    """Whether a model has to learn X by a recipe: it has one already, or X is more than the numbers that it knows."""
    if not is_frame(X):
        return False
    if not hasattr(model, "labels_"):
        return needs_recipe(X)
    if recipe_of(model) is not None:
        return True
    known = set(getattr(model, "feature_names_in_", ()))
    return bool(known) and known <= set(X.columns) and (known != set(X.columns) or needs_recipe(X))


def rows_of(model: LearnedModel, X: Any) -> Any:
    """Return rows as the model takes them: of a frame, its columns by name; of anything else, X itself.

    Parameters
    ----------
    model : LearnedModel
        A fitted model.
    X : DataFrame or array-like
        The rows.

    Raises
    ------
    ValueError
        If a frame lacks columns, or holds something that does not fit its column.
    """
    X = as_table(X)
    if not is_frame(X):
        return X
    recipe = recipe_of(model)
    if recipe is not None:
        return recipe.transform(X)
    known = list(getattr(model, "feature_names_in_", range(model.n_features_in_)))
    if needs_recipe(X):
        return _as_numbers(recipe_for(model), X, known)
    # Numbered columns are those of an array, of which none is left out.
    fits = set(known) <= set(X.columns) if hasattr(model, "feature_names_in_") else set(known) == set(X.columns)
    return X[known] if fits and known != list(X.columns) else X


def _as_numbers(recipe: Recipe | None, X: Any, known: list[str]) -> Any:
    """Return a frame with columns that are no plain numbers as one of those that a model of numbers has learned."""
    if recipe is None:
        raise _without_names()
    rows = recipe.transform(X)
    return rows if sparse.issparse(rows) else type(X)(rows, columns=known)


def row_of(model: LearnedModel, x: Any) -> Any:
    """Return one row as a table or array of one: of a Series, the values under their names."""
    if is_dict(x):
        raise ValueError("x is a dict; pass numbers, a Series or a DataFrame of one row")
    if hasattr(x, "index") and hasattr(x, "to_frame"):
        frame = x.astype(object).to_frame().T
        return rows_of(model, frame.infer_objects())
    x = as_table(x)
    if hasattr(x, "shape") and len(x.shape) == 2:
        return rows_of(model, x)
    try:
        row = np.asarray(without_mask(x), dtype=np.float64)
        return row if row.ndim == 2 else row.reshape(1, -1)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"x is no row of numbers ({error}); pass numbers, a Series or a DataFrame of one row"
        ) from None


def _without_names() -> ValueError:
    return ValueError("the model learned numbers without names; pass an array with the same columns")


def names_of_attributes(model: LearnedModel) -> Callable[[int], str]:
    """Return what names an attribute: its column where a recipe made it, else the feature."""
    recipe = recipe_for(model)
    if recipe is not None:
        layout, owners = recipe.layout, recipe.layout.owners
        return lambda attribute: layout.name_of(int(owners[attribute]))
    names = getattr(model, "feature_names_in_", None)
    return lambda attribute: f"x{attribute}" if names is None else str(names[attribute])


def with_values(
    model: LearnedModel, explanation: Explanation, row: NDArray[np.float64], voters: Any, ordinary: Any
) -> Explanation:
    """Return an explanation that shows the row beside the nodes, under the names that the model knows."""
    recipe = recipe_for(model)
    if recipe is None:
        recipe = Recipe.by_layout(TableLayout(tuple(Numeric(f"x{k}") for k in range(len(row)))))
    rows = [row, *(dense_row(voters, place) for place in range(min(voters.shape[0], _SHOWN_NODES)))]
    values = beside(recipe.layout, ordinary, rows, _SHOWN_COLUMNS)
    return replace(explanation, values=tuple((name, tuple(cells)) for name, cells in values))


def fit(model: LearnedModel, X: Any, y: Any) -> None:
    """Let a model learn a frame from scratch, by a recipe of its own."""
    model._check_parameters()
    fresh = model._apart()
    for name in _LEARNED:
        fresh.__dict__.pop(name, None)
    try:
        for _ in range(model.epochs):
            _learn_frame(fresh, X, y, None)
            fresh.__dict__.pop("_held", None)  # what is fitted is settled: further passes see the same columns
    finally:  # what is refused is refused before anything is learned; an interrupt leaves the rows that were
        if hasattr(fresh, "labels_"):
            fresh.__dict__.pop("_held", None)
            model.__dict__ = fresh.__dict__


class Held(NamedTuple):
    """A recipe that has not settled yet, the frames that it waits with, each with its labels, and what it left out."""

    recipe: Recipe
    parts: tuple[tuple[Any, LabelRows], ...] = ()
    left_out: frozenset[str] = frozenset()

    @property
    def n_rows(self) -> int:
        """The number of rows that are held."""
        return sum(len(frame) for frame, _ in self.parts)


def partial_fit(model: LearnedModel, X: Any, y: Any, classes: Iterable[Hashable] | None = None) -> None:
    """Let a model go on learning by its recipe; new columns and categories make it wider.

    Parameters
    ----------
    model : LearnedModel
        A model that has learned nothing yet, or from frames, or in the command line.
    X : DataFrame
        More rows.
    y, classes : object
        Their labels, as `MLCA.partial_fit` takes them.
    """
    if hasattr(model, "labels_"):
        model._check_continuation()
    else:
        model._check_parameters()
    _learn_frame(model, X, y, classes)


def _learn_frame(model: LearnedModel, X: Any, y: Any, classes: Iterable[Hashable] | None) -> None:
    if not len(X):
        raise ValueError("X has no rows; pass one at least")
    first = not hasattr(model, "labels_")
    labels, targets = read_targets(y, None if first else model.labels_, classes)
    if targets.n_rows != len(X):
        raise ValueError(f"X has {len(X)} rows but y has {targets.n_rows}; each row needs its labels")
    held = Held(Recipe(categorical=_told_categories(model, X))) if first else vars(model).get("_held")
    # Rows that are not held were learned as well, of an array, of merged models or until an interrupt: what is known
    # of the columns stands, since to begin again would lose them.
    if held is None or (not first and held.n_rows != model.n_seen_):
        model.__dict__.pop("_held", None)
        _go_on(model, X, labels, targets)
        return
    try:
        again = _read_again(model, held, X, targets)
    except ValueError as error:
        if not held.parts:
            raise
        # Rows that were taken must not keep later ones out, however they would be judged by now.
        _go_on(model, X, labels, targets)
        settle(model)
        warn(f"columns stay what the rows before were found to be, since by all rows so far {error}")
    else:
        _learn_again(model, held, again, labels, targets)


def settle(model: LearnedModel) -> None:
    """Let what a model knows of its columns stand, however few rows have told it."""
    model.__dict__["_held"] = None


def _go_on(model: LearnedModel, X: Any, labels: LabelSet, targets: LabelRows) -> None:
    recipe = recipe_for(model)
    if recipe is None:
        raise _without_names()
    _learn_parts(model, _parts_of(model, recipe, X), recipe, labels, targets)


def _parts_of(model: LearnedModel, recipe: Recipe, X: Any, first_row: int = 0) -> list[Part]:
    """Return the rows of a frame by a recipe that grows with them; what is to be refused is refused here."""
    parts = recipe.parts(X, first_row)
    Recipe.by_layout(parts[-1].layout).require_columns(X)
    return [replace(part, X=model._read_rows(part.X)) for part in parts]


def _learn_parts(
    model: LearnedModel, parts: Sequence[Part], recipe: Recipe, labels: LabelSet, targets: LabelRows
) -> None:
    model.labels_ = labels
    for part in parts:
        # Whoever asks meanwhile finds a model and the recipe that belongs to it.
        fresh = model._apart()
        make_room(fresh, part.layout)
        set_recipe(fresh, Recipe.by_layout(part.layout, recipe.growth))
        model.__dict__ = fresh.__dict__
        model._learn(part.X, _between(targets, part.start, part.stop))


def _told_categories(model: LearnedModel, X: Any) -> list[str]:
    """Return the names of the columns of a frame that the model's parameters call categories."""
    names = [str(name) for name in X.columns]
    return [names[column] for column in resolve_categories(model.categorical_features, len(names), names)]


def learn_rows(model: LearnedModel, X: Any, layout: Layout, labels: LabelSet, targets: LabelRows) -> None:
    """Let a model learn rows that a layout has made of cells; it begins with them, or becomes as wide as they are.

    Parameters
    ----------
    model : LearnedModel
        The model.
    X : ndarray or csr_array
        The rows.
    layout : Layout
        What their numbers mean: the one that the model knows, or one that has grown out of it.
    labels, targets : LabelSet, LabelRows
        All labels that are known with these rows, and those of each row.
    """
    rows = model._read_rows(X, targets)
    if not hasattr(model, "labels_"):
        model._start_afresh(rows, rows, labels, categories=layout.nominal)
    else:
        make_room(model, layout)
    model.labels_ = labels
    model._learn(rows, targets)


class ReadAgain(NamedTuple):
    """What the recipe of one frame more than those that are held makes of them."""

    recipe: Recipe
    parts: tuple[tuple[Any, LabelRows], ...]  # what is held then
    begins: bool  # whether all rows are to be learned again, or the new ones alone
    rows: Any  # of the frames that are to be learned
    later: list[Part]  # what comes behind the rows that settle it


def _read_again(model: LearnedModel, held: Held, X: Any, targets: LabelRows) -> ReadAgain:
    """Read a frame with those that are held; all of them if the recipe reads them otherwise now."""
    room = deciding.FIRST_ROWS - held.n_rows
    first, rest = X.iloc[:room].copy(), X.iloc[room:]  # what is held is not changed by others
    recipe = copy.copy(held.recipe).partial_fit(first)
    parts = (*held.parts, (first, _between(targets, 0, len(first))))
    begins = not held.parts or recipe.layout != held.recipe.layout
    rows = _stacked([recipe.encode(frame) for frame, _ in (parts if begins else parts[-1:])])
    later = _parts_of(model, recipe, rest, len(first)) if len(rest) else []
    return ReadAgain(recipe, parts, begins, model._read_rows(rows), later)


def _learn_again(model: LearnedModel, held: Held, again: ReadAgain, labels: LabelSet, targets: LabelRows) -> None:
    """Learn what was read with the frames that are held."""
    recipe, parts, rows = again.recipe, again.parts, again.rows
    if again.begins:
        fresh = model._apart()  # an interrupt leaves the model of the frames before
        seed = model._learner.parameters.seed if held.parts else None  # drawn once, in whatever portions rows come
        fresh._start_afresh(rows, rows, labels, categories=recipe.layout.nominal, seed=seed)
        set_recipe(fresh, recipe)
        fresh._learn(rows, _joined([learned for _, learned in parts]))
        model.__dict__ = fresh.__dict__
    else:
        set_recipe(model, recipe)
        model.labels_ = labels
        model._learn(rows, parts[-1][1])
    if not recipe.settled and not recipe.left_out.keys() <= held.left_out:
        recipe.warn_of_columns()  # again when it settles, by then for good
    model.__dict__["_held"] = None if recipe.settled else Held(recipe, parts, frozenset(recipe.left_out))
    _learn_parts(model, again.later, recipe, labels, _between(targets, parts[-1][1].n_rows, targets.n_rows))


def make_room(model: LearnedModel, layout: Layout) -> None:
    """Let a model know the attributes that a layout has more, on the right: nothing was known of them so far.

    What of that is exact, and what is not, is told in `mlca.learner.widening`.
    """
    before = model.n_features_in_
    if layout.n_features <= before:
        return
    gaps, nominal = ([place for place in places if place >= before] for places in (layout.gaps, layout.nominal))
    fresh = model._apart()
    fresh._learner = widened(model._learner, layout.n_features, gaps, nominal)
    fresh.n_features_in_ = layout.n_features
    fresh.__dict__.pop("feature_names_in_", None)
    model.__dict__ = fresh.__dict__


def _between(targets: LabelRows, start: int, stop: int) -> LabelRows:
    first, last = targets.indptr[start], targets.indptr[stop]
    indptr = targets.indptr[start : stop + 1] - first
    return LabelRows(indptr, targets.indices[first:last], targets.n_labels, targets.n_before)


def _stacked(parts: Sequence[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts]))
    return np.vstack(parts)


def _joined(parts: Sequence[LabelRows]) -> LabelRows:
    ends = np.cumsum([0, *(len(part.indices) for part in parts)])
    indptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(parts, ends, strict=False))])
    indices = np.concatenate([part.indices for part in parts])
    n_before = max(part.n_before for part in parts)
    return LabelRows(indptr.astype(np.int64), indices, max(part.n_labels for part in parts), n_before)

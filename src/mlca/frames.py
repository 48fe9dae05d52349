"""Learning from frames with columns of any kind, matched by name.

A purely numeric frame, with or without missing values, gives the same model as an array. Any other frame is learned by
`mlca.tables.TableLearner`: the kinds of its columns are inferred from the first rows and stored as a *recipe*. `fit`
also does this for a numeric frame with row IDs, to leave the IDs out. `partial_fit` cannot: its model must not depend
on how rows are divided into calls, and a single row does not show whether a number is an ID.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.base import without_mask
from mlca.messages import warn
from mlca.model import LearnedModel, row_ids_of
from mlca.tables.column_table import ColumnTable, column_table
from mlca.tables.columns import FIRST_ROWS, ColumnSettings, is_id, some
from mlca.tables.feature_names import FeatureNames, own_words
from mlca.tables.first_rows import CellsByColumn
from mlca.tables.frame_cells import as_table as as_table
from mlca.tables.frame_cells import cells_of, is_dict
from mlca.tables.informative import beside, dense_row
from mlca.tables.kinds import Numeric
from mlca.tables.layout import ArrayLayout, TableLayout
from mlca.tables.recipe import Recipe
from mlca.tables.table_learner import TableLearner, recipe_for, recipe_of
from mlca.tables.table_learner import widen_model as widen_model
from mlca.validation import check_objective, resolve_categories

if TYPE_CHECKING:
    from mlca.explanation import Explanation

# Attributes that hold what a model has learned; `fit` removes them.
_LEARNED = ("_learner", "_labels", "_held", "extras_", "n_features_in_", "feature_names_in_")

# Largest numbers of nodes and columns whose values an explanation shows.
_SHOWN_NODES = 5
_SHOWN_COLUMNS = 12

# Limits on the cost of column contributions: sampled nodes, predictions in total, and columns.
_SAMPLED_NODES = 100
_PREDICTIONS = 4000
_MOST_COMPARED = 1000


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns."""
    return hasattr(X, "columns") and hasattr(type(X), "dtypes")  # class lookup, because `X.dtypes` is slow


def needs_recipe(X: Any, kinds: Mapping[str, str] | None = None) -> bool:
    """Return whether X is a frame with non-numeric columns or user-defined column kinds."""
    if kinds and not is_frame(X):
        raise ValueError("`columns` sets the kinds of named columns, but X has no column names; pass X as a DataFrame")
    return is_frame(X) and (bool(kinds) or not all(_is_plain(kind) for kind in X.dtypes))


def _is_plain(kind: Any) -> bool:
    if hasattr(kind, "fill_value"):  # a sparse column; interval types also have a subtype, but no fill value
        kind = kind.subtype
    return getattr(kind, "kind", "O") in "biuf"


def ids_of_numbers(model: LearnedModel, X: Any) -> list[str]:
    """Return the row-ID columns of a numeric frame; empty if all columns are row IDs."""
    if not is_frame(X) or not isinstance(X.columns[0], str):  # an array's columns have no names
        return []
    names = list(X.columns)
    categorical = set(resolve_categories(model.categorical_features, len(names), names))
    ids = [
        name
        for place, name in enumerate(names)
        if place not in categorical and is_id(name, _first_numbers(X.iloc[:FIRST_ROWS, place]))
    ]
    return ids if len(ids) < len(names) else []


def warn_of_ids(model: LearnedModel, X: Any) -> None:
    """Warn of row IDs in a numeric frame, which `partial_fit` learns like other features."""
    ids = [] if hasattr(model, "labels_") else ids_of_numbers(model, X)
    if ids:
        warn(
            f"columns that look like row IDs are learned as numbers: {some(ids)}; drop them, or set their kind to "
            '"ignore" or "number" in `columns` of MLCA'
        )


def _first_numbers(column: Any) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers[~np.isnan(numbers)]


def has_recipe(model: LearnedModel) -> bool:
    """Return whether a model was trained on tables, and therefore has a recipe."""
    return recipe_of(model) is not None


def check_recipe(model: LearnedModel, path: object) -> None:
    """Raise ValueError, naming the file, if the recipe of a loaded model is damaged."""
    try:
        recipe_of(model)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def meaning_of_columns(model: LearnedModel) -> dict[str, Any] | None:
    """Return the columns of a model's tables as JSON; None if it was not trained on tables.

    The label columns, which a model trained on a file also knows, are not features and are left out.
    """
    recipe = recipe_of(model)
    return None if recipe is None else recipe.layout.to_json() | {"labels": None}


def goes_by_recipe(model: LearnedModel, X: Any) -> bool:
    """Return whether X must be learned with a recipe.

    This is so if the model already has a recipe, or if X has new or non-numeric columns.
    """
    if not hasattr(model, "labels_"):
        return needs_recipe(X, model.columns)
    if not is_frame(X):
        return False
    if recipe_of(model) is not None:
        return True
    known = set(getattr(model, "feature_names_in_", ()))
    return bool(known) and known <= set(X.columns) and (known != set(X.columns) or needs_recipe(X))


def rows_of(model: LearnedModel, X: Any) -> Any:
    """Return rows as the model expects them; a frame's columns are matched by name.

    Parameters
    ----------
    model : LearnedModel
        A fitted model.
    X : DataFrame or array-like
        The rows.

    Raises
    ------
    ValueError
        If a frame lacks columns, or holds a value that does not fit its column.
    """
    X = as_table(X)
    if not is_frame(X):
        return X
    recipe = recipe_of(model)
    if recipe is not None:
        return recipe.encoded(X)
    known = list(getattr(model, "feature_names_in_", range(model.n_features_in_)))
    if needs_recipe(X):
        return _as_numbers(recipe_for(model), X, known)
    # If the model has no feature names, X must have exactly the columns 0, 1, 2, ...
    fits = set(known) <= set(X.columns) if hasattr(model, "feature_names_in_") else set(known) == set(X.columns)
    return X[known] if fits and known != list(X.columns) else X


def _as_numbers(recipe: Recipe | None, X: Any, known: list[str]) -> Any:
    """Encode a frame with non-numeric columns for a model that learned numeric columns."""
    if recipe is None:
        raise _without_names()
    rows = recipe.encoded(X)
    return rows if sparse.issparse(rows) else type(X)(rows, columns=known)


def _is_series(x: Any) -> bool:
    return hasattr(type(x), "to_frame") and hasattr(x, "index")  # class lookup: a column may be called "to_frame"


def known_rows(model: LearnedModel, X: Any) -> Any:
    """Return rows as the model expects them; a Series with named values is one row."""
    is_row = _is_series(X) and isinstance(next(iter(X.index), None), str)
    return row_of(model, X) if is_row else rows_of(model, X)


def row_of(model: LearnedModel, x: Any) -> Any:
    """Return one row as the model expects it; a Series is matched by name."""
    if is_dict(x):
        raise ValueError("x is a dict; pass numbers, a Series or a DataFrame of one row")
    if _is_series(x):
        frame = x.astype(object).to_frame().T
        return rows_of(model, frame if has_recipe(model) else frame.infer_objects())
    x = as_table(x)
    if hasattr(x, "shape") and len(x.shape) == 2:
        return rows_of(model, x)
    try:
        row = np.asarray(without_mask(x), dtype=np.float64)
        return row if row.ndim == 2 else row.reshape(1, -1)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"x is not a row of numbers ({error}); pass numbers, a Series or a DataFrame of one row"
        ) from None


def _without_names() -> ValueError:
    return ValueError("the model learned numbers without names; pass an array with the same columns")


def feature_names(model: LearnedModel, cells: CellsByColumn | None = None) -> FeatureNames:
    """Return a model's feature names; text features are named by words of `cells`, if given."""
    recipe = recipe_for(model)
    if recipe is None:
        n_features = model._learner.n_features
        if n_features > _MOST_COMPARED:  # one object per feature would need too much memory
            return FeatureNames(ArrayLayout(n_features))
        return FeatureNames(TableLayout(tuple(Numeric(f"x{feature}") for feature in range(n_features))))
    return FeatureNames(recipe.layout, recipe.words, own_words(recipe.layout, cells or {}))


def explain(model: LearnedModel, x: Any, cells: CellsByColumn | None = None) -> Explanation:
    """Explain how the labels of one row are predicted.

    Parameters
    ----------
    model : LearnedModel
        A fitted model.
    x : object
        The row, encoded or as `MLCA.explain` takes it.
    cells : mapping of str to sequence, optional
        The original cells of an encoded row, by column.
    """
    from mlca.explanation import Explanation

    rows = model._read_known_rows(row_of(model, x))
    if rows.shape[0] != 1:
        raise ValueError(f"explain takes one row, got {rows.shape[0]}; call it once per row")
    row = dense_row(rows, 0)
    names = feature_names(model, _cells_of_row(model, x) if cells is None else cells)
    learner = model._settled_learner()
    check_objective(model.objective, learner.parameters.decision)
    numbers = learner.explain(row)
    voters, ordinary = numbers["voters"], numbers["ordinary"]
    # Names are read last, because another thread may have added labels.
    known, single = model._labels.names, model.labels_.single
    explanation = Explanation.of(learner, numbers, known, names, row, single=single, objective=model.objective)
    row_ids = row_ids_of(model)
    if row_ids is not None:
        explanation = replace(explanation, rows=row_ids.behind(model._learner, explanation.nodes.tolist()))
    return _with_values(model, explanation, names, row, voters, ordinary)


def _cells_of_row(model: LearnedModel, x: Any) -> CellsByColumn:
    """Return the cells of one row by column; empty if it is an array or there is no recipe."""
    if _is_series(x):
        x = x.to_frame().T
    x = as_table(x)
    return cells_of(x).by_column if is_frame(x) and has_recipe(model) else {}


def _informative_places(ordinary: Any) -> NDArray[np.int64]:
    """Return the indices of features that may be among the most informative.

    A model with sparse nodes may have millions of features, most of which are zero in all nodes and carry no
    information. A few of those are returned only to fill the display.
    """
    n_features = ordinary.shape[1]
    if not sparse.issparse(ordinary):
        return np.arange(n_features)
    held = np.unique(ordinary.indices)
    first = np.arange(min(n_features, len(held) + _SHOWN_COLUMNS))
    return np.union1d(held, first).astype(np.int64)


def _with_values(
    model: LearnedModel,
    explanation: Explanation,
    names: FeatureNames,
    row: NDArray[np.float64],
    voters: Any,
    ordinary: Any,
) -> Explanation:
    """Add the values of the row and of the nodes, with column names, to an explanation."""
    if recipe_for(model) is None:
        places = _informative_places(ordinary)
        names = FeatureNames(TableLayout(tuple(Numeric(f"x{place}") for place in places.tolist())))
        row, voters, ordinary = row[places], voters[:, places], ordinary[:, places]
    rows = [row, *(dense_row(voters, number) for number in range(min(voters.shape[0], _SHOWN_NODES)))]
    values = beside(names, ordinary, rows, _SHOWN_COLUMNS)
    return replace(explanation, values=tuple((name, tuple(cells)) for name, cells in values))


def fit(model: LearnedModel, X: Any, y: Any) -> None:
    """Train a model on a frame from scratch, with a new recipe."""
    _require_rows(X)
    model._check_parameters()
    fresh = model._apart()
    for name in _LEARNED:
        fresh.__dict__.pop(name, None)
    cells, table = cells_of(X), _table_learner(fresh, X)
    try:
        for _ in range(model.epochs):
            table.learn(cells, y, settle=True)
    finally:  # invalid input is rejected before anything is learned; an interrupt keeps the learned rows
        if hasattr(fresh, "labels_"):
            model.__dict__ = fresh.__dict__


def partial_fit(model: LearnedModel, X: Any, y: Any, classes: Iterable[Hashable] | None = None) -> None:
    """Continue training on a frame; new columns and categories add features to the model.

    Parameters
    ----------
    model : LearnedModel
        A model that is empty, or was trained on frames or by the command line.
    X : DataFrame
        The rows to learn.
    y, classes : object
        The labels of the rows and the labels to expect, as `MLCA.partial_fit` takes them.
    """
    _require_rows(X)
    if hasattr(model, "labels_"):
        model._check_continuation()
    else:
        model._check_parameters()
    table = _table_learner(model, X)
    try:
        table.learn(cells_of(X), y, classes)
    finally:
        if hasattr(model, "labels_"):
            model.__dict__["_held"] = table.held


def _require_rows(X: Any) -> None:
    if not len(X):
        raise ValueError("X has no rows; pass at least one")


def _table_learner(model: LearnedModel, X: Any) -> TableLearner:
    names = [str(name) for name in X.columns]
    categorical = [names[column] for column in resolve_categories(model.categorical_features, len(names), names)]
    held = vars(model).get("_held")
    # The first rows are held to retrain the model if the kinds of columns change. Rows learned from an array or by
    # merging are not held and would be lost, so the kinds are then final.
    if held is not None and held.rows.n_rows != model.n_seen_:
        held = None
    kinds = {**dict.fromkeys(categorical, "category"), **(model.columns or {})}
    if not hasattr(model, "labels_"):
        for name in kinds.keys() - set(names):
            raise ValueError(f"`columns` names {name!r}, which is not among the columns of X: {some(names)}")
    return TableLearner(model, settings=ColumnSettings.of_kinds(kinds, text_features=model.text_features), held=held)


def summarise_columns(model: LearnedModel) -> ColumnTable:
    """Return a summary of each column of a model's tables, as `MLCA.columns_` shows it."""
    recipe = recipe_for(model)
    if recipe is None:
        raise AttributeError("the model was trained without column names; train it on a DataFrame to see its columns")
    weights = model.feature_weights_ if model._learner.parameters.similarity == "learned" else None
    contributions = contributions_of_columns(model)
    return column_table(recipe.table_layout, feature_names(model), model.prototypes_, weights, contributions)


def contributions_of_columns(model: LearnedModel) -> dict[str, float]:
    """Return the contribution of each column to predictions for learned rows, largest first.

    For each column in turn, its values are exchanged between up to 100 nodes, which stand for learned rows. The
    contribution is the column's share of all changes in the probabilities. The result is empty for XC files, whose
    features have no names, and for more than 1,000 columns.

    Parameters
    ----------
    model : LearnedModel
        A fitted model.

    Returns
    -------
    dict of str to float
        The contribution of each column; the values add up to 1. Empty if no column changes a probability.
    """
    layout = feature_names(model).layout
    learner = model._settled_learner()
    if not isinstance(layout, TableLayout) or len(layout.learned) > _MOST_COMPARED or learner.n_nodes < 2:
        return {}
    nodes, n_columns = model.prototypes_, len(layout.learned)
    n_sampled = min(nodes.shape[0], _SAMPLED_NODES, max(10, _PREDICTIONS // n_columns))
    rows = nodes[np.linspace(0, nodes.shape[0] - 1, n_sampled).astype(np.int64)]
    others = np.random.default_rng(0).permutation(n_sampled)
    expected = learner.answers(rows, model._n_threads()).probabilities
    changes = {}
    for owner, column in enumerate(layout.learned):
        exchanged = _with_exchanged(rows, layout.owners == owner, others)
        probabilities = learner.answers(exchanged, model._n_threads()).probabilities
        changes[column.name] = float(np.abs(probabilities - expected).sum())
    total = sum(changes.values())
    return {name: changes[name] / total for name in sorted(changes, key=lambda name: -changes[name])} if total else {}


def _with_exchanged(rows: Any, features: NDArray[np.bool_], others: NDArray[np.int64]) -> Any:
    """Return rows whose values in some features are taken from other rows."""
    if not sparse.issparse(rows):
        return np.where(features, rows[others], rows)
    entries = rows.tocoo()
    moved = np.where(features[entries.col], np.argsort(others)[entries.row], entries.row)
    return sparse.csr_array((entries.data, (moved, entries.col)), shape=rows.shape)


def settle(model: LearnedModel) -> None:
    """Make the kinds of a model's columns final, even if it has learned few rows."""
    model.__dict__["_held"] = None

"""The cells of tables that are in memory: of pandas, polars or Arrow, or of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlca.optional import in_pandas
from mlca.tables.cells import as_text


def is_dict(X: Any) -> bool:
    """Whether X holds values by name, and nothing else: one kind of SciPy's sparse matrices is a dict, too."""
    return isinstance(X, Mapping) and not hasattr(X, "shape")


def as_table(X: Any) -> Any:
    """Return a table of polars, Arrow or Dask as one of pandas, with names that are text; anything else as it is.

    Columns that are only numbered, 0, 1 and so on, have no names, as those of an array; they stand in that order.
    """
    if is_dict(X) or (isinstance(X, list | tuple) and any(map(is_dict, X[:1]))):
        raise ValueError("X holds values by name in dicts; pass pandas.DataFrame(X), whose columns are matched by name")
    X = in_pandas(X)
    if not (hasattr(X, "columns") and hasattr(X, "set_axis")):
        return X
    names = [str(name) for name in X.columns]
    if not names:
        raise ValueError("X has no columns; nothing can be learned from it")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"X has two columns called {twice!r}; rename one")
    told = list(X.columns)
    if set(told) == set(range(len(told))):
        return X if told == sorted(told) else X.iloc[:, np.argsort(told)]  # by place: False and True are 0 and 1
    return X if told == names else X.set_axis(names, axis=1)


def cells_of(X: Any) -> tuple[dict[str, list[Any]], dict[str, tuple[str, ...]]]:
    """Return the cells of each column of a table, and the values of those that are declared categorical."""
    X = as_table(X)
    if not hasattr(X, "columns"):
        array = np.asarray(X, dtype=object)
        if array.ndim != 2:
            raise ValueError(f"X must be a table with rows and columns, but has {array.ndim} dimension(s)")
        return {f"x{place}": array[:, place].tolist() for place in range(array.shape[1])}, {}
    names = [str(name) for name in X.columns]
    nominal = {}
    for name, (_, column) in zip(names, X.items(), strict=True):
        if hasattr(column, "cat"):
            nominal[name] = tuple(dict.fromkeys(map(as_text, column.cat.categories)))
    return {name: column.tolist() for name, (_, column) in zip(names, X.items(), strict=True)}, nominal


def n_rows_of(cells: Mapping[str, Sequence[Any]]) -> int:
    """Return the number of rows of some columns."""
    return len(next(iter(cells.values()), ()))


def joined(first: Mapping[str, list[Any]], n_first: int, more: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns with more rows; a column that either part lacks is missing there."""
    n_more = n_rows_of(more)
    return {
        name: [*first.get(name, [None] * n_first), *more.get(name, [None] * n_more)]
        for name in dict.fromkeys([*first, *more])
    }

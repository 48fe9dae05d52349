"""The cells of tables in memory: pandas, polars or Arrow tables, or arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from mlca.optional import in_pandas
from mlca.tables.cells import as_text
from mlca.tables.first_rows import TableRows


def is_dict(X: Any) -> bool:
    """Return whether X is a dict of values by name; a SciPy DOK matrix is not."""
    return isinstance(X, Mapping) and not hasattr(X, "shape")


def as_table(X: Any) -> Any:
    """Convert a data frame to pandas with string column names; return other input unchanged.

    Columns numbered 0, 1, ... are treated as the columns of an array: they count as unnamed, and are sorted by number.
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
    columns = list(X.columns)
    if set(columns) == set(range(len(columns))):
        # Selected by position, because the names False and True equal 0 and 1.
        return X if columns == sorted(columns) else X.iloc[:, np.argsort(columns)]
    return X if columns == names else X.set_axis(names, axis=1)


def cells_of(X: Any, learned: Collection[str] | None = None) -> TableRows:
    """Return the cells of a table; if `learned` is given, only those in these columns."""
    X = as_table(X)
    if not hasattr(X, "columns"):
        array = np.asarray(X, dtype=object)
        if array.ndim != 2:
            raise ValueError(f"X must be a table with rows and columns; got an array with {array.ndim} dimension(s)")
        return TableRows({f"x{place}": array[:, place].tolist() for place in range(array.shape[1])}, len(array))
    by_column, nominal = {}, {}
    for label, column in X.items():
        name = str(label)
        if learned is not None and name not in learned:
            continue
        by_column[name] = column.tolist()
        if hasattr(column.dtype, "categories"):
            nominal[name] = tuple(dict.fromkeys(map(as_text, column.dtype.categories)))
    return TableRows(by_column, len(X), nominal)


def names_of_columns(X: Any) -> list[str]:
    """Return the column names of a table that `as_table` returned."""
    return [str(name) for name in X.columns] if hasattr(X, "columns") else list(cells_of(X).by_column)

"""Which attributes are categories: what users say, as numbers of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def resolve_categories(told: Any, n_features: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Return the numbers of the columns that are categories, ascending.

    Parameters
    ----------
    told : "from_dtype", None, or sequence of bool, int or str
        None, and "from_dtype" where rows have no types of their own, are no columns; a mask has one entry a column.
    n_features : int
        The number of columns.
    names : sequence of str or None
        Their names, where they have some.

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        If a column is not there, or there are no names to find it by.

    Examples
    --------
    >>> resolve_categories(["colour"], 3, ["size", "colour", "price"])
    (1,)
    >>> resolve_categories([True, False, True], 3, None)
    (0, 2)
    >>> resolve_categories([3], 3, None)
    Traceback (most recent call last):
        ...
    ValueError: categorical_features names column 3; there are 3, the first is 0
    """
    if told is None or (isinstance(told, str) and told == "from_dtype"):
        return ()
    entries = _entries(told)
    if entries and all(isinstance(entry, bool) for entry in entries):
        if len(entries) != n_features:
            raise ValueError(f"categorical_features is a mask of {len(entries)} columns; X has {n_features}")
        return tuple(column for column, flag in enumerate(entries) if flag)
    return tuple(sorted({_column(entry, n_features, names) for entry in entries}))


def check_categories(told: Any) -> None:
    """Raise ValueError if something cannot say which columns are categories, whatever the columns."""
    if told is not None and not (isinstance(told, str) and told == "from_dtype"):
        _entries(told)


def require_same_categories(before: tuple[int, ...], now: tuple[int, ...]) -> None:
    """Raise ValueError if other columns are categories than those that learning began with."""
    if now != before:
        raise ValueError(
            f"categorical_features were columns {list(before)} when learning began and are {list(now)} now; a model "
            "goes on with those that it has: set them back, or call fit to start afresh"
        )


def _entries(told: Any) -> list[bool | int | str]:
    listed = told.tolist() if isinstance(told, np.ndarray) else told
    if isinstance(listed, list | tuple):
        entries = [entry.item() if isinstance(entry, np.generic) else entry for entry in listed]
        kinds = {type(entry) for entry in entries}
        if len(kinds) <= 1 and kinds <= {bool, int, str}:
            return entries
    raise ValueError(
        f'categorical_features is {told!r:.80}: give columns by number, by name or as a mask, "from_dtype" or None'
    )


def _column(entry: bool | int | str, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(entry, str):
        if names is None:
            raise ValueError(f"categorical_features names {entry!r}, but X has no names: give numbers of columns")
        if entry not in names:
            raise ValueError(f"categorical_features names {entry!r}, which is not among the columns of X")
        return list(names).index(entry)
    if not 0 <= entry < n_features:
        raise ValueError(f"categorical_features names column {entry}; there are {n_features}, the first is 0")
    return int(entry)

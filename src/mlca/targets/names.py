"""Reading labels given by name, as one iterable of names per row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mlca.targets.labels import LabelRows, LabelSet, number_names, plain, require_name
from mlca.targets.text import is_missing_label

# Types whose values need no further check.
_TRUTHS = frozenset({bool, np.bool_})


def is_row_of_names(row: Any) -> bool:
    """Return whether an entry of y may hold several label names; a string is a single name."""
    return isinstance(row, Iterable) and not isinstance(row, str | bytes)


def read_names(
    y: Sequence[Any], known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[LabelSet, LabelRows]:
    """Read rows of names; new names become columns in the order of their appearance."""
    if known is not None and known.single:
        raise ValueError(
            "the model learned one class per row (a 1-D y), so rows of label names do not fit it: use one class per "
            "row again, such as [name for name, in y] if each row has one"
        )
    if known is not None and known.form == "indicator":
        raise ValueError(
            "y has one iterable of label names per row, but the model learned an indicator matrix: use columns of "
            "0 and 1 in the order of classes_, or a DataFrame with the labels as columns"
        )
    columns = number_names(known, classes)
    n_before = len(columns)
    for name in columns if known is None else columns.keys() - known.columns.keys():
        require_name(name, "`classes`")
    indptr = np.zeros(len(y) + 1, dtype=np.int64)
    indices: list[int] = []
    for i, row in enumerate(y):
        row_labels = {columns.setdefault(name, len(columns)) for name in _names_of_row(row, i)}
        indices.extend(sorted(row_labels))
        indptr[i + 1] = len(indices)
    rows = LabelRows(indptr, np.array(indices, dtype=np.int32), len(columns), n_before)
    if known is not None and known.form == "names" and len(columns) == len(known.names):
        return known, rows
    return LabelSet(tuple(columns), form="names"), rows


def _names_of_row(row: Any, i: int) -> list[Hashable]:
    """Return the label names of row i; raise ValueError if one is not a valid name."""
    if not is_row_of_names(row):
        remedy = "an empty list where there are none" if is_missing_label(row) else f"[{row!r}] for a single one"
        raise ValueError(f"row {i} of y is {row!r}; every row must be an iterable of label names: {remedy}")
    if isinstance(row, Mapping):
        row = _true_keys(row, i)
    names = [plain(name) for name in _in_order(row)]
    for name in names:
        require_name(name, f"row {i} of y")
        try:
            hash(name)
        except TypeError:
            raise ValueError(f"row {i} of y names a label {name!r}, which is not hashable") from None
    return names


def check_truth(y: Mapping[Hashable, Any], known: Mapping[Hashable, Any]) -> None:
    """Raise ValueError unless a dict maps known or valid labels to booleans, 0 or 1.

    Examples
    --------
    >>> check_truth({"sea": True, "sun": 0}, {})
    >>> check_truth({"sea": "no"}, {})
    Traceback (most recent call last):
    ValueError: y maps the label 'sea' to 'no'; a dict must map labels to True or False
    """
    if not _TRUTHS.issuperset(map(type, y.values())):
        for name, value in y.items():
            if not (isinstance(value, Integral | np.bool_) and value in (0, 1)):
                raise ValueError(f"y maps the label {name!r} to {value!r}; a dict must map labels to True or False")
    if not y.keys() <= known.keys():
        for name in y:
            require_name(name, "y")


def _true_keys(row: Mapping[Hashable, Any], i: int) -> list[Hashable]:
    for name, value in row.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(
                f"row {i} of y maps the label {name!r} to {value!r}; a dict must map labels to True or False: "
                "list the names alone, or write True where the row has the label"
            )
    return [name for name, true in row.items() if true]


def _in_order(row: Any) -> Iterable[Any]:
    """Return a row's names in an order that is the same in every process, even for sets."""
    if not isinstance(row, set | frozenset):
        return row  # type: ignore[no-any-return]
    return sorted(row, key=lambda name: (type(name).__name__, name if isinstance(name, str) else repr(name)))

"""Conversion of River's numeric rows (dicts or frames) to arrays, one column per feature.

A feature that a row does not mention is 0; None and NaN are missing values. Most rows of a stream hold a plain number
for every known feature, in the same order; compiled code reads these. All other rows are checked value by value; the
message for an invalid value names its feature.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.limits import LARGEST_VALUE
from mlca.targets.text import is_missing_label

if TYPE_CHECKING:
    import pandas as pd

# Types whose values need no further check.
_PLAIN_NUMBERS = frozenset({float, int, bool, np.float64})


def usual_row(x: Mapping[Hashable, Any], features: dict[Hashable, int]) -> NDArray[np.float64] | None:
    """Return a row that holds a plain number for each known feature, in order; else None.

    This is the fast path for the common case. All other rows, valid or not, go through `checked_row`.
    """
    if type(x) is not dict or not x:
        return None
    row = np.empty((1, len(x)))
    return row if native.fill_row(x, features, row, LARGEST_VALUE) else None


def any_row(x: Mapping[Hashable, Any], features: dict[Hashable, int], n_features: int) -> NDArray[np.float64]:
    """Return a checked row as a dense array; unknown features are left out."""
    row = np.zeros((1, n_features))
    row[0, : len(features)] = [x.get(feature, 0.0) for feature in features]
    return row


def sparse_row(x: Mapping[Hashable, Any], features: dict[Hashable, int], n_features: int) -> sparse.csr_array:
    """Return a checked row as a sparse array; unknown features are left out."""
    cells = sorted((features[feature], float(value)) for feature, value in x.items() if value and feature in features)
    columns = np.array([column for column, _ in cells], dtype=np.int32)
    values = np.array([value for _, value in cells], dtype=np.float64)
    return sparse.csr_array((values, columns, np.array([0, len(cells)])), shape=(1, n_features))


def rows_of_frame(X: pd.DataFrame, features: dict[Hashable, int], n_features: int) -> NDArray[np.float64]:
    """Return the rows of a checked frame as an array; unknown columns are left out."""
    rows = np.zeros((len(X), n_features))
    # Columns are selected by position, because pandas would read names such as True and False as a mask of rows.
    known = [place for place, feature in enumerate(X.columns) if feature in features]
    rows[:, [features[X.columns[place]] for place in known]] = _as_floats(X.iloc[:, known])
    return rows


def _as_floats(X: pd.DataFrame) -> NDArray[np.float64]:
    floats = np.empty(X.shape)
    for place in range(X.shape[1]):
        floats[:, place] = X.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan)
    return floats


def checked_row(x: Mapping[Hashable, Any]) -> Mapping[Hashable, Any]:
    """Check the values of a row; return the row with NaN for missing values.

    Raises
    ------
    ValueError
        If a value is neither missing nor a finite number within the supported range. The message names the feature.

    Examples
    --------
    >>> checked_row({"wind": 3, "rain": None})
    {'wind': 3, 'rain': nan}
    """
    require_row(x)
    numbers = {feature: value for feature, value in x.items() if not is_missing_label(value)}
    if not _PLAIN_NUMBERS.issuperset(map(type, numbers.values())):
        for feature, value in numbers.items():
            if not isinstance(value, Real | np.bool_):
                raise ValueError(
                    f"feature {feature!r} is {value!r}, not a number: the model has learned only numbers so far"
                )
    _check_sizes(numbers, np.array([_as_float(value) for value in numbers.values()]))
    if len(numbers) == len(x):
        return x
    return {feature: numbers.get(feature, math.nan) for feature in x}


def require_row(x: Any) -> None:
    """Raise ValueError unless a row is a mapping of features to values."""
    if not isinstance(x, Mapping):
        raise ValueError(f"x is a {type(x).__name__}; pass features as a dict {{feature: number}}")


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer with hundreds of digits
        return math.inf


def require_columns(table: pd.DataFrame, name: str) -> None:
    """Raise ValueError unless a table is a DataFrame with unique column names."""
    if not (hasattr(table, "columns") and hasattr(table, "iloc")):
        raise ValueError(f"{name} is a {type(table).__name__}; pass several rows as a DataFrame with named columns")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"{name} has two columns called {twice!r}; rename one")


def check_frame(X: pd.DataFrame) -> None:
    """Raise ValueError, naming the feature, unless values are missing or finite and in range."""
    require_columns(X, "X")
    if len(X):
        kinds = X.dtypes.map(lambda kind: getattr(kind, "kind", "O"))
        for feature in X.columns[~kinds.isin(list("biuf"))]:
            for value in X[feature]:
                checked_row({feature: value})
        worst = np.fmax.reduce(np.abs(_as_floats(X)), axis=0, initial=0.0)
        _check_sizes(dict(zip(X.columns, worst.tolist(), strict=True)), worst)


def _check_sizes(x: Mapping[Hashable, Any], values: NDArray[np.float64]) -> None:
    usable = np.abs(values) <= LARGEST_VALUE
    if not usable.all():
        feature, value = list(x.items())[int(np.argmin(usable))]
        raise ValueError(
            f"feature {feature!r} is {value!r}: values must be finite and within {LARGEST_VALUE:g}; write None for a "
            "missing value, or rescale the feature"
        )

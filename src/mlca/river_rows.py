"""Rows as River has them, dicts and frames of numbers, as arrays with a column a feature.

A row that does not mention a feature is 0 in it. Most rows of a stream are alike: plain numbers under all known
features, in the same order. These are read in compiled code; whatever else comes takes its time, and what cannot be
learned is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlca.kernels import native
from mlca.limits import LARGEST_VALUE

if TYPE_CHECKING:
    import pandas as pd

# Types whose values need no closer look.
_PLAIN_NUMBERS = frozenset({float, int, bool, np.float64})


def usual_row(x: Mapping[Hashable, Any], features: dict[Hashable, int]) -> NDArray[np.float64] | None:
    """Return a row of plain numbers under all known features, in their order, as most rows of a stream are.

    Any other row gives None, whatever may be wrong with it.
    """
    if type(x) is not dict or not x:
        return None
    row = np.empty((1, len(x)))
    return row if native.fill_row(x, features, row, LARGEST_VALUE) else None


def any_row(x: Mapping[Hashable, Any], features: dict[Hashable, int], n_features: int) -> NDArray[np.float64]:
    """Return a row of checked numbers; features that are not known are left out."""
    row = np.zeros((1, n_features))
    row[0, : len(features)] = [x.get(feature, 0.0) for feature in features]
    return row


def rows_of_frame(X: pd.DataFrame, features: dict[Hashable, int], n_features: int) -> NDArray[np.float64]:
    """Return the rows of a checked frame; columns that are not known are left out."""
    rows = np.zeros((len(X), n_features))
    # Asked for by name, columns that are called True and False would be a mask of rows.
    known = [place for place, feature in enumerate(X.columns) if feature in features]
    rows[:, [features[X.columns[place]] for place in known]] = X.iloc[:, known].to_numpy(dtype=np.float64)
    return rows


def check_numbers(x: Mapping[Hashable, Any]) -> None:
    """Raise ValueError, naming the feature, unless all values are numbers that can be learned."""
    if not isinstance(x, Mapping):
        raise ValueError(f"x is a {type(x).__name__}; features come as a dict {{feature: number}}")
    if not _PLAIN_NUMBERS.issuperset(map(type, x.values())):
        for feature, value in x.items():
            if not isinstance(value, Real | np.bool_):
                raise ValueError(
                    f"feature {feature!r} is {value!r}, not a number: encode categories, for instance with "
                    "river.preprocessing.OneHotEncoder, and fill gaps with river.preprocessing.StatImputer"
                )
    _check_sizes(x, np.array([_as_float(value) for value in x.values()]))


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def require_columns(table: pd.DataFrame, name: str) -> None:
    """Raise ValueError unless a table of many rows is a DataFrame that says every column once."""
    if not (hasattr(table, "columns") and hasattr(table, "iloc")):
        raise ValueError(f"{name} is a {type(table).__name__}; many rows come as a DataFrame with named columns")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"{name} has two columns called {twice!r}; rename one")


def check_frame(X: pd.DataFrame) -> None:
    """Raise ValueError, naming the feature, unless all values are numbers that can be learned."""
    require_columns(X, "X")
    if len(X):
        kinds = X.dtypes.map(lambda kind: getattr(kind, "kind", "O"))
        for feature in X.columns[~kinds.isin(list("biuf"))]:
            for value in X[feature]:
                check_numbers({feature: value})
        values = X.to_numpy(dtype=np.float64)
        worst = np.abs(values).max(axis=0)  # NaN where one is missing
        _check_sizes(dict(zip(X.columns, worst.tolist(), strict=True)), worst)


def _check_sizes(x: Mapping[Hashable, Any], values: NDArray[np.float64]) -> None:
    usable = np.abs(values) <= LARGEST_VALUE
    if not usable.all():
        feature, value = list(x.items())[int(np.argmin(usable))]
        raise ValueError(
            f"feature {feature!r} is {value!r}: values must be finite and within {LARGEST_VALUE:g}; fill gaps with "
            "river.preprocessing.StatImputer, rescale what is larger"
        )

"""Means that leave out what is undefined: NaN goes in, no warning comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Divide element by element; NaN where the denominator is 0."""
    quotient = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def mean_defined(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN; NaN if there is none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")

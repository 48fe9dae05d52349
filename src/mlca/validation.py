"""Checks of estimator parameters: each names the parameter, what it must be and what it is."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

_IS = {"above": operator.gt, "at least": operator.ge, "below": operator.lt, "at most": operator.le}


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> None:
    """Raise ValueError unless `value` is a finite number within the bounds that are given."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not _is_finite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    _check_bounds(name, value, {"above": above, "at least": at_least, "below": below, "at most": at_most})


def check_whole(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> None:
    """Raise ValueError unless `value` is a whole number within the bounds that are given."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    _check_bounds(name, value, {"at least": at_least, "at most": at_most})


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError unless `value` is one of the words in `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, not {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def refuse_arguments(unsupported: dict[str, Any]) -> None:
    """Refuse weights of rows clearly: to learn a row twice is not to count it twice, since it meets its own node."""
    if "sample_weight" in unsupported:
        raise TypeError(
            "sample_weight is not supported: the order of rows matters, and a row that is learned again meets its own "
            "node; repeat rows where they are to count more, for instance X.repeat(weights, axis=0)"
        )
    if unsupported:
        raise TypeError(f"unexpected argument {next(iter(unsupported))!r}")


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def _check_bounds(name: str, value: Any, bounds: dict[str, float | None]) -> None:
    stated = {word: bound for word, bound in bounds.items() if bound is not None}
    if not all(_IS[word](value, bound) for word, bound in stated.items()):
        wanted = " and ".join(f"{word} {bound}" for word, bound in stated.items())
        raise ValueError(f"{name} must be {wanted}, not {value!r}")

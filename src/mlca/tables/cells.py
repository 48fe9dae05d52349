"""From cells to numbers and names, a column at a time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.limits import LARGEST_VALUE

_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})

_BITS: dict[Hashable, bool] = {
    **dict.fromkeys(["0", "0.0", "false", "no"], False),
    **dict.fromkeys(["1", "1.0", "true", "yes"], True),
    0: False,
    1: True,
}


def is_missing(cell: Any) -> bool:
    """Whether a cell says that its value is not known."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def as_number(cell: Any) -> float:
    """Return the number in a cell; ValueError if there is none within bounds."""
    if isinstance(cell, str) and "_" in cell:  # Python would take 1_000 as a number
        raise ValueError(cell)
    try:
        number = float(cell)
    except TypeError:  # a list, a date
        raise ValueError(str(cell)) from None
    if not abs(number) <= LARGEST_VALUE:
        raise ValueError(str(cell))
    return number


def is_number(cell: Any) -> bool:
    """Whether a cell holds a number."""
    try:
        as_number(cell)
    except ValueError:
        return False
    return True


def as_text(cell: Any) -> str:
    """Return a cell as the same text whichever file format it came from: 3, 3.0 and "3" are "3"."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def as_bit(cell: Any) -> bool | None:
    """Return what a cell of a label's own column says; None if it says neither yes nor no."""
    try:
        bit = _BITS.get(cell)
    except TypeError:  # a list
        return None
    return _BITS.get(cell.strip().lower()) if bit is None and isinstance(cell, str) else bit


def plain_numbers(cells: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return a column of numbers quickly, or None if some cell needs a closer look."""
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
        if isinstance(cells[0], str) and "_" in "".join(cells):
            return None
    except (TypeError, ValueError):
        return None
    return numbers if bool((np.abs(numbers) <= LARGEST_VALUE).all()) else None


def numbers_among(cells: Sequence[Any]) -> NDArray[np.float64]:
    """Return the numbers of a column, without what is missing or no number."""
    numbers = plain_numbers(cells)
    return numbers if numbers is not None else np.array([as_number(cell) for cell in cells if is_number(cell)])


def codes_of(cells: Iterable[Any], places: dict[str, int]) -> NDArray[np.int64]:
    """Return the place of each cell's text, -1 where it has none."""
    return np.array([places.get(as_text(cell), -1) for cell in cells], dtype=np.int64)

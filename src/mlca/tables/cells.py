"""Conversion of cells to numbers, text and vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.limits import LARGEST_VALUE
from mlca.targets.text import is_missing_label

# 1.234,5 and 1234,5: a decimal comma, optionally with points between thousands.
_COMMA_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d*)(?:,\d*)?(?:[eE][-+]?\d+)?", re.ASCII)

_PLAIN = frozenset({str, int, float, bool})

_NUMBERS = frozenset({int, float, np.float64, np.float32, np.int64, np.int32})

_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})

_BITS: dict[Hashable, bool] = {
    **dict.fromkeys(["0", "0.0", "false", "no"], False),
    **dict.fromkeys(["1", "1.0", "true", "yes"], True),
    0: False,
    1: True,
}


def is_missing(cell: Any) -> bool:
    """Return whether a cell is a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return is_missing_label(cell)


def as_number(cell: Any, *, comma: bool = False) -> float:
    """Return a cell as a number; ValueError if it is not one in the supported range.

    A time span becomes its length in seconds.
    """
    number = _number(cell, comma)
    if not abs(number) <= LARGEST_VALUE:
        raise ValueError(str(cell)[:40])
    return number


def _number(cell: Any, comma: bool) -> float:
    """Return a cell as a number, infinity on overflow; ValueError if it is not a number."""
    if isinstance(cell, str):
        if "_" in cell:  # Python would read 1_000 as a number
            raise ValueError(cell)
        if comma:
            if _COMMA_NUMBER.fullmatch(cell.strip()) is None:
                raise ValueError(cell)
            cell = cell.replace(".", "").replace(",", ".")
    if isinstance(cell, np.datetime64):
        raise ValueError(str(cell))
    if isinstance(cell, timedelta):
        cell = cell.total_seconds()
    elif isinstance(cell, np.timedelta64):
        cell /= np.timedelta64(1, "s")
    try:
        return float(cell)
    except TypeError:  # such as a list or a date
        raise ValueError(type(cell).__name__) from None
    except OverflowError:  # such as an integer with hundreds of digits
        return math.inf


def is_number(cell: Any, *, comma: bool = False) -> bool:
    """Return whether a cell holds a number, even one beyond the supported range."""
    try:
        return not math.isnan(_number(cell, comma))
    except ValueError:
        return False


def as_text(cell: Any) -> str:
    """Return a cell as text that is the same for all file formats: 3, 3.0 and "3" are "3"."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def id_of(cell: Any) -> str:
    """Return the ID in a cell as text; empty if the cell is missing."""
    return "" if is_missing_label(cell) else as_text(cell)


def as_bit(cell: Any) -> bool | None:
    """Return the boolean value of a cell such as 1, "no" or True; None for other values."""
    try:
        bit = _BITS.get(cell)
    except TypeError:  # not hashable, such as a list
        return None
    return _BITS.get(cell.strip().lower()) if bit is None and isinstance(cell, str) else bit


def plain_numbers(cells: Sequence[Any]) -> NDArray[np.float64] | None:
    """Convert a column of plain numbers quickly; None if a cell needs a closer check."""
    kinds = set(map(type, cells))
    if not kinds <= _PLAIN:  # `float` would also convert NumPy times, and ignore their unit
        return None
    if str in kinds and "_" in "".join(cells if len(kinds) == 1 else [cell for cell in cells if type(cell) is str]):
        return None
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    except (ValueError, OverflowError):
        return None
    return numbers if bool((np.abs(numbers) <= LARGEST_VALUE).all()) else None


def is_several(cell: Any) -> bool:
    """Return whether a cell is a collection, such as a list, a set or an array."""
    return isinstance(cell, Collection | np.ndarray) and not isinstance(cell, str | bytes | bytearray)


def as_vector(cell: Any) -> NDArray[np.float64] | None:
    """Return the numbers of a list or array; None if empty, invalid or of another type."""
    if not isinstance(cell, list | tuple | np.ndarray) or getattr(cell, "ndim", 1) != 1 or not len(cell):
        return None
    if not isinstance(cell, np.ndarray) and not set(map(type, cell)) <= _NUMBERS:
        return None
    vector = np.asarray(cell)
    if vector.ndim != 1 or vector.dtype.kind not in "iuf":
        return None
    vector = vector.astype(np.float64)
    return vector if bool((np.abs(vector) <= LARGEST_VALUE).all()) else None


def numbers_among(cells: Sequence[Any], *, comma: bool = False) -> NDArray[np.float64]:
    """Return the valid numbers in a column."""
    numbers = None if comma else plain_numbers(cells)
    if numbers is None:
        found = np.array([_number(cell, comma) for cell in cells if is_number(cell, comma=comma)])
        numbers = found[np.abs(found) <= LARGEST_VALUE]
    return numbers

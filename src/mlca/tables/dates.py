"""Dates as numbers: the time, and the position in the year, the week and the day."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

Cycle: TypeAlias = Literal["year", "week", "day"]

CYCLES: tuple[Cycle, ...] = get_args(Cycle)
_LENGTH = {"year": 365.2425, "week": 7.0, "day": 1.0}

# 31.12.2024 and 2024/12/31, optionally followed by a time, are unambiguous. 12/11/2024 is ambiguous and is not read
# as a date.
_ISO = re.compile(r"\d{4}-?\d{2}-?\d{2}([T ].*)?", re.ASCII)
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})([T ].*)?", re.ASCII)
_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})([T ].*)?", re.ASCII)

# The first Monday of 1970, so that weeks begin on Mondays.
_BEGINNING = datetime(1970, 1, 5)


def is_slashed(cell: Any) -> bool:
    """Return whether a cell looks like 2024/12/31."""
    return isinstance(cell, str) and _SLASHED.fullmatch(cell.strip()) is not None


def as_days(cell: Any, *, slashes: bool = False) -> float | None:
    """Return a date cell in days since the first Monday of 1970; None if not a date.

    Parameters
    ----------
    cell : object
        The cell.
    slashes : bool, default=False
        Whether to read 2024/12/31 as a date; false for columns whose kind was inferred before version 0.3.

    Examples
    --------
    >>> as_days("1970-01-06 12:00"), as_days("6.1.1970"), as_days("1970/1/6", slashes=True), as_days("soon")
    (1.5, 1.0, 1.0, None)
    """
    if slashes and is_slashed(cell):
        cell = _SLASHED.sub(lambda part: f"{part[1]}-{int(part[2]):02}-{int(part[3]):02}{part[4] or ''}", cell.strip())
    moment = _moment(cell)
    if moment is None:
        return None
    if moment.tzinfo is not None:
        try:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:  # in the first or last hours of the calendar
            return None
    return (moment - _BEGINNING).total_seconds() / 86_400


def _moment(cell: Any) -> datetime | None:
    if hasattr(cell, "to_timestamp"):  # a pandas period, represented by its start
        cell = cell.to_timestamp()
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, datetime):
        return cell if cell == cell else None  # pandas' NaT is a datetime that does not equal itself
    if isinstance(cell, date):
        return datetime.combine(cell, time())
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    dotted = _DOTTED.fullmatch(text)
    if dotted is not None:
        text = f"{dotted[3]}-{int(dotted[2]):02}-{int(dotted[1]):02}{dotted[4] or ''}"
    elif _ISO.fullmatch(text) is None or text.isdecimal():
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def cycles_of(days: Sequence[float]) -> tuple[Cycle, ...]:
    """Return the relevant cycles: those in which the given times differ.

    The year is relevant if the dates span at least 60 days, the week if they fall on several weekdays, and the day if
    their times of day differ.
    """
    first, last = min(days), max(days)
    varies: dict[Cycle, bool] = {
        "year": last - first >= 60,
        "week": len({math.floor(day) % 7 for day in days}) > 1,
        "day": len({day % 1 for day in days}) > 1,
    }
    return tuple(cycle for cycle in CYCLES if varies[cycle])


def phase(days: float, cycle: Cycle) -> tuple[float, float]:
    """Return a time's position in a cycle as sine and cosine, so its end meets its start."""
    angle = 2 * math.pi * days / _LENGTH[cycle]
    return math.sin(angle), math.cos(angle)


def in_words(days: float) -> str:
    """Return days since the first Monday of 1970 as an ISO date, or as days if out of range.

    Examples
    --------
    >>> in_words(1.5), in_words(-5000.0), in_words(1e9)
    ('1970-01-06', '1956-04-28', '1e+09 days')
    """
    try:
        # Added to a datetime, because Windows cannot convert timestamps before 1970.
        return (_BEGINNING + timedelta(days=days)).date().isoformat()
    except (ValueError, OverflowError):
        return f"{days:.4g} days"

"""Telling numbers from categories by the first rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from mlca.tables.cells import as_text, is_missing, is_number, numbers_among, plain_numbers
from mlca.tables.delimited import UNNAMED
from mlca.tables.layout import Categorical, Column, Ignored, Numeric
from mlca.tables.sources import Source

# A column is numeric if at least so many of its values are numbers; the others are then faults.
MOSTLY = 0.9

# More values than this, or more than half of the rows' values being different, are text rather than categories.
MOST_VALUES = 100
FEW_ROWS = 10


@dataclass(frozen=True)
class Wishes:
    """What the user says about columns, against what the first rows say: names or patterns."""

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def names_of(wanted: Sequence[str], columns: Sequence[str], file: str) -> tuple[str, ...]:
    """Return the columns that names and patterns mean; ValueError if one means none."""
    found: dict[str, None] = {}
    for name in wanted:
        own = [name] if name in columns else [column for column in columns if fnmatchcase(column, name)]
        if not own:
            raise ValueError(f"{file}: no column is called {name!r}; there are {some(columns)}")
        found.update(dict.fromkeys(own))
    return tuple(found)


def some(columns: Sequence[str], most: int = 20) -> str:
    """List columns for a message, but not thousands of them."""
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(map(repr, columns[:most])) + more


def decide_columns(
    source: Source, rows: Sequence[Sequence[Any]], labels: Sequence[str], wishes: Wishes
) -> list[Column]:
    """Decide the kind of every column that is no label.

    Parameters
    ----------
    source : Source
        The file.
    rows : sequence of cells
        Its first rows.
    labels : sequence of str
        The columns that are labels.
    wishes : Wishes
        What the user says.

    Returns
    -------
    list of Column
        In the order of the file.
    """
    wished: dict[str, Callable[[str, Sequence[Any]], Column]] = {}
    for wanted, decide in (
        (wishes.ignore, lambda name, cells: Ignored(name, "as you wish")),
        (wishes.categorical, _categorical),
        (wishes.numeric, _numeric),
    ):
        for name in names_of(wanted, source.columns, source.name):
            if name in wished or name in labels:
                raise ValueError(f"column {name!r} cannot be two things at once; leave it out of one option")
            wished[name] = decide
    decided: list[Column] = []
    for name, cells in zip(source.columns, zip(*rows, strict=True), strict=True):
        if name in labels:
            continue
        if name in wished:
            decided.append(wished[name](name, cells))
        elif name in source.nominal:
            decided.append(Categorical(name, source.nominal[name]))
        else:
            decided.append(_by_values(name, cells))
    if all(isinstance(column, Ignored) for column in decided):
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in decided if isinstance(column, Ignored))
        raise ValueError(f"{source.name}: no column is left to learn from ({reasons})")
    return decided


def _by_values(name: str, cells: Sequence[Any]) -> Column:
    if name.startswith(UNNAMED):
        return Ignored(name, "no name")
    if plain_numbers(cells) is not None:
        return _numeric(name, cells)
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        return Ignored(name, "no value in the first rows")
    if sum(map(is_number, present)) >= MOSTLY * len(present):
        return _numeric(name, cells)
    if any(isinstance(cell, list | dict) for cell in present):
        return Ignored(name, "lists or objects")
    values = {as_text(cell) for cell in present}
    if len(values) > MOST_VALUES or (len(present) >= FEW_ROWS and len(values) > len(present) / 2):
        return Ignored(name, f"text: {len(values)} different values in {len(present)} rows")
    return Categorical(name, tuple(sorted(values)))


def _numeric(name: str, cells: Sequence[Any]) -> Column:
    numbers = numbers_among(cells)
    if not len(numbers):
        raise ValueError(f"column {name!r} has no number in the first rows; it cannot be numeric")
    return Numeric(name, float(np.median(numbers)))


def _categorical(name: str, cells: Sequence[Any]) -> Column:
    values = {as_text(cell) for cell in cells if not is_missing(cell)}
    if not values:
        raise ValueError(f"column {name!r} has no value in the first rows; it cannot be categorical")
    return Categorical(name, tuple(sorted(values)))

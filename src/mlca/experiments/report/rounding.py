"""Formatting of numbers in tables: rounded by column, with a sign for differences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mlca.experiments.report.sections import Table

NOT_AVAILABLE = "N/A"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Cell:
    """A formatted cell of a table.

    Parameters
    ----------
    text : str
        The text to show.
    number : float or None
        The unrounded number; None for text.
    missing : bool
        Whether the cell has no value to compare: "N/A" or "not run".
    """

    text: str
    number: float | None = None
    missing: bool = False


@dataclass(frozen=True)
class ShownColumn:
    """A formatted column of a table.

    Parameters
    ----------
    head : str
        The name of the column.
    cells : tuple of Cell
        One cell per row.
    """

    head: str
    cells: tuple[Cell, ...]

    @property
    def is_numeric(self) -> bool:
        """Whether the column has only numbers and missing cells."""
        shown = [cell for cell in self.cells if not cell.missing]
        return bool(shown) and all(cell.number is not None for cell in shown)


def columns_of(table: Table) -> list[ShownColumn]:
    """Return the columns of a table with their numbers rounded.

    Examples
    --------
    >>> table = Table("Nodes", ("dataset", "paper", "measured"), (("flags", 174.6, 174.5832), ("yeast", None, 9.25)))
    >>> [[cell.text for cell in column.cells] for column in columns_of(table)]
    [['flags', 'yeast'], ['174.6', 'N/A'], ['174.6', '9.2']]
    """
    return [_column(head, [row[i] for row in table.rows]) for i, head in enumerate(table.columns)]


def _column(head: str, values: Sequence[str | float | int | None]) -> ShownColumn:
    numbers = [float(value) for value in values if value is not None and not isinstance(value, str)]
    signed = "difference" in head.casefold()
    rounding = _Rounding([number for number in numbers if math.isfinite(number)])
    return ShownColumn(head, tuple(_cell(value, rounding, signed) for value in values))


def _cell(value: str | float | int | None, rounding: _Rounding, signed: bool) -> Cell:
    known = known_or_not_available(value)
    if isinstance(known, str):
        return Cell(known, missing=known in (NOT_AVAILABLE, NOT_RUN, ""))
    return Cell(rounding.show(float(known), signed), float(known))


def known_or_not_available(value: str | float | int | None) -> str | float | int:
    """Return a table's value, or "N/A" if it is ``None`` or NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOT_AVAILABLE
    return value


class _Rounding:
    """Rounds the numbers in a column to a suitable number of decimals.

    If the largest number is less than a hundred times the smallest, all numbers are shown with the number of decimals
    that suits the largest, so that they are aligned. If a column mixes scales (such as shares of rows and numbers of
    nodes), the number of decimals depends on the size of each number. No number is shown with more decimals than the
    most precise number in the column has.
    """

    def __init__(self, numbers: Sequence[float]) -> None:
        sizes = [abs(number) for number in numbers if number]
        self._most = max(map(_decimals_in, sizes), default=0)
        self._largest = max(sizes, default=0.0)
        self._alike = self._largest < 100 * min(sizes, default=0.0)

    def show(self, number: float, signed: bool) -> str:
        """Format a number; if it would round to 0, show two significant digits, unless signed."""
        if math.isinf(number):
            return "∞" if number > 0 else "−∞"
        size = abs(number)
        decimals = min(_decimals_for(self._largest if self._alike else size), self._most)
        text = f"{size:,.{decimals}f}" if size >= 10_000 else f"{size:.{decimals}f}"
        is_zero = float(text.replace(",", "")) == 0
        if is_zero and size and not signed:
            text, is_zero = re.sub("e-0*", "e−", f"{size:.2g}"), False
        if is_zero:
            return text
        return ("−" if number < 0 else "+" if signed else "") + text


def _decimals_for(size: float) -> int:
    """Return the number of decimals for a number of this size: 3 below 10, 0 from 10,000."""
    if size < 10:
        return 3
    if size < 100:
        return 2
    return 1 if size < 10_000 else 0


def _decimals_in(number: float) -> int:
    """Return the number of decimals of a number in full precision.

    Examples
    --------
    >>> [_decimals_in(number) for number in (20.0, 0.05, 1e-6, 1e22)]
    [0, 2, 6, 0]
    """
    digits, _, exponent = repr(number).partition("e")
    decimals = len(digits.partition(".")[2].rstrip("0"))
    return max(0, decimals - int(exponent or 0))

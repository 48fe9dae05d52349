"""The interface of all readers: named columns, and rows of cells with their line numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True)
class Fault:
    """The reason why a row cannot be read."""

    problem: str


Cells: TypeAlias = Sequence[Any]
NumberedRow: TypeAlias = tuple[int, Cells | Fault]


class Source(Protocol):
    """An opened file, which yields rows of cells."""

    name: str
    """The name used in messages."""

    place: str
    """The unit of row numbers: "line" in text files, "row" in Parquet files."""

    columns: tuple[str, ...]
    """The names of the columns."""

    nominal: dict[str, tuple[str, ...]]
    """Columns that the file itself declares categorical, with their values."""

    label_columns: tuple[str, ...]
    """Columns that the file itself declares to be labels."""

    sparse: bool
    """Whether most values are zero, so that rows should stay sparse."""

    def rows(self) -> Iterator[NumberedRow]:
        """Yield (line, cells) for every row; a `Fault` replaces the cells of an unreadable row."""

    def fraction(self) -> float | None:
        """Return the share of the file that has been read; None if its size is unknown."""


def require_distinct(columns: Sequence[str], name: str) -> None:
    """Reject duplicate column names."""
    seen: dict[str, int] = {}
    for number, column in enumerate(columns, 1):
        if column in seen:
            raise ValueError(f"{name}: columns {seen[column]} and {number} are both called {column!r}; rename one")
        seen[column] = number

"""Reader of XC text, in which each line holds labels, then feature:value pairs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from mlca.tables.byte_streams import ByteStream, bad_file
from mlca.tables.sources import Fault

# The header line at the start of a file.
FIRST_LINE = re.compile(rb"\s*\d{1,10}[ \t]+\d{1,10}[ \t]+\d{1,10}[ \t]*\r?(?:\n|$)")

_HEADER = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*", re.ASCII)
_ROW = re.compile(
    r"\s*+(?:(?P<labels>\d++(?:,\d++)*+)(?:\s++|$))?"
    r"(?P<cells>(?:\d++:[-+.0-9eE]++(?:\s++|$))*+)",
    re.ASCII,
)
_LARGEST = 2**31 - 1


class XcRow(NamedTuple):
    """One row: its labels, and the non-zero features with their values."""

    labels: list[int]
    attributes: list[int]
    values: list[float]


class XcSource:
    """A file of XC text, which has no columns; its rows are `XcRow` objects.

    Attributes
    ----------
    n_rows, n_features, n_labels : int
        The counts in the header. Only the number of rows is checked here, because it is not known yet whether features
        and labels are numbered from 0 or from 1.
    """

    place = "line"
    sparse = True
    columns: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        self.nominal: dict[str, tuple[str, ...]] = {}
        self._lines = enumerate(stream.lines(), 1)
        header = _HEADER.fullmatch(next(self._lines, (1, ""))[1])
        if header is None:
            raise bad_file(self.name, 1, "expected three numbers: of rows, attributes and labels")
        self.n_rows, self.n_features, self.n_labels = (int(number) for number in header.groups())
        if max(self.n_features, self.n_labels) > _LARGEST:
            raise bad_file(self.name, 1, f"more than {_LARGEST} attributes or labels are not supported")

    def rows(self) -> Iterator[tuple[int, XcRow | Fault]]:
        """Yield the rows; a blank line before the end is a row without labels and features."""
        count, number = 0, 1
        for number, line in self._lines:
            if count == self.n_rows:
                if line.isspace():
                    continue
                yield number, Fault(f"the header declares {self.n_rows} rows; correct it, or remove the rest")
                return
            count += 1
            yield number, _read_row(line)
        if count < self.n_rows:
            yield number, Fault(f"the header declares {self.n_rows} rows, but there are {count}; fetch the file again")


def _read_row(line: str) -> XcRow | Fault:
    row = _ROW.fullmatch(line)
    if row is None:
        return Fault("expected labels with commas between them, then attribute:value pairs")
    # The pattern guarantees that numbers and colons alternate.
    words = row["cells"].replace(":", " ").split()
    try:
        labels = [int(word) for word in row["labels"].split(",")] if row["labels"] else []
        attributes = [int(word) for word in words[::2]]
        values = [float(word) for word in words[1::2]]
    except ValueError as error:
        return Fault(f"a value of the row is not a number ({error})")
    for what, numbers in (("label", labels), ("attribute", attributes)):
        if max(numbers, default=0) > _LARGEST:
            return Fault(f"{what} {max(numbers)} is too large; the limit is {_LARGEST}")
        if len(set(numbers)) < len(numbers):
            return Fault(f"{what} {_repeated(numbers)} occurs twice in the row")
    for attribute, value in zip(attributes, values, strict=True):
        if not math.isfinite(value):
            return Fault(f"the value of attribute {attribute} is infinite")
    return XcRow(labels, attributes, values)


def _repeated(numbers: list[int]) -> int:
    ascending = sorted(numbers)
    return next(a for a, b in pairwise(ascending) if a == b)

"""The Extreme Classification repository's text: labels, then attribute:value pairs, a row a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mlca.datasets.xc import ROW
from mlca.tables.sources import Fault, Row
from mlca.tables.streams import ByteStream

HEADER = re.compile(rb"\s*(\d{1,9})[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]*\r?(?:\n|$)")


class XcRow(NamedTuple):
    """One row: its labels, and the attributes that are not zero with their values."""

    labels: list[str]
    attributes: list[int]
    values: list[float]


class XcSource:
    """A file of XC text. It has no columns; its rows are `XcRow`."""

    place = "line"
    sparse = True
    columns: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        self.nominal: dict[str, tuple[str, ...]] = {}
        header = HEADER.match(stream.peek())
        if header is None:
            raise ValueError(f"{self.name}, line 1: expected the numbers of rows, attributes and labels")
        self.n_features = int(header[2])
        self._lines = enumerate(stream.lines(), 1)
        next(self._lines)

    def rows(self) -> Iterator[Row]:
        """Yield the rows. A blank line is one without labels and attributes; at the end it is nothing."""
        blank: list[Row] = []
        for number, line in self._lines:
            if line.isspace():
                blank.append((number, XcRow([], [], [])))
                continue
            yield from blank
            blank.clear()
            yield number, _read_row(line)


def _read_row(line: str) -> XcRow | Fault:
    row = ROW.fullmatch(line)
    if row is None:
        return Fault("expected labels with commas between them, then attribute:value pairs")
    # The pattern has made sure that numbers and colons alternate.
    words = row["cells"].replace(":", " ").split()
    try:
        attributes = [int(word) for word in words[::2]]
        values = [float(word) for word in words[1::2]]
    except ValueError as error:
        return Fault(str(error))
    if len(set(attributes)) < len(attributes):
        return Fault("an attribute is named twice")
    return XcRow(row["labels"].split(",") if row["labels"] else [], attributes, values)

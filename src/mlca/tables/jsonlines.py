"""JSON lines: one object a line; the columns are the names that the first objects have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from mlca.tables.sources import Fault, NumberedRow
from mlca.tables.streams import ByteStream, undecodable

# Objects whose names are the columns. A name that turns up later is not read, and told.
FIRST_OBJECTS = 1000
MOST_UNREAD = 20


class JsonLinesSource:
    """A file of JSON lines.

    Attributes
    ----------
    unread : set of str
        Names that turned up too late to be columns, some of them.
    """

    place = "line"
    sparse = False

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        self.nominal: dict[str, tuple[str, ...]] = {}
        self.unread: set[str] = set()
        self.label_columns: tuple[str, ...] = ()
        objects = _objects(stream.lines())
        first = list(islice(objects, FIRST_OBJECTS))
        self._objects = chain(first, objects)
        self.columns = tuple(dict.fromkeys(name for _, found in first if isinstance(found, dict) for name in found))
        if not self.columns:
            faults = [f", line {line}: {found.problem}" for line, found in first if isinstance(found, Fault)]
            place = faults[0] if faults else ", line 1: the object is empty"
            raise ValueError(f'{self.name}{place}; no line holds a JSON object such as {{"size": 1.5, "tags": ["a"]}}')

    def rows(self) -> Iterator[NumberedRow]:
        """Yield the rows; a name that an object lacks is missing."""
        known = set(self.columns)
        for line, found in self._objects:
            if isinstance(found, Fault):
                yield line, found
                continue
            if not found.keys() <= known and len(self.unread) < MOST_UNREAD:
                self.unread |= found.keys() - known
            yield line, [found.get(name) for name in self.columns]


def _objects(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        if problem := undecodable(line):
            yield number, Fault(problem)
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, Fault(f"not JSON ({error})")
            continue
        if isinstance(found, dict):
            yield number, found
        else:
            yield number, Fault(f"expected one JSON object a line, found a {type(found).__name__}")

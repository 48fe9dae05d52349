"""Reader for JSON lines, one object per line; columns are the keys of the first objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from mlca.tables.byte_streams import ByteStream, undecodable
from mlca.tables.sources import Fault, NumberedRow

# Number of first objects whose keys become columns. Keys that first occur later are ignored and reported.
FIRST_OBJECTS = 1000
MOST_UNREAD = 20

# The start of a JSON array of objects, which is not supported.
ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")


class JsonLinesSource:
    """A file of JSON lines.

    Attributes
    ----------
    unread : set of str
        Keys that first occurred too late to become columns; if there are many, only some of them.
    """

    place = "line"
    sparse = False

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        self.nominal: dict[str, tuple[str, ...]] = {}
        self.unread: set[str] = set()
        self.label_columns: tuple[str, ...] = ()
        if ARRAY.match(stream.peek()):
            raise ValueError(
                f"{self.name}: the file is a JSON array; write JSON lines, one object per line, for instance with "
                "jq -c '.[]'"
            )
        objects = _objects(stream.lines())
        first = list(islice(objects, FIRST_OBJECTS))
        self._objects = chain(first, objects)
        self.columns = tuple(dict.fromkeys(name for _, found in first if isinstance(found, dict) for name in found))
        if not self.columns:
            faults = [f", line {line}: {found.problem}" for line, found in first if isinstance(found, Fault)]
            place = faults[0] if faults else ", line 1: the object is empty"
            raise ValueError(f'{self.name}{place}; no line holds a JSON object such as {{"size": 1.5, "tags": ["a"]}}')

    def rows(self) -> Iterator[NumberedRow]:
        """Yield the rows; a key that an object lacks becomes a missing value."""
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
            found = json.loads(line, object_pairs_hook=_named_once)
        except _NamedTwiceError as error:
            yield number, Fault(str(error))
            continue
        except (ValueError, RecursionError) as error:
            yield number, Fault(f"the line is not JSON ({error})")
            continue
        if isinstance(found, dict):
            yield number, found
        else:
            yield number, Fault(f"expected one JSON object per line; found a {type(found).__name__}")


class _NamedTwiceError(ValueError):
    """Raised if a JSON object has a key twice."""


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object as a dict; reject a repeated key, which `json` would overwrite."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise _NamedTwiceError(f"the key {twice!r} occurs twice in an object; remove one, or rename it")
    return found

"""Reader for the rows of dense and sparse ARFF files; `arff_header` reads the header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from mlca.tables.arff_header import Header, read_header, split_at_commas, unquote
from mlca.tables.byte_streams import ByteStream, bad_file, undecodable
from mlca.tables.sources import Cells, Fault, NumberedRow

_MEKA_LABELS = re.compile(r"(?:^|[\s:])-C\s*(-?\d{1,9})(?!\d)", re.ASCII)

Words: TypeAlias = list[str]
Pairs: TypeAlias = dict[int, str]


class ArffSource:
    """An ARFF file; its relation name may declare label columns with MEKA's ``-C``.

    Attributes
    ----------
    header : Header
        The parsed header.
    """

    place = "line"

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        numbered = enumerate(stream.lines(), 1)
        self.header = read_header(numbered, self.name)
        attributes = self.header.attributes
        self.columns = tuple(attribute.name for attribute in attributes)
        # Nominal attributes whose only values are 0 and 1 are read as numbers, which is equivalent.
        self.nominal = {
            attribute.name: attribute.values
            for attribute in attributes
            if attribute.codes is not None and not {*attribute.values} <= {"0", "1"}
        }
        self.label_columns = tuple(self.columns[place] for place in meka_labels(self.header, self.name) or ())
        # The default value of each column in sparse rows: 0, or the first nominal value.
        self._silent = ["0" if attribute.codes is None else next(iter(attribute.codes)) for attribute in attributes]
        # A dict look-up also rejects invalid and out-of-range column indices.
        self._places = {str(place): place for place in range(len(attributes))}
        stripped = ((number, line.strip()) for number, line in numbered)
        self._lines = ((number, line) for number, line in stripped if line and not line.startswith("%"))
        self._first = next(self._lines, None)
        self.sparse = self._first is not None and self._first[1].startswith("{")

    def rows(self) -> Iterator[NumberedRow]:
        """Yield the rows, with default values in the omitted cells of sparse rows."""
        for number, found in self.records():
            yield number, self._filled(found) if isinstance(found, dict) else found

    def records(self) -> Iterator[tuple[int, Words | Pairs | Fault]]:
        """Yield each row as written: a list of values, or {column index: value} if sparse."""
        read = self._sparse_record if self.sparse else self._dense_record
        if self._first is not None:
            yield self._first[0], read(self._first[1])
        for number, line in self._lines:
            yield number, read(line)

    def _filled(self, pairs: Pairs) -> Cells:
        words = self._silent.copy()
        for place, word in pairs.items():
            words[place] = word
        return words

    def _dense_record(self, line: str) -> Words | Fault:
        if line.startswith("{"):
            return Fault("the row is sparse, but the first row is dense; write all rows in one form")
        pieces = _pieces(line)
        if isinstance(pieces, Fault):
            return pieces
        if len(pieces) != len(self.columns):
            return Fault(f"the row has {len(pieces)} values, but the header declares {len(self.columns)} attributes")
        return [_word(piece) for piece in pieces]

    def _sparse_record(self, line: str) -> Pairs | Fault:
        """Split a row such as ``{2 1, 5 'dark blue'}`` into {column index: value}."""
        if not (line.startswith("{") and line.endswith("}")):
            return Fault("a sparse row must be enclosed in braces on one line; write all rows in one form")
        inside = line[1:-1]
        pieces = _pieces(inside) if inside.strip() else []
        if isinstance(pieces, Fault):
            return pieces
        pairs: Pairs = {}
        for piece in pieces:
            digits, word, *_ = *piece.split(None, 1), "", ""
            place = self._places.get(digits)
            if not word:
                return Fault(f"expected an attribute index and a value; found {digits[:40]!r}")
            if place is None:
                return Fault(f"{digits[:40]!r} is not an attribute index; expected 0 to {len(self.columns) - 1}")
            if place in pairs:
                return Fault(f"attribute {place} ({self.columns[place]!r}) occurs twice in the row")
            pairs[place] = _word(word)
        return pairs


def meka_labels(header: Header, name: str) -> range | None:
    """Return the indices of the label columns declared by MEKA's ``-C``; None without it.

    Parameters
    ----------
    header : Header
        The header of the file.
    name : str
        The file name for error messages.

    Raises
    ------
    ValueError
        If ``-C`` is 0 or exceeds the number of columns.
    """
    count = _MEKA_LABELS.search(header.relation)
    if count is None:
        return None
    n_labels, n_attributes = int(count[1]), len(header.attributes)
    if not 0 < abs(n_labels) <= n_attributes:
        problem = f"-C {n_labels} is out of range; the file has {n_attributes} attributes"
        raise bad_file(name, header.relation_line, problem)
    return range(n_labels) if n_labels > 0 else range(n_attributes + n_labels, n_attributes)


def _pieces(text: str) -> list[str] | Fault:
    if problem := undecodable(text):
        return Fault(problem)
    try:
        return split_at_commas(text)
    except ValueError as error:
        return Fault(f"{error}; write a backslash before quotes within values")


def _word(piece: str) -> str:
    word = piece.strip()
    return unquote(word) if word[:1] in ("'", '"') else word

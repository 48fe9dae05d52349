"""ARFF, dense or sparse, a row at a time; the head is read by `mlca.datasets`."""

from __future__ import annotations

from collections.abc import Iterator

from mlca.datasets.arff import MEKA_LABELS
from mlca.datasets.arff_header import Header, read_header, split_at_commas, unquote
from mlca.tables.sources import Cells, Fault, Row
from mlca.tables.streams import ByteStream, undecodable


class ArffSource:
    """An ARFF file. MEKA's ``-C`` in the name of the relation declares the first or last attributes labels."""

    place = "line"

    def __init__(self, stream: ByteStream) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        numbered = enumerate(stream.lines(), 1)
        header = read_header(numbered, self.name)
        self.columns = tuple(attribute.name for attribute in header.attributes)
        # A choice between 0 and 1 is as good as a number, and needs one column instead of two.
        self.nominal = {
            attribute.name: attribute.values
            for attribute in header.attributes
            if attribute.codes is not None and not {*attribute.values} <= {"0", "1"}
        }
        self.label_columns = _meka_labels(header, self.name)
        # What a sparse row means where it is silent: 0, or the first value of a choice.
        self._silent = [
            "0" if attribute.codes is None else next(iter(attribute.codes)) for attribute in header.attributes
        ]
        self._lines = ((number, line.strip()) for number, line in numbered)
        self._lines = ((number, line) for number, line in self._lines if line and not line.startswith("%"))
        self._first = next(self._lines, None)
        self.sparse = self._first is not None and self._first[1].startswith("{")

    def rows(self) -> Iterator[Row]:
        """Yield the rows; those of a sparse file are filled up."""
        read = self._sparse_cells if self.sparse else self._dense_cells
        if self._first is not None:
            yield self._first[0], read(self._first[1])
        for number, line in self._lines:
            yield number, read(line)

    def _dense_cells(self, line: str) -> Cells | Fault:
        try:
            words = [_word(piece) for piece in split_at_commas(line)]
        except ValueError as error:
            return Fault(f"{error}; write a backslash before a quote that is meant")
        if len(words) != len(self.columns):
            return Fault(f"the row has {len(words)} values, the header {len(self.columns)} attributes")
        return self._decoded(line, words)

    def _sparse_cells(self, line: str) -> Cells | Fault:
        if not (line.startswith("{") and line.endswith("}")):
            return Fault("a sparse row stands in braces on one line; write all rows alike")
        words = self._silent.copy()
        try:
            for piece in split_at_commas(line[1:-1]) if line[1:-1].strip() else []:
                place, word = piece.split(None, 1)
                if not place.isdecimal():
                    raise ValueError(place)
                words[int(place)] = _word(word)
        except (ValueError, IndexError) as error:
            return Fault(f"expected pairs of an attribute's number below {len(words)} and its value ({error})")
        return self._decoded(line, words)

    def _decoded(self, line: str, words: list[str]) -> Cells | Fault:
        problem = undecodable(line)
        return Fault(problem) if problem else words


def _word(piece: str) -> str:
    word = piece.strip()
    return unquote(word) if word[:1] in ("'", '"') else word


def _meka_labels(header: Header, name: str) -> tuple[str, ...]:
    count = MEKA_LABELS.search(header.relation)
    if count is None:
        return ()
    columns, n_labels = [attribute.name for attribute in header.attributes], int(count[1])
    if not 0 < abs(n_labels) < len(columns):
        raise ValueError(
            f"{name}, line {header.relation_line}: -C {n_labels} does not fit the {len(columns)} attributes"
        )
    return tuple(columns[:n_labels] if n_labels > 0 else columns[n_labels:])

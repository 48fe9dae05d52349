"""CSV and TSV with column names in the first line; quoted cells may contain line ends."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from mlca.tables.byte_streams import ByteStream, undecodable
from mlca.tables.sources import Fault, NumberedRow, require_distinct

_QUOTED = re.compile(rb'"[^"]*"')

# Prefix of the names given to unnamed columns, such as the index column in files written by pandas.
UNNAMED = "unnamed "


class DelimitedSource:
    """A CSV or TSV file.

    Parameters
    ----------
    stream : ByteStream
        The file.
    delimiter : str or None
        The separator between cells; None selects comma, semicolon or tab, whichever is most frequent in the first line.
    """

    place = "line"
    sparse = False

    def __init__(self, stream: ByteStream, delimiter: str | None) -> None:
        self.name = stream.name
        self.fraction = stream.fraction
        self.nominal: dict[str, tuple[str, ...]] = {}
        self.label_columns: tuple[str, ...] = ()
        if delimiter is None:
            first_line = _QUOTED.sub(b"", stream.peek()).split(b"\n", 1)[0]
            delimiter = max(",;\t", key=lambda mark: first_line.count(mark.encode()))
        self._faulty: dict[int, str] = {}
        self._reader = csv.reader(self._checked(stream.lines()), delimiter=delimiter, strict=True)
        self.columns = self._read_header()

    def _checked(self, lines: Iterator[str]) -> Iterator[str]:
        """Yield the lines, and record those that are not valid UTF-8."""
        for number, line in enumerate(lines, 1):
            if not line.isascii() and (problem := undecodable(line)):
                self._faulty[number] = problem
            yield line

    def _read_header(self) -> tuple[str, ...]:
        try:
            header = next((cells for cells in self._reader if cells), None)
        except csv.Error as error:
            raise ValueError(f"{self.name}, line {self._reader.line_num}: {error}") from None
        if header is None:
            raise ValueError(f"{self.name}: the file is empty")
        if self._faulty:
            raise ValueError(f"{self.name}, line {self._reader.line_num}: {self._faulty.popitem()[1]}")
        if any("\0" in cell for cell in header):
            raise ValueError(
                f"{self.name}, line 1: the column names contain NUL bytes, as in binary files or UTF-16 text without a "
                "byte-order mark. Convert UTF-16 text: iconv -f utf-16le -t utf-8"
            )
        self._header = header
        names = [cell.strip() or f"{UNNAMED}{number}" for number, cell in enumerate(header, 1)]
        if all(_is_number(name) for name in names):
            raise ValueError(f"{self.name}, line 1: the first line must name the columns, but holds {names[0]!r} ...")
        require_distinct(names, self.name)
        return tuple(names)

    def rows(self) -> Iterator[NumberedRow]:
        """Yield the rows; blank lines are skipped."""
        width, reader = len(self.columns), self._reader
        while True:
            line = reader.line_num + 1
            try:
                for cells in reader:
                    if self._faulty:
                        yield line, Fault(self._faulty.popitem()[1])
                        self._faulty.clear()
                    elif cells == self._header:
                        yield line, Fault("the row repeats the names of the columns; were two files joined?")
                    elif len(cells) == width:
                        yield line, cells
                    elif cells:
                        yield line, Fault(f"the row has {len(cells)} cells, but the first line names {width} columns")
                    line = reader.line_num + 1
                return
            except csv.Error as error:
                long = "; if such a long cell is intended, write JSON lines" if "limit" in str(error) else ""
                yield line, Fault(f"{error}; is a quote not closed, or not doubled?{long}")
                self._faulty.clear()  # one fault per row: the next row may be valid


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

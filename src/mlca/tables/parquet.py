"""Parquet, read with pyarrow some rows at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from mlca.optional import needing
from mlca.tables.sources import Fault, NumberedRow, require_distinct
from mlca.tables.streams import STANDARD_INPUT, ByteStream

_ROWS_AT_A_TIME = 1000


class ParquetSource:
    """A Parquet file."""

    place = "row"
    sparse = False

    def __init__(self, stream: ByteStream) -> None:
        with needing("Parquet", "frames"):
            import pyarrow as pa
            from pyarrow.parquet import ParquetFile
        self.name = stream.name
        self.nominal: dict[str, tuple[str, ...]] = {}
        self.label_columns: tuple[str, ...] = ()
        # The format begins at its end, so standard input has to be taken in whole.
        file = io.BytesIO(stream.bytes.read()) if stream.path == STANDARD_INPUT else stream.path
        try:
            self._file = ParquetFile(file)
        except pa.ArrowException as error:
            raise ValueError(f"{self.name}: not a Parquet file, or cut short ({error})") from None
        self.columns = tuple(self._file.schema_arrow.names)
        require_distinct(self.columns, self.name)
        self._done = 0

    def rows(self) -> Iterator[NumberedRow]:
        """Yield the rows, numbered from 1."""
        import pyarrow as pa

        try:
            for batch in self._file.iter_batches(_ROWS_AT_A_TIME):
                columns = [_cells(name, column) for name, column in zip(self.columns, batch.columns, strict=True)]
                for cells in zip(*columns, strict=True):
                    self._done += 1
                    yield self._done, next((cell for cell in cells if isinstance(cell, Fault)), cells)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.name}, after row {self._done}: the file is damaged ({error})") from None

    def fraction(self) -> float | None:
        """Return how many of the rows have been read."""
        return self._done / max(1, int(self._file.metadata.num_rows))


def _cells(name: str, column: Any) -> list[Any]:
    """Return a column as Python has it, with a `Fault` in place of what cannot be read."""
    try:
        cells: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        cells = [_cell(name, value) for value in column]
    return cells


def _cell(name: str, value: Any) -> Any:
    import pyarrow as pa

    try:
        return value.as_py()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        return Fault(f"{byte} of column {name!r} is not UTF-8; write the column as text in UTF-8, or leave it out")
    except (ValueError, OverflowError):  # a date beyond Python's calendar, which is none, but may be left out
        try:
            return value.cast(pa.string()).as_py()
        except pa.ArrowException:
            return Fault(f"column {name!r} holds a {value.type} that cannot be read; leave the column out")

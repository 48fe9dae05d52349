"""Parquet files, read with pyarrow in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlca.optional import needing
from mlca.tables.byte_streams import MOST_GROWTH, SMALL, STANDARD_INPUT, ByteStream
from mlca.tables.sources import Fault, NumberedRow, require_distinct

_ROWS_AT_A_TIME = 1000

# Largest number of characters per text cell: in a small file, all rows may refer to the same long text.
_LONGEST_TEXT = 2**20


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
        # The metadata are at the end of the file, so a pipe must be read as a whole.
        is_file = stream.path != STANDARD_INPUT and Path(stream.path).is_file()
        file: Any = stream.path if is_file else pa.BufferReader(bytes(stream.read_all()))
        try:
            texts = [field.name for field in ParquetFile(file).schema_arrow if _is_text(field.type)]
            # A text that is stored once in the file is read once, even if many rows refer to it.
            self._file = ParquetFile(file, read_dictionary=texts)
        except pa.ArrowException as error:
            raise ValueError(f"{self.name}: not a Parquet file, or truncated ({error})") from None
        size = Path(stream.path).stat().st_size if is_file else file.size()
        groups = map(self._file.metadata.row_group, range(self._file.num_row_groups))
        if any(group.total_byte_size > max(MOST_GROWTH * size, SMALL) for group in groups):
            raise ValueError(
                f"{self.name}: a row group expands to more than {MOST_GROWTH} times the size of the file; "
                "write the file without compression if you trust it"
            )
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
        """Return the share of the rows that have been read."""
        return self._done / max(1, int(self._file.metadata.num_rows))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def _cells(name: str, column: Any) -> list[Any]:
    """Return a column as Python objects, with a `Fault` for each unreadable cell."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        values = _cells(name, column.dictionary)
        return [None if index is None else values[index] for index in column.indices.to_pylist()]
    try:
        cells: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        cells = [_cell(name, value) for value in column]
    return [_bounded(name, cell) for cell in cells] if _is_text(column.type) else cells


def _bounded(name: str, cell: Any) -> Any:
    """Return a text cell unchanged, or a `Fault` if it is too long."""
    if isinstance(cell, Fault) or cell is None or len(cell) <= _LONGEST_TEXT:
        return cell
    return Fault(f"column {name!r} holds a string of {len(cell):,} characters; the limit is {_LONGEST_TEXT:,}")


def _cell(name: str, value: Any) -> Any:
    import pyarrow as pa

    try:
        return value.as_py()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        return Fault(f"{byte} in column {name!r} is not UTF-8; write the column as text in UTF-8, or leave it out")
    except (ValueError, OverflowError):  # a date beyond Python's calendar, kept as text in case the column is ignored
        try:
            return value.cast(pa.string()).as_py()
        except pa.ArrowException:
            return Fault(f"column {name!r} holds a {value.type} that cannot be read; leave the column out")

"""Checks of the rows of a request, and their conversion to rows of the log.

The model accepts every row that passes these checks. A row that the model would reject must not become durable, since
the log is replayed at every start. So this module checks everything on which a later stage could fail, and reports a
fault with row, field and remedy. `x` is a list of numbers, or an object that maps column names to cells. The first row
that is kept or learned decides the format, and the length of lists. Objects are rows of a table, read in `table_cells`.
Exceptions are logs created before tables were supported, and logs that started from a model with named numeric
features: there, an object is an alternative to the list.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlca.limits import LARGEST_VALUE
from mlca.serve.request_errors import RequestError, bad_row, excerpt, kind_of, read_name
from mlca.serve.table_cells import NamedCells, pack_cells, read_cells, unpack_cells

MOST_COLUMNS = 100_000
MOST_LABELS = 1000

# Number of values converted per step; a step blocks all threads for less than a millisecond.
_AT_ONCE = 2**14

_NUMBERS = {int, float}
_FIELDS = ("id", "x", "labels")


@dataclass(frozen=True)
class Columns:
    """The format of a log's rows: lists of numbers, or cells of a table.

    Attributes
    ----------
    width : int
        The number of values per row; 0 for a table, whose rows may differ in their columns.
    names : tuple of str or None
        The names of the values; None if they have no names.
    table : bool
        Whether rows are objects that map column names to cells.
    """

    width: int
    names: tuple[str, ...] | None = None
    table: bool = False

    def to_json(self) -> str:
        """Return the columns as a JSON string, which the log stores."""
        return json.dumps({"width": self.width, "names": self.names} | ({"table": True} if self.table else {}))

    @classmethod
    def from_json(cls, text: str) -> Columns:
        """Create columns from the result of `to_json`."""
        plain = json.loads(text)
        names = None if plain["names"] is None else tuple(plain["names"])
        return cls(plain["width"], names, plain.get("table", False))


TABLE = Columns(0, table=True)

RowsOfX: TypeAlias = NDArray[np.float64] | list[NamedCells]


@dataclass(frozen=True)
class RequestRows:
    """Checked rows of one request.

    Attributes
    ----------
    ids : list of str
        The ID of each row; an empty string if it has none.
    x : ndarray of shape (n_rows, n_columns) or list of dict
        The numbers as a matrix; for a table, the cells of each row.
    labels : list of tuples of str
        The labels of each row; an empty list if labels were not required.
    columns : Columns
        The format of `x`.
    """

    ids: list[str]
    x: RowsOfX
    labels: list[tuple[str, ...]]
    columns: Columns


def read_rows(rows: Any, columns: Columns | None, *, need_ids: bool, need_labels: bool, most: int) -> RequestRows:
    """Check and convert the rows of a request.

    Parameters
    ----------
    rows : object
        The field `rows` of the request.
    columns : Columns or None
        The columns of the log; None while it is empty.
    need_ids, need_labels : bool
        Whether each row must have an ID, and whether it must have labels.
    most : int
        The largest number of rows per request.

    Returns
    -------
    RequestRows

    Raises
    ------
    RequestError
        If a row is invalid; the error describes the first fault.

    Examples
    --------
    >>> batch = read_rows([{"id": "a", "x": [3, 0.5]}], None, need_ids=True, need_labels=False, most=9)
    >>> batch.x.tolist(), batch.columns.width
    ([[3.0, 0.5]], 2)
    >>> read_rows([{"id": "a", "x": [1, "2"]}], None, need_ids=True, need_labels=False, most=9)
    Traceback (most recent call last):
    mlca.serve.request_errors.RequestError: x[1] is a string, not a number; send numbers
    """
    check_list(rows, most)
    ids: list[str] = []
    values: list[Any] = []
    labels: list[tuple[str, ...]] = []
    for number, row in enumerate(rows):
        check_keys(row, number, _FIELDS if need_labels else _FIELDS[:2])
        ids.append(read_id(row.get("id"), number) if need_ids or "id" in row else "")
        if "x" not in row:
            raise bad_row(
                number, "x", "the row has no x", "add a list of numbers, or an object that maps column names to cells"
            )
        columns = columns or _columns_of(row["x"], number)
        read = read_cells(row["x"], number) if columns.table else _values_of(row["x"], columns, number)
        values.append(read)
        if need_labels:
            labels.append(read_labels(row, number))
    assert columns is not None  # there is at least one row
    return RequestRows(ids, values if columns.table else _matrix(values, columns), labels, columns)


def check_list(rows: Any, most: int) -> None:
    """Raise RequestError unless `rows` is a list of 1 to `most` items."""
    if not isinstance(rows, list) or not rows:
        raise RequestError(422, "rows is not a list with at least one row", "send {'rows': [...]}", field="rows")
    if len(rows) > most:
        problem = f"the request has {len(rows):,} rows, more than {most:,}"
        raise RequestError(413, problem, "send them in several requests", field="rows")


def read_id(value: Any, number: int | None) -> str:
    """Return the ID of a row; raise RequestError if it is invalid."""
    return read_name(value, number, "id", "give every row a unique id, such as a UUID")


def read_labels(row: dict[str, Any], number: int) -> tuple[str, ...]:
    """Return the labels of a row without duplicates; raise RequestError if one is invalid."""
    labels = row.get("labels")
    remedy = 'send a list of names, such as ["sea", "sun"]; a row without labels has []'
    if not isinstance(labels, list):
        raise bad_row(number, "labels", "labels is missing or not a list", remedy)
    if len(labels) > MOST_LABELS:
        raise bad_row(number, "labels", f"the row has more than {MOST_LABELS} labels", "send fewer")
    names = (read_name(label, number, f"labels[{i}]", remedy) for i, label in enumerate(labels))
    return tuple(dict.fromkeys(names))


def check_keys(row: Any, number: int, fields: Sequence[str]) -> None:
    """Reject a row that is not an object, or has unknown fields."""
    if not isinstance(row, dict):
        raise bad_row(number, "", f"row {number} is {kind_of(row)}, not an object", f"send {', '.join(fields)}")
    for key in row:
        if key not in fields:
            raise bad_row(
                number, excerpt(key), f"a row has the unknown field {excerpt(key)!r}", f"send {', '.join(fields)}"
            )


def _columns_of(x: Any, number: int) -> Columns:
    """Return the format of all rows, which the first row decides."""
    if not isinstance(x, list | dict) or not 0 < len(x) <= MOST_COLUMNS:
        problem = f"x is {kind_of(x)}" if not isinstance(x, list | dict) else f"x has {len(x):,} columns"
        raise bad_row(
            number,
            "x",
            problem,
            f"send a list of 1 to {MOST_COLUMNS:,} numbers, or an object that maps column names to cells",
        )
    return Columns(len(x)) if isinstance(x, list) else TABLE


def _values_of(x: Any, columns: Columns, number: int) -> list[Any]:
    fields: tuple[str, ...] | None
    if isinstance(x, list):
        if len(x) != columns.width:
            problem = f"x has {len(x):,} numbers, but the rows of this log have {columns.width:,}"
            raise bad_row(number, "x", problem, f"send {columns.width:,} numbers in the order of the first rows")
        values, fields = x, None
    elif isinstance(x, dict):
        if columns.names is None:
            problem = "x is an object, but the columns have no names, because the first rows were lists"
            raise bad_row(number, "x", problem, f"send a list of {columns.width:,} numbers")
        values, fields = _named_values(x, columns.names, number), columns.names
    else:
        raise bad_row(
            number,
            "x",
            f"x is {kind_of(x)}",
            f"send a list of {columns.width:,} numbers"
            f"{'' if columns.names is None else ', or an object that maps column names to numbers'}",
        )
    if not set(map(type, values)) <= _NUMBERS:
        place = next(i for i, value in enumerate(values) if type(value) not in _NUMBERS)
        field = f"x[{place if fields is None else fields[place]!r}]"
        raise bad_row(number, field, f"{field} is {kind_of(values[place])}, not a number", "send numbers")
    return values


def _named_values(x: dict[str, Any], names: tuple[str, ...], number: int) -> list[Any]:
    if len(x) == len(names):
        try:
            return [x[name] for name in names]
        except KeyError:
            pass
    missing = next((name for name in names if name not in x), None)
    if missing is not None:
        raise bad_row(number, f"x[{missing!r}]", f"x lacks the column {missing!r}", "send a number for every column")
    known = set(names)
    unknown = excerpt(next(name for name in x if name not in known))
    remedy = f"send only the columns of this log: {', '.join(map(repr, names[:20]))}"
    raise bad_row(number, f"x[{unknown!r}]", f"there is no column {unknown!r}", remedy)


def _matrix(values: list[list[Any]], columns: Columns) -> NDArray[np.float64]:
    matrix = np.empty((len(values), columns.width))
    step = max(1, _AT_ONCE // columns.width)
    try:
        for start in range(0, len(values), step):
            matrix[start : start + step] = values[start : start + step]
        if (np.abs(matrix) <= LARGEST_VALUE).all():
            return matrix
    except OverflowError:  # an integer too large for a float
        pass
    number, place = next(
        (i, j) for i, row in enumerate(values) for j, value in enumerate(row) if not abs(value) <= LARGEST_VALUE
    )
    field = f"x[{place if columns.names is None else columns.names[place]!r}]"
    problem = f"{field} is beyond {LARGEST_VALUE:g}, where squares overflow"
    raise bad_row(number, field, problem, "send finite numbers, and rescale larger ones")


def pack(matrix: NDArray[np.float64]) -> list[bytes]:
    """Return each row of a matrix as bytes for the log: float64, little-endian.

    Examples
    --------
    >>> unpack(pack(np.array([[1.5, -0.0], [2.0, 3.0]])), 2).tolist()
    [[1.5, -0.0], [2.0, 3.0]]
    """
    content = np.ascontiguousarray(matrix, dtype="<f8").tobytes()
    size = 8 * matrix.shape[1]
    return [content[start : start + size] for start in range(0, len(content), size)]


def unpack(rows: Sequence[bytes], width: int) -> NDArray[np.float64]:
    """Return the matrix of rows packed by `pack`."""
    return np.frombuffer(b"".join(rows), dtype="<f8").reshape(len(rows), width).astype(np.float64)


def pack_rows(x: RowsOfX) -> list[bytes]:
    """Return each row of a request as bytes for the log."""
    return [pack_cells(cells) for cells in x] if isinstance(x, list) else pack(x)


def unpack_rows(rows: Sequence[bytes], columns: Columns) -> RowsOfX:
    """Return rows packed by `pack_rows`."""
    return [unpack_cells(row) for row in rows] if columns.table else unpack(rows, columns.width)

"""Rows of a table: cells by column name, each a number, a string, true, false or null.

The log stores such a row as canonical JSON. A row may lack columns and add new ones. The model accepts every row that
passes `read_cells`. Once the kinds of the columns are final, `check_cells` also rejects cells that do not fit the kind
of their column, since the model would treat them as missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from mlca.limits import LARGEST_VALUE
from mlca.serve.request_errors import bad_row, excerpt, is_unicode, kind_of, read_name
from mlca.tables.cells import is_missing
from mlca.tables.first_rows import TableRows
from mlca.tables.kinds import Boolean, Date, Numeric
from mlca.tables.layout import TableLayout
from mlca.tables.table_learner import MOST_CELLS

NamedCells: TypeAlias = dict[str, Any]

LONGEST_TEXT = 20_000
# Largest total number of characters in the strings and column names of a row.
LONGEST_ROW = 400_000

# What is wrong with an invalid cell, and the remedy, by the kind of its column; categories and texts accept any cell.
_FAULTS_AND_REMEDIES = {
    Numeric: ("not a number within bounds", "send a number"),
    Boolean: ("neither true nor false", "send true or false"),
    Date: ("not a date", "send a date such as 2026-01-31"),
}


def read_cells(x: Any, number: int) -> NamedCells:
    """Check and return the cells of a row; raise RequestError if one is invalid.

    Examples
    --------
    >>> read_cells({"temp": 3.1, "site": "A", "calm": None}, 0)
    {'temp': 3.1, 'site': 'A', 'calm': None}
    >>> read_cells({"temp": [3.1]}, 0)
    Traceback (most recent call last):
    mlca.serve.request_errors.RequestError: x['temp'] is a list; send a number, a string, true, false or null
    """
    if not isinstance(x, dict):
        remedy = "send an object with one value per column name, like the first row"
        raise bad_row(number, "x", f"x is {kind_of(x)}, but the rows of this log are objects", remedy)
    if not 0 < len(x) <= MOST_CELLS:
        raise bad_row(number, "x", f"x has {len(x):,} columns", f"send 1 to {MOST_CELLS:,}")
    length = 0
    for name, cell in x.items():
        read_name(name, number, "x", "use strings as column names")
        length += len(name)
        if type(cell) is str:
            _check_text(name, cell, number)
            length += len(cell)
        elif type(cell) in (int, float):
            if not abs(cell) <= LARGEST_VALUE:
                problem = f"{_field(name)} is beyond {LARGEST_VALUE:g}, where squares overflow"
                raise bad_row(number, _field(name), problem, "send finite numbers, and rescale larger ones")
        elif cell is not None and type(cell) is not bool:
            problem = f"{_field(name)} is {kind_of(cell)}"
            raise bad_row(number, _field(name), problem, "send a number, a string, true, false or null")
    if length > LONGEST_ROW:
        problem = f"the strings and column names of x have {length:,} characters"
        raise bad_row(number, "x", problem, f"send at most {LONGEST_ROW:,}")
    return x


def _check_text(name: str, cell: str, number: int) -> None:
    if len(cell) > LONGEST_TEXT:
        problem = f"{_field(name)} has {len(cell):,} characters"
        raise bad_row(number, _field(name), problem, f"send at most its first {LONGEST_TEXT:,} characters")
    if not is_unicode(cell):
        problem = f"{_field(name)} contains an unpaired surrogate"
        raise bad_row(number, _field(name), problem, "send valid Unicode text")


def _field(name: str) -> str:
    return f"x[{excerpt(name)!r}]"


def check_cells(rows: Sequence[NamedCells], layout: TableLayout) -> None:
    """Reject rows with cells that do not fit their columns, or with too many columns."""
    for column in layout.learned:
        fault_and_remedy = _FAULTS_AND_REMEDIES.get(type(column))
        if fault_and_remedy is None:
            continue
        faulty = column.encode([cells.get(column.name) for cells in rows]).faulty
        if faulty:
            fault, remedy = fault_and_remedy
            field = _field(column.name)
            problem = f"{field} is {fault}, but the kind of the column is {column.kind}"
            raise bad_row(faulty[0], field, problem, f"{remedy}, or null if it is missing")
    brought: set[str] = set()
    for number, cells in enumerate(rows):
        new = [name for name in layout.new_names(cells) if not is_missing(cells[name])]
        brought.update(new)
        if new and len(layout.names) + len(brought) > MOST_CELLS:
            problem = f"{len(layout.columns):,} columns are known, and the new {excerpt(new[-1])!r} is one too many"
            raise bad_row(number, _field(new[-1]), problem, f"send at most {MOST_CELLS:,} columns")


def cells_of_rows(rows: Sequence[NamedCells]) -> TableRows:
    """Return rows as columns; a cell that a row lacks becomes a missing value."""
    names = dict.fromkeys(name for row in rows for name in row)
    return TableRows({name: [row.get(name) for row in rows] for name in names}, len(rows))


def pack_cells(cells: NamedCells) -> bytes:
    """Return a row as canonical JSON for the log.

    Examples
    --------
    >>> pack_cells({"site": "A", "age": 3.0, "calm": None})
    b'{"age":3.0,"calm":null,"site":"A"}'
    """
    return json.dumps(cells, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def unpack_cells(packed: bytes) -> NamedCells:
    """Return the cells of a row packed by `pack_cells`."""
    cells: NamedCells = json.loads(packed)
    return cells

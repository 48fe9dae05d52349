"""Reading labels from strings: "sea,sun", or a list as pandas, NumPy or JSON writes it."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np

# NumPy prints an array with only spaces between its names or numbers.
_SPACED_NAMES = re.compile(r"""['"]\s+['"]""")
_SPACED_NUMBERS = re.compile(r"\[\s*-?\d++(?:\s++-?\d++)*+\s*\]")
_ENDS = {"[": "]", "(": ")", "{": "}"}
_EMPTY = ("set()", "frozenset()")


def labels_from(column: Iterable[Any], sep: str = ",") -> list[tuple[Hashable, ...]]:
    """Read the labels in a column of strings, for `fit` and `partial_fit`.

    Parameters
    ----------
    column : iterable
        Each cell holds names separated by `sep`, or a list that was converted to a string, as when pandas writes a CSV.
        A cell that is empty, None or NaN is a row without labels. A cell that is already a list is returned as a tuple.
    sep : str, default=","
        The separator between names.

    Returns
    -------
    list of tuples
        The label names of each row.

    Examples
    --------
    >>> from mlca import labels_from
    >>> labels_from(["sea, sun", "sun", "", None])
    [('sea', 'sun'), ('sun',), (), ()]
    >>> labels_from(["['sea', 'sun']", "[]"])
    [('sea', 'sun'), ()]
    """
    if isinstance(column, str | bytes):
        raise ValueError(
            f"column must hold one cell per row; got the string {column!r:.40}: for a single row write [text]"
        )
    if not sep:
        raise ValueError("sep is empty; set the separator between labels, such as ','")
    return [_names_of(cell, sep, row) for row, cell in enumerate(column)]


def _names_of(cell: Any, sep: str, row: int) -> tuple[Hashable, ...]:
    if is_missing_label(cell):
        return ()
    if isinstance(cell, str):
        names = list_in_text(cell)
        return tuple(filter(None, map(str.strip, cell.split(sep)))) if names is None else tuple(names)
    if isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        return tuple(cell)
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return (int(cell),)
    raise ValueError(
        f"row {row} of the column is {cell!r}, which is not a list of labels; write text such as 'sea{sep}sun'"
    )


def is_missing_label(value: Any) -> bool:
    """Return whether a value is missing: None, NaN of any kind, pandas' NA, or NaT."""
    if value is None or isinstance(value, float | np.floating):
        return value is None or bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def list_in_text(text: str) -> list[Any] | None:
    """Return the list that a string represents, or None if it does not represent a list.

    Examples
    --------
    >>> list_in_text('["sea", "sun"]'), list_in_text("['sea' 'sun']"), list_in_text("sea, sun")
    (['sea', 'sun'], ['sea', 'sun'], None)
    """
    text = text.strip()
    if text in _EMPTY:
        return []
    if _ENDS.get(text[:1]) != text[-1:]:
        return None
    for read in (json.loads, _python_list):
        try:
            names = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError, tokenize.TokenError):
            continue
        if isinstance(names, set):
            return sorted(names, key=repr)
        if isinstance(names, list | tuple):
            return list(names)
    return None


def _python_list(text: str) -> Any:
    """Parse a list as printed by Python, or an array as printed by NumPy."""
    if _SPACED_NUMBERS.fullmatch(text):
        return [int(word) for word in text[1:-1].split()]
    if _SPACED_NAMES.search(text):
        text = _with_commas(text)  # otherwise Python would concatenate adjacent strings
    return ast.literal_eval(text)


def _with_commas(text: str) -> str:
    pieces: list[str] = []
    before = tokenize.OP
    for token in tokenize.generate_tokens(io.StringIO(text.replace("\n", " ")).readline):
        if token.type == before == tokenize.STRING:
            pieces.append(",")
        pieces.append(token.string)
        before = token.type
    return " ".join(pieces)

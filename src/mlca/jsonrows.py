"""Conversion of rows with Python, NumPy or pandas values to JSON for the service."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def plain_row(row: Row, *, with_id: bool = True) -> dict[str, Any]:
    """Return a row as JSON; with `with_id`, a row without an ID gets a new one."""
    plain = dict(row)
    if plain.get("x") is None:
        raise ValueError(f'a row needs its features as "x", such as {{"x": {{"wind": 20.0}}}}; got {str(row)[:80]}')
    plain["x"] = plain_x(plain["x"])
    if "labels" in plain:
        plain["labels"] = plain_names(plain["labels"])
    if with_id:
        plain.setdefault("id", uuid.uuid4().hex)
    return plain


def plain_names(names: Any) -> Any:
    """Return labels or IDs as a list of strings; from a dict, the keys with true values.

    A single string, bytes or None is returned unchanged, so that the service rejects it: the letters of a string are
    not separate names. None and bytes among the names raise ValueError.

    Examples
    --------
    >>> plain_names({"sea": True, "sun": False}), plain_names(("sun", 7)), plain_names({"sun", "sea", "fog"})
    (['sea'], ['sun', '7'], ['fog', 'sea', 'sun'])
    >>> from enum import Enum
    >>> plain_names([Enum("Tag", {"SEA": "sea"}, type=str).SEA])
    ['sea']
    >>> plain_names(["sea", None])
    Traceback (most recent call last):
    ValueError: None among ['sea', None] is not a valid name: leave it out, or write text or a whole number
    """
    if names is None or isinstance(names, str | bytes):
        return names
    if isinstance(names, Mapping):
        return [_plain_name(name, names) for name, value in names.items() if _is_true(value, name)]
    plain = [_plain_name(name, names) for name in names]
    # The order of a set differs between processes, but new labels become columns in order of arrival.
    return sorted(plain) if isinstance(names, set | frozenset) else plain


def _plain_name(name: Any, names: Any) -> str:
    value = _plain_number(name)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"{name!r} among {names!r} is not a valid name: leave it out, or write text or a whole number")
    # `str` of an enumeration member returns the member's name, not the label.
    return str.__str__(value) if isinstance(value, str) else int.__repr__(value)


def _is_true(value: Any, name: Any) -> bool:
    flag = _plain_number(value)
    if not isinstance(flag, bool):
        raise ValueError(
            f"the label {name!r} is mapped to {value!r}; a dict must map labels to True or False: "
            "list the names alone, or write True where the row has the label"
        )
    return flag


def plain_x(x: Any) -> Any:
    """Return a row's features as JSON: a list of numbers, or a dict of values by column."""
    if hasattr(x, "to_dict"):
        x = x.to_dict()
    if hasattr(x, "tolist"):
        return x.tolist()
    if isinstance(x, Mapping):
        return {str(name): _plain_cell(value) for name, value in x.items()}
    return [_plain_number(value) for value in x]


def _plain_number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _plain_cell(value: Any) -> Any:
    """Return a cell as JSON: dates as strings, and None for all missing values."""
    value = _plain_number(value)
    if not isinstance(value, str) and str(value) in ("None", "nan", "NaT", "<NA>"):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value

"""Texts of a request: which will do as a name, and how a faulty one is spoken of without showing what a row holds."""

from __future__ import annotations

from typing import Any

from mlca.serve.refusals import bad_row

LONGEST_NAME = 200


def read_name(value: Any, number: int | None, field: str, remedy: str) -> str:
    """Check an id, a label or the name of a column."""
    if not isinstance(value, str):
        raise bad_row(number, field, f"{field} is {kind_of(value)}, not a string", remedy)
    if not 0 < len(value) <= LONGEST_NAME:
        raise bad_row(number, field, f"{field} has {len(value)} characters", f"use 1 to {LONGEST_NAME}")
    if "\0" in value or not is_unicode(value):
        raise bad_row(number, field, f"{field} holds NUL or half of a surrogate pair", "send proper Unicode text")
    return value


def is_unicode(value: str) -> bool:
    """Whether a text can be written down: JSON may hold halves of surrogate pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def kind_of(value: Any) -> str:
    """Name a kind of JSON."""
    kinds = {str: "a string", bool: "a boolean", dict: "an object", list: "a list", type(None): "null"}
    return kinds.get(type(value), "a number")


def excerpt(name: Any) -> str:
    """Return the beginning of a name, which may be anything, as it can stand in an answer."""
    return str(name)[:40].encode(errors="replace").decode()

"""Errors of a request: what is wrong, where, and what to do about it; and checks of the names that a request has.

Messages quote names only in part, and never the values of a row.
"""

from __future__ import annotations

from typing import Any

LONGEST_NAME = 200


class RequestError(Exception):
    """A request that is refused; nothing of it has happened.

    Parameters
    ----------
    status : int
        The status of the HTTP answer.
    problem, remedy : str
        What was found, and what the caller can do.
    row : int, optional
        The number of the row in the request, from 0.
    field : str, optional
        The field, in the request's own words.
    retry_after : int, optional
        Seconds after which the same request may succeed.
    """

    def __init__(
        self,
        status: int,
        problem: str,
        remedy: str,
        *,
        row: int | None = None,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.status, self.problem, self.remedy = status, problem, remedy
        self.row, self.field, self.retry_after = row, field, retry_after

    def to_json(self) -> dict[str, Any]:
        """Return what the caller is told."""
        return {"problem": self.problem, "remedy": self.remedy, "row": self.row, "field": self.field}


def bad_row(row: int | None, field: str, problem: str, remedy: str) -> RequestError:
    """Refuse a request for a fault of one row."""
    return RequestError(422, problem, remedy, row=row, field=field)


def unavailable(problem: str, remedy: str = "send the request again", retry_after: int = 1) -> RequestError:
    """Refuse a request that may succeed later as it is."""
    return RequestError(503, problem, remedy, retry_after=retry_after)


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

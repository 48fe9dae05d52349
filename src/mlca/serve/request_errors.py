"""Request errors with problem, row, field and remedy, and checks of names.

Messages quote at most the beginning of a name, and never the values of a row.
"""

from __future__ import annotations

from typing import Any

LONGEST_NAME = 200


class RequestError(Exception):
    """The error that rejects a request, or reports that its outcome is unknown.

    Parameters
    ----------
    status : int
        The status code of the HTTP response.
    problem, remedy : str
        What is wrong, and how to correct it.
    row : int, optional
        The index of the row in the request, from 0.
    field : str, optional
        The name of the field in the request.
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
        """Return the content of the error response."""
        return {"problem": self.problem, "remedy": self.remedy, "row": self.row, "field": self.field}


def bad_row(row: int | None, field: str, problem: str, remedy: str) -> RequestError:
    """Return the error for a request with an invalid row."""
    return RequestError(422, problem, remedy, row=row, field=field)


def unavailable(problem: str, remedy: str = "send the request again", retry_after: int = 1) -> RequestError:
    """Return the error for a request that may succeed if it is sent again later."""
    return RequestError(503, problem, remedy, retry_after=retry_after)


def read_name(value: Any, number: int | None, field: str, remedy: str) -> str:
    """Check and return an ID, a label or a column name; raise RequestError if it is invalid."""
    if not isinstance(value, str):
        raise bad_row(number, field, f"{field} is {kind_of(value)}, not a string", remedy)
    if not 0 < len(value) <= LONGEST_NAME:
        raise bad_row(number, field, f"{field} has {len(value)} characters", f"use 1 to {LONGEST_NAME} characters")
    if "\0" in value or not is_unicode(value):
        raise bad_row(number, field, f"{field} contains NUL or an unpaired surrogate", "send valid Unicode text")
    return value


def is_unicode(value: str) -> bool:
    """Return whether a string is valid Unicode; JSON may contain unpaired surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def kind_of(value: Any) -> str:
    """Return the JSON type of a value in words."""
    kinds = {str: "a string", bool: "a boolean", dict: "an object", list: "a list", type(None): "null"}
    return kinds.get(type(value), "a number")


def excerpt(text: Any, most: int = 40) -> str:
    """Return the first characters of a value, for quoting it in an error message."""
    return str(text)[:most].encode(errors="replace").decode()

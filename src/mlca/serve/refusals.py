"""How the service says no: what is wrong, where, and what to do about it."""

from __future__ import annotations

from typing import Any


class RefusalError(Exception):
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


def bad_row(row: int | None, field: str, problem: str, remedy: str) -> RefusalError:
    """Refuse a request for a fault of one row."""
    return RefusalError(422, problem, remedy, row=row, field=field)


def unavailable(problem: str, remedy: str = "send the request again", retry_after: int = 1) -> RefusalError:
    """Refuse a request that may succeed later as it is."""
    return RefusalError(503, problem, remedy, retry_after=retry_after)

"""Arrangements: datasets with reordered rows or rotated labels, to study order and drift.

- ``sorted``: the rows are ordered by label set, so that label sets appear one after another.
- ``sudden``, ``gradual``, ``recurrent``: concept drift as in `mlca.datasets.rotate_labels`: permanent from the middle
  on, gradual around the middle, or for the middle third of the rows.
- ``new part``: only the rows after the middle, with the new concept, for a model that has not seen the first half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.datasets import rotate_labels

ROTATIONS = ("sudden", "gradual", "recurrent")
JUDGED_ROWS = 1000  # rows measured after a change
RETURN_ROWS = 200  # the first rows after an old concept returns, which are also measured separately


@dataclass(frozen=True)
class Arranged:
    """Arranged rows, and the ranges of rows that are measured separately.

    Attributes
    ----------
    X, Y : rows and their labels
        The rows and labels in their new order.
    parts : dict of str to slice
        The ranges of rows that are measured separately, by name.
    changes : tuple of int
        The indices of the rows at which the concept changes.
    """

    X: Any
    Y: NDArray[np.uint8]
    parts: dict[str, slice]
    changes: tuple[int, ...] = ()


def arrange(X: Any, Y: NDArray[np.uint8], arrangement: str, seed: int = 0) -> Arranged:
    """Return the rows as `arrangement` reorders or relabels them; "" changes nothing.

    Examples
    --------
    >>> X, Y = np.arange(6)[:, None], np.eye(3, dtype=np.uint8)[[0, 1, 2, 0, 1, 2]]
    >>> arrange(X, Y, "sorted").X.ravel().tolist()
    [2, 5, 1, 4, 0, 3]
    >>> sudden = arrange(X, Y, "sudden")
    >>> sudden.Y.argmax(axis=1).tolist(), sudden.parts
    ([0, 1, 2, 1, 2, 0], {'after': slice(3, 1003, None)})
    """
    half = len(Y) // 2
    if arrangement == "":
        return Arranged(X, Y, after_change(len(Y), "none"))
    if arrangement == "sorted":
        order = np.lexsort(Y.T[::-1])
        return Arranged(X[order], Y[order], {})
    if arrangement in ROTATIONS:
        rotated = rotate_labels(Y, arrangement, random_state=seed)  # type: ignore[arg-type]
        return Arranged(X, rotated, after_change(len(Y), arrangement), changes_of(len(Y), arrangement))
    if arrangement == "new part":
        return Arranged(X[half:], np.roll(Y[half:], 1, axis=1), {"after": slice(0, JUDGED_ROWS)})
    raise ValueError(
        f"unknown arrangement {arrangement!r}; expected '', 'sorted', 'sudden', 'gradual', 'recurrent' or 'new part'"
    )


def changes_of(n_rows: int, change: str) -> tuple[int, ...]:
    """Return the row indices where the concept changes; for a gradual change, its middle."""
    return {"sudden": (n_rows // 2,), "gradual": (n_rows // 2,), "recurrent": (n_rows // 3, 2 * n_rows // 3)}.get(
        change, ()
    )


def after_change(n_rows: int, change: str) -> dict[str, slice]:
    """Return the row ranges to measure: after the last change, or else after the middle."""
    last = changes_of(n_rows, change)[-1] if changes_of(n_rows, change) else n_rows // 2
    parts = {"after": slice(last, last + JUDGED_ROWS)}
    return parts | ({"first": slice(last, last + RETURN_ROWS)} if change == "recurrent" else {})

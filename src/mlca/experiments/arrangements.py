"""Arrangements: what is done to rows before they are learned, to see what order and change cost.

- ``sorted``: the rows come label set by label set, as a stream that shows one thing after another.
- ``rotated``: from the middle on, every label means the next one: column j is called j + 1.
- ``gradual``: the same, but over the middle fifth of the rows the new meaning comes ever more often.
- ``returned``: the middle third of the rows has the new meaning, the last third the old one again.
- ``new part``: only the rows after the middle, with the new meaning; what a model could know that saw no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

JUDGED_ROWS = 1000  # after a change
FIRST_ROWS = 200  # of them, where an old meaning returns


@dataclass(frozen=True)
class Arranged:
    """Rows as they are learned.

    Attributes
    ----------
    X, Y : rows and their labels
        In the order in which they come.
    parts : mapping of str to slice
        Rows that are judged apart: those after a change.
    changes : tuple of int
        The rows where something changes.
    """

    X: Any
    Y: NDArray[np.uint8]
    parts: dict[str, slice]
    changes: tuple[int, ...] = ()


def arrange(X: Any, Y: NDArray[np.uint8], arrangement: str, seed: int = 0) -> Arranged:
    """Return rows as an arrangement has them.

    Examples
    --------
    >>> X, Y = np.arange(6)[:, None], np.eye(3, dtype=np.uint8)[[0, 1, 2, 0, 1, 2]]
    >>> arrange(X, Y, "sorted").X.ravel().tolist()
    [2, 5, 1, 4, 0, 3]
    >>> rotated = arrange(X, Y, "rotated")
    >>> rotated.Y.argmax(axis=1).tolist(), rotated.parts
    ([0, 1, 2, 1, 2, 0], {'after': slice(3, 6, None)})
    """
    n_rows, half, third = len(Y), len(Y) // 2, len(Y) // 3
    new = np.roll(Y, 1, axis=1)
    place = np.arange(n_rows)
    after = slice(half, min(half + JUDGED_ROWS, n_rows))
    if arrangement == "":
        return Arranged(X, Y, {"after": after})
    if arrangement == "sorted":
        order = np.lexsort(Y.T[::-1])
        return Arranged(X[order], Y[order], {})
    if arrangement == "rotated":
        return Arranged(X, np.where(place[:, None] >= half, new, Y), {"after": after}, (half,))
    if arrangement == "gradual":
        begins, ends = half - n_rows // 10, half + n_rows // 10
        chance = np.clip((place - begins) / max(ends - begins, 1), 0, 1)
        is_new = np.random.default_rng(seed).random(n_rows) < chance
        judged = slice(half, min(half + JUDGED_ROWS, n_rows))
        return Arranged(X, np.where(is_new[:, None], new, Y), {"after": judged}, (begins, ends))
    if arrangement == "returned":
        is_new = (place >= third) & (place < 2 * third)
        last = slice(2 * third, min(2 * third + JUDGED_ROWS, n_rows))
        first = slice(2 * third, min(2 * third + FIRST_ROWS, n_rows))
        parts = {"after": last, "first": first}
        return Arranged(X, np.where(is_new[:, None], new, Y), parts, (third, 2 * third))
    if arrangement == "new part":
        return Arranged(X[half:], new[half:], {"after": slice(0, min(JUDGED_ROWS, n_rows - half))})
    raise ValueError(f"no arrangement is called {arrangement!r}")

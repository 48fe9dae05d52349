"""The window: the latest instances, from which bandwidths are estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.learner.kernels.learn import window_bounds

# Rows are taken in by portions that stay in the cache.
PORTION_BYTES = 2**20


class Window:
    """A dense buffer of the stream's latest instances, in order.

    Of the `filled` rows in it, those up to `learned` are part of the model; the `size - 1` before
    the first that is not are always there. While fewer than `size` instances have come, none is learned:
    the first `size` instances share one window.

    Attributes
    ----------
    size : int
        The number of instances that a bandwidth is estimated from.
    rows : ndarray
        The buffer.
    """

    def __init__(self, size: int, n_features: int) -> None:
        self.size = size
        portion = max(16, min(1024, PORTION_BYTES // (8 * n_features)))
        self.rows: NDArray[np.float64] = np.empty((2 * size + portion, n_features))
        self.filled = 0
        self.learned = 0

    def take(self, rows: Any, start: int) -> int:
        """Take in as many rows from `start` on as there is room for, and return how many that was."""
        if self.filled == len(self.rows):
            self._slide()
        n = min(int(rows.shape[0]) - start, len(self.rows) - self.filled)
        portion = rows[start : start + n]
        target = self.rows[self.filled : self.filled + n]
        target[:] = portion.toarray() if sparse.issparse(portion) else portion
        self.filled += n
        return n

    def latest(self) -> NDArray[np.float64]:
        """Return the rows that are still needed: waiting ones, or the last `size`."""
        return self.rows[max(0, self.learned - self.size) : self.filled]

    def around(self, position: int) -> NDArray[np.float64]:
        """Return the window of the instance at a position (see kernels.learn.window_bounds)."""
        low, high = window_bounds(position, self.filled, self.size)
        return self.rows[low:high]

    def _slide(self) -> None:
        """Forget rows that no window will ask for again."""
        kept = self.latest().copy()
        dropped = self.filled - len(kept)
        self.rows[: len(kept)] = kept
        self.filled -= dropped
        self.learned -= dropped

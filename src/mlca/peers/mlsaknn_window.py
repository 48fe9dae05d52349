"""The window of MLSA-kNN: stored rows, the labels they may vote on, and their removal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlca.kernels import native


class Window:
    """The latest rows of the stream, oldest first, with labels, masks, errors and distances.

    Rows never move in storage. `slots` gives the storage row of each position, so removing a row takes O(m_max) time.
    `mask_slots` does the same for the masks, which select the labels that a row may vote on. With `shared_masks`, masks
    become shared when positions move up, as in the authors' program: a new row also resets the previous row's mask.
    """

    def __init__(self, capacity: int, n_features: int, shared_masks: bool) -> None:
        self.size = 0
        self.slots = np.arange(capacity)
        self.mask_slots = np.arange(capacity)
        self.rows = np.zeros((capacity, n_features))
        self.indicator = np.zeros((capacity, 0), dtype=np.uint8)
        self.masks = np.ones((capacity, 0), dtype=np.uint8)
        self.errors = np.zeros(capacity, dtype=np.int64)
        self.distances = np.zeros((capacity, capacity))
        self.shared_masks = shared_masks

    @property
    def is_full(self) -> bool:
        """Whether the window has reached its capacity."""
        return self.size == len(self.slots)

    @property
    def errors_by_position(self) -> NDArray[np.int64]:
        """The number of wrong votes of the row at each position."""
        return self.errors[self.slots[: self.size]]

    def widen(self, n_new: int) -> None:
        """Add new labels, absent in all stored rows; every row may vote on them."""
        self.indicator = np.pad(self.indicator, ((0, 0), (0, n_new)))
        self.masks = np.pad(self.masks, ((0, 0), (0, n_new)), constant_values=1)

    def distances_to(
        self, x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distance of x to each row, on features scaled by their ranges."""
        return native.scaled_distances(x, self.rows, self.slots[: self.size], low, high)

    def append(
        self,
        x: NDArray[np.float64],
        truth: NDArray[np.uint8],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> None:
        """Add the latest row."""
        slot = self.slots[self.size]
        self.rows[slot] = x
        self.indicator[slot] = truth
        self.errors[slot] = 0
        self.masks[self.mask_slots[self.size]] = 1
        self.distances[slot, self.slots[: self.size]] = self.distances_to(x, low, high)
        self.size += 1

    def drop_oldest(self, count: int) -> None:
        """Remove the `count` oldest rows."""
        self._move_up(0, count)

    def remove(self, position: int) -> None:
        """Remove one row."""
        if self.shared_masks:
            # The authors' program moves only the distances between later rows. Those from later to earlier rows stay
            # in place, so they belong to the wrong row.
            earlier, later = self.slots[:position], self.slots[position : self.size]
            self.distances[np.ix_(later[1:], earlier)] = self.distances[np.ix_(later[:-1], earlier)]
        self._move_up(position, 1)

    def _move_up(self, start: int, count: int) -> None:
        """Remove `count` positions, beginning at `start`, by moving the later rows up."""
        used = slice(start, self.size)
        self.slots[used] = np.roll(self.slots[used], -count)
        if self.shared_masks:
            self.mask_slots[start : self.size - count] = self.mask_slots[start + count : self.size]
        else:
            self.mask_slots[used] = np.roll(self.mask_slots[used], -count)
        self.size -= count

    def votes(self, by_distance: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each label's share of its k nearest voters; 0 if it has fewer than k voters."""
        masks = np.require(self.masks, requirements="W")  # joblib passes read-only arrays to its workers
        return native.count_votes(by_distance, k, self.slots, self.mask_slots, self.indicator, masks)

    def judge_voters(
        self, by_distance: NDArray[np.int64], k: NDArray[np.int64], truth: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Update masks and errors with the true labels; return the votes and which k were right.

        Rows are visited until there are enough voters for the largest k. Until the label's own k is reached, a voter
        that was wrong loses its vote, and a row that would have been right regains it.
        """
        return native.judge_voters(
            by_distance, k, truth, self.errors, self.slots, self.mask_slots, self.indicator, self.masks
        )

    def test_rows(self, start: int, first: int, k: NDArray[np.int64], from_scratch: bool) -> NDArray[np.int64]:
        """Return the number of correctly predicted labels of each row from `first` on.

        Each row is predicted by the earlier rows from `start` on. With `from_scratch`, a row with fewer than k earlier
        rows is predicted by all of them. If too few rows may vote, the oldest row votes instead, as in the authors'
        program.
        """
        return native.test_rows(
            start,
            first,
            self.size,
            k,
            from_scratch,
            self.distances,
            self.slots,
            self.mask_slots,
            self.indicator,
            self.masks,
        )

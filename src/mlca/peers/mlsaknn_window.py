"""The window of MLSA-kNN: rows that vote, may lose their vote, and leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled


class Window:
    """The latest rows of the stream with all that belongs to them, addressed by position, oldest first.

    Rows never move. `slots` gives the storage row of each position, so that rows leave in O(m_max).
    `mask_slots` does the same for the masks, which say on which labels a row may vote. With
    `shared_masks` a mask is not taken along when positions move up but shared, as in the authors'
    program: the next row to come resets the mask of the row before it, too.
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
        """Whether there is no room for another row."""
        return self.size == len(self.slots)

    @property
    def errors_by_position(self) -> NDArray[np.int64]:
        """How often each row misled."""
        return self.errors[self.slots[: self.size]]

    def widen(self, n_new: int) -> None:
        """Make room for new labels, which no row so far has and on which every row may vote."""
        self.indicator = np.pad(self.indicator, ((0, 0), (0, n_new)))
        self.masks = np.pad(self.masks, ((0, 0), (0, n_new)), constant_values=1)

    def distances_to(
        self, x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distance of x to each row, on features scaled by their ranges."""
        return _scaled_distances(x, self.rows, self.slots[: self.size], low, high)

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
        """Let the oldest rows go."""
        self._move_up(0, count)

    def remove(self, position: int) -> None:
        """Let one row go."""
        if self.shared_masks:
            # The authors' program moves distances between later rows only: those from later to earlier
            # rows stay where they were, and so belong to the row after theirs.
            earlier, later = self.slots[:position], self.slots[position : self.size]
            self.distances[np.ix_(later[1:], earlier)] = self.distances[np.ix_(later[:-1], earlier)]
        self._move_up(position, 1)

    def _move_up(self, start: int, count: int) -> None:
        """Let the rows after `count` positions from `start` on take their place."""
        used = slice(start, self.size)
        self.slots[used] = np.roll(self.slots[used], -count)
        if self.shared_masks:
            self.mask_slots[start : self.size - count] = self.mask_slots[start + count : self.size]
        else:
            self.mask_slots[used] = np.roll(self.mask_slots[used], -count)
        self.size -= count

    def votes(self, by_distance: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of each label among its k nearest voters; 0 where there are not that many."""
        return _votes(by_distance, k, self.slots, self.mask_slots, self.indicator, self.masks)

    def judge_voters(
        self, by_distance: NDArray[np.int64], k: NDArray[np.int64], truth: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Update masks and errors by the true labels; return the votes, and which k was right on which label.

        Visits rows until the largest k has its voters, but changes only what it meets before the label's
        own k has: a voter that was wrong loses its vote, a row that would have been right regains it.
        """
        return _judge_voters(
            by_distance, k, truth, self.errors, self.slots, self.mask_slots, self.indicator, self.masks
        )

    def test_rows(self, start: int, first: int, k: NDArray[np.int64], anew: bool) -> NDArray[np.int64]:
        """Predict each row from `first` on by the rows from `start` up to it; count its right labels.

        A window tested anew asks fewer neighbours than k while it has fewer rows. Where too few rows may
        vote, the oldest row of all votes in their place, as in the authors' program.
        """
        return _test_rows(
            start,
            first,
            self.size,
            k,
            anew,
            self.distances,
            self.slots,
            self.mask_slots,
            self.indicator,
            self.masks,
        )


@compiled
def _scaled_distances(
    x: NDArray[np.float64],
    rows: NDArray[np.float64],
    slots: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    distances = np.empty(len(slots))
    for position in range(len(slots)):
        row = rows[slots[position]]
        total = 0.0
        for column in range(len(x)):
            span = high[column] - low[column]
            if span > 0:
                difference = (x[column] - low[column]) / span - (row[column] - low[column]) / span
                total += difference * difference
        distances[position] = np.sqrt(total)
    return distances


@compiled
def _votes(
    by_distance: NDArray[np.int64],
    k: NDArray[np.int64],
    slots: NDArray[np.int64],
    mask_slots: NDArray[np.int64],
    indicator: NDArray[np.uint8],
    masks: NDArray[np.uint8],
) -> NDArray[np.float64]:
    votes = np.zeros(len(k))
    for label in range(len(k)):
        n_voters = n_ones = 0
        for position in by_distance:
            if masks[mask_slots[position], label]:
                n_voters += 1
                n_ones += indicator[slots[position], label]
                if n_voters == k[label]:
                    votes[label] = n_ones / n_voters
                    break
    return votes


@compiled
def _judge_voters(
    by_distance: NDArray[np.int64],
    k: NDArray[np.int64],
    truth: NDArray[np.uint8],
    errors: NDArray[np.int64],
    slots: NDArray[np.int64],
    mask_slots: NDArray[np.int64],
    indicator: NDArray[np.uint8],
    masks: NDArray[np.uint8],
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    votes = np.zeros(len(k))
    was_right = np.empty((len(k), 4), dtype=np.uint8)
    for label in range(len(k)):
        n_voters = n_ones = 0
        deciding = True
        for position in by_distance:
            says = indicator[slots[position], label]
            if not masks[mask_slots[position], label]:
                if deciding and says == truth[label]:
                    masks[mask_slots[position], label] = 1
                continue
            n_voters += 1
            n_ones += says
            if deciding and says != truth[label]:
                masks[mask_slots[position], label] = 0
                errors[slots[position]] += 1
            if n_voters % 2 == 1:
                was_right[label, n_voters // 2] = (2 * n_ones >= n_voters) == truth[label]
                if n_voters == k[label]:
                    votes[label] = n_ones / n_voters
                    deciding = False
                if n_voters == 7:
                    break
        # With too few voters a label is taken to be absent.
        was_right[label, (n_voters + 1) // 2 :] = truth[label] == 0
    return votes, was_right


@compiled
def _test_rows(
    start: int,
    first: int,
    size: int,
    k: NDArray[np.int64],
    anew: bool,
    distances: NDArray[np.float64],
    slots: NDArray[np.int64],
    mask_slots: NDArray[np.int64],
    indicator: NDArray[np.uint8],
    masks: NDArray[np.uint8],
) -> NDArray[np.int64]:
    n_right = np.zeros(max(0, size - first), dtype=np.int64)
    nearest = np.empty(7, dtype=np.int64)
    for position in range(first, size):
        to = distances[slots[position]]
        for label in range(len(k)):
            n_wanted = min(k[label], position - start) if anew else k[label]
            nearest[:] = 0
            n_found = 0
            for other in range(start, position):
                if not masks[mask_slots[other], label]:
                    continue
                distance = to[slots[other]]
                if n_found == n_wanted:
                    if n_wanted == 0 or not distance < to[slots[nearest[n_found - 1]]]:
                        continue
                else:
                    n_found += 1
                at = n_found - 1
                while at > 0 and distance < to[slots[nearest[at - 1]]]:
                    nearest[at] = nearest[at - 1]
                    at -= 1
                nearest[at] = other
            n_ones = 0
            for at in range(n_wanted):
                n_ones += indicator[slots[nearest[at]], label]
            predicted = n_wanted > 0 and 2 * n_ones >= n_wanted
            n_right[position - first] += predicted == indicator[slots[position], label]
    return n_right

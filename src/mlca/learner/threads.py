"""Learning with several threads: when to look ahead, and how far."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mlca.learner.growing import with_room
from mlca.learner.kernels.foresee import Block, assume_nodes, commit, foresee_bandwidths, foresee_neighbours
from mlca.learner.kernels.groups import Groups
from mlca.learner.kernels.learn import Model, Settings, learn
from mlca.learner.kernels.sparse import SparseNodes
from mlca.learner.kernels.votes import NODES
from mlca.learner.window import Window

# Attribute pairs a block must hold before threads pay for meeting once.
WORTHWHILE = 400_000
SHORTEST_BLOCK, LONGEST_BLOCK = 4, 256
BITS_A_PAIR = 512
# Rows that must come together before a team is gathered.
FEWEST_ROWS = 64
# After instances that joined nodes, this many are learned one by one before looking ahead again.
PAUSE = 32


class Team:
    """Threads that work on parts of a task together; a context that lets them go in the end.

    Parameters
    ----------
    size : int
        The number of threads, the caller's own included.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size - 1) if size > 1 else None

    def run(self, task: Callable[[int, int], None]) -> None:
        """Call `task(part, n_parts)` for every part, one thread each, and wait for all of them."""
        if self._pool is None:
            task(0, 1)
            return
        others = [self._pool.submit(task, part, self.size) for part in range(1, self.size)]
        task(0, self.size)
        for other in others:
            other.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class Foresight:
    """Learns portions of a stream by looking ahead in blocks, as far as that has been right so far."""

    def __init__(self, team: Team, settings: Settings) -> None:
        self.team = team
        self.settings = settings
        self.length = 4 * SHORTEST_BLOCK

    def learn(
        self,
        window: Window,
        stop: int,
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        model: Model,
        groups: Groups,
    ) -> tuple[int, Model]:
        """Learn rows of the window up to `stop`, or until arrays are full; return how many, and the model."""
        first, position = window.learned, window.learned
        bandwidths = None
        while position < stop:
            own = indptr[position - first :]
            n_rows = min(self.length, stop - position)
            n_nodes = int(model.tally[NODES])
            if n_nodes == 0 or n_rows < SHORTEST_BLOCK or _pairs(n_rows, model) < WORTHWHILE:
                wanted = min(PAUSE, stop - position)
                learned = learn(
                    window.rows,
                    position,
                    position + wanted,
                    window.filled,
                    own,
                    labels,
                    model,
                    groups,
                    self.settings,
                )
                rightly = int(model.tally[NODES]) == n_nodes + learned
                self.length = min(2 * self.length, LONGEST_BLOCK) if rightly else 2 * SHORTEST_BLOCK
                full = learned < wanted
            else:
                if bandwidths is None:
                    bandwidths = self._bandwidths(window, position, stop, model)
                model = with_room(model, window.rows.shape[1], int(own[n_rows] - own[0]), n_rows)
                ahead = bandwidths[position - stop :][:n_rows]
                learned, joined = self._learn_block(window, position, ahead, own, labels, model, groups)
                self.length = max(learned, self.length // 2) if joined else min(2 * self.length, LONGEST_BLOCK)
                full = learned < n_rows and not joined
            position += learned
            if full:
                break
        return position - first, model

    def _bandwidths(self, window: Window, first: int, stop: int, model: Model) -> NDArray[np.float64]:
        bandwidths = np.empty((stop - first, model.bandwidths.shape[1]))
        self.team.run(
            lambda part, n_parts: foresee_bandwidths(
                window.rows, first, window.filled, self.settings, bandwidths, part, n_parts
            )
        )
        return bandwidths

    def _learn_block(
        self,
        window: Window,
        first: int,
        bandwidths: NDArray[np.float64],
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        model: Model,
        groups: Groups,
    ) -> tuple[int, bool]:
        n_rows, n_neighbors = len(bandwidths), self.settings.n_neighbors
        block = Block(
            sums_before=np.empty_like(bandwidths),
            thresholds=np.empty(n_rows, np.int64),
            joined=np.array([n_rows]),
            n_nodes=np.empty(n_rows, np.int64),
            r=np.empty(n_rows),
            found=np.empty((n_rows, n_neighbors), np.int64),
            sums=np.empty((n_rows, n_neighbors), np.int64),
            lengths=np.empty(n_rows, np.int64),
        )
        n_rows = assume_nodes(window.rows, first, bandwidths, model, self.settings, block)
        self.team.run(
            lambda part, n_parts: foresee_neighbours(
                window.rows, first, n_rows, model, groups, self.settings, block, part, n_parts
            )
        )
        return commit(window.rows, first, n_rows, bandwidths, indptr, labels, model, self.settings, block)


def _pairs(n_rows: int, model: Model) -> int:
    """Return about how many pairs of attributes a block of rows has to compare."""
    n_nodes = int(model.tally[NODES])
    if not isinstance(model.nodes, SparseNodes):
        return n_rows * n_nodes * int(model.nodes.weights.shape[1])
    # Where overlaps are counted by bits, other steps take as long as the search: two threads gain nothing on Bibtex.
    lengths, listed = model.nodes.weights.length[:n_nodes], model.nodes.listed[:n_nodes]
    return n_rows * int(lengths[~listed].sum() + lengths[listed].sum() // BITS_A_PAIR)

"""Learning with several threads: look ahead, then check.

At a small vigilance nearly every instance becomes a node. So a block of instances is compared with the nodes at
once, by all threads, on the assumption that each becomes one: the block's instances are put behind the nodes, and
instance j is compared with all nodes and the j before it, under exactly the bandwidths that it will meet if
the assumption holds (bandwidths come from the window and do not depend on what is learned). Then the block
is committed in order. The first instance that joins a node instead ends the block: it was
compared with the right model, those behind it were not, and they are done anew.

The result is the model of `learn` bit for bit: the same functions see the same numbers. What is gained is that threads
meet once a block instead of once an instance: 1.7 times one thread on two cores (Scene, Yeast). What is lost is the
work behind an instance that joins. So threads take a few rows each in turn and tell each other where to stop: on
Scene, where 9 rows of 2,407 join a node, each thread doing half of a block wasted a fifth of all work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.binary_window import no_ones
from mlca.learner.kernels.groups import Grouping, Groups, empty_grouping
from mlca.learner.kernels.learn import (
    Model,
    Settings,
    ask,
    become_node,
    has_label_space,
    join_winner,
    most_movers,
    vigilance_threshold,
    window_bandwidths,
)
from mlca.learner.kernels.nearest import TOGETHER, Search
from mlca.learner.kernels.stores import CLUSTERED, create, forget, nearest, shortage
from mlca.learner.kernels.votes import NODES, empty_votes


class Block(NamedTuple):
    """What is foreseen of a block of instances, one row each.

    `sums_before` are the model's bandwidth sums when the instance's turn comes, `thresholds` the right sides of the
    vigilance tests, `joined[0]` an instance that joins a node, if one was seen; the others are those of a `Search`.
    """

    sums_before: NDArray[np.float64]
    thresholds: NDArray[np.int64]
    joined: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    r: NDArray[np.float64]
    found: NDArray[np.int64]
    sums: NDArray[np.int64]
    lengths: NDArray[np.int64]


@compiled
def foresee_bandwidths(
    recent: np.ndarray, first: int, filled: int, settings: Settings, out: np.ndarray, part: int, n_parts: int
) -> None:
    """Fill in the bandwidths of one part of the instances from `first` on."""
    n_rows = out.shape[0]
    ones = no_ones(recent.shape[1], min(settings.window, filled))
    for j in range(n_rows * part // n_parts, n_rows * (part + 1) // n_parts):
        out[j] = window_bandwidths(recent, first + j, filled, settings.window, settings.mode, ones)


@compiled
def assume_nodes(
    recent: np.ndarray, first: int, bandwidths: np.ndarray, model: Model, settings: Settings, block: Block
) -> int:
    """Put the block's instances behind the nodes, as if each had become one; return how many there was room for."""
    n_nodes, n_rows = model.tally[NODES], bandwidths.shape[0]
    block.sums_before[0] = model.bandwidth_sums
    for j in range(n_rows):
        if shortage(model.nodes, n_nodes + j, recent[first + j], most_movers(settings)):
            return j
        create(model.nodes, n_nodes + j, recent[first + j], bandwidths[j])
        if j + 1 < n_rows:
            block.sums_before[j + 1] = block.sums_before[j] + bandwidths[j]
    return n_rows


@compiled
def foresee_neighbours(
    recent: np.ndarray,
    first: int,
    n_rows: int,
    model: Model,
    groups: Groups,
    settings: Settings,
    block: Block,
    part: int,
    n_parts: int,
) -> None:
    """List the neighbours of one part of the block, as far as it may come true.

    Threads take a few rows each in turn, and stop where any of them has seen a row that joins a node. They read
    and write `joined` as they like: whichever of their rows it holds, those behind it will not be asked for.
    """
    grouping = empty_grouping(recent.shape[1])
    for low in range(part * TOGETHER, n_rows, n_parts * TOGETHER):
        if low > block.joined[0]:
            return
        high = min(low + TOGETHER, n_rows)
        _search(recent, first, low, high, model, groups, settings, block, grouping)
        for j in range(low, high):
            if block.sums[j, 0] <= block.thresholds[j]:
                block.joined[0] = min(j, block.joined[0])
                return


@compiled
def _search(
    recent: np.ndarray,
    first: int,
    low: int,
    high: int,
    model: Model,
    groups: Groups,
    settings: Settings,
    block: Block,
    grouping: Grouping,
) -> None:
    """List the neighbours of the block's rows from `low` to `high`, together where the mode allows it."""
    step = 1 if settings.mode == CLUSTERED else high - low
    for start in range(low, high, step):
        end = start + step
        search = Search(
            block.n_nodes[start:end],
            block.r[start:end],
            grouping,
            block.found[start:end],
            block.sums[start:end],
            block.lengths[start:end],
        )
        for j in range(start, end):
            ask(search, j - start, recent[first + j], model.tally[NODES] + j, block.sums_before[j], groups, settings)
            block.thresholds[j] = vigilance_threshold(settings, grouping)
        nearest(model.nodes, recent[first + start : first + end], search, settings.mode, settings.screen_from)


@compiled
def commit(
    recent: np.ndarray,
    first: int,
    n_rows: int,
    bandwidths: np.ndarray,
    indptr: np.ndarray,
    labels: np.ndarray,
    model: Model,
    settings: Settings,
    block: Block,
) -> tuple[int, bool]:
    """Learn what was foreseen until it no longer holds.

    Returns how many instances were learned and whether the last of them joined a node.
    """
    votes = empty_votes(model.with_.shape[0])
    assumed = model.tally[NODES] + n_rows
    for j in range(n_rows):
        own = labels[indptr[j] : indptr[j + 1]]
        n, neighbours = block.lengths[j], block.found[j]
        if not has_label_space(own, neighbours, n, model.label_counts):
            forget(model.nodes, model.tally[NODES], assumed)
            return j, False
        if block.sums[j, 0] <= block.thresholds[j]:
            forget(model.nodes, model.tally[NODES], assumed)
            threshold = block.thresholds[j]
            join_winner(recent[first + j], own, neighbours, block.sums[j], n, threshold, model, settings, votes)
            return j + 1, True
        become_node(own, bandwidths[j], neighbours, n, model, settings, votes)
    return n_rows, False

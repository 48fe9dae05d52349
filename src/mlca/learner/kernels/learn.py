"""The learning loop: one instance after another, each against the model that the one before left behind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.bandwidth import attribute_bandwidths, median
from mlca.learner.kernels.fixedpoint import PER_UNIT, SCALE
from mlca.learner.kernels.groups import Groups, empty_grouping, group_attributes
from mlca.learner.kernels.ragged import Ragged, add_to, has_space, open_row, places_to_append
from mlca.learner.kernels.stores import CLUSTERED, COMMON, Query, create, move, nearest, shortage, unfold
from mlca.learner.kernels.votes import (
    LEARNED,
    NODES,
    Votes,
    collect_votes,
    empty_votes,
    update_counters,
)

PUBLISHED, RELEASED, TEXT = 0, 1, 2


class Settings(NamedTuple):
    """The parameters, as the loops need them: `threshold` is the vigilance test's right side, in units."""

    mode: int
    rule: int
    vote: int
    n_neighbors: int
    window: int
    vigilance: float
    threshold: int
    screen_from: int


class Model(NamedTuple):
    """Everything that learning changes, in arrays with room to grow.

    `tally` counts nodes, learned instances and counter updates, `label_totals` the instances of each label, `with_`
    and `without` labels in bins (see votes). `bandwidths` has one column, or
    one an attribute; `bandwidth_sums` is its sum over the nodes, in the order of their making.
    """

    nodes: Any
    counts: NDArray[np.int64]
    bandwidths: NDArray[np.float64]
    bandwidth_sums: NDArray[np.float64]
    label_counts: Ragged
    label_totals: NDArray[np.int64]
    with_: NDArray[np.int64]
    without: NDArray[np.int64]
    tally: NDArray[np.int64]


@compiled
def learn(
    recent: np.ndarray,
    first: int,
    last: int,
    filled: int,
    indptr: np.ndarray,
    labels: np.ndarray,
    model: Model,
    groups: Groups,
    settings: Settings,
) -> int:
    """Learn the instances at positions `first` to `last` of `recent`; return how many were learned.

    `recent` holds `filled` instances of the stream in order, the window before `first` among them. Row
    `first + j` has the labels `labels[indptr[j]:indptr[j + 1]]`. Stops early when the model's arrays are full.
    """
    d = recent.shape[1]
    tally = model.tally
    neighbours = np.empty(settings.n_neighbors, np.int64)
    sums = np.empty(settings.n_neighbors, np.int64)
    grouping = empty_grouping(d)
    votes = empty_votes(model.with_.shape[0])
    movers = settings.n_neighbors if settings.rule == TEXT else 2
    for position in range(first, last):
        x = recent[position]
        own = labels[indptr[position - first] : indptr[position - first + 1]]
        n_nodes = tally[NODES]
        if shortage(model.nodes, n_nodes, x, movers) or not has_space(model.label_counts, own.shape[0]):
            return position - first
        if n_nodes == 0:
            _add_node(recent, position, filled, own, model, settings)
            _finish(own, model)
            continue
        r = 0.0
        threshold = settings.threshold
        if settings.mode == COMMON:
            r = SCALE / (model.bandwidth_sums[0] / n_nodes)
        elif settings.mode == CLUSTERED:
            group_attributes(x, groups, model.bandwidth_sums, n_nodes, grouping)
            threshold = clustered_threshold(settings.vigilance, grouping.size[0])
        query = Query(settings.mode, r, grouping, settings.screen_from)
        n = nearest(model.nodes, n_nodes, x, query, neighbours, sums)
        if sums[0] > threshold:
            _add_node(recent, position, filled, own, model, settings)
            n = min(n + 1, settings.n_neighbors)
            for j in range(n - 1, 0, -1):
                neighbours[j] = neighbours[j - 1]
            neighbours[0] = n_nodes
        else:
            places = places_to_append(model.label_counts, neighbours[0], own.shape[0])
            if not has_space(model.label_counts, places):
                return position - first
            for label in own:
                add_to(model.label_counts, neighbours[0], label, 1.0)
            _move_neighbours(x, neighbours, n, n > 1 and sums[1] <= threshold, model, settings)
        _count(own, neighbours, n, model, votes, settings)
        _finish(own, model)
    return last - first


@compiled
def clustered_threshold(vigilance: float, n_groups: int) -> int:
    """Return V J in whole units: a sum is above V J exactly if it is above this."""
    return int(np.floor(vigilance * n_groups * PER_UNIT))


@compiled
def window_bounds(position: int, filled: int, window: int) -> tuple[int, int]:
    """Return where the window of the instance at a position begins and ends.

    It ends with the instance itself; but the first instances of a stream share the window of the
    first `window` (or of all that have come).
    """
    return max(0, position - window + 1), max(position + 1, min(window, filled))


@compiled
def window_bandwidths(recent: np.ndarray, position: int, filled: int, window: int, mode: int) -> np.ndarray:
    """Return the bandwidth, or one an attribute, of the window that an instance belongs to."""
    d = recent.shape[1]
    low, high = window_bounds(position, filled, window)
    scratch = np.empty((3, d))
    bandwidths = np.empty(d)
    attribute_bandwidths(recent[low:high], bandwidths, scratch)
    if mode == COMMON:
        return np.full(1, median(bandwidths, scratch[0]))
    return bandwidths


@compiled
def _add_node(
    recent: np.ndarray, position: int, filled: int, own: np.ndarray, model: Model, settings: Settings
) -> None:
    node = model.tally[NODES]
    bandwidths = window_bandwidths(recent, position, filled, settings.window, settings.mode)
    model.bandwidths[node] = bandwidths
    model.bandwidth_sums[:] += bandwidths
    model.counts[node] = 1
    open_row(model.label_counts, node, own.shape[0])
    for label in own:
        add_to(model.label_counts, node, label, 1.0)
    create(model.nodes, node, recent[position], bandwidths)
    model.tally[NODES] += 1


@compiled
def _move_neighbours(
    x: np.ndarray, neighbours: np.ndarray, n: int, second_fits: bool, model: Model, settings: Settings
) -> None:
    """Move the winner and, where the second winner fits too, the others that the rule moves."""
    winner = neighbours[0]
    if settings.rule == RELEASED:
        model.counts[winner] += 1
        move(model.nodes, winner, x, float(model.counts[winner]))
    else:
        move(model.nodes, winner, x, float(model.counts[winner]))
        model.counts[winner] += 1
    if not second_fits:
        return
    if settings.rule == TEXT:
        target = np.empty(x.shape[0])
        unfold(model.nodes, winner, target)
        for j in range(1, n):
            move(model.nodes, neighbours[j], target, float(settings.n_neighbors * model.counts[neighbours[j]]))
    else:
        share = 10 if settings.rule == RELEASED else settings.n_neighbors
        move(model.nodes, neighbours[1], x, float(share * model.counts[neighbours[1]]))


@compiled
def _count(own: np.ndarray, neighbours: np.ndarray, n: int, model: Model, votes: Votes, settings: Settings) -> None:
    n_voted = collect_votes(neighbours, n, settings.vote, model.counts, model.label_counts, votes)
    update_counters(
        own,
        n,
        settings.n_neighbors,
        settings.vote,
        n_voted,
        votes,
        model.with_,
        model.without,
        model.tally,
    )


@compiled
def _finish(own: np.ndarray, model: Model) -> None:
    for label in own:
        model.label_totals[label] += 1
    model.tally[LEARNED] += 1

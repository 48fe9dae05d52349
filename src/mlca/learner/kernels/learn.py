"""The learning loop: one instance after another, each against the model that the one before left behind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.bandwidth import attribute_bandwidths, median
from mlca.learner.kernels.binary_window import Ones, median_bandwidth, no_ones, slide
from mlca.learner.kernels.fixedpoint import PER_UNIT, SCALE
from mlca.learner.kernels.groups import Grouping, Groups, group_attributes
from mlca.learner.kernels.nearest import Search, empty_search
from mlca.learner.kernels.ragged import Ragged, add_to, has_space, open_row, places_to_append
from mlca.learner.kernels.stores import CLUSTERED, COMMON, create, move, nearest, shortage, unfold
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
    tally = model.tally
    search = empty_search(1, recent.shape[1], settings.n_neighbors)
    neighbours, sums = search.found[0], search.sums[0]
    votes = empty_votes(model.with_.shape[0])
    ones = no_ones(recent.shape[1], min(settings.window, filled))
    movers = most_movers(settings)
    for position in range(first, last):
        x = recent[position]
        own = labels[indptr[position - first] : indptr[position - first + 1]]
        n_nodes = tally[NODES]
        if shortage(model.nodes, n_nodes, x, movers):
            return position - first
        n, threshold = 0, -1
        if n_nodes > 0:
            ask(search, 0, x, n_nodes, model.bandwidth_sums, groups, settings)
            threshold = vigilance_threshold(settings, search.grouping)
            nearest(model.nodes, recent[position : position + 1], search, settings.mode, settings.screen_from)
            n = search.lengths[0]
        if not has_label_space(own, neighbours, n, model.label_counts):
            return position - first
        if n == 0 or sums[0] > threshold:
            bandwidths = window_bandwidths(recent, position, filled, settings.window, settings.mode, ones)
            create(model.nodes, n_nodes, x, bandwidths)
            become_node(own, bandwidths, neighbours, n, model, settings, votes)
        else:
            join_winner(x, own, neighbours, sums, n, threshold, model, settings, votes)
    return last - first


@compiled
def most_movers(settings: Settings) -> int:
    """Return how many nodes one instance can move."""
    return settings.n_neighbors if settings.rule == TEXT else 2


@compiled
def ask(
    search: Search,
    row: int,
    x: np.ndarray,
    n_nodes: int,
    bandwidth_sums: np.ndarray,
    groups: Groups,
    settings: Settings,
) -> None:
    """Say how an instance is to be compared with nodes while learning; attributes are grouped where the mode does."""
    search.n_nodes[row] = n_nodes
    if settings.mode == COMMON:
        search.r[row] = SCALE / (bandwidth_sums[0] / n_nodes)
    elif settings.mode == CLUSTERED:
        group_attributes(x, groups, bandwidth_sums, n_nodes, search.grouping)


@compiled
def vigilance_threshold(settings: Settings, grouping: Grouping) -> int:
    """Return the right side of the vigilance test in units.

    For clustered attributes it is V J of this instance: a sum is above V J exactly if it is above V J rounded down.
    """
    if settings.mode == CLUSTERED:
        return int(np.floor(settings.vigilance * grouping.size[0] * PER_UNIT))
    return settings.threshold


@compiled
def window_bounds(position: int, filled: int, window: int) -> tuple[int, int]:
    """Return where the window of the instance at a position begins and ends.

    It ends with the instance itself; but the first instances of a stream share the window of the
    first `window` (or of all that have come). So its length is the smaller of `filled` and `window` everywhere.
    """
    return max(0, position - window + 1), max(position + 1, min(window, filled))


@compiled
def window_bandwidths(recent: np.ndarray, position: int, filled: int, window: int, mode: int, ones: Ones) -> np.ndarray:
    """Return the bandwidth, or one an attribute, of the window that an instance belongs to.

    `ones` goes with the calls for a stream of positions: none may be before the one that was asked about last.
    """
    d = recent.shape[1]
    low, high = window_bounds(position, filled, window)
    if mode == COMMON and slide(recent, low, high, ones):
        return np.full(1, median_bandwidth(recent[low:high], ones))
    bandwidths, means = np.empty(d), np.empty(d)
    attribute_bandwidths(recent[low:high], bandwidths, means)
    if mode == COMMON:
        return np.full(1, median(bandwidths, means))
    return bandwidths


@compiled
def has_label_space(own: np.ndarray, neighbours: np.ndarray, n: int, label_counts: Ragged) -> bool:
    """Whether an instance's labels can be counted, at a new node or at the winner."""
    places = own.shape[0]
    if n > 0:
        places = max(places, places_to_append(label_counts, neighbours[0], own.shape[0]))
    return has_space(label_counts, places)


@compiled
def become_node(
    own: np.ndarray,
    bandwidths: np.ndarray,
    neighbours: np.ndarray,
    n: int,
    model: Model,
    settings: Settings,
    votes: Votes,
) -> None:
    """Case I: count an instance that was made a node; it is its own nearest neighbour."""
    node = model.tally[NODES]
    model.bandwidths[node] = bandwidths
    model.bandwidth_sums[:] += bandwidths
    model.counts[node] = 1
    open_row(model.label_counts, node, own.shape[0])
    for label in own:
        add_to(model.label_counts, node, label, 1.0)
    model.tally[NODES] += 1
    if n > 0:  # the very first instance changes no counter
        n = min(n + 1, settings.n_neighbors)
        for j in range(n - 1, 0, -1):
            neighbours[j] = neighbours[j - 1]
        neighbours[0] = node
        _count(own, neighbours, n, model, votes, settings)
    _finish(own, model)


@compiled
def join_winner(
    x: np.ndarray,
    own: np.ndarray,
    neighbours: np.ndarray,
    sums: np.ndarray,
    n: int,
    threshold: int,
    model: Model,
    settings: Settings,
    votes: Votes,
) -> None:
    """Cases II and III: the nearest node takes the instance in."""
    for label in own:
        add_to(model.label_counts, neighbours[0], label, 1.0)
    _move_neighbours(x, neighbours, n, n > 1 and sums[1] <= threshold, model, settings)
    _count(own, neighbours, n, model, votes, settings)
    _finish(own, model)


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

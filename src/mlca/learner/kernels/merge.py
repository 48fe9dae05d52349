"""The merging loop: the nodes of one model are replayed into another, each as all the instances it stands for.

A prototype of count c is learned as c instances at one place would be, in one step. Where c presentations have a
closed form it is used: the winner of count a keeps the share (a - 1) / (a + c - 1) of its place under the published
rule, and a / (a + c) under the released one. At c = 1 every step is the one of `learn`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.fixedpoint import SCALE, dissimilarity
from mlca.learner.kernels.groups import Groups
from mlca.learner.kernels.learn import (
    RELEASED,
    TEXT,
    Model,
    Settings,
    ask,
    has_label_space,
    most_movers,
    vigilance_threshold,
)
from mlca.learner.kernels.nearest import empty_search
from mlca.learner.kernels.ragged import add_to, open_row
from mlca.learner.kernels.stores import create, move, nearest, shortage, unfold
from mlca.learner.kernels.votes import (
    LEARNED,
    NODES,
    VOTED,
    VOTED_ALONE,
    Votes,
    bin_of,
    clear_votes,
    collect_votes,
    empty_votes,
    largest_share,
)


class Prototypes(NamedTuple):
    """Nodes to be replayed, one row each.

    Node j stands for `counts[j]` instances, of which `label_counts[p]` had the label `labels[p]`, for the
    places p from `indptr[j]` to `indptr[j + 1]`. `bandwidths` is as wide as the mode needs.
    """

    weights: NDArray[np.float64]
    counts: NDArray[np.int64]
    bandwidths: NDArray[np.float64]
    indptr: NDArray[np.int64]
    labels: NDArray[np.int32]
    label_counts: NDArray[np.int64]


@compiled
def replay(prototypes: Prototypes, first: int, model: Model, groups: Groups, settings: Settings) -> int:
    """Replay prototypes from `first` on; return where it ended: behind the last, or where the model's arrays are full.

    The model must have a node.
    """
    search = empty_search(1, prototypes.weights.shape[1], settings.n_neighbors)
    neighbours, sums = search.found[0], search.sums[0]
    votes = empty_votes(model.with_.shape[0])
    movers = most_movers(settings)
    for j in range(first, prototypes.counts.shape[0]):
        x, count = prototypes.weights[j], prototypes.counts[j]
        own = prototypes.labels[prototypes.indptr[j] : prototypes.indptr[j + 1]]
        own_counts = prototypes.label_counts[prototypes.indptr[j] : prototypes.indptr[j + 1]]
        n_nodes = model.tally[NODES]
        if shortage(model.nodes, n_nodes, x, movers):
            return j
        ask(search, 0, x, n_nodes, model.bandwidth_sums, groups, settings)
        threshold = vigilance_threshold(settings, search.grouping)
        nearest(model.nodes, prototypes.weights[j : j + 1], search, settings.mode, settings.screen_from)
        n = search.lengths[0]
        if not has_label_space(own, neighbours, n, model.label_counts):
            return j
        if sums[0] > threshold:
            create(model.nodes, n_nodes, x, prototypes.bandwidths[j])
            n = _become_node(count, own.shape[0], prototypes.bandwidths[j], neighbours, n, model)
        else:
            _move_neighbours(x, count, neighbours, n, n > 1 and sums[1] <= threshold, model, settings)
        for place in range(own.shape[0]):
            add_to(model.label_counts, neighbours[0], own[place], float(own_counts[place]))
            model.label_totals[own[place]] += own_counts[place]
        _count(count, own, own_counts, neighbours, n, model, votes, settings)
        model.tally[LEARNED] += count
    return prototypes.counts.shape[0]


@compiled
def _become_node(
    count: int, n_labels: int, bandwidths: np.ndarray, neighbours: np.ndarray, n: int, model: Model
) -> int:
    """Case I: count a node that was made; it is its own nearest neighbour. Returns the number of neighbours."""
    node = model.tally[NODES]
    model.bandwidths[node] = bandwidths
    model.bandwidth_sums[:] += bandwidths
    model.counts[node] = count
    open_row(model.label_counts, node, n_labels)
    model.tally[NODES] += 1
    n = min(n + 1, neighbours.shape[0])
    for j in range(n - 1, 0, -1):
        neighbours[j] = neighbours[j - 1]
    neighbours[0] = node
    return n


@compiled
def _move_neighbours(
    x: np.ndarray, count: int, neighbours: np.ndarray, n: int, second_fits: bool, model: Model, settings: Settings
) -> None:
    """Cases II and III: move the winner and, where the second fits too, the others that the rule moves."""
    winner = neighbours[0]
    before = model.counts[winner]
    model.counts[winner] += count
    slowing = before + 1 if settings.rule == RELEASED else before
    move(model.nodes, winner, x, _step(slowing, count))
    if not second_fits:
        return
    if settings.rule == TEXT:
        target = np.empty(x.shape[0])
        unfold(model.nodes, winner, target)
        for j in range(1, n):
            slowing = settings.n_neighbors * model.counts[neighbours[j]]
            move(model.nodes, neighbours[j], target, _step(slowing, count))
    else:
        share = 10 if settings.rule == RELEASED else settings.n_neighbors
        move(model.nodes, neighbours[1], x, _step(share * model.counts[neighbours[1]], count))


@compiled
def _step(slowing: int, count: int) -> float:
    """Return the divisor of one move that stands for moves by 1 / slowing, 1 / (slowing + 1), ..., `count` in all."""
    return (slowing + count - 1) / count


@compiled
def _count(
    count: int,
    own: np.ndarray,
    own_counts: np.ndarray,
    neighbours: np.ndarray,
    n: int,
    model: Model,
    votes: Votes,
    settings: Settings,
) -> None:
    """Count every label in its bin as often as the prototype had it, and as often as it had not."""
    n_voted = collect_votes(neighbours, n, settings.vote, model.counts, model.label_counts, votes)
    if n == 1:
        model.tally[VOTED_ALONE] += count
        for place in range(own.shape[0]):
            model.without[own[place], settings.n_neighbors] -= own_counts[place]
            model.with_[own[place], settings.n_neighbors] += own_counts[place]
    else:
        model.tally[VOTED] += count
        largest = largest_share(votes, n_voted)
        for j in range(n_voted):
            label = votes.voted[j]
            model.without[label, 0] -= count
            model.without[label, bin_of(votes.share[label], largest, n, settings.vote)] += count
        # The winner or the new node has the prototype's own labels, so each of them has a vote.
        for place in range(own.shape[0]):
            label = own[place]
            column = bin_of(votes.share[label], largest, n, settings.vote)
            model.without[label, column] -= own_counts[place]
            model.with_[label, column] += own_counts[place]
    clear_votes(votes, n_voted)


@compiled
def replay_centres(
    others: np.ndarray,
    other_counts: np.ndarray,
    other_bandwidths: np.ndarray,
    threshold: int,
    centres: np.ndarray,
    counts: np.ndarray,
    bandwidths: np.ndarray,
    n_centres: int,
) -> int:
    """Replay the centres of MLCA-C's groups likewise; return the number of centres.

    The arrays must have room for all of them.
    """
    for j in range(others.shape[0]):
        r = SCALE / (bandwidths[:n_centres].sum() / n_centres)
        winner, smallest = -1, 0
        for c in range(n_centres):
            units = dissimilarity(others[j] - centres[c], r)
            if winner < 0 or units < smallest:
                winner, smallest = c, units
        if smallest > threshold:
            centres[n_centres] = others[j]
            counts[n_centres] = other_counts[j]
            bandwidths[n_centres] = other_bandwidths[j]
            n_centres += 1
        else:
            centres[winner] += (others[j] - centres[winner]) / _step(counts[winner], other_counts[j])
            counts[winner] += other_counts[j]
    return n_centres

"""From the nearest nodes to labels: votes, bins, and the counters of what bins labels had.

Only labels that have a vote or belong to the row are touched. What all other labels have in common is
implied: they fell in bin 0 (in bin N_y while there was but one node). `without` therefore stores
deviations from that, so a label that has never been seen has the right counters before it exists:

    without[i, 0]   = stored + number of counter updates with N > 1
    without[i, N_y] = stored + number of counter updates with N = 1
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.ragged import Ragged

COUNTS, FREQUENCIES = 0, 1
# The numbers next to 0 and 1.
SMALLEST_PROBABILITY = float(np.nextafter(0.0, 1.0))
LARGEST_PROBABILITY = float(np.nextafter(1.0, 0.0))
# Places in the tally: nodes, instances learned, counter updates with N > 1 and with N = 1.
NODES, LEARNED, VOTED, VOTED_ALONE = 0, 1, 2, 3


class Votes(NamedTuple):
    """Working space: `share` of every label (zero between uses), the labels that have one, who owns the row."""

    share: NDArray[np.float64]
    voted: NDArray[np.int32]
    own: NDArray[np.bool_]


@compiled
def empty_votes(n_labels: int) -> Votes:
    """Make working space for that many labels."""
    return Votes(np.zeros(n_labels), np.empty(n_labels, np.int32), np.zeros(n_labels, np.bool_))


@compiled
def collect_votes(
    neighbours: np.ndarray, n: int, vote: int, counts: np.ndarray, label_counts: Ragged, votes: Votes
) -> int:
    """Add up the neighbours' votes in their order; return the number of labels that have any."""
    n_voted = 0
    for j in range(n):
        node = neighbours[j]
        start = label_counts.start[node]
        for place in range(start, start + label_counts.length[node]):
            label = label_counts.keys[place]
            if votes.share[label] == 0.0:
                votes.voted[n_voted] = label
                n_voted += 1
            if vote == COUNTS:
                votes.share[label] += label_counts.values[place]
            else:
                votes.share[label] += label_counts.values[place] / counts[node]
    return n_voted


@compiled
def largest_share(votes: Votes, n_voted: int) -> float:
    """Return M, the largest share of any label."""
    largest = 0.0
    for j in range(n_voted):
        largest = max(largest, votes.share[votes.voted[j]])
    return largest


@compiled
def bin_of(share: float, largest: float, n: int, vote: int) -> int:
    """Return the bin of a label that has votes, for N > 1."""
    if vote == COUNTS:
        return int(np.floor(n * share / largest + 0.5))
    return int(np.floor(share + 0.5))


@compiled
def update_counters(
    row_labels: np.ndarray,
    n: int,
    n_neighbors: int,
    vote: int,
    n_voted: int,
    votes: Votes,
    with_: np.ndarray,
    without: np.ndarray,
    tally: np.ndarray,
) -> None:
    """Count every label in its bin, with or without belonging to the row, and clear the votes."""
    if n == 1:
        tally[VOTED_ALONE] += 1
        for label in row_labels:
            without[label, n_neighbors] -= 1
            with_[label, n_neighbors] += 1
        clear_votes(votes, n_voted)
        return
    tally[VOTED] += 1
    for label in row_labels:
        votes.own[label] = True
    largest = largest_share(votes, n_voted)
    # The winner or the new node has the row's own labels, so each of them has a vote.
    for j in range(n_voted):
        label = votes.voted[j]
        place = bin_of(votes.share[label], largest, n, vote)
        without[label, 0] -= 1
        if votes.own[label]:
            with_[label, place] += 1
        else:
            without[label, place] += 1
    for label in row_labels:
        votes.own[label] = False
    clear_votes(votes, n_voted)


@compiled
def look_up(
    n: int, n_neighbors: int, vote: int, n_voted: int, votes: Votes, posteriors: np.ndarray, out: np.ndarray
) -> None:
    """Fill in each label's posterior for the bin it fell in, and clear the votes.

    `posteriors[j, i]` is label i's probability in bin j.
    """
    if n == 1:
        out[:] = posteriors[n_neighbors]
    else:
        out[:] = posteriors[0]
        largest = largest_share(votes, n_voted)
        for j in range(n_voted):
            label = votes.voted[j]
            out[label] = posteriors[bin_of(votes.share[label], largest, n, vote), label]
    clear_votes(votes, n_voted)


@compiled
def clear_votes(votes: Votes, n_voted: int) -> None:
    """Set the shares that were used back to zero."""
    for j in range(n_voted):
        votes.share[votes.voted[j]] = 0.0


@compiled
def label_posteriors(
    totals: np.ndarray,
    with_: np.ndarray,
    without: np.ndarray,
    tally: np.ndarray,
    smoothing: float,
    priors: np.ndarray,
    likelihoods: np.ndarray,
    posteriors: np.ndarray,
) -> None:
    """Fill in the prior of every label and, for every bin, both likelihoods and the posterior.

    `likelihoods[0]` is for rows with the label, `[1]` for rows without; they and `posteriors` have one row a
    bin. Posteriors are kept strictly between 0 and 1 where rounding would reach them.
    """
    n_bins = with_.shape[1]
    n = min(n_bins - 1, tally[NODES])
    for i in range(priors.shape[0]):
        priors[i] = (smoothing + totals[i]) / (2.0 * smoothing + tally[LEARNED])
        rows_with, rows_without = 0, tally[VOTED] + tally[VOTED_ALONE]
        for j in range(n_bins):
            rows_with += with_[i, j]
            rows_without += without[i, j]
        for j in range(n_bins):
            missing = without[i, j]
            if j == 0:
                missing += tally[VOTED]
            elif j == n_bins - 1:
                missing += tally[VOTED_ALONE]
            for_label, against = 0.0, 0.0
            if j <= n:
                for_label = (smoothing + with_[i, j]) / (smoothing * (n + 1) + rows_with)
                against = (smoothing + missing) / (smoothing * (n + 1) + rows_without)
            likelihoods[0, j, i] = for_label
            likelihoods[1, j, i] = against
            yes, no = for_label * priors[i], against * (1.0 - priors[i])
            posterior = priors[i]
            if yes + no > 0.0:
                posterior = yes / (yes + no)
            posteriors[j, i] = min(max(posterior, SMALLEST_PROBABILITY), LARGEST_PROBABILITY)

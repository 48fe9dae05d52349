"""MLCA-C's groups of attributes: a one-dimensional CIM-based ART over attribute means, and who belongs where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.bandwidth import attribute_bandwidths
from mlca.learner.kernels.fixedpoint import SCALE, dissimilarity


class Groups(NamedTuple):
    """The centres, ascending, and the age of each: 0 is the oldest. Centres move only between rounds."""

    centres: NDArray[np.float64]
    ages: NDArray[np.int64]


@compiled
def learn_means(
    values: np.ndarray,
    window: int,
    threshold: int,
    centres: np.ndarray,
    counts: np.ndarray,
    bandwidths: np.ndarray,
    n_centres: int,
) -> int:
    """Learn one round of values, in their order, and return the number of centres.

    Rule "published", cases I and II only: a value too far from every centre becomes one; another moves
    the nearest centre. The arrays must have room for one more centre a value.
    """
    d = values.shape[0]
    column = values.reshape((d, 1))
    bandwidth, mean = np.empty(1), np.empty(1)
    total = 0.0
    for c in range(n_centres):
        total += bandwidths[c]
    for i in range(d):
        winner, smallest = -1, 0
        if n_centres > 0:
            r = SCALE / (total / n_centres)
            for c in range(n_centres):
                units = dissimilarity(values[i] - centres[c], r)
                if winner < 0 or units < smallest:
                    winner, smallest = c, units
        if winner < 0 or smallest > threshold:
            first = max(0, min(i - window + 1, d - window))
            attribute_bandwidths(column[first : first + window], bandwidth, mean)
            centres[n_centres] = values[i]
            counts[n_centres] = 1
            bandwidths[n_centres] = bandwidth[0]
            total += bandwidth[0]
            n_centres += 1
        else:
            centres[winner] += (values[i] - centres[winner]) / counts[winner]
            counts[winner] += 1
    return n_centres


@compiled
def nearest_centre(value: float, groups: Groups) -> int:
    """Return the position of the centre nearest to a value, the oldest of equally near ones."""
    centres = groups.centres
    n = centres.shape[0]
    right = int(np.searchsorted(centres, value))
    smallest = np.inf
    if right < n:
        smallest = abs(centres[right] - value)
    if right > 0:
        smallest = min(smallest, abs(value - centres[right - 1]))
    # Equal centres, and centres so far away that their distances round to the same number, are equally near.
    winner = -1
    k = right
    while k < n and abs(centres[k] - value) <= smallest:
        if winner < 0 or groups.ages[k] < groups.ages[winner]:
            winner = k
        k += 1
    k = right - 1
    while k >= 0 and abs(value - centres[k]) <= smallest:
        if winner < 0 or groups.ages[k] < groups.ages[winner]:
            winner = k
        k -= 1
    return winner


class Grouping(NamedTuple):
    """One instance's attributes in groups: group j is `order[ends[j - 1]:ends[j]]` and has `scales[j]`.

    `members` is each attribute's group; `size[0]` is the number of groups, none of them empty.
    """

    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    scales: NDArray[np.float64]
    members: NDArray[np.int64]
    size: NDArray[np.int64]


@compiled
def empty_grouping(n_attributes: int) -> Grouping:
    """Make room for one instance's groups."""
    return Grouping(
        np.empty(n_attributes, np.int64),
        np.empty(n_attributes, np.int64),
        np.empty(n_attributes, np.float64),
        np.empty(n_attributes, np.int64),
        np.zeros(1, np.int64),
    )


@compiled
def group_attributes(
    x: np.ndarray, groups: Groups, bandwidth_sums: np.ndarray, n_nodes: int, grouping: Grouping
) -> None:
    """Put every attribute into the group of the centre nearest to its value.

    A group's bandwidth is the mean over all nodes and over its attributes; `bandwidth_sums` holds each
    attribute's sum over the nodes.
    """
    order, ends, scales, members, size = grouping
    d = x.shape[0]
    filled = np.zeros(groups.centres.shape[0], np.int64)
    for i in range(d):
        members[i] = nearest_centre(x[i], groups)
        filled[members[i]] += 1
    n_groups, end = 0, 0
    for c in range(filled.shape[0]):
        if filled[c] > 0:
            ends[n_groups] = end
            end += filled[c]
            filled[c] = n_groups
            n_groups += 1
    scales[:n_groups] = 0.0
    for i in range(d):
        group = filled[members[i]]
        members[i] = group
        order[ends[group]] = i
        ends[group] += 1
        scales[group] += bandwidth_sums[i]
    for j in range(n_groups):
        count = ends[j] - (ends[j - 1] if j > 0 else 0)
        scales[j] = SCALE / (scales[j] / (float(n_nodes) * count))
    size[0] = n_groups

"""The prediction loop: nearest nodes, their votes, the posterior of each label's bin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.groups import Grouping, Groups, empty_grouping, group_attributes
from mlca.learner.kernels.learn import Model, Settings
from mlca.learner.kernels.stores import CLUSTERED, Query, nearest
from mlca.learner.kernels.votes import NODES, Votes, collect_votes, empty_votes, look_up


class Space(NamedTuple):
    """Working space of a prediction."""

    neighbours: NDArray[np.int64]
    sums: NDArray[np.int64]
    grouping: Grouping
    votes: Votes


class Prepared(NamedTuple):
    """What a model that is not learning can compute once: r (common bandwidth) and posteriors by bin and label."""

    r: float
    posteriors: NDArray[np.float64]


@compiled
def predict_dense(
    rows: np.ndarray, model: Model, groups: Groups, settings: Settings, prepared: Prepared, out: np.ndarray
) -> None:
    """Fill in the probability of every label for every row."""
    space = working_space(rows.shape[1], out.shape[1], settings.n_neighbors)
    for j in range(rows.shape[0]):
        _predict_row(rows[j], model, groups, settings, prepared, space, out[j])


@compiled
def predict_sparse(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    n_attributes: int,
    model: Model,
    groups: Groups,
    settings: Settings,
    prepared: Prepared,
    out: np.ndarray,
) -> None:
    """Do the same for CSR rows, one of them unfolded at a time."""
    space = working_space(n_attributes, out.shape[1], settings.n_neighbors)
    x = np.zeros(n_attributes)
    for j in range(indptr.shape[0] - 1):
        for place in range(indptr[j], indptr[j + 1]):
            x[indices[place]] = data[place]
        _predict_row(x, model, groups, settings, prepared, space, out[j])
        for place in range(indptr[j], indptr[j + 1]):
            x[indices[place]] = 0.0


@compiled
def neighbours_of(x: np.ndarray, model: Model, groups: Groups, settings: Settings, r: float, space: Space) -> int:
    """List the neighbours of one instance, with their sums, in the working space; return how many there are."""
    n_nodes = model.tally[NODES]
    if settings.mode == CLUSTERED:
        group_attributes(x, groups, model.bandwidth_sums, n_nodes, space.grouping)
    query = Query(settings.mode, r, space.grouping, settings.screen_from)
    return nearest(model.nodes, n_nodes, x, query, space.neighbours, space.sums)


@compiled
def _predict_row(
    x: np.ndarray,
    model: Model,
    groups: Groups,
    settings: Settings,
    prepared: Prepared,
    space: Space,
    out: np.ndarray,
) -> None:
    n = neighbours_of(x, model, groups, settings, prepared.r, space)
    n_voted = collect_votes(space.neighbours, n, settings.vote, model.counts, model.label_counts, space.votes)
    look_up(n, settings.n_neighbors, settings.vote, n_voted, space.votes, prepared.posteriors, out)


@compiled
def working_space(n_attributes: int, n_labels: int, n_neighbors: int) -> Space:
    """Make the arrays that a prediction needs on its way."""
    return Space(
        np.empty(n_neighbors, np.int64),
        np.empty(n_neighbors, np.int64),
        empty_grouping(n_attributes),
        empty_votes(n_labels),
    )

"""The prediction loop: nearest nodes, their votes, the posterior of each label's bin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled
from mlca.learner.kernels.groups import Groups, group_attributes
from mlca.learner.kernels.learn import Model, Settings
from mlca.learner.kernels.nearest import TOGETHER, Search, empty_search
from mlca.learner.kernels.stores import CLUSTERED, nearest
from mlca.learner.kernels.votes import NODES, Votes, collect_votes, empty_votes, look_up


class Prepared(NamedTuple):
    """What a model that is not learning can compute once: r (common bandwidth) and posteriors by bin and label."""

    r: float
    posteriors: NDArray[np.float64]


@compiled
def predict_dense(
    rows: np.ndarray, model: Model, groups: Groups, settings: Settings, prepared: Prepared, out: np.ndarray
) -> None:
    """Fill in the probability of every label for every row."""
    together = 1 if settings.mode == CLUSTERED else TOGETHER
    votes = empty_votes(out.shape[1])
    for low in range(0, rows.shape[0], together):
        some = rows[low : low + together]
        _predict(some, model, groups, settings, prepared, votes, out[low : low + together])


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
    votes = empty_votes(out.shape[1])
    x = np.zeros((1, n_attributes))
    for j in range(indptr.shape[0] - 1):
        for place in range(indptr[j], indptr[j + 1]):
            x[0, indices[place]] = data[place]
        _predict(x, model, groups, settings, prepared, votes, out[j : j + 1])
        for place in range(indptr[j], indptr[j + 1]):
            x[0, indices[place]] = 0.0


@compiled
def neighbours_of(rows: np.ndarray, model: Model, groups: Groups, settings: Settings, r: float) -> Search:
    """List the neighbours of a few instances; of one, where attributes are grouped."""
    n_nodes = model.tally[NODES]
    search = empty_search(rows.shape[0], rows.shape[1], settings.n_neighbors)
    search.n_nodes[:] = n_nodes
    search.r[:] = r
    if settings.mode == CLUSTERED:
        group_attributes(rows[0], groups, model.bandwidth_sums, n_nodes, search.grouping)
    nearest(model.nodes, rows, search, settings.mode, settings.screen_from)
    return search


@compiled
def _predict(
    rows: np.ndarray,
    model: Model,
    groups: Groups,
    settings: Settings,
    prepared: Prepared,
    votes: Votes,
    out: np.ndarray,
) -> None:
    search = neighbours_of(rows, model, groups, settings, prepared.r)
    for j in range(rows.shape[0]):
        n = search.lengths[j]
        n_voted = collect_votes(search.found[j], n, settings.vote, model.counts, model.label_counts, votes)
        look_up(n, settings.n_neighbors, settings.vote, n_voted, votes, prepared.posteriors, out[j])

"""Attributes that appear late: a learner that knows d attributes becomes one that knows more.

What an attribute was in the instances so far is told by whoever has it appear: a gap where nothing was known of it, as
in a table that has got a column; 0 where not to be mentioned means 0, as words in a text. So the window and the nodes
get gaps or zeros there, and each node the bandwidth of an attribute without a value or of a constant one, where nodes
have one an attribute. While the first window fills nothing has been learned yet, and the result is the learner that had
known the attribute from the start. Later it is not, because the number of attributes enters Silverman's rule: nodes
keep the bandwidths that they were made with, new ones are estimated over all attributes. Of an attribute that was 0 the
vigilance test counts the agreement, too; gaps are left out of it, so that rows which lack the attribute are as near to
nodes as before. In a learned similarity both have next to no weight until it is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.learner.core import Arrays, Learner, n_labels_of

# The deviation of an attribute that is constant in the window.
SMALLEST_DEVIATION = 1e-6


def widened(learner: Learner, n_features: int, gaps: Sequence[int] = (), nominal: Sequence[int] = ()) -> Learner:
    """Return a learner with more attributes, the new ones on the right; the old learner must not be used again.

    Parameters
    ----------
    learner : Learner
        The learner as it is.
    n_features : int
        The number of attributes that are known now.
    gaps : sequence of int
        The new attributes of which nothing was known; all other new ones were 0.
    nominal : sequence of int
        The new attributes that are categories.

    Returns
    -------
    Learner
        The learner that goes on.
    """
    state, before = learner.state(), learner.n_features
    values = np.zeros(n_features - before)
    values[np.array(gaps, np.int64) - before] = np.nan
    for name in ("weights", "recent"):
        if learner.sparse_nodes:
            _widen_sparse(state, name, before, values)
        else:
            state[name] = np.hstack([state[name], np.tile(values, (len(state[name]), 1))])
    if learner.parameters.attributes != "common":
        window = np.where(np.isnan(values), 1, learner.parameters.window)
        new = np.array([constant_bandwidth(n, n_features) for n in window.tolist()])
        state["bandwidths"] = np.hstack([state["bandwidths"], np.tile(new, (len(state["bandwidths"]), 1))])
    _widen_similarity(state, before, len(values))
    told = learner.parameters
    parameters = replace(told, categorical_features=(*told.categorical_features, *nominal))
    return Learner.from_state(parameters, n_features, n_labels_of(state), learner.sparse_nodes, state)


def _widen_sparse(state: Arrays, name: str, before: int, values: NDArray[np.float64]) -> None:
    """Write the gaps behind the entries of each row; zeros are not written anyway."""
    parts = (state[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    rows = sparse.csr_array(tuple(parts), shape=(len(state[f"{name}.indptr"]) - 1, before))
    gaps, n = np.flatnonzero(np.isnan(values)), rows.shape[0]
    entries = (np.full(n * len(gaps), np.nan), np.tile(gaps, n), np.arange(n + 1) * len(gaps))
    new = sparse.csr_array(entries, shape=(n, len(values)))
    wide = sparse.csr_array(sparse.hstack([rows, new], format="csr"))
    state[f"{name}.indptr"] = wide.indptr.astype(np.int64)
    state[f"{name}.indices"] = wide.indices.astype(np.int32)
    state[f"{name}.data"] = wide.data


def _widen_similarity(state: Arrays, before: int, added: int) -> None:
    """Let a learned similarity know more attributes: until it is computed anew they have next to no weight."""
    if "similarity.weights" not in state or len(state["similarity.weights"]) == 0:
        return
    state["similarity.weights"] = np.concatenate([state["similarity.weights"], np.ones(added, np.int64)])
    starts = state["similarity.knot_starts"]
    if len(starts):  # an attribute without knots is zero in all nodes
        state["similarity.knot_starts"] = np.concatenate([starts, np.full(added, starts[-1])])
    middles = state.get("similarity.middles", np.empty(0))
    if len(middles):
        half = native.RANKS_PER_KNOT * int(state["similarity.tally"][1]) // 2
        state["similarity.middles"] = np.concatenate([middles, np.full(added, float(half))])
    if "cells.centres" in state:  # attributes of next to no weight have the coordinate 0
        state["cells.centres"] = np.pad(state["cells.centres"], ((0, 0), (0, added)))
    owners = state["background.indices"]  # the values of categories are numbered behind the attributes
    state["background.indices"] = np.where(owners < before, owners, owners + added).astype(owners.dtype)


def constant_bandwidth(window: int, n_features: int) -> float:
    """Return the bandwidth of an attribute that is constant in a window."""
    exponent = 1.0 / (4.0 + n_features)
    silverman = (4.0 / (2.0 + n_features)) ** exponent
    return float(silverman * SMALLEST_DEVIATION * float(window) ** -exponent)

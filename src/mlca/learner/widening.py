"""Adding new features to a learner that has already learned rows.

The caller decides which value earlier rows have in a new feature: missing, as for a new column of a table, or 0, as for
a new word in a text. The window and the nodes get this value. If nodes have one bandwidth per feature, a new feature
gets the bandwidth of a feature without values, or of a constant one. Before the first window is full, the result equals
a learner that had the feature from the start. Later it does not, because Silverman's rule depends on the number of
features: nodes keep their bandwidths, and new bandwidths are estimated over all features. Zeros in both row and node
count as agreement in the vigilance test. Missing values are left out, so rows without the feature keep their distances
to nodes. In a learned similarity, new features have almost no weight until it is recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.learner.core import Arrays, Learner, n_labels_of

# From `_WIDE` features on, nodes become sparse if a row with new features mentions less than the share `_FEW` of them.
_WIDE = 200
_FEW = 0.25


def widened_by_row(learner: Learner, n_features: int, n_mentioned: int) -> Learner:
    """Return a learner widened for a row that mentions some features and is 0 in the others.

    If the row mentions few of the features, as with words, the nodes become sparse.
    """
    if n_features >= _WIDE and n_mentioned < _FEW * n_features:
        learner = learner.with_sparse_nodes()
    return widened(learner, n_features)


def widened(learner: Learner, n_features: int, unknown: Sequence[int] = (), nominal: Sequence[int] = ()) -> Learner:
    """Return a learner with new features after the old ones; this consumes the old learner.

    Parameters
    ----------
    learner : Learner
        The learner to widen.
    n_features : int
        The new number of features.
    unknown : sequence of int
        The indices of new features that are missing in earlier rows; other new features are 0 in them.
    nominal : sequence of int
        The indices of new features that are categorical.

    Returns
    -------
    Learner
        The widened learner.
    """
    state, before = learner.state(), learner.n_features
    values = np.zeros(n_features - before)
    values[np.array(unknown, np.int64) - before] = np.nan
    for name in ("weights", "recent"):
        if learner.sparse_nodes:
            _widen_sparse(state, name, before, values)
        else:
            state[name] = np.hstack([state[name], np.tile(values, (len(state[name]), 1))])
    if learner.parameters.attributes != "common":
        window = np.where(np.isnan(values), 1, learner.parameters.window)
        new = np.array([native.constant_bandwidth(n, n_features) for n in window.tolist()])
        state["bandwidths"] = np.hstack([state["bandwidths"], np.tile(new, (len(state["bandwidths"]), 1))])
    _widen_similarity(state, before, len(values))
    known_nominal = learner.parameters.categorical_features
    parameters = replace(learner.parameters, categorical_features=(*known_nominal, *nominal))
    return Learner.from_state(parameters, n_features, n_labels_of(state), learner.sparse_nodes, state)


def _widen_sparse(state: Arrays, name: str, before: int, values: NDArray[np.float64]) -> None:
    """Append the NaN values among the new values to each sparse row; zeros are not stored."""
    if not np.isnan(values).any():
        return
    parts = (state[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    rows = sparse.csr_array(tuple(parts), shape=(len(state[f"{name}.indptr"]) - 1, before))
    missing, n = np.flatnonzero(np.isnan(values)), rows.shape[0]
    entries = (np.full(n * len(missing), np.nan), np.tile(missing, n), np.arange(n + 1) * len(missing))
    new = sparse.csr_array(entries, shape=(n, len(values)))
    wide = sparse.csr_array(sparse.hstack([rows, new], format="csr"))
    state[f"{name}.indptr"] = wide.indptr.astype(np.int64)
    state[f"{name}.indices"] = wide.indices.astype(np.int32)
    state[f"{name}.data"] = wide.data


def _widen_similarity(state: Arrays, before: int, added: int) -> None:
    """Widen a learned similarity: until it is recomputed, new features have almost no weight."""
    if "similarity.weights" not in state or len(state["similarity.weights"]) == 0:
        return
    state["similarity.weights"] = np.concatenate([state["similarity.weights"], np.ones(added, np.int64)])
    starts = state["similarity.knot_starts"]
    if len(starts):  # a feature without knots is zero in all nodes
        state["similarity.knot_starts"] = np.concatenate([starts, np.full(added, starts[-1])])
    middles = state.get("similarity.middles", np.empty(0))
    if len(middles):
        half = native.RANKS_PER_KNOT * int(state["similarity.tally"][1]) // 2
        state["similarity.middles"] = np.concatenate([middles, np.full(added, float(half))])
    if "cells.centres" in state:  # features with almost no weight have the coordinate 0
        state["cells.centres"] = np.pad(state["cells.centres"], ((0, 0), (0, added)))
    owners = state["background.indices"]  # the values of categories are numbered after the features
    state["background.indices"] = np.where(owners < before, owners, owners + added).astype(owners.dtype)

"""Merging of learners that learned parts of a stream.

Each additional learner is merged into the first one:

1. If it has no nodes yet, its rows still wait for the first window to fill, and are learned like any others.
2. Otherwise its nodes are replayed, oldest first, as prototypes with their counts, label counts and bandwidths. One
   learning step stands for many rows at one position (src/kernels/learner/model.hpp). A prototype that passes the
   vigilance test joins a node; any other becomes a node. With "append", nodes are added without a search, and the
   learned similarity is computed once at the end.
3. Its latest rows are appended to the window, so that training continues from the end of the last part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.learner.checking import require_countable
from mlca.learner.core import Learner, rows_in

LabelColumns = NDArray[np.int32]


def merged(
    learners: Sequence[Learner], columns: Sequence[LabelColumns], n_labels: int, append: bool = False
) -> Learner:
    """Merge learners into one.

    Parameters
    ----------
    learners : sequence of Learner
        In the order of their parts of the stream. All have the same parameters and features. They are consumed: pass
        copies, so that no other thread changes them meanwhile.
    columns : sequence of ndarray
        For each learner, the index of each of its labels in the result. The first learner's labels keep their indices.
    n_labels : int
        The number of labels in the result.
    append : bool
        Whether nodes are appended instead of replayed.

    Returns
    -------
    Learner
        A learner that continues from the end of the last part.

    Raises
    ------
    ValueError
        If the learners together have more rows than can be counted exactly. No learner is changed then.
    """
    whole = learners[0]
    require_countable(sum(learner.n_seen for learner in learners), whole.parameters)
    whole.learn(_no_rows(whole), np.zeros(1, np.int64), np.empty(0, np.int32), n_labels)
    is_settled = False
    for other, numbers in zip(learners[1:], columns[1:], strict=True):
        state = other.state("none")
        if len(state["waiting.indptr"]) > 1:
            labels = _ascending(state["waiting.indptr"], numbers[state["waiting.indices"]])
            whole.learn(rows_in(state, "recent", other), state["waiting.indptr"], labels, n_labels)
        else:
            if not (append and is_settled):
                whole = whole.settled().copy()
            whole.absorb(_as_kind(other, whole.sparse_nodes), numbers, n_labels, append)
            is_settled = True
    if append:
        whole.learn(_no_rows(whole), np.zeros(1, np.int64), np.empty(0, np.int32), n_labels)  # computes the similarity
    return whole


def _ascending(indptr: NDArray[np.int64], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the labels of each row in ascending order, as learners expect them."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return labels[np.lexsort((labels, rows))]


def _no_rows(learner: Learner) -> Any:
    shape = (0, learner.n_features)
    return sparse.csr_array(shape) if learner.sparse_nodes else np.empty(shape)


def _as_kind(learner: Learner, sparse_nodes: bool) -> Learner:
    """Return a learner with the same state, with sparse or dense nodes as requested."""
    if learner.sparse_nodes == sparse_nodes:
        return learner
    state = learner.state()
    for name in ("weights", "recent"):
        rows = rows_in(state, name, learner)
        if sparse_nodes:
            thin = sparse.csr_array(rows)
            state |= {
                f"{name}.indptr": thin.indptr.astype(np.int64),
                f"{name}.indices": thin.indices.astype(np.int32),
                f"{name}.data": thin.data,
            }
        else:
            state[name] = rows.toarray()
    return Learner.from_state(learner.parameters, learner.n_features, learner.n_labels, sparse_nodes, state)

"""Learners that learned parts of a stream become one.

The first learner is the one that goes on. Each other gives it what it holds, in order:

1. Instances that still wait for a first window are learned as they are: nothing is lost.
2. Otherwise its nodes are replayed, oldest first, as prototypes that bring their count, label counts and bandwidths
   along (`kernels.merge`). One that the vigilance test lets in joins a node; any other becomes a node.
3. Its latest instances follow those of the first in the window, so that learning goes on from the last one's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.learner.core import Learner
from mlca.learner.growing import enlarged, with_labels, with_room
from mlca.learner.kernels.merge import Prototypes, replay, replay_centres
from mlca.learner.similarity import common_threshold

# Nodes of a sparse learner are unfolded by so many.
PORTION = 1024

Columns = NDArray[np.int32]


def merged(learners: Sequence[Learner], columns: Sequence[Columns], n_labels: int) -> Learner:
    """Return a learner that knows what all of them know; none of them changes.

    Parameters
    ----------
    learners : sequence of Learner
        In the order of their parts of the stream. All have the same parameters and attributes.
    columns : sequence of ndarray
        For each learner, the number that each of its labels has in the result; those of the first keep theirs.
    n_labels : int
        The number of labels in the result.

    Returns
    -------
    Learner
        One that goes on from the end of the last.
    """
    whole = learners[0].copy()
    whole.n_labels = n_labels
    whole.model = with_labels(whole.model, n_labels)
    for other, own in zip(learners[1:], columns[1:], strict=True):
        if other.waiting:
            _learn_waiting(whole, other, own)
        else:
            whole = whole.settled()
            _replay_nodes(whole, other, own)
            _replay_groups(whole, other)
            _continue_window(whole, other)
    return whole


def _learn_waiting(whole: Learner, other: Learner, columns: Columns) -> None:
    lengths = [len(labels) for labels in other.waiting]
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    labels = columns[np.concatenate(other.waiting)]
    whole.learn(other.window.latest(), indptr, labels, whole.n_labels)


def _replay_nodes(whole: Learner, other: Learner, columns: Columns) -> None:
    weights, label_counts = other.weights(), other.label_counts()
    for low in range(0, other.n_nodes, PORTION):
        part = slice(low, min(low + PORTION, other.n_nodes))
        counted = label_counts[part]
        prototypes = Prototypes(
            weights=_dense(weights[part]),
            counts=other.model.counts[part],
            bandwidths=other.model.bandwidths[part],
            indptr=counted.indptr.astype(np.int64),
            labels=columns[counted.indices],
            label_counts=counted.data,
        )
        _replay(whole, prototypes)


def _replay(whole: Learner, prototypes: Prototypes) -> None:
    done = 0
    while True:
        done = replay(prototypes, done, whole.model, whole.groups.sorted, whole.settings)
        if done == len(prototypes.counts):
            return
        row_labels = int(prototypes.indptr[done + 1] - prototypes.indptr[done])
        whole.model = with_room(whole.model, whole.n_features, row_labels)


def _replay_groups(whole: Learner, other: Learner) -> None:
    if whole.parameters.attributes != "clustered":
        return
    own, others = whole.groups, other.groups
    room = len(own.centres) + len(others.centres)
    centres, counts, bandwidths = (enlarged(part, room) for part in (own.centres, own.counts, own.bandwidths))
    threshold = common_threshold(whole.parameters.vigilance, 1)
    n = replay_centres(
        others.centres,
        others.counts,
        others.bandwidths,
        threshold,
        centres,
        counts,
        bandwidths,
        len(own.centres),
    )
    own.set(centres[:n], counts[:n], bandwidths[:n])


def _continue_window(whole: Learner, other: Learner) -> None:
    """Let the other's latest instances follow: together they end with the last `size` of both parts."""
    window = whole.window
    latest = np.concatenate([window.latest(), other.window.latest()])[-window.size :]
    window.rows[: len(latest)] = latest
    window.filled = window.learned = len(latest)


def _dense(rows: Any) -> NDArray[np.float64]:
    dense: NDArray[np.float64] = rows.toarray() if sparse.issparse(rows) else rows
    return dense

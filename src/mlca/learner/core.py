"""The learner: a stream of rows and labels in, a model that can predict out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.learner.parameters import SCREEN_FROM, Parameters

# Rows of the other kind are converted by portions of so many numbers.
PORTION = 2**20

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Neighbours:
    """The nodes that vote on one instance, nearest first, and every number up to the posterior of each label."""

    nodes: NDArray[np.int64]
    distances: NDArray[np.float64]
    counts: NDArray[np.int64]
    label_counts: NDArray[np.int64]
    votes: NDArray[np.float64]
    bins: NDArray[np.int64]
    prior: NDArray[np.float64]
    likelihood_with: NDArray[np.float64]
    likelihood_without: NDArray[np.float64]
    posterior: NDArray[np.float64]


class Learner:
    """MLCA, MLCA-I or MLCA-C over numbered labels.

    Any number of threads may ask while one learns; each answer is that of the model after some whole row. Learners
    take turns.

    Parameters
    ----------
    parameters : Parameters
        What the algorithm is told.
    n_features : int
        The number of attributes of an instance.
    sparse_nodes : bool
        Whether nodes are kept sparse.
    screen_from : int
        From how many nodes on they are screened; it never changes a result.
    """

    def __init__(
        self, parameters: Parameters, n_features: int, sparse_nodes: bool, screen_from: int = SCREEN_FROM
    ) -> None:
        settings = parameters.settings(n_features, screen_from)
        rounds = _Rounds(parameters.seed, n_features)
        self._set(parameters, n_features, native.Learner(settings, sparse_nodes, rounds))

    def _set(self, parameters: Parameters, n_features: int, compiled: Any) -> None:
        self.parameters = parameters
        self.n_features = n_features
        self.sparse_nodes = bool(compiled.sparse)
        self._compiled = compiled

    @classmethod
    def _of(cls, parameters: Parameters, n_features: int, compiled: Any) -> Self:
        learner = cls.__new__(cls)
        learner._set(parameters, n_features, compiled)
        return learner

    @classmethod
    def from_state(
        cls,
        parameters: Parameters,
        n_features: int,
        n_labels: int,
        sparse_nodes: bool,
        state: Arrays,
        screen_from: int = SCREEN_FROM,
    ) -> Self:
        """Return a learner that goes on from checked arrays (see `mlca.learner.state`)."""
        settings = parameters.settings(n_features, screen_from)
        rounds = _Rounds(parameters.seed, n_features)
        return cls._of(parameters, n_features, native.Learner.restore(settings, sparse_nodes, rounds, n_labels, state))

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self._compiled.n_nodes)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self._compiled.n_labels)

    @property
    def n_seen(self) -> int:
        """The number of instances that have come, whether learned or waiting."""
        return int(self._compiled.n_seen)

    def learn(
        self,
        rows: Any,
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_labels: int,
        n_jobs: int = 1,
    ) -> None:
        """Learn rows in order; row j has the labels `labels[indptr[j]:indptr[j + 1]]`.

        At least `n_labels` labels are known afterwards. Several threads look ahead together; the model does not depend
        on their number. An interrupt or a failure leaves the model of the rows that `n_seen` counts.
        """
        if self._has_own_form(rows):
            self._learn_part(rows, indptr, labels, n_labels, n_jobs)
            return
        for first, part in self._in_own_form(rows):
            bounds = indptr[first : first + part.shape[0] + 1]
            self._learn_part(part, bounds - bounds[0], labels[bounds[0] : bounds[-1]], n_labels, n_jobs)

    def settled(self) -> Learner:
        """Return a learner in which every instance that came is learned: this one, or one that must not learn.

        Before the first window is full, its window is all that has come.
        """
        if not self._compiled.waits:
            return self
        return Learner._of(self.parameters, self.n_features, self._compiled.settled())

    def copy(self) -> Learner:
        """Return a learner that goes on by itself from here."""
        return Learner._of(self.parameters, self.n_features, self._compiled.copy())

    def probabilities(self, rows: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return the probability of every label for every row. The learner must be settled."""
        n_labels = self.n_labels
        if self._has_own_form(rows):
            return self._judge_part(rows, n_labels, n_jobs)
        parts = [self._judge_part(part, n_labels, n_jobs) for _, part in self._in_own_form(rows)]
        return np.concatenate([np.empty((0, n_labels)), *parts])

    def neighbours(self, x: NDArray[np.float64]) -> Neighbours:
        """Return the nodes that vote on one instance, and how. The learner must be settled."""
        row = x[None, :]
        if self.sparse_nodes:
            return Neighbours(**self._compiled.explain_sparse(*_csr_parts(sparse.csr_array(row))))
        return Neighbours(**self._compiled.explain_dense(np.ascontiguousarray(row)))

    def absorb(self, other: Learner, columns: NDArray[np.int32], n_labels: int) -> None:
        """Replay the nodes of another learner of the same kind; both must be settled."""
        self._compiled.absorb(other._compiled, columns, n_labels)

    def state(self) -> Arrays:
        """Return everything that this learner knows as arrays of its own (see `mlca.learner.state`)."""
        arrays: Arrays = self._compiled.state()
        return arrays

    def __reduce__(self) -> Any:
        state = self.state()
        n_labels = len(state["with"])
        return (Learner.from_state, (self.parameters, self.n_features, n_labels, self.sparse_nodes, state))

    def _learn_part(self, rows: Any, indptr: Any, labels: Any, n_labels: int, n_jobs: int) -> None:
        if self.sparse_nodes:
            self._compiled.learn_sparse(*_csr_parts(rows), indptr, labels, n_labels, n_jobs)
        else:
            self._compiled.learn_dense(rows, indptr, labels, n_labels, n_jobs)

    def _judge_part(self, rows: Any, n_labels: int, n_jobs: int) -> NDArray[np.float64]:
        probabilities: NDArray[np.float64]
        if self.sparse_nodes:
            probabilities = self._compiled.predict_sparse(*_csr_parts(rows), n_labels, n_jobs)
        else:
            probabilities = self._compiled.predict_dense(rows, n_labels, n_jobs)
        return probabilities

    def _has_own_form(self, rows: Any) -> bool:
        return bool(sparse.issparse(rows) == self.sparse_nodes)

    def _in_own_form(self, rows: Any) -> Iterator[tuple[int, Any]]:
        """Yield rows of the other kind in the form of the nodes, in parts: the number of the first and the part."""
        step = max(1, PORTION // self.n_features)
        for first in range(0, rows.shape[0], step):
            part = rows[first : first + step]
            yield first, sparse.csr_array(part) if self.sparse_nodes else part.toarray()


class _Rounds:
    """The order of the attributes in each round of MLCA-C's grouping.

    It is random, but drawn from a generator of its own for each round, so that nothing else can advance it.
    """

    def __init__(self, seed: int, n_features: int) -> None:
        self.seed = seed
        self.n_features = n_features

    def __call__(self, number: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, number]).permutation(self.n_features)


def _csr_parts(rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), np.ascontiguousarray(rows.data, np.float64)

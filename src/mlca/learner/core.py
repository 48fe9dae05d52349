"""The learner: a stream of rows and labels in, a model that can predict out."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.learner.growing import csr_parts, empty_model, with_labels, with_room, writable
from mlca.learner.kernels.bandwidth import median
from mlca.learner.kernels.fixedpoint import SCALE, UNIT
from mlca.learner.kernels.learn import Model, learn
from mlca.learner.kernels.predict import (
    Prepared,
    neighbours_of,
    predict_dense,
    predict_sparse,
)
from mlca.learner.kernels.sparse import SparseNodes
from mlca.learner.kernels.votes import LEARNED, NODES
from mlca.learner.labels import LabelProbabilities, label_probabilities
from mlca.learner.similarity import AttributeGroups, Parameters
from mlca.learner.threads import FEWEST_ROWS, Foresight, Team
from mlca.learner.window import Window


@dataclass(frozen=True)
class Neighbours:
    """The nodes that vote on one instance, nearest first, and their similarity (small is similar)."""

    nodes: NDArray[np.int64]
    similarities: NDArray[np.float64]


class Learner:
    """MLCA, MLCA-I or MLCA-C over numbered labels.

    Parameters
    ----------
    parameters : Parameters
        What the algorithm is told.
    n_features : int
        The number of attributes of an instance.
    sparse_nodes : bool
        Whether nodes are kept sparse.
    """

    def __init__(self, parameters: Parameters, n_features: int, sparse_nodes: bool) -> None:
        self.parameters = parameters
        self.n_features = n_features
        self.n_labels = 0
        self.model: Model = empty_model(n_features, parameters.mode, parameters.n_neighbors, sparse_nodes)
        self.window = Window(parameters.window, n_features)
        self.groups = AttributeGroups()
        self.settings = parameters.settings(n_features)
        # Labels of the instances that wait for the first window to fill.
        self.waiting: list[NDArray[np.int32]] = []
        self._settled: Learner | None = None
        self._probabilities: LabelProbabilities | None = None
        self._scale: float | None = None
        self._foresight: Foresight | None = None
        self._coming = 1

    @property
    def sparse_nodes(self) -> bool:
        """Whether nodes are kept sparse."""
        return isinstance(self.model.nodes, SparseNodes)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.model.tally[NODES])

    @property
    def n_seen(self) -> int:
        """The number of instances that have come, whether learned or waiting."""
        return int(self.model.tally[LEARNED]) + len(self.waiting)

    def learn(
        self,
        rows: Any,
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_labels: int,
        n_jobs: int = 1,
    ) -> None:
        """Learn rows in order; row j has the labels `labels[indptr[j]:indptr[j + 1]]`, all below `n_labels`.

        Several threads look ahead together; the model does not depend on their number.
        """
        team = Team(n_jobs if rows.shape[0] >= FEWEST_ROWS else 1)
        with team:
            self._foresight = Foresight(team, self.settings) if team.size > 1 else None
            self._take_in(rows, indptr, labels, n_labels)
            self._foresight = None

    def _take_in(self, rows: Any, indptr: NDArray[np.int64], labels: NDArray[np.int32], n_labels: int) -> None:
        self._forget_derived()
        self.n_labels = max(self.n_labels, n_labels)
        self.model = with_labels(self.model, self.n_labels)
        done = 0
        while done < rows.shape[0]:
            # Any row still to come may be a node. Room for them costs nothing before it is used.
            self._coming = len(self.waiting) + rows.shape[0] - done
            taken = self.window.take(rows, done)
            if self.window.filled < self.window.size:
                self.waiting += [labels[indptr[j] : indptr[j + 1]].copy() for j in range(done, done + taken)]
            else:
                self._learn_waiting()
                start = indptr[done]
                own = labels[start : indptr[done + taken]]
                self._learn_taken(indptr[done : done + taken + 1] - start, own)
            done += taken

    def settled(self) -> Learner:
        """Return a learner in which every instance that came is learned: this one, or a copy.

        Before the first window is full, the window of the copy is all that has come.
        """
        if not self.waiting:
            return self
        if self._settled is None:
            settled = self.copy()
            settled._learn_waiting()
            self._settled = settled  # only now: threads that predict together must not see it half-way
        return self._settled

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands large arrays to its workers as read-only files, which compiled code would take for
        # another type and compile anew.
        self.__dict__.update(state)
        self.model = writable(self.model)
        self.window.rows = writable(self.window.rows)
        self.groups.set(*map(writable, (self.groups.centres, self.groups.counts, self.groups.bandwidths)))
        self._forget_derived()

    def copy(self) -> Self:
        """Return a learner that goes on by itself from here."""
        twin = copy.copy(self)
        twin._forget_derived()
        twin.model, twin.window, twin.groups, twin.waiting = copy.deepcopy(
            (self.model, self.window, self.groups, self.waiting)
        )
        return twin

    def probabilities(self, rows: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return the probability of every label for every row. The learner must be settled."""
        out = np.empty((rows.shape[0], self.n_labels))
        prepared = Prepared(self.prediction_scale(), self.label_probabilities().posteriors)
        arguments = (self.model, self.groups.sorted, self.settings, prepared)
        parts = _split(rows.shape[0], n_jobs)

        def predict(number: int, n_parts: int) -> None:
            part = parts[number]
            if sparse.issparse(rows):
                some = rows[part]
                indptr, indices = some.indptr.astype(np.int64), some.indices.astype(np.int32)
                predict_sparse(indptr, indices, writable(some.data), self.n_features, *arguments, out[part])
            else:
                predict_dense(writable(rows[part]), *arguments, out[part])

        with Team(len(parts)) as team:
            team.run(predict)
        return out

    def neighbours(self, x: NDArray[np.float64]) -> Neighbours:
        """Return the nodes that vote on one instance. The learner must be settled."""
        r = self.prediction_scale()
        search = neighbours_of(x[None, :], self.model, self.groups.sorted, self.settings, r)
        n = search.lengths[0]
        sums = search.sums[0, :n] * UNIT
        if self.parameters.attributes == "common":
            similarities = np.sqrt(sums / self.n_features)
        elif self.parameters.attributes == "individual":
            similarities = sums / self.n_features
        else:
            similarities = sums / search.grouping.size[0]
        return Neighbours(search.found[0, :n], similarities)

    def label_probabilities(self) -> LabelProbabilities:
        """Return prior, likelihoods and posterior of every label in every bin."""
        if self._probabilities is None:
            self._probabilities = label_probabilities(self.model, self.n_labels, self.parameters.smoothing)
        return self._probabilities

    def prediction_scale(self) -> float:
        """Return r of the common bandwidth when predicting: from the median of the nodes' bandwidths."""
        if self.parameters.attributes != "common":
            return 0.0
        if self._scale is None:
            bandwidths = self.model.bandwidths[: self.n_nodes, 0]
            self._scale = SCALE / median(bandwidths, np.empty_like(bandwidths))
        return self._scale

    def weights(self) -> Any:
        """Return the nodes' weights, one row a node: CSR where nodes are sparse."""
        if not self.sparse_nodes:
            return self.model.nodes.weights[: self.n_nodes]
        return self._csr(self.model.nodes.weights, self.n_features)

    def label_counts(self) -> sparse.csr_array:
        """Return how often each label was learned at each node, one row a node."""
        counts = self._csr(self.model.label_counts, self.n_labels)
        return counts.astype(np.int64)

    def _csr(self, rows: Any, n_columns: int) -> sparse.csr_array:
        indptr, indices, data = csr_parts(rows, self.n_nodes)
        return sparse.csr_array((data, indices, indptr), shape=(self.n_nodes, n_columns))

    def _forget_derived(self) -> None:
        self._settled = None
        self._probabilities = None
        self._scale = None

    def _learn_waiting(self) -> None:
        if self.waiting:
            lengths = [len(own) for own in self.waiting]
            indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
            labels = np.concatenate(self.waiting)
            self.waiting = []
            self._learn_taken(indptr, labels)

    def _learn_taken(self, indptr: NDArray[np.int64], labels: NDArray[np.int32]) -> None:
        """Learn the next rows of the window, those that `indptr` has labels for."""
        first = self.window.learned
        last = first + len(indptr) - 1
        while self.window.learned < last:
            stop = last
            if self.parameters.attributes == "clustered":
                stop = min(last, self._hold_round())
            while self.window.learned < stop:
                rest = indptr[self.window.learned - first :]
                self.window.learned += self._learn_up_to(stop, rest, labels)
                if self.window.learned < stop:
                    own = np.diff(indptr[self.window.learned - first :][:2])
                    self.model = with_room(self.model, self.n_features, int(own[0]), self._coming)

    def _learn_up_to(self, stop: int, indptr: NDArray[np.int64], labels: NDArray[np.int32]) -> int:
        """Learn rows of the window until `stop` or until the model is full; return how many."""
        window, groups = self.window, self.groups.sorted
        if self._foresight is not None:
            done, self.model = self._foresight.learn(window, stop, indptr, labels, self.model, groups)
            return done
        return learn(
            window.rows,
            window.learned,
            stop,
            window.filled,
            indptr,
            labels,
            self.model,
            groups,
            self.settings,
        )

    def _hold_round(self) -> int:
        """Hold a round of grouping if the next instance is due for one; return where the next may be due."""
        size, position = self.window.size, self.window.learned
        number = int(self.model.tally[LEARNED]) + 1
        if number == 1 or number % size == 0:
            self.groups.learn(self.window.around(position), number // size, self.parameters)
        return position + size - number % size


def _split(n_rows: int, n_parts: int) -> list[slice]:
    """Cut rows into parts of about equal size."""
    if n_parts == 1 or n_rows == 1:
        return [slice(0, n_rows)]
    edges = np.linspace(0, n_rows, min(n_parts, n_rows) + 1).astype(int)
    return [slice(low, high) for low, high in pairwise(edges)]

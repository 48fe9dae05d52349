"""The learner: a stream of rows and labels in, a model that can predict out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.learner.mixed import Arrays, as_mixed, as_shown, is_mixed, without_nan
from mlca.learner.parameters import SCREEN_FROM, Parameters

# Rows of the other kind are converted by portions of so many numbers.
PORTION = 2**20

# The matrices of an explanation.
_SHOWN_ROWS = ("voters", "ordinary")

OfNodes: TypeAlias = Literal["all", "none", "weights", "counts", "bandwidths", "label_counts"]


class Answers(NamedTuple):
    """What a learner says of rows.

    Attributes
    ----------
    probabilities : ndarray of shape (n_rows, n_labels)
        The probability of each label.
    none : ndarray of shape (n_rows,) or None
        The probability of having no label; None where Bayes' rule decides.
    fallback : ndarray of shape (n_rows,) or None
        The label of a row that has no likely one, -1 where it needs none or gets none; None where Bayes' rule decides.
    novelty : ndarray of shape (n_rows,) or None
        How unlike everything learned the row is; None where it was not asked for.
    """

    probabilities: NDArray[np.float64]
    none: NDArray[np.float64] | None
    fallback: NDArray[np.int32] | None
    novelty: NDArray[np.float64] | None

    def chosen(self, threshold: float | None = None) -> NDArray[np.bool_]:
        """Choose the labels of each row: those more likely than not.

        A row that has none gets the likeliest, unless it is likelier to have none (where that is known); of equals the
        label that came first. A threshold takes the place of one half, and with it no label is chosen in default.
        """
        likely: NDArray[np.bool_] = self.probabilities > (0.5 if threshold is None else threshold)
        if threshold is None and self.fallback is not None:
            (without,) = (self.fallback >= 0).nonzero()
            if len(without):
                likely[without, self.fallback[without]] = True
        return likely


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
        Whether nodes are shown sparse, and kept so where rows have neither categories nor gaps.
    screen_from : int
        From how many nodes on they are screened; it never changes a result.

    Notes
    -----
    Where there are categories, and from the first gap on, a compiled learner for mixed rows does the work: the same
    numbers, more slowly. It keeps nodes sparse, and knows a gap as MISSING (`mlca.learner.mixed`).
    """

    def __init__(
        self, parameters: Parameters, n_features: int, sparse_nodes: bool, screen_from: int = SCREEN_FROM
    ) -> None:
        mixed = bool(parameters.categorical_features)
        settings = parameters.settings(n_features, screen_from, mixed)
        rounds = _Rounds(parameters.seed, n_features)
        self._set(parameters, n_features, sparse_nodes, mixed, native.Learner(settings, sparse_nodes or mixed, rounds))

    def _set(self, parameters: Parameters, n_features: int, sparse_nodes: bool, mixed: bool, compiled: Any) -> None:
        self._told = parameters
        self.n_features = n_features
        self.sparse_nodes = sparse_nodes
        self._mixed = mixed
        self._compiled = compiled
        self._twin: tuple[int, Learner] | None = None

    @classmethod
    def _of(cls, parameters: Parameters, n_features: int, sparse_nodes: bool, mixed: bool, compiled: Any) -> Self:
        learner = cls.__new__(cls)
        learner._set(parameters, n_features, sparse_nodes, mixed, compiled)
        return learner

    def _sibling(self, compiled: Any) -> Learner:
        return Learner._of(self._told, self.n_features, self.sparse_nodes, self._mixed, compiled)

    @classmethod
    def from_state(
        cls,
        parameters: Parameters,
        n_features: int,
        n_labels: int,
        sparse_nodes: bool,
        state: Arrays,
        screen_from: int = SCREEN_FROM,
        mixed: bool = False,
    ) -> Self:
        """Return a learner that goes on from checked arrays (see `mlca.learner.state`), ready for gaps if `mixed`."""
        mixed = mixed or is_mixed(parameters, state)
        arrays = as_mixed(state, sparse_nodes) if mixed else state
        settings = parameters.settings(n_features, screen_from, mixed)
        rounds = _Rounds(parameters.seed, n_features)
        compiled = native.Learner.restore(settings, sparse_nodes or mixed, rounds, n_labels, arrays)
        return cls._of(parameters, n_features, sparse_nodes, mixed, compiled)

    @property
    def asked_for(self) -> Parameters:
        """What the algorithm was told at first."""
        return self._told

    @property
    def parameters(self) -> Parameters:
        """What the algorithm is told; a vigilance that is found from the first window is a number once that is full."""
        if self._told.vigilance is not None:
            return self._told
        vigilance = float(self._compiled.vigilance)
        return self._told if vigilance < 0 else replace(self._told, vigilance=vigilance)

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
        return self._sibling(self._compiled.settled())

    def copy(self) -> Learner:
        """Return a learner that goes on by itself from here."""
        return self._sibling(self._compiled.copy())

    def answers(self, rows: Any, n_jobs: int = 1, novelty: bool = False) -> Answers:
        """Return what is said of every row. The learner must be settled."""
        n_labels = self.n_labels
        if self._has_own_form(rows):
            return self._judge_part(rows, n_labels, n_jobs, novelty=novelty)
        parts = [self._judge_part(part, n_labels, n_jobs, novelty=novelty) for _, part in self._in_own_form(rows)]
        return Answers._make(map(_joined, zip(*parts, strict=True)))

    def novelty(self, rows: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return how unlike everything learned every row is. The learner must be settled."""
        parts = [(0, rows)] if self._has_own_form(rows) else self._in_own_form(rows)
        said = [self._judge_part(part, 0, n_jobs, probabilities=False, novelty=True) for _, part in parts]
        novelty: NDArray[np.float64] = _joined([answers.novelty for answers in said])
        return novelty

    def explain(self, x: NDArray[np.float64]) -> dict[str, Any]:
        """Return the nodes that vote on one instance, nearest first, and every number up to the probabilities.

        Also what those nodes are (`voters`), and some of all nodes, which tell what is ordinary (`ordinary`): matrices.
        """
        row = x[None, :]
        try:
            if self._keeps_sparse:
                said = dict(self._compiled.explain_sparse(*self._csr_parts(sparse.csr_array(row))))
            else:
                said = dict(self._compiled.explain_dense(np.ascontiguousarray(row)))
        except native.GapsError:
            return self._ready_for_gaps().explain(x)
        if self._mixed:
            said = as_shown(said, self.sparse_nodes, self.n_features, _SHOWN_ROWS)
        return {name: said[name] for name in said if not name.startswith(_SHOWN_ROWS)} | {
            name: rows_in(said, name, self) for name in _SHOWN_ROWS
        }

    def segments(self) -> tuple[tuple[int, float], ...]:
        """Return the node that each segment of the past begins with and its trust, 0 to 1; nothing if none is followed.

        Nodes are counted in the order of their making. Segments with .7 of the highest trust vote.
        """
        if self._told.drift != "follow":
            return ()
        state = self.state("none")
        return tuple(zip(state["drift.first"].tolist(), state["drift.trust"].tolist(), strict=True))

    def absorb(self, other: Learner, columns: NDArray[np.int32], n_labels: int) -> None:
        """Replay the nodes of another learner of the same kind; both must be settled."""
        if other._mixed:
            self._become_ready_for_gaps()
        elif self._mixed:
            other = other._ready_for_gaps()
        self._compiled.absorb(other._compiled, columns, n_labels)

    def state(self, of_nodes: OfNodes = "all") -> Arrays:
        """Return everything that this learner knows as arrays of its own (see `mlca.learner.state`).

        Of what grows with the nodes, one array may be enough, or none: that takes less time and memory.
        """
        arrays: Arrays = self._compiled.state(of_nodes)
        return as_shown(arrays, self.sparse_nodes, self.n_features) if self._mixed else arrays

    def __reduce__(self) -> Any:
        state = self.state()
        n_labels = n_labels_of(state)
        return (Learner.from_state, (self._told, self.n_features, n_labels, self.sparse_nodes, state))

    def __deepcopy__(self, memo: Any) -> Learner:
        return self.copy()

    def __sizeof__(self) -> int:
        """Return the bytes of what is learned as well, which Python does not see; River's measure of memory asks."""
        return object.__sizeof__(self) + sum(array.nbytes for array in self.state().values())

    def _ready_for_gaps(self) -> Learner:
        """Return a learner that knows the same and may be asked about gaps; it is remembered until more is learned."""
        if self._mixed:
            return self
        twin, n_seen = self._twin, self.n_seen
        if twin is None or twin[0] != n_seen:
            state = self.state()
            arguments = (self._told, self.n_features, n_labels_of(state), self.sparse_nodes, state)
            twin = self._twin = (n_seen, Learner.from_state(*arguments, mixed=True))
        return twin[1]

    def _become_ready_for_gaps(self) -> None:
        ready = self._ready_for_gaps()
        self._twin = None
        self._mixed, self._compiled = True, ready._compiled

    def _learn_part(self, rows: Any, indptr: Any, labels: Any, n_labels: int, n_jobs: int) -> None:
        try:
            if self._keeps_sparse:
                self._compiled.learn_sparse(*self._csr_parts(rows), indptr, labels, n_labels, n_jobs)
            else:
                self._compiled.learn_dense(rows, indptr, labels, n_labels, n_jobs)
        except native.GapsError:
            self._become_ready_for_gaps()
            self._learn_part(sparse.csr_array(rows), indptr, labels, n_labels, n_jobs)

    def _judge_part(
        self, rows: Any, n_labels: int, n_jobs: int, probabilities: bool = True, novelty: bool = False
    ) -> Answers:
        """Answer rows that have the form of the nodes; None for what is not wanted or not known."""
        try:
            if self._keeps_sparse:
                parts = self._csr_parts(rows)
                return Answers(*self._compiled.predict_sparse(*parts, n_labels, n_jobs, probabilities, novelty))
            return Answers(*self._compiled.predict_dense(rows, n_labels, n_jobs, probabilities, novelty))
        except native.GapsError:
            return self._ready_for_gaps()._judge_part(sparse.csr_array(rows), n_labels, n_jobs, probabilities, novelty)

    @property
    def _keeps_sparse(self) -> bool:
        return self._mixed or self.sparse_nodes

    def _has_own_form(self, rows: Any) -> bool:
        return isinstance(rows, np.ndarray) != self._keeps_sparse

    def _in_own_form(self, rows: Any) -> Iterator[tuple[int, Any]]:
        """Yield rows of the other kind in the form of the nodes, in parts: the number of the first and the part."""
        step = max(1, PORTION // self.n_features)
        for first in range(0, max(1, rows.shape[0]), step):  # no rows are a part as well: labels may come with them
            part = rows[first : first + step]
            yield first, sparse.csr_array(part) if self._keeps_sparse else part.toarray()

    def _csr_parts(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        values = np.ascontiguousarray(rows.data, np.float64)
        return (
            rows.indptr.astype(np.int64), rows.indices.astype(np.int32), without_nan(values) if self._mixed else values
        )  # fmt: skip


def _joined(parts: Sequence[Any]) -> Any:
    """Return what is said of the rows of all parts; None where nothing is."""
    return None if parts[0] is None else np.concatenate(parts)


def rows_in(arrays: Mapping[str, Any], name: str, learner: Learner) -> Any:
    """Return the rows that some of a learner's arrays are, dense or sparse as its nodes are."""
    if not learner.sparse_nodes:
        return arrays[name]
    indptr, indices, data = (arrays[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, learner.n_features))


def n_labels_of(state: Arrays) -> int:
    """Return how many labels a state knows."""
    return len(state["with"]) if "with" in state else len(state["decision.totals"]) - 1


class _Rounds:
    """The order of the attributes in each round of MLCA-C's grouping.

    It is random, but drawn from a generator of its own for each round, so that nothing else can advance it.
    """

    def __init__(self, seed: int, n_features: int) -> None:
        self.seed = seed
        self.n_features = n_features

    def __call__(self, number: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, number]).permutation(self.n_features)

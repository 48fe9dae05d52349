"""The learner: learns rows one by one, with labels as indices, and predicts rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.learner.parameters import SCREEN_FROM, Parameters
from mlca.options import CELL_LIMITS, CellLimits, Objective

# Names of the matrices in an explanation.
_SHOWN_ROWS = ("voters", "ordinary")

# Number of cells into which linear models divide a numeric feature, as in src/kernels/decision/linear_features.hpp.
N_CELLS = 8

Arrays: TypeAlias = dict[str, NDArray[Any]]
OfNodes: TypeAlias = Literal["all", "none", "weights", "counts", "bandwidths", "label_counts"]


class Answers(NamedTuple):
    """The predictions of a learner for some rows.

    Attributes
    ----------
    probabilities : ndarray of shape (n_rows, n_labels)
        The probability of each label.
    none : ndarray of shape (n_rows,) or None
        The probability of having no label; None with Bayes' rule.
    fallback : ndarray of shape (n_rows,) or None
        The index of the label to predict if no label is likely, -1 to predict none; None with Bayes' rule.
    f1_threshold : ndarray of shape (n_rows,) or None
        The threshold with the best example F1 so far, 0.5 unless `decision="mixed"`; None with Bayes' rule. It differs
        between rows only if another thread learns meanwhile.
    novelty : ndarray of shape (n_rows,) or None
        How unusual each row is, from 0 to 1; None if it was not requested.
    """

    probabilities: NDArray[np.float64]
    none: NDArray[np.float64] | None
    fallback: NDArray[np.int32] | None
    f1_threshold: NDArray[np.float64] | None
    novelty: NDArray[np.float64] | None

    def between(self, start: int, stop: int) -> Answers:
        """Return the predictions for the rows from `start` to `stop`."""
        return Answers._make(part[start:stop] if isinstance(part, np.ndarray) else part for part in self)

    def chosen(
        self, objective: Objective = "exact", threshold: float | NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Choose the labels of each row for an objective.

        Labels above the objective's threshold are chosen. If there are none, the `fallback` label is chosen. If
        `threshold` is given, for all labels or per label, it replaces that of the objective, and rows have no fallback.
        """
        if threshold is not None or objective == "hamming":
            return self.probabilities > (0.5 if threshold is None else threshold)
        of_f1 = self.f1_threshold if objective == "f1" else None
        likely: NDArray[np.bool_] = self.probabilities > (0.5 if of_f1 is None else of_f1[:, None])
        if self.fallback is not None:
            (without,) = (self.fallback >= 0).nonzero()
            if len(without) and of_f1 is not None:  # a fallback is for rows without a label above 0.5
                without = without[~likely[without].any(axis=1)]
            if len(without):
                likely[without, self.fallback[without]] = True
        return likely


def _count(name: str, doc: str) -> Any:
    """Return a property that reads a count of the compiled learner without a Python call."""
    return property(attrgetter(f"_compiled.{name}"), doc=doc)


class Learner:
    """The algorithm MLCA, MLCA-I or MLCA-C, with labels as indices.

    Any number of threads may predict while one learns; no result reflects a partly learned row. Only one thread may
    learn at a time: callers hold `mlca.base.turn_of`.

    Parameters
    ----------
    parameters : Parameters
        The settings of the algorithm.
    n_features : int
        The number of features.
    sparse_nodes : bool
        Whether nodes are stored and returned as sparse matrices.
    screen_from : int
        The number of nodes from which an approximate search (screening) precedes the exact one. It never changes a
        result.
    cell_limits : CellLimits
        The limits of the search by cells; tests pass small numbers.

    Notes
    -----
    Rows may be dense or sparse, with NaN for missing values. With categorical features, and from the first missing
    value on, nodes are stored sparse internally, whatever form is returned. This is slower, with the same results.
    """

    def __init__(
        self,
        parameters: Parameters,
        n_features: int,
        sparse_nodes: bool,
        screen_from: int = SCREEN_FROM,
        cell_limits: CellLimits = CELL_LIMITS,
    ) -> None:
        self.parameters = parameters
        self.n_features = n_features
        self.sparse_nodes = sparse_nodes
        settings = parameters.settings(n_features, screen_from, cell_limits)
        self._compiled = native.Learner(settings, sparse_nodes, _Rounds(parameters.seed, n_features))

    def _sibling(self, compiled: Any) -> Learner:
        learner = Learner.__new__(Learner)
        learner.__dict__ = vars(self) | {"_compiled": compiled}
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
        cell_limits: CellLimits = CELL_LIMITS,
    ) -> Self:
        """Return a learner that continues from checked arrays (`mlca.learner.checking`)."""
        learner = cls(parameters, n_features, sparse_nodes, screen_from, cell_limits)
        learner._compiled.restore(n_labels, state)
        return learner

    n_nodes: int = _count("n_nodes", "The number of nodes.")
    n_labels: int = _count("n_labels", "The number of labels.")
    n_seen: int = _count("n_seen", "The number of rows received, including those that wait for the first window.")

    @property
    def vigilance(self) -> float | None:
        """The vigilance: as given, or estimated from the first window; None until that is full."""
        vigilance = float(self._compiled.vigilance) if self.parameters.vigilance is None else self.parameters.vigilance
        return None if vigilance < 0 else vigilance

    def learn(
        self,
        rows: Any,
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_labels: int,
        n_jobs: int = 1,
    ) -> None:
        """Learn rows in order; row j has the labels `labels[indptr[j]:indptr[j + 1]]`.

        At least `n_labels` labels are known afterwards. `n_jobs` threads search the nodes for upcoming rows, which does
        not change the model. After an interrupt or a failure, the model holds the rows that `n_seen` counts.
        """
        parts = rows if isinstance(rows, np.ndarray) else _csr_parts(rows)
        self._compiled.learn(parts, indptr, labels, n_labels, n_jobs)

    def settled(self) -> Learner:
        """Return this learner or, if rows wait, a read-only copy that has learned them.

        Rows wait until the first window is full. The copy uses the rows received so far as its window.
        """
        if not self._compiled.waits:
            return self
        return self._sibling(self._compiled.settled())

    def copy(self) -> Learner:
        """Return an independent copy."""
        return self._sibling(self._compiled.copy())

    def answers(
        self,
        rows: Any,
        n_jobs: int = 1,
        novelty: bool = False,
        probabilities: bool = True,
    ) -> Answers:
        """Return the predictions for every row. Call it on `settled()` learners only."""
        n_labels = self.n_labels if probabilities else 0
        parts = rows if isinstance(rows, np.ndarray) else _csr_parts(rows)
        return Answers._make(self._compiled.predict(parts, n_labels, n_jobs, probabilities, novelty))

    def novelty(self, rows: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return how unusual each row is, from 0 to 1. Call it on `settled()` learners only."""
        novelty = self.answers(rows, n_jobs, novelty=True, probabilities=False).novelty
        assert novelty is not None
        return novelty

    def explain(self, x: NDArray[np.float64]) -> dict[str, Any]:
        """Return the voters of one row, nearest first, and the steps to its probabilities.

        Two matrices of node positions are included: those of the voters (`voters`), and for comparison those of a
        sample of all nodes (`ordinary`).
        """
        parts = self._compiled.explain(np.ascontiguousarray(x[None, :]))
        return {name: parts[name] for name in parts if not name.startswith(_SHOWN_ROWS)} | {
            name: rows_in(parts, name, self) for name in _SHOWN_ROWS
        }

    def cell_edges(self) -> NDArray[np.float64]:
        """Return, for each feature, the edges of its eight cells in the linear models."""
        state = self.state("none")
        n_knots, starts = int(state["similarity.tally"][1]), state["similarity.knot_starts"].tolist()
        edges = np.zeros((self.n_features, N_CELLS + 1))
        places = np.linspace(0, 1, N_CELLS + 1) * n_knots - 0.5
        for feature, (start, stop) in enumerate(pairwise(starts)):
            counts = np.diff(state["similarity.knot_counts"][start:stop], prepend=0)
            knots = np.repeat(state["similarity.knots"][start:stop], counts)
            if len(knots):
                edges[feature] = np.interp(places, np.arange(len(knots)), knots)
        return edges

    def segments(self) -> tuple[tuple[int, float], ...]:
        """Return the first node and trust (0 to 1) of each segment; empty without drift handling.

        A segment is a run of nodes, which are numbered in order of creation. Its nodes vote only if its trust is at
        least 0.7 of the highest.
        """
        if self.parameters.drift != "follow":
            return ()
        state = self.state("none")
        return tuple(zip(state["drift.first"].tolist(), state["drift.trust"].tolist(), strict=True))

    def with_sparse_nodes(self) -> Learner:
        """Return the same learner with sparse nodes; every result stays the same, to the last bit."""
        if self.sparse_nodes:
            return self
        state = self.state()
        return Learner.from_state(self.parameters, self.n_features, n_labels_of(state), True, _with_sparse_rows(state))

    def absorb(self, other: Learner, columns: NDArray[np.int32], n_labels: int, append: bool = False) -> None:
        """Replay or append the nodes of another learner of the same kind; both must be settled.

        After nodes have been appended, call `learn`, even without rows, to recompute the learned similarity.
        """
        self._compiled.absorb(other._compiled, columns, n_labels, append)

    def state(self, of_nodes: OfNodes = "all") -> Arrays:
        """Return the full state of this learner as copied arrays (see `mlca.learner.checking`).

        `of_nodes` selects which of the arrays that grow with the number of nodes are copied: all, one or none.
        """
        arrays: Arrays = self._compiled.state(of_nodes)
        return arrays

    def __reduce__(self) -> Any:
        state = self.state()
        n_labels = n_labels_of(state)
        return (Learner.from_state, (self.parameters, self.n_features, n_labels, self.sparse_nodes, state))

    def __deepcopy__(self, memo: Any) -> Learner:
        return self.copy()

    def __sizeof__(self) -> int:
        """Return the size in bytes, with the compiled state; River reads it to measure memory."""
        return object.__sizeof__(self) + sum(array.nbytes for array in self.state().values())


def _csr_parts(rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), np.ascontiguousarray(rows.data, np.float64)


def _with_sparse_rows(state: Arrays) -> Arrays:
    """Return a state in which dense rows are replaced by sparse ones."""
    result = dict(state)
    for name in ("weights", "recent"):
        indptr, indices, data = _csr_parts(sparse.csr_array(result.pop(name)))
        result |= {f"{name}.indptr": indptr, f"{name}.indices": indices, f"{name}.data": data}
    return result


def rows_in(arrays: Mapping[str, Any], name: str, learner: Learner) -> Any:
    """Return the rows stored as `name` in a learner's arrays, dense or sparse like its nodes."""
    if not learner.sparse_nodes:
        return arrays[name]
    indptr, indices, data = (arrays[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, learner.n_features))


def n_labels_of(state: Arrays) -> int:
    """Return the number of labels in the state of a learner."""
    return len(state["with"]) if "with" in state else len(state["decision.totals"]) - 1


class _Rounds:
    """A random order of the features for each round of MLCA-C's grouping.

    Each round has its own generator, so its order does not depend on earlier rounds.
    """

    def __init__(self, seed: int, n_features: int) -> None:
        self.seed = seed
        self.n_features = n_features

    def __call__(self, number: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, number]).permutation(self.n_features)

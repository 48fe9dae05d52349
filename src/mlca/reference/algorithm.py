"""The reference classifier: `MLCA.probabilities` predicts a row, `MLCA.learn` learns it."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mlca.options import CELL_LIMITS, CHOICES, CellLimits, Decision, decision_for
from mlca.reference.arithmetic import Floats, sum_in_order
from mlca.reference.decision import BySlot, LocatedRow, background, blended, chosen
from mlca.reference.experts import Calibrated
from mlca.reference.mixed import Mixed
from mlca.reference.node_cells import MOST_FEATURES, NodeCells
from mlca.reference.paper import NONE, Distances, LabelCounters, Memory, Node
from mlca.reference.similarity import LearnedSimilarity, due_after
from mlca.targets import LabelSet, read_targets

# Probabilities are reported inside the open interval from 0 to 1.
SMALLEST, LARGEST = np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0)


@dataclass(kw_only=True, eq=False)
class MLCA:
    """Readable, slow version of `mlca.MLCA` in plain Python, with bit-identical results.

    Parameters and defaults are those of `mlca.MLCA`; parameters for data frames, threads and epochs are missing.
    `cell_limits` determines when the search uses cells; tests pass small numbers.

    Examples
    --------
    >>> from mlca.reference import MLCA
    >>> model = MLCA().partial_fit([[0.0, 1.0], [9.0, 8.0]] * 30, [["calm"], ["storm", "alarm"]] * 30)
    >>> model.predict([[9.0, 9.0]])
    array([[0, 1, 1]])
    """

    similarity: str = "learned"
    decision: Decision = "mixed"
    objective: str = "exact"
    recency: bool = False
    drift: str = "off"
    max_nodes: int | None = None
    search: str = "auto"
    cell_limits: CellLimits = CELL_LIMITS
    categorical_features: Any = "from_dtype"
    vigilance: Any = 0.01
    window: int = 50
    attributes: str = "common"
    rule: str = "published"
    n_neighbors: int = 10
    smoothing: float = 1.0
    vote: str = "counts"
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, not {getattr(self, name)!r}")
        self.decision = decision_for(self.decision, self.similarity)
        if self.decision != "mixed" and self.objective == "f1":
            raise ValueError('objective="f1" needs decision="mixed" with similarity="learned"')
        if self.decision == "bayes" and (self.recency or self.drift == "follow"):
            raise ValueError('recency and drift="follow" need decision="mixed" or "calibrated"')
        self.cell_limits = self.cell_limits.for_voters(self.n_neighbors)
        self.labels_: LabelSet | None = None
        self.nominal_: list[int] = []  # the indices of the categorical features
        self.decision_: Mixed | Calibrated | LabelCounters
        self.waiting_: list[tuple[Floats, list[int]]] | None = []  # the first window's rows; None once it is full
        self.recent_: list[Floats] = []  # the window: the latest rows
        self.similarity_: LearnedSimilarity | None = None
        self.due_ = 1  # number of learned rows after which the similarity is recomputed
        self.node_ids_: set[int] = set()  # IDs of the nodes from which the similarity was computed
        self.cells_: NodeCells | None = None

    # ---- public methods

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn rows in order; y is an indicator matrix, or one list of label names per row."""
        labels, targets = read_targets(y, self.labels_)
        if labels.single:
            raise ValueError("mlca.reference takes an indicator matrix or lists of label names, not a 1-D y")
        rows = self._read(X)
        if len(rows) != targets.n_rows:
            raise ValueError(f"X has {len(rows)} rows, but y has {targets.n_rows}")
        if self.categorical_features is not None and not isinstance(self.categorical_features, str):
            self.nominal_ = list(self.categorical_features)
        whole = (isinstance(j, int | np.integer) and not isinstance(j, bool) for j in self.nominal_)
        if not all(whole) or not all(0 <= j < rows.shape[1] for j in self.nominal_):
            wanted = f"column indices from 0 to {rows.shape[1] - 1}"
            raise ValueError(f"mlca.reference takes categorical_features as {wanted}, not {self.nominal_}")
        self.labels_ = labels
        for x, low, high in zip(rows, targets.indptr[:-1], targets.indptr[1:], strict=True):
            self._receive(x, [column + 1 for column in targets.indices[low:high].tolist()] or [NONE])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each label for each row."""
        model = self.settled()
        rows = [[p.get(i + 1, 0.0) for i in range(model.n_labels_)] for p in map(model.probabilities, model._read(X))]
        result: Floats = np.clip(np.reshape(rows, (len(rows), model.n_labels_)), SMALLEST, LARGEST)
        return result

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the predicted labels of each row as an indicator matrix."""
        model = self.settled()
        sets = [model.choose(model.probabilities(x)) for x in model._read(X)]
        result = np.zeros((len(sets), model.n_labels_), np.int64)
        for k, slots in enumerate(sets):
            result[k, [slot - 1 for slot in slots]] = 1
        return result

    def novelty(self, X: Any) -> Floats:
        """Return for each row the share of learned rows that were nearer to a node on arrival."""
        model = self.settled()
        if isinstance(model.decision_, LabelCounters):
            raise ValueError('novelty needs decision="mixed" or "calibrated"')
        return np.array([model.decision_.novelty.of(model.row(x).found.least()) for x in model._read(X)])

    @property
    def n_labels_(self) -> int:
        """The number of labels."""
        return len(self.labels_.names) if self.labels_ else 0

    @property
    def classes_(self) -> NDArray[Any]:
        """The names of the labels, in the order of their columns."""
        return (self.labels_ or LabelSet(())).to_array()

    def _read(self, X: Any) -> Floats:
        """Return checked rows as a new array of floats."""
        try:
            rows = np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            hint = "mlca.reference takes arrays, lists and sparse matrices of numbers; mlca.MLCA also takes text"
            raise ValueError(f"X holds something other than rows of numbers ({error}); {hint}") from None
        known = self.recent_ or [x for x, _ in self.waiting_ or []]
        if rows.ndim != 2 or (known and rows.shape[1] != len(known[0])):
            wanted = f"rows of {len(known[0])} features" if known else "two dimensions"
            raise ValueError(f"X must have {wanted}, but its shape is {rows.shape}")
        if np.isinf(rows).any():
            raise ValueError("X holds an infinite value; correct it, or leave the row out")
        return rows

    # ---- prediction and learning of one row

    def row(self, x: Floats, learning: bool = False) -> LocatedRow:
        """Return a row with the distances that decide which nodes vote."""
        memory, similarity = self.memory_, self.similarity_
        if self.similarity == "correntropy":
            return LocatedRow(x, memory.distances(x, predicting=not learning), None)
        if similarity is None:  # before the first row
            return LocatedRow(x, Distances([], 1.0, 1, squared=True), None)
        found = similarity.distances(x, memory.nodes)
        if self.cells_:
            found = replace(found, visited=self.cells_.visited(x, memory.nodes))
        return LocatedRow(x, found, similarity)

    def probabilities(self, x: Floats) -> BySlot:
        """Return the probability of each slot for a row; Bayes' rule has none for "no label"."""
        row, decision = self.row(x), self.decision_
        if isinstance(decision, Mixed):  # the default
            return decision.predict(row)[1]
        if isinstance(decision, Calibrated):
            return decision.predict(row)
        near, slots = self._neighbours(row), range(1, self.n_labels_ + 1)
        of_background = background(row, self.memory_, slots)
        posteriors = decision.posteriors(near, slots, self.memory_)
        return {slot: blended(p, slot, of_background) for slot, p in posteriors.items()}

    def choose(self, p: BySlot) -> set[int]:
        """Choose the predicted slots from the probability of each slot."""
        decision, arrived = self.decision_, self.memory_.arrived
        if isinstance(decision, LabelCounters) or self.objective == "hamming":
            return {slot for slot in p if slot != NONE and p[slot] > 0.5}  # eq. (27)
        if isinstance(decision, Calibrated):
            return chosen(p, arrived, threshold=0.5, margin=1.0)
        return chosen(p, arrived, decision.threshold() if self.objective == "f1" else 0.5, decision.margin())

    def learn(self, x: Floats, own: Collection[int]) -> None:
        """Learn a row; `own` holds the slots of its labels."""
        memory, decision = self.memory_, self.decision_
        if self.attributes == "clustered" and (memory.n == 0 or (memory.n + 1) % self.window == 0):
            self._group_features(memory.n + 1)
        # 1. The row is predicted, and the decision is updated with the true labels.
        row = self.row(x, learning=True)
        near = self._neighbours(row)
        if not isinstance(decision, LabelCounters):
            decision.learn(row, own)
        # 2. The row becomes a node, or the nearest node by the paper's distance moves towards it.
        memory.totals |= {slot: memory.totals.get(slot, 0) + 1 for slot in own}
        beta, sigma = dict.fromkeys(own, 1), memory.bandwidth(np.array(self.recent_))
        node = memory.learn(x, beta, memory.distances(x), sigma)
        memory.n += 1
        if self.cells_ and node and node.is_new:
            self.cells_.join(node)
        # 3. The linear models take a step. With Bayes' rule, the row is counted instead; a new node votes for itself.
        if isinstance(decision, LabelCounters):
            decision.learn([node, *near][: self.n_neighbors] if near and node and node.is_new else near, beta)
        else:
            decision.learn_node(row, own, node)
        # 4. The similarity is recomputed from the nodes when it is due.
        if self.similarity == "learned":
            self._learn_similarity()

    def _neighbours(self, row: LocatedRow) -> list[Node]:
        return [self.memory_.nodes[k] for k in row.found.nearest()[: self.n_neighbors]]

    def _learn_similarity(self) -> None:
        """Recompute the similarity after enough rows or, with drift, enough changed nodes."""
        memory, decision = self.memory_, self.decision_
        follows = isinstance(decision, Mixed) and self.drift == "follow"
        nodes = [memory.nodes[k] for k in decision.trusted()] if isinstance(decision, Mixed) else memory.nodes
        ids = {node.node_id for node in nodes}
        if memory.n < self.due_ and not (follows and 4 * len(self.node_ids_ ^ ids) >= len(self.node_ids_)):
            return
        self.similarity_ = similarity = LearnedSimilarity(nodes, memory.nominal)
        self.due_, self.node_ids_, self.cells_ = due_after(memory.n), ids, None
        coarse = similarity.sparse or len(similarity.weights) > MOST_FEATURES
        if self.search != "exact" and self.drift == "off" and not coarse and len(memory.nodes) > self.cell_limits.above:
            self.cells_ = NodeCells(memory.nodes, similarity, self.cell_limits)

    # ---- the first window

    def _receive(self, x: Floats, own: list[int]) -> None:
        """Receive a row: the first `window` rows wait until the window is full."""
        if self.waiting_ is None:
            self.recent_ = [*self.recent_[1:], x]
            self.learn(x, own)
            return
        self.waiting_.append((x, own))
        if len(self.waiting_) == self.window:
            self._begin()

    def settled(self) -> Self:
        """Return this model, or a copy that has learned the rows waiting for the window."""
        if self.waiting_ is None:
            return self
        if not self.waiting_:
            raise NotFittedError("this model has not learned any rows; call partial_fit first")
        settled = copy.copy(self)
        settled._begin()
        return settled

    def _begin(self) -> None:
        """Learn the waiting rows, which form the first window."""
        waiting, self.waiting_ = self.waiting_ or [], None
        self.recent_ = [x for x, _ in waiting]
        settings = self.n_neighbors, self.window, self.attributes, self.rule, self.max_nodes, self.nominal_
        self.memory_ = Memory(0.01, *settings)
        self.vigilance_ = self._auto_vigilance() if self.vigilance == "auto" else self.vigilance
        self.memory_ = Memory(self.vigilance_, *settings)
        if self.decision == "bayes":
            self.decision_ = LabelCounters(self.n_neighbors, self.smoothing, self.vote)
        else:
            kind = Mixed if self.decision == "mixed" else Calibrated
            self.decision_ = kind(self.memory_, self.recency, self.drift == "follow")
        for x, own in waiting:
            self.learn(x, own)

    def _auto_vigilance(self) -> float:
        """Return 0.3 times the window's mean nearest-neighbour distance, but at least 0.01."""
        memory, window = self.memory_, np.array(self.recent_)
        if len(window) < 2:
            return 0.01
        if self.attributes == "clustered":
            self._group_features(0)
        sigma, nearest = memory.bandwidth(window), []
        memory.nodes = [Node(x, 1, {}, sigma, k) for k, x in enumerate(window)]
        for i, x in enumerate(window):
            found = memory.distances(x, predicting=True)
            nearest.append(found.of(min(found.keys[:i] + found.keys[i + 1 :])))
        return max(0.01, 0.3 * (sum_in_order(nearest) / len(nearest)))

    def _group_features(self, number: int) -> None:
        """Group features by their means over the window (MLCA-C); each round has a random order."""
        window = np.array(self.recent_)
        order = np.random.default_rng([self.random_state, number // self.window]).permutation(window.shape[1])
        self.memory_.groups.learn(window, order.tolist(), self.memory_.nominal)

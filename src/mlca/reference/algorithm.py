"""MLCA as a classifier: the path of a row through `paper`, `similarity` and `decision`."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.options import (
    CELL_LIMITS,
    Attributes,
    CellLimits,
    Decision,
    Drift,
    Rule,
    Search,
    Similarity,
    Vote,
    decision_for,
    search_for,
)
from mlca.reference.arithmetic import Floats, sum_in_order
from mlca.reference.decision import BySlot, Calibrated, background, blended
from mlca.reference.mixed import Mixed
from mlca.reference.node_cells import MOST_FEATURES, NodeCells
from mlca.reference.paper import NONE, Distances, LabelCounters, Memory, Node
from mlca.reference.similarity import LearnedSimilarity, due_after
from mlca.targets import LabelSet, read_targets

# Probabilities are reported inside the open interval from 0 to 1.
SMALLEST, LARGEST = np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0)


class MLCA:
    """The algorithm of `mlca.MLCA` in plain Python: slow, readable, and equal to it bit for bit.

    Parameters are those of `mlca.MLCA`, with the same defaults. `categorical_features` lists numbers of columns;
    `cell_limits` are the numbers of nodes from which cells are used.

    Examples
    --------
    >>> from mlca.reference import MLCA
    >>> model = MLCA().partial_fit([[0.0, 1.0], [9.0, 8.0]] * 30, [["calm"], ["storm", "alarm"]] * 30)
    >>> model.predict([[9.0, 9.0]])
    array([[0, 1, 1]])
    """

    def __init__(
        self,
        *,
        vigilance: float | Literal["auto"] = 0.01,
        n_neighbors: int = 10,
        window: int = 50,
        smoothing: float = 1.0,
        similarity: Similarity = "learned",
        decision: Decision = "mixed",
        objective: Literal["exact", "f1", "hamming"] = "exact",
        recency: bool = False,
        drift: Drift = "off",
        max_nodes: int | None = None,
        search: Search = "auto",
        cell_limits: CellLimits = CELL_LIMITS,
        categorical_features: Any = "from_dtype",
        attributes: Attributes = "common",
        rule: Rule = "published",
        vote: Vote = "counts",
        random_state: int = 0,
    ) -> None:
        self.vigilance, self.n_neighbors, self.window, self.smoothing = vigilance, n_neighbors, window, smoothing
        self.similarity, self.decision = similarity, decision_for(decision, similarity)
        self.recency, self.drift = recency, drift
        self.objective = objective
        self.attributes, self.rule, self.vote, self.max_nodes = attributes, rule, vote, max_nodes
        self.search, self.cell_limits = search_for(search, similarity, drift), cell_limits.for_voters(n_neighbors)
        self.random_state = random_state
        has_none = categorical_features is None or isinstance(categorical_features, str)
        self.categorical_features = [] if has_none else [int(j) for j in categorical_features]
        self.labels_: LabelSet | None = None
        self.waiting_: list[tuple[Floats, list[int]]] | None = []  # the first window's rows; None once it is full
        self.recent_: list[Floats] = []  # the window
        self.similarity_: LearnedSimilarity | None = None
        self.due_ = 1  # the similarity is computed after this row
        self.node_ids_: set[int] = set()  # the nodes that it was computed from
        self.cells_: NodeCells | None = None

    # ---- public methods

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn rows in order; y is an indicator matrix, or one list of label names per row."""
        labels, targets = read_targets(y, self.labels_)
        if labels.single:
            raise ValueError("mlca.reference takes an indicator matrix or lists of label names, not a 1-D y")
        self.labels_ = labels
        for x, low, high in zip(_dense(X), targets.indptr[:-1], targets.indptr[1:], strict=True):
            self._receive(x, [slot + 1 for slot in targets.indices[low:high].tolist()] or [NONE])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each label for each row."""
        model = self.settled()
        rows = [[p.get(i + 1, 0.0) for i in range(model.n_labels_)] for p in map(model.probabilities, _dense(X))]
        result: Floats = np.clip(rows, SMALLEST, LARGEST)
        return result

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the predicted labels of each row as an indicator matrix."""
        model = self.settled()
        chosen = [model.choose(model.probabilities(x)) for x in _dense(X)]
        return np.array([[int(i + 1 in slots) for i in range(model.n_labels_)] for slots in chosen])

    def novelty(self, X: Any) -> Floats:
        """Return, for each row, the share of learned rows that were nearer to their nearest node when they arrived."""
        model = self.settled()
        found = map(model.distances, _dense(X))
        return np.array([model.decision_.novelty.of(each.of(each.keys[each.nearest()[0]])) for each in found])

    @property
    def n_labels_(self) -> int:
        """The number of labels."""
        return len(self.labels_.names) if self.labels_ else 0

    @property
    def classes_(self) -> NDArray[Any]:
        """The names of the labels, in the order of their columns."""
        return (self.labels_ or LabelSet(())).to_array()

    # ---- the first window

    def _receive(self, x: Floats, own: list[int]) -> None:
        """Receive a row: the first `window` rows wait until the window is full."""
        if self.waiting_ is None:
            self.recent_ = [*self.recent_[1:], x]
            self._learn(x, own)
            return
        self.waiting_.append((x, own))
        if len(self.waiting_) == self.window:
            self._begin()

    def _begin(self) -> None:
        """Learn the waiting rows, which form the first window."""
        waiting, self.waiting_ = self.waiting_ or [], None
        self.recent_ = [x for x, _ in waiting]
        self.vigilance_ = self._auto_vigilance() if self.vigilance == "auto" else self.vigilance
        self.memory_ = self._new_memory(self.vigilance_)
        self.counters_ = LabelCounters(self.n_neighbors, self.smoothing, self.vote)
        follows = self.drift == "follow"
        self.decision_ = (
            Mixed(self.recency, follows, self.objective)
            if self.decision == "mixed"
            else Calibrated(self.recency, follows)
        )
        for x, own in waiting:
            self._learn(x, own)

    def settled(self) -> Self:
        """Return a model that has learned all rows: this one, or a copy that does not wait for a full window."""
        if self.waiting_ is None:
            return self
        twin = copy.copy(self)
        twin._begin()
        return twin

    def _new_memory(self, vigilance: float) -> Memory:
        return Memory(
            vigilance,
            self.n_neighbors,
            self.window,
            self.attributes,
            self.rule,
            self.max_nodes,
            self.categorical_features,
        )

    def _auto_vigilance(self) -> float:
        """Return 0.3 times the mean distance of a row of the first window from its nearest other row, or 0.01."""
        if len(self.recent_) < 2:
            return 0.01
        memory, window = self._new_memory(0.01), np.array(self.recent_)
        if self.attributes == "clustered":
            self._group_features(memory, number=0)
        sigma, nearest = memory.bandwidth(window), []
        memory.nodes = [Node(x, 1, {}, sigma, k) for k, x in enumerate(self.recent_)]
        for i, x in enumerate(self.recent_):
            found = memory.distances(x, predicting=True)
            nearest.append(found.of(min(found.keys[:i] + found.keys[i + 1 :])))
        return max(0.01, 0.3 * (sum_in_order(nearest) / len(nearest)))

    def _group_features(self, memory: Memory, number: int) -> None:
        """Group the features by their means over the window (MLCA-C), in an order drawn for each round."""
        window = np.array(self.recent_)
        order = np.random.default_rng([self.random_state, number // self.window]).permutation(window.shape[1])
        memory.groups.learn(window, order.tolist(), self.categorical_features)

    # ---- one row

    def distances(self, x: Floats, predicting: bool = True) -> Distances:
        """Return the distances that decide which nodes vote."""
        if self.similarity == "learned":
            nodes = self.memory_.nodes
            if not self.similarity_:
                return Distances([], 1e7, 10**7, squared=True)
            found = self.similarity_.distances(x, nodes)
            return replace(found, visited=self.cells_.visited(x, nodes)) if self.cells_ else found
        return self.memory_.distances(x, predicting)

    def _learn(self, x: Floats, own: Collection[int]) -> None:
        """Learn one row; `own` holds the slots of its labels."""
        memory, number = self.memory_, self.memory_.n + 1
        if self.attributes == "clustered" and (number == 1 or number % self.window == 0):
            self._group_features(memory, number)
        # 1. The decision is updated with the prediction that would have been made.
        voting = self.distances(x, predicting=False)
        if self.decision != "bayes":
            self.decision_.learn(x, own, voting, memory, self.similarity_)
        for slot in own:
            memory.totals[slot] = memory.totals.get(slot, 0) + 1
        # 2. The row becomes a node or moves one, by the paper's distance.
        beta, near = dict.fromkeys(own, 1), [memory.nodes[k] for k in voting.nearest()[: self.n_neighbors]]
        node, is_new = memory.learn(x, beta, memory.distances(x), np.array(self.recent_))
        memory.n += 1
        if self.cells_ and node and is_new:
            self.cells_.join(node)
        # 3. The label counters of Bayes' rule, for which a new node already votes; or the decision's own state of
        # nodes.
        if self.decision == "bayes":
            self.counters_.learn([node, *near][: self.n_neighbors] if near and node and is_new else near, beta)
        else:
            self.decision_.learn_node(x, own, node, is_new, memory, self.similarity_)
        # 4. The similarity is recomputed from the nodes.
        nodes = self.decision_.counted(memory)
        if self.similarity == "learned" and self._similarity_is_due(nodes):
            self.similarity_ = LearnedSimilarity(nodes, self.categorical_features)
            self.due_, self.node_ids_ = due_after(memory.n), {node.node_id for node in nodes}
            self.cells_ = self._new_cells(self.similarity_)

    def _new_cells(self, similarity: LearnedSimilarity) -> NodeCells | None:
        """Return the cells of the nodes if there are enough nodes to use cells, otherwise None."""
        nodes = self.memory_.nodes
        if self.search == "exact" or len(nodes) <= self.cell_limits.above:
            return None
        has_none = similarity.sparse or len(similarity.weights) > MOST_FEATURES
        return None if has_none else NodeCells(nodes, similarity, self.cell_limits)

    def _similarity_is_due(self, nodes: Sequence[Node]) -> bool:
        """Return whether enough rows arrived or, with `drift="follow"`, whether a quarter of the nodes changed."""
        if self.memory_.n >= self.due_:
            return True
        follows = self.decision == "mixed" and self.drift == "follow"
        return follows and 4 * len(self.node_ids_ ^ {node.node_id for node in nodes}) >= len(self.node_ids_)

    def probabilities(self, x: Floats) -> BySlot:
        """Return slot -> probability; with the calibrated decision also of "no label"."""
        found = self.distances(x)
        if self.decision != "bayes":
            return self.decision_.probabilities(x, found, self.memory_, self.similarity_)
        near = [self.memory_.nodes[k] for k in found.nearest()[: self.n_neighbors]]
        slots = range(1, self.n_labels_ + 1)
        of_background = background(self.similarity_, x, self.memory_, slots)
        posteriors = self.counters_.posteriors(near, slots, self.memory_)
        return {slot: blended(p, slot, of_background) for slot, p in posteriors.items()}

    def choose(self, p: BySlot) -> set[int]:
        """Return the slots that are predicted."""
        if self.decision == "bayes":
            return {slot for slot in p if p[slot] > 0.5}  # eq. (27)
        return self.decision_.choose(p, [slot for slot in self.memory_.totals if slot != NONE])


def _dense(X: Any) -> Floats:
    """Return rows as a new array of floats."""
    return np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64, ndmin=2)

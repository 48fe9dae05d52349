"""MuENL: linear classifiers that rank label pairs, and a detector of new labels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from mlca.base import Rows, StreamClassifier
from mlca.peers.muenl_forest import Forest, TreeShape
from mlca.peers.muenl_ranking import PairwiseRanking, linear_scores
from mlca.peers.scoring import ScoreClassifier
from mlca.targets import LabelRows, LabelSet
from mlca.validation import check_choice, check_real, check_whole

Gradient: TypeAlias = Literal["reference", "exact"]

REFINING_SWEEPS = 5


class Observation(NamedTuple):
    """The result of `MuENL.observe`."""

    labels: NDArray[np.int64]
    is_new: NDArray[np.bool_]


class MuENL(ScoreClassifier, StreamClassifier):
    """Multi-label learning with emerging new labels.

    Every label has a linear classifier. Its cost has three terms: its own hinge loss, a hinge loss on every pair of a
    relevant and an irrelevant label of a row, weighted by `lambda1`, and the squared norm of its weights, weighted by
    `lambda2`. Labels with a score above 0 are predicted.

    `partial_fit` learns more labelled rows and new labels. `observe` processes rows without labels: a forest of
    random trees detects rows in regions without known rows, and once `buffer_size` of them have arrived they become a
    new label.

    Parameters
    ----------
    lambda1 : float, default=1.0
        Weight of the pairwise ranking loss. Larger values lower the ranking loss, but also subset accuracy.
    lambda2 : float, default=1e-4
        Weight of the squared norm, bias included.
    sweeps : int, default=20
        The number of passes over the labels (the paper's I).
    steps : int, default=10
        Gradient steps per label and sweep.
    gradient : {"reference", "exact"}, default="reference"
        The descent direction: that of the released code, or the exact gradient of the cost.
    n_trees, tree_rows : int, default=100, 128
        The number of trees of the detector, and of rows drawn for each.
    max_height, min_leaf : int, default=5, 4
        The largest height of a tree, whose root has height 1, and the smallest number of rows in a leaf.
    feature_columns, score_columns : int, default=5, 3
        The numbers of random columns that a split considers: of the features, and of the classifiers' scores.
    split_tries : int, default=10
        Random splits tried before a node becomes a leaf.
    radius_ratio : float, default=1.0
        A row is new to a tree if its distance from the centre of its leaf exceeds this multiple of the leaf's radius.
    detection_threshold : float, default=0.5
        The share of trees above which a row is assumed to have a new label.
    buffer_size : int, default=50
        The number of new rows from which a new label is created.
    pool_size : int, default=5000
        The largest number of stored rows, a uniform sample of all rows.
    random_state : int, RandomState or None, default=0
        Seed of the initial weights, the trees and the stored rows.

    Attributes
    ----------
    weights_ : ndarray of shape (n_labels, n_features + 1)
        One classifier per row, the bias last.
    classes_ : ndarray of shape (n_labels,)
        The names of the labels.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    With n rows, d features and q labels, learning takes O(sweeps steps n q (d + q)) time and
    O((n + q)(d + q)) memory; each later `partial_fit` makes five sweeps over the stored and the new rows. The forest
    takes O(n_trees tree_rows max_height d) time and is grown when it is first needed. The cost of sparse rows depends
    on their non-zeros, except in the forest, which converts them to dense rows.

    The authors' package is not available. The classifier and the forest follow a port of it; the processing of a stream
    follows the paper. Several new labels that appear at the same time become one. Initial weights lie between 0 and 1,
    which is too large if features are in the hundreds: scale such features first.

    References
    ----------
    .. [1] Y. Zhu, K. M. Ting and Z.-H. Zhou, "Multi-label learning with emerging new labels", IEEE
       Transactions on Knowledge and Data Engineering 30 (10), 1901-1914, 2018.

    Examples
    --------
    >>> from mlca.peers import MuENL
    >>> X = [[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.0]]
    >>> model = MuENL(lambda1=0.1).fit(X, [{"low"}, {"low"}, {"high"}, {"high"}])
    >>> model.predict_labels([[0.1, 0.1], [0.9, 0.9]])
    [{'low'}, {'high'}]
    >>> model.decision_function([[0.1, 0.1]]).round(3)
    array([[ 1.153, -0.933]])
    """

    weights_: NDArray[np.float64]

    def __init__(
        self,
        lambda1: float = 1.0,
        lambda2: float = 1e-4,
        sweeps: int = 20,
        *,
        steps: int = 10,
        gradient: Gradient = "reference",
        n_trees: int = 100,
        tree_rows: int = 128,
        max_height: int = 5,
        min_leaf: int = 4,
        feature_columns: int = 5,
        score_columns: int = 3,
        split_tries: int = 10,
        radius_ratio: float = 1.0,
        detection_threshold: float = 0.5,
        buffer_size: int = 50,
        pool_size: int = 5000,
        random_state: Any = 0,
    ) -> None:
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.sweeps = sweeps
        self.steps = steps
        self.gradient = gradient
        self.n_trees = n_trees
        self.tree_rows = tree_rows
        self.max_height = max_height
        self.min_leaf = min_leaf
        self.feature_columns = feature_columns
        self.score_columns = score_columns
        self.split_tries = split_tries
        self.radius_ratio = radius_ratio
        self.detection_threshold = detection_threshold
        self.buffer_size = buffer_size
        self.pool_size = pool_size
        self.random_state = random_state

    def observe(self, X: Any) -> Observation:
        """Predict unlabelled rows in order, and learn a new label once enough rows are new.

        New rows wait in a buffer with the labels predicted for them. When there are `buffer_size` of them, they become
        the positive rows of a new label, named by its column index if the known labels are numbered, otherwise
        "new label 1" and so on.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, in order of arrival.

        Returns
        -------
        Observation
            `labels`, an indicator matrix with a column for every label known at the end; rows predicted
            before a label was learned have 0 there. `is_new`, whether each row was assumed to have
            a label that was unknown at that time.
        """
        self._check_parameters()
        rows = self._fitted()._read_known_rows(X)
        if self.labels_.single:
            raise ValueError("observe() adds new labels to label sets, but the model learned a 1-D y; fit label sets")
        judged: list[NDArray[np.uint8]] = []
        is_new = np.zeros(rows.shape[0], dtype=np.bool_)
        start = 0
        while start < rows.shape[0]:
            # Predict all remaining rows with the current state, but use only those up to the one that fills the buffer.
            ahead = rows[start:]
            labels = (self._scores(ahead) > 0).astype(np.uint8)
            found = np.flatnonzero(self._novelty(ahead) > self.detection_threshold)
            n_free = max(1, self.buffer_size - self._buffered)
            stop = int(found[n_free - 1]) + 1 if len(found) >= n_free else ahead.shape[0]
            found = found[found < stop]
            judged.append(labels[:stop])
            is_new[start + found] = True
            if len(found):
                self._buffer.append((ahead[found], labels[found]))
            if self._buffered >= self.buffer_size:
                self._name_buffer()
            start += stop
        width = len(self.labels_.names)
        return Observation(np.vstack([_widened(block, width) for block in judged]).astype(np.int64), is_new)

    def novelty(self, X: Any) -> NDArray[np.float64]:
        """Return the share of the detector's trees that classify each row as new.

        The model does not change.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Between 0 and 1.
        """
        return self._novelty(self._fitted()._read_known_rows(X))

    def _check_parameters(self) -> None:
        check_real("lambda1", self.lambda1, at_least=0)
        check_real("lambda2", self.lambda2, at_least=0)
        check_choice("gradient", self.gradient, get_args(Gradient))
        check_real("radius_ratio", self.radius_ratio, at_least=0)
        check_real("detection_threshold", self.detection_threshold, at_least=0, at_most=1)
        check_whole("min_leaf", self.min_leaf, at_least=1)
        for name in (
            "sweeps",
            "steps",
            "n_trees",
            "tree_rows",
            "max_height",
            "feature_columns",
            "score_columns",
            "split_tries",
            "buffer_size",
            "pool_size",
        ):
            check_whole(name, getattr(self, name), at_least=1)

    def _begin(self, n_features: int, sparse_rows: bool) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        # Each purpose has its own random source, so that building the forest does not affect the weights.
        self._weight_rng = np.random.default_rng(int(seed))
        self._forest_rng, self._pool_rng = self._weight_rng.spawn(2)
        self.weights_ = np.empty((0, n_features + 1))
        self._pool: Rows = sparse.csr_array((0, n_features)) if sparse_rows else np.empty((0, n_features))
        self._pool_labels = np.empty((0, 0), dtype=np.uint8)
        self._pool_keys = np.empty(0)
        self._forest: Forest | None = None
        self._buffer: list[tuple[Rows, NDArray[np.uint8]]] = []

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        """Learn labelled rows together with the stored ones."""
        first = len(self._pool_keys) == 0
        n_known, n_labels = len(self.weights_), targets.n_labels
        rows = _stacked([self._pool, rows])
        labels = np.vstack([_widened(self._pool_labels, n_labels), targets.to_dense()])
        fresh = self._weight_rng.random((n_labels - n_known, self.weights_.shape[1]))
        problem = PairwiseRanking(
            rows,
            np.where(labels, 1.0, -1.0),
            np.vstack([self.weights_, fresh]),
            self.lambda1,
            self.lambda2,
            self.gradient == "exact",
        )
        if first:
            problem.sweep(self.sweeps, self.steps)
        else:
            for label in range(n_known, n_labels):
                self._introduce(problem, label)
            problem.sweep(REFINING_SWEEPS, self.steps)
        self.weights_ = problem.weights
        self._remember(rows, labels)

    def _introduce(self, problem: PairwiseRanking, label: int) -> None:
        """Optimise the weights of a new label while those of all others stay fixed."""
        problem.balance(label)
        for _ in range(self.sweeps):
            if problem.descend(label, self.steps):
                break

    def _remember(self, rows: Rows, labels: NDArray[np.uint8]) -> None:
        """Store the rows with the smallest random keys, one key per row: a uniform sample."""
        n_rows = len(labels)
        keys = np.append(self._pool_keys, self._pool_rng.random(n_rows - len(self._pool_keys)))
        kept = np.arange(n_rows)
        if n_rows > self.pool_size:
            kept = np.sort(np.argpartition(keys, self.pool_size)[: self.pool_size])
        self._pool, self._pool_labels, self._pool_keys = rows[kept], labels[kept], keys[kept]
        self._forest = None

    def _name_buffer(self) -> None:
        """Learn the buffered rows with a new label and the known labels predicted for them."""
        names = self.labels_.names
        self.labels_ = LabelSet((*names, _new_name(self.labels_)))
        rows = _stacked([block for block, _ in self._buffer])
        known = np.vstack([_widened(block, len(names)) for _, block in self._buffer])
        labels = sparse.csr_array(np.hstack([known, np.ones((len(known), 1), dtype=np.uint8)]))
        self._buffer = []
        n_labels = len(names) + 1
        targets = LabelRows(labels.indptr.astype(np.int64), labels.indices.astype(np.int32), n_labels, n_labels)
        self._learn(rows, targets)

    @property
    def _buffered(self) -> int:
        return sum(len(labels) for _, labels in self._buffer)

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        return linear_scores(rows, self.weights_)

    def _novelty(self, rows: Rows) -> NDArray[np.float64]:
        if self._forest is None:
            shape = TreeShape(
                sample=self.tree_rows,
                height=self.max_height,
                min_leaf=self.min_leaf,
                feature_columns=self.feature_columns,
                score_columns=self.score_columns,
                tries=self.split_tries,
            )
            scores = self._scores(self._pool)
            self._forest = Forest(self._pool, scores, self.n_trees, shape, self._forest_rng)
        return self._forest.novelty(rows, self._scores(rows), self.radius_ratio)


def _stacked(blocks: list[Any]) -> Rows:
    """Stack rows; the result is sparse if the first rows are sparse."""
    if sparse.issparse(blocks[0]):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    return np.vstack([block.toarray() if sparse.issparse(block) else block for block in blocks])


def _widened(labels: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Add columns of zeros on the right: labels that were unknown when these rows arrived."""
    return np.pad(labels, ((0, 0), (0, width - labels.shape[1])))


def _new_name(labels: LabelSet) -> int | str:
    if labels.numbered:
        return len(labels.names)
    count = 1
    while f"new label {count}" in labels.names:
        count += 1
    return f"new label {count}"

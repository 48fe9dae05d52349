"""MLSA-kNN: nearest neighbours in a window over a stream; window, k and voters adapt."""

from __future__ import annotations

from math import floor
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mlca.base import Rows, StreamClassifier
from mlca.peers.mlsaknn_window import Window
from mlca.targets import LabelRows
from mlca.validation import check_choice, check_real, check_whole

Metric: TypeAlias = Literal["subset accuracy", "hamming score"]

_CHOICES_OF_K = np.array([1, 3, 5, 7])


class MLSAkNN(StreamClassifier):
    """Multi-label self-adjusting k nearest neighbours.

    A window holds the latest rows of the stream, and the nearest of them vote on each label. Three
    things adapt when the true labels of a row become known. Each label has its own k of 1, 3, 5 or 7,
    the one that was right most often recently. A row with a wrong vote on a label may not vote on that label until it
    would have been right again, and a row with too many wrong votes is deleted. The window shrinks to a half, a
    quarter, ... of its rows when these alone would have predicted better, as after concept drift.

    Distances are Euclidean on features scaled by their ranges so far, which always include zero.

    `partial_fit` first compares the labels of each row with the window's prediction (feedback), and then adds the row.
    `predict` changes nothing; call it before `partial_fit` on each row for a fair test.

    Parameters
    ----------
    m_max : int, default=1000
        The largest number of rows in the window. Between calls, it holds at most `m_max` - 1.
    k_adj_max : int, default=100
        The number of latest rows from which each label chooses its k.
    m_min : int, default=50
        The window is not shrunk while it has fewer than 2 `m_min` rows.
    penalty : float, default=1
        A row is deleted when its wrong votes exceed `penalty` times the number of labels; `np.inf` for never.
    reduction : float, default=0.5
        The ratio between successive window sizes that are tried.
    metric : {"subset accuracy", "hamming score"}, default="subset accuracy"
        The measure by which a shorter window must be better.
    reference : bool, default=True
        Whether to follow the authors' program, which the paper's comparison used. In it, rows that are
        moved within the window may share a mask of labels, deleted rows leave some distances in the wrong place, and
        test results of deleted rows are kept. With False, each row has its own mask, and distances and results move
        with their rows.

    Attributes
    ----------
    window_size_ : int
        The number of rows in the window.
    k_ : ndarray of shape (n_labels,)
        The number of neighbours that vote on each label.
    feedback_votes_ : ndarray of shape (n_labels,)
        The votes on the last learned row, counted while masks were updated, as the authors' program reports them. They
        differ from the `predict_proba` of that row only if rows share masks. An update with the true labels then also
        removes votes of other rows.
    classes_ : ndarray of shape (n_labels,)
        The names of the labels.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    With m rows in the window, d features and q labels, a row takes O(m d + m log m + q m) time, and
    O(q m²) when the tests of a shorter window are repeated. The window takes
    O(m_max (m_max + d + q)) memory for streams of any length: 10 MB with the defaults.

    A new label counts as absent, and as predicted to be absent, in all earlier rows.

    References
    ----------
    .. [1] M. Roseberry, B. Krawczyk, Y. Djenouri and A. Cano, "Self-adjusting k nearest neighbors for
       continual learning from multi-label drifting data streams", Neurocomputing 442, 10-25, 2021.

    Examples
    --------
    A stream whose labels swap their meaning half-way, tested on each row before it is learned:

    >>> import numpy as np
    >>> from mlca.peers import MLSAkNN
    >>> X = np.random.default_rng(0).random((400, 2))
    >>> Y = X > 0.5
    >>> Y[200:] = ~Y[200:]
    >>> model = MLSAkNN(m_max=200, k_adj_max=20).partial_fit(X[:1], Y[:1])
    >>> right = [True]
    >>> for x, y in zip(X[1:, None], Y[1:, None]):
    ...     right.append((model.predict(x) == y).all())
    ...     model = model.partial_fit(x, y)
    >>> [float(np.mean(quarter)) for quarter in np.split(np.array(right), 4)]
    [0.82, 0.93, 0.31, 0.91]
    """

    _accepts_sparse = False

    def __init__(
        self,
        m_max: int = 1000,
        k_adj_max: int = 100,
        m_min: int = 50,
        penalty: float = 1,
        reduction: float = 0.5,
        metric: Metric = "subset accuracy",
        reference: bool = True,
    ) -> None:
        self.m_max = m_max
        self.k_adj_max = k_adj_max
        self.m_min = m_min
        self.penalty = penalty
        self.reduction = reduction
        self.metric = metric
        self.reference = reference

    @property
    def window_size_(self) -> int:
        """The number of rows in the window."""
        return self._window.size

    def _check_parameters(self) -> None:
        check_whole("m_max", self.m_max, at_least=2)
        check_whole("k_adj_max", self.k_adj_max, at_least=1)
        check_whole("m_min", self.m_min, at_least=1)
        if self.penalty != np.inf:
            check_real("penalty", self.penalty, at_least=0)
        check_real("reduction", self.reduction, above=0, below=1)
        check_choice("metric", self.metric, get_args(Metric))

    def _begin(self, n_features: int, sparse_rows: bool) -> None:
        self._window = Window(self.m_max, n_features, shared_masks=self.reference)
        self._low = np.zeros(n_features)
        self._high = np.zeros(n_features)
        self.k_ = np.empty(0, dtype=np.int64)
        self._records = _Records(self.k_adj_max)
        self._tests: dict[int, NDArray[np.int64]] = {}

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        self._widen(targets.n_labels)
        for i in range(targets.n_rows):
            truth = np.zeros(targets.n_labels, dtype=np.uint8)
            truth[targets.indices[targets.indptr[i] : targets.indptr[i + 1]]] = 1
            self._take_feedback(rows[i], truth)
            self._add(rows[i], truth)

    def _widen(self, n_labels: int) -> None:
        n_new = n_labels - len(self.k_)
        if n_new == 0:
            return
        self._window.widen(n_new)
        self._records.widen(n_new)
        self.k_ = np.append(self.k_, np.full(n_new, 3))
        self._tests = {start: n_right + n_new for start, n_right in self._tests.items()}

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        votes = np.empty((rows.shape[0], len(self.k_)))
        for i, x in enumerate(rows):
            votes[i] = self._window.votes(self._by_distance(x), self.k_)
        return votes

    def _decide(self, probabilities: NDArray[np.float64], rows: Rows) -> NDArray[np.bool_]:
        return probabilities >= 0.5

    def _by_distance(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return window positions by distance to x, nearest first; ties go to the later row."""
        distances = self._window.distances_to(x, self._low, self._high)
        return len(distances) - 1 - np.argsort(distances[::-1], kind="stable")

    def _take_feedback(self, x: NDArray[np.float64], truth: NDArray[np.uint8]) -> None:
        """Update which rows may vote, and choose each label's k for the next rows."""
        self.feedback_votes_, was_right = self._window.judge_voters(self._by_distance(x), self.k_, truth)
        self._records.add(was_right)
        self.k_ = self._records.best_k()

    def _add(self, x: NDArray[np.float64], truth: NDArray[np.uint8]) -> None:
        np.minimum(self._low, x, out=self._low)
        np.maximum(self._high, x, out=self._high)
        self._window.append(x, truth, self._low, self._high)
        self._delete_misleading_rows()
        self._shrink_to_best_size()
        if self._window.is_full:
            self._remove(0)

    def _delete_misleading_rows(self) -> None:
        too_many = self.penalty * len(self.k_)
        for position in np.flatnonzero(self._window.errors_by_position > too_many)[::-1]:
            self._remove(int(position))

    def _remove(self, position: int) -> None:
        self._window.remove(position)
        if not self.reference:
            self._tests = {
                start - (start > position): np.delete(n_right, position - start)
                if start <= position < start + len(n_right)
                else n_right
                for start, n_right in self._tests.items()
            }

    def _shrink_to_best_size(self) -> None:
        """Shrink the window to the size that predicts its own rows best; ties go to the largest."""
        size = self._window.size
        if size < 2 * self.m_min:
            return
        starts = [size - shorter for shorter in self._sizes(size)]
        self._test_windows(starts)
        scores = [self._score(self._tests[start]) for start in starts]
        start = starts[int(np.argmax(scores))]
        if start > 0:
            self._window.drop_oldest(start)
            self._tests = {s - start: n_right for s, n_right in self._tests.items() if s >= start}

    def _sizes(self, size: int) -> list[int]:
        sizes = [size]
        while sizes[-1] >= 2 * self.m_min:
            sizes.append(max(1, floor(self.reduction * sizes[-1])))
        return sizes

    def _test_windows(self, starts: list[int]) -> None:
        """Update the number of correctly predicted labels of each row, for each window size."""
        kept = {start: n_right for start, n_right in self._tests.items() if start in starts}
        self._tests = {}
        for start in starts:
            known = kept.get(start, np.empty(0, dtype=np.int64))
            first = start + len(known)
            latest = self._window.test_rows(start, first, self.k_, from_scratch=start not in kept)
            self._tests[start] = np.append(known, latest)

    def _score(self, n_right: NDArray[np.int64]) -> float:
        if self.metric == "subset accuracy":
            n_right = n_right == len(self.k_)
        return float(n_right.mean())


class _Records:
    """The values of k that were right for each label in the latest rows."""

    def __init__(self, length: int) -> None:
        self.right = np.zeros((0, len(_CHOICES_OF_K), length), dtype=np.uint8)
        self.n_right = np.zeros((0, len(_CHOICES_OF_K)), dtype=np.int64)
        self.n_rows = np.zeros(0, dtype=np.int64)

    def widen(self, n_new: int) -> None:
        """Add new labels, without any history."""
        self.right = np.pad(self.right, ((0, n_new), (0, 0), (0, 0)))
        self.n_right = np.pad(self.n_right, ((0, n_new), (0, 0)))
        self.n_rows = np.pad(self.n_rows, (0, n_new))

    def add(self, was_right: NDArray[np.uint8]) -> None:
        """Store the results of the latest row, and drop the oldest ones if the window is full."""
        label = np.arange(len(self.n_rows))
        place = self.n_rows % self.right.shape[2]
        self.n_right += was_right
        self.n_right -= self.right[label, :, place]
        self.right[label, :, place] = was_right
        self.n_rows += 1

    def best_k(self) -> NDArray[np.int64]:
        """Return for each label the k that was right most often; ties go to the smallest."""
        best: NDArray[np.int64] = _CHOICES_OF_K[np.argmax(self.n_right, axis=1)]
        return best

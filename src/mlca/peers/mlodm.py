"""mlODM: a kernel machine that optimises the distribution of margins of label pairs."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.utils import check_random_state, gen_batches

from mlca.base import Rows
from mlca.kernels import native
from mlca.peers.scoring import BLOCK_CELLS, ScoreClassifier
from mlca.targets import LabelRows
from mlca.validation import check_choice, check_real, check_whole

Kernel: TypeAlias = Literal["rbf", "linear", "precomputed"]

GIB = 2**30


class MLODM(ScoreClassifier):
    """Multi-label optimal margin distribution machine.

    A margin is the difference between the scores of a relevant and an irrelevant label of a row. Instead of pushing all
    margins above a bound, as Rank-SVM does, the machine moves them into the band from `1 - theta` to `1 + theta`. The
    loss is quadratic below the band, and `mu` times as large above it. This keeps the mean margin near 1 and the
    variance low. A row gets the labels whose score reaches its threshold, which is learned by least squares.

    Parameters
    ----------
    theta : float, default=0.5
        Half the width of the band in which a margin costs nothing, from 0 to below 1.
    mu : float, default=0.3
        Cost of a margin above the band relative to one below.
    C : float, default=1.0
        Cost of margins outside the band relative to the norm of the weights.
    gamma : float, default=0.5
        Coefficient of the "rbf" kernel, `exp(-gamma |x - x'|^2)`. Scale features to [0, 1].
    max_sweeps : int, default=4
        The largest number of passes over the rows (the paper's I).
    kernel : {"rbf", "linear", "precomputed"}, default="rbf"
        With "precomputed", X is the kernel matrix: between all training rows in `fit`, and between other rows and all
        training rows afterwards.
    tol : float, default=1e-6
        Training stops after a sweep in which nothing changed by more than this.
    max_gib : float, default=2.0
        Largest total size of the kernel and the pair weights, in GiB; 2 GiB are enough for about 16,000 rows.
    random_state : int, RandomState or None, default=0
        Seed of the order in which rows are visited; it has a small effect until the optimum is reached.

    Attributes
    ----------
    dual_ : ndarray of shape (n_kept, n_labels)
        The contribution of each row with at least one pair to each label's weights; rows sum to 0.
    threshold_ : ndarray of shape (n_labels + 1,)
        A row's threshold is the dot product of its scores and the first entries, plus the last entry.
    primal_, dual_value_ : float
        The two objectives at the end. The optimum lies between them: their gap bounds the gain from further sweeps.
    n_sweeps_ : int
        The number of sweeps.
    classes_ : ndarray of shape (n_labels,)
        The names of the labels.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    With n rows, d features, q labels and r pairs of a relevant and an irrelevant label in all rows, learning takes O(n²
    d) time for the kernel and O(n² q + r) per sweep, and 8 (n² + r) bytes; if this exceeds `max_gib`, `fit` raises an
    error. Each prediction takes O(n (d + q)) time.

    The authors' package is not available. The dual is derived from the published formulation; the optimum is unique, so
    results may differ only if training stops after few sweeps. Rows with no label or with all of them have no pair and
    are left out, and there is no bias, as in Rank-SVM.

    References
    ----------
    .. [1] Z.-H. Tan, P. Tan, Y. Jiang and Z.-H. Zhou, "Multi-label optimal margin distribution machine",
       Machine Learning 109, 623-642, 2020.

    Examples
    --------
    With one row and two labels, the dual weight at the optimum is 4 (0.5 - margin).

    >>> from mlca.peers import MLODM
    >>> model = MLODM(theta=0.5, C=1.0, kernel="linear").fit([[1.0]], [[1, 0]])
    >>> model.decision_function([[1.0]]).round(6)
    array([[ 0.222222, -0.222222]])
    >>> model.predict([[1.0]])
    array([[1, 0]])
    """

    dual_: NDArray[np.float64]
    threshold_: NDArray[np.float64]
    primal_: float
    dual_value_: float
    n_sweeps_: int

    def __init__(
        self,
        theta: float = 0.5,
        mu: float = 0.3,
        C: float = 1.0,
        gamma: float = 0.5,
        max_sweeps: int = 4,
        *,
        kernel: Kernel = "rbf",
        tol: float = 1e-6,
        max_gib: float = 2.0,
        random_state: Any = 0,
    ) -> None:
        self.theta = theta
        self.mu = mu
        self.C = C
        self.gamma = gamma
        self.max_sweeps = max_sweeps
        self.kernel = kernel
        self.tol = tol
        self.max_gib = max_gib
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_real("theta", self.theta, at_least=0, below=1)
        check_real("mu", self.mu, above=0)
        check_real("C", self.C, above=0)
        check_real("gamma", self.gamma, above=0)
        check_whole("max_sweeps", self.max_sweeps, at_least=1)
        check_choice("kernel", self.kernel, get_args(Kernel))
        check_real("tol", self.tol, above=0)
        check_real("max_gib", self.max_gib, above=0)

    def _read_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        """Check rows; before training, check that label pairs exist and fit into memory."""
        rows = super()._read_rows(X, targets)
        if self.kernel == "precomputed" and sparse.issparse(rows):
            raise ValueError("a precomputed kernel must be a dense array; X is sparse: use X.toarray()")
        if targets is not None:
            if self.kernel == "precomputed" and rows.shape[0] != rows.shape[1]:
                raise ValueError(f"a precomputed kernel must be square for training; got the shape {rows.shape}")
            self._check_size(_pair_counts(targets))
        return rows

    def _check_size(self, pairs: NDArray[np.int64]) -> None:
        n_kept, n_pairs = np.count_nonzero(pairs), int(pairs.sum())
        if n_kept == 0:
            raise ValueError(
                "mlODM learns from rows that have some of the labels, but not all; here each row has none or all, as "
                "with one class: add rows that have some"
            )
        size = 8 * (n_kept**2 + n_pairs) / GIB
        if size > self.max_gib:
            raise ValueError(
                f"the kernel of {n_kept} x {n_kept} rows and {n_pairs} label pairs take {size:.3g} GiB, more "
                f"than max_gib={self.max_gib}: learn a sample of the rows, or raise max_gib"
            )

    def _begin(self, n_features: int, sparse_rows: bool) -> None:
        pass  # `_learn` initialises everything

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        pairs = _pair_counts(targets)
        kept = np.flatnonzero(pairs)
        relevant = targets.to_dense()[kept] > 0
        self._kept = kept
        self._kept_rows: Rows | None = None if self.kernel == "precomputed" else rows[kept]
        scores = self._descend(self._kernel(rows[kept]), relevant, pairs[kept])
        design = np.column_stack([scores, np.ones(len(scores))])
        # Scores of a row sum to 0, so several weight vectors give the same thresholds: lstsq takes the shortest.
        shortest = np.linalg.lstsq(design, best_cuts(scores, relevant), rcond=None)[0]
        self.threshold_ = np.asarray(shortest, dtype=np.float64)

    def _descend(
        self, kernel: NDArray[np.float64], relevant: NDArray[np.bool_], pairs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Solve the dual by visiting rows in random order; return the scores of the training rows."""
        costs = np.asarray(self.C / (pairs * (1.0 - self.theta) ** 2), dtype=np.float64)
        starts = np.append(0, np.cumsum(pairs))
        weights = np.zeros(starts[-1])
        self.dual_ = np.zeros(relevant.shape)
        scores = np.zeros(relevant.shape)
        rng = check_random_state(self.random_state)
        for sweep in range(self.max_sweeps):
            order = rng.permutation(len(kernel))
            moved = native.visit_rows(
                order,
                kernel,
                relevant,
                costs,
                starts,
                self.theta,
                self.mu,
                self.tol,
                weights,
                self.dual_,
                scores,
            )
            self.n_sweeps_ = sweep + 1
            if moved < self.tol:
                break
        self.primal_, self.dual_value_ = native.objectives(
            relevant, costs, starts, self.theta, self.mu, weights, self.dual_, scores
        )
        return scores

    def _kernel(self, rows: Rows) -> NDArray[np.float64]:
        """Return the kernel matrix between rows and the training rows that were kept."""
        if self.kernel == "precomputed":
            return np.ascontiguousarray(rows[:, self._kept])
        if self.kernel == "linear":
            products: NDArray[np.float64] = linear_kernel(rows, self._kept_rows, dense_output=True)
            return products
        similarities: NDArray[np.float64] = rbf_kernel(rows, self._kept_rows, gamma=self.gamma)
        return similarities

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        scores = np.empty((rows.shape[0], self.dual_.shape[1]))
        for block in gen_batches(rows.shape[0], max(1, BLOCK_CELLS // len(self.dual_))):
            scores[block] = self._kernel(rows[block]) @ self.dual_
        return scores

    def _margins(self, rows: Rows) -> NDArray[np.float64]:
        scores = self._scores(rows)
        thresholds = scores @ self.threshold_[:-1] + self.threshold_[-1]
        margins: NDArray[np.float64] = scores - thresholds[:, None]
        return margins

    def _decide(self, probabilities: NDArray[np.float64], rows: Rows) -> NDArray[np.bool_]:
        """Choose the labels whose score reaches the threshold of their row."""
        return probabilities >= 0.5

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; with a precomputed kernel, columns are training rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _pair_counts(targets: LabelRows) -> NDArray[np.int64]:
    """Return the number of pairs of a relevant and an irrelevant label in each row."""
    relevant = np.diff(targets.indptr)
    counts: NDArray[np.int64] = relevant * (targets.n_labels - relevant)
    return counts


def best_cuts(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for each row the threshold with the fewest errors; ties go to the lowest.

    Candidates lie 0.1 below the lowest score, half-way between adjacent scores, and 0.1 above the highest.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    candidates = np.column_stack([ranked[:, 0] - 0.1, (ranked[:, :-1] + ranked[:, 1:]) / 2, ranked[:, -1] + 0.1])
    # Moving the cut above one more label makes one more error if that label is relevant, one less if not.
    steps = np.where(np.take_along_axis(relevant, order, axis=1), 1, -1)
    errors = np.column_stack([np.zeros(len(scores), dtype=np.int64), np.cumsum(steps, axis=1)])
    cuts: NDArray[np.float64] = candidates[np.arange(len(scores)), np.argmin(errors, axis=1)]
    return cuts

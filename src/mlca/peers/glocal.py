"""GLOCAL: a latent space that preserves global and local label correlations."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from threadpoolctl import threadpool_limits

from mlca.base import Rows
from mlca.peers.glocal_factors import Factors, Penalties, settled
from mlca.peers.scoring import ScoreClassifier
from mlca.targets import LabelRows
from mlca.validation import check_choice, check_real, check_whole

Cost: TypeAlias = Literal["reference", "consistent"]

PHASE_TOLERANCES = (1e-3, 1e-6)


class GLOCAL(ScoreClassifier):
    """Multi-label learning with global and local label correlation.

    The label matrix is factored into `U` (for labels) and `V` (for rows), each with `k` latent columns, while `W` is
    learned to predict `V` from the features. The scores of a row x are `x W U'`, and labels with a positive score are
    predicted. Correlated labels get similar scores: over all rows with weight `lambda3`, and within each of `g` groups
    of similar rows with weight `lambda4`. The correlations are also learned. Cells of the label matrix may be unknown.

    Parameters
    ----------
    lambda3 : float, default=1e-3
        Weight of the global correlation.
    lambda4 : float, default=1e-5
        Weight of the local correlations.
    lambda1 : float, default=1.0
        Weight of the error of predicting V from the features.
    lambda2 : float, default=0.125
        Weight of the squared norms of U, V and W.
    k : int, default=20
        The number of latent columns; may exceed the number of labels.
    g : int, default=3
        The number of groups of rows, found by k-means.
    rank : int, default=20
        The number of columns of the factor of each group's correlation matrix.
    max_rounds : int, default=15
        The largest number of rounds over the factors in each of two phases: without and with correlations.
    max_steps : int, default=60
        The largest number of gradient steps per factor and round.
    cost : {"reference", "consistent"}, default="reference"
        The cost in the line search of U and W in the second phase. "reference" is the released code's cost, which uses
        spectral norms instead of Frobenius norms and lacks the factors 1/2; "consistent" is the objective itself.
    random_state : int, RandomState or None, default=0
        Seed of the groups and of the initial factors. The solution is a local optimum and depends on it.

    Attributes
    ----------
    U_ : ndarray of shape (n_labels, k)
        The labels in the latent space.
    W_ : ndarray of shape (n_features, k)
        The map from features to the latent space.
    losses_ : list of float
        The loss after each round: the weighted sum of the squared errors V U' - Y and V - X W.
    classes_ : ndarray of shape (n_labels,)
        The names of the labels.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    With n rows, d features and q labels, learning takes O(n (d + q) k) time per gradient step, with up to 2
    `max_rounds` `max_steps` steps for each factor, and O((n + d + q) k + n q) memory. Only products with X are
    computed, never a feature-by-feature matrix, so d may be in the thousands; the cost of sparse rows depends on their
    non-zeros. Each prediction takes O((d + q) k) time.

    The line search amplifies rounding errors without bound: on another computer, or with the rows in another order, the
    factors differ but are equally good.

    There is no intercept: features should be scaled, and a constant column added if needed. `lambda3` and `lambda4` are
    named as in the paper; the released code calls them lambda2 and lambda1. As in that code, all weights are rescaled
    by the numbers of rows, labels and features.

    References
    ----------
    .. [1] Y. Zhu, J. T. Kwok and Z.-H. Zhou, "Multi-label learning with global and local label
       correlation", IEEE Transactions on Knowledge and Data Engineering 30 (6), 1081-1094, 2018.

    Examples
    --------
    >>> from mlca.peers import GLOCAL
    >>> X = [[1.0, 0.0, 1.0], [0.9, 0.1, 1.0], [0.1, 1.0, 1.0], [0.0, 0.8, 1.0]]
    >>> model = GLOCAL(k=2, g=1).fit(X, [{"sea", "sun"}, {"sea", "sun"}, {"snow"}, {"snow"}])
    >>> model.predict_labels([[0.0, 1.0, 1.0]])
    [{'snow'}]
    >>> model.decision_function([[0.0, 1.0, 1.0]]).round(2)
    array([[-0.96, -0.96,  0.96]])
    """

    U_: NDArray[np.float64]
    W_: NDArray[np.float64]
    losses_: list[float]

    def __init__(
        self,
        lambda3: float = 1e-3,
        lambda4: float = 1e-5,
        lambda1: float = 1.0,
        lambda2: float = 0.125,
        k: int = 20,
        g: int = 3,
        *,
        rank: int = 20,
        max_rounds: int = 15,
        max_steps: int = 60,
        cost: Cost = "reference",
        random_state: Any = 0,
    ) -> None:
        self.lambda3 = lambda3
        self.lambda4 = lambda4
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.k = k
        self.g = g
        self.rank = rank
        self.max_rounds = max_rounds
        self.max_steps = max_steps
        self.cost = cost
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, observed: Any = None) -> Self:
        """Train a new model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        Y : indicator matrix, iterables of label names, or 1-D array
            Their labels.
        observed : array-like of shape (n_samples, n_labels), optional
            1 for known cells of the label matrix, 0 for unknown ones, where Y is ignored.

        Returns
        -------
        self
        """
        self._observed = None if observed is None else _read_mask(observed)
        try:
            return super().fit(X, Y)
        finally:
            del self._observed

    def _check_parameters(self) -> None:
        for name in ("lambda1", "lambda2", "lambda3", "lambda4"):
            check_real(name, getattr(self, name), at_least=0)
        for name in ("k", "g", "rank", "max_rounds", "max_steps"):
            check_whole(name, getattr(self, name), at_least=1)
        check_choice("cost", self.cost, get_args(Cost))

    def _read_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        """Check rows; before training, also check the labels and the mask of known cells."""
        rows = super()._read_rows(X, targets)
        if targets is not None and targets.n_labels == 0:
            raise ValueError("GLOCAL factorises the label matrix, but no row of y has a label: add rows with labels")
        if targets is not None and self._observed is not None:
            wanted = (targets.n_rows, targets.n_labels)
            if self._observed.shape != wanted:
                raise ValueError(f"`observed` has shape {self._observed.shape}, but the labels have {wanted}")
        return rows

    def _begin(self, n_features: int, sparse_rows: bool) -> None:
        pass  # `_learn` initialises everything

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        rng = check_random_state(self.random_state)
        groups = find_groups(rows, self.g, rng)
        n_groups = int(groups.max()) + 1
        (n_rows, n_features), n_labels = rows.shape, targets.n_labels
        n_known = n_rows * n_labels if self._observed is None else int(self._observed.sum())
        penalties = self._rescaled(n_known, n_rows, n_features, n_labels, n_groups)
        signed = np.where(targets.to_dense(), 1.0, -1.0)
        factors = Factors(rows, signed, self._observed, groups, penalties, self.max_steps)
        factors.V = rng.random_sample((n_rows, self.k))
        factors.U = rng.random_sample((n_labels, self.k))
        factors.W = np.zeros((n_features, self.k))
        factors.Z = [rng.random_sample((n_labels, self.rank)) for _ in range(n_groups)]
        # The matrices are narrow: threads would mostly wait, and their number would affect the rounding.
        with threadpool_limits(1):
            self.losses_ = self._alternate(factors)
        self.U_, self.W_ = factors.U, factors.W

    def _rescaled(self, n_known: int, n_rows: int, n_features: int, n_labels: int, n_groups: int) -> Penalties:
        """Return the weights, rescaled by the sizes of the matrices as in the released code."""
        return Penalties(
            latent=self.lambda1 * n_known / (self.k * n_rows),
            overall=self.lambda3 * n_known / n_rows**2,
            local=self.lambda4 * n_known / (n_rows / n_groups) ** 2,
            U=self.lambda2 * n_known / (n_labels * self.k),
            V=self.lambda2 * n_known / (n_rows * self.k),
            W=self.lambda2 * n_known / (n_features * self.k),
        )

    def _alternate(self, factors: Factors) -> list[float]:
        """Improve the factors in turn, without and then with correlations; return the losses."""
        first: list[float] = []
        while len(first) < self.max_rounds and not settled(first, PHASE_TOLERANCES[0]):
            factors.improve_U(correlated=False)
            factors.improve_V()
            factors.improve_W(correlated=False)
            first.append(factors.loss())
        second: list[float] = []
        reference = self.cost == "reference"
        while len(second) < self.max_rounds and not settled(second, PHASE_TOLERANCES[1]):
            factors.improve_Z()
            factors.improve_V()
            factors.improve_U(correlated=True, reference=reference)
            factors.improve_W(correlated=True, reference=reference)
            second.append(factors.loss())
        return first + second

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = (rows @ self.W_) @ self.U_.T
        return scores


def find_groups(rows: Rows, n_groups: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return the group of each row by k-means; groups are numbered from 0 and none is empty."""
    with warnings.catch_warnings():
        # With fewer distinct rows than groups, some groups are empty; these are dropped.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(min(n_groups, rows.shape[0]), n_init=1, random_state=rng).fit_predict(rows)
    groups: NDArray[np.int64] = np.unique(found, return_inverse=True)[1]
    return groups


def _read_mask(observed: Any) -> NDArray[np.float64]:
    mask: NDArray[np.float64] = check_array(observed, dtype=np.float64, input_name="observed")
    if not np.all((mask == 0) | (mask == 1)):
        raise ValueError("`observed` must hold only 1, for known labels, and 0, for unknown ones")
    if not mask.any():
        raise ValueError("`observed` marks no label as known; mark at least one with 1")
    return mask

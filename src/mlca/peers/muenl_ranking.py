"""Training of MuENL's linear classifiers, with hinge loss and pairwise ranking loss.

Labels are optimised in turn: gradient descent updates the weights of one label while the others stay fixed. The scores
of all rows are stored, so a step takes one product with the rows for the gradient and one for the direction. The line
search needs no further products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlca.base import Rows
from mlca.kernels import native

ENOUGH_DESCENT = 1e-4
SHORTEST_STEP = 1e-12
FLAT = 1e-3


class PairwiseRanking:
    """The cost of each label's weights on the training rows, and its minimisation.

    Parameters
    ----------
    rows : ndarray or sparse array of shape (n_rows, n_features)
        The rows to learn.
    targets : ndarray of shape (n_rows, n_labels)
        +1 where the row has the label, -1 elsewhere.
    weights : ndarray of shape (n_labels, n_features + 1)
        One classifier per row, the bias last. Changed in place.
    lambda1, lambda2 : float
        Weights of the ranking loss and of the squared norm.
    exact : bool
        Whether to use the gradient of the cost rather than that of the released code.
    """

    def __init__(
        self,
        rows: Rows,
        targets: NDArray[np.float64],
        weights: NDArray[np.float64],
        lambda1: float,
        lambda2: float,
        exact: bool,
    ) -> None:
        self.rows = rows
        self.targets = targets
        self.weights = weights
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.exact = exact
        self.scores = linear_scores(rows, weights)
        self._even = np.ones(len(targets))
        self._emphasis: dict[int, NDArray[np.float64]] = {}

    def balance(self, label: int) -> None:
        """Weight a label's cost so that rows with and without the label have equal total weight."""
        positive = self.targets[:, label] > 0
        count = np.count_nonzero(positive)
        if 0 < count < len(positive):
            n_rows = len(positive)
            self._emphasis[label] = np.where(positive, n_rows / (2 * count), n_rows / (2 * (n_rows - count)))

    def cost(self, label: int) -> float:
        """Return the cost of a label's weights while those of the others stay fixed."""
        return self._cost(label, self.weights[label], self.scores[:, label])

    def _cost(self, label: int, weights: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
        importance = self._emphasis.get(label, self._even)
        loss = native.ranking_loss(
            label, np.ascontiguousarray(scores), self.scores, self.targets, importance, self.lambda1
        )
        return loss + self.lambda2 * float(weights @ weights)

    def gradient(self, label: int) -> NDArray[np.float64]:
        """Return the gradient of a label's cost, or by default the released code's direction.

        With q labels, the released code divides the ranking part by q rather than q - 1, and omits the factor 2 of the
        squared norm.
        """
        n_labels = self.targets.shape[1]
        sharing = max(1, n_labels - 1) if self.exact else n_labels
        importance = self._emphasis.get(label, self._even)
        pull = native.ranking_pull(label, self.scores, self.targets, importance, self.lambda1 / sharing)
        norm_part = (2.0 if self.exact else 1.0) * self.lambda2 * self.weights[label]
        gradient: NDArray[np.float64] = norm_part - np.append(self.rows.T @ pull, pull.sum())
        return gradient

    def descend(self, label: int, steps: int) -> bool:
        """Take gradient steps with backtracking for one label; return whether its cost is flat."""
        cost = self.cost(label)
        for _ in range(steps):
            gradient = self.gradient(label)
            steepness = float(gradient @ gradient)
            if steepness <= FLAT**2:
                return True
            slope = linear_scores(self.rows, gradient[None])[:, 0]
            step = 1.0
            while True:
                weights = self.weights[label] - step * gradient
                scores = self.scores[:, label] - step * slope
                lower = self._cost(label, weights, scores)
                if lower <= cost - ENOUGH_DESCENT * step * steepness:
                    break
                step /= 2
                if step < SHORTEST_STEP:
                    return False
            self.weights[label] = weights
            self.scores[:, label] = scores
            cost = lower
        return False

    def sweep(self, times: int, steps: int) -> None:
        """Optimise all labels in turn, `times` times, with the latest scores of the others."""
        for _ in range(times):
            for label in range(len(self.weights)):
                self.descend(label, steps)


def linear_scores(rows: Rows, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of rows under weights whose last entry is the bias."""
    scores: NDArray[np.float64] = rows @ weights[:, :-1].T + weights[:, -1]
    return scores

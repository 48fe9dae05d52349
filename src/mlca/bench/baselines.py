"""Baselines for the workloads: plain NumPy, scikit-learn's NearestNeighbors and River."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors


class PlainNumPy:
    """The paper's MLCA, with one common bandwidth, in NumPy without loops over nodes."""

    def __init__(self, vigilance: float, n_neighbors: int = 10, window: int = 50) -> None:
        self.vigilance, self.n_neighbors, self.window = vigilance, n_neighbors, window

    def fit(self, X: NDArray[np.float64], Y: NDArray[np.uint8]) -> PlainNumPy:
        """Learn rows in order."""
        n, d = X.shape
        q = Y.shape[1]
        self.weights, self.counts = np.empty((n, d)), np.zeros(n)
        self.labels, self.bandwidths = np.zeros((n, q)), np.empty(n)
        self.with_, self.without = np.zeros((q, self.n_neighbors + 1)), np.zeros((q, self.n_neighbors + 1))
        self.n_nodes = 0
        for i in range(n):
            self._learn(X, i, Y[i])
        return self

    def _learn(self, X: NDArray[np.float64], i: int, row_labels: NDArray[np.uint8]) -> None:
        k, x = self.n_nodes, X[i]
        if k == 0:
            self._add(X, i, row_labels)
            return
        s = self.bandwidths[:k].mean()
        sums = (1.0 - np.exp(-((self.weights[:k] - x) ** 2) / (2 * s * s))).sum(axis=1)
        n = min(self.n_neighbors, k)
        nearest = np.argpartition(sums, n - 1)[:n]
        nearest = nearest[np.argsort(sums[nearest])]
        limit = self.vigilance**2 * len(x)
        if sums[nearest[0]] > limit:
            self._add(X, i, row_labels)
            nearest = np.concatenate(([k], nearest))[: self.n_neighbors]
        else:
            self._move(x, row_labels, nearest, n > 1 and bool(sums[nearest[1]] <= limit))
        self._count(row_labels, nearest)

    def _add(self, X: NDArray[np.float64], i: int, row_labels: NDArray[np.uint8]) -> None:
        d = X.shape[1]
        window = X[max(0, i - self.window + 1) : max(i + 1, min(self.window, len(X)))]
        deviations = window.std(axis=0, ddof=1)
        deviations[np.ptp(window, axis=0) == 0] = 1e-6
        scale = (4 / (2 + d)) ** (1 / (4 + d)) * len(window) ** (-1 / (4 + d))
        k = self.n_nodes
        self.weights[k], self.labels[k], self.counts[k] = X[i], row_labels, 1
        self.bandwidths[k] = np.median(scale * deviations)
        self.n_nodes += 1

    def _move(self, x: NDArray[np.float64], row_labels: NDArray[np.uint8], nearest: NDArray[Any], second: bool) -> None:
        winner = nearest[0]
        self.labels[winner] += row_labels
        self.weights[winner] += (x - self.weights[winner]) / self.counts[winner]
        self.counts[winner] += 1
        if second:
            runner_up = nearest[1]
            step = self.n_neighbors * self.counts[runner_up]
            self.weights[runner_up] += (x - self.weights[runner_up]) / step

    def _count(self, row_labels: NDArray[np.uint8], nearest: NDArray[Any]) -> None:
        votes = self.labels[nearest].sum(axis=0)
        n, largest = len(nearest), votes.max()
        bins = np.floor(n * votes / largest + 0.5).astype(int) if largest else np.zeros(len(votes), int)
        if n == 1:
            bins[:] = self.n_neighbors
        labels = np.arange(len(votes))
        has = row_labels == 1
        self.with_[labels[has], bins[has]] += 1
        self.without[labels[~has], bins[~has]] += 1


def brute_force(metric: str, X: NDArray[np.float64], n_jobs: int) -> Any:
    """Return scikit-learn's brute-force search for the ten nearest rows, fitted to X."""
    return NearestNeighbors(n_neighbors=10, algorithm="brute", metric=metric, n_jobs=n_jobs).fit(X)


def river_models() -> dict[str, Any]:
    """Return River's multi-label models and `mlca.river`; empty if River is not installed."""
    try:
        from river import linear_model, multioutput, tree
    except ImportError:
        return {}
    from mlca.river import MLCAClassifier

    return {
        "mlca.river": MLCAClassifier(similarity="correntropy", decision="bayes"),
        "mlca.river, our rule": MLCAClassifier(),
        "River, logistic per label": multioutput.PerOutputClassifier(linear_model.LogisticRegression()),
        "River, classifier chain": multioutput.ClassifierChain(linear_model.LogisticRegression()),
        "River, Hoeffding trees": multioutput.PerOutputClassifier(tree.HoeffdingTreeClassifier()),
    }


def river_rows(X: NDArray[np.float64], Y: NDArray[np.uint8]) -> list[tuple[dict[int, float], dict[int, bool]]]:
    """Return each row in River's format: a dict of features and a dict of labels."""
    return [(dict(enumerate(x.tolist())), dict(enumerate(map(bool, y.tolist())))) for x, y in zip(X, Y, strict=True)]

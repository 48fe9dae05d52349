"""Active learning: which rows to label next, and which labels to check.

`query` and `suspicious_labels` find neighbours by Euclidean distance. They need only public attributes of a model:
`prototypes_`, `counts_` and `label_counts_`; `query` also needs `predict_proba`. First, `_Places` divides each feature
by its standard deviation over the nodes or, if most entries of the nodes are zero, scales each row to length 1. Missing
values are replaced by the feature's mean (0 if most entries are zero), and categories are one-hot encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from mlca.frames import as_table, is_frame, rows_of
from mlca.validation import check_whole

__all__ = ["SuspiciousLabel", "query", "suspicious_labels"]

# Largest number of candidate rows; all distances between them are stored.
MOST_CANDIDATES = 2000
# Number of neighbours that vote on a node's labels, and weight of a label's overall frequency in the vote.
VOTERS = 20
PRIOR_VOTES = 3.0


def query(model: Any, X: Any, n: int) -> NDArray[np.intp]:
    """Choose the rows whose labels would improve a model most.

    The rule is *uncertainty coverage*. Each row has an uncertainty, the entropy of its probabilities summed over the
    labels, and a distance to the nearest node. Labelling a row brings other rows nearer to a node. Rows are chosen one
    after another: each is the row that most reduces the sum of uncertainty times distance. A chosen row is therefore
    uncertain or near uncertain rows, far from the learned rows, and unlike the rows chosen before. Outliers are rarely
    chosen, because labelling an outlier brings no other row nearer to a node.

    Parameters
    ----------
    model : MLCA
        The model, or another object with `predict_proba` and `prototypes_`. It is not changed.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Rows without labels. If there are more than 2,000, only 2,000 evenly spaced rows are considered.
    n : int
        The number of rows to choose.

    Returns
    -------
    ndarray of shape (n,)
        Indices of the chosen rows of X, the most informative first. Fewer than `n` if X has fewer rows.

    Examples
    --------
    The model has learned two of three clusters, so a row from the third is chosen:

    >>> import numpy as np
    >>> from mlca import MLCA
    >>> from mlca.active import query
    >>> rng = np.random.default_rng(0)
    >>> known = np.repeat([[0.0, 0.0], [5.0, 0.0]], 30, axis=0) + rng.normal(size=(60, 2))
    >>> model = MLCA().fit(known, [["left"]] * 30 + [["right"]] * 30)
    >>> waiting = np.repeat([[0.0, 0.0], [5.0, 0.0], [2.5, 9.0]], 20, axis=0) + rng.normal(size=(60, 2))
    >>> bool(query(model, waiting, 1)[0] >= 40)
    True
    """
    check_whole("n", n, at_least=1)
    table = as_table(X)
    framed = is_frame(table)
    rows = _matrix(rows_of(model, table) if framed else X)
    candidates = np.linspace(0, rows.shape[0] - 1, min(rows.shape[0], MOST_CANDIDATES)).round().astype(np.intp)
    if not len(candidates):
        return candidates
    rows = rows[candidates]
    asked = table.iloc[candidates] if framed else rows  # a model with named columns predicts only named columns
    uncertainty = _entropy(np.asarray(model.predict_proba(asked))).reshape(len(candidates), -1).sum(axis=1)
    places = _Places(model)
    spots, nodes = places.positions(rows), places.positions(_matrix(model.prototypes_))
    nearest = NearestNeighbors(n_neighbors=1).fit(nodes).kneighbors(spots)[0][:, 0]
    chosen = _cover(euclidean_distances(spots), nearest, uncertainty, min(n, len(candidates)))
    return candidates[chosen]


def _cover(
    between: NDArray[np.float64], nearest: NDArray[np.float64], weights: NDArray[np.float64], n: int
) -> list[int]:
    """Choose n rows one by one, each time the one that most reduces the weighted distances."""
    chosen: list[int] = []
    for _ in range(n):
        gains = weights @ np.maximum(nearest[:, None] - between, 0.0)
        gains[chosen] = -1.0
        best = int(np.argmax(gains))
        chosen.append(best)
        nearest = np.minimum(nearest, between[:, best])
    return chosen


@dataclass(frozen=True)
class SuspiciousLabel:
    """A label whose share at a node contradicts the node's neighbours.

    Attributes
    ----------
    node : int
        The index of the node, in order of creation.
    label : hashable
        The label.
    share : float
        The share of the node's rows that have the label.
    expected : float
        The share that the neighbouring nodes predict.
    """

    node: int
    label: Any
    share: float
    expected: float

    @property
    def suspicion(self) -> float:
        """The absolute difference between `share` and `expected`."""
        return abs(self.share - self.expected)


def suspicious_labels(model: Any, n: int = 100) -> list[SuspiciousLabel]:
    """Find labels that were probably assigned or omitted by mistake.

    Each node is compared with its 20 nearest other nodes. The expected share of a label is the weighted mean of its
    shares at these nodes, with weights 1, 1/2, 1/3, and so on from the nearest, and of its overall frequency, with
    weight 3. Only the model is needed, not the training rows. With a small vigilance, nearly every node is one row.

    Parameters
    ----------
    model : MLCA
        The model, or another object with `prototypes_`, `counts_`, `label_counts_` and `classes_`.
    n : int, default=100
        The largest number of results.

    Returns
    -------
    list of SuspiciousLabel
        Sorted by suspicion, largest first, with at most one entry per node and label.

    Examples
    --------
    >>> import numpy as np
    >>> from mlca import MLCA
    >>> from mlca.active import suspicious_labels
    >>> X = np.repeat([[0.0, 0.0], [5.0, 0.0]], 30, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
    >>> labels = [["left"]] * 30 + [["right"]] * 30
    >>> labels[7] = ["right"]
    >>> [(found.node, found.label, found.share) for found in suspicious_labels(MLCA().fit(X, labels), 2)]
    [(7, 'left', 0.0), (7, 'right', 1.0)]
    """
    check_whole("n", n)
    shares, expected = _leave_one_out(model)
    suspicion = np.abs(shares - expected)
    order = np.argsort(-suspicion, axis=None, kind="stable")[: max(n, 0)]
    names = np.asarray(model.classes_).tolist()
    return [
        SuspiciousLabel(int(node), names[label], float(shares[node, label]), float(expected[node, label]))
        for node, label in zip(*np.unravel_index(order, suspicion.shape), strict=True)
    ]


def _leave_one_out(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each node's share of rows with each label, and its neighbours' estimate of it."""
    counts = np.asarray(model.counts_, dtype=np.float64)
    shares = _matrix(model.label_counts_).toarray() / counts[:, None]
    n_voters = min(VOTERS, len(counts) - 1)
    frequencies = counts @ shares / counts.sum()
    if n_voters < 1:
        return shares, np.tile(frequencies, (len(counts), 1))
    nodes = _Places(model).positions(_matrix(model.prototypes_))
    voters = NearestNeighbors(n_neighbors=n_voters).fit(nodes).kneighbors()[1]  # leaves out the node itself
    votes = 1.0 / np.arange(1, n_voters + 1)
    by_neighbours = np.zeros_like(shares)
    for vote, voter in zip(votes, voters.T, strict=True):  # one at a time, to save memory
        by_neighbours += vote * shares[voter]
    return shares, (by_neighbours + PRIOR_VOTES * frequencies) / (votes.sum() + PRIOR_VOTES)


class _Places:
    """Converts rows to positions that can be compared by Euclidean distance.

    Parameters
    ----------
    model : object
        The model; its nodes determine the scale of each feature.
    """

    def __init__(self, model: Any) -> None:
        nodes = _matrix(model.prototypes_)
        self._by_length = nodes.nnz <= 0.5 * nodes.shape[0] * nodes.shape[1]
        learner = vars(model).get("_learner")
        self._nominal = [] if learner is None else list(learner.parameters.categorical_features)
        self._values = [np.unique(_known(nodes, place), return_counts=True) for place in self._nominal]
        if not self._by_length:
            numbers = np.ma.masked_invalid(nodes.toarray())
            self._means = numbers.mean(axis=0).filled(0.0)
            deviations = numbers.std(axis=0).filled(0.0)
            self._scales = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
            self._scales[self._nominal] = 0.0

    def positions(self, rows: sp.csr_array) -> Any:
        """Return the positions of rows; sparse if nodes are mostly zero or have categories."""
        if self._by_length:
            numbers = rows.copy()
            numbers.data[np.isnan(numbers.data) | np.isin(numbers.indices, self._nominal)] = 0.0
            return normalize(sp.hstack([numbers, *self._codes(rows)], format="csr"))
        dense = rows.toarray()
        placed = np.where(np.isnan(dense), self._means, dense) * self._scales
        return sp.hstack([sp.csr_array(placed), *self._codes(rows)], format="csr") if self._nominal else placed

    def _codes(self, rows: sp.csr_array) -> Iterator[sp.csr_array]:
        """Yield each categorical feature one-hot encoded, scaled to variance 1 for dense nodes."""
        for place, (values, counts) in zip(self._nominal, self._values, strict=True):
            variance = 1.0 - float(np.sum((counts / max(1, counts.sum())) ** 2))
            same = rows[:, [place]].toarray() == values
            yield sp.csr_array(same * (1.0 if self._by_length or variance <= 0 else variance**-0.5))


def _entropy(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the binary entropy of each probability."""
    p = np.clip(chances, 1e-12, 1.0 - 1e-12)
    return np.asarray(-p * np.log(p) - (1.0 - p) * np.log1p(-p))


def _known(rows: sp.csr_array, place: int) -> NDArray[np.float64]:
    """Return the values of a feature that are not missing."""
    column: NDArray[np.float64] = rows[:, [place]].toarray().ravel()
    return column[~np.isnan(column)]


def _matrix(rows: Any) -> sp.csr_array:
    if isinstance(rows, np.ma.MaskedArray):
        rows = np.ma.filled(rows.astype(np.float64), np.nan)
    return sp.csr_array(rows if sp.issparse(rows) else np.asarray(rows, dtype=np.float64))

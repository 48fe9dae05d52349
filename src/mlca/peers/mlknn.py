"""ML-kNN: Bayes' rule, applied to the number of nearest rows that have a label.

Equal distances are common (repeated rows, 0/1 data), so neighbours are found in two steps. A matrix product gives all
squared distances fast, but rounds equal distances differently. It therefore only selects candidates, with a margin for
its rounding errors. The distances of the candidates are then computed from differences, and ties go to the earlier row.
Results are bit-identical for dense and sparse rows, any block size and any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.base import MultiLabelClassifier, Rows
from mlca.kernels import native
from mlca.targets import LabelRows
from mlca.validation import check_real, check_whole

_DISTANCES_PER_BLOCK = 1_000_000
"""The number of distances computed at a time (8 MB)."""

_MIN_QUERIES_PER_BLOCK = 16
"""The smallest number of rows for which a matrix product is faster than separate products."""


class MLkNN(MultiLabelClassifier):
    r"""Multi-label k nearest neighbours.

    For each label, the evidence is the number c of the k nearest training rows that have the label. Bayes' rule turns c
    into a probability,

    .. math:: P(j \mid c) = \frac{P(j)\, P(c \mid j)}{P(j)\, P(c \mid j) + P(\neg j)\, P(c \mid \neg j)}.

    The prior and both likelihoods are estimated from the training rows, where no row is its own neighbour. A label is
    predicted if its probability is at least one half.

    Parameters
    ----------
    k : int, default=10
        The number of neighbours; must be less than the number of training rows.
    smoothing : float, default=1.0
        Added to every count (Laplace smoothing), so unseen events have a non-zero probability.

    Attributes
    ----------
    prior_ : ndarray of shape (n_labels,)
        The prior probability of each label.
    likelihood_present_, likelihood_absent_ : ndarray of shape (n_labels, k + 1)
        The probability of each number of neighbours with the label, for rows that have the label and
        for rows that do not.
    classes_ : ndarray of shape (n_labels,)
        The names of the labels.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    Distances are Euclidean, and features are not scaled: scale them first if their units differ.

    With n training rows, d features and q labels, learning takes O(n² d) time and each prediction O(n d). The model
    stores the training rows, which takes O(n d) memory, and computes distances in blocks of about 20 MB (for more than
    60,000 training rows, 250 bytes per row). Sparse rows stay sparse; their cost depends on their non-zeros.

    References
    ----------
    .. [1] M.-L. Zhang and Z.-H. Zhou, "ML-KNN: a lazy learning approach to multi-label learning",
       Pattern Recognition 40 (7), 2038-2048, 2007.

    Examples
    --------
    >>> from mlca.peers import MLkNN
    >>> X = [[0], [1], [2.5], [6], [10]]
    >>> Y = [{"sea"}, {"sea", "sun"}, {"sun"}, {"sun"}, set()]
    >>> model = MLkNN(k=2).fit(X, Y)
    >>> model.predict_proba([[0.4], [5.0]]).round(3).tolist()
    [[0.31, 0.816], [0.231, 0.27]]
    >>> model.predict_labels([[0.4], [5.0]])
    [{'sun'}, set()]
    """

    def __init__(self, k: int = 10, smoothing: float = 1.0) -> None:
        self.k = k
        self.smoothing = smoothing

    def _check_parameters(self) -> None:
        check_whole("k", self.k, at_least=1)
        check_real("smoothing", self.smoothing, at_least=0)

    def _read_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        rows = super()._read_rows(X, targets)
        if targets is not None and rows.shape[0] <= self.k:
            raise ValueError(
                f"k={self.k} neighbours of a row need more than k rows to learn from, but X has only "
                f"n_samples={rows.shape[0]}; pass more rows or a smaller k"
            )
        return rows

    def _begin(self, n_features: int, sparse_rows: bool) -> None:
        """Do nothing: `_learn` initialises everything."""

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        self._rows: Any = rows.copy()
        self._squared_norms = _squared_norms(rows)
        self._targets = targets
        present, absent = self._count_neighbourhoods()
        n_rows, s = rows.shape[0], self.smoothing
        self.prior_ = (s + present.sum(axis=1)) / (2 * s + n_rows)
        self.likelihood_present_ = _likelihood(present, s)
        self.likelihood_absent_ = _likelihood(absent, s)

    def _count_neighbourhoods(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count rows by label, presence of the label, and number of neighbours with the label."""
        n_labels, n_outcomes = self._targets.n_labels, self.k + 1
        indicator = self._targets.to_csr()
        present = np.zeros(n_labels * n_outcomes, dtype=np.int64)
        absent = np.zeros_like(present)
        offsets = n_outcomes * np.arange(n_labels)
        for block in _blocks(self._rows.shape[0], self._rows.shape[0]):
            counts = self._count_labels(self._rows[block], self.k, left_out=block.start)
            has_label = indicator[block].toarray().astype(bool)
            cells = counts + offsets
            present += np.bincount(cells[has_label], minlength=len(present))
            absent += np.bincount(cells[~has_label], minlength=len(absent))
        return present.reshape(n_labels, n_outcomes), absent.reshape(n_labels, n_outcomes)

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        n_labels, n_outcomes = self.likelihood_present_.shape
        probabilities = np.empty((rows.shape[0], n_labels))
        for block in _blocks(rows.shape[0], self._rows.shape[0]):
            probabilities[block] = self._posterior(self._count_labels(rows[block], k=n_outcomes - 1))
        return probabilities

    def _decide(self, probabilities: NDArray[np.float64], rows: Rows) -> NDArray[np.bool_]:
        return probabilities >= 0.5

    def _count_labels(self, queries: Any, k: int, left_out: int = -1) -> NDArray[np.int64]:
        """Count, for each query and label, the neighbours that have the label."""
        if sparse.issparse(self._rows):
            queries = sparse.csr_array(queries)
        elif sparse.issparse(queries):
            queries = queries.toarray()
        neighbours = _nearest(queries, self._rows, self._squared_norms, k, left_out)
        targets = self._targets
        return native.count_labels(neighbours, targets.indptr, targets.indices, targets.n_labels)

    def _posterior(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        label = np.arange(counts.shape[1])
        present = self.prior_ * self.likelihood_present_[label, counts]
        absent = (1 - self.prior_) * self.likelihood_absent_[label, counts]
        # Without smoothing, a count that never occurred in training carries no information, so the prior is used.
        posterior = np.broadcast_to(self.prior_, counts.shape).copy()
        np.divide(present, present + absent, out=posterior, where=present + absent > 0)
        return posterior


def _likelihood(tally: NDArray[np.int64], smoothing: float) -> NDArray[np.float64]:
    """Convert the counts of each label to smoothed frequencies; zeros if all counts are zero."""
    total = smoothing * tally.shape[1] + tally.sum(axis=1, keepdims=True)
    likelihood = np.zeros(tally.shape)
    np.divide(smoothing + tally, total, out=likelihood, where=total > 0)
    return likelihood


def _blocks(n_queries: int, n_rows: int) -> Iterator[slice]:
    size = max(_MIN_QUERIES_PER_BLOCK, _DISTANCES_PER_BLOCK // n_rows)
    for start in range(0, n_queries, size):
        yield slice(start, min(start + size, n_queries))


def _nearest(queries: Any, rows: Any, row_norms: NDArray[np.float64], k: int, left_out: int) -> NDArray[np.int64]:
    """Return the k rows nearest to each query, nearest first; ties go to the earlier row.

    With `left_out` >= 0, row `left_out + i` is not a neighbour of query i.
    """
    rough, margin = _rough_distances(queries, rows, row_norms)
    if not sparse.issparse(rows):
        return native.nearest_dense(rough, margin, queries, rows, k, left_out)
    # SciPy uses 32-bit indices if possible, so a block of queries may have them while the rows have 64-bit ones.
    index = np.result_type(queries.indices, rows.indices)
    query_parts, row_parts = (
        (part.indptr.astype(index, copy=False), part.indices.astype(index, copy=False), part.data)
        for part in (queries, rows)
    )
    return native.nearest_sparse(rough, margin, *query_parts, *row_parts, k, left_out)


def _rough_distances(
    queries: Any, rows: Any, row_norms: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return |b|² - 2ab, which orders rows b by distance to a, and twice its error bound."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = (-2.0 * queries) @ rows.T
        rough: NDArray[np.float64] = product.toarray() if sparse.issparse(product) else product
        rough += row_norms
    # Here and in distances computed from differences, the relative error of a sum of d products is at most d roundings.
    # The factor 16 also covers the norms and the square root.
    largest = _squared_norms(queries) + row_norms.max()
    return rough, 16 * (rows.shape[1] + 4) * np.finfo(np.float64).eps * largest


def _squared_norms(rows: Any) -> NDArray[np.float64]:
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    norms: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows)
    return norms

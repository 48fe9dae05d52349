"""Measures of how well scores rank the labels of each row.

All measures follow from the ranks of the true labels. For each true cell, three counts are found by comparing its
score with those of its row: labels strictly above it, labels at or above it (its rank, with ties counted against it),
and true labels at or above it. This takes q comparisons per true cell, needs no sort, and runs in blocks, so no array
of size n x q is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlca.metrics.inputs import LabelMatrix, Scores, Truth, true_and_scores
from mlca.metrics.registry import mean_defined, ratio
from mlca.validation import check_whole

BLOCK_CELLS = 2**19  # comparisons per block: 4 MB of scores, which fit into a cache


@dataclass(frozen=True)
class LabelRanks:
    """Ranks of the true labels: one entry per true cell, in the order of the rows."""

    n_rows: int
    n_labels: int
    row: NDArray[np.intp]
    above: NDArray[np.intp]
    """The number of labels of the row with a higher score."""
    rank: NDArray[np.intp]
    """The number of labels of the row with at least this score, itself included: 1 is the best rank."""
    true_rank: NDArray[np.intp]
    """The rank of the label among the row's true labels only."""

    @classmethod
    def of(cls, Y_true: LabelMatrix, scores: ArrayLike) -> LabelRanks:
        """Check labels and scores, and rank the true labels."""
        return cls.of_matrices(*true_and_scores(Y_true, scores, "scores"))

    @classmethod
    def of_matrices(cls, true: Truth, scores: Scores) -> LabelRanks:
        """Rank the true labels of each row; the matrices must already have been checked."""
        n_rows, n_labels = scores.shape
        row = np.repeat(np.arange(n_rows), np.diff(true.indptr))
        above, rank, true_rank = np.empty((3, row.size), dtype=np.intp)
        step = max(1, BLOCK_CELLS // max(1, n_labels))
        for start in range(0, row.size, step):
            block = slice(start, start + step)
            others = scores[row[block]]
            score = scores[row[block], true.indices[block]][:, np.newaxis]
            at_least = others >= score
            above[block] = np.count_nonzero(others > score, axis=1)
            rank[block] = np.count_nonzero(at_least, axis=1)
            true_rank[block] = np.count_nonzero(at_least & true[row[block]].toarray(), axis=1)
        return cls(n_rows, n_labels, row, above, rank, true_rank)

    def _n_true(self) -> NDArray[np.intp]:
        return np.bincount(self.row, minlength=self.n_rows)

    def _sum_by_row(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.bincount(self.row, weights=values, minlength=self.n_rows)
        return sums.astype(np.float64, copy=False)

    def _of_mixed_rows(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Set values to NaN for rows that have no true labels or no false labels."""
        n_true = self._n_true()
        return np.where((n_true > 0) & (n_true < self.n_labels), values, np.nan)

    def ranking_losses(self) -> NDArray[np.float64]:
        """Return one ranking loss per row; NaN for a row that is left out."""
        n_true = self._n_true()
        wrong_pairs = self._sum_by_row((self.rank - self.true_rank).astype(np.float64))
        return ratio(wrong_pairs, n_true * (self.n_labels - n_true))

    def coverages(self) -> NDArray[np.float64]:
        """Return one coverage per row; NaN for a row that is left out."""
        worst = np.zeros(self.n_rows)
        np.maximum.at(worst, self.row, self.rank)
        steps = np.where(worst > 0, worst - 1, np.nan)
        return ratio(steps, np.full(self.n_rows, self.n_labels - 1))

    def average_precisions(self) -> NDArray[np.float64]:
        """Return one average precision per row; NaN for a row that is left out."""
        shares = ratio(self.true_rank, self.rank)
        return self._of_mixed_rows(ratio(self._sum_by_row(shares), self._n_true()))

    def one_errors(self) -> NDArray[np.float64]:
        """Return 1 for each row whose top-ranked label is false, else 0; NaN if left out."""
        first = self.rank == self.true_rank
        none_first = self._sum_by_row(first.astype(np.float64)) == 0
        return self._of_mixed_rows(none_first.astype(np.float64))

    def precisions(self, k: int) -> NDArray[np.float64]:
        """Return one precision at k per row."""
        places = np.arange(self.n_labels)
        return self._expected_gain((places < k) / k)

    def ndcgs(self, k: int) -> NDArray[np.float64]:
        """Return one nDCG at k per row; NaN for a row that is left out."""
        places = np.arange(self.n_labels)
        discount = np.where(places < k, 1 / np.log2(places + 2), 0.0)
        ideal = np.concatenate([[0.0], np.cumsum(discount)])[self._n_true()]
        return ratio(self._expected_gain(discount), ideal)

    def _expected_gain(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the gains of each row's true labels; tied labels share their gains equally."""
        up_to = np.concatenate([[0.0], np.cumsum(worth)])
        return self._sum_by_row((up_to[self.rank] - up_to[self.above]) / (self.rank - self.above))


def ranking_loss(Y_true: LabelMatrix, scores: ArrayLike) -> float:
    """Return the mean share of wrongly ordered (true, false) label pairs. Lower is better.

    This is one of the paper's six measures. A tie between a true and a false label counts as an error. Rows with no
    label or with all of them are left out. scikit-learn's `label_ranking_loss` also counts ties as
    errors, but counts such rows as 0. The two agree if every row has a true and a false label.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out.

    Examples
    --------
    >>> ranking_loss([[1, 0, 0], [1, 1, 1]], [[0.5, 0.5, 0.1], [0.2, 0.3, 0.4]])
    0.5
    """
    return mean_defined(LabelRanks.of(Y_true, scores).ranking_losses())


def coverage(Y_true: LabelMatrix, scores: ArrayLike) -> float:
    """Return the scaled ranking depth that covers all true labels. Lower is better.

    This is one of the paper's six measures: the rank of the worst-ranked true label minus 1, averaged over the rows and
    divided by q - 1. Tied labels take the worst rank among them, as in ranking loss. Rows without a
    label are left out. scikit-learn's `coverage_error` ranks ties the same way, but neither subtracts
    1 nor divides, and counts rows without a label as 0.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out or q is 1.

    Examples
    --------
    >>> coverage([[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.4, 0.2, 0.1]])
    0.25
    """
    return mean_defined(LabelRanks.of(Y_true, scores).coverages())


def average_precision(Y_true: LabelMatrix, scores: ArrayLike) -> float:
    """Return the mean label-ranking average precision. Higher is better.

    For each true label, this is the share of true labels among the labels at or above it, averaged over the row's
    true labels. Ties count as errors. Rows with no label or with all of them are left out. scikit-learn's
    `label_ranking_average_precision_score` counts such rows as 1, and otherwise agrees.
    (Its `average_precision_score` is another measure: the area under a precision-recall curve.)

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out.

    Examples
    --------
    >>> average_precision([[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.4, 0.2, 0.1]])
    0.75
    """
    return mean_defined(LabelRanks.of(Y_true, scores).average_precisions())


def one_error(Y_true: LabelMatrix, scores: ArrayLike) -> float:
    """Return the share of rows whose top-ranked label is false. Lower is better.

    A false label that shares the top score counts as an error. Rows with no label or with all of them
    are left out. scikit-learn has no counterpart.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out.

    Examples
    --------
    >>> one_error([[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.4, 0.2, 0.1]])
    0.5
    """
    return mean_defined(LabelRanks.of(Y_true, scores).one_errors())


def precision_at_k(Y_true: LabelMatrix, scores: ArrayLike, k: int) -> float:
    """Return the mean share of true labels among the k top-ranked. Higher is better.

    The divisor is k even where a row has fewer true labels (or there are fewer labels than k), as is
    usual in extreme classification; a row without a label counts as 0. Labels tied across the k-th
    place share the remaining places: the result is the expectation over all ways to break the ties,
    so the order of the columns does not matter.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.
    k : int
        The number of top labels, at least 1.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no rows.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.2, 0.8], [0.4, 0.2, 0.1]], k=2)
    0.75
    """
    return mean_defined(LabelRanks.of(Y_true, scores).precisions(_require_places(k)))


def ndcg_at_k(Y_true: LabelMatrix, scores: ArrayLike, k: int) -> float:
    """Return the mean normalised discounted cumulative gain at k. Higher is better.

    A true label at place p gains 1 / log2(p + 1); ties share their places equally, as in scikit-learn's
    `ndcg_score(k=k)`. Rows without a label are left out; scikit-learn counts them as 0.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.
    k : int
        The number of top labels, at least 1.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out.

    Examples
    --------
    >>> round(ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.2, 0.8], [0.4, 0.2, 0.1]], k=2), 4)
    0.8155
    """
    return mean_defined(LabelRanks.of(Y_true, scores).ndcgs(_require_places(k)))


def _require_places(k: int) -> int:
    check_whole("k", k, at_least=1)
    return k

"""Area under the ROC curve, by label and pooled.

The area is the share of (positive, negative) pairs in the right order; a tie counts as one half. One sort of all
scores gives the number of scores below each positive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mlca.metrics.inputs import LabelMatrix, Scores, Truth, true_and_scores
from mlca.metrics.registry import mean_defined


def macro_auc(Y_true: LabelMatrix, scores: ArrayLike) -> float:
    """Return the mean area under the ROC curves of the labels. Higher is better.

    This is one of the paper's six measures. Labels that are true in all rows or in none are left out. On the other
    labels it equals scikit-learn's `roc_auc_score(average="macro")`, which is NaN if any label must be left out. The
    evaluation code released by the paper's authors computes `micro_auc` instead.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.

    Returns
    -------
    float
        In [0, 1]; NaN if every label is left out.

    Examples
    --------
    >>> macro_auc([[1, 0], [0, 0], [1, 0]], [[0.9, 0.5], [0.3, 0.5], [0.2, 0.1]])
    0.5
    """
    return macro_auc_of_matrices(*true_and_scores(Y_true, scores, "scores"))


def micro_auc(Y_true: LabelMatrix, scores: ArrayLike) -> float:
    """Return the area under the ROC curve over all (row, label) cells. Higher is better.

    The evaluation code released by the paper's authors reports this value as AUC. It equals scikit-learn's
    `roc_auc_score(average="micro")`.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    scores : array-like of shape (n, q)
        One score per label: the higher, the more likely the label.

    Returns
    -------
    float
        In [0, 1]; NaN if all cells are true or all are false.

    Examples
    --------
    >>> micro_auc([[1, 0], [0, 0], [1, 0]], [[0.9, 0.5], [0.3, 0.5], [0.2, 0.1]])
    0.625
    """
    return micro_auc_of_matrices(*true_and_scores(Y_true, scores, "scores"))


def macro_auc_of_matrices(true: Truth, scores: Scores) -> float:
    """Return the macro AUC; the matrices must already have been checked."""
    by_label = true.tocsc()
    areas = np.empty(scores.shape[1])
    for label in range(scores.shape[1]):
        positive = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        areas[label] = _area(scores[positive, label], scores[:, label])
    return mean_defined(areas)


def micro_auc_of_matrices(true: Truth, scores: Scores) -> float:
    """Return the micro AUC; the matrices must already have been checked."""
    row = np.repeat(np.arange(true.shape[0]), np.diff(true.indptr))
    return _area(scores[row, true.indices], scores.ravel())


def _area(positive: Scores, everything: Scores) -> float:
    n_positive = positive.size
    n_negative = everything.size - n_positive
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    ordered = np.sort(everything)
    lower = np.searchsorted(ordered, positive, side="left").sum(dtype=np.int64)
    lower_or_equal = np.searchsorted(ordered, positive, side="right").sum(dtype=np.int64)
    # Pairs of two positives add n_positive^2 / 2 however they are ordered.
    pairs = (float(lower) + float(lower_or_equal) - float(n_positive) ** 2) / 2
    return pairs / n_negative / n_positive

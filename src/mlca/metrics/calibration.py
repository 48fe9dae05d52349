"""Whether probabilities mean what they say: of the labels that are given .7, seven in ten should be there.

Every cell of the table, a row and a label, is one forecast; all of them are pooled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mlca.metrics.inputs import LabelMatrix, Scores, Truth, true_and_scores

BINS = 10


def brier_score(Y_true: LabelMatrix, proba: ArrayLike) -> float:
    """Mean squared difference of probability and truth over all rows and labels. Lower is better.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    proba : array-like of shape (n, q)
        Probabilities.

    Returns
    -------
    float
        In [0, 1]; NaN without any cell.

    Examples
    --------
    >>> brier_score([[1, 0], [0, 0]], [[0.5, 0.1], [0.3, 0.1]])
    0.09
    """
    true, probabilities = _true_and_probabilities(Y_true, proba)
    return float(np.mean((probabilities - true.toarray()) ** 2)) if probabilities.size else float("nan")


def calibration_error(Y_true: LabelMatrix, proba: ArrayLike, bins: int = BINS) -> float:
    """How far probabilities are from the frequencies that they announce. Lower is better.

    This is the expected calibration error: the cells are put into bins of equal width by their probability; in each the
    mean probability is held against the share of labels that are there, and the differences are averaged, weighed by
    the cells of the bins.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    proba : array-like of shape (n, q)
        Probabilities.
    bins : int, default=10
        How many bins.

    Returns
    -------
    float
        In [0, 1]; NaN without any cell.

    Examples
    --------
    >>> calibration_error([[1, 0], [0, 1]], [[0.75, 0.25], [0.25, 0.75]])
    0.25
    """
    true, probabilities = _true_and_probabilities(Y_true, proba)
    if not probabilities.size:
        return float("nan")
    bin_of = np.minimum((probabilities * bins).astype(np.intp), bins - 1).ravel()
    announced = np.bincount(bin_of, weights=probabilities.ravel(), minlength=bins)
    there = np.bincount(bin_of, weights=true.toarray().ravel(), minlength=bins)
    return float(np.abs(announced - there).sum() / probabilities.size)


def _true_and_probabilities(Y_true: LabelMatrix, proba: ArrayLike) -> tuple[Truth, Scores]:
    true, probabilities = true_and_scores(Y_true, proba, "proba")
    wrong = (probabilities < 0) | (probabilities > 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"proba is {probabilities[row, column]} at row {row}, label {column}: calibration is a matter of "
            "probabilities, in [0, 1]; scores have none"
        )
    return true, probabilities

"""Calibration of probabilities: seven in ten forecasts of 0.7 should be true.

Each (row, label) cell is one forecast; all cells are pooled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mlca.metrics.inputs import LabelMatrix, Scores, true_and_scores

BINS = 10


def brier_score(Y_true: LabelMatrix, proba: ArrayLike) -> float:
    """Return the mean squared difference between probability and truth. Lower is better.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    proba : array-like of shape (n, q)
        Probabilities.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no cells.

    Examples
    --------
    >>> brier_score([[1, 0], [0, 0]], [[0.5, 0.1], [0.3, 0.1]])
    0.09
    """
    true, forecast = _forecasts(Y_true, proba)
    return _a_cell(((forecast - true) ** 2).sum(), len(true))


def calibration_error(Y_true: LabelMatrix, proba: ArrayLike, bins: int = BINS) -> float:
    """Return the expected calibration error. Lower is better.

    The (row, label) cells are put into bins of equal width by their probability. In each bin, the mean probability is
    compared with the share of true labels. The differences are averaged, weighted by the number of cells.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    proba : array-like of shape (n, q)
        Probabilities.
    bins : int, default=10
        The number of bins.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no cells.

    Examples
    --------
    >>> calibration_error([[1, 0], [0, 1]], [[0.75, 0.25], [0.25, 0.75]])
    0.25
    """
    true, forecast = _forecasts(Y_true, proba)
    bin_of = np.minimum((forecast * bins).astype(np.intp), bins - 1)
    gaps = np.bincount(bin_of, weights=forecast, minlength=bins) - np.bincount(bin_of, weights=true, minlength=bins)
    return _a_cell(np.abs(gaps).sum(), len(true))


def _a_cell(total: float, n_cells: int) -> float:
    return float(total / n_cells) if n_cells else float("nan")


def _forecasts(Y_true: LabelMatrix, proba: ArrayLike) -> tuple[Scores, Scores]:
    """Return, for each (row, label) cell, 1 if the label is true, and its probability."""
    true, probabilities = true_and_scores(Y_true, proba, "proba")
    wrong = (probabilities < 0) | (probabilities > 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"proba must hold probabilities between 0 and 1; got {probabilities[row, column]} at row {row}, "
            f"label {column}"
        )
    return true.toarray().astype(np.float64).ravel(), probabilities.ravel()

"""Measures of predicted label sets.

All measures are computed from three counts: labels that are both true and predicted (hits), true labels, and predicted
labels. Macro F1 uses the counts per label, and all other measures use the counts per row. So the two matrices are
compared only once for all measures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlca.metrics.inputs import LabelMatrix, Truth, label_matrix, predicted_labels, require_same_shape
from mlca.metrics.registry import mean_defined, ratio


@dataclass(frozen=True)
class Counts:
    """The numbers of hits, true labels and predicted labels, per row or per label."""

    hits: NDArray[np.intp]
    true: NDArray[np.intp]
    predicted: NDArray[np.intp]

    def f1(self) -> NDArray[np.float64]:
        """Return the F1 of each row or label; NaN where nothing is true or predicted."""
        return ratio(2 * self.hits, self.true + self.predicted)

    def jaccard(self) -> NDArray[np.float64]:
        """Return the Jaccard index of each row or label; NaN where nothing is true or predicted."""
        return ratio(self.hits, self.true + self.predicted - self.hits)

    def wrong(self) -> NDArray[np.intp]:
        """Return the number of missed or wrongly predicted cells of each row or label."""
        return self.true + self.predicted - 2 * self.hits


@dataclass(frozen=True)
class SetComparison:
    """True and predicted label sets, counted by row and by label."""

    rows: Counts
    labels: Counts

    @classmethod
    def of(cls, Y_true: LabelMatrix, Y_pred: LabelMatrix) -> SetComparison:
        """Check both matrices, and count their labels."""
        true, predicted = label_matrix(Y_true, "Y_true"), predicted_labels(Y_true, Y_pred)
        require_same_shape(true, predicted, "Y_pred")
        return cls.of_matrices(true, predicted)

    @classmethod
    def of_matrices(cls, true: Truth, predicted: Truth) -> SetComparison:
        """Count the labels; the matrices must already have been checked."""
        hits = true.multiply(predicted).tocsr()
        return cls(
            rows=Counts(*(np.diff(matrix.indptr) for matrix in (hits, true, predicted))),
            labels=Counts(*(_by_label(matrix) for matrix in (hits, true, predicted))),
        )

    def exact_match(self) -> float:
        """Return the share of rows whose label set is predicted exactly."""
        return mean_defined((self.rows.wrong() == 0).astype(np.float64))

    def example_f1(self) -> float:
        """Return the mean F1 of the rows' label sets."""
        return mean_defined(self.rows.f1())

    def jaccard(self) -> float:
        """Return the mean intersection over union of the rows' label sets."""
        return mean_defined(self.rows.jaccard())

    def hamming_loss(self) -> float:
        """Return the share of (row, label) cells that are wrong."""
        cells = np.full(len(self.rows.hits), len(self.labels.hits))
        return mean_defined(ratio(self.rows.wrong(), cells))

    def micro_f1(self) -> float:
        """Return the F1 over all (row, label) cells."""
        sizes = self.rows.true.sum() + self.rows.predicted.sum()
        return float(ratio(2 * self.rows.hits.sum(keepdims=True), sizes.reshape(1))[0])

    def macro_f1(self) -> float:
        """Return the mean F1 of the labels."""
        return mean_defined(self.labels.f1())


def _by_label(matrix: Truth) -> NDArray[np.intp]:
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def exact_match(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> float:
    """Return the share of rows whose label set is predicted exactly. Higher is better.

    This is one of the paper's six measures, and equals scikit-learn's `accuracy_score` for indicator matrices.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse of shape (n, q)
        Indicator matrices, 0 and 1.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no rows.

    Examples
    --------
    >>> exact_match([[1, 0, 1], [0, 0, 0]], [[1, 0, 1], [0, 1, 0]])
    0.5
    """
    return SetComparison.of(Y_true, Y_pred).exact_match()


def example_f1(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> float:
    """Return the mean F1 of the rows' label sets. Higher is better.

    This is one of the paper's six measures. Rows with no true and no predicted label are left out, as in
    scikit-learn's `f1_score(average="samples", zero_division=nan)`; its default counts them as 0.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse of shape (n, q)
        Indicator matrices, 0 and 1.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out.

    Examples
    --------
    >>> example_f1([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    0.6666666666666666
    """
    return SetComparison.of(Y_true, Y_pred).example_f1()


def jaccard(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> float:
    """Return the mean intersection over union of the rows' label sets. Higher is better.

    Rows with no true and no predicted label are left out; scikit-learn's
    `jaccard_score(average="samples")` counts them as 0, and otherwise agrees.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse of shape (n, q)
        Indicator matrices, 0 and 1.

    Returns
    -------
    float
        In [0, 1]; NaN if every row is left out.

    Examples
    --------
    >>> jaccard([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    0.5
    """
    return SetComparison.of(Y_true, Y_pred).jaccard()


def hamming_loss(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> float:
    """Return the share of (row, label) cells that are wrong. Lower is better.

    This is one of the paper's six measures, and equals scikit-learn's `hamming_loss`.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse of shape (n, q)
        Indicator matrices, 0 and 1.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no cells.

    Examples
    --------
    >>> hamming_loss([[1, 1, 0, 0]], [[1, 0, 0, 0]])
    0.25
    """
    return SetComparison.of(Y_true, Y_pred).hamming_loss()


def micro_f1(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> float:
    """Return the F1 over all (row, label) cells. Higher is better.

    This equals scikit-learn's `f1_score(average="micro")`, except that it is NaN if no label is true or predicted.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse of shape (n, q)
        Indicator matrices, 0 and 1.

    Returns
    -------
    float
        In [0, 1], or NaN.

    Examples
    --------
    >>> micro_f1([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 1]])
    0.5
    """
    return SetComparison.of(Y_true, Y_pred).micro_f1()


def macro_f1(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> float:
    """Return the mean F1 of the labels. Higher is better.

    Labels that are never true and never predicted are left out, as in scikit-learn's
    `f1_score(average="macro", zero_division=nan)`; its default counts them as 0.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse of shape (n, q)
        Indicator matrices, 0 and 1.

    Returns
    -------
    float
        In [0, 1]; NaN if every label is left out.

    Examples
    --------
    >>> macro_f1([[1, 1, 0], [1, 0, 0]], [[1, 0, 0], [1, 0, 0]])
    0.5
    """
    return SetComparison.of(Y_true, Y_pred).macro_f1()

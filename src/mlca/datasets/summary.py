"""The usual statistics of a multi-label dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse


@dataclass(frozen=True)
class Summary:
    """Size and label statistics of a dataset.

    Attributes
    ----------
    instances, numeric_attributes, categorical_attributes, labels : int
        The numbers of rows, numeric features, categorical features and labels.
    cardinality : float
        The mean number of labels per row.
    density : float
        Cardinality divided by the number of labels.
    distinct_label_sets : int
        The number of distinct label sets.
    """

    instances: int
    numeric_attributes: int
    categorical_attributes: int
    labels: int
    cardinality: float
    density: float
    distinct_label_sets: int


def summarize(Y: Any, categorical: ArrayLike) -> Summary:
    """Compute the statistics of a dataset.

    Parameters
    ----------
    Y : array-like or sparse of shape (n_rows, n_labels)
        The labels as an indicator matrix.
    categorical : array-like of bool of shape (n_features,)
        Which features are categorical.

    Returns
    -------
    Summary

    Examples
    --------
    >>> summarize([[1, 0, 1], [0, 0, 0], [1, 0, 1], [0, 0, 1]], categorical=[False, True])
    Summary(instances=4, numeric_attributes=1, categorical_attributes=1, labels=3, cardinality=1.25,
            density=0.4166666666666667, distinct_label_sets=3)
    """
    labels = sparse.csr_array(Y, copy=True)
    labels.eliminate_zeros()
    labels.sort_indices()
    n_rows, n_labels = labels.shape
    n_categorical = int(np.count_nonzero(categorical))
    starts = labels.indptr
    label_sets = {labels.indices[starts[row] : starts[row + 1]].tobytes() for row in range(n_rows)}
    cardinality = labels.nnz / n_rows if n_rows else 0.0
    return Summary(
        instances=n_rows,
        numeric_attributes=len(np.asarray(categorical)) - n_categorical,
        categorical_attributes=n_categorical,
        labels=n_labels,
        cardinality=cardinality,
        density=cardinality / n_labels if n_labels else 0.0,
        distinct_label_sets=len(label_sets),
    )

"""Descriptions of rows and nodes by their most unusual columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.tables.feature_names import FeatureNames


class InformativeColumns:
    """Finds the columns in which a row differs most from the model's average node.

    Parameters
    ----------
    names : FeatureNames
        The layout, and the names of features.
    weights : ndarray or csr_array of shape (n_nodes, n_features)
        The nodes.
    """

    def __init__(self, names: FeatureNames, weights: Any) -> None:
        self._names, layout = names, names.layout
        self._layout = layout
        self._codes = {place: _column(weights, place) for place in layout.nominal}
        sums, squares, present = _sums(weights)
        self._mean = sums / np.maximum(present, 1)
        self._spread = np.sqrt(np.maximum(squares / np.maximum(present, 1) - self._mean**2, 0))

    def most_unusual(self, row: NDArray[np.float64], most: int) -> list[int]:
        """Return the indices of up to `most` columns, most unusual first; ties in index order."""
        distances = np.zeros(len(row))
        np.divide(np.abs(row - self._mean), self._spread, out=distances, where=(self._spread > 0) & ~np.isnan(row))
        for place, codes in self._codes.items():
            # The distance of 1 from the mean of this value's 0/1 indicator over the nodes, in standard deviations.
            share = float(np.mean(codes == row[place])) if len(codes) else 1.0
            distances[place] = 0.0 if np.isnan(row[place]) else np.sqrt((1 - share) / max(share, 1 / (len(codes) + 1)))
        by_column = np.zeros(int(self._layout.owners.max()) + 1)
        np.maximum.at(by_column, self._layout.owners, distances)
        chosen: list[int] = np.argsort(-by_column, kind="stable")[:most].tolist()
        return chosen

    def name(self, place: int) -> str:
        """Return the name of a column."""
        return self._layout.name_of(place)

    def in_words(self, row: NDArray[np.float64], place: int, *, own: bool = False) -> str:
        """Describe a row's value in a column; with `own`, use the row's own words for text."""
        return self._names.in_words(place, row[self._layout.owners == place], own=own)


def beside(
    names: FeatureNames, ordinary: Any, rows: Sequence[NDArray[np.float64]], most: int
) -> list[tuple[str, list[str]]]:
    """Return the columns in which the first row is most unusual, with all rows' values.

    Parameters
    ----------
    names : FeatureNames
        The layout, and the names of features.
    ordinary : ndarray or csr_array of shape (n_nodes, n_features)
        The nodes with whose average the first row is compared.
    rows : sequence of ndarray
        The row to describe, then the rows to show beside it.
    most : int
        The largest number of columns to return.

    Returns
    -------
    list of (str, list of str)
        The name of each column, and the values of the rows in it.
    """
    informative = InformativeColumns(names, ordinary)
    return [
        (informative.name(place), [informative.in_words(x, place, own=number == 0) for number, x in enumerate(rows)])
        for place in informative.most_unusual(rows[0], most)
    ]


def _sums(weights: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return sum, sum of squares and count of the known values of each feature."""
    if sparse.issparse(weights):
        gaps = weights.copy()
        gaps.data = np.isnan(weights.data).astype(np.float64)
        values = weights.copy()
        values.data = np.nan_to_num(weights.data)
        n_gaps, squares = gaps.sum(axis=0), values.multiply(values).sum(axis=0)
    else:
        values = np.nan_to_num(weights)
        n_gaps, squares = np.isnan(weights).sum(axis=0), (values**2).sum(axis=0)
    sums = values.sum(axis=0)
    return np.asarray(sums), np.asarray(squares), weights.shape[0] - np.asarray(n_gaps).astype(np.int64)


def _column(matrix: Any, place: int) -> NDArray[np.float64]:
    """Return the non-missing values of a matrix column."""
    column = matrix[:, [place]].toarray().ravel() if sparse.issparse(matrix) else np.asarray(matrix[:, place])
    known: NDArray[np.float64] = column[~np.isnan(column)]
    return known


def dense_row(matrix: Any, i: int) -> NDArray[np.float64]:
    """Return one row of a dense or sparse matrix."""
    row: NDArray[np.float64] = matrix[[i]].toarray()[0] if sparse.issparse(matrix) else np.asarray(matrix[i])
    return row


def columns_of_matrix(matrix: Any, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return some columns of a dense or sparse matrix."""
    block = matrix[:, places]
    dense: NDArray[np.float64] = block.toarray() if sparse.issparse(block) else np.asarray(block)
    return dense

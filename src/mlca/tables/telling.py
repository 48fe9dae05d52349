"""Nodes in the user's own terms: the columns that tell most about them, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.tables.layout import Layout


class TellingColumns:
    """Finds the columns in which a row is most unlike the model's average node.

    Parameters
    ----------
    layout : Layout
        What the columns mean.
    weights : ndarray or csr_array of shape (n_nodes, n_features)
        The nodes.
    """

    def __init__(self, layout: Layout, weights: Any) -> None:
        self._layout = layout
        squares = weights.multiply(weights) if sparse.issparse(weights) else weights**2
        self._mean = np.asarray(weights.mean(axis=0)).ravel()
        self._spread = np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - self._mean**2, 0))

    def of(self, row: NDArray[np.float64], most: int) -> list[int]:
        """Return the places of up to `most` columns, in the order of the table."""
        distances = np.zeros(len(row))
        np.divide(np.abs(row - self._mean), self._spread, out=distances, where=self._spread > 0)
        by_column = np.zeros(int(self._layout.owners.max()) + 1)
        np.maximum.at(by_column, self._layout.owners, distances)
        chosen: list[int] = np.sort(np.argsort(-by_column, kind="stable")[:most]).tolist()
        return chosen

    def name(self, place: int) -> str:
        """Return the name of a column."""
        return self._layout.name_of(place)

    def in_words(self, row: NDArray[np.float64], place: int) -> str:
        """Return what a row has in a column."""
        return self._layout.in_words(place, row[self._layout.owners == place])


def beside(
    layout: Layout, weights: Any, row: NDArray[np.float64], nodes: Sequence[int], most: int
) -> list[tuple[str, list[str]]]:
    """Return the most telling columns of a row, and what the row and some nodes have there.

    Parameters
    ----------
    layout : Layout
        What the columns mean.
    weights : ndarray or csr_array of shape (n_nodes, n_features)
        All nodes.
    row : ndarray
        The row.
    nodes : sequence of int
        The nodes to show.
    most : int
        The number of columns.

    Returns
    -------
    list of (str, list of str)
        The name of each column; the row's value, then that of each node.
    """
    telling = TellingColumns(layout, weights)
    rows = [row, *(dense_row(weights, node) for node in nodes)]
    return [(telling.name(place), [telling.in_words(x, place) for x in rows]) for place in telling.of(row, most)]


def dense_row(matrix: Any, i: int) -> NDArray[np.float64]:
    """Return one row of a dense or sparse matrix."""
    row: NDArray[np.float64] = matrix[[i]].toarray()[0] if sparse.issparse(matrix) else np.asarray(matrix[i])
    return row

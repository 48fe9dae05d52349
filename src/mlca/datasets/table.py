"""A multi-label dataset in memory, from any file format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True)
class LabelledTable:
    """A dataset: rows, their labels, and the names of the columns.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features) or csr_array, float64
        The features: dense or sparse like the file. Missing values are NaN.
    Y : csr_array of shape (n_rows, n_labels), uint8
        The labels: 1 where the row has the label.
    feature_names, label_names : tuple of str or None
        The names of the columns of X and Y; None if the format has no names.
    categorical : ndarray of bool of shape (n_features,) or None
        True for nominal features; None if the format does not declare them.
    categories : mapping of str to tuple of str
        The values of each nominal feature: the value with code k is at position k.
    split : tuple of two ndarrays of int, or None
        The row indices of the train part and of the test part, if the source has both.
    """

    X: Any
    Y: sparse.csr_array
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    categorical: NDArray[np.bool_] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    split: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None

    def rows(self, rows: NDArray[np.intp]) -> LabelledTable:
        """Return a table of the rows with the given indices, without a split.

        Examples
        --------
        >>> from mlca.datasets import LabelledTable
        >>> table = LabelledTable(np.eye(3), sparse.csr_array([[1], [0], [1]]), feature_names=("a", "b", "c"))
        >>> table.rows(np.array([0, 2])).X.tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        """
        return replace(self, X=self.X[rows], Y=self.Y[rows], split=None)

    def without(self, names: Collection[str]) -> LabelledTable:
        """Return the table without the features that have the given names.

        Examples
        --------
        >>> from mlca.datasets import LabelledTable
        >>> table = LabelledTable(np.eye(3), sparse.csr_array([[1], [0], [1]]), feature_names=("a", "b", "c"))
        >>> table.without({"b"}).feature_names
        ('a', 'c')
        """
        if not names or self.feature_names is None:
            return self
        kept = [column for column, name in enumerate(self.feature_names) if name not in names]
        return replace(
            self,
            X=self.X[:, kept],
            feature_names=tuple(self.feature_names[column] for column in kept),
            categorical=None if self.categorical is None else self.categorical[kept],
            categories={name: values for name, values in self.categories.items() if name not in names},
        )


def join(tables: Sequence[LabelledTable]) -> LabelledTable:
    """Stack tables with the same columns.

    If there are two tables, they become the train and the test part of the split.

    Parameters
    ----------
    tables : sequence of LabelledTable
        At least one table.

    Returns
    -------
    LabelledTable
        All rows, in the order given.

    Raises
    ------
    ValueError
        If the columns differ.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    for other in tables[1:]:
        same_columns = (
            other.X.shape[1] == first.X.shape[1]
            and other.Y.shape[1] == first.Y.shape[1]
            and other.feature_names == first.feature_names
            and other.label_names == first.label_names
            and other.categories == first.categories
            and sparse.issparse(other.X) == sparse.issparse(first.X)
        )
        if not same_columns:
            raise ValueError("the files of the dataset have different columns; fetch them again")
    ends = np.cumsum([0, *(table.X.shape[0] for table in tables)])
    stack = sparse.vstack if sparse.issparse(first.X) else np.vstack
    return replace(
        first,
        X=stack([table.X for table in tables]),
        Y=sparse.csr_array(sparse.vstack([table.Y for table in tables])),
        split=(np.arange(ends[0], ends[1]), np.arange(ends[1], ends[2])) if len(tables) == 2 else None,
    )

"""Input checks: labels become a boolean CSR array, and scores a float array."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlca.optional import in_pandas

LabelMatrix: TypeAlias = "ArrayLike | sp.sparray | sp.spmatrix"
Truth: TypeAlias = "sp.csr_array[np.bool_, tuple[int, int]]"
Scores: TypeAlias = NDArray[np.floating[Any]]


def label_matrix(Y: LabelMatrix, name: str) -> Truth:
    """Return a copy of Y as a boolean CSR array without stored zeros."""
    if sp.issparse(Y):
        return _from_sparse(sp.csr_array(Y, copy=True), name)
    _reject_masked(Y, name)
    try:
        dense = _as_array(Y)
    except ValueError:  # rows of different length
        raise ValueError(
            f"{name} must be an indicator matrix, but its rows are not equally long; convert label names with "
            "MultiLabelBinarizer, or, for the columns of a model, with MultiLabelBinarizer(classes=model.classes_)"
        ) from None
    _require_table(dense, name)
    if dense.dtype != np.bool_:
        wrong = ~((dense == 0) | (dense == 1))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise _not_an_indicator(name, int(row), int(column), dense[row, column])
        dense = dense.astype(np.bool_)
    return sp.csr_array(dense)


def score_matrix(scores: ArrayLike, name: str) -> Scores:
    """Return the scores as a float array with one score per cell and no NaN."""
    if sp.issparse(scores):
        raise ValueError(f"{name} is sparse, but a ranking needs a score for every label: pass {name}.toarray()")
    _reject_masked(scores, name)
    array = _as_array(scores)
    _require_table(array, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got dtype {array.dtype}")
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    missing = np.isnan(array)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            f"{name} is NaN at row {row}, label {column} ({missing.sum()} in all): "
            "give labels without a score the lowest score (for probabilities, 0)"
        )
    return array


def matched(Y_true: Any, other: Any, name: str) -> Any:
    """Return `other` with its columns in the order of Y_true, if both are DataFrames.

    Rows are matched by position. If both tables have the same index in different orders, the input is rejected,
    because it is unclear whether rows should be matched by index.
    """
    if not (hasattr(Y_true, "columns") and hasattr(other, "columns")):
        return other
    Y_true, other = in_pandas(Y_true), in_pandas(other)
    true_columns, columns = list(Y_true.columns), list(other.columns)
    lacking = [label for label in true_columns if label not in set(columns)]
    extra = [label for label in columns if label not in set(true_columns)]
    if lacking or extra:
        raise ValueError(
            f"Y_true and {name} name different labels: {name} lacks {lacking[:5]!r}, Y_true lacks {extra[:5]!r}; "
            "give both the same columns (zeros for a label that does not occur), or pass .to_numpy()"
        )
    for table, named in (("Y_true", true_columns), (name, columns)):
        if len(set(named)) < len(named):
            raise ValueError(f"{table} has two columns of the same name; give every label its own")
    if not Y_true.index.equals(other.index) and Y_true.index.sort_values().equals(other.index.sort_values()):
        raise ValueError(
            f"Y_true and {name} have the same index in another order; pass {name}.loc[Y_true.index] to match rows by "
            "it, or .to_numpy() to match them by position"
        )
    places = {label: place for place, label in enumerate(columns)}
    return other.iloc[:, [places[label] for label in true_columns]]


def true_and_scores(Y_true: LabelMatrix, scores: ArrayLike, name: str) -> tuple[Truth, Scores]:
    """Check labels and scores and that their shapes match, and return them as arrays."""
    true, array = label_matrix(Y_true, "Y_true"), score_matrix(matched(Y_true, scores, name), name)
    require_same_shape(true, array, name)
    return true, array


def predicted_labels(Y_true: LabelMatrix, Y_pred: LabelMatrix) -> Truth:
    """Check predicted labels, and return them with the columns of the true labels."""
    return label_matrix(matched(Y_true, Y_pred, "Y_pred"), "Y_pred")


def require_same_shape(Y_true: Truth, other: Truth | Scores, name: str) -> None:
    """Raise ValueError unless both matrices have the same shape."""
    if Y_true.shape != other.shape:
        raise ValueError(
            f"Y_true has shape {Y_true.shape}, but {name} has shape {other.shape}: both need one row per "
            "instance and one column per label (a label that the model has not seen is a column of zeros)"
        )


def _reject_masked(table: Any, name: str) -> None:
    if np.ma.is_masked(table):
        raise ValueError(f"{name} has masked cells, whose values are unknown: leave such rows out, or fill the cells")


def _as_array(table: Any) -> NDArray[Any]:
    table = in_pandas(table)
    array = np.asarray(table)
    if array.dtype == object and hasattr(table, "columns"):  # such as pandas columns that may hold NA
        with suppress(TypeError, ValueError):
            array = table.to_numpy(dtype=np.float64, na_value=np.nan)
    return array


def _require_table(array: NDArray[Any], name: str) -> None:
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a table with one row per sample and one column per label, "
            f"but it has {array.ndim} dimension(s) and shape {array.shape}"
        )


def _from_sparse(matrix: sp.csr_array[Any, tuple[int, int]], name: str) -> Truth:
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    wrong = np.flatnonzero(matrix.data != 1)
    if wrong.size:
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise _not_an_indicator(name, row, int(matrix.indices[wrong[0]]), matrix.data[wrong[0]])
    return matrix.astype(np.bool_)


def _not_an_indicator(name: str, row: int, column: int, value: object) -> ValueError:
    return ValueError(
        f"{name} must hold 0 and 1 only, but row {row}, label {column} is {value!s}: "
        "pass an indicator matrix (MultiLabelBinarizer makes one from label names)"
    )

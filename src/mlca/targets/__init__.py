"""Conversion of labels from any supported form to a common form, and back.

A classifier of this package receives labels as `LabelRows`: for each row the columns of its labels, in CSR form.
`read_targets` makes them from an indicator matrix, from one iterable of names per row, or from a 1-D y, together with
the `LabelSet` that names the columns. New labels are appended to a label set, never removed. Reading returns a new set
and leaves the old one unchanged, so a caller that fails half-way has changed nothing.

`labels` defines both classes; `indicator`, `names` and `classes` read one form of y each, and `text` reads label names
from strings. The first batch determines which of the three forms y has, so that the same lists never mean names in one
call and an indicator matrix in the next. Ambiguous input is rejected, and the message shows both ways to write it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.optional import in_pandas
from mlca.targets.classes import as_array, read_classes
from mlca.targets.indicator import read_frame, read_indicator
from mlca.targets.labels import Form, LabelRows, LabelSet, plain
from mlca.targets.names import is_row_of_names, read_names

__all__ = ["Form", "LabelRows", "LabelSet", "LabelsWithIds", "exact_share", "read_targets", "read_truth"]


class LabelsWithIds(NamedTuple):
    """Labels of rows, with the user's IDs of the rows."""

    y: Any
    ids: Any


def read_targets(
    y: Any, known: LabelSet | None = None, classes: Iterable[Hashable] | None = None
) -> tuple[LabelSet, LabelRows]:
    """Read labels in any supported form.

    Parameters
    ----------
    y : array-like, sparse matrix or iterable of iterables
        An indicator matrix of 0 and 1 (dense, sparse, nested lists, or a DataFrame whose columns are label names), one
        iterable of label names per row (in a dict of name to bool, only True counts), or a 1-D array of classes.
    known : LabelSet, optional
        The labels known so far, and their form. They keep their columns; new labels follow.
    classes : iterable, optional
        Names of labels that may appear later; for an indicator matrix, the names of its columns.

    Returns
    -------
    labels : LabelSet
        The labels known now.
    rows : LabelRows
        The labels of each row, as columns of `labels`.

    Raises
    ------
    ValueError
        If y has none of these forms, is ambiguous, or does not fit the known labels.

    Examples
    --------
    >>> labels, rows = read_targets([{"sea"}, {"sea", "sun"}, set()])
    >>> labels.names, rows.indptr.tolist(), rows.indices.tolist()
    (('sea', 'sun'), [0, 1, 3, 3], [0, 0, 1])
    """
    if isinstance(y, LabelsWithIds):
        labels, targets = read_targets(y.y, known, classes)
        return labels, targets._replace(ids=_checked_ids(y.ids, targets.n_rows))
    if type(y) is not np.ndarray:
        if y is None:
            raise ValueError("this classifier requires y to be passed, but the target y is None")
        if sparse.issparse(y):
            return read_indicator(sparse.csr_array(y), None, known, classes)
        if np.ma.is_masked(y):
            raise ValueError("y has masked cells, whose labels are unknown: leave such rows out, or fill the cells")
        y = in_pandas(y)
        if hasattr(y, "columns") and hasattr(y, "to_numpy"):
            return read_frame(y, known, classes)
        if hasattr(y, "__array__"):
            y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.ndim == 2:
        if y.shape[1] == 1 and _is_column_of_classes(y, known):
            return read_classes(y, known, classes)
        return read_indicator(y, None, known, classes)
    rows = _rows_of(y)
    if not any(map(is_row_of_names, rows)):
        return read_classes(y if isinstance(y, np.ndarray) else as_array(rows), known, classes)
    if _is_nested_indicator(rows, known):
        return read_indicator(np.array([list(row) for row in rows]), None, known, classes)
    return read_names(rows, known, classes)


def _checked_ids(ids: Any, n_rows: int) -> tuple[str | int, ...]:
    """Return row IDs as strings and integers; raise ValueError if any has another type."""
    row_ids = [one.item() if isinstance(one, np.generic) else one for one in ids]
    if len(row_ids) != n_rows:
        raise ValueError(f"ids has {len(row_ids)} entries but y has {n_rows} rows; each row needs an ID")
    for place, one in enumerate(row_ids):
        if not isinstance(one, str) and type(one) is not int:
            raise ValueError(f"ids[{place}] is {one!r:.40}; pass text or whole numbers, one per row")
    return tuple(row_ids)


def read_truth(y: Any, known: LabelSet) -> tuple[LabelSet, LabelRows]:
    """Read labels to compare with a model's predictions.

    Their form may differ from that of the training labels: for example, label names can be compared with the
    predictions of a model trained on an indicator matrix. Labels that the model does not know get columns after the
    known ones.

    Parameters
    ----------
    y : array-like, sparse matrix or iterable of iterables
        The labels, in any form that `read_targets` accepts; an indicator matrix without names has the columns of
        `known`.
    known : LabelSet
        The labels that the model knows.

    Returns
    -------
    labels : LabelSet
        The labels of the model, followed by additional labels of y.
    rows : LabelRows
        The labels of each row, as columns of `labels`.
    """
    try:
        return read_targets(y, known)
    except ValueError:
        if known.form is None:
            raise
        return read_targets(y, replace(known, form=None))


def exact_share(y: Any, known: LabelSet, predicted: NDArray[Any], weights: Any = None) -> float:
    """Return the share of rows whose predicted labels are exactly the true ones.

    Parameters
    ----------
    y : array-like, sparse matrix or iterable of iterables
        The true labels, in any form that `fit` takes. A row with a label unknown to the model counts as wrong.
    known : LabelSet
        The labels that the model knows.
    predicted : ndarray
        The result of `predict`: an indicator matrix with the columns of `known`, or one class per row.
    weights : array-like, optional
        The weight of each row.

    Returns
    -------
    float

    Examples
    --------
    >>> exact_share([{"sea"}, {"sun", "wind"}], LabelSet(("sea", "sun")), np.array([[1, 0], [0, 1]]))
    0.5
    """
    labels, truth = read_truth(y, known)
    if truth.n_rows != len(predicted):
        raise ValueError(f"X has {len(predicted)} rows but y has {truth.n_rows}; each row needs its labels")
    weights = None if weights is None else _checked_weights(weights, truth.n_rows)
    if labels.single:
        columns = {name: column for column, name in enumerate(known.names)}
        chosen = np.array([columns[name] for name in predicted.tolist()], dtype=np.int32)
        return float(np.average(chosen == truth.indices, weights=weights))
    answers = sparse.csr_array(predicted)
    answers.resize((truth.n_rows, truth.n_labels))
    wrong = np.asarray((answers != truth.to_csr()).sum(axis=1)).ravel()
    return float(np.average(wrong == 0, weights=weights))


def _checked_weights(weights: Any, n_rows: int) -> NDArray[np.float64]:
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_rows,):
        raise ValueError(f"sample_weight has the shape {checked.shape}; expected one number for each of {n_rows} rows")
    if not (np.isfinite(checked).all() and (checked >= 0).all() and checked.any()):
        raise ValueError("sample_weight must be non-negative and finite, with at least one value above 0")
    return checked


def _rows_of(y: Any) -> list[Any]:
    if isinstance(y, np.ndarray):
        return list(y) if y.dtype == object and y.ndim == 1 else []
    if isinstance(y, str | bytes | Mapping | set | frozenset) or not isinstance(y, Iterable):
        remedy = f"[[{y!r:.40}]]" if isinstance(y, str) else "[y]"
        raise ValueError(
            f"y must hold one entry per row, each a list of label names or one class; got the {type(y).__name__} "
            f"{y!r:.40}: for a single row write {remedy}"
        )
    return list(y)


def _is_column_of_classes(y: NDArray[Any], known: LabelSet | None) -> bool:
    """Return whether a one-column 2-D array holds classes rather than an indicator."""
    if known is not None and (known.single or known.form is not None):
        return known.single
    return y.dtype.kind not in "biuf" or not bool(np.all((y == 0) | (y == 1)))


def _is_nested_indicator(rows: Sequence[Any], known: LabelSet | None) -> bool:
    """Return whether nested rows are an indicator matrix; raise ValueError if it is unclear.

    Equally long lists of 0 and 1 are an indicator matrix, as in scikit-learn, unless the model has learned label names,
    which may be 0 and 1.
    """
    if not _are_equally_long_bits(rows):
        return False
    width = len(rows[0])
    named_twice = any(len({*map(plain, row)}) < width for row in rows)
    if known is not None and known.form == "names":
        if named_twice or (known.names and not any(isinstance(name, int) for name in known.names)):
            raise ValueError(
                f"y holds rows of 0 and 1 such as {rows[0]!r}, but the model learned label names such as "
                f"{list(known.names[:1])}: use names again, for instance [set(model.classes_[np.array(row) == 1]) "
                "for row in y]"
            )
        return False
    lists = all(isinstance(row, list | np.ndarray) for row in rows)
    if known is not None and known.form == "indicator":
        return lists
    # Tuples usually name labels, like those of `labels_from`, but a tuple of several 0 and 1 looks like a matrix row.
    if (lists and width == 1) or (not lists and width > 1):
        raise ValueError(
            f"y is ambiguous: a row such as {rows[0]!r} may be the columns of an indicator matrix, or name the "
            "labels 0 and 1; write np.array(y) for the former, and one set of names per row, such "
            "as [set(row) for row in y], for the latter"
        )
    return lists


def _are_equally_long_bits(rows: Sequence[Any]) -> bool:
    if not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return False
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths != {0} and all(_is_bit(cell) for row in rows for cell in row)


def _is_bit(cell: Any) -> bool:
    return isinstance(cell, int | float | np.number | np.bool_) and bool(cell == 0 or cell == 1)

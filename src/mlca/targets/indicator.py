"""Reading labels from an indicator matrix of 0 and 1, whose columns may have names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.targets.labels import LabelRows, LabelSet, as_names, plain, require_name
from mlca.targets.text import is_missing_label


def read_frame(frame: Any, known: LabelSet | None, classes: Iterable[Hashable] | None) -> tuple[LabelSet, LabelRows]:
    """Read a DataFrame of 0 and 1 with one column per label, matched by name.

    Labels in `classes` need no column: they may appear later.
    """
    columns: list[Hashable] = [plain(name) for name in frame.columns]
    places = {name: place for place, name in enumerate(columns)}
    for name in columns:
        require_name(name, "a column of y")
    if len(places) < len(columns):
        raise ValueError("y has two columns of the same name; give every label its own name")
    listed = () if classes is None else as_names(classes)
    for name in listed:
        require_name(name, "`classes`")
    before: tuple[Hashable, ...] = ()
    if known is not None and known.names and not known.single and known.form != "names":
        before = known.names
        given = {*places, *listed}
        missing = [name for name in before if name not in given]
        if missing and known.numbered:
            raise ValueError(
                f"y names its columns {columns[0]!r} ..., but the labels so far are numbered from 0: pass "
                "y.to_numpy() if its columns are in the order of classes_"
            )
        if missing:
            raise ValueError(
                f"y lacks the columns of known labels {missing[:5]!r}; labels are never "
                "removed: add a column of zeros for each label that does not occur"
            )
    columns = list(dict.fromkeys([*before, *listed, *columns]))
    values = frame.to_numpy()
    with_zeros = np.column_stack([values, np.zeros(len(values), values.dtype)])
    # Columns are selected by position, because pandas would read names such as True and False as a mask of rows.
    return read_indicator(with_zeros[:, [places.get(name, -1) for name in columns]], columns, known, None)


def read_indicator(
    y: Any, columns: Sequence[Hashable] | None, known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[LabelSet, LabelRows]:
    """Read a dense or CSR indicator matrix, optionally with names of its columns."""
    if known is not None and known.single:
        raise ValueError(
            "the model learned one class per row (a 1-D y), so an indicator matrix does not fit it: use one class "
            "per row again, such as model.classes_[y.argmax(axis=1)] if each row has one"
        )
    if known is not None and known.form == "names":
        names = "model.classes_" if columns is None else "y.columns"
        raise ValueError(
            "y is an indicator matrix, but the model learned rows of label names: use names again, such as "
            f"[set({names}[row == 1]) for row in np.asarray(y)]"
        )
    names_now = _column_names(y.shape[1], columns, known, classes)
    # With `classes`, y may have fewer columns than there are known labels.
    if known is not None and y.shape[1] < len(known.names) and classes is None:
        raise ValueError(
            f"y has {y.shape[1]} columns, but {len(known.names)} labels are known; labels are never "
            "removed: add a column of zeros for each label that does not occur"
        )
    indptr, indices = _nonzero_of_bits(y)
    rows = LabelRows(indptr, indices, len(names_now), len(names_now))
    if known is not None and known.form == "indicator" and names_now is known.names:
        return known, rows
    return LabelSet(names_now, form="indicator"), rows


def _column_names(
    width: int, columns: Sequence[Hashable] | None, known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[Hashable, ...]:
    """Return column names: those of the matrix, of `classes`, the known names, or numbers."""
    if columns is not None:
        return tuple(columns)
    names = () if known is None else known.names
    if classes is not None:
        listed = as_names(classes)
        for name in listed:
            require_name(name, "`classes`")
        n_both = min(len(listed), len(names))
        if listed[:n_both] != names[:n_both]:
            raise ValueError("`classes` must begin with the known labels, in the order of classes_")
        names = listed if len(listed) > len(names) else names
        if width > len(names):
            raise ValueError(f"y has {width} columns but `classes` names {len(names)} labels; name them all")
        return names
    if width > len(names):
        if not LabelSet(names).numbered:
            raise ValueError(
                f"y has {width} columns, but the {len(names)} known labels have names: pass the names of all "
                "columns in `classes`, or give one iterable of label names per row"
            )
        return tuple(range(width))
    return names


def _nonzero_of_bits(y: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Check that a matrix holds only 0 and 1; return the indptr and indices of its ones."""
    if not isinstance(y, np.ndarray):
        y = y.copy()
        y.check_format(full_check=True)  # rejects column indices out of range
        y.sum_duplicates()
        y.eliminate_zeros()
        wrong = np.flatnonzero(y.data != 1)
        if wrong.size:
            row = int(np.searchsorted(y.indptr, wrong[0], side="right")) - 1
            raise _not_a_bit(y.data[wrong[0]], row, int(y.indices[wrong[0]]))
        return y.indptr.astype(np.int64), y.indices.astype(np.int32)
    if y.dtype.kind not in "biuf":
        y = _as_numbers(y)
    rows, columns = y.nonzero()
    if len((y == 1).nonzero()[0]) < len(columns):
        values = y[rows, columns]
        first = int(np.argmax(values != 1))
        raise _not_a_bit(values[first], int(rows[first]), int(columns[first]))
    # Fast path: a single row, as in streams, needs no search for row bounds.
    ends = np.array([0, len(columns)]) if len(y) == 1 else rows.searchsorted(np.arange(len(y) + 1))
    return ends.astype(np.int64, copy=False), columns.astype(np.int32)


def _as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """Convert an array of objects to numbers; the ValueError names the first invalid cell."""
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        for (row, column), cell in np.ndenumerate(y):
            try:
                float(cell)
            except (TypeError, ValueError):
                raise _not_a_bit(cell, row, column) from None
        raise


def _not_a_bit(value: Any, row: int, column: int) -> ValueError:
    value = plain(value)
    remedy = ""
    if is_missing_label(value):
        remedy = ": write 0 if the row lacks the label, or leave the row out"
    elif isinstance(value, str | list | tuple | set):
        remedy = ": pass a column of names alone, such as y['tags'], and split text with mlca.labels_from"
    return ValueError(
        f"Unknown label type: y must be an indicator matrix of 0 and 1, but row {row}, column {column} holds "
        f"{value!r}{remedy}"
    )

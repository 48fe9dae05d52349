"""Reader of the text format of the Extreme Classification repository."""

from __future__ import annotations

from array import array
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from mlca.datasets.sparse_rows import SparseRows
from mlca.datasets.table import LabelledTable
from mlca.tables.byte_streams import ByteStream, bad_file, decoded_lines
from mlca.tables.sources import Fault
from mlca.tables.xc import XcSource


def read_xc(
    path: str | PathLike[str],
    *,
    train_split: str | PathLike[str] | None = None,
    test_split: str | PathLike[str] | None = None,
    one_based: bool | None = None,
) -> LabelledTable:
    r"""Read a dataset in the text format of the Extreme Classification repository.

    The first line has the numbers of rows, features and labels. Each following line is a row: its comma-separated
    labels, then ``feature:value`` for each non-zero value.

    Parameters
    ----------
    path : path-like
        The data file, optionally with the suffix ``.gz`` or ``.bz2``.
    train_split, test_split : path-like, optional
        Files with the row numbers of the train and of the test part, one per line. If a file has several columns, for
        several splits, the first is used. Pass both or neither.
    one_based : bool, optional
        Whether features and labels are numbered from 1. Default: detected; true if an index equal to the count
        occurs and 0 does not.

    Returns
    -------
    LabelledTable
        X is sparse; the format has no names.

    Raises
    ------
    ValueError
        If a file is not in the format; the message names file and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.txt")
    ...     _ = path.write_text("2 3 2\n0,1 0:0.5 2:1\n1 1:2\n")
    ...     table = read_xc(path)
    >>> table.X.toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2. , 0. ]])
    >>> table.Y.toarray()
    array([[1, 1],
           [0, 1]], dtype=uint8)
    """
    if (train_split is None) != (test_split is None):
        raise ValueError("pass both train_split and test_split, or neither")
    features, labels = SparseRows(), SparseRows(ones=True)
    with ByteStream(path) as stream:
        stream.peek()
        source = XcSource(stream)
        for number, row in source.rows():
            if isinstance(row, Fault):
                raise bad_file(path, number, row.problem)
            labels.columns.extend(row.labels)
            features.columns.extend(row.attributes)
            features.values.extend(row.values)
            features.end_row(number)
            labels.end_row(number)
    n_rows, n_features, n_labels = source.n_rows, source.n_features, source.n_labels
    _shift_to_zero(features, n_features, labels, n_labels, one_based, path)
    split = None
    if train_split is not None and test_split is not None:
        split = _read_split(train_split, test_split, n_rows)
    return LabelledTable(
        X=features.matrix(n_features, path, "attribute"),
        Y=labels.matrix(n_labels, path, "label"),
        split=split,
    )


def _shift_to_zero(
    features: SparseRows,
    n_features: int,
    labels: SparseRows,
    n_labels: int,
    one_based: bool | None,
    path: str | PathLike[str],
) -> None:
    """Shift feature and label indices in place to start at 0, and check their range."""
    kinds = [("attribute", features, n_features), ("label", labels, n_labels)]
    numbers = [np.frombuffer(rows.columns, np.int32) for _, rows, _ in kinds]
    if one_based is None:
        one_too_high = any(columns.max(initial=-1) == kind[2] for columns, kind in zip(numbers, kinds, strict=True))
        shifts = [int(one_too_high and columns.min(initial=1) > 0) for columns in numbers]
    else:
        shifts = [int(one_based)] * 2
    for (what, rows, count), columns, shift in zip(kinds, numbers, shifts, strict=True):
        columns -= shift
        wrong = (columns < 0) | (columns >= count)
        if wrong.any():
            cell = int(wrong.argmax())
            raise bad_file(
                path,
                rows.line_of(cell),
                f"{what} {columns[cell] + shift} is out of range; the header declares {count}, numbered from {shift}",
            )


def _read_split(
    train_split: str | PathLike[str], test_split: str | PathLike[str], n_rows: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Read the row indices of both parts; row numbers start at 1 unless a 0 occurs."""
    taken: set[int] = set()
    train = _read_row_numbers(train_split, n_rows, taken)
    test = _read_row_numbers(test_split, n_rows, taken)
    if 0 in taken and n_rows in taken:
        raise bad_file(
            train_split,
            1,
            f"rows 0 and {n_rows} both occur in this file and {test_split}; number all rows from 0, or all from 1",
        )
    shift = 0 if 0 in taken else 1
    return train - shift, test - shift


def _read_row_numbers(path: str | PathLike[str], n_rows: int, taken: set[int]) -> NDArray[np.intp]:
    """Read the first number of each line; duplicates are rejected."""
    rows = array("q")
    for number, line in decoded_lines(path):
        words = line.split(maxsplit=1)
        if not words:
            continue
        if not (words[0].isascii() and words[0].isdigit() and len(words[0]) < 19):
            raise bad_file(path, number, f"{words[0][:40]!r} is not a row number")
        row = int(words[0])
        if row > n_rows:
            raise bad_file(path, number, f"row {row} is out of range; the data have {n_rows} rows")
        if row in taken:
            raise bad_file(path, number, f"row {row} occurs twice; fetch the split files again")
        taken.add(row)
        rows.append(row)
    return np.frombuffer(rows, np.int64).astype(np.intp)

"""From whatever a user calls labels to one form, and back.

A classifier of this package sees labels as `LabelRows`: for each row the columns of its labels, in
CSR fashion. `read_targets` makes them from an indicator matrix, from one iterable of names a row,
or from a 1-D y, together with the `LabelSet` that names the columns. A label set only ever grows,
on the right; reading returns a new one and leaves the old alone, so a caller that fails half-way
has changed nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


class LabelRows(NamedTuple):
    """The labels of some rows: row i has the columns `indices[indptr[i]:indptr[i + 1]]`, ascending."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    n_labels: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def to_csr(self) -> sparse.csr_array:
        """Return the indicator matrix as a sparse array of 0 and 1 (uint8)."""
        ones = np.ones(len(self.indices), dtype=np.uint8)
        shape = (self.n_rows, self.n_labels)
        return sparse.csr_array((ones, self.indices, self.indptr), shape=shape)

    def to_dense(self) -> NDArray[np.uint8]:
        """Return the indicator matrix as a dense array of 0 and 1."""
        dense: NDArray[np.uint8] = self.to_csr().toarray()
        return dense


@dataclass(frozen=True)
class LabelSet:
    """The labels that a classifier knows, in the order of their columns.

    Attributes
    ----------
    names : tuple
        One hashable name a column. Columns of an unnamed indicator matrix are called 0, 1, 2, ...
    single : bool
        Whether each row has exactly one label (it was learned from a 1-D y).
    """

    names: tuple[Hashable, ...]
    single: bool = False

    @property
    def numbered(self) -> bool:
        """Whether the names are just the numbers of the columns."""
        return self.names == tuple(range(len(self.names)))

    def to_array(self) -> NDArray[Any]:
        """Return the names as an array: of their own type if they share one, else of objects."""
        kinds = {type(name) for name in self.names}
        if len(kinds) == 1 and issubclass(kinds.pop(), str | int | float | bool | np.generic):
            return np.array(self.names)
        array = np.empty(len(self.names), dtype=object)
        array[:] = self.names
        return array

    def name_rows(self, indicator: NDArray[Any]) -> list[set[Hashable]]:
        """Return the set of label names of each row of an indicator matrix."""
        rows: list[set[Hashable]] = [set() for _ in range(len(indicator))]
        for i, j in zip(*np.nonzero(indicator), strict=True):
            rows[i].add(self.names[j])
        return rows


def read_targets(
    Y: Any, known: LabelSet | None = None, classes: Iterable[Hashable] | None = None
) -> tuple[LabelSet, LabelRows]:
    """Read the labels of some rows.

    Parameters
    ----------
    Y : array-like, sparse matrix or iterable of iterables
        An indicator matrix of 0 and 1 (dense, sparse, nested lists or a DataFrame, whose columns
        are then the names), one iterable of label names per row, or a 1-D array of classes.
    known : LabelSet, optional
        The labels known so far. They keep their columns; new ones follow.
    classes : iterable, optional
        Names of labels that may come; with an indicator matrix they name its columns.

    Returns
    -------
    labels : LabelSet
        The labels known now.
    rows : LabelRows
        The labels of each row, as columns of `labels`.

    Raises
    ------
    ValueError
        If Y is none of these, or does not fit what is known.

    Examples
    --------
    >>> labels, rows = read_targets([{"sea"}, {"sea", "sun"}, set()])
    >>> labels.names, rows.indptr.tolist(), rows.indices.tolist()
    (('sea', 'sun'), [0, 1, 3, 3], [0, 0, 1])
    """
    if Y is None:
        raise ValueError("this classifier requires y to be passed, but the target y is None")
    if sparse.issparse(Y):
        return _read_indicator(sparse.csr_array(Y), None, known, classes)
    if hasattr(Y, "columns") and hasattr(Y, "to_numpy"):
        return _read_frame(Y, known, classes)
    if hasattr(Y, "__array__"):
        Y = np.asarray(Y)
    if not isinstance(Y, np.ndarray):
        Y = _array_or_rows(Y)
    if isinstance(Y, np.ndarray):
        if Y.ndim == 2 and not _is_column_of_classes(Y):
            return _read_indicator(Y, None, known, classes)
        if Y.dtype != object or not any(map(_is_row_of_names, Y.ravel())):
            return _read_classes(Y, known, classes)
    return _read_names(list(Y), known, classes)


def _array_or_rows(Y: Any) -> Any:
    """Turn nested lists of 0 and 1, and flat lists, into an array; leave rows of names as they are."""
    if isinstance(Y, str | bytes | dict | set | frozenset) or not isinstance(Y, Iterable):
        raise ValueError(f"Y must have one entry per row; a {type(Y).__name__} has none")
    rows = list(Y)
    if rows and all(isinstance(row, list | np.ndarray) for row in rows):
        # Equally long lists of 0 and 1 are an indicator matrix, as in scikit-learn. Anything else is names.
        widths = {len(row) for row in rows}
        if len(widths) == 1 and widths != {0} and all(_is_bit(cell) for row in rows for cell in row):
            return np.array(rows).reshape(len(rows), -1)
        return rows
    return rows if any(map(_is_row_of_names, rows)) else np.array(rows)


def _is_bit(cell: Any) -> bool:
    return isinstance(cell, int | float | np.number | np.bool_) and bool(cell == 0 or cell == 1)


def _is_row_of_names(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | bytes)


def _is_column_of_classes(Y: NDArray[Any]) -> bool:
    """Whether a 2-D array of one column holds classes rather than the indicator of one label."""
    return Y.shape[1] == 1 and (Y.dtype.kind not in "biuf" or not bool(np.all((Y == 0) | (Y == 1))))


def _read_frame(frame: Any, known: LabelSet | None, classes: Iterable[Hashable] | None) -> tuple[LabelSet, LabelRows]:
    columns: list[Hashable] = list(frame.columns)
    if len(set(columns)) < len(columns):
        raise ValueError("Y has two columns of the same name; give every label its own")
    if known is not None and not known.numbered:
        missing = [name for name in known.names if name not in set(columns)]
        if missing:
            raise ValueError(f"Y lacks the columns of known labels {missing[:5]!r}; labels never go away")
        columns = [*known.names, *(name for name in columns if name not in set(known.names))]
    return _read_indicator(frame[columns].to_numpy(), columns, known, classes)


def _read_indicator(
    Y: Any, columns: Sequence[Hashable] | None, known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[LabelSet, LabelRows]:
    if known is not None and known.single:
        raise ValueError("the model learned one class per row (a 1-D y); an indicator matrix does not fit it")
    names = _column_names(Y.shape[1], columns, known, classes)
    if known is not None and Y.shape[1] < len(known.names):
        raise ValueError(
            f"Y has {Y.shape[1]} columns, but {len(known.names)} labels are known; labels never go away: "
            "give columns of zeros to labels that do not occur"
        )
    indptr, indices = _nonzero_of_bits(Y)
    return LabelSet(names), LabelRows(indptr, indices, len(names))


def _column_names(
    width: int, columns: Sequence[Hashable] | None, known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[Hashable, ...]:
    """Name the columns of an indicator matrix: by its own names, by `classes`, as before, or by numbers."""
    if columns is not None:
        return tuple(columns)
    names = () if known is None else known.names
    if classes is not None:
        listed = _as_names(classes)
        if listed[: len(names)] != names and not set(listed) <= set(names):
            raise ValueError("`classes` must begin with the known labels, in the order of classes_")
        names = listed if len(listed) > len(names) else names
        if width > len(names):
            raise ValueError(f"Y has {width} columns but `classes` names {len(names)} labels; name them all")
        return names
    if width > len(names):
        if not LabelSet(names).numbered:
            raise ValueError(
                f"Y has {width} columns, but the {len(names)} known labels have names: pass the names of all "
                "columns in `classes`, or give one iterable of label names per row"
            )
        return tuple(range(width))
    return names


def _nonzero_of_bits(Y: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return indptr and indices of a matrix after checking that it holds nothing but 0 and 1."""
    if sparse.issparse(Y):
        Y = Y.copy()
        Y.sum_duplicates()
        Y.eliminate_zeros()
        wrong = np.flatnonzero(Y.data != 1)
        if wrong.size:
            row = int(np.searchsorted(Y.indptr, wrong[0], side="right")) - 1
            raise _not_a_bit(Y.data[wrong[0]], row, int(Y.indices[wrong[0]]))
        return Y.indptr.astype(np.int64), Y.indices.astype(np.int32)
    if Y.dtype.kind not in "biuf":
        try:
            Y = Y.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"Y must be an indicator matrix of 0 and 1, not an array of {Y.dtype}") from None
    ones = Y == 1
    if not np.all(ones | (Y == 0)):
        row, column = map(int, np.argwhere(~(ones | (Y == 0)))[0])
        raise _not_a_bit(Y[row, column], row, column)
    rows, columns = np.nonzero(ones)
    indptr = np.zeros(len(Y) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(Y)), out=indptr[1:])
    return indptr, columns.astype(np.int32)


def _not_a_bit(value: Any, row: int, column: int) -> ValueError:
    return ValueError(
        f"Unknown label type: Y must be an indicator matrix of 0 and 1, but row {row}, column {column} holds {value!r}"
    )


def _read_names(
    Y: Sequence[Any], known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[LabelSet, LabelRows]:
    if known is not None and known.single:
        raise ValueError("the model learned one class per row (a 1-D y); rows of label names do not fit it")
    columns = _number_names(known, classes)
    indptr = np.zeros(len(Y) + 1, dtype=np.int64)
    indices: list[int] = []
    for i, row in enumerate(Y):
        if not _is_row_of_names(row):
            raise ValueError(f"row {i} of Y is {row!r}; every row must be an iterable of label names")
        here = set()
        for name in _in_order(row):
            try:
                here.add(columns.setdefault(_plain(name), len(columns)))
            except TypeError:
                raise ValueError(f"row {i} of Y names a label {name!r}, which is not hashable") from None
        indices.extend(sorted(here))
        indptr[i + 1] = len(indices)
    names = tuple(columns)
    return LabelSet(names), LabelRows(indptr, np.array(indices, dtype=np.int32), len(names))


def _in_order(row: Any) -> Iterable[Any]:
    """Return a row's names in an order that is the same in every process: a set has none of its own."""
    if not isinstance(row, set | frozenset):
        return row  # type: ignore[no-any-return]
    return sorted(row, key=lambda name: (type(name).__name__, name if isinstance(name, str) else repr(name)))


def _read_classes(
    Y: NDArray[Any], known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[LabelSet, LabelRows]:
    if known is not None and not known.single:
        raise ValueError("the model learned label sets, not a 1-D y: give one iterable of names per row")
    y = column_or_1d(Y, warn=True)
    if y.dtype.kind not in "biuUS":
        check_classification_targets(y)
    found, codes = np.unique(y, return_inverse=True)
    columns = _number_names(known, classes)
    # A first batch without `classes` is taken as sorted, as scikit-learn does; later ones as they appear.
    order = found if known is None else y[np.sort(np.unique(y, return_index=True)[1])]
    for name in order.tolist():
        columns.setdefault(name, len(columns))
    column_of_code = np.array([columns[name] for name in found.tolist()], dtype=np.int32)
    rows = LabelRows(np.arange(len(y) + 1), column_of_code[codes.ravel()], len(columns))
    return LabelSet(tuple(columns), single=True), rows


def _number_names(known: LabelSet | None, classes: Iterable[Hashable] | None) -> dict[Hashable, int]:
    names = () if known is None else known.names
    columns = {name: column for column, name in enumerate(names)}
    for name in () if classes is None else _as_names(classes):
        columns.setdefault(name, len(columns))
    return columns


def _as_names(classes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    try:
        names = tuple(_plain(name) for name in classes)
        distinct = len(set(names))
    except TypeError:
        raise ValueError(f"`classes` must list hashable label names, not {classes!r}") from None
    if distinct < len(names):
        raise ValueError("`classes` names a label twice")
    return names


def _plain(name: Any) -> Any:
    """Take NumPy scalars out of their wrapping: np.int64(3) and 3 are the same label."""
    return name.item() if isinstance(name, np.generic) else name

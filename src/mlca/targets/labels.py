"""The known labels (`LabelSet`) and the labels of rows (`LabelRows`) of a classifier."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.targets.text import is_missing_label

Form: TypeAlias = Literal["indicator", "names"]

# Types whose values need no further check.
_PLAIN_NAMES = frozenset({str, int, bool})


class LabelRows(NamedTuple):
    """The labels of some rows; row i has columns `indices[indptr[i]:indptr[i + 1]]`.

    `n_labels` is the number of known labels after these rows; `n_before` does not count labels that first appear in
    these rows. `ids` are the user's row IDs, with None for a row without an ID.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    n_labels: int
    n_before: int
    ids: tuple[str | int | None, ...] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def between(self, start: int, stop: int) -> LabelRows:
        """Return the labels of the rows from `start` up to `stop`."""
        first, last = self.indptr[start], self.indptr[stop]
        ids = None if self.ids is None else self.ids[start:stop]
        return self._replace(indptr=self.indptr[start : stop + 1] - first, indices=self.indices[first:last], ids=ids)

    def take(self, rows: Sequence[int]) -> LabelRows:
        """Return the labels of the rows with the given indices, in that order."""
        parts = [self.indices[self.indptr[row] : self.indptr[row + 1]] for row in rows]
        indptr = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        ids = None if self.ids is None else tuple(self.ids[row] for row in rows)
        return self._replace(indptr=indptr, indices=np.concatenate([self.indices[:0], *parts]), ids=ids)

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
    """The known labels, in the order of their columns.

    Attributes
    ----------
    names : tuple
        One hashable name per column. Columns of an unnamed indicator matrix are called 0, 1, 2, ...
    single : bool
        Whether each row has exactly one label, because y was 1-D.
    form : {"indicator", "names"} or None
        The form of y if rows have several labels; None if each row has one, or if the form is not known yet.
    """

    names: tuple[Hashable, ...]
    single: bool = False
    form: Form | None = None

    @cached_property
    def columns(self) -> dict[Hashable, int]:
        """The column index of each name; do not modify it."""
        return {name: column for column, name in enumerate(self.names)}

    def __reduce__(self) -> Any:
        return (LabelSet, (self.names, self.single, self.form))

    @property
    def numbered(self) -> bool:
        """Whether the names are the column indices 0, 1, 2, ..."""
        return self.names == tuple(range(len(self.names)))

    def first(self, n: int) -> LabelSet:
        """Return a label set with only the first n labels."""
        return self if n >= len(self.names) else replace(self, names=self.names[:n])

    def to_array(self) -> NDArray[Any]:
        """Return the names as an array, of their common type if that is lossless, else of objects."""
        kinds = {type(name) for name in self.names}
        plain_kind = len(kinds) == 1 and issubclass(kinds.pop(), str | int | float | bool | np.generic)
        if plain_kind and not is_wasteful(self.names):
            array, names = np.array(self.names), [plain(name) for name in self.names]
            back = array.tolist()
            # NumPy would round large whole numbers, and its string type drops a trailing NUL.
            if back == names and isinstance(names[0], type(back[0])):
                return array
        array = np.empty(len(self.names), dtype=object)
        array[:] = self.names
        return array

    def name_rows(self, indicator: NDArray[Any]) -> list[set[Hashable]]:
        """Return the set of label names of each row of an indicator matrix."""
        rows: list[set[Hashable]] = [set() for _ in range(len(indicator))]
        for i, j in zip(*np.nonzero(indicator), strict=True):
            rows[i].add(self.names[j])
        return rows


def is_wasteful(names: Sequence[Any]) -> bool:
    """Return whether a fixed-width string array of the names would waste too much memory.

    Examples
    --------
    >>> is_wasteful(["sea", "sunshine"] * 9999), is_wasteful(["sea"] * 9999 + ["s" * 9999])
    (False, True)
    """
    lengths = [len(name) for name in names if isinstance(name, str)]
    return len(lengths) * max(lengths, default=0) > 64 * (sum(lengths) + 2**14)


def number_names(known: LabelSet | None, classes: Iterable[Hashable] | None) -> dict[Hashable, int]:
    """Return the column of each label: the known labels, then those listed in `classes`."""
    columns = {} if known is None else dict(known.columns)
    for name in () if classes is None else as_names(classes):
        columns.setdefault(name, len(columns))
    return columns


def as_names(classes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the labels in `classes`; raise ValueError if they repeat or are not hashable."""
    if isinstance(classes, str | bytes):
        raise ValueError(f"`classes` must list label names, not {classes!r:.40}; write [{classes!r:.40}]")
    try:
        names = tuple(plain(name) for name in classes)
        distinct = len(set(names))
    except TypeError:
        raise ValueError(f"`classes` must list hashable label names, not {classes!r}") from None
    if distinct < len(names):
        raise ValueError("`classes` names a label twice")
    return names


def require_name(name: Hashable, where: str) -> None:
    """Raise ValueError if a label's name is a missing value or a float."""
    if isinstance(name, float) or is_missing_label(name):
        raise ValueError(
            f"{where} names a label {name!r}; a label name must be a string or a whole number: leave it out if "
            "the label is unknown, write str(name) if it is a name"
        )


def plain(name: Any) -> Any:
    """Return a label name as a plain Python value, not as a NumPy scalar or enum member.

    Examples
    --------
    >>> from enum import Enum
    >>> Tag = Enum("Tag", {"RED": "red"}, type=str)
    >>> plain(Tag.RED), plain(np.int64(3)), plain(True)
    ('red', 3, True)
    """
    if type(name) in _PLAIN_NAMES:
        return name
    if isinstance(name, np.generic):
        return name.item()
    # `str` of an enumeration member returns the member's name, which NumPy would truncate.
    if isinstance(name, str):
        return str.__str__(name)
    return int.__int__(name) if isinstance(name, int) else name

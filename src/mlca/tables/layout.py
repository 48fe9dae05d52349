"""The columns of a table: their order and kinds, and the form of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mlca.tables.kinds import (
    AS_YOU_WISH,
    Column,
    Ignored,
    LearnedColumn,
    as_json_text,
    as_json_texts,
    column_from_json,
    column_to_json,
)

LabelForm: TypeAlias = Literal["separated", "lists", "flags"]


@dataclass(frozen=True)
class LabelLayout:
    """The form of the labels and the columns that hold them.

    Attributes
    ----------
    form : {"separated", "lists", "flags"}
        One column with separators between the labels, one column of lists, or one column of 0 and 1 per label.
    columns : tuple of str
        The label column; for "flags", the label columns of the first file.
    separator : str or None
        The separator between the labels in a cell; None if each cell is one label.
    patterns : tuple of str
        Patterns for the names of additional label columns, for "flags".
    """

    form: LabelForm
    columns: tuple[str, ...]
    separator: str | None = None
    patterns: tuple[str, ...] = ()

    def among(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return a file's label columns: known ones, then new ones that match a pattern."""
        given, known = set(columns), set(self.columns)
        new = (name for name in columns if name not in known and self._matches(name))
        return (*(name for name in self.columns if name in given), *new)

    def _matches(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class TableLayout:
    """A table with named columns.

    Attributes
    ----------
    columns : tuple of Column
        The columns in the order in which they are learned, without labels.
    labels : LabelLayout or None
        The form of the labels; None if they are passed separately.
    sparse : bool
        Whether encoded rows are sparse.
    id : str or None
        The ID column, copied to results and not learned.
    late : tuple of (int, int)
        Features added after the first rows: the index of a learned column, and its number of new features. In an
        encoded row they follow all other features, in this order.
    later : tuple of str
        Columns that occurred within the first rows, but not in the first batch of them.
    """

    columns: tuple[Column, ...]
    labels: LabelLayout | None = None
    sparse: bool = False
    id: str | None = None
    late: tuple[tuple[int, int], ...] = ()
    later: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        """The number of features of an encoded row."""
        return sum(column.width for column in self.columns)

    @cached_property
    def learned(self) -> list[LearnedColumn]:
        """The columns that are learned."""
        return [column for column in self.columns if not isinstance(column, Ignored)]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all columns except labels."""
        return frozenset(column.name for column in self.columns)

    def new_names(self, names: Iterable[str]) -> list[str]:
        """Return the names that are neither known columns, nor the ID column, nor label columns."""
        new = [name for name in names if name not in self.names and name != self.id]
        label_columns = set(self.labels.among(new)) if new and self.labels is not None else ()
        return [name for name in new if name not in label_columns]

    @cached_property
    def left_out(self) -> dict[str, str]:
        """The columns that are ignored without the user's request, with the reasons."""
        ignored = {column.name: column.reason for column in self.columns if isinstance(column, Ignored)}
        return {name: reason for name, reason in ignored.items() if reason != AS_YOU_WISH}

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The index of each feature's column among the learned columns."""
        widths = [column.width for column in self.learned]
        for place, added in self.late:
            widths[place] -= added
        first = np.repeat(np.arange(len(widths)), widths)
        return np.concatenate([first, *(np.full(added, place) for place, added in self.late)]).astype(np.int64)

    @cached_property
    def places(self) -> list[NDArray[np.int64]]:
        """The feature indices of each learned column."""
        order = np.argsort(self.owners, kind="stable")
        return np.split(order, np.cumsum([column.width for column in self.learned])[:-1])

    @cached_property
    def nominal(self) -> tuple[int, ...]:
        """The indices of the features that hold categorical codes."""
        nominal = np.array([column.nominal for column in self.learned])
        return tuple(np.flatnonzero(nominal[self.owners]).tolist())

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """The indices of the features that are NaN if their column's value is missing."""
        rows = [(places, column.encode([None])) for column, places in zip(self.learned, self.places, strict=True)]
        gaps = (places[nothing.places[np.isnan(nothing.values)]] for places, nothing in rows)
        return tuple(sorted(int(k) for found in gaps for k in found))

    @cached_property
    def optional(self) -> frozenset[str]:
        """The columns that a table may lack, because the first batch of rows lacked them."""
        left = [column.width for column in self.learned]
        for place, added in self.late:
            left[place] -= added
        late = [column.name for column, width in zip(self.learned, left, strict=True) if width == 0]
        return frozenset([*late, *self.later])

    def lacking(self, columns: Iterable[str]) -> list[LearnedColumn]:
        """Return the required columns that a table lacks."""
        present = set(columns)
        return [column for column in self.learned if column.name not in present and column.name not in self.optional]

    def with_late(self, columns: Sequence[Column]) -> TableLayout:
        """Return the layout with new or wider columns; their new features are on the right."""
        before = {column.name: column.width for column in self.learned}
        learned = [column for column in columns if not isinstance(column, Ignored)]
        late = [
            (place, column.width - before.get(column.name, 0))
            for place, column in enumerate(learned)
            if column.width > before.get(column.name, 0)
        ]
        return replace(self, columns=tuple(columns), late=(*self.late, *late))

    def name_of(self, place: int) -> str:
        """Return the name of a learned column."""
        return self.learned[place].name

    def in_words(self, place: int, part: NDArray[np.float64]) -> str:
        """Describe the value of a learned column, given its part of an encoded row."""
        return self.learned[place].in_words(part)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as JSON."""
        return {
            "layout": "table",
            "columns": [column_to_json(column) for column in self.columns],
            "labels": None if self.labels is None else _labels_to_json(self.labels),
            "sparse": self.sparse,
            "id": self.id,
            "late": [list(entry) for entry in self.late],
            **({"later": list(self.later)} if self.later else {}),
        }


@dataclass(frozen=True)
class ArrayLayout:
    """The layout of an array: each feature is a column without a name.

    Attributes
    ----------
    n_features : int
        The number of features.
    """

    n_features: int

    nominal = gaps = ()

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The column index of each feature."""
        return np.arange(self.n_features)

    def name_of(self, place: int) -> str:
        """Return the name of a feature."""
        return f"x{place}"

    def in_words(self, place: int, part: NDArray[np.float64]) -> str:
        """Return the value of a feature as text."""
        return f"{part[0]:.4g}"


@dataclass(frozen=True)
class XcLayout(ArrayLayout):
    """The layout of XC text, whose features are numbered.

    Attributes
    ----------
    n_features : int
        The number of features.
    first : int
        The number of the first feature: 0 or 1.
    """

    first: int

    def name_of(self, place: int) -> str:
        """Return the name of a feature, such as "attribute 3", numbered as in the file."""
        return f"attribute {place + self.first}"

    def to_json(self) -> dict[str, Any]:
        """Return the layout as JSON."""
        return {"layout": "xc", "n_features": self.n_features, "first": self.first}


Layout: TypeAlias = TableLayout | XcLayout


def layout_from_json(plain: Any) -> Layout:
    """Read the result of `to_json`; ValueError, KeyError or TypeError if it is invalid."""
    if plain["layout"] == "xc":
        n_features, first = plain["n_features"], plain["first"]
        if type(n_features) is not int or n_features < 1 or first not in (0, 1):
            raise ValueError("the numbering of features is invalid; XC text has at least one, numbered from 0 or 1")
        return XcLayout(n_features, int(first))
    if plain["layout"] != "table":
        raise ValueError(f"layout {plain['layout']!r} is unknown")
    columns = tuple(column_from_json(column) for column in plain["columns"])
    labels = None if plain["labels"] is None else _labels_from_json(plain["labels"])
    names = [*(column.name for column in columns), *(() if labels is None else labels.columns)]
    if len(set(names)) < len(names):
        raise ValueError("two columns have the same name")
    # Files of the first version have neither IDs nor late columns.
    identity = None if plain.get("id") is None else as_json_text(plain["id"])
    layout = TableLayout(columns, labels, bool(plain["sparse"]), identity, later=as_json_texts(plain.get("later", [])))
    return replace(layout, late=_late_from_json(plain.get("late", []), layout))


def _late_from_json(plain: Any, layout: TableLayout) -> tuple[tuple[int, int], ...]:
    left = [column.width for column in layout.learned]
    late = []
    for place, added in plain:
        if type(place) is not int or type(added) is not int or not 0 <= place < len(left) or added < 1:
            raise ValueError(f'[{place!r}, {added!r}] is not a valid entry in "late"')
        left[place] -= added
        late.append((place, added))
    if min(left, default=0) < 0:
        raise ValueError("the features added late to a column exceed its number of features")
    return tuple(late)


def _labels_to_json(labels: LabelLayout) -> dict[str, Any]:
    return {
        "form": labels.form,
        "columns": list(labels.columns),
        "separator": labels.separator,
        "patterns": list(labels.patterns),
    }


def _labels_from_json(plain: Any) -> LabelLayout:
    if plain["form"] not in get_args(LabelForm):
        raise ValueError(f"the label form {plain['form']!r} is unknown")
    separator = plain["separator"]
    if separator is not None and not as_json_text(separator):
        raise ValueError("the label separator is empty")
    labels = LabelLayout(plain["form"], as_json_texts(plain["columns"]), separator, as_json_texts(plain["patterns"]))
    if not labels.columns or (labels.form != "flags" and len(labels.columns) > 1):
        raise ValueError(
            f"labels of the form {labels.form!r} are in {len(labels.columns)} columns; "
            'expected one column, or one or more for "flags"'
        )
    return labels

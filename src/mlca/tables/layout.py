"""What the columns of a table mean, settled once and for all: the order and kind of each, and the labels'."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

LabelForm: TypeAlias = Literal["separated", "lists", "flags"]


@dataclass(frozen=True)
class Numeric:
    """A column of numbers; `fill` stands for a missing one."""

    name: str
    fill: float

    width = 1
    kind = "numeric"

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the number as a user would write it."""
        return f"{values[0]:.4g}"


@dataclass(frozen=True)
class Categorical:
    """A column of categories, which becomes one column of 0 and 1 a value."""

    name: str
    values: tuple[str, ...]

    kind = "categorical"

    @property
    def width(self) -> int:
        """The number of columns that it becomes."""
        return len(self.values)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each value."""
        return {value: place for place, value in enumerate(self.values)}

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the category, or that of most rows of a node with their share."""
        place = int(np.argmax(values))
        if values[place] < 0.005:
            return "other"
        share = "" if values[place] > 0.995 else f" {values[place]:.0%}"
        return self.values[place] + share


@dataclass(frozen=True)
class Ignored:
    """A column that is not learned, and why."""

    name: str
    reason: str

    width = 0
    kind = "ignored"


Column: TypeAlias = Numeric | Categorical | Ignored


@dataclass(frozen=True)
class Labels:
    """How labels are written.

    Attributes
    ----------
    form : {"separated", "lists", "flags"}
        One column with separators between the labels, one column of lists, or one column of 0 and 1 a label.
    columns : tuple of str
        The column, or the columns that flags had first.
    separator : str or None
        What stands between the labels of a cell; None where each cell is one label.
    patterns : tuple of str
        Other columns that match one of these are labels too, of the form "flags".
    """

    form: LabelForm
    columns: tuple[str, ...]
    separator: str | None = None
    patterns: tuple[str, ...] = ()

    def among(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the label columns of a file: the known ones first, then new ones that match a pattern."""
        known = [name for name in self.columns if name in columns]
        return (*known, *(name for name in columns if name not in self.columns and self._matches(name)))

    def _matches(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class TableLayout:
    """A table with named columns.

    Attributes
    ----------
    columns : tuple of Column
        The columns in the order in which they are learned; labels are not among them.
    labels : Labels
        How labels are written.
    sparse : bool
        Whether rows are kept sparse.
    """

    columns: tuple[Column, ...]
    labels: Labels
    sparse: bool = False

    @property
    def n_features(self) -> int:
        """The number of columns of the matrix."""
        return sum(column.width for column in self.columns)

    def learned(self) -> list[Numeric | Categorical]:
        """Return the columns that are learned."""
        return [column for column in self.columns if not isinstance(column, Ignored)]

    def edges(self) -> NDArray[np.int64]:
        """Return where the part of each learned column begins in a row of the matrix, and where the last ends."""
        return np.cumsum([0, *(column.width for column in self.learned())])

    def name_of(self, place: int) -> str:
        """Return the name of a learned column."""
        return self.learned()[place].name

    def in_words(self, place: int, part: NDArray[np.float64]) -> str:
        """Return what a learned column's part of a row says, in the user's own terms."""
        return self.learned()[place].in_words(part)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as JSON has it."""
        return {
            "layout": "table",
            "columns": [_column_to_json(column) for column in self.columns],
            "labels": {
                "form": self.labels.form,
                "columns": list(self.labels.columns),
                "separator": self.labels.separator,
                "patterns": list(self.labels.patterns),
            },
            "sparse": self.sparse,
        }


@dataclass(frozen=True)
class XcLayout:
    """XC text: numbered attributes.

    Attributes
    ----------
    n_features : int
        The number of attributes.
    first : int
        The number of the first: 0 or 1.
    """

    n_features: int
    first: int

    def edges(self) -> NDArray[np.int64]:
        """Return where each attribute begins in a row of the matrix: every attribute is a column."""
        return np.arange(self.n_features + 1)

    def name_of(self, place: int) -> str:
        """Return the number by which the file calls an attribute."""
        return f"attribute {place + self.first}"

    def in_words(self, place: int, part: NDArray[np.float64]) -> str:
        """Return the value of an attribute."""
        return f"{part[0]:.4g}"

    def to_json(self) -> dict[str, Any]:
        """Return the layout as JSON has it."""
        return {"layout": "xc", "n_features": self.n_features, "first": self.first}


Layout: TypeAlias = TableLayout | XcLayout


def layout_from_json(plain: Any) -> Layout:
    """Read what `to_json` gave; ValueError, KeyError or TypeError if it is something else."""
    if plain["layout"] == "xc":
        n_features, first = plain["n_features"], plain["first"]
        if type(n_features) is not int or n_features < 1 or first not in (0, 1):
            raise ValueError("the numbering of attributes cannot be")
        return XcLayout(n_features, int(first))
    if plain["layout"] != "table":
        raise ValueError(f"layout {plain['layout']!r} is unknown")
    columns = tuple(_column_from_json(column) for column in plain["columns"])
    labels = _labels_from_json(plain["labels"])
    names = [*(column.name for column in columns), *labels.columns]
    if len(set(names)) < len(names):
        raise ValueError("two columns have one name")
    return TableLayout(columns, labels, bool(plain["sparse"]))


def _column_to_json(column: Column) -> dict[str, Any]:
    match column:
        case Numeric():
            return {"name": column.name, "kind": column.kind, "fill": column.fill}
        case Categorical():
            return {"name": column.name, "kind": column.kind, "values": list(column.values)}
        case Ignored():
            return {"name": column.name, "kind": column.kind, "reason": column.reason}


def _column_from_json(plain: Any) -> Column:
    name = _text(plain["name"])
    match plain["kind"]:
        case "numeric":
            fill = float(plain["fill"])
            if not math.isfinite(fill):
                raise ValueError(f"the filling of column {name!r} is not finite")
            return Numeric(name, fill)
        case "categorical":
            values = _texts(plain["values"])
            if not values or len(set(values)) < len(values):
                raise ValueError(f"the values of column {name!r} are none, or one is there twice")
            return Categorical(name, values)
        case "ignored":
            return Ignored(name, _text(plain["reason"]))
    raise ValueError(f"column {name!r} is of kind {plain['kind']!r}")


def _labels_from_json(plain: Any) -> Labels:
    if plain["form"] not in get_args(LabelForm):
        raise ValueError(f"labels of the form {plain['form']!r} are unknown")
    separator = plain["separator"]
    if separator is not None and not _text(separator):
        raise ValueError("the separator of labels is empty")
    labels = Labels(plain["form"], _texts(plain["columns"]), separator, _texts(plain["patterns"]))
    if not labels.columns or (labels.form != "flags" and len(labels.columns) > 1):
        raise ValueError(f"labels of the form {labels.form!r} are in {len(labels.columns)} columns")
    return labels


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is no list")
    return tuple(map(_text, values))

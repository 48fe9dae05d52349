"""Inference of the kind of a column from its first cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from glob import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.limits import TEXT_FEATURES
from mlca.tables.cells import as_text, as_vector, is_missing, is_number, is_several, numbers_among, plain_numbers
from mlca.tables.dates import as_days, cycles_of, is_slashed
from mlca.tables.delimited import UNNAMED
from mlca.tables.kinds import (
    AS_YOU_WISH,
    MOST_CODES_EVER,
    Boolean,
    Categorical,
    Column,
    Date,
    Ignored,
    Numeric,
    Text,
    Vector,
)
from mlca.tables.words import length_of, words_of

# Number of first rows from which the kinds of columns are inferred.
FIRST_ROWS = 1000

# Smallest share of numbers in a numeric column, and of dates in a date column; its other values are errors.
MOSTLY = 0.9

# Unless its values are short codes, a column with more distinct values than this is text. With FEW_ROWS or more rows, a
# column with more distinct values than half of the rows is also text.
MOST_VALUES = 100
FEW_ROWS = 10

# A column of short codes, such as aircraft tail numbers, is categorical if at most this share is distinct.
MOSTLY_DIFFERENT = 0.95

# Values with at least this average number of words are text, even if they are often repeated.
WORDS_OF_TEXT = 4

_CALLED_ID = re.compile(r"(.*[^a-z])?(id|ids|uuid|guid|key|index|idx)", re.IGNORECASE)
_CODE = re.compile(r"[\w.:/#-]{1,20}", re.ASCII)
_WITH_COMMA = re.compile(r"[-+]?[\d.]*,\d*", re.ASCII)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)


@dataclass(frozen=True)
class ColumnSettings:
    """Column kinds set by the user, by name or pattern; they override inferred kinds.

    Attributes
    ----------
    numeric, categorical, text, ignore, vector : tuple of str
        Names or patterns of the columns of each kind.
    decimal : {".", ","} or None
        The decimal separator; None detects it.
    text_features : int
        The number of features per text column.
    first_version : bool
        Whether to apply the rules of the first version, as the service does to replay old logs: a column of many
        repeated short codes is text instead of categorical, and 2024/12/31 is not a date.
    """

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    decimal: str | None = None
    text_features: int = TEXT_FEATURES
    vector: tuple[str, ...] = ()
    first_version: bool = False

    @classmethod
    def of_kinds(cls, kinds: Mapping[str, str], **others: Any) -> ColumnSettings:
        """Return the settings for a mapping of columns to kinds, as in `MLCA(columns=...)`."""
        by_kind: dict[str, Any] = {
            field: tuple(escape(name) for name, kind in kinds.items() if KINDS[kind] == field) for field in _KINDS
        }
        return cls(**by_kind, **others)

    def kind_of(self, column: str) -> str | None:
        """Return the kind that the user set for a column; ValueError for conflicting kinds."""
        kinds = [kind for kind in _KINDS if any(column == name or fnmatchcase(column, name) for name in self._of(kind))]
        if len(kinds) > 1:
            raise ValueError(f"column {column!r} is selected by two options; leave it out of one")
        return kinds[0] if kinds else None

    def among(self, columns: Collection[str]) -> ColumnSettings:
        """Return the settings with these column names escaped, so that none acts as a pattern."""

        def meant(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(escape(name) if name in columns else name for name in names)

        return replace(
            self,
            numeric=meant(self.numeric),
            categorical=meant(self.categorical),
            text=meant(self.text),
            ignore=meant(self.ignore),
            vector=meant(self.vector),
        )

    def check(self, columns: Sequence[str], labels: Sequence[str], where: str) -> None:
        """Raise ValueError if a setting matches no column, or a label column."""
        for kind in _KINDS:
            for name in names_of(self._of(kind), columns, where):
                if name in labels:
                    raise ValueError(f"column {name!r} is selected by two options; leave it out of one")

    def _of(self, kind: str) -> tuple[str, ...]:
        wanted: tuple[str, ...] = getattr(self, kind)
        return wanted


# Names of the kinds in `MLCA(columns=...)`, and the fields of `ColumnSettings` for them.
KINDS = {"number": "numeric", "category": "categorical", "text": "text", "vector": "vector", "ignore": "ignore"}

_KINDS = ("ignore", "categorical", "numeric", "text", "vector")


def names_of(wanted: Sequence[str], columns: Sequence[str], file: str) -> tuple[str, ...]:
    """Return the columns that match names or patterns; ValueError if one has no match."""
    found: dict[str, None] = {}
    for name in wanted:
        meant = [name] if name in columns else [column for column in columns if fnmatchcase(column, name)]
        if not meant:
            raise ValueError(f"{file}: no column is called {name!r}; the columns are {some(columns)}")
        found.update(dict.fromkeys(meant))
    return tuple(found)


def some(columns: Sequence[str], most: int = 20) -> str:
    """Return the names of at most `most` columns as text, for a message."""
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(map(repr, columns[:most])) + more


def decide_columns(
    cells: Mapping[str, Sequence[Any]], nominal: Mapping[str, tuple[str, ...]], settings: ColumnSettings, where: str
) -> list[Column]:
    """Infer the kind of every column.

    If the table has free text or dates, numbers are scaled. Word features are close to 1, so numbers of another
    magnitude would dominate the distance or have no effect on it.

    Parameters
    ----------
    cells : mapping of str to sequence
        The first cells of each column.
    nominal : mapping of str to tuple of str
        Columns that are declared categorical, with their values.
    settings : ColumnSettings
        The user's settings.
    where : str
        The name of the table for error messages.

    Returns
    -------
    list of Column
        The columns in the order of the table.
    """
    settings = settings.among(cells)
    decided: list[Column] = []
    for name, values in cells.items():
        if nominal.get(name) and settings.kind_of(name) is None:
            decided.append(Categorical(name, nominal[name]))
        else:
            decided.append(decide_column(name, values, settings))
    if all(isinstance(column, Ignored) for column in decided):
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in decided if isinstance(column, Ignored))
        raise ValueError(f"{where}: no column is left to learn from ({reasons or 'the labels are the only columns'})")
    if any(isinstance(column, Text | Date) for column in decided):
        decided = [scaled(column, cells[column.name]) for column in decided]
    return decided


def scaled(column: Column, cells: Sequence[Any]) -> Column:
    """Scale a numeric column to mean 0 and standard deviation 1 over the given cells."""
    if not isinstance(column, Numeric):
        return column
    numbers = numbers_among(cells, comma=column.comma)
    if not len(numbers):  # all are out of bounds, which is reported when a row is encoded
        return column
    spread = float(np.std(numbers))
    return replace(column, centre=float(np.mean(numbers)), spread=spread if spread > 0 else 1.0)


def decide_column(name: str, cells: Sequence[Any], settings: ColumnSettings) -> Column:
    """Infer the kind of one column."""
    kind = settings.kind_of(name)
    present = [cell for cell in cells if not is_missing(cell)]
    if kind == "ignore":
        return Ignored(name, AS_YOU_WISH)
    if kind == "text":
        return Text(name, settings.text_features)
    if kind is None or not present:  # the kinds below need values
        return _by_values(name, present, settings)
    if kind == "numeric":
        return _numeric(name, present, settings)
    if kind == "vector":
        vector = _vector(name, present)
        if vector is None:
            raise ValueError(f"column {name!r} holds no lists of numbers of equal length; it cannot be a vector")
        return vector
    return Categorical(name, tuple(sorted({as_text(cell) for cell in present})), MOST_CODES_EVER)


def _vector(name: str, present: Sequence[Any]) -> Vector | None:
    """Return a vector column if most cells are lists of numbers of one length, else None."""
    lengths = [0 if vector is None else len(vector) for vector in map(as_vector, present)]
    width = max(set(lengths), key=lengths.count)
    return Vector(name, width) if width and lengths.count(width) >= MOSTLY * len(lengths) else None


def _by_values(name: str, present: Sequence[Any], settings: ColumnSettings) -> Column:
    if name.startswith(UNNAMED):
        return Ignored(name, "no name")
    if not present:
        return Ignored(name, "no value in the first rows")
    if all(isinstance(cell, bool | np.bool_) for cell in present) or _holds_yes_and_no(present):
        return Boolean(name)
    if settings.decimal == "," and _mostly_numbers(present, comma=True):
        return _ignored_if_id(name, present, _numeric(name, present, settings))
    if plain_numbers(present) is not None or sum(map(is_number, present)) >= MOSTLY * len(present):
        return _ignored_if_id(name, present, _numeric(name, present, replace(settings, decimal=".")))
    if sum(_has_comma(cell) for cell in present) and _mostly_numbers(present, comma=True):
        return _numeric(name, present, settings)
    vector = _vector(name, present) if is_several(present[0]) else None
    if vector is not None:
        return vector
    if any(map(_has_no_text, present)):
        return Ignored(name, "lists, objects or complex numbers")
    slashes = not settings.first_version and any(map(is_slashed, present))
    days = [day for cell in present if (day := as_days(cell, slashes=slashes)) is not None]
    if len(days) >= MOSTLY * len(present):
        spread = float(np.std(days))
        return Date(name, float(np.mean(days)), spread if spread > 0 else 1.0, cycles_of(days), slashes=slashes)
    return _category_or_text(name, [as_text(cell) for cell in present], settings)


def _has_no_text(cell: Any) -> bool:
    """Return whether a cell is meaningless as text, such as a complex number or an object."""
    cell_type: Any = type(cell)
    bare = cell_type.__str__ is object.__str__ and cell_type.__repr__ is object.__repr__
    return is_several(cell) or bare or isinstance(cell, complex)


def _holds_yes_and_no(present: Sequence[Any]) -> bool:
    """Return whether the cells are true and false, or yes and no; 0 and 1 count as numbers."""
    if not all(isinstance(cell, str) for cell in present):
        return False
    words = {cell.strip().lower() for cell in present}
    return words in ({"true", "false"}, {"yes", "no"})


def _has_comma(cell: Any) -> bool:
    return isinstance(cell, str) and _WITH_COMMA.fullmatch(cell.strip()) is not None


def _mostly_numbers(present: Sequence[Any], *, comma: bool) -> bool:
    return sum(is_number(cell, comma=comma) for cell in present) >= MOSTLY * len(present)


def _numeric(name: str, present: Sequence[Any], settings: ColumnSettings) -> Numeric:
    comma = settings.decimal == ","
    if settings.decimal is None and not _mostly_numbers(present, comma=False):
        comma = any(map(_has_comma, present))
        with_commas = [cell.strip() for cell in present if isinstance(cell, str) and "," in cell]
        if comma and all(_THOUSANDS.fullmatch(cell) for cell in with_commas):
            raise ValueError(
                f"column {name!r} holds {with_commas[0]!r}, a number with a decimal comma or with a comma between "
                "thousands; pass --decimal , (decimal=',') for a decimal comma, or remove commas between thousands"
            )
    if not any(is_number(cell, comma=comma) for cell in present):
        raise ValueError(f"column {name!r} has no number in the first rows; it cannot be numeric")
    return Numeric(name, comma=comma)


def _ignored_if_id(name: str, present: Sequence[Any], column: Numeric) -> Column:
    """Ignore a numeric column that holds row IDs; return any other column unchanged."""
    numbers = numbers_among(present, comma=column.comma)
    if is_id(name, numbers):
        return Ignored(name, f"an id: all {len(numbers)} numbers differ; to learn it, declare it numeric")
    return column


def is_id(name: str, numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers are row IDs: distinct integers, consecutive or named like IDs."""
    if len(numbers) < FEW_ROWS or not (numbers == np.floor(numbers)).all() or len(np.unique(numbers)) < len(numbers):
        return False
    return _CALLED_ID.fullmatch(name) is not None or bool((np.diff(numbers) == 1).all())


def _category_or_text(name: str, texts: Sequence[str], settings: ColumnSettings) -> Column:
    values = set(texts)
    few = len(values) <= MOST_VALUES and (len(texts) < FEW_ROWS or len(values) <= len(texts) / 2)
    if few and sum(map(length_of, values)) < WORDS_OF_TEXT * len(values):
        return Categorical(name, tuple(sorted(values)))
    if len(values) == len(texts) and all(len(text.split()) == 1 and len(words_of(text)) <= 6 for text in texts):
        return Ignored(name, f"an id: all {len(texts)} values differ; to learn it, declare it text")
    repeated = len(texts) >= FEW_ROWS and len(values) <= MOSTLY_DIFFERENT * len(texts)
    if (
        not settings.first_version
        and repeated
        and all(_CODE.fullmatch(text) and len(words_of(text)) <= 3 for text in values)
    ):
        return Categorical(name, tuple(sorted(values)), MOST_CODES_EVER)
    return Text(name, settings.text_features)

"""The kinds of columns: how each encodes cells and describes encoded values.

A kind has a name, the number of features per cell (`width`), and an encoding (`encode`). A missing value becomes NaN,
which the learner leaves out of its sums. A category becomes a code that is only tested for equality (`nominal`).
Recipes in older files instead replace missing values by `fill`, and use one 0/1 feature per category (`OneHot`); they
are still supported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlca.limits import MOST_TEXT_FEATURES
from mlca.tables.cells import as_bit, as_number, as_text, as_vector, is_missing, is_several, plain_numbers
from mlca.tables.dates import CYCLES, Cycle, as_days, phase
from mlca.tables.dates import in_words as date_in_words
from mlca.tables.words import hashed, seed_of

# The code of an unknown category.
UNKNOWN = -1

# Largest number of categories in a column, and in one that holds short codes or was set to categorical by the user.
MOST_VALUES_EVER = 1000
MOST_CODES_EVER = 100_000

# How a missing value is shown.
GAP_IN_WORDS = "missing"

# Reason for ignoring a column that the user chose to ignore.
AS_YOU_WISH = "as you wish"


class Encoded(NamedTuple):
    """Encoded cells: `values[k]` is in row `rows[k]` at position `places[k]` of the column.

    `missing`, `unseen` and `faulty` are the indices of rows without a value, with an unknown category, and with an
    invalid cell.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    values: NDArray[np.float64]
    missing: Sequence[int] = ()
    unseen: Sequence[int] = ()
    faulty: Sequence[int] = ()


@dataclass(frozen=True)
class Numeric:
    """A column of numbers.

    Attributes
    ----------
    fill : float or None
        The value that replaces a missing number; None leaves it missing.
    centre, spread : float
        A number x becomes (x - centre) / spread.
    comma : bool
        Whether numbers have a decimal comma.
    """

    name: str
    fill: float | None = None
    centre: float = 0.0
    spread: float = 1.0
    comma: bool = False

    width = 1
    nominal = False
    kind = "numeric"
    fault = "not a number within bounds"

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Convert cells to numbers."""
        missing: list[int] = []
        faulty: list[int] = []
        numbers = None if self.comma else plain_numbers(cells)
        if numbers is None:
            numbers = np.full(len(cells), np.nan if self.fill is None else self.fill)
            for i, cell in enumerate(cells):
                if is_missing(cell):
                    missing.append(i)
                    continue
                try:
                    numbers[i] = as_number(cell, comma=self.comma)
                except ValueError:
                    faulty.append(i)
        if (self.centre, self.spread) != (0.0, 1.0):
            numbers = (numbers - self.centre) / self.spread
        return _one_a_row(numbers, missing, faulty)

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the unscaled number as text, to four significant digits."""
        return GAP_IN_WORDS if np.isnan(values[0]) else f"{values[0] * self.spread + self.centre:.4g}"


@dataclass(frozen=True)
class Boolean:
    """A boolean column, encoded as 1 and 0; `fill`, unless None, replaces missing values."""

    name: str
    fill: float | None = None

    width = 1
    nominal = False
    kind = "boolean"
    fault = "neither true nor false"

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Convert cells to 0 and 1."""
        bits = [as_bit(cell) for cell in cells]
        unknown = [i for i, bit in enumerate(bits) if bit is None]
        missing = [i for i in unknown if is_missing(cells[i])]
        fill = np.nan if self.fill is None else self.fill
        numbers = np.array([fill if bit is None else float(bit) for bit in bits])
        return _one_a_row(numbers, missing, [i for i in unknown if not is_missing(cells[i])])

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return "true" or "false"; for a mixed node, the share of true, such as "true 30%"."""
        share = float(values[0])
        if math.isnan(share):
            return GAP_IN_WORDS
        return "true" if share > 0.995 else "false" if share < 0.005 else f"true {share:.0%}"


@dataclass(frozen=True)
class Categorical:
    """A categorical column, encoded as codes that are only tested for equality.

    The values have the codes 1, 2 and so on. During training, a new value gets the next code until the limit `most` is
    reached. All other values share the code `UNKNOWN`, which differs from every code of a known value.

    Attributes
    ----------
    most : int
        The largest number of distinct values.
    """

    name: str
    values: tuple[str, ...]
    most: int = MOST_VALUES_EVER

    width = 1
    nominal = True
    kind = "categorical"
    fault = "not a category"

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each value."""
        return {value: place + 1 for place, value in enumerate(self.values)}

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Convert categories to codes."""
        codes = np.array([self._code(cell) for cell in cells], dtype=np.float64)
        others = np.flatnonzero(codes == UNKNOWN).tolist()
        missing = [i for i in others if is_missing(cells[i])]
        codes[missing] = np.nan
        return _one_a_row(codes, missing, (), [i for i in others if not is_missing(cells[i])])

    def _code(self, cell: Any) -> int:
        # None is a missing value even if a category is called "None".
        return UNKNOWN if is_missing(cell) and not isinstance(cell, str) else self.codes.get(as_text(cell), UNKNOWN)

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the category with the given code, or "other" if it is unknown."""
        code = values[0]
        if np.isnan(code):
            return GAP_IN_WORDS
        return self.values[int(code) - 1] if 1 <= code <= len(self.values) else "other"


@dataclass(frozen=True)
class OneHot:
    """A categorical column of an older file, one-hot encoded; all 0 if missing or unknown."""

    name: str
    values: tuple[str, ...]

    nominal = False
    kind = "categorical"
    fault = "not a category"

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.values)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The position of each category's feature."""
        return {value: place for place, value in enumerate(self.values)}

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Convert categories to 0/1 features."""
        places = np.array([self.codes.get(as_text(cell), -1) for cell in cells], dtype=np.int64)
        rows = np.flatnonzero(places >= 0)
        others = np.flatnonzero(places < 0).tolist()
        missing = [i for i in others if is_missing(cells[i])]
        unseen = [i for i in others if not is_missing(cells[i])]
        return Encoded(rows, places[rows], np.ones(len(rows)), missing, unseen)

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the category; for a mixed node, the most frequent one and its share."""
        place = int(np.argmax(values))
        if values[place] < 0.005:
            return "other"
        share = "" if values[place] > 0.995 else f" {values[place]:.0%}"
        return self.values[place] + share


@dataclass(frozen=True)
class Date:
    """A column of dates, encoded as the time and the sine and cosine of relevant cycles.

    Attributes
    ----------
    centre, spread : float
        The mean and standard deviation of the first dates, in days.
    cycles : tuple of {"year", "week", "day"}
        The cycles in which the position of a date is encoded.
    fill : float or None
        The value of all features of a missing date; None leaves them missing.
    slashes : bool
        Whether to read 2024/12/31 as a date.
    """

    name: str
    centre: float
    spread: float
    cycles: tuple[Cycle, ...]
    fill: float | None = None
    slashes: bool = False

    nominal = False
    kind = "date"
    fault = "not a date"

    @property
    def width(self) -> int:
        """The number of features."""
        return 1 + 2 * len(self.cycles)

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Convert dates to numbers."""
        days = [None if is_missing(cell) else as_days(cell, slashes=self.slashes) for cell in cells]
        block = np.full((len(cells), self.width), np.nan if self.fill is None else self.fill)
        for i, day in enumerate(days):
            if day is not None:
                block[i] = self._numbers(day)
        missing = [i for i, day in enumerate(days) if day is None and is_missing(cells[i])]
        faulty = [i for i, day in enumerate(days) if day is None and not is_missing(cells[i])]
        places = np.tile(np.arange(self.width), len(cells))
        return Encoded(np.repeat(np.arange(len(cells)), self.width), places, block.ravel(), missing, (), faulty)

    def _numbers(self, day: float) -> list[float]:
        around = [number for cycle in self.cycles for number in phase(day, cycle)]
        return [(day - self.centre) / self.spread, *around]

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the date; for a node, the mean date of its rows."""
        return GAP_IN_WORDS if np.isnan(values[0]) else date_in_words(float(values[0]) * self.spread + self.centre)


@dataclass(frozen=True)
class Text:
    """A column of free text, whose words and pairs of words are hashed to `width` features."""

    name: str
    width: int

    nominal = False
    kind = "text"
    fault = "not text"

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Hash the words and word pairs of texts."""
        texts = ["" if is_missing(cell) else as_text(cell) for cell in cells]
        missing = [i for i, text in enumerate(texts) if not text]
        return Encoded(*hashed(texts, self.width, seed_of(self.name)), missing)

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the number of words and pairs as text, because hashes cannot be reversed."""
        n_used = np.count_nonzero(values)
        return "no words" if n_used == 0 else "1 rare word" if n_used == 1 else f"{n_used} words and pairs"


@dataclass(frozen=True)
class Vector:
    """A column of vectors, such as embeddings: lists or arrays of `width` numbers."""

    name: str
    width: int

    nominal = False
    kind = "vector"

    @property
    def fault(self) -> str:
        """The problem with an invalid cell, for error messages."""
        return f"not a list of {self.width} numbers within bounds"

    def encode(self, cells: Sequence[Any]) -> Encoded:
        """Convert vectors to one feature per position."""
        block = np.full((len(cells), self.width), np.nan)
        missing: list[int] = []
        faulty: list[int] = []
        for i, cell in enumerate(cells):
            vector = as_vector(cell)
            if vector is not None and len(vector) == self.width:
                block[i] = vector
            else:
                (missing if not is_several(cell) and is_missing(cell) else faulty).append(i)
        places = np.tile(np.arange(self.width), len(cells))
        return Encoded(np.repeat(np.arange(len(cells)), self.width), places, block.ravel(), missing, (), faulty)

    def in_words(self, values: NDArray[np.float64]) -> str:
        """Return the first three numbers of the vector as text."""
        if np.isnan(values).all():
            return GAP_IN_WORDS
        return f"[{', '.join(f'{value:.3g}' for value in values[:3])}{', ...' if len(values) > 3 else ''}]"


@dataclass(frozen=True)
class Ignored:
    """A column that is not learned, with the reason."""

    name: str
    reason: str

    width = 0
    kind = "ignored"


LearnedColumn: TypeAlias = Numeric | Boolean | Categorical | OneHot | Date | Text | Vector
Column: TypeAlias = LearnedColumn | Ignored


def _one_a_row(
    numbers: NDArray[np.float64], missing: Sequence[int], faulty: Sequence[int], unseen: Sequence[int] = ()
) -> Encoded:
    return Encoded(np.arange(len(numbers)), np.zeros(len(numbers), dtype=np.int64), numbers, missing, unseen, faulty)


# Names of kinds as shown to the user.
_KINDS_IN_WORDS = {"numeric": "number", "boolean": "yes or no", "categorical": "category", "ignored": "ignore"}


def kind_in_words(column: Column) -> str:
    """Return the name of a column's kind as shown to the user."""
    return _KINDS_IN_WORDS.get(column.kind, column.kind)


def column_to_json(column: Column) -> dict[str, Any]:
    """Return a column as JSON."""
    plain: dict[str, Any] = {"name": column.name, "kind": column.kind}
    match column:
        case Numeric():
            scaled = {"centre": column.centre, "spread": column.spread, "comma": column.comma}
            return {**plain, "fill": column.fill, **scaled}
        case Boolean():
            return {**plain, "fill": column.fill}
        case Categorical() | OneHot():
            most = {"most": column.most} if isinstance(column, Categorical) and column.most != MOST_VALUES_EVER else {}
            return {**plain, "values": list(column.values), "coded": column.nominal, **most}
        case Date():
            scale = {"centre": column.centre, "spread": column.spread, "cycles": list(column.cycles)}
            slashes = {"slashes": True} if column.slashes else {}
            return {**plain, **scale, "fill": column.fill, **slashes}
        case Text() | Vector():
            return {**plain, "width": column.width}
        case Ignored():
            return {**plain, "reason": column.reason}


def column_from_json(plain: Any) -> Column:
    """Read the result of `column_to_json`; ValueError, KeyError or TypeError if it is invalid."""
    name = as_json_text(plain["name"])
    match plain["kind"]:
        case "numeric":
            # Files of the first version store neither the scale nor the decimal comma.
            return Numeric(
                name, _fill(plain["fill"]), *_scale(plain.get("centre", 0.0), plain.get("spread", 1.0)),
                bool(plain.get("comma", False)),
            )  # fmt: skip
        case "boolean":
            return Boolean(name, _fill(plain["fill"]))
        case "categorical":
            values = as_json_texts(plain["values"])
            if not values or len(set(values)) < len(values):
                raise ValueError(f"the values of column {name!r} are missing or not distinct")
            # Files of format version 3 and earlier lack "coded" here and "fill" for dates.
            if not plain.get("coded", False):
                return OneHot(name, values)
            return Categorical(name, values, _whole(plain.get("most", MOST_VALUES_EVER), MOST_CODES_EVER))
        case "date":
            cycles: Any = as_json_texts(plain["cycles"])
            if cycles not in _POSSIBLE_CYCLES:
                raise ValueError(f"column {name!r} has the unknown cycles {cycles!r}")
            fill, slashes = _fill(plain.get("fill", 0.0)), bool(plain.get("slashes", False))
            return Date(name, *_scale(plain["centre"], plain["spread"]), cycles, fill, slashes)
        case "text":
            return Text(name, _whole(plain["width"], MOST_TEXT_FEATURES))
        case "vector":
            return Vector(name, _whole(plain["width"], MOST_TEXT_FEATURES))
        case "ignored":
            return Ignored(name, as_json_text(plain["reason"]))
    raise ValueError(f"column {name!r} has the unknown kind {plain['kind']!r}")


_POSSIBLE_CYCLES = [
    tuple(cycle for cycle, wanted in zip(CYCLES, chosen, strict=True) if wanted)
    for chosen in np.ndindex(*[2] * len(CYCLES))
]


def _whole(number: Any, most: int) -> int:
    if type(number) is not int or not 1 <= number <= most:
        raise ValueError(f"{number!r} is not a whole number from 1 to {most}")
    return number


def _scale(centre: Any, spread: Any) -> tuple[float, float]:
    if not _finite(spread) > 0:
        raise ValueError(f"the spread {spread!r} is not positive")
    return _finite(centre), float(spread)


def _fill(value: Any) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not finite")
    return number


def as_json_text(value: Any) -> str:
    """Return a JSON value if it is a string; raise TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def as_json_texts(values: Any) -> tuple[str, ...]:
    """Return a JSON list of strings as a tuple; raise TypeError for any other value."""
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return tuple(map(as_json_text, values))

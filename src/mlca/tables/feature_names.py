"""Readable names of features, such as "summary: kernel", "section = libs", "size missing"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.tables.cells import as_text, is_missing
from mlca.tables.kinds import UNKNOWN, Boolean, Categorical, Date, LearnedColumn, Numeric, OneHot, Text, Vector
from mlca.tables.layout import ArrayLayout, Layout, TableLayout
from mlca.tables.vocabulary import Vocabulary
from mlca.tables.words import places_of, seed_of

# Largest number of words shown per text.
_SHOWN_WORDS = 8


class FeatureNames:
    """Names features and terms of linear models, and describes encoded values in words.

    Parameters
    ----------
    layout : Layout or ArrayLayout
        The layout.
    vocabulary : Vocabulary, optional
        The words behind text features.
    own_words : mapping of int to str, optional
        The words of one row by feature index, from the function `own_words`. If given, they name the features.

    Examples
    --------
    >>> from mlca.tables.kinds import Categorical, Numeric
    >>> names = FeatureNames(TableLayout((Numeric("size"), Categorical("section", ("libs", "net")))))
    >>> names.name(1), names.category(1, 2.0), names.missing(0)
    ('section', 'section = net', 'size missing')
    """

    def __init__(
        self,
        layout: Layout | ArrayLayout,
        vocabulary: Vocabulary | None = None,
        own_words: Mapping[int, str] | None = None,
    ) -> None:
        self.layout = layout
        self._vocabulary = vocabulary or Vocabulary()
        self._own = own_words or {}
        self._offsets: NDArray[np.int64] | None = None

    def all(self) -> NDArray[np.object_]:
        """Return the name of each feature."""
        layout = self.layout
        names = np.empty(len(layout.owners), dtype=object)
        names[:] = [self.name(feature) for feature in range(len(names))]
        return names

    def column(self, feature: int) -> str:
        """Return the name of a feature's column."""
        return self.layout.name_of(int(self.layout.owners[feature]))

    def name(self, feature: int) -> str:
        """Return the name of a feature."""
        if not isinstance(self.layout, TableLayout):
            return self.column(feature)
        column, place = self._part(feature)
        match column:
            case OneHot():
                return f"{column.name} = {column.values[place]}"
            case Date() if place > 0:
                cycle, part = column.cycles[(place - 1) // 2], ("sine", "cosine")[(place - 1) % 2]
                return f"{column.name} {part} of {cycle}"
            case Text():
                word = self._own.get(feature) or self._vocabulary.word(column.name, place)
                return f"{column.name}: {f'#{place}' if word is None else word}"
            case Vector():
                return f"{column.name}[{place}]"
        return column.name

    def word(self, feature: int) -> str | None:
        """Return the most frequent word of a text feature; None if unknown."""
        column, place = self._part(feature)
        return self._vocabulary.word(column.name, place)

    def missing(self, feature: int) -> str:
        """Return the name of a feature's missing-value term, such as "size missing"."""
        return f"{self.column(feature)} missing"

    def category(self, feature: int, code: float) -> str:
        """Return the name of a category's term, such as "section = net"."""
        return f"{self.column(feature)} = {self.layout.in_words(self._owner(feature), np.array([code]))}"

    def number(self, feature: int, value: float) -> str:
        """Return the name of a value's term, such as "size = 3"; for words, the feature's name."""
        if not isinstance(self.layout, TableLayout):
            return f"{self.column(feature)} = {value:g}"
        column, place = self._part(feature)
        match column:
            case Text() | OneHot():
                return self.name(feature)
            case Date() if place > 0:
                return _time_of_cycle(column, place)
            case Numeric() | Boolean() | Date():
                return f"{column.name} = {column.in_words(np.array([value]))}"
        return f"{self.name(feature)} = {value:.4g}"

    def range(self, feature: int, low: float, high: float) -> str:
        """Return the name of the term for a range of values, such as "size from 1 to 3"."""
        if isinstance(self.layout, TableLayout):
            column, place = self._part(feature)
            if isinstance(column, Numeric | Date) and place == 0:
                least, most = (column.in_words(np.array([end])) for end in (low, high))
                return f"{column.name} from {least} to {most}"
            if isinstance(column, Date):  # bounds of a sine or cosine are meaningless to readers
                return _time_of_cycle(column, place)
        return f"{self.name(feature)} from {low:.4g} to {high:.4g}"

    def in_words(self, owner: int, part: NDArray[np.float64], *, own: bool = False) -> str:
        """Describe the encoded value of a column; with `own`, use the row's own words for text."""
        if not isinstance(self.layout, TableLayout):
            return self.layout.in_words(owner, part)
        column, features = self.layout.learned[owner], self.layout.places[owner].tolist()
        if own and isinstance(column, Categorical) and part[0] == UNKNOWN:
            return self._own.get(features[0], column.in_words(part))
        if not isinstance(column, Text):
            return column.in_words(part)
        if own and self._own:
            places = set(features)
            known = [word for place, word in self._own.items() if place in places]
        else:
            used = np.flatnonzero(part).tolist()
            used.sort(key=lambda place: (self._vocabulary.frequency(column.name, place), place))
            words = (self._vocabulary.word(column.name, place, surely=True) for place in used)
            known = [word for word in words if word is not None]
        single = [word for word in known if " " not in word]
        return ", ".join(single[:_SHOWN_WORDS]) or column.in_words(part)

    def _owner(self, feature: int) -> int:
        return int(self.layout.owners[feature])

    def _part(self, feature: int) -> tuple[LearnedColumn, int]:
        """Return the column of a feature, and the feature's position within the column."""
        assert isinstance(self.layout, TableLayout)
        if self._offsets is None:
            self._offsets = np.empty(len(self.layout.owners), dtype=np.int64)
            for places in self.layout.places:
                self._offsets[places] = np.arange(len(places))
        return self.layout.learned[self._owner(feature)], int(self._offsets[feature])


def _time_of_cycle(date: Date, place: int) -> str:
    """Return a name such as "opened, time of week" for the sine and cosine of a cycle."""
    return f"{date.name}, time of {date.cycles[(place - 1) // 2]}"


def own_words(layout: Layout, cells: Mapping[str, Sequence[Any]]) -> dict[int, str]:
    """Return the words and unknown categories of a row by feature index.

    Words that share a feature are joined with " / ".

    Parameters
    ----------
    layout : Layout
        The layout.
    cells : mapping of str to sequence
        The cells of each column; only the first row is used.
    """
    words: dict[int, str] = {}
    if not isinstance(layout, TableLayout):
        return words
    for column, places in zip(layout.learned, layout.places, strict=True):
        cell = cells[column.name][0] if column.name in cells and isinstance(column, Text | Categorical) else None
        if is_missing(cell):
            continue
        if isinstance(column, Categorical):
            if as_text(cell) not in column.codes:
                words[int(places[0])] = f"{as_text(cell)} (unknown)"
            continue
        for token, place in places_of(as_text(cell), column.width, seed_of(column.name)).items():
            feature = int(places[place])
            words[feature] = f"{words[feature]} / {token}" if feature in words else token
    return words

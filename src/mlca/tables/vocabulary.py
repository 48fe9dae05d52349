"""The words behind the features of text columns, stored for display only.

Text is hashed, so a feature does not show which word it represents. For each feature that rows have used, the
vocabulary stores its most frequent words or pairs of words: at most two, counted with the Misra-Gries algorithm. A word
with more than a third of all occurrences is therefore always among them, and counts are never too high.

The size of the vocabulary is limited: beyond `MOST_FEATURES` features, the least used half is dropped. The vocabulary
reads all rows up to `FIRST_ROWS`, then every fourth. It depends only on the sequence of rows, not on batch sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlca.tables.cells import as_text, is_missing
from mlca.tables.kinds import Text
from mlca.tables.words import places_of, seed_of

FIRST_ROWS = 1000
SAMPLED = 4
MOST_FEATURES = 1 << 15
WORDS_PER_FEATURE = 2
LONGEST_WORD = 40


class Vocabulary:
    """Counts the words behind the features of text columns.

    Examples
    --------
    >>> from mlca.tables.kinds import Text
    >>> notes = Text("notes", 64)
    >>> vocabulary = Vocabulary()
    >>> vocabulary.learn([notes], {"notes": ["red lamp", "red"]}, 2)
    >>> place = next(iter(notes.encode(["red"]).places.tolist()))
    >>> vocabulary.word("notes", place), vocabulary.word("notes", place, surely=True)
    ('red', 'red')
    """

    def __init__(self) -> None:
        self.n_rows = 0
        # By column and feature: the number of words read, and the counts of the most frequent ones.
        self._read: dict[tuple[str, int], int] = {}
        self._words: dict[tuple[str, int], dict[str, int]] = {}

    def copy(self) -> Vocabulary:
        """Return a copy that learns independently."""
        copied = Vocabulary()
        copied.n_rows, copied._read = self.n_rows, self._read.copy()
        copied._words = {key: words.copy() for key, words in self._words.copy().items()}
        return copied

    def learn(self, columns: Iterable[Any], cells: Mapping[str, Sequence[Any]], n_rows: int) -> None:
        """Count the words of the next rows.

        Parameters
        ----------
        columns : iterable of Column
            The columns; only text columns are read.
        cells : mapping of str to sequence
            The cells of each column.
        n_rows : int
            The number of rows, which may be less than the number of cells.
        """
        first = self.n_rows
        self.n_rows += n_rows
        texts = [column for column in columns if isinstance(column, Text) and column.name in cells]
        if not texts:
            return
        for row in range(n_rows):
            if first + row >= FIRST_ROWS and (first + row) % SAMPLED:
                continue
            for column in texts:
                cell = cells[column.name][row]
                if not is_missing(cell):
                    self._count(column, as_text(cell))

    def _count(self, column: Text, text: str) -> None:
        name, n_read, kept = column.name, self._read, self._words
        for token, place in places_of(text, column.width, seed_of(name)).items():
            key = name, place
            n_read[key] = n_read.get(key, 0) + 1
            words = kept.get(key)
            if words is None:
                kept[key] = {token[:LONGEST_WORD]: 1}
                continue
            token = token[:LONGEST_WORD]
            if token in words:
                words[token] += 1
            elif len(words) < WORDS_PER_FEATURE:
                words[token] = 1
            else:
                kept[key] = {word: count - 1 for word, count in words.items() if count > 1}
        if len(n_read) > MOST_FEATURES:
            most_read = sorted(n_read, key=lambda key: (-n_read[key], key))[: MOST_FEATURES // 2]
            self._read = {key: n_read[key] for key in most_read}
            self._words = {key: kept[key] for key in most_read}

    def word(self, column: str, place: int, *, surely: bool = False) -> str | None:
        """Return the most frequent word of a feature; None if none is frequent enough.

        Parameters
        ----------
        column : str
            The text column.
        place : int
            The position of the feature in the column.
        surely : bool, default=False
            Whether the word must make up at least half of the words read for the feature.
        """
        words = self._words.get((column, place))
        if not words:
            return None
        word, count = max(words.items(), key=lambda item: (item[1], item[0]))
        return None if surely and 2 * count < self._read.get((column, place), 0) else word

    def frequency(self, column: str, place: int) -> int:
        """Return the number of words read for a feature."""
        return self._read.get((column, place), 0)

    def to_json(self) -> dict[str, Any]:
        """Return the vocabulary as JSON."""
        by_column: dict[str, list[Any]] = {}
        for (name, place), words in sorted(self._words.copy().items()):
            listed = sorted(words.items())
            by_column.setdefault(name, []).append(
                [place, self._read[name, place], *(part for w in listed for part in w)]
            )
        return {"rows": self.n_rows, "columns": by_column}


def vocabulary_from_json(plain: Any, widths: Mapping[str, int]) -> Vocabulary:
    """Parse the output of `to_json`; raise ValueError, KeyError or TypeError if invalid.

    Parameters
    ----------
    plain : object
        The JSON value.
    widths : mapping of str to int
        The number of features of each text column.
    """
    vocabulary = Vocabulary()
    vocabulary.n_rows = _count(plain["rows"], 0)
    n_features = sum(map(len, plain["columns"].values()))
    if n_features > MOST_FEATURES:
        raise ValueError(f"words are stored for {n_features} features, more than {MOST_FEATURES}")
    for name, features in plain["columns"].items():
        for place, n_read, *listed in features:
            key = name, _count(place, 0)
            if place >= widths[name] or key in vocabulary._read:
                raise ValueError(f"feature {place} of column {name!r} is listed twice, or is too large")
            words = dict(zip(listed[::2], (_count(count, 1) for count in listed[1::2]), strict=True))
            if len(words) > WORDS_PER_FEATURE or 2 * len(words) < len(listed):
                raise ValueError(f"column {name!r}, feature {place}: repeated words, or more than {WORDS_PER_FEATURE}")
            if any(type(word) is not str or not 0 < len(word) <= LONGEST_WORD for word in words):
                raise ValueError(f"a word in column {name!r} is not a string of 1 to {LONGEST_WORD} characters")
            vocabulary._read[key], vocabulary._words[key] = _count(n_read, max(1, sum(words.values()))), words
    return vocabulary


def _count(number: Any, least: int) -> int:
    if type(number) is not int or not least <= number < 2**63:
        raise ValueError(f"{number!r:.40} is not a count")
    return number

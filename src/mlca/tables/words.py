"""Free text as numbers: words and pairs of words are hashed, so no vocabulary is needed."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from math import log
from zlib import crc32

# Each Chinese character and Japanese syllable is a word: these scripts put no blanks between words.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SINGLE = re.compile(f"[{_ALONE}]")
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+(?:['’][^\W_{_ALONE}]+)*")


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    Examples
    --------
    >>> words_of("Don't PANIC: 电梯!")
    ["don't", 'panic', '电', '梯']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def length_of(text: str) -> float:
    """Return the number of words of a text; two Chinese or Japanese characters count as about one word.

    Examples
    --------
    >>> length_of("no wifi"), length_of("电梯")
    (2.0, 1.0)
    """
    return sum(0.5 if _SINGLE.fullmatch(word) else 1.0 for word in words_of(text))


def hashed(text: str, width: int, seed: int) -> dict[int, float]:
    """Return the features of the words and pairs of a text among `width`, with their values.

    A word that occurs n times counts 1 + log n: the tenth occurrence adds less than the first. The hash is that of the
    bytes, the same in every process and on every machine.

    Parameters
    ----------
    text : str
        The text.
    width : int
        The number of features.
    seed : int
        Seed that separates the features of different columns.

    Examples
    --------
    >>> hashed("red red", 64, 0) == hashed("Red, red!", 64, 0)
    True
    >>> hashed("", 64, 0)
    {}
    """
    places: dict[int, int] = {}
    for token, count in tokens_of(text).items():
        place = crc32(token.encode(), seed) % width  # as `place_of`, without a call for each word
        places[place] = places.get(place, 0) + count
    return {place: 1.0 if count == 1 else 1.0 + log(count) for place, count in places.items()}


def tokens_of(text: str) -> Counter[str]:
    """Return the words and pairs of words of a text, in order of appearance, and how often each occurs.

    Examples
    --------
    >>> dict(tokens_of("red red lamp"))
    {'red': 2, 'lamp': 1, 'red red': 1, 'red lamp': 1}
    """
    words = words_of(text)
    return Counter([*words, *map(" ".join, pairwise(words))])


def place_of(token: str, width: int, seed: int) -> int:
    """Return the feature of a word or pair of words among `width`."""
    return crc32(token.encode(), seed) % width


def seed_of(column: str) -> int:
    """Return the seed of a column's hash; a column name from JSON may contain half of a surrogate pair."""
    return crc32(column.encode("utf-8", "surrogatepass"))

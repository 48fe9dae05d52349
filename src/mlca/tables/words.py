"""Free text as numbers: words and pairs of words are hashed, so no vocabulary is needed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, pairwise, repeat
from math import log
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

# Each Chinese character and each kana is a word, because these scripts put no spaces between words.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SINGLE = re.compile(f"[{_ALONE}]")
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+(?:['’][^\W_{_ALONE}]+)*")

# Number of characters hashed at a time; it limits memory and the time that other threads wait.
_AT_ONCE = 2**16


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    Examples
    --------
    >>> words_of("Don't PANIC: 电梯!")
    ["don't", 'panic', '电', '梯']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def length_of(text: str) -> float:
    """Return the number of words of a text; a Chinese or Japanese character counts as half.

    Examples
    --------
    >>> length_of("no wifi"), length_of("电梯")
    (2.0, 1.0)
    """
    return sum(0.5 if _SINGLE.fullmatch(word) else 1.0 for word in words_of(text))


def hashed(
    texts: Sequence[str], width: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Hash the words and word pairs of texts, and return the non-zero features.

    A word that occurs n times in a text has the value 1 + log n. The hash is computed from UTF-8 bytes, so it is the
    same in every process and on every machine.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    width : int
        The number of features.
    seed : int
        Seed that separates the features of different columns.

    Returns
    -------
    rows, places : ndarray of int
        The text index and the feature of each non-zero value, sorted by both.
    values : ndarray of float
        The non-zero values.

    Examples
    --------
    >>> rows, places, values = hashed(["red red", "Red, red!", ""], 64, 0)
    >>> rows.tolist(), len(set(places.tolist())), values.round(2).tolist()
    ([0, 0, 1, 1], 2, [1.69, 1.0, 1.69, 1.0])
    """
    lengths = list(map(len, texts))
    if sum(lengths) <= _AT_ONCE:
        return _hashed(texts, width, seed)
    portions = np.cumsum([0, *lengths[:-1]]) // _AT_ONCE
    starts = [0, *(np.flatnonzero(np.diff(portions)) + 1).tolist()]
    parts = [_hashed(texts[start:stop], width, seed) for start, stop in pairwise([*starts, len(texts)])]
    rows, places, values = zip(*parts, strict=True)
    numbers = np.concatenate([start + part for start, part in zip(starts, rows, strict=True)])
    return numbers, np.concatenate(places), np.concatenate(values)


def _hashed(
    texts: Sequence[str], width: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    words_by_text = list(map(words_of, texts))
    hashes, pair_hashes = _hashes(list(chain.from_iterable(words_by_text)), seed)
    rows = np.repeat(np.arange(len(texts)), list(map(len, words_by_text)))
    places = np.array(hashes + pair_hashes, dtype=np.int64) % width
    keys = np.concatenate((rows, rows[1:])) * width + places
    if len(texts) > 1:  # no word pairs across the boundary between two texts
        keys = keys[np.concatenate((np.ones(len(rows), dtype=bool), rows[1:] == rows[:-1]))]
    keys.sort()
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    found = keys[first]
    values = np.ones(len(found))
    if len(found) < len(keys):
        counts = np.diff(np.flatnonzero(first), append=len(keys))
        repeated = counts > 1
        values[repeated] = [1.0 + log(count) for count in counts[repeated].tolist()]
    return found // width, found % width, values


def places_of(text: str, width: int, seed: int) -> dict[str, int]:
    """Return the words and then the word pairs of a text, each with its feature index.

    Examples
    --------
    >>> list(places_of("red red lamp", 64, 0))
    ['red', 'lamp', 'red red', 'red lamp']
    """
    words = words_of(text)
    tokens = chain(words, map(" ".join, pairwise(words)))
    return {token: found % width for token, found in zip(tokens, chain(*_hashes(words, seed)), strict=True)}


def _hashes(words: list[str], seed: int) -> tuple[list[int], list[int]]:
    """Return hashes of words and of adjacent pairs; a pair extends its first word's hash."""
    encoded = " ".join(words).encode().split()
    hashes = list(map(crc32, encoded, repeat(seed)))
    return hashes, list(map(crc32, map(b" ".__add__, encoded[1:]), hashes))


def seed_of(column: str) -> int:
    """Return the hash seed of a column, whose name may contain a lone surrogate."""
    return crc32(column.encode("utf-8", "surrogatepass"))

"""The header of an ARFF file: relation, columns, and conversion of values to numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike

from mlca.tables.byte_streams import bad_file, undecodable

_QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{'\"][^\s{{]*+)\s*(.+)", re.IGNORECASE | re.DOTALL)
_RELATION = re.compile(rf"@relation\s+({_QUOTED}|[^'\"].*+)\s*", re.IGNORECASE | re.DOTALL)
_CHOICE = re.compile(rf"\{{((?:[^'\"}}]|{_QUOTED})*+)\}}\s*(?:%.*)?", re.DOTALL)
_NUMERIC = re.compile(r"(?:numeric|real|integer)\s*(?:%.*)?", re.IGNORECASE | re.DOTALL)
_PIECE = re.compile(rf"((?:[^,'\"]|{_QUOTED})*+)(,|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}

_YES_OR_NO = (("0", "1"), ("no", "yes"), ("false", "true"))

_GAP = "?"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of an ARFF file.

    Attributes
    ----------
    name : str
        The name, without quotes.
    codes : dict of str to float, or None
        The code of each nominal value, with NaN for ``?``; None for a numeric attribute.
    """

    name: str
    codes: dict[str, float] | None

    @property
    def convert(self) -> Callable[[str], float]:
        """The function that converts text to a number, or raises KeyError or ValueError."""
        return _number if self.codes is None else self.codes.__getitem__

    @property
    def values(self) -> tuple[str, ...]:
        """The nominal values in the order of their codes."""
        codes = self.codes or {}
        present = [value for value, code in codes.items() if not math.isnan(code)]
        return tuple(sorted(present, key=codes.__getitem__))

    @property
    def can_be_label(self) -> bool:
        """Whether the column is numeric, or its nominal values mean yes and no."""
        return self.codes is None or any({*map(str.lower, self.values)} <= {*pair} for pair in _YES_OR_NO)

    @property
    def omitted(self) -> float:
        """The number that an omitted value stands for: 0, or the code of the first value."""
        return 0.0 if self.codes is None else next(iter(self.codes.values()))


@dataclass(frozen=True)
class Header:
    """The header of an ARFF file.

    Attributes
    ----------
    relation : str
        Name of the relation, without quotes.
    relation_line, data_line : int
        The line numbers of ``@relation`` and ``@data``.
    attributes : tuple of Attribute
        The columns.
    """

    relation: str
    relation_line: int
    data_line: int
    attributes: tuple[Attribute, ...]


def read_header(lines: Iterator[tuple[int, str]], path: str | PathLike[str]) -> Header:
    """Read the header of an ARFF file from numbered lines, up to ``@data``.

    Parameters
    ----------
    lines : iterator of (int, str)
        Line numbers and lines. Afterwards, the next item is the first row.
    path : path-like
        The file name for error messages.

    Returns
    -------
    Header
    """
    relation, relation_line, number = "", 1, 1
    attributes: dict[str, Attribute] = {}
    for number, raw in lines:
        line = raw.strip()
        if problem := undecodable(line):
            raise bad_file(path, number, problem)
        keyword = line.split(maxsplit=1)[0].lower() if line else "%"
        if keyword.startswith("%"):
            continue
        if keyword == "@relation":
            relation, relation_line = _read_relation(line, number, path), number
        elif keyword == "@attribute":
            attribute = _read_attribute(line, number, path)
            if attribute.name in attributes:
                raise bad_file(path, number, f"two attributes are called {attribute.name!r}; rename one")
            attributes[attribute.name] = attribute
        elif keyword == "@data":
            if not attributes:
                raise bad_file(path, number, "@data comes before any @attribute")
            return Header(relation, relation_line, number, tuple(attributes.values()))
        else:
            raise bad_file(path, number, f"expected @relation, @attribute or @data; found {line[:40]!r}")
    raise bad_file(path, number, "the file ends before @data; is it a complete ARFF file?")


def _read_relation(line: str, number: int, path: str | PathLike[str]) -> str:
    relation = _RELATION.fullmatch(line)
    if relation is None:
        raise bad_file(path, number, "expected one name after @relation, in quotes if it has spaces")
    return unquote(relation[1].strip())


def _read_attribute(line: str, number: int, path: str | PathLike[str]) -> Attribute:
    parts = _ATTRIBUTE.fullmatch(line)
    if parts is None:
        raise bad_file(path, number, "expected a name, in quotes if it has spaces, and a type after @attribute")
    name, kind = unquote(parts[1]), parts[2]
    if _NUMERIC.fullmatch(kind):
        return Attribute(name, None)
    choice = _CHOICE.fullmatch(kind)
    if choice is None:
        raise bad_file(
            path,
            number,
            f"attribute {name!r} has the type {kind[:40]!r}; only numeric and nominal attributes are supported: "
            "remove it or make it nominal",
        )
    values = [unquote(piece.strip()) for piece in split_at_commas(choice[1])]
    codes = _codes(values)
    if len(codes) < len(values):
        raise bad_file(path, number, f"attribute {name!r} lists a value twice")
    codes.setdefault(_GAP, math.nan)
    return Attribute(name, codes)


def _codes(values: list[str]) -> dict[str, float]:
    """Return the codes of nominal values: 0, 1, ... in order, or 0 for no and 1 for yes."""
    for no, yes in _YES_OR_NO:
        if all(value.lower() in (no, yes) for value in values):
            return {value: float(value.lower() == yes) for value in values}
    return {value: float(code) for code, value in enumerate(values)}


def _number(word: str) -> float:
    if word == _GAP:
        return math.nan
    if "_" in word:  # Python would read 1_000 as a number
        raise ValueError(word)
    return float(word)


def split_at_commas(text: str) -> list[str]:
    """Split text at commas outside quotes; the parts keep their quotes.

    Parameters
    ----------
    text : str
        Text such as ``a, 'b, c'``.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If a quote is not closed.

    Examples
    --------
    >>> split_at_commas("a, 'b, c'")
    ['a', " 'b, c'"]
    """
    if "'" not in text and '"' not in text:
        return text.split(",")
    pieces = []
    place = 0
    while True:
        piece = _PIECE.match(text, place)
        if piece is None:
            raise ValueError("a quote is not closed")
        pieces.append(piece[1])
        if not piece[2]:
            return pieces
        place = piece.end()


def unquote(word: str) -> str:
    r"""Remove the quotes around a word and the backslashes inside them.

    Parameters
    ----------
    word : str
        The word, without surrounding spaces.

    Returns
    -------
    str

    Examples
    --------
    >>> unquote(r"'Stellar\'s Jay'")
    "Stellar's Jay"
    """
    if len(word) < 2 or word[0] not in "'\"" or word[-1] != word[0]:
        return word
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), word[1:-1])

"""Text for users: printable names, sparklines, and warnings that show the caller's line.

Names come from files and may contain control characters: an escape sequence in a label could clear the screen or hide a
line, and a bidirectional override could make a name read as another.
"""

from __future__ import annotations

import sys
import unicodedata
import warnings
from collections.abc import Sequence

# Zero-width (non-)joiners shape letters in Persian, Indic scripts and emoji; they cannot hide anything.
_HARMLESS = "\u200c\u200d"

_BLOCKS = "▁▂▃▄▅▆▇█"


class _Escapes(dict[int, str]):
    """Cache of the printed form of each character."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        harmless = character.isprintable() or character in _HARMLESS or unicodedata.category(character) == "Zs"
        self[code] = character if harmless else character.encode("unicode_escape").decode("ascii")
        return self[code]


_ESCAPES = _Escapes()


def shown(name: object) -> str:
    r"""Return a name that is safe to print, with control characters as escapes.

    Examples
    --------
    >>> shown("na\u00efve label"), shown(7)
    ('naïve label', '7')
    >>> print(shown("red\x1b[2J\nalert\u202e"))
    red\x1b[2J\nalert\u202e
    """
    return str(name).translate(_ESCAPES)


def shown_lines(text: object) -> str:
    r"""Return text that is safe to print, with control characters except \n as escapes.

    Examples
    --------
    >>> print(shown_lines("file\x07.csv:\n  no such column"))
    file\x07.csv:
      no such column
    """
    return "\n".join(map(shown, str(text).split("\n")))


# Packages whose stack frames may lie between the user's line and `warn`: scikit-learn, for instance, wraps methods and
# calls them in pipelines and searches.
_NOT_THE_USER = frozenset({"mlca", "sklearn", "joblib", "river"})


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the user's line, outside this package.

    Parameters
    ----------
    message : str
        The problem and its remedy.
    category : type of Warning, default=UserWarning
        The class of the warning.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def sparkline(values: Sequence[float], highest: float = 1.0, width: int = 60) -> str:
    """Draw values from 0 to `highest` as a line of at most `width` blocks; NaN is a space.

    Examples
    --------
    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    step = -(-len(values) // width) or 1
    groups = [values[i : i + step] for i in range(0, len(values), step)]
    return "".join(_block([value for value in group if value == value], highest) for group in groups)


def _block(values: Sequence[float], highest: float) -> str:
    if not values or highest <= 0:
        return " "
    share = sum(values) / len(values) / highest
    return _BLOCKS[min(len(_BLOCKS) - 1, max(0, round(share * (len(_BLOCKS) - 1))))]

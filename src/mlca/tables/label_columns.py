"""Reading of labels from a file, in a form that is inferred from its first rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlca.tables.cells import as_bit, as_text
from mlca.tables.columns import MOSTLY, names_of, some
from mlca.tables.layout import LabelLayout
from mlca.tables.mulan_xml import read_mulan_xml
from mlca.tables.sources import Fault, Source
from mlca.targets.text import is_missing_label, list_in_text

SEPARATORS = ("|", ";", ",")


def decide_labels(
    source: Source, rows: Sequence[Sequence[Any]], wanted: str | None, separator: str | None
) -> LabelLayout:
    """Infer the form of the labels in a file.

    Parameters
    ----------
    source : Source
        The file.
    rows : sequence of cells
        The first rows of the file.
    wanted : str or None
        The user's choice: a column, comma-separated columns, a pattern, or the XML file of a Mulan dataset. None if the
        file itself declares its labels.
    separator : str or None
        The separator between labels; None if the user set none.

    Returns
    -------
    LabelLayout
    """
    if separator == "":
        raise ValueError("--separator is empty; set the separator between labels, such as |")
    columns, patterns = _label_columns(source, wanted)
    if len(columns) > 1 or patterns:
        return LabelLayout("flags", columns, patterns=patterns)
    place = source.columns.index(columns[0])
    cells = [row[place] for row in rows if not _names_nothing(row[place])]
    if separator is not None:
        return LabelLayout("separated", columns, separator)
    if any(isinstance(cell, list | dict) for cell in cells) or _mostly(_looks_like_list, cells):
        return LabelLayout("lists", columns)
    if _mostly(lambda cell: as_bit(cell) is not None, cells):
        return LabelLayout("flags", columns)
    texts = [as_text(cell) for cell in cells]
    counts = {mark: sum(mark in text for text in texts) for mark in SEPARATORS}
    best = max(SEPARATORS, key=counts.__getitem__)
    return LabelLayout("separated", columns, best if counts[best] else None)


def _label_columns(source: Source, wanted: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the label columns, and patterns for additional label columns in later files."""
    if wanted is None:
        if source.label_columns:
            return source.label_columns, ()
        raise ValueError(
            f"{source.name}: name the label columns, for example --labels tags; the columns are {some(source.columns)}"
        )
    if wanted.lower().endswith(".xml") and Path(wanted).exists():
        return names_of(read_mulan_xml(wanted), source.columns, source.name), ()
    words = [wanted] if wanted in source.columns else [word.strip() for word in wanted.split(",")]
    patterns = tuple(word for word in words if word not in source.columns and any(mark in word for mark in "*?["))
    return names_of(words, source.columns, source.name), patterns


def _looks_like_list(cell: Any) -> bool:
    return isinstance(cell, str) and list_in_text(cell) is not None


def _mostly(test: Callable[[Any], bool], cells: Sequence[Any]) -> bool:
    """Return whether nearly all cells pass a test; the others are then faults."""
    return bool(cells) and sum(map(test, cells)) >= MOSTLY * len(cells)


class LabelReader:
    """Reads the labels of rows.

    Parameters
    ----------
    labels : LabelLayout
        The form of the labels.
    columns : sequence of str
        The columns of the file.
    """

    def __init__(self, labels: LabelLayout, columns: Sequence[str]) -> None:
        self.columns = labels.among(columns)
        place_of = {name: place for place, name in enumerate(columns)}
        self._places = [place_of[name] for name in self.columns]
        self._separator = labels.separator
        read = {"separated": self._separated, "lists": self._list, "flags": self._flags}
        self.read = read[labels.form]

    def _separated(self, cells: Sequence[Any]) -> list[str] | Fault:
        cell = cells[self._places[0]]
        if isinstance(cell, list | tuple | dict) or _looks_like_list(cell):  # otherwise brackets would be part of names
            return self._list(cells)
        text = "" if _names_nothing(cell) else as_text(cell)
        names = text.split(self._separator) if self._separator is not None else [text]
        return [name for name in map(str.strip, names) if name]

    def _list(self, cells: Sequence[Any]) -> list[str] | Fault:
        cell = cells[self._places[0]]
        if _names_nothing(cell):
            return []
        names = list_in_text(cell) if isinstance(cell, str) else list(cell) if isinstance(cell, tuple) else cell
        if not isinstance(names, list) or not all(isinstance(name, str | int) for name in names):
            return Fault(f'the labels {_shown(cell)} are not a list such as ["sea", "sun"]')
        return [name for name in map(as_text, names) if name.strip()]

    def _flags(self, cells: Sequence[Any]) -> list[str] | Fault:
        names = []
        for name, place in zip(self.columns, self._places, strict=True):
            bit = as_bit(cells[place])
            if bit is None:
                return Fault(f"label {name!r} must be 0 or 1, or no or yes; got {_shown(cells[place])}")
            if bit:
                names.append(name)
        return names


def _names_nothing(cell: Any) -> bool:
    return is_missing_label(cell) or cell == ""


def _shown(cell: Any) -> str:
    return repr(cell)[:40]

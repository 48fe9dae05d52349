"""Comparison of a file with the layout of a model, before the file is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlca.tables.batches import TableFile
from mlca.tables.cells import as_text, is_missing, is_number, plain_numbers
from mlca.tables.dates import as_days
from mlca.tables.kinds import Categorical, Date, Numeric, OneHot
from mlca.tables.label_columns import SEPARATORS
from mlca.tables.layout import LabelLayout, Layout, TableLayout, XcLayout
from mlca.tables.xc import XcSource
from mlca.targets.text import list_in_text


def compare(file: TableFile, layout: Layout, *, labels: bool, learning: bool = False) -> list[str]:
    """Compare a file with the layout of a model.

    Parameters
    ----------
    file : TableFile
        The file.
    layout : Layout
        The layout of the model.
    labels : bool
        Whether the file must have labels.
    learning : bool, default=False
        Whether the file is used for training, so that new columns are learned.

    Returns
    -------
    list of str
        A message for each acceptable difference, such as a new column.

    Raises
    ------
    ValueError
        If the file cannot be read with the layout; the message lists all problems.
    """
    source = file.source
    if isinstance(source, XcSource) != isinstance(layout, XcLayout):
        trained = "XC text" if isinstance(layout, XcLayout) else "a table with named columns"
        raise ValueError(f"{source.name}: the model was trained on {trained}; this file has another format")
    if isinstance(layout, XcLayout):
        assert isinstance(source, XcSource)
        if source.n_features != layout.n_features:
            raise ValueError(
                f"{source.name}, line 1: {source.n_features} features; the model was trained on {layout.n_features}"
            )
        return []
    wrong = _missing_columns(layout, source.columns, labels) + _other_kinds(layout, file.cells_of_first())
    if wrong:
        raise ValueError(f"{source.name} does not match the model:" + "".join(f"\n  {problem}" for problem in wrong))
    label_columns = () if layout.labels is None else layout.labels.among(source.columns)
    known = {column.name for column in layout.columns} | set(label_columns) | {layout.id}
    verdict = "learned from here on" if learning else "not used, because the model was trained without it"
    notes = [f"new column {name!r}: {verdict}" for name in source.columns if name not in known]
    notes += [
        f"no column {column.name!r} ({column.kind}): missing in every row"
        for column in layout.learned
        if column.name in layout.optional and column.name not in source.columns
    ]
    if layout.labels is None or not labels:
        return notes
    known_labels = set(layout.labels.columns)
    notes += [f"new label column {name!r}" for name in label_columns if name not in known_labels]
    return notes + _other_separator(layout.labels, file.cells_of_first())


def _other_separator(labels: LabelLayout, cells_of: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a hint if the labels seem to be separated by another character than before."""
    texts = [
        cell for cell in cells_of.get(labels.columns[0], ()) if isinstance(cell, str) and list_in_text(cell) is None
    ]
    if labels.form != "separated" or any(labels.separator is not None and labels.separator in text for text in texts):
        return []
    for mark in SEPARATORS:
        found = next((text for text in texts if mark in text), None)
        if found is not None and mark != labels.separator:
            return [
                f"labels such as {found!r} are read as one name; if they are several labels, pass --separator {mark!r}"
            ]
    return []


def _missing_columns(layout: TableLayout, columns: Sequence[str], labels: bool) -> list[str]:
    wrong = [f"missing column {column.name!r} ({column.kind})" for column in layout.lacking(columns)]
    if labels and layout.labels is not None:
        present = set(columns)
        wrong += [f"missing label column {name!r}" for name in layout.labels.columns if name not in present]
    return wrong


def _other_kinds(layout: TableLayout, cells_of: Mapping[str, Sequence[Any]]) -> list[str]:
    wrong = []
    for column in layout.learned:
        cells, comma = cells_of.get(column.name, ()), isinstance(column, Numeric) and column.comma
        if isinstance(column, Numeric) and not comma and plain_numbers(cells) is not None:
            continue
        present = [cell for cell in cells if not is_missing(cell)]
        if not present:
            continue
        numbers = sum(is_number(cell, comma=comma) for cell in present)
        if isinstance(column, Numeric) and numbers < len(present) / 2:
            words = next(as_text(cell) for cell in present if not is_number(cell, comma=comma))
            wrong.append(f"column {column.name!r} was numeric, but now holds {words!r}")
        if isinstance(column, Date):
            undated = [cell for cell in present if as_days(cell, slashes=column.slashes) is None]
            if len(undated) > len(present) / 2:
                wrong.append(f"column {column.name!r} held dates, but now holds {as_text(undated[0])!r}")
        if isinstance(column, Categorical | OneHot) and numbers == len(present) and not _any_known(column, present):
            values = ", ".join(map(repr, column.values[:3]))
            wrong.append(f"column {column.name!r} held categories such as {values}, but now holds {present[0]!r}")
    return wrong


def _any_known(column: Categorical | OneHot, cells: Sequence[Any]) -> bool:
    return any(as_text(cell) in column.codes for cell in cells)

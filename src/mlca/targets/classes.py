"""One class per row: a 1-D y, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mlca.messages import warn
from mlca.targets.labels import LabelRows, LabelSet, is_wasteful, number_names, plain
from mlca.targets.text import is_missing_label, list_in_text

_SEPARATORS = (",", ";", "|")


def as_array(rows: Sequence[Any]) -> NDArray[Any]:
    """Return classes as an array, without NumPy's changes to mixed types and trailing NULs."""
    classes = [plain(row) for row in rows]
    texts = [name for name in classes if isinstance(name, str)]
    mixed = 0 < len(texts) < len(classes)
    as_they_are = mixed or any(text.endswith("\0") for text in texts) or is_wasteful(texts)
    return np.array(classes, dtype=object if as_they_are else None)


def read_classes(
    y: NDArray[Any], known: LabelSet | None, classes: Iterable[Hashable] | None
) -> tuple[LabelSet, LabelRows]:
    """Read an array of one class per row; new classes become columns."""
    if known is not None and not known.single:
        raise ValueError(
            "the model learned several labels per row, not a 1-D y: use the same form, an indicator matrix or "
            "one iterable of names per row, such as [[name] for name in y]"
        )
    y = column_or_1d(y, warn=True)
    if y.dtype == object:
        y = np.fromiter(map(plain, y), dtype=object, count=len(y))
    _reject_invalid_classes(y)
    if y.dtype.kind not in "biuUS":
        check_classification_targets(y)
    found, codes = np.unique(y, return_inverse=True)
    columns = number_names(known, classes)
    _reject_mixed_classes(columns, found.tolist())
    _check_text([name for name in found.tolist() if name not in columns], columns)
    # Without `classes`, the classes of the first batch are sorted, as in scikit-learn; later ones are appended.
    order = found if known is None else y[np.sort(np.unique(y, return_index=True)[1])]
    for name in order.tolist():
        columns.setdefault(name, len(columns))
    column_of_code = np.array([columns[name] for name in found.tolist()], dtype=np.int32)
    rows = LabelRows(np.arange(len(y) + 1), column_of_code[codes.ravel()], len(columns), len(columns))
    return LabelSet(tuple(columns), single=True), rows


def _reject_invalid_classes(y: NDArray[Any]) -> None:
    """Reject missing values, and strings among numbers, which NumPy could not sort."""
    if y.dtype.kind not in "fO":
        return
    for i, name in enumerate(y.tolist()):
        if is_missing_label(name):
            raise ValueError(
                f"row {i} of y is {name!r} (Input y contains NaN), which is not a class: leave such rows out"
            )
    _reject_mixed_classes((), y.tolist())


def _reject_mixed_classes(known: Iterable[Any], found: Sequence[Any]) -> None:
    texts = {isinstance(name, str): name for name in (*known, *found)}
    if len(texts) > 1:
        raise ValueError(f"y mixes {texts[False]!r} and {texts[True]!r}; use one type for classes, such as str(name)")


def _check_text(new: Sequence[Any], known: Iterable[Any]) -> None:
    """Reject strings that look like lists; warn once if a class looks like several labels."""
    texts = [name for name in new if isinstance(name, str)]
    if texts and all(list_in_text(text) is not None for text in texts):
        raise ValueError(
            f"y holds the string {texts[0]!r}, which looks like a list of labels that pandas or Dask converted to a "
            "string: write mlca.labels_from(y)"
        )
    for sep in _SEPARATORS:
        joined = next((text for text in texts if sep in text), None)
        if joined is not None and not any(isinstance(name, str) and sep in name for name in known):
            warn(
                f"y holds {joined!r}, read as one class; if it names several labels, write "
                f"mlca.labels_from(y, sep={sep!r})"
            )
            return

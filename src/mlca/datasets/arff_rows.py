"""The rows of an ARFF file: dense ones with commas between the values, sparse ones in braces."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Set
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.datasets.arff_header import Attribute, Header, split_at_commas, unquote
from mlca.datasets.files import bad_file
from mlca.datasets.rows import SparseRows

Lines = Iterator[tuple[int, str]]


def read_rows(
    lines: Lines, header: Header, labels: Set[int], path: str | PathLike[str]
) -> tuple[Any, sparse.csr_array]:
    """Read all rows, in the manner of the first.

    Parameters
    ----------
    lines : iterator of (int, str)
        The numbered lines after ``@data``.
    header : Header
        The columns of the file.
    labels : set of int
        Places of the attributes that are labels.
    path : path-like
        The file, for errors.

    Returns
    -------
    X : ndarray or csr_array, float64
        The other attributes, dense or sparse as the rows are.
    Y : csr_array, uint8
        The labels.
    """
    for place in labels:
        if not header.attributes[place].can_be_label:
            raise bad_file(
                path,
                header.data_line,
                f"label {header.attributes[place].name!r} is no choice between 0 and 1",
            )
    rows = _without_comments(lines)
    first = next(rows, None)
    if first is None:
        raise bad_file(path, header.data_line, "no row follows @data; fetch the file again")
    read = _read_sparse if first[1].startswith("{") else _read_dense
    return read(chain([first], rows), header.attributes, labels, path)


def _without_comments(lines: Lines) -> Lines:
    for number, line in lines:
        row = line.strip()
        if row and not row.startswith("%"):
            yield number, row


def _read_dense(
    rows: Lines, attributes: tuple[Attribute, ...], labels: Set[int], path: str | PathLike[str]
) -> tuple[NDArray[np.float64], sparse.csr_array]:
    cells = [(place, attribute.convert) for place, attribute in enumerate(attributes)]
    feature_cells = [cell for cell in cells if cell[0] not in labels]
    label_cells = [cell for cell in cells if cell[0] in labels]
    values, line_of_row = array("d"), array("q")
    present = SparseRows(ones=True)
    for number, row in rows:
        words = _dense_words(row, len(attributes), number, path)
        try:
            values.extend([convert(words[place]) for place, convert in feature_cells])
            flags = [convert(words[place]) for place, convert in label_cells]
        except (KeyError, ValueError):
            raise _no_value(enumerate(words), attributes, number, path) from None
        for column, flag in enumerate(flags):
            if _is_set(flag, attributes[label_cells[column][0]], number, path):
                present.columns.append(column)
        present.end_row(number)
        line_of_row.append(number)
    X = np.frombuffer(values, np.float64).reshape(len(line_of_row), len(feature_cells))
    infinite = np.isinf(X).any(axis=1)
    if infinite.any():
        raise bad_file(path, line_of_row[int(infinite.argmax())], "a value of the row is infinite")
    return X, present.matrix(len(label_cells), path, "label")


def _dense_words(row: str, expected: int, number: int, path: str | PathLike[str]) -> list[str]:
    if row.startswith("{"):
        raise bad_file(path, number, "a sparse row among dense ones; write all rows alike")
    pieces = _pieces(row, number, path)
    if len(pieces) != expected:
        raise bad_file(path, number, f"the row has {len(pieces)} values, the header {expected} attributes")
    return [_word(piece) for piece in pieces]


def _read_sparse(
    rows: Lines, attributes: tuple[Attribute, ...], labels: Set[int], path: str | PathLike[str]
) -> tuple[sparse.csr_array, sparse.csr_array]:
    features, present = SparseRows(), SparseRows(ones=True)
    n_labels = 0
    # Looking a place up by its digits refuses at once whatever is not a place of this file.
    cells = {}
    for place, attribute in enumerate(attributes):
        is_label = place in labels
        cells[str(place)] = (is_label, n_labels if is_label else place - n_labels, attribute.convert, attribute)
        n_labels += is_label
    must_be_named = {digits for digits, (_, _, _, attribute) in cells.items() if attribute.omitted != 0}
    for number, row in rows:
        pairs = _sparse_pairs(row, number, path)
        for digits, word in pairs:
            if digits not in cells:
                raise bad_file(path, number, f"{digits[:40]!r} is none of the {len(attributes)} attributes, from 0")
            is_label, column, convert, attribute = cells[digits]
            try:
                value = convert(word)
            except (KeyError, ValueError):
                raise _no_value([(int(digits), word)], attributes, number, path) from None
            if not is_label:
                features.columns.append(column)
                features.values.append(value)
            elif _is_set(value, attribute, number, path):
                present.columns.append(column)
        if must_be_named:
            _refuse_omitted(must_be_named.difference(digits for digits, _ in pairs), attributes, number, path)
        features.end_row(number)
        present.end_row(number)
    return (
        features.matrix(len(attributes) - n_labels, path, "attribute"),
        present.matrix(n_labels, path, "label"),
    )


def _sparse_pairs(row: str, number: int, path: str | PathLike[str]) -> list[list[str]]:
    """Split a row such as ``{2 1, 5 'dark blue'}`` into places and words."""
    if not (row.startswith("{") and row.endswith("}")):
        raise bad_file(path, number, "a sparse row stands in braces on one line; write all rows alike")
    inside = row[1:-1]
    if not inside.strip():
        return []
    pairs = [piece.split(None, 1) for piece in _pieces(inside, number, path)]
    for pair in pairs:
        if len(pair) < 2:
            raise bad_file(path, number, f"expected an attribute's number and its value, found {' '.join(pair)[:40]!r}")
        pair[1] = _word(pair[1])
    return pairs


def _pieces(text: str, number: int, path: str | PathLike[str]) -> list[str]:
    try:
        return split_at_commas(text)
    except ValueError as error:
        raise bad_file(path, number, f"{error}; write a backslash before a quote that is meant") from None


def _word(piece: str) -> str:
    word = piece.strip()
    return unquote(word) if word[:1] in ("'", '"') else word


def _is_set(flag: float, attribute: Attribute, number: int, path: str | PathLike[str]) -> bool:
    if flag not in (0, 1):
        raise bad_file(path, number, f"label {attribute.name!r} must be 0 or 1, NO or YES, and never missing")
    return flag == 1


def _no_value(
    words: Iterable[tuple[int, str]],
    attributes: tuple[Attribute, ...],
    number: int,
    path: str | PathLike[str],
) -> ValueError:
    """Make the error for the first word that its attribute does not take."""
    for place, word in words:
        attribute = attributes[place]
        try:
            attribute.convert(word)
        except KeyError:
            return bad_file(path, number, f"{word[:40]!r} is none of the values of attribute {attribute.name!r}")
        except ValueError:
            return bad_file(path, number, f"{word[:40]!r} is no number, as attribute {attribute.name!r} asks for")
    raise AssertionError("every word is a value of its attribute")


def _refuse_omitted(
    places: Set[str], attributes: tuple[Attribute, ...], number: int, path: str | PathLike[str]
) -> None:
    """Refuse a row whose meaning is not 0 where it is silent: it means the first nominal value."""
    if places:
        attribute = attributes[min(map(int, places))]
        raise bad_file(
            path,
            number,
            f"the row leaves out attribute {attribute.name!r}, which in a sparse file means its first value, "
            "yet that is not 0; put NO or 0 first in the header",
        )

"""Conversion of the rows of an ARFF file to features and labels."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Set
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.datasets.sparse_rows import SparseRows
from mlca.tables.arff import ArffSource
from mlca.tables.arff_header import Attribute
from mlca.tables.byte_streams import bad_file
from mlca.tables.sources import Fault

Records: TypeAlias = Iterator[tuple[int, Any]]


def read_arff_rows(source: ArffSource, labels: Set[int]) -> tuple[Any, sparse.csr_array]:
    """Read all rows; X is dense or sparse like the first row of the file.

    Parameters
    ----------
    source : ArffSource
        The file.
    labels : set of int
        Indices of the label columns.

    Returns
    -------
    X : ndarray or csr_array, float64
        The feature columns, dense or sparse like the rows.
    Y : csr_array, uint8
        The labels.
    """
    header = source.header
    for place in labels:
        if not header.attributes[place].can_be_label:
            problem = f"label {header.attributes[place].name!r} does not have the values 0 and 1"
            raise bad_file(source.name, header.data_line, problem)
    records = _without_faults(source)
    first = next(records, None)
    if first is None:
        raise bad_file(source.name, header.data_line, "no row follows @data; fetch the file again")
    read = _read_sparse if source.sparse else _read_dense
    return read(chain([first], records), header.attributes, labels, source.name)


def _without_faults(source: ArffSource) -> Records:
    for number, found in source.records():
        if isinstance(found, Fault):
            raise bad_file(source.name, number, found.problem)
        yield number, found


def _read_dense(
    records: Records, attributes: tuple[Attribute, ...], labels: Set[int], name: str
) -> tuple[NDArray[np.float64], sparse.csr_array]:
    cells = [(place, attribute.convert) for place, attribute in enumerate(attributes)]
    feature_cells = [cell for cell in cells if cell[0] not in labels]
    label_cells = [cell for cell in cells if cell[0] in labels]
    values, line_of_row = array("d"), array("q")
    present = SparseRows(ones=True)
    for number, words in records:
        try:
            values.extend([convert(words[place]) for place, convert in feature_cells])
            flags = [convert(words[place]) for place, convert in label_cells]
        except (KeyError, ValueError):
            raise _no_value(enumerate(words), attributes, number, name) from None
        for column, flag in enumerate(flags):
            if _is_set(flag, attributes[label_cells[column][0]], number, name):
                present.columns.append(column)
        present.end_row(number)
        line_of_row.append(number)
    X = np.frombuffer(values, np.float64).reshape(len(line_of_row), len(feature_cells))
    infinite = np.isinf(X).any(axis=1)
    if infinite.any():
        raise bad_file(name, line_of_row[int(infinite.argmax())], "a value of the row is infinite")
    return X, present.matrix(len(label_cells), name, "label")


def _read_sparse(
    records: Records, attributes: tuple[Attribute, ...], labels: Set[int], name: str
) -> tuple[sparse.csr_array, sparse.csr_array]:
    features, present = SparseRows(), SparseRows(ones=True)
    n_labels = 0
    cells = []
    for place, attribute in enumerate(attributes):
        is_label = place in labels
        cells.append((is_label, n_labels if is_label else place - n_labels, attribute.convert, attribute))
        n_labels += is_label
    must_be_named = {place for place, attribute in enumerate(attributes) if attribute.omitted != 0}
    for number, pairs in records:
        for place, word in pairs.items():
            is_label, column, convert, attribute = cells[place]
            try:
                value = convert(word)
            except (KeyError, ValueError):
                raise _no_value([(place, word)], attributes, number, name) from None
            if not is_label:
                features.columns.append(column)
                features.values.append(value)
            elif _is_set(value, attribute, number, name):
                present.columns.append(column)
        if must_be_named:
            _reject_omitted(must_be_named.difference(pairs), attributes, number, name)
        features.end_row(number)
        present.end_row(number)
    return (
        features.matrix(len(attributes) - n_labels, name, "attribute"),
        present.matrix(n_labels, name, "label"),
    )


def _is_set(flag: float, attribute: Attribute, number: int, name: str) -> bool:
    if flag not in (0, 1):
        raise bad_file(name, number, f"label {attribute.name!r} must be 0 or 1, NO or YES, and never missing")
    return flag == 1


def _no_value(
    words: Iterable[tuple[int, str]], attributes: tuple[Attribute, ...], number: int, name: str
) -> ValueError:
    """Return the error for the first value that is invalid in its column."""
    for place, word in words:
        attribute = attributes[place]
        try:
            attribute.convert(word)
        except KeyError:
            return bad_file(name, number, f"{word[:40]!r} is not among the values of attribute {attribute.name!r}")
        except ValueError:
            return bad_file(name, number, f"{word[:40]!r} is not a number, as attribute {attribute.name!r} requires")
    raise AssertionError("no invalid word was found")


def _reject_omitted(places: Set[int], attributes: tuple[Attribute, ...], number: int, name: str) -> None:
    """Reject a sparse row that omits a column whose default, its first value, is not 0."""
    if places:
        attribute = attributes[min(places)]
        raise bad_file(
            name,
            number,
            f"the row omits attribute {attribute.name!r}, which therefore has its first value, "
            "but that value is not 0; put NO or 0 first in the header",
        )

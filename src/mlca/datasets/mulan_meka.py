"""Readers of multi-label ARFF files: Mulan's, with an XML list of labels, and MEKA's."""

from __future__ import annotations

from collections.abc import Callable, Collection
from os import PathLike

import numpy as np

from mlca.datasets.arff_rows import read_arff_rows
from mlca.datasets.table import LabelledTable
from mlca.tables.arff import ArffSource, meka_labels
from mlca.tables.arff_header import Header
from mlca.tables.byte_streams import ByteStream, bad_file
from mlca.tables.mulan_xml import read_mulan_xml


def read_arff(path: str | PathLike[str], *, labels: Collection[str] = ()) -> LabelledTable:
    """Read an ARFF file, dense or sparse, with some of its columns as labels.

    Nominal values become their indices in the header, from 0. The values 0 and 1, NO and YES, or FALSE and TRUE become
    0 and 1, in whatever order the header lists them. ``?`` becomes NaN.

    Parameters
    ----------
    path : path-like
        The file, optionally with the suffix ``.gz`` or ``.bz2``.
    labels : collection of str, default=()
        Names of the label columns.

    Returns
    -------
    LabelledTable
        Features and labels in the order of the file.

    Raises
    ------
    ValueError
        If the file is not ARFF or a label is not in it; the message names file and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.arff")
    ...     _ = path.write_text('''@relation tiny
    ... @attribute size numeric
    ... @attribute colour {red, green, 'dark blue'}
    ... @attribute fruit {0, 1}
    ... @data
    ... 1.5, 'dark blue', 1
    ... ?, red, 0
    ... ''')
    ...     table = read_arff(path, labels=["fruit"])
    >>> table.X
    array([[1.5, 2. ],
           [nan, 0. ]])
    >>> table.categories["colour"], table.categorical
    (('red', 'green', 'dark blue'), array([False,  True]))
    >>> table.label_names, table.Y.toarray().tolist()
    (('fruit',), [[1], [0]])
    """

    def by_name(header: Header) -> set[int]:
        places = {attribute.name: place for place, attribute in enumerate(header.attributes)}
        missing = [label for label in labels if label not in places]
        if missing:
            raise bad_file(
                path,
                header.data_line,
                f"the label list contains {missing[0]!r}, but the file declares no such attribute",
            )
        return {places[label] for label in labels}

    return _read(path, by_name)


def read_mulan(arff: str | PathLike[str], xml: str | PathLike[str]) -> LabelledTable:
    """Read a Mulan dataset: an ARFF file and the XML list of its labels.

    Parameters
    ----------
    arff, xml : path-like
        The two files.

    Returns
    -------
    LabelledTable
        Features and labels in the order of the ARFF file.

    See Also
    --------
    read_arff : Describes the conversion of values.
    """
    return read_arff(arff, labels=read_mulan_xml(xml))


def read_meka(path: str | PathLike[str]) -> LabelledTable:
    """Read a MEKA dataset, whose relation name declares the number of labels.

    ``-C 6`` in the name of the relation makes the first six columns labels, ``-C -6`` the last six.

    Parameters
    ----------
    path : path-like
        The file, optionally with the suffix ``.gz`` or ``.bz2``.

    Returns
    -------
    LabelledTable
        Features and labels in the order of the file.

    See Also
    --------
    read_arff : Describes the conversion of values.
    """

    def by_count(header: Header) -> set[int]:
        places = meka_labels(header, str(path))
        if places is None:
            raise bad_file(
                path,
                header.relation_line,
                "the relation lacks MEKA's -C with the number of labels; use read_mulan",
            )
        return set(places)

    return _read(path, by_count)


def _read(path: str | PathLike[str], choose_labels: Callable[[Header], set[int]]) -> LabelledTable:
    with ByteStream(path) as stream:
        stream.peek()
        source = ArffSource(stream)
        header = source.header
        labels = choose_labels(header)
        X, Y = read_arff_rows(source, labels)
    features = [attribute for place, attribute in enumerate(header.attributes) if place not in labels]
    return LabelledTable(
        X=X,
        Y=Y,
        feature_names=tuple(attribute.name for attribute in features),
        label_names=tuple(header.attributes[place].name for place in sorted(labels)),
        categorical=np.array([attribute.codes is not None for attribute in features], dtype=bool),
        categories={attribute.name: attribute.values for attribute in features if attribute.codes is not None},
    )

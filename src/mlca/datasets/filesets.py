"""The filesets in which a dataset may be stored, and their readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mlca.datasets.extreme import read_xc
from mlca.datasets.mulan_meka import read_meka, read_mulan
from mlca.datasets.table import LabelledTable, join
from mlca.tables.mulan_xml import read_mulan_xml

# Suffixes that the name of a file may have in addition.
SUFFIXES = ("", ".gz", ".bz2")


@dataclass(frozen=True)
class Mulan:
    """One ARFF file, or a train and a test file, with the XML list of labels."""

    arff: tuple[str, ...]
    xml: str

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files of the dataset."""
        return (*self.arff, self.xml)

    def read(self, paths: Mapping[str, Path]) -> LabelledTable:
        """Read the dataset from its files."""
        return join([read_mulan(paths[arff], paths[self.xml]) for arff in self.arff])


@dataclass(frozen=True)
class Meka:
    """One ARFF file whose relation declares the labels."""

    arff: str

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files of the dataset."""
        return (self.arff,)

    def read(self, paths: Mapping[str, Path]) -> LabelledTable:
        """Read the dataset from its file."""
        return read_meka(paths[self.arff])


@dataclass(frozen=True)
class ExtremeText:
    """One text file with two files of row numbers, or a train and a test file.

    Features and labels are numbered from 0. A Mulan XML list may name the labels.
    """

    data: tuple[str, ...]
    splits: tuple[str, str] | None = None
    xml: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files of the dataset."""
        return (*self.data, *(self.splits or ()), *([self.xml] if self.xml else []))

    def read(self, paths: Mapping[str, Path]) -> LabelledTable:
        """Read the dataset from its files."""
        train, test = (paths[split] for split in self.splits) if self.splits else (None, None)
        table = join([read_xc(paths[name], train_split=train, test_split=test, one_based=False) for name in self.data])
        if self.xml is None:
            return table
        names = tuple(read_mulan_xml(paths[self.xml]))
        if len(names) != table.Y.shape[1]:
            raise ValueError(
                f"{paths[self.xml]} names {len(names)} labels, but the data have {table.Y.shape[1]}; fetch both again"
            )
        return replace(table, label_names=names)


FileSet = Mulan | Meka | ExtremeText


def locate(fileset: FileSet, folder: Path) -> dict[str, Path] | None:
    """Return the paths of a fileset's files, which may be compressed; None if one is missing."""
    paths = {}
    for name in fileset.files:
        present = [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]
        if not present:
            return None
        paths[name] = present[0]
    return paths

"""Batch reading of CSV, TSV, JSON lines, Parquet, ARFF and XC text.

Data flow through this package in one direction, a part at a time. `byte_streams` opens a file or standard input and
yields decompressed, decoded lines within bounds; all readers use it, also those of `mlca.datasets`. A source (defined
in `sources`; `delimited`, `jsonlines`, `parquet`, `arff` with its `arff_header`, `xc`) turns them into rows of cells
with their line numbers, under the names of its columns. `formats` finds the source for a file, and `mulan_xml` reads
the labels that accompany an ARFF file. A row that cannot be read does not raise an exception but becomes a `Fault`, so
that the stream continues after it.

The first rows are examined before anything is learned. `columns` decides the kind of each column, one of the `kinds`,
and `label_columns` the form of the labels. Both together are a layout (`layout`). The public `Recipe` is a layout that
learns with the stream: `encoding` makes matrices of cells by it, and extends it at the row that brings a new category
or column. The model file stores it, and later files and frames are read by it. `cells`, `dates` and `words` convert
single cells; `frame_cells` returns the cells of a table in memory.

`batches` combines these for files: it yields a matrix and label names for some rows at a time, and reports each fault
by file and line. `differences` compares a file with a recipe in advance. `informative` describes nodes by the columns
in which they differ most.

Four rules apply everywhere:

* A category becomes a code, and the model compares codes as equal or not: one feature, however many values it
  has. An unknown value has its own code, which is unlike all known ones and equally far from all.
* A missing value becomes NaN, which the model leaves out of each comparison; a missing text has no words.
  Empty cells, NA, N/A, NaN, null and ? are missing. All are counted and reported.
* A row is encoded by the layout at its arrival, so that the size of portions does not matter.
* Labels are text. An empty cell means that a row has no label.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlca.tables.recipe import Recipe as Recipe
    from mlca.tables.table_learner import TableLearner as TableLearner

__all__ = ["Recipe", "TableLearner"]

_MODULES = {"Recipe": "recipe", "TableLearner": "table_learner"}


def __getattr__(name: str) -> Any:
    # Readers must work without scikit-learn, so the rest is imported when it is needed.
    if name in _MODULES:
        return getattr(import_module(f"mlca.tables.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'mlca.tables' has no attribute {name!r}")

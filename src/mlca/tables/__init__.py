"""Batch reading of CSV, TSV, JSON lines, Parquet, ARFF and XC text.

Data flow through this package in one direction, in batches. `byte_streams` opens a file or standard input and yields
decompressed, decoded lines of limited length; all readers use it, including those of `mlca.datasets`. A source
(defined in `sources`; `delimited`, `jsonlines`, `parquet`, `arff` with its `arff_header`, `xc`) turns lines into rows
of cells, with column names and line numbers. `formats` finds the source for a file, and `mulan_xml` reads the label
names that accompany an ARFF file. An unreadable row yields a `Fault` instead of raising an exception, so reading
continues after it.

The first rows are examined before anything is learned. `columns` infers the kind of each column (the classes in
`kinds`), and `label_columns` infers how the labels are stored. Together they form a layout (`layout`). The public
`Recipe` holds a layout that grows with the stream: `encoding` encodes cells as matrices, and extends the layout when a
row contains a new category or column. The recipe is stored in the model file and used to read later files and frames.
`cells`, `dates` and `words` convert single cells; `frame_cells` returns the cells of a table in memory.

`batches` combines these modules for files: it yields batches of encoded rows with label names, and reports each fault
by file and line. `differences` compares a file with a layout before the file is used. `informative` describes nodes by
the columns in which they differ most from the average node.

Four rules apply everywhere:

* A categorical column becomes one feature of codes, which the model tests only for equality. Unknown categories
  share a code that differs from all known ones.
* A missing value becomes NaN, which the model leaves out of each comparison; a missing text has no words.
  Empty cells, NA, N/A, NaN, null and ? are missing. Missing values are counted and reported.
* A row is encoded by the layout at the time it arrives, so the batch size does not change the result.
* Labels are strings. An empty cell means that a row has no label.
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
    # Readers must work without scikit-learn, so the modules that need it are imported on first use.
    if name in _MODULES:
        return getattr(import_module(f"mlca.tables.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'mlca.tables' has no attribute {name!r}")

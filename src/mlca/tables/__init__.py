"""A user's own files, in batches: from CSV, TSV, JSON lines, Parquet, ARFF or XC text to rows and labels.

Data flow through this package in one direction and never all at once. `streams` opens a file or standard input and
yields decompressed, decoded lines within bounds; it is the only way into files, and `mlca.datasets` stands on the
same readers. A source (`sources` says what that is; `delimited`, `jsonlines`, `parquet`, `arff` with its
`arff_header`, `xc`) turns them into rows of cells, each with its line, under the names of its columns; `formats`
knows which source reads which file, `mulan_xml` reads the labels that come beside an ARFF. A row that cannot be read
is not an exception but a `Fault` in its place, so that the stream goes on behind it.

The first rows are looked at before anything is learned. `columns` decides by them what each column is, one of the
`kinds`, and `labels` how the labels are written. Both choices together are a layout (`layout`); the public `Recipe`
is a layout that learns with the stream: `encoding` makes matrices of cells by it, and lets it grow with the row that
brings a new category or column. The model file keeps it, and later files and frames are read by it, whatever they
look like themselves. `cells`, `dates` and `words` make numbers and names of single cells; `frame_cells` finds those
of a table that is in memory.

`batches` ties the ends together for files: it yields a matrix and label names for some rows at a time, and calls back
for every fault, by file and line. `differences` says beforehand how a file differs from a recipe. The way back, from
nodes to the user's own terms, is `telling`.

Four decisions run through all of it:

* A category becomes a code, and the model is told that codes are equal or not: one attribute, however many values it
  has or gets. A value that nobody has learned has a code of its own: like none of the known, equally far from all.
* What is missing is a gap (NaN), which the model leaves out of each comparison; of a missing text no word is there.
  Empty cells, NA, N/A, NaN, null and ? are missing. All are counted and reported.
* A row is read by what was known when it came, so that portions do not matter.
* Labels are text. An empty cell means that a row has none.
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
    # Readers are needed by those who need no scikit-learn: the rest is imported when it is asked for.
    if name in _MODULES:
        return getattr(import_module(f"mlca.tables.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'mlca.tables' has no attribute {name!r}")

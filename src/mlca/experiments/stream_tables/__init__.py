"""Published test-then-train results of 17 online multi-label classifiers, as tables.

A. Esteban, A. Cano, A. Zafra, S. Ventura: Hoeffding adaptive trees for multi-label classification on data streams.
Knowledge-Based Systems 304, 2024; the figures are from the authors' repository, aestebant/mlhat. There is one file per
measure, named as in `mlca.metrics.MEASURES`, and one file with the seconds that each run took on the authors' machine.
Rows were learned in one pass, in the order of the file, with the training file first. An empty cell means that the run
did not finish. Of the 41 published streams, the tables contain those whose data this package can load.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def read_published(measure: str) -> dict[str, dict[str, float | None]]:
    """Return a measure's values by dataset and algorithm; None for unfinished runs.

    Examples
    --------
    >>> read_published("micro_f1")["yeast"]["MLHAT"]
    0.5976
    """
    text = files(__name__).joinpath(f"{measure}.csv").read_text("utf-8")
    return {
        row.pop("dataset"): {name: float(cell) if cell else None for name, cell in row.items()}
        for row in csv.DictReader(text.splitlines())
    }

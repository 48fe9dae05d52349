"""The results printed in the paper, as small tables.

N. Masuyama, Y. Nojima, C. K. Loo, H. Ishibuchi: Multi-label Classification via Adaptive Resonance
Theory-based Clustering. IEEE TPAMI 45(7), 2023.

- ``continual.csv``: continual learning on the synthetic stream: means and standard deviations over 20 seeds.
- ``nodes.csv``: numbers of nodes, as means over 2 x 10-fold cross-validation.
- ``tuned_parameters.csv``: the parameters that grid search chose for the comparison algorithms; an empty cell means
  that the algorithm did not finish within five days.
- ``datasets.csv``: the datasets and their properties.
- ``complexity.csv``: the computational complexity of the algorithms.
- ``ranking.csv``: pairs of algorithms where the first has the better average rank. The paper shows ranks only in
  diagrams; these rows are taken from statements in its text.

Two tables are not from the paper. They contain the expected results of this package's default model:

- ``simulated.csv``: results of an early simulation of the learned similarity and the calibrated decision (5 folds,
  without the background score), and by how much results may fall below them.
- ``simulated_streams.csv``: micro F1 of the same simulation on streams in the order of the file, without and with
  recency.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def read_paper(name: str) -> tuple[dict[str, str], ...]:
    """Read one of the tables in this folder.

    Parameters
    ----------
    name : str
        The name of the table's file, without the suffix.

    Returns
    -------
    tuple of dict
        One dict per row, with the cells as strings by column name.

    Examples
    --------
    >>> row = read_paper("nodes")[0]
    >>> row["dataset"], row["mlca_v0.30"]
    ('flags', '163.9')
    """
    text = files(__name__).joinpath(f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))

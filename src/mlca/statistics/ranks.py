"""Ranks of algorithms from a table of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mlca.metrics.registry import MEASURES

Missing: TypeAlias = Literal["raise", "worst"]


@dataclass(frozen=True)
class Ranks:
    """The rank of every algorithm on every dataset; 1 is the best, and ties get mean ranks.

    Attributes
    ----------
    names : tuple of str
        The algorithms, in the order of the table's columns.
    table : ndarray of shape (n_datasets, n_algorithms)
        The ranks.
    """

    names: tuple[str, ...]
    table: NDArray[np.float64]

    @property
    def n_datasets(self) -> int:
        """The number of datasets, one per row."""
        return len(self.table)

    @property
    def n_algorithms(self) -> int:
        """The number of algorithms, one per column."""
        return len(self.names)

    def average(self) -> NDArray[np.float64]:
        """Return each algorithm's average rank.

        Examples
        --------
        >>> from mlca.statistics import rank_results
        >>> rank_results([[0.7, 0.9], [0.6, 0.8], [0.5, 0.4]], names=["kNN", "MLCA"]).average().round(2).tolist()
        [1.67, 1.33]
        """
        means: NDArray[np.float64] = self.table.mean(axis=0)
        return means

    def __str__(self) -> str:
        width = max(map(len, self.names))
        best_first = np.argsort(self.average(), kind="stable")
        lines = [f"{self.names[i]:<{width}}  {self.average()[i]:.3f}" for i in best_first]
        return "\n".join(["average rank", *lines])


def rank_results(
    results: Any,
    better: str | Sequence[str] = "higher",
    *,
    names: Sequence[str] | None = None,
    missing: Missing = "raise",
) -> Ranks:
    """Rank the algorithms on every dataset.

    Parameters
    ----------
    results : array-like or DataFrame of shape (n_datasets, n_algorithms)
        One measure of each algorithm on each dataset. Values that should tie must be equal: round
        means over folds.
    better : str or sequence of str, default "higher"
        "higher", "lower", or the name of a measure of `mlca.metrics`, whose direction is known; or one
        of these per row, if the rows belong to different measures.
    names : sequence of str, optional
        The algorithms. Default: a DataFrame's columns, or "1", "2", ...
    missing : {"raise", "worst"}, default "raise"
        How NaN, a missing result, is handled: as an error, or with the worst rank of its row, as in the paper. Several
        missing results in a row share that rank.

    Returns
    -------
    Ranks
        The ranks, which print as a list of average ranks, best first.

    Examples
    --------
    >>> loss = [[0.2, 0.1, 0.4], [0.3, 0.3, float("nan")]]
    >>> print(rank_results(loss, "hamming_loss", names=["kNN", "MLCA", "slow"], missing="worst"))
    average rank
    MLCA  1.250
    kNN   1.750
    slow  3.000
    """
    if missing not in get_args(Missing):
        raise ValueError(f"missing must be {' or '.join(map(repr, get_args(Missing)))}; got {missing!r}")
    values = np.ma.asarray(results, dtype=np.float64).filled(np.nan)  # a masked result is a missing one
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
        raise ValueError(
            f"results must be a table of datasets (rows) by at least two algorithms (columns), "
            f"but its shape is {values.shape}"
        )
    algorithms = _algorithm_names(results, names, values.shape[1])
    if missing == "raise" and np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        raise ValueError(
            f"{algorithms[column]} has no result in row {row}: pass missing='worst' to give it the worst "
            "rank there, as the paper does, or leave the row out"
        )
    badness = np.where(np.isnan(values), np.inf, values * _signs(better, len(values))[:, np.newaxis])
    return Ranks(algorithms, stats.rankdata(badness, method="average", axis=1))


def _algorithm_names(results: Any, names: Sequence[str] | None, n_algorithms: int) -> tuple[str, ...]:
    columns = getattr(results, "columns", range(1, n_algorithms + 1)) if names is None else names
    names = [str(name) for name in columns]
    if len(names) != n_algorithms or len(set(names)) != n_algorithms:
        raise ValueError(
            f"results has {n_algorithms} columns, but names has {len(names)} entries, "
            f"{len(set(names))} of them distinct: name each algorithm once"
        )
    return tuple(names)


def _signs(better: str | Sequence[str], n_rows: int) -> NDArray[np.float64]:
    """Return, for each row, the factor that makes lower values better."""
    directions = [better] * n_rows if isinstance(better, str) else list(better)
    if len(directions) != n_rows:
        raise ValueError(f"better has {len(directions)} entries, but results has {n_rows} rows; pass one per row")
    return np.array([_sign(direction) for direction in directions])


def _sign(direction: str) -> float:
    if direction in MEASURES:
        direction = MEASURES[direction].better
    if direction not in ("higher", "lower"):
        raise ValueError(f"better must be 'higher', 'lower' or one of {', '.join(MEASURES)}; got {direction!r}")
    return -1.0 if direction == "higher" else 1.0

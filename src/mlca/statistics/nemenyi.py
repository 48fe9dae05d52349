"""The Nemenyi test, which finds the pairs of algorithms that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mlca.statistics.ranks import Missing, Ranks, rank_results


@dataclass(frozen=True)
class Pair:
    """A comparison of two algorithms, the one with the better average rank first."""

    first: str
    second: str
    difference: float
    """Difference of the average ranks."""
    p: float
    differs: bool
    """Whether p is below the significance level."""


@dataclass(frozen=True)
class Nemenyi:
    """Result of the Nemenyi test; iterate over it for the pairs, best algorithm first.

    Attributes
    ----------
    ranks : Ranks
        The ranks that were tested.
    p_values : ndarray of shape (n_algorithms, n_algorithms)
        The p-value of each pair, in the order of `ranks.names`; 1 on the diagonal.
    critical_difference : float
        The smallest difference of average ranks that is significant.
    alpha : float
        Significance level.
    """

    ranks: Ranks
    p_values: NDArray[np.float64]
    critical_difference: float
    alpha: float

    def best_first(self) -> list[int]:
        """Return the column indices of the algorithms, ordered by average rank.

        Examples
        --------
        >>> from mlca.statistics import nemenyi_test
        >>> nemenyi_test([[0.7, 0.9], [0.6, 0.8]], names=["kNN", "MLCA"]).best_first()
        [1, 0]
        """
        average = self.ranks.average().tolist()
        return sorted(range(len(average)), key=average.__getitem__)

    def __iter__(self) -> Iterator[Pair]:
        average = self.ranks.average()
        for i, j in combinations(self.best_first(), 2):
            p = float(self.p_values[i, j])
            yield Pair(self.ranks.names[i], self.ranks.names[j], float(average[j] - average[i]), p, p < self.alpha)

    def groups(self) -> list[tuple[str, ...]]:
        """Return the largest groups whose members do not differ from each other, best first.

        In the order of average ranks, a group begins at an algorithm and ends at the last one that does not differ from
        it. Groups inside another group are left out.

        Examples
        --------
        >>> from mlca.statistics import nemenyi_test
        >>> nemenyi_test([[0.7, 0.8, 0.9], [0.6, 0.7, 0.8], [0.4, 0.3, 0.6]], names=["kNN", "tree", "MLCA"]).groups()
        [('MLCA', 'tree', 'kNN')]
        """
        order = self.best_first()
        groups: list[tuple[str, ...]] = []
        reached = 0
        for start, i in enumerate(order):
            end = max(stop for stop, j in enumerate(order) if i == j or self.p_values[i, j] >= self.alpha)
            if end > start and end > reached:
                groups.append(tuple(self.ranks.names[j] for j in order[start : end + 1]))
                reached = end
        return groups

    def __str__(self) -> str:
        title = f"Nemenyi test, alpha = {self.alpha:g}, critical difference {self.critical_difference:.3f}"
        groups = [f"no difference: {', '.join(group)}" for group in self.groups()]
        return "\n".join([title, str(self.ranks), *groups])


def nemenyi_test(
    results: Any,
    better: str | Sequence[str] = "higher",
    *,
    names: Sequence[str] | None = None,
    missing: Missing = "raise",
    alpha: float = 0.05,
) -> Nemenyi:
    """Compare every pair of algorithms over datasets.

    Use it only if `friedman_test` finds a difference.

    Parameters
    ----------
    results, better, names, missing
        As in `rank_results`.
    alpha : float, default 0.05
        Significance level.

    Returns
    -------
    Nemenyi
        The result. Iterating over it yields the pairs; printing shows the average ranks and the groups whose members do
        not differ.

    Examples
    --------
    >>> accuracy = [[0.7, 0.8, 0.9], [0.6, 0.7, 0.8], [0.5, 0.6, 0.9], [0.4, 0.3, 0.6]]
    >>> result = nemenyi_test(accuracy, names=["kNN", "tree", "MLCA"])
    >>> print(result)
    Nemenyi test, alpha = 0.05, critical difference 1.657
    average rank
    MLCA  1.000
    tree  2.250
    kNN   2.750
    no difference: MLCA, tree
    no difference: tree, kNN
    >>> [(pair.first, pair.second, round(pair.p, 3)) for pair in result if pair.differs]
    [('MLCA', 'kNN', 0.036)]
    """
    ranks = rank_results(results, better, names=names, missing=missing)
    average = ranks.average()
    distances = np.abs(average[:, np.newaxis] - average)
    q = distances / _standard_error(ranks.n_algorithms, ranks.n_datasets)
    p_values = stats.studentized_range.sf(q * math.sqrt(2), ranks.n_algorithms, np.inf)
    np.fill_diagonal(p_values, 1.0)
    return Nemenyi(ranks, p_values, critical_difference(ranks.n_algorithms, ranks.n_datasets, alpha), alpha)


def critical_difference(n_algorithms: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return the smallest difference of average ranks that is significant.

    Parameters
    ----------
    n_algorithms, n_datasets : int
        The numbers of columns and rows of the table of results.
    alpha : float, default 0.05
        Significance level.

    Examples
    --------
    >>> round(critical_difference(9, 16), 3)
    3.003
    """
    if n_algorithms < 2 or n_datasets < 1:
        raise ValueError(
            f"{n_algorithms} algorithms on {n_datasets} datasets cannot be compared: "
            "pass at least 2 algorithms and 1 dataset"
        )
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1; got {alpha}")
    q = float(stats.studentized_range.ppf(1 - alpha, n_algorithms, np.inf)) / math.sqrt(2)
    return q * _standard_error(n_algorithms, n_datasets)


def _standard_error(n_algorithms: int, n_datasets: int) -> float:
    return math.sqrt(n_algorithms * (n_algorithms + 1) / (6 * n_datasets))

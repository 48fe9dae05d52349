"""The Friedman test of whether the average ranks of algorithms differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mlca.statistics.ranks import Missing, Ranks, rank_results


@dataclass(frozen=True)
class Friedman:
    """Result of the Friedman test.

    Attributes
    ----------
    chi2, p : float
        Friedman's statistic for k algorithms on N datasets, chi-squared with k - 1 degrees of freedom, and its p-value.
    f, f_p : float
        The statistic of Iman and Davenport, which is less conservative: F with k - 1 and
        (k - 1)(N - 1) degrees of freedom, and its p-value.
    ranks : Ranks
        The ranks that were tested.
    """

    chi2: float
    p: float
    f: float
    f_p: float
    ranks: Ranks

    def __str__(self) -> str:
        k, n = self.ranks.n_algorithms, self.ranks.n_datasets
        return (
            f"Friedman test, {k} algorithms on {n} datasets\n"
            f"chi2({k - 1}) = {self.chi2:.3f}, p = {self.p:.3g}\n"
            f"F({k - 1}, {(k - 1) * (n - 1)}) = {self.f:.3f}, p = {self.f_p:.3g} (Iman-Davenport)"
        )


def friedman_test(
    results: Any,
    better: str | Sequence[str] = "higher",
    *,
    names: Sequence[str] | None = None,
    missing: Missing = "raise",
    correct_ties: bool = True,
) -> Friedman:
    """Test whether algorithms differ over datasets.

    Parameters
    ----------
    results, better, names, missing
        As in `rank_results`.
    correct_ties : bool, default True
        Whether to correct the statistic for ties, as scipy's `friedmanchisquare` does; Demsar (2006) does not.

    Returns
    -------
    Friedman
        The result, which prints as three lines. If all algorithms tie on all datasets, p is 1.

    Examples
    --------
    >>> accuracy = [[0.7, 0.8, 0.9], [0.6, 0.7, 0.7], [0.5, 0.6, 0.9], [0.4, 0.3, 0.6]]
    >>> print(friedman_test(accuracy))
    Friedman test, 3 algorithms on 4 datasets
    chi2(2) = 5.733, p = 0.0569
    F(2, 6) = 7.588, p = 0.0227 (Iman-Davenport)
    """
    ranks = rank_results(results, better, names=names, missing=missing)
    k, n = ranks.n_algorithms, ranks.n_datasets
    if k < 3 or n < 2:
        raise ValueError(
            f"the Friedman test needs at least 3 algorithms and at least 2 datasets; got {k} and {n}; "
            "for two algorithms, use scipy.stats.wilcoxon"
        )
    chi2 = 12 * n / (k * (k + 1)) * float(np.sum((ranks.average() - (k + 1) / 2) ** 2))
    if correct_ties and chi2 > 0:
        chi2 /= _share_untied(ranks)
    spread = n * (k - 1) - chi2
    f = (n - 1) * chi2 / spread if spread > 1e-9 * n * (k - 1) else float("inf")
    return Friedman(
        chi2=chi2,
        p=float(stats.chi2.sf(chi2, k - 1)),
        f=f,
        f_p=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        ranks=ranks,
    )


def _share_untied(ranks: Ranks) -> float:
    """Return the variance of the ranks divided by their variance without ties."""
    without_ties = (ranks.n_algorithms**2 - 1) / 12
    return float(ranks.table.var(axis=1).mean() / without_ties)

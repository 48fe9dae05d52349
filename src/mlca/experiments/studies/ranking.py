"""Friedman and Nemenyi tests on tables that may have gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlca.statistics import Friedman, Nemenyi, critical_difference, friedman_test, nemenyi_test

# Means over folds that should tie differ in their last bits.
DIGITS = 6


def can_rank(results: NDArray[np.float64]) -> bool:
    """Whether the table is large enough for the tests: two complete rows and three columns."""
    return results.shape[1] >= 3 and int(np.sum(_complete(results))) >= 2


def rank(results: NDArray[np.float64], better: str | Sequence[str], names: Sequence[str]) -> tuple[Friedman, Nemenyi]:
    """Test whether columns differ, and which; rows with gaps are left out."""
    complete = _complete(results)
    rows = np.round(results[complete], DIGITS)
    if not isinstance(better, str):
        better = [direction for direction, kept in zip(better, complete, strict=True) if kept]
    return friedman_test(rows, better, names=names), nemenyi_test(rows, better, names=names)


def pooled(friedman: Friedman, nemenyi: Nemenyi, measures: int) -> str:
    """Tell what came of tests whose rows are datasets times measures, and how far to trust it."""
    k, cases = friedman.ranks.n_algorithms, friedman.ranks.n_datasets
    datasets = -(-cases // measures)
    return (
        f"Each dataset counts once a measure, as in the paper: {cases} cases of {datasets} datasets. "
        "Measures of one dataset go together, so the tests claim more than they can know: with each dataset counted "
        f"once the critical difference would be {critical_difference(k, datasets):.2f} instead of "
        f"{nemenyi.critical_difference:.2f}.\n{str(friedman).replace(f'{cases} datasets', f'{cases} cases')}"
    )


def _complete(results: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which rows have no gap."""
    return np.asarray(~np.isnan(results).any(axis=1))

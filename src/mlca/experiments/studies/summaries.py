"""Means over folds and seeds, comparison with the paper, and rank tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlca.experiments.tasks import Outcome, Task
from mlca.metrics import MEASURES
from mlca.statistics import Friedman, Nemenyi, critical_difference, friedman_test, nemenyi_test

WORST = {"higher": 0.0, "lower": 1.0}


def values_of(name: str, tasks: Sequence[Task], outcomes: Mapping[Task, Outcome]) -> list[float]:
    """Return the values of a measure from the finished tasks, without NaN."""
    found = [outcomes[task].values.get(name, np.nan) for task in tasks if task in outcomes]
    return [value for value in found if not np.isnan(value)]


def mean_of(name: str, tasks: Sequence[Task], outcomes: Mapping[Task, Outcome]) -> float | None:
    """Return the mean of a measure over the finished tasks; None if none has finished."""
    values = values_of(name, tasks, outcomes)
    return float(np.mean(values)) if values else None


def deviation_of(name: str, tasks: Sequence[Task], outcomes: Mapping[Task, Outcome]) -> float | None:
    """Return a measure's sample standard deviation; None for fewer than two finished tasks."""
    values = values_of(name, tasks, outcomes)
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def worst_of(name: str) -> float:
    """Return the worst value of a measure, which replaces missing results in the paper.

    Examples
    --------
    >>> worst_of("exact_match"), worst_of("hamming_loss")
    (0.0, 1.0)
    """
    return WORST[MEASURES[name].better]


def mean_with_worst(name: str, tasks: Sequence[Task], outcomes: Mapping[Task, Outcome]) -> float:
    """Return the mean of a measure; failed fits and timeouts count as its worst value.

    Without any task (for an algorithm that the paper could not tune), the result is the worst value.
    """
    values = values_of(name, tasks, outcomes)
    n_without = sum(task in outcomes and outcomes[task].status != "done" for task in tasks)
    together = values + [worst_of(name)] * n_without
    return float(np.mean(together)) if together else worst_of(name)


@dataclass(frozen=True)
class Claim:
    """A number from the paper and the measured number."""

    name: str
    paper: float
    measured: float


def difference(paper: float, measured: float | None) -> float | None:
    """Return the measured value minus the paper's; None if nothing was measured."""
    return None if measured is None else measured - paper


def agreement(claims: Sequence[Claim], what: str, *, tolerance: float, relative: bool = False, least: float = 0) -> str:
    """Return a sentence on how many claims agree, and which claim differs most.

    Parameters
    ----------
    claims : sequence of Claim
        The claims to compare.
    what : str
        What the numbers are: a plural noun for the sentence.
    tolerance : float
        The largest difference that counts as agreement; with `relative`, a share of the paper's number.
    least : float, default=0
        With `relative`: the absolute difference up to which numbers agree in any case.

    Examples
    --------
    >>> claims = [Claim("flags", 163.9, 164.0), Claim("birds", 170.6, 190.0)]
    >>> agreement(claims, "numbers of nodes", tolerance=0.03, relative=True)
    '1 of 2 numbers of nodes agree within 3 %; birds differs most (190.0 against 170.6)'
    >>> agreement([], "numbers of nodes", tolerance=0.03)
    'no numbers of nodes were measured'
    """
    if not claims:
        return f"no {what} were measured"
    scale = {claim: max(claim.paper * tolerance, least) if relative else tolerance for claim in claims}
    agree = sum(abs(claim.measured - claim.paper) <= scale[claim] + 1e-12 for claim in claims)
    most = max(claims, key=lambda claim: abs(claim.measured - claim.paper) / scale[claim])
    within = f"{tolerance:.0%}".replace("%", " %") if relative else f"{tolerance:g}"
    if relative and least:
        within += f" or {least:g}"
    digits = 1 if relative else 3
    return (
        f"{agree} of {len(claims)} {what} agree within {within}; {most.name} differs most "
        f"({most.measured:.{digits}f} against {most.paper:.{digits}f})"
    )


def troubles(tasks: Sequence[Task], outcomes: Mapping[Task, Outcome]) -> str:
    """Summarise unfinished tasks by reason; empty if there are none."""
    planned = dict.fromkeys(tasks)
    counts = {
        "took too long": sum(task in outcomes and outcomes[task].status == "too long" for task in planned),
        "failed": sum(task in outcomes and outcomes[task].status == "failed" for task in planned),
        "were not run": sum(task not in outcomes for task in planned),
    }
    sentences = [f"{count} {what}" for what, count in counts.items() if count]
    return f"Of {len(planned)} tasks {' and '.join(sentences)}." if sentences else ""


# Results are rounded to this many decimals before ranking, because tied means over folds may differ in their last bits.
DIGITS = 6


def can_rank(results: NDArray[np.float64]) -> bool:
    """Return whether a table has the two complete rows and three columns that the tests need."""
    return results.shape[1] >= 3 and int(np.sum(_complete(results))) >= 2


def rank(results: NDArray[np.float64], better: str | Sequence[str], names: Sequence[str]) -> tuple[Friedman, Nemenyi]:
    """Test whether columns differ, and which pairs of them do; leave out incomplete rows."""
    complete = _complete(results)
    rows = np.round(results[complete], DIGITS)
    if not isinstance(better, str):
        better = [direction for direction, kept in zip(better, complete, strict=True) if kept]
    return friedman_test(rows, better, names=names), nemenyi_test(rows, better, names=names)


def pooled(friedman: Friedman, nemenyi: Nemenyi, measures: int) -> str:
    """Describe the results and the limits of rank tests over pairs of dataset and measure."""
    k, cases = friedman.ranks.n_algorithms, friedman.ranks.n_datasets
    datasets = -(-cases // measures)
    return (
        f"Each dataset counts once per measure, as in the paper: {cases} cases of {datasets} datasets. "
        "Measures of one dataset are correlated, so the tests overstate significance: with each dataset counted "
        f"once the critical difference would be {critical_difference(k, datasets):.2f} instead of "
        f"{nemenyi.critical_difference:.2f}.\n{str(friedman).replace(f'{cases} datasets', f'{cases} cases')}"
    )


def _complete(results: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a boolean mask of the rows without missing values."""
    return np.asarray(~np.isnan(results).any(axis=1))

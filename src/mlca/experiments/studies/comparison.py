"""The paper's comparison of fourteen configurations by six measures, and one more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mlca.experiments.algorithms import Configuration
from mlca.experiments.paper_tables import read_paper
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import NUMERIC, Scope
from mlca.experiments.studies.figures import draw_critical_difference
from mlca.experiments.studies.summaries import can_rank, mean_of, mean_with_worst, pooled, rank, troubles
from mlca.experiments.tasks import Outcome, Task
from mlca.metrics import MEASURES
from mlca.metrics.registry import PAPER_MEASURES

GROUPS = ("all", "numeric", "categorical")

INTRODUCTION = """
All configurations by the paper's six measures: means over {repetitions} of the 20 folds of 2 x 10-fold cross-validation
on the small datasets, the official split of the large ones. MLCA has the same V everywhere; the others have {origin}.
Scaled means attributes between 0 and 1 by the training rows.

N/A is a fit beyond the time limit, a failure, or an algorithm that the paper could not tune within five days; as in the
paper it gets the worst value of each measure in the ranking. MLCA with vote "frequencies" is ours: it stands beside the
ranking and takes no part in it. Ranks are over all datasets and measures together.
"""


def tasks(scope: Scope) -> list[Task]:
    """Return one task per dataset, configuration and fold."""
    return [
        task
        for dataset in scope.datasets
        for configuration in scope.configurations
        for task in scope.fold_tasks(configuration, dataset)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate all measures, rank the configurations, and compare with the paper's order."""
    ranked = [configuration for configuration in scope.configurations if configuration.ranked]
    titles = [configuration.title for configuration in ranked]
    averages: dict[str, dict[str, float]] = {}
    figures = []
    for group in GROUPS:
        results, better = _results(ranked, _members(group, scope), scope, outcomes)
        if can_rank(results):
            friedman, nemenyi = rank(results, better, titles)
            averages[group] = dict(zip((one.key for one in ranked), nemenyi.ranks.average().tolist(), strict=True))
            title = f"Average ranks, {group} datasets"
            figures.append(
                Figure(title, draw_critical_difference(nemenyi), pooled(friedman, nemenyi, len(PAPER_MEASURES)))
            )
    text = INTRODUCTION.format(
        repetitions=scope.repetitions,
        origin="what the grid search of this run chose" if scope.chosen else "the paper's tuned parameters",
    )
    tables = [_rank_table(ranked, averages, scope, outcomes)] if averages else []
    tables += [_measure_table(measure.name, scope, outcomes) for measure in PAPER_MEASURES]
    return Section(
        "comparison",
        "Comparison of the algorithms",
        "\n\n".join(filter(None, (text.strip(), scope.complaint(), troubles(tasks(scope), outcomes)))),
        _verdict(averages, ranked),
        tuple(tables),
        tuple(figures),
    )


def _members(group: str, scope: Scope) -> list[str]:
    return [name for name in scope.datasets if group == "all" or (name in NUMERIC) == (group == "numeric")]


def _results(
    configurations: Sequence[Configuration],
    datasets: Sequence[str],
    scope: Scope,
    outcomes: Mapping[Task, Outcome],
) -> tuple[NDArray[np.float64], list[str]]:
    """Return mean results, one row per dataset and measure, and the measure of each row.

    Results that are not available yet are NaN. Failed fits count as the measure's worst value.
    """
    rows, better = [], []
    for dataset in datasets:
        for measure in PAPER_MEASURES:
            row = []
            for configuration in configurations:
                folds = scope.fold_tasks(configuration, dataset)
                was_run = not folds or any(task in outcomes for task in folds)
                row.append(mean_with_worst(measure.name, folds, outcomes) if was_run else np.nan)
            rows.append(row)
            better.append(measure.name)
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(configurations)), better


def _measure_table(name: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    measure = MEASURES[name]
    rows = tuple(
        (
            configuration.title,
            *(mean_of(name, scope.fold_tasks(configuration, dataset), outcomes) for dataset in scope.datasets),
        )
        for configuration in scope.configurations
    )
    return Table(f"{measure.label} ({measure.better} is better)", ("configuration", *scope.datasets), rows)


def _rank_table(
    ranked: Sequence[Configuration],
    averages: Mapping[str, Mapping[str, float]],
    scope: Scope,
    outcomes: Mapping[Task, Outcome],
) -> Table:
    """List average ranks, best first; configurations outside the ranking come last."""
    order = sorted(ranked, key=lambda configuration: next(iter(averages.values()))[configuration.key])
    rows: list[tuple[str | float | None, ...]] = [
        (one.title, *(averages[group][one.key] if group in averages else None for group in GROUPS)) for one in order
    ]
    for beside in scope.configurations:
        if not beside.ranked:
            places = [_place_beside(beside, ranked, group, scope, outcomes) for group in GROUPS]
            rows.append((f"{beside.title} (not ranked)", *places))
    note = "The last lines are not part of the ranking; they show the average rank that each would have in it."
    columns = ("configuration", *(f"{group} datasets" for group in GROUPS))
    return Table("Average ranks", columns, tuple(rows), note if len(rows) > len(ranked) else "")


def _place_beside(
    beside: Configuration,
    ranked: Sequence[Configuration],
    group: str,
    scope: Scope,
    outcomes: Mapping[Task, Outcome],
) -> float | None:
    results, better = _results([*ranked, beside], _members(group, scope), scope, outcomes)
    if not can_rank(results):
        return None
    _, nemenyi = rank(results, better, [configuration.key for configuration in (*ranked, beside)])
    return float(nemenyi.ranks.average()[-1])


def _verdict(averages: Mapping[str, Mapping[str, float]], ranked: Sequence[Configuration]) -> str:
    """Report which of the paper's statements about the order of the algorithms hold here."""
    held, broken = [], []
    titles = {configuration.key: configuration.title for configuration in ranked}
    for statement in read_paper("ranking"):
        ranks = averages.get(statement["datasets"], {})
        others = [key for key in _behind(statement, ranked) if key in ranks]
        if statement["ahead"] not in ranks or not others:
            continue
        before = [key for key in others if ranks[key] <= ranks[statement["ahead"]]]
        behind = (
            statement["behind"]
            if statement["behind"].startswith("every")
            else " and ".join(titles[key] for key in others)
        )
        text = f"{titles[statement['ahead']]} ahead of {behind} on {statement['datasets']} datasets"
        if before:
            broken.append(f"{text} (before it: {', '.join(titles[key] for key in before)})")
        else:
            held.append(text)
    if not held and not broken:
        return "Too few results to rank the algorithms."
    sentence = f"{len(held)} of {len(held) + len(broken)} statements of the paper on the order of the algorithms hold"
    return f"{sentence}; these do not: {'; '.join(broken)}." if broken else f"{sentence}."


def _behind(statement: Mapping[str, str], ranked: Sequence[Configuration]) -> list[str]:
    """Return the configurations that a statement of the paper ranks behind the leading one."""
    others = [configuration for configuration in ranked if configuration.key != statement["ahead"]]
    groups = {
        "every other configuration": others,
        "every peer": [one for one in others if not one.is_mlca],
        "every other peer": [one for one in others if not one.is_mlca],
        "every other MLCA": [one for one in others if one.is_mlca],
    }
    if statement["behind"] in groups:
        return [one.key for one in groups[statement["behind"]]]
    return statement["behind"].split()

"""Several epochs: exact match when the training rows are presented repeatedly."""

from __future__ import annotations

from collections.abc import Mapping

from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import NUMERIC, Scope
from mlca.experiments.studies.figures import draw_curves
from mlca.experiments.studies.summaries import mean_of, troubles
from mlca.experiments.tasks import Outcome, Task

# The largest loss of exact match that counts as "roughly the same", as the paper calls it.
ROUGHLY = 0.01

INTRODUCTION = """
The training rows are presented up to {epochs} times; exact match on the test rows after each time. Means over
{repetitions} of the 20 folds. The paper prints only curves. It states that exact match rises or stays roughly the same
in most cases, most clearly on categorical data, except on birds.
"""


def tasks(scope: Scope) -> list[Task]:
    """Return one task per dataset, configuration and fold, which measures after each epoch."""
    return [
        task
        for dataset in scope.small_datasets
        for configuration in scope.mlca_configurations
        for task in scope.fold_tasks(configuration, dataset, epochs=scope.epochs)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate and draw exact match over epochs."""
    curves = {
        dataset: {
            configuration.title: [
                mean_of(f"exact_match@{epoch}", scope.fold_tasks(configuration, dataset, epochs=scope.epochs), outcomes)
                for epoch in range(1, scope.epochs + 1)
            ]
            for configuration in scope.mlca_configurations
        }
        for dataset in scope.small_datasets
    }
    rows = tuple(
        (dataset, title, *values, _change(values))
        for dataset, lines in curves.items()
        for title, values in lines.items()
    )
    columns = ("dataset", "configuration", *(f"epoch {epoch}" for epoch in range(1, scope.epochs + 1)), "change")
    across = list(range(1, scope.epochs + 1))
    figures = tuple(
        Figure(f"Exact match over epochs, {dataset}", draw_curves(lines, across, "exact_match", "epochs"))
        for dataset, lines in curves.items()
        if any(value is not None for values in lines.values() for value in values)
    )
    text = INTRODUCTION.format(repetitions=scope.repetitions, epochs=scope.epochs).strip()
    return Section(
        "epochs",
        "Several epochs",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(tasks(scope), outcomes)))),
        _verdict(curves),
        (Table("Exact match after each epoch", columns, rows),),
        figures,
    )


def _change(values: list[float | None]) -> float | None:
    """Return the gain from the first epoch to the last; None if one is missing."""
    first, last = values[0], values[-1]
    return None if first is None or last is None else last - first


def _verdict(curves: Mapping[str, Mapping[str, list[float | None]]]) -> str:
    changes = [
        (dataset, title, change)
        for dataset, lines in curves.items()
        for title, values in lines.items()
        if (change := _change(values)) is not None
    ]
    if not changes:
        return "No dataset was run."
    kept = sum(change >= -ROUGHLY for _, _, change in changes)
    sentence = f"Exact match rises or stays within {ROUGHLY:g} in {kept} of {len(changes)} curves"
    kinds = {
        "numeric": [change for dataset, _, change in changes if dataset in NUMERIC],
        "categorical": [change for dataset, _, change in changes if dataset not in NUMERIC],
    }
    means = [f"{sum(values) / len(values):+.3f} on {kind} data" for kind, values in kinds.items() if values]
    dataset, title, change = min(changes, key=lambda entry: entry[2])
    return f"{sentence}; mean change {' and '.join(means)}; it falls most for {title} on {dataset} ({change:+.3f})."

"""Bounded memory: the accuracy lost when only a share of the rows may become nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlca.datasets.catalogue import CATALOGUE
from mlca.experiments.algorithms import OURS
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.splits import N_FOLDS
from mlca.experiments.studies.figures import draw_curves
from mlca.experiments.studies.summaries import mean_of, troubles
from mlca.experiments.tasks import Outcome, Task

DATASETS = ("emotions", "gpositivego", "medical", "yeast", "scene")
BUDGETS = (10, 25, 50)
ORDERS = {"": "shuffled", "sorted": "sorted by label set"}
FOLDS = 3

INTRODUCTION = """
MLCA(max_nodes=...) with at most 10, 25 and 50 % of the training rows as nodes, and with all of them. Rows come
shuffled, or one label set after another, which is the hardest order for a bounded memory. Means over {folds} folds.
"""


def _tasks_of(dataset: str, budget: int | None, order: str, scope: Scope) -> list[Task]:
    n_rows = CATALOGUE[dataset].shape[0] * (N_FOLDS - 1) // N_FOLDS
    line = OURS if budget is None else replace(OURS, parameters={"max_nodes": n_rows * budget // 100})
    return scope.fold_tasks(line, dataset, arrangement=order)[:FOLDS]


def _datasets(scope: Scope) -> tuple[str, ...]:
    return tuple(name for name in DATASETS if name in scope.datasets)


def tasks(scope: Scope) -> list[Task]:
    """Return one task per dataset, order, budget and fold."""
    if OURS not in scope.wanted((OURS,)):
        return []
    return [
        task
        for dataset in _datasets(scope)
        for order in ORDERS
        for budget in (*BUDGETS, None)
        for task in _tasks_of(dataset, budget, order, scope)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate and draw exact match for each limit on the number of nodes."""
    found = {
        order: {
            dataset: [
                mean_of("exact_match", _tasks_of(dataset, budget, order, scope), outcomes)
                for budget in (*BUDGETS, None)
            ]
            for dataset in _datasets(scope)
        }
        for order in ORDERS
    }
    rows = tuple(
        (dataset, ORDERS[order], *values) for order, lines in found.items() for dataset, values in lines.items()
    )
    columns = ("dataset", "order", *(f"{budget} %" for budget in BUDGETS), "all rows")
    figures = tuple(
        Figure(
            f"Exact match over the budget, rows {ORDERS[order]}",
            draw_curves(lines, [*BUDGETS, 100], "exact_match", "nodes, % of the rows"),
        )
        for order, lines in found.items()
        if any(value is not None for values in lines.values() for value in values)
    )
    text = INTRODUCTION.format(folds=min(FOLDS, scope.repetitions)).strip()
    return Section(
        "budget",
        "Bounded memory",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(tasks(scope), outcomes)))),
        _verdict(found),
        (Table("Exact match by number of nodes", columns, rows),),
        figures,
    )


def _verdict(found: Mapping[str, Mapping[str, list[float | None]]]) -> str:
    sentences = []
    for order, lines in found.items():
        for place, budget in enumerate(BUDGETS):
            losses = {
                dataset: whole - part
                for dataset, values in lines.items()
                if (whole := values[-1]) is not None and (part := values[place]) is not None
            }
            if losses:
                most = max(losses, key=lambda dataset: losses[dataset])
                mean = sum(losses.values()) / len(losses)
                sentences.append(f"{budget} % {ORDERS[order]}: {mean:.3f}, most on {most} ({losses[most]:.3f})")
    return f"Exact match lost with that many nodes: {'; '.join(sentences)}." if sentences else "No budget was run."

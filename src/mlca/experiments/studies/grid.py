"""The grid search of the vigilance V: exact match over V, and the V that ranks best."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mlca.experiments.algorithms import mlca_configuration
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.studies.figures import draw_critical_difference, draw_grid
from mlca.experiments.studies.summaries import can_rank, mean_of, rank, troubles
from mlca.experiments.tasks import Outcome, Task
from mlca.statistics import Nemenyi

# The largest V that the paper ranks; with larger values, models have only a few nodes.
LARGEST_RANKED = 0.45

# The values of V that the paper chose: the most accurate one, and one with few nodes.
CHOSEN = {"MLCA": (0.01, 0.30), "MLCA-I": (0.01, 0.15), "MLCA-C": (0.01, 0.25)}

INTRODUCTION = """
The paper chooses V by exact match on the training rows themselves. It shows the result only in diagrams, and states its
choice: V = 0.01 and 0.30 (MLCA), 0.15 (MLCA-I), 0.25 (MLCA-C). Means over {repetitions} of the 20 folds. The ranks are
over datasets, for V up to 0.45.
"""

_MEASURES = {"training_exact_match": "training rows", "exact_match": "test rows"}


def tasks(scope: Scope) -> list[Task]:
    """Return one task per dataset, variant, V and fold."""
    return [
        task
        for dataset in scope.small_datasets
        for variant in scope.variants
        for vigilance in scope.vigilances
        for task in _folds(scope, variant, vigilance, dataset)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate exact match over V and rank the values of V."""
    tables: list[Table] = []
    figures: list[Figure] = []
    sentences = []
    for variant in scope.variants:
        on_training = _matches("training_exact_match", variant, scope, outcomes)
        tables += [_table(name, variant, scope, outcomes) for name in _MEASURES]
        if not np.isnan(on_training).all():
            svg = draw_grid(on_training, scope.small_datasets, scope.vigilances, "", "V")
            figures.append(Figure(f"{variant}: exact match on the training rows", svg))
        ranked = [column for column, vigilance in enumerate(scope.vigilances) if vigilance <= LARGEST_RANKED]
        if can_rank(on_training[:, ranked]):
            names = [f"V={scope.vigilances[column]:.2f}" for column in ranked]
            friedman, nemenyi = rank(on_training[:, ranked], "exact_match", names)
            figures.append(Figure(f"{variant}: average ranks of V", draw_critical_difference(nemenyi), str(friedman)))
            sentences.append(_verdict(variant, nemenyi))
    text = INTRODUCTION.format(repetitions=scope.repetitions).strip()
    return Section(
        "grid",
        "Grid search of V",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(tasks(scope), outcomes)))),
        " ".join(sentences) or "Too few datasets to rank the values of V.",
        tuple(tables),
        tuple(figures),
    )


def _folds(scope: Scope, variant: str, vigilance: float, dataset: str) -> list[Task]:
    return scope.fold_tasks(mlca_configuration(variant, vigilance), dataset, on_training=True)


def _matches(name: str, variant: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> NDArray[np.float64]:
    """Return mean exact match, one row per dataset and one column per V; NaN if missing."""
    means = [
        [mean_of(name, _folds(scope, variant, vigilance, dataset), outcomes) for vigilance in scope.vigilances]
        for dataset in scope.small_datasets
    ]
    return np.array(means, dtype=np.float64).reshape(len(scope.small_datasets), len(scope.vigilances))


def _table(name: str, variant: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    matches = _matches(name, variant, scope, outcomes)
    rows = zip(scope.small_datasets, matches.tolist(), strict=True)
    columns = ("dataset", *(f"V={vigilance:.2f}" for vigilance in scope.vigilances))
    return Table(
        f"{variant}: exact match, {_MEASURES[name]}", columns, tuple((dataset, *values) for dataset, values in rows)
    )


def _verdict(variant: str, nemenyi: Nemenyi) -> str:
    average = dict(zip(nemenyi.ranks.names, nemenyi.ranks.average().tolist(), strict=True))
    best = nemenyi.ranks.names[nemenyi.best_first()[0]]
    chosen = [f"V={vigilance:.2f}" for vigilance in CHOSEN[variant] if f"V={vigilance:.2f}" in average]
    close = [name for name in chosen if average[name] - average[best] < nemenyi.critical_difference]
    similar = " and ".join(close) if close else "none"
    return (
        f"{variant}: {best} has the best average rank ({average[best]:.2f}); of the paper's choice "
        f"({', '.join(chosen)}), {similar} does not differ significantly from it."
    )

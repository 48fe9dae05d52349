"""Grid search as the paper does it: the highest exact match on the training rows themselves.

The large datasets take what was chosen on langlog, which has the most labels of the small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mlca.experiments.algorithms import STANDS_FOR_LARGE
from mlca.experiments.scope import SCALE, Scope
from mlca.experiments.tasks import Outcome, Task, Value


def search_tasks(scope: Scope) -> list[Task]:
    """Return the tasks of the search: every set of parameters on every fold."""
    return [
        task
        for dataset in scope.small_datasets
        for configuration in scope.configurations
        if configuration.searched
        for parameters in configuration.grid()
        for task in scope.fold_tasks(configuration, dataset, parameters, on_training=True)
    ]


def with_chosen(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Scope:
    """Return the scope with the parameters that the search found best, the first among equals."""
    chosen: dict[tuple[str, str], Mapping[str, Value]] = {}
    for dataset in scope.small_datasets:
        for configuration in scope.configurations:
            if not configuration.searched:
                continue
            grid = configuration.grid()
            scores = [
                _mean_training_match(scope.fold_tasks(configuration, dataset, parameters, on_training=True), outcomes)
                for parameters in grid
            ]
            if max(scores) > -np.inf:
                chosen[configuration.key, dataset] = grid[int(np.argmax(scores))]
    for dataset in scope.datasets:
        if SCALE[dataset] == "large":
            for configuration in scope.configurations:
                if (configuration.key, STANDS_FOR_LARGE) in chosen:
                    chosen[configuration.key, dataset] = chosen[configuration.key, STANDS_FOR_LARGE]
    return replace(scope, chosen=chosen)


def _mean_training_match(tasks: list[Task], outcomes: Mapping[Task, Outcome]) -> float:
    """Return the mean exact match; minus infinity where a fold has none."""
    values = [outcomes[task].values.get("training_exact_match") for task in tasks if task in outcomes]
    if len(values) < len(tasks) or None in values:
        return -np.inf
    return float(np.mean([value for value in values if value is not None]))

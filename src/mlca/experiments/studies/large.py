"""The larger datasets of `beyond`: by their official split, or by a few folds where their copy has none."""

from __future__ import annotations

from collections.abc import Mapping

from mlca.experiments.algorithms import OURS
from mlca.experiments.report import Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.studies import beyond
from mlca.experiments.studies.averages import troubles
from mlca.experiments.tasks import Outcome, Task

INTRODUCTION = """
The same algorithms on datasets of more rows, attributes or labels: the official split, one fit each; enron, whose copy
has none, by up to {folds} folds. The paper tuned no peer here; those that it could not tune are left out, the others
have what it chose for langlog. N/A is a fit that took longer than the time limit, failed (a forest keeps every label's
share in every leaf, which is more memory than the machine has on the largest), or was not run.
"""

SECONDS = {"fit_seconds": "Seconds of learning", "predict_seconds": "Seconds of predicting"}


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate every measure on the larger datasets, what is worse first."""
    datasets, lines = beyond.large_datasets(scope), beyond.lines_of(scope)
    planned = [task for task in beyond.tasks(scope) if task.dataset in datasets]
    tables: list[Table] = [
        beyond.wins_and_losses(lines, datasets, scope, outcomes),
        *beyond.measure_tables(datasets, scope, outcomes),
        *(beyond.value_table(name, title, datasets, scope, outcomes) for name, title in SECONDS.items()),
    ]
    told = [beyond.worse_than(rival, datasets, scope, outcomes) for rival in lines if rival is not OURS]
    told.append(beyond.calibrated(datasets, scope, outcomes))
    return Section(
        "large",
        "Larger datasets",
        "\n\n".join(filter(None, (INTRODUCTION.format(folds=beyond.ROUNDS[0]).strip(), troubles(planned, outcomes)))),
        " ".join(filter(None, told)) or "Nothing was run on a larger dataset.",
        tuple(tables),
        (),
    )

"""The larger datasets of `beyond`: by their official split, or by a few folds where their copy has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlca.experiments.algorithms import OURS, Configuration
from mlca.experiments.report import Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.studies import beyond
from mlca.experiments.studies.averages import troubles
from mlca.experiments.tasks import Outcome, Task

INTRODUCTION = """
The same algorithms on datasets of more rows, attributes or labels: the official split, one fit each; enron, whose copy
has none, by up to {folds} folds. Of the peers those are shown that were run, with what the paper chose for langlog. N/A
is a fit that took longer than the time limit, failed, or was not run: a forest keeps every label's share in every
leaf, which by their numbers is 13 GB on mediamill and 50 on delicious. Seconds are those of the clock.
"""

SECONDS = {"fit_seconds": "Seconds of learning", "predict_seconds": "Seconds of predicting"}


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate every measure on the larger datasets, what is worse first."""
    datasets = beyond.large_datasets(scope)
    planned = [task for task in beyond.tasks(scope) if task.dataset in datasets]
    lines = [line for line in beyond.lines_of(scope) if _was_run(line, datasets, scope, outcomes)]
    rivals = sorted(
        (line for line in lines if line is not OURS),
        key=lambda rival: -_n_losses(rival, datasets, scope, outcomes),
    )
    told = [beyond.worse_than(rival, datasets, scope, outcomes) for rival in rivals]
    told.append(beyond.calibrated(datasets, scope, outcomes))
    tables: list[Table] = [
        beyond.wins_and_losses(lines, datasets, scope, outcomes),
        *beyond.measure_tables(lines, datasets, scope, outcomes),
        *(beyond.value_table(name, title, lines, datasets, scope, outcomes) for name, title in SECONDS.items()),
    ]
    text = INTRODUCTION.format(folds=beyond.ROUNDS[0]).strip()
    return Section(
        "large",
        "Larger datasets",
        "\n\n".join(filter(None, (text, troubles(planned, outcomes)))),
        " ".join(filter(None, told)) or "Nothing was run on a larger dataset.",
        tuple(tables),
        (),
    )


def _was_run(line: Configuration, datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> bool:
    return any(task in outcomes for dataset in datasets for task in scope.fold_tasks(line, dataset))


def _n_losses(rival: Configuration, datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> int:
    """Return in how many comparisons MLCA() is worse."""
    return sum(
        gain < -beyond.TIE for dataset in datasets for gain in beyond.duels(rival, dataset, scope, outcomes).values()
    )

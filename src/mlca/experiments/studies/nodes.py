"""The number of nodes to which MLCA compresses each dataset, compared with the paper."""

from __future__ import annotations

from collections.abc import Mapping

from mlca.experiments.algorithms import Configuration
from mlca.experiments.paper_tables import read_paper
from mlca.experiments.report import Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.studies.summaries import Claim, agreement, deviation_of, difference, mean_of, troubles
from mlca.experiments.tasks import Outcome, Task

INTRODUCTION = """
The number of nodes that each configuration creates from the training rows: means over {repetitions} of the 20 folds of
2 x 10-fold cross-validation, with rows reshuffled for each repetition. MLCA-C groups attributes in a random order; its
seed differs between folds.
"""


def tasks(scope: Scope) -> list[Task]:
    """Return one task per dataset, configuration and fold."""
    return [
        task
        for dataset in scope.small_datasets
        for configuration in scope.mlca_configurations
        for task in scope.fold_tasks(configuration, dataset)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate the measured numbers of nodes, compared with the paper's."""
    claims: list[Claim] = []
    rows = []
    for row in read_paper("nodes"):
        dataset = row["dataset"]
        if dataset not in scope.small_datasets:
            continue
        for configuration in scope.mlca_configurations:
            folds = scope.fold_tasks(configuration, dataset)
            paper, measured = float(row[_column(configuration)]), mean_of("nodes", folds, outcomes)
            spread = deviation_of("nodes", folds, outcomes)
            off = difference(paper, measured)
            percent = None if off is None else 100 * off / paper
            rows.append((dataset, configuration.title, paper, measured, spread, off, percent))
            if measured is not None:
                claims.append(Claim(f"{configuration.title} on {dataset}", paper, measured))
    columns = ("dataset", "configuration", "paper", "measured", "measured sd", "difference", "difference %")
    text = INTRODUCTION.format(repetitions=scope.repetitions).strip()
    return Section(
        "nodes",
        "Number of nodes",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(tasks(scope), outcomes)))),
        agreement(claims, "numbers of nodes", tolerance=0.03, relative=True, least=2) + ".",
        (Table("Nodes after training", columns, tuple(rows)),),
        (),
    )


def _column(configuration: Configuration) -> str:
    return f"{configuration.family.lower().replace('-', '_')}_v{configuration.parameters['vigilance']:.2f}"

"""Continual learning: MLCA and MCIC on three discs in three conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlca.experiments.paper_tables import read_paper
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import POINTS, Scope
from mlca.experiments.studies.figures import draw_nodes
from mlca.experiments.studies.summaries import Claim, agreement, deviation_of, difference, mean_of, troubles
from mlca.experiments.tasks import Outcome, Task, Value, in_order

# MCIC's epsilon for each condition; the paper sets it so that both algorithms have similar numbers of nodes.
RADII = {"together": 0.011, "three": 0.007, "seven": 0.005}

_MEASURES = {"exact_match": "Exact match", "hamming_loss": "Hamming loss", "nodes": "Number of nodes"}

INTRODUCTION = """
Three overlapping discs of {points:,} points each are learned in one pass: all together, disc after disc, or
region after region. After each part all rows presented so far are predicted. Means of {repetitions} seeds.

MLCA has vigilance 0.1. MCIC has the paper's parameters: delta 0.1, K 3, lambda 0.25, beta_mu 2, 10,000 rows per unit
of time, epsilon 0.011, 0.007 and 0.005. The paper does not print the scale of its discs, which affects only MCIC. MCIC
learns the discs shrunk into the unit square, with the exact centres of its clusters. Its numbers of clusters then agree
with the paper; the drifting centres of its released program would give up to five times as many.
"""


def tasks(scope: Scope) -> list[Task]:
    """Return one task per algorithm, condition and seed."""
    return [
        task for algorithm in _algorithms(scope) for condition in RADII for task in _seeds(scope, algorithm, condition)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Compare the measured results with the paper's; draw the nodes of the first seed."""
    tables = tuple(_table(name, scope, outcomes) for name in _MEASURES)
    introduction = INTRODUCTION.format(points=scope.points, repetitions=scope.repetitions).strip()
    notes = troubles(tasks(scope), outcomes)
    return Section(
        "continual",
        "Continual learning",
        f"{introduction}\n\n{notes}".strip(),
        _verdict(scope, outcomes),
        tables,
        tuple(_figures(scope, outcomes)),
    )


def _algorithms(scope: Scope) -> tuple[str, ...]:
    wanted = {configuration.family for configuration in scope.configurations}
    return tuple(name for name in ("MLCA", "MCIC") if name in wanted)


def _seeds(scope: Scope, algorithm: str, condition: str) -> list[Task]:
    parameters: dict[str, Value] = {"published": "MLCA", "vigilance": 0.1}
    if algorithm == "MCIC":
        parameters = {"delta": 0.1, "n_clusters": 3, "decay": 0.25, "maturity": 2, "speed": 10_000, "center": "exact"}
        parameters["theta"] = RADII[condition]
    return [
        Task(
            "stream",
            algorithm,
            in_order(parameters),
            condition,
            seed=seed,
            scaled=algorithm == "MCIC",
            size=scope.points,
        )
        for seed in range(scope.repetitions)
    ]


def _rows(scope: Scope) -> Iterator[tuple[dict[str, str], list[Task]]]:
    """Yield each row of the paper's table that is in scope, with its tasks."""
    for row in read_paper("continual"):
        if row["algorithm"] in _algorithms(scope):
            yield row, _seeds(scope, row["algorithm"], row["condition"])


def _table(name: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    rows = []
    for row, seeds in _rows(scope):
        stage = row["after_distribution"]
        paper, measured = float(row[name]), mean_of(f"{name}@{stage}", seeds, outcomes)
        rows.append(
            (
                row["algorithm"],
                row["condition"],
                int(stage),
                paper,
                float(row[f"{name}_sd"]),
                measured,
                deviation_of(f"{name}@{stage}", seeds, outcomes),
                difference(paper, measured),
            )
        )
    columns = ("algorithm", "condition", "after", "paper", "paper sd", "measured", "measured sd", "difference")
    return Table(_MEASURES[name], columns, tuple(rows))


def _verdict(scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    sentences = []
    for algorithm in _algorithms(scope):
        matches = agreement(_claims("exact_match", algorithm, scope, outcomes), "exact matches", tolerance=0.01)
        numbers = agreement(
            _claims("nodes", algorithm, scope, outcomes), "numbers of nodes", tolerance=0.05, relative=True
        )
        sentences.append(f"{algorithm}: {matches}; {numbers}.")
    if scope.points != POINTS:
        sentences.append(f"The streams are shorter than the paper's ({scope.points:,} instead of {POINTS:,} per disc).")
    return " ".join(sentences)


def _claims(name: str, algorithm: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> list[Claim]:
    claims = []
    for row, seeds in _rows(scope):
        measured = mean_of(f"{name}@{row['after_distribution']}", seeds, outcomes)
        if row["algorithm"] == algorithm and measured is not None:
            title = f"{row['condition']} after {row['after_distribution']}"
            claims.append(Claim(title, float(row[name]), measured))
    return claims


def _figures(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Iterator[Figure]:
    for algorithm in _algorithms(scope):
        for condition in RADII:
            first = outcomes.get(_seeds(scope, algorithm, condition)[0])
            if first is not None and first.pictures:
                title = f"Nodes of {algorithm}, condition {condition}"
                yield Figure(title, draw_nodes(first.pictures), "Each in the colour of the label set that it predicts.")

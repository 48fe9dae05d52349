"""Times of training and prediction, and the growth of training time with rows and nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlca.experiments.paper_tables import read_paper
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.studies import comparison
from mlca.experiments.studies.figures import draw_growth
from mlca.experiments.studies.summaries import mean_of, troubles
from mlca.experiments.tasks import Outcome, Task, in_order
from mlca.experiments.work import GROWTH_ATTRIBUTES

ROWS = (2_000, 4_000, 8_000, 16_000)
NODES = (1_000, 2_000, 4_000, 8_000)
FIXED_ROWS, FIXED_NODES = 2_000, 2_000

INTRODUCTION = """
Seconds of training and of predicting the test part, one thread each, compilation left out: the fits of the comparison.
Means over {repetitions} of the 20 folds. The paper's own times are in a supplement that was not available.

Growth is measured on generated rows of {attributes} attributes that add no node: first with more and more rows at
{nodes:,} nodes, then with more and more nodes at {rows:,} rows. The exponent is the slope on logarithmic axes; the
stated complexity is n d K, so both should be about 1.
"""


def tasks(scope: Scope) -> list[Task]:
    """Return the tasks of the comparison, whose fits are timed, and the growth tasks."""
    growth = [
        task
        for variant in scope.variants
        for task in (*_growing_rows(variant).values(), *_growing_nodes(variant).values())
    ]
    return comparison.tasks(scope) + growth


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate times, and compare their growth exponents with the paper's complexity."""
    rows = {variant: _seconds(_growing_rows(variant), outcomes) for variant in scope.variants}
    nodes = {variant: _seconds(_growing_nodes(variant), outcomes) for variant in scope.variants}
    figures = [
        Figure(title, draw_growth(curves, across))
        for title, curves, across in (
            ("Training time over rows", rows, f"rows n, at {FIXED_NODES:,} nodes"),
            ("Training time over nodes", nodes, f"nodes K, at {FIXED_ROWS:,} rows"),
        )
        if any(curves.values())
    ]
    text = INTRODUCTION.format(
        repetitions=scope.repetitions, attributes=GROWTH_ATTRIBUTES, nodes=FIXED_NODES, rows=FIXED_ROWS
    )
    return Section(
        "timing",
        "Time",
        "\n\n".join(filter(None, (text.strip(), scope.complaint(), troubles(tasks(scope), outcomes)))),
        _verdict(rows, nodes),
        (
            _time_table("Seconds of training", "fit_seconds", scope, outcomes),
            _time_table("Seconds of prediction", "predict_seconds", scope, outcomes),
            _growth_table(scope, rows, nodes),
        ),
        tuple(figures),
    )


def _growing_rows(variant: str) -> dict[int, Task]:
    return {size: _growth_task(variant, size, FIXED_NODES) for size in ROWS}


def _growing_nodes(variant: str) -> dict[int, Task]:
    return {nodes: _growth_task(variant, FIXED_ROWS, nodes) for nodes in NODES}


def _growth_task(variant: str, size: int, nodes: int) -> Task:
    parameters = in_order({"published": variant, "vigilance": 0.0})
    return Task("growth", "MLCA", parameters, "generated", size=size, nodes=nodes)


def _seconds(growing: Mapping[int, Task], outcomes: Mapping[Task, Outcome]) -> dict[int, float]:
    found = {size: mean_of("fit_seconds", [task], outcomes) for size, task in growing.items()}
    return {size: seconds for size, seconds in found.items() if seconds is not None}


def exponent(seconds: Mapping[int, float]) -> float | None:
    """Return the growth exponent of the times: their slope on logarithmic axes.

    Examples
    --------
    >>> round(exponent({10: 0.3, 20: 1.2, 40: 4.8}), 6)
    2.0
    """
    if len(seconds) < 2:
        return None
    slope, _ = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)
    return float(slope)


def _time_table(title: str, name: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    rows = tuple(
        (
            configuration.title,
            *(mean_of(name, scope.fold_tasks(configuration, dataset), outcomes) for dataset in scope.datasets),
        )
        for configuration in scope.configurations
    )
    return Table(title, ("configuration", *scope.datasets), rows)


def _growth_table(
    scope: Scope, rows: Mapping[str, Mapping[int, float]], nodes: Mapping[str, Mapping[int, float]]
) -> Table:
    wanted = {configuration.family for configuration in scope.configurations}
    lines = tuple(
        (
            row["algorithm"],
            row["training"],
            exponent(rows.get(row["algorithm"], {})),
            exponent(nodes.get(row["algorithm"], {})),
        )
        for row in read_paper("complexity")
        if row["algorithm"] in wanted
    )
    columns = ("algorithm", "stated complexity", "measured exponent of n", "measured exponent of K")
    return Table("Growth", columns, lines, "n rows, d attributes, K nodes, q labels.")


def _verdict(rows: Mapping[str, Mapping[int, float]], nodes: Mapping[str, Mapping[int, float]]) -> str:
    sentences = []
    for variant in rows:
        of_rows, of_nodes = exponent(rows[variant]), exponent(nodes[variant])
        if of_rows is not None and of_nodes is not None:
            sentences.append(f"{variant} as n^{of_rows:.2f} and K^{of_nodes:.2f}")
    return f"Training time grows for {', '.join(sentences)}; stated: n K." if sentences else "Growth was not measured."

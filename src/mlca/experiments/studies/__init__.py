"""The experiments of the paper, and additional ones, one per module.

Each module plans the tasks that it needs and turns their outcomes into a section of the report:

    tasks(scope)                the tasks, dataset by dataset
    section(scope, outcomes)    tables that compare the outcomes with the paper, figures, and a conclusion

`beyond` has a second section, for larger datasets (`beyond.large_section`). Outcomes may be incomplete; results that
are not available are shown as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlca.experiments.report import Section
from mlca.experiments.scope import Scope
from mlca.experiments.studies import (
    beyond,
    budget,
    comparison,
    continual,
    drift,
    epochs,
    grid,
    nodes,
    streams,
    timing,
)
from mlca.experiments.tasks import Outcome, Task


@dataclass(frozen=True)
class Study:
    """An experiment: functions that return its tasks and its sections of the report."""

    tasks: Callable[[Scope], list[Task]]
    sections: tuple[Callable[[Scope, Mapping[Task, Outcome]], Section], ...]
    needs_datasets: bool = True


STUDIES = {
    "continual": Study(continual.tasks, (continual.section,), needs_datasets=False),
    "nodes": Study(nodes.tasks, (nodes.section,)),
    "grid": Study(grid.tasks, (grid.section,)),
    "comparison": Study(comparison.tasks, (comparison.section,)),
    "epochs": Study(epochs.tasks, (epochs.section,)),
    "timing": Study(timing.tasks, (timing.section,)),
    "beyond": Study(beyond.tasks, (beyond.section, beyond.large_section)),
    "streams": Study(streams.tasks, (streams.section,)),
    "drift": Study(drift.tasks, (drift.section,), needs_datasets=False),
    "budget": Study(budget.tasks, (budget.section,)),
}

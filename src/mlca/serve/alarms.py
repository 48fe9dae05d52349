"""Alarms about the log: those of `mlca.metrics.stream.alarms`, with positions for row numbers.

The watch sees the rows that this process learns as they come, not those that it reads again when it starts: an alarm is
for whoever is there to hear it. So alarms are no part of the model, and two services may raise them at different rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mlca.metrics.stream.alarms import Alarm, Watch
from mlca.serve.log import LoggedRow


def look(watch: Watch, rows: Sequence[LoggedRow]) -> Iterator[dict[str, Any]]:
    """Look at rows that were learned; yield alarms as facts for events."""
    for row in rows:
        if row.x is None:  # forgotten
            continue
        for alarm in watch.labels(row.position, row.labels):
            yield as_facts(alarm)
        if row.predicted is not None:
            for alarm in watch.pair(row.position, row.labels, row.predicted):
                yield as_facts(alarm)


def look_at_novelty(watch: Watch, position: int, novelty: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Look at rows that were predicted by the model at a position; yield alarms as facts for events."""
    for value in novelty:
        for alarm in watch.novelty(position, value):
            yield as_facts(alarm)


def as_facts(alarm: Alarm) -> dict[str, Any]:
    """Return an alarm as facts for events, and in words."""
    facts = asdict(alarm)
    return {"position": facts.pop("row"), **facts, "text": str(alarm)}

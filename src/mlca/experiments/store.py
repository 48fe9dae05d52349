"""The store: results as they come, in one SQLite file.

SQLite in WAL mode rather than Parquet parts: every result is a transaction, so a killed run leaves whole
results and nothing else; a report can be read while a run writes; one file instead of thousands of small
ones; and ``sqlite3 results.sqlite`` answers questions that no report foresaw. Results are small, a few
numbers a task: the columns of Parquet would gain nothing.

Only the process that plans writes, so that there is one writer however many machines compute.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from mlca.experiments.tasks import Outcome, Task, fingerprint

_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    code TEXT NOT NULL,
    task TEXT NOT NULL,      -- JSON: algorithm, parameters, dataset, fold, seed ...
    status TEXT NOT NULL,    -- done, too long, failed
    measured TEXT NOT NULL,  -- JSON: numbers by name
    pictures TEXT NOT NULL,  -- JSON: nodes to draw
    trouble TEXT NOT NULL,   -- traceback, or the time limit
    seconds REAL NOT NULL,
    finished TEXT NOT NULL
) STRICT
"""


class Store:
    """The results of an output folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> task = Task("fold", "MLkNN", (("k", 3),), "flags", repetition=0, fold=1)
    >>> with TemporaryDirectory() as folder, Store(Path(folder) / "results.sqlite") as store:
    ...     store.put(Outcome(task, "done", {"exact_match": 0.2}, {}))
    ...     store.missing([task], time_limit=None), store.get([task])[task].values
    ([], {'exact_match': 0.2})
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, timeout=60)
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(_SCHEMA)
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(
                f"{path} cannot be used as a store of results ({error}): move it or choose another --out"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def put(self, outcome: Outcome) -> None:
        """Keep an outcome; it replaces an earlier one of the same task and code."""
        # NaN is no JSON: SQLite could not read the numbers beside it.
        measured = {name: value for name, value in outcome.values.items() if not math.isnan(value)}
        row = (
            outcome.task.key,
            fingerprint(),
            outcome.task.to_json(),
            outcome.status,
            json.dumps(measured),
            json.dumps(dict(outcome.pictures)),
            outcome.trouble,
            outcome.seconds,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def get(self, tasks: Iterable[Task]) -> dict[Task, Outcome]:
        """Return the outcomes of those tasks that have one."""
        found = {}
        for task in tasks:
            row = self._database.execute(
                "SELECT status, measured, pictures, trouble, seconds FROM results WHERE key = ?", (task.key,)
            ).fetchone()
            if row is not None:
                status, measured, pictures, trouble, seconds = row
                found[task] = Outcome(task, status, json.loads(measured), json.loads(pictures), trouble, seconds)
        return found

    def period(self, tasks: Iterable[Task]) -> tuple[datetime, datetime] | None:
        """Return when the first and the last outcome of these tasks came; None if there is none."""
        rows = (
            self._database.execute("SELECT finished FROM results WHERE key = ?", (task.key,)).fetchone()
            for task in tasks
        )
        times = [datetime.fromisoformat(row[0]) for row in rows if row is not None]
        return (min(times), max(times)) if times else None

    def missing(self, tasks: Iterable[Task], time_limit: float | None) -> list[Task]:
        """Return the tasks that are to be done, each once, in their order.

        What failed is tried again. What took too long is tried again if there is more time now.
        """
        planned = dict.fromkeys(tasks)
        settled = {
            task
            for task, outcome in self.get(planned).items()
            if outcome.status == "done"
            or (outcome.status == "too long" and time_limit is not None and time_limit <= outcome.seconds)
        }
        return [task for task in planned if task not in settled]

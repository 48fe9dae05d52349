"""The result store: one SQLite file per output folder, with the results of all tasks.

SQLite in WAL mode has advantages over Parquet files. Every result is a transaction, so a killed run leaves no partial
results. A report can be written while a run continues. There is one file instead of thousands of small ones, and
it can be queried with ``sqlite3 results.sqlite``. Results have only a few numbers per task, so a columnar format would
not save space or time.

Only the process that plans the tasks writes results, so there is one writer even if many machines run tasks.
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
    """The results of an output folder, by task and code version.

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
        """Store an outcome; replace an earlier outcome of the same task and code."""
        # JSON has no NaN: one NaN would make the whole string invalid for SQLite's JSON functions.
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
        """Return the stored outcomes of the tasks; tasks without an outcome are left out."""
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
        """Return when the tasks' first and last outcomes were stored; None if there are none."""
        rows = (
            self._database.execute("SELECT finished FROM results WHERE key = ?", (task.key,)).fetchone()
            for task in tasks
        )
        times = [datetime.fromisoformat(row[0]) for row in rows if row is not None]
        return (min(times), max(times)) if times else None

    def missing(self, tasks: Iterable[Task], time_limit: float | None) -> list[Task]:
        """Return the tasks that must be run, in their order and without duplicates.

        Failed tasks are repeated. Timed-out tasks are repeated if the time limit is larger than before, or absent.
        """
        planned = dict.fromkeys(tasks)
        settled = {
            task
            for task, outcome in self.get(planned).items()
            if outcome.status == "done"
            or (outcome.status == "too long" and time_limit is not None and time_limit <= outcome.seconds)
        }
        return [task for task in planned if task not in settled]

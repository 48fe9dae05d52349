"""The service without its doors: a folder, a log, a model that follows it, and the threads that do the work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mlca.metrics.stream.alarms import Watch
from mlca.serve.alarms import look_at_novelty
from mlca.serve.bodies import Aside
from mlca.serve.changes import LogChange
from mlca.serve.committing import Committer
from mlca.serve.database import Database, LogError
from mlca.serve.diary import tell
from mlca.serve.events import Events
from mlca.serve.folders import FolderLock
from mlca.serve.learning import Follower
from mlca.serve.live import Facts, Learned, LiveModel, new_model, new_parameters
from mlca.serve.log import Log, Receipt, create_log, open_log
from mlca.serve.measures import Traffic
from mlca.serve.predicting import Predictor
from mlca.serve.refusals import RefusalError, unavailable
from mlca.serve.rows import TABLE, Columns, RequestRows
from mlca.serve.snapshots import Snapshots
from mlca.serve.sqlite import SQLite
from mlca.serve.tablerows import check_cells

# Rows that the model may lag behind the log before new ones are refused for a while.
MOST_BEHIND = 100_000
# Seconds that a request waits for a position or a generation.
PATIENCE = 5.0
# Questions that are asked of the log at once.
_QUESTIONS = 4

Told = TypeVar("Told")


@dataclass(frozen=True)
class ServiceSettings:
    """What a service is told.

    Attributes
    ----------
    data : Path
        The folder of log and snapshots.
    log : str or None
        The address of a PostgreSQL database that has the log in place of the folder.
    model : Path or None
        The model file that learning goes on from.
    parameters : dict
        The chosen parameters of a new model.
    n_jobs : int or None
        Threads of the model.
    """

    data: Path
    log: str | None = None
    model: Path | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None


class Service:
    """Everything behind the HTTP routes.

    Parameters
    ----------
    settings : ServiceSettings
        What it is told.

    Raises
    ------
    ValueError
        If the folder is in use, the log is of other parameters, or anything else that its operator must change.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.folder = FolderLock(settings.data)
        database = _database(settings)
        try:
            self.log = _open(database, settings)
        except LogError as error:
            database.close()
            self.folder.release()
            raise ValueError(str(error)) from None
        except BaseException:
            database.close()
            self.folder.release()
            raise
        self.traffic, self.events = Traffic(), Events()
        trouble = partial(tell, "trouble")
        self.snapshots = Snapshots(
            settings.data / "snapshots", self.log.beginning.identity, lambda problem: trouble(problem=problem)
        )
        self.follower = Follower(
            self.log,
            self.snapshots,
            settings.n_jobs,
            self._progress,
            self._tell_event,
            lambda problem: trouble(problem=problem),
        )
        self.committer = Committer(self.log, lambda problem: trouble(problem=problem))
        self.predictor = Predictor(lambda: self.follower.live)
        self.aside = Aside()
        self._questions = ThreadPoolExecutor(_QUESTIONS, "mlca-questions")
        self._novelty_watch = Watch()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._ticking: asyncio.Task[None] | None = None

    @property
    def columns(self) -> Columns | None:
        """What rows consist of; None before the first."""
        return self.log.head.columns

    async def start(self) -> None:
        """Start the threads; the model is ready once it has caught up with the log."""
        self._loop = asyncio.get_running_loop()
        self.committer.start()
        self.predictor.start()
        self.follower.start()
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Write, judge and learn what is under way, save the model and let go of the folder."""
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self.committer.stop()
        self.predictor.stop()
        self.aside.stop()
        self._questions.shutdown(cancel_futures=True)
        self.follower.stop()
        self.log.database.close()
        self.folder.release()
        tell("stopped", position=self.log.head.position)

    async def write(self, change: LogChange) -> Receipt:
        """Make a change of the log durable."""
        return await asyncio.wrap_future(self.committer.submit(change))

    async def ask_log(self, question: Callable[[], Told]) -> Told:
        """Return what the log says, asked in a thread that waits for nothing else; refuse while it cannot be read."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._questions, question)
        except LogError:
            raise unavailable("the log cannot be read now") from None

    def refuse_unreadable(self, rows: RequestRows) -> None:
        """Refuse cells that do not fit their columns, once these are decided about.

        Rows that get past while they are not, or at another service, are learned with gaps in these places.
        """
        live = self.follower.live
        if isinstance(rows.x, list) and live is not None and live.facts.settled and live.facts.layout is not None:
            check_cells(rows.x, live.facts.layout)

    def refuse_unreadable_news(self, rows: RequestRows) -> None:
        """Refuse cells that do not fit, but not for a row that is known: that is acknowledged, whatever it holds.

        It may have been taken before the columns were decided about, and its sender has not heard so.
        """
        states = self.log.states(rows.ids)
        new = [number for number, id in enumerate(rows.ids) if states.get(id, "waiting") == "waiting"]
        if not new:
            return
        try:
            self.refuse_unreadable(replace(rows, x=[rows.x[number] for number in new]))
        except RefusalError as refusal:
            refusal.row = None if refusal.row is None else new[refusal.row]
            raise

    def refuse_if_behind(self) -> None:
        """Refuse new rows while the model lags too far behind, except while it is rebuilt."""
        if self.follower.behind > MOST_BEHIND and not self.follower.rebuilding:
            problem = f"the model is {self.follower.behind:,} rows behind the log"
            raise RefusalError(429, problem, "wait a little", retry_after=5)

    async def live(self, position: int = 0, generation: int = 0) -> LiveModel:
        """Return the model once it has come to a position and a generation, or refuse."""
        if not self._has_reached(position, generation):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((position, generation, future))
            try:
                async with asyncio.timeout(PATIENCE):
                    # Looked at once more: the model may have come there before anybody was known to wait for it.
                    if not self._has_reached(position, generation):
                        await future
            except TimeoutError:
                pass
            finally:
                self._waiters = [waiter for waiter in self._waiters if waiter[2] is not future]
        reached = self._has_reached(position, generation)
        live = self.follower.live
        if live is None:
            raise unavailable(self.follower.trouble or "the model is being read from snapshot and log", "wait a little")
        if not reached:
            problem = f"the model is at position {live.facts.position} of generation {live.facts.generation}"
            raise unavailable(problem, "ask again, or for less")
        return live

    def _has_reached(self, position: int, generation: int) -> bool:
        live = self.follower.live
        return live is not None and live.facts.position >= position and live.facts.generation >= generation

    def _progress(self, rows: int) -> None:
        """Take notice, in the thread that learns, that the model has moved."""
        self.traffic.count_learned(rows)
        if self._waiters and self._loop is not None:
            self._call(self._release_waiters)

    def _release_waiters(self) -> None:
        for position, generation, future in self._waiters:
            if not future.done() and self._has_reached(position, generation):
                future.set_result(None)

    def _tell_event(self, name: str, facts: dict[str, Any]) -> None:
        if name == "alarm":
            self.traffic.count_alarm(facts)
            tell(name, **{fact: facts[fact] for fact in ("kind", "measure", "position")})
        elif name != "label":  # the name of a label is part of a row
            tell(name, **facts)
        self._call(partial(self.events.publish, name, facts))

    def _call(self, function: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _look_at_novelty(self, novelty: list[float]) -> None:
        live = self.follower.live
        for alarm in look_at_novelty(self._novelty_watch, live.facts.position if live else 0, novelty):
            self._tell_event("alarm", alarm)

    async def _tick(self) -> None:
        while True:
            self.traffic.tick()
            novelty = self.traffic.unseen_novelty()
            if novelty:  # in a thread, for the first look imports River
                await asyncio.to_thread(self._look_at_novelty, novelty)
            if self.events.has_listeners:
                try:
                    self.events.publish("state", await self.ask_log(self.state))
                except RefusalError as refusal:
                    tell("trouble", problem=refusal.problem)
            await asyncio.sleep(1)

    def describe(self) -> dict[str, Any]:
        """Return what `GET /v1/model` tells."""
        live, columns = self.follower.live, self.columns
        facts = None if live is None else live.facts
        labels: list[dict[str, Any]] = []
        if live is not None:
            with live.measures() as measures:
                records = dict(measures.labels)
                for name in live.facts.labels:
                    record = records.get(name)
                    labels.append(
                        {
                            "label": name,
                            "count": record.count if record else 0,
                            "first": record.first if record else 0,
                            "at": record.at if record else 0.0,
                            "f1": record.f1 if record else None,
                        }
                    )
        return {
            "position": facts.position if facts else 0,
            "generation": facts.generation if facts else 0,
            "log_position": self.log.head.position,
            "ready": live is not None,
            "rebuilding": self.follower.rebuilding,
            "rows": facts.seen if facts else 0,
            "nodes": facts.nodes if facts else 0,
            "waiting": self.log.count_waiting(),
            "columns": None if columns is None else _columns_to_json(columns, facts),
            "parameters": self.log.beginning.parameters,
            "labels": labels,
            "snapshots": self.snapshots.positions(),
        }

    def state(self) -> dict[str, Any]:
        """Return what the page shows: the model, its measures and the traffic."""
        about = self.describe()
        about["labels"] = sorted(about["labels"], key=lambda label: (-label["count"], label["first"]))[:200]
        learned, predicted = self.traffic.rates()
        about |= {
            "rates": {"learned": learned, "predicted": predicted},
            "latency": self.traffic.latency(),
            "novelty": self.traffic.novelty(),
            "alarms": self.traffic.alarms()[0],
            "uptime": round(self.traffic.uptime, 1),
            "trouble": self.follower.trouble,
        }
        live = self.follower.live
        if live is not None:
            with live.measures() as measures:
                (exact, f1), (exact_recent, f1_recent) = measures.running(), measures.recently()
                about |= {
                    "n_labels": len(live.facts.labels),
                    "pairs": measures.pairs,
                    "exact_match": {"running": exact, "recent": exact_recent},
                    "f1": {"running": f1, "recent": f1_recent},
                    "curve": list(measures.curve),
                    "last": list(measures.last)[::-1],
                }
        return about


def _columns_to_json(columns: Columns, facts: Facts | None) -> dict[str, Any]:
    if not columns.table:
        return {"table": False, "width": columns.width, "names": columns.names, "kinds": None, "settled": True}
    decided = () if facts is None or facts.layout is None else facts.layout.columns
    return {
        "table": True,
        "width": len(decided),
        "names": [column.name for column in decided],
        "kinds": [column.kind for column in decided],
        "settled": facts is not None and facts.layout is not None and facts.settled,
    }


def _database(settings: ServiceSettings) -> Database:
    if settings.log is None:
        return SQLite(settings.data / "log.sqlite")
    from mlca.serve.postgresql import PostgreSQL

    return PostgreSQL(settings.log)


def _open(database: Database, settings: ServiceSettings) -> Log:
    log = open_log(database)
    if log is None:
        start, columns = (None, None) if settings.model is None else _read_start(settings.model)
        parameters = {} if start is not None else new_parameters(settings.parameters)
        if start is not None and settings.parameters:
            raise ValueError("the parameters are those of the model that --model names; leave the others out")
        return create_log(database, parameters, start, columns)
    if settings.model is not None and settings.model.read_bytes() != log.beginning.start:
        raise ValueError(f"{settings.model}: the log began with another model; leave --model out, or take a new folder")
    began = {} if log.beginning.start is not None else new_model(log.beginning.parameters, None).get_params()
    for name, value in settings.parameters.items():
        if began.get(name) != value:
            raise ValueError(
                f"the log began with {name}={began.get(name)!r}, not {value!r}; leave it out, or take a new folder and "
                "replay the rows"
            )
    return log


def _read_start(path: Path) -> tuple[bytes, Columns]:
    """Read the model that learning goes on from, and try whether it goes on with rows of label names."""
    import numpy as np

    from mlca.classifier import load

    learned = Learned(load(path))
    model = learned.model
    if not all(isinstance(name, str) for name in model.classes_.tolist()):
        raise ValueError(f"{path}: its labels are numbers, but the service's are names; train it with label names")
    names = getattr(model, "feature_names_in_", None)
    columns = Columns(model.n_features_in_, None if names is None else tuple(map(str, names)))
    try:
        if learned.table is not None:
            learned.table.learn([{}], [()])
            columns = TABLE
        else:
            model.partial_fit(np.zeros((1, columns.width)), [()])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return path.read_bytes(), columns

"""The service without its HTTP interface: folder lock, log, model and worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from mlca.metrics.stream.alarms import Watch
from mlca.serve.committing import Committer
from mlca.serve.database import LogError
from mlca.serve.events import Events
from mlca.serve.file_locks import FolderLock
from mlca.serve.follower import Follower
from mlca.serve.live_model import Facts, LiveModel
from mlca.serve.log import Receipt
from mlca.serve.log_changes import LogChange
from mlca.serve.measures import Traffic, look_at_novelty
from mlca.serve.operator_log import log_event
from mlca.serve.predicting import Predictor
from mlca.serve.request_errors import RequestError, unavailable
from mlca.serve.request_rows import Columns, RequestRows
from mlca.serve.snapshots import Snapshots
from mlca.serve.startup import ServiceSettings, open_service_log
from mlca.serve.table_cells import check_cells
from mlca.serve.worker_threads import SideWorker

# Number of rows by which the model may be behind the log before new rows are rejected.
MOST_BEHIND = 100_000
# Seconds that a request waits for the model to reach a position and a generation.
PATIENCE = 5.0
# Number of threads that read the log for requests.
_QUESTIONS = 4

Result = TypeVar("Result")


class Service:
    """The log, the model and the worker threads behind the HTTP routes.

    Parameters
    ----------
    settings : ServiceSettings
        The settings of the service.

    Raises
    ------
    ValueError
        If the folder is in use, or the log cannot be used with these settings; the message includes the remedy.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.folder = FolderLock(settings.data)
        database = settings.database()
        try:
            self.log = open_service_log(database, settings)
        except LogError as error:
            database.close()
            self.folder.release()
            raise ValueError(str(error)) from None
        except BaseException:
            database.close()
            self.folder.release()
            raise
        self.traffic, self.events = Traffic(), Events()
        trouble = partial(log_event, "trouble")
        self.snapshots = Snapshots(
            settings.snapshots, self.log.beginning.identity, lambda problem: trouble(problem=problem)
        )
        self.follower = Follower(
            self.log,
            self.snapshots,
            settings.n_jobs,
            self._progress,
            self._publish_event,
            lambda problem: trouble(problem=problem),
        )
        self.committer = Committer(self.log, lambda problem: trouble(problem=problem))
        self.predictor = Predictor(lambda: self.follower.live)
        self.side = SideWorker()
        self._questions = ThreadPoolExecutor(_QUESTIONS, "mlca-questions")
        self._novelty_watch = Watch()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._ticking: asyncio.Task[None] | None = None

    @property
    def columns(self) -> Columns | None:
        """The format of the rows in the log; None before the first row."""
        return self.log.head.columns

    async def start(self) -> None:
        """Start the threads; the model is ready once it has caught up with the log."""
        self._loop = asyncio.get_running_loop()
        self.committer.start()
        self.predictor.start()
        self.follower.start()
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Finish pending writes and predictions, save the model and release the folder."""
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self.committer.stop()
        self.predictor.stop()
        self.side.stop()
        self._questions.shutdown(cancel_futures=True)
        self.follower.stop()
        self.log.database.close()
        self.folder.release()
        log_event("stopped", position=self.log.head.position)

    async def write(self, change: LogChange) -> Receipt:
        """Apply a change to the log; return when it is durable."""
        return await asyncio.wrap_future(self.committer.submit(change))

    async def ask_log(self, question: Callable[[], Result]) -> Result:
        """Call `question`, which reads the log, in a thread; reject the request if it fails."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._questions, question)
        except LogError:
            raise unavailable("the log cannot be read now") from None

    def reject_unreadable(self, rows: RequestRows) -> None:
        """Reject cells that do not fit their columns, once the kinds of columns are final.

        In rows accepted earlier, or by another service, such cells are learned as missing values.
        """
        live = self.follower.live
        if isinstance(rows.x, list) and live is not None and live.facts.settled and live.facts.layout is not None:
            check_cells(rows.x, live.facts.layout)

    def reject_unreadable_new_cells(self, rows: RequestRows) -> None:
        """Reject cells that do not fit their columns, except in rows already learned or forgotten.

        A row that the log already has is only acknowledged: it may have been accepted before the kinds of columns were
        final, and the response may have been lost.
        """
        states = self.log.states(rows.ids)
        new = [number for number, id in enumerate(rows.ids) if states.get(id, "waiting") == "waiting"]
        if not new:
            return
        try:
            self.reject_unreadable(replace(rows, x=[rows.x[number] for number in new]))
        except RequestError as rejection:
            rejection.row = None if rejection.row is None else new[rejection.row]
            raise

    def reject_if_behind(self) -> None:
        """Reject new rows while the model lags too far behind, except during a rebuild."""
        if self.follower.behind > MOST_BEHIND and not self.follower.rebuilding:
            problem = f"the model is {self.follower.behind:,} rows behind the log"
            raise RequestError(429, problem, "try again later", retry_after=5)

    async def live(self, position: int = 0, generation: int = 0) -> LiveModel:
        """Return the model once it has reached a position and a generation, or reject the request."""
        if not self._has_reached(position, generation):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((position, generation, future))
            try:
                async with asyncio.timeout(PATIENCE):
                    # Check again: the model may have reached position and generation before this waiter was registered.
                    if not self._has_reached(position, generation):
                        await future
            except TimeoutError:
                pass
            finally:
                self._waiters = [waiter for waiter in self._waiters if waiter[2] is not future]
        reached = self._has_reached(position, generation)
        live = self.follower.live
        if live is None:
            raise unavailable(self.follower.unready, "try again later")
        if not reached:
            problem = f"the model has only reached position {live.facts.position}, generation {live.facts.generation}"
            if self.follower.rebuild is not None:
                problem += f"; the next generation is being built: {self.follower.rebuild}"
            raise unavailable(problem, "try again, or pass a smaller min_position")
        return live

    def _has_reached(self, position: int, generation: int) -> bool:
        live = self.follower.live
        return live is not None and live.facts.position >= position and live.facts.generation >= generation

    def _progress(self, rows: int) -> None:
        """Count learned rows and release waiting requests; called by the learner thread."""
        self.traffic.count_learned(rows)
        if self._waiters and self._loop is not None:
            self._call(self._release_waiters)

    def _release_waiters(self) -> None:
        for position, generation, future in self._waiters:
            if not future.done() and self._has_reached(position, generation):
                future.set_result(None)

    def _publish_event(self, name: str, facts: dict[str, Any]) -> None:
        if name == "alarm":
            self.traffic.count_alarm(facts)
            log_event(name, **{fact: facts[fact] for fact in ("kind", "measure", "position")})
        elif name != "label":  # the name of a label is row data
            log_event(name, **facts)
        self._call(partial(self.events.publish, name, facts))

    def note_wrong_token(self, address: str, failures: int) -> None:
        """Count and log a request with a wrong token."""
        self.traffic.wrong_tokens += 1
        log_event("wrong token", at_once=False, address=address, failures=failures)

    def _call(self, function: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _look_at_novelty(self, novelty: list[float]) -> None:
        live = self.follower.live
        for alarm in look_at_novelty(self._novelty_watch, live.facts.position if live else 0, novelty):
            self._publish_event("alarm", alarm)

    async def _tick(self) -> None:
        while True:
            self.traffic.tick()
            novelty = self.traffic.unseen_novelty()
            if novelty:  # in a thread, because the first call imports River
                await asyncio.to_thread(self._look_at_novelty, novelty)
            if self.events.has_listeners:
                try:
                    self.events.publish("state", await self.ask_log(self.state))
                except RequestError as rejection:
                    log_event("trouble", problem=rejection.problem)
            await asyncio.sleep(1)

    def describe(self) -> dict[str, Any]:
        """Return the content of the response to `GET /v1/model`."""
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
            "checksum": facts.checksum_text if facts else None,
            "log_position": self.log.head.position,
            "ready": live is not None,
            "rebuilding": self.follower.rebuilding,
            "rebuild": self.rebuild_to_json(),
            "rows": facts.seen if facts else 0,
            "nodes": facts.nodes if facts else 0,
            "waiting": self.log.count_waiting(),
            "columns": None if columns is None else _columns_to_json(columns, facts),
            "parameters": self.log.beginning.parameters,
            "labels": labels,
            "snapshots": self.snapshots.positions(),
        }

    def rebuild_to_json(self) -> dict[str, int] | None:
        """Return the progress of the rebuild; None if there is none."""
        rebuild = self.follower.rebuild
        return None if rebuild is None else rebuild._asdict()

    def state(self) -> dict[str, Any]:
        """Return the data of the web page: model, measures and traffic."""
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

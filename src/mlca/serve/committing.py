"""A writer thread that commits together all requests that arrived during the last commit.

Each commit costs a disk flush, regardless of its size, so requests of many clients share one. Each request gets its
response only when its rows are durable.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from mlca.serve.database import InDoubtError, LogError
from mlca.serve.log import Log, Receipt
from mlca.serve.log_changes import LogChange
from mlca.serve.request_errors import RequestError, unavailable
from mlca.serve.worker_threads import BatchWorker

# Largest numbers of requests per transaction and in the queue. A slow disk, with 50 commits per second, writes a full
# queue in 0.2 s.
_TOGETHER = 64
_WAITING = 512

_Job = tuple[LogChange, "Future[Receipt]"]


class Committer:
    """Commits changes to the log in a thread.

    Parameters
    ----------
    log : Log
        The log.
    on_trouble : callable
        Called with a message if the log cannot be written.
    """

    def __init__(self, log: Log, on_trouble: Callable[[str], None]) -> None:
        self._log = log
        self._on_trouble = on_trouble
        self._jobs = BatchWorker("mlca-committer", self._commit, _TOGETHER, lambda job: 1)
        self.start, self.stop = self._jobs.start, self._jobs.stop

    def submit(self, change: LogChange) -> Future[Receipt]:
        """Submit a change; its future receives a receipt once the change is durable."""
        if self._jobs.n_waiting >= _WAITING:
            raise RequestError(
                429,
                "too many requests are waiting to be written",
                "send fewer at a time, or larger batches",
                retry_after=1,
            )
        future: Future[Receipt] = Future()
        self._jobs.put((change, future))
        return future

    def _commit(self, jobs: list[_Job]) -> None:
        # A future that is marked as running cannot be cancelled during the commit by a request that times out.
        jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
        if not jobs:
            return
        try:
            outcomes = self._log.write([change for change, _ in jobs])
        except LogError as error:
            self._on_trouble(str(error))
            outcome = "so no part of this request was accepted"
            if isinstance(error, InDoubtError):
                outcome = "and it is unknown whether this request was accepted"
            rejection = unavailable(
                f"the log could not be written, {outcome}",
                "send it again with the same IDs; the operator's log shows the cause",
            )
            for _, future in jobs:
                future.set_exception(rejection)
        except Exception as error:
            self._on_trouble(repr(error))
            for _, future in jobs:
                future.set_exception(error)
        else:
            for (_, future), became in zip(jobs, outcomes, strict=True):
                if isinstance(became, RequestError):
                    future.set_exception(became)
                else:
                    future.set_result(became)

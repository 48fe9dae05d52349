"""One thread that writes: requests that wait while a commit is under way are committed together by the next.

A commit costs a turn of the disk, whatever it holds. Requests of many clients therefore share commits, and
each hears of its own rows only when they are durable.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from mlca.serve.database import InDoubtError, LogError
from mlca.serve.log import Log, Receipt
from mlca.serve.log_changes import LogChange
from mlca.serve.request_errors import RequestError, unavailable
from mlca.serve.worker_threads import BatchWorker

# Requests that one transaction takes, and that may wait: 50 commits a second are a slow disk's.
_TOGETHER = 64
_WAITING = 512

_Job = tuple[LogChange, "Future[Receipt]"]


class Committer:
    """Writes to the log.

    Parameters
    ----------
    log : Log
        The log.
    on_trouble : callable
        Told in a sentence when the log could not be written.
    """

    def __init__(self, log: Log, on_trouble: Callable[[str], None]) -> None:
        self._log = log
        self._on_trouble = on_trouble
        self._jobs = BatchWorker("mlca-committer", self._commit, _TOGETHER, lambda job: 1)
        self.start, self.stop = self._jobs.start, self._jobs.stop

    def submit(self, change: LogChange) -> Future[Receipt]:
        """Hand in a change; the future has its receipt once it is durable."""
        if self._jobs.n_waiting >= _WAITING:
            raise RequestError(
                429, "too many requests wait to be written", "send fewer at a time, or larger batches", retry_after=1
            )
        future: Future[Receipt] = Future()
        self._jobs.put((change, future))
        return future

    def _commit(self, jobs: list[_Job]) -> None:
        # Who has given up has heard that nothing is certain; from here on giving up cannot disturb the others.
        jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
        if not jobs:
            return
        try:
            outcomes = self._log.write([change for change, _ in jobs])
        except LogError as error:
            self._on_trouble(str(error))
            outcome = "so nothing of this request was taken"
            if isinstance(error, InDoubtError):
                outcome = "and whether this request was taken is not known"
            refusal = unavailable(
                f"the log could not be written, {outcome}",
                "send it again with the same ids; the service's own log tells the reason",
            )
            for _, future in jobs:
                future.set_exception(refusal)
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

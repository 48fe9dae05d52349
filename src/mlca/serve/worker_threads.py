"""Threads that take work off the event loop.

`BatchWorker` handles in one call all jobs that arrived during the previous call: the rows of many requests are
predicted together, and written to the log in one commit.

`SideWorker` reads and writes large JSON. The event loop serves all clients, so it must only do work of a few
milliseconds, and 16 MiB of JSON take a second. One thread is enough: two would compete with the event loop for the
global interpreter lock.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from mlca.serve.request_errors import RequestError

# Largest number of bytes of JSON that the event loop itself parses or encodes.
AT_ONCE = 2**18
# Largest total size of JSON that waits for the thread, in bytes.
_MOST_WAITING = 2**27

Job = TypeVar("Job")
SideArguments = ParamSpec("SideArguments")
Done = TypeVar("Done")


class BatchWorker(Generic[Job]):
    """Takes jobs from any thread and handles all waiting jobs in one call.

    Parameters
    ----------
    name : str
        The name of the thread.
    do : callable
        Handles a list of jobs; it must not raise.
    most : int
        The total size from which no more jobs are added to a call.
    size : callable
        Returns the size of a job.
    """

    def __init__(self, name: str, do: Callable[[list[Job]], None], most: int, size: Callable[[Job], int]) -> None:
        self._do = do
        self._most = most
        self._size = size
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Handle the waiting jobs, then end the thread."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def put(self, job: Job) -> None:
        """Queue a job for the next call."""
        self._jobs.put(job)

    @property
    def n_waiting(self) -> int:
        """The approximate number of waiting jobs."""
        return self._jobs.qsize()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs, taken = [job], self._size(job)
            last = False
            while taken < self._most and not last and not self._jobs.empty():
                more = self._jobs.get()
                if more is None:
                    last = True
                else:
                    jobs.append(more)
                    taken += self._size(more)
            self._do(jobs)
            if last:
                return


class SideWorker:
    """Runs functions that handle large JSON in a thread, and other functions directly."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "mlca-side")
        self._waiting = 0

    async def __call__(
        self,
        size: int,
        do: Callable[SideArguments, Done],
        *args: SideArguments.args,
        **options: SideArguments.kwargs,
    ) -> Done:
        """Call a function directly, or in the thread if it handles more than `AT_ONCE` bytes."""
        if size <= AT_ONCE:
            return do(*args, **options)
        if self._waiting + size > _MOST_WAITING:
            raise RequestError(429, "too many large requests are waiting", "send fewer at a time", retry_after=1)
        self._waiting += size
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, partial(do, *args, **options))
        finally:
            self._waiting -= size

    def stop(self) -> None:
        """End the thread after the current job; cancel waiting jobs."""
        self._pool.shutdown(cancel_futures=True)

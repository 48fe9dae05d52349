"""A thread that does together what waits: jobs that come while it works are its next turn."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Gatherer(Generic[Job]):
    """Takes jobs from any thread, and does as many as wait in one go.

    Parameters
    ----------
    name : str
        The name of the thread.
    do : callable
        Does a list of jobs; it must not raise.
    most : int
        How much one turn takes.
    size : callable
        How much of it a job is.
    """

    def __init__(self, name: str, do: Callable[[list[Job]], None], most: int, size: Callable[[Job], int]) -> None:
        self._do = do
        self._most = most
        self._size = size
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Do what is waiting, and end."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def put(self, job: Job) -> None:
        """Let a job wait for the next turn."""
        self._jobs.put(job)

    @property
    def n_waiting(self) -> int:
        """About how many jobs wait."""
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

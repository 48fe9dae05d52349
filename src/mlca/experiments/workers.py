"""Workers: processes that run tasks one after another, and can be killed during a task.

A fit may spend hours in compiled code, where no signal handler or thread can stop it, and a faulty fit may crash its
process. So tasks never run in the process that stores results. The caller (the main process, a thread of joblib or a
process of Dask) takes a free worker, or starts one, sends it the task and reads its messages:

    begins, ends, begins, ends, ...     around every fit; the time limit applies in between
    an Outcome                          at the end of the task; the worker is free again

A worker that exceeds the limit is killed. If a worker crashes, its task fails, but the run continues. A worker exits
as soon as the pipe to its parent closes, so it also exits if the parent is killed.

Every worker uses one thread, so the number of jobs is the number of busy cores, and libraries' threads do not affect
timings.
"""

from __future__ import annotations

import os
import pickle
import platform
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import IO, Any

from mlca.experiments.tasks import Outcome, Task, fingerprint

BEGINS, ENDS = "begins", "ends"

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# The free workers of this process. Appending and popping are atomic, so threads need no lock.
_free: list[Worker] = []


def attempt(task: Task, code: str, time_limit: float | None) -> Outcome:
    """Run a task on a free worker process, or on a new one.

    Parameters
    ----------
    task : Task
        The task.
    code : str
        The fingerprint of the code that planned the task.
    time_limit : float or None
        The time limit per fit, in seconds.

    Returns
    -------
    Outcome
        The outcome; a failure is returned as an outcome, not raised.
    """
    try:
        worker = _free.pop()
    except IndexError:
        worker = Worker()
    outcome = worker.do(task, code, time_limit)
    if worker.is_alive():
        _free.append(worker)
    return outcome


class Worker:
    """The parent's handle to a worker process: starts it, sends tasks, receives outcomes."""

    def __init__(self) -> None:
        # Not multiprocessing, which does not allow Dask's workers to have children, because they are daemonic.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mlca.experiments.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a worker was started without pipes")
        self._tasks: IO[bytes] = self._process.stdin
        self._news: IO[bytes] = self._process.stdout

    def is_alive(self) -> bool:
        """Return whether the process still runs, so that it can take another task."""
        return self._process.poll() is None

    def do(self, task: Task, code: str, time_limit: float | None) -> Outcome:
        """Run a task and return its outcome; kill the process if a fit exceeds the limit."""
        started = perf_counter()
        too_long = threading.Event()
        alarm: threading.Timer | None = None

        def give_up() -> None:
            too_long.set()
            self._process.kill()

        try:
            pickle.dump((task, code), self._tasks)
            self._tasks.flush()
            while True:
                news = pickle.load(self._news)
                if alarm is not None:
                    alarm.cancel()
                if isinstance(news, Outcome):
                    return news
                if news == BEGINS and time_limit is not None:
                    alarm = threading.Timer(time_limit, give_up)
                    alarm.daemon = True
                    alarm.start()
        except (EOFError, OSError, pickle.UnpicklingError):
            exit_code = self._process.wait()
        if too_long.is_set() and time_limit is not None:
            return Outcome(task, "too long", {}, {}, f"a fit took more than {time_limit:g} seconds", time_limit)
        return Outcome(
            task, "failed", {}, {}, f"the worker process died with exit code {exit_code}", perf_counter() - started
        )

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._tasks, self._news):
            with suppress(OSError):  # buffered data cannot be sent to a killed process
                pipe.close()


@contextmanager
def closing_workers() -> Iterator[None]:
    """End all free workers on exit; until then, they are reused, as starting takes seconds."""
    try:
        yield
    finally:
        while _free:
            _free.pop().close()


def main() -> None:
    """Run tasks in the worker process until the pipe to the parent is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    news = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with the pickles
    tasks: queue.SimpleQueue[tuple[Task, str]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(tasks,), daemon=True).start()

    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        while True:
            outcome = _do(*tasks.get(), news)
            _send(outcome, news)


def _receive(tasks: queue.SimpleQueue[tuple[Task, str]]) -> None:
    """Read tasks from the pipe; exit when it is closed, even during a computation."""
    while True:
        try:
            tasks.put(pickle.load(sys.stdin.buffer))
        except EOFError:
            os._exit(0)


def _do(task: Task, code: str, news: IO[bytes]) -> Outcome:
    started = perf_counter()
    # Sources may change during a run, and a worker that starts later imports the new sources.
    if code != fingerprint():
        trouble = f"mlca on {platform.node()} has other sources than at the start of the run; update it and run again"
        return Outcome(task, "failed", {}, {}, trouble, perf_counter() - started)
    try:
        from mlca.experiments.work import do

        found = do(task, lambda begins: _send(BEGINS if begins else ENDS, news))
    except Exception:
        return Outcome(task, "failed", {}, {}, traceback.format_exc(), perf_counter() - started)
    return Outcome(task, "done", found.values, found.pictures, "", perf_counter() - started)


def _send(message: Any, news: IO[bytes]) -> None:
    pickle.dump(message, news)
    news.flush()


if __name__ == "__main__":
    main()

"""Execution of tasks: one after another, on several cores, or on a cluster.

`execute` stores the outcomes of tasks as they arrive, in any order. So a killed run loses at most the tasks in
progress, and can be resumed.

On one machine, joblib distributes the tasks to one thread per job, and each thread uses its own worker process (see
`workers`), because killing one of joblib's own processes during a task would lose the other tasks. On a cluster, each
Dask worker also uses such a process; the tasks of a Dask worker that dies are assigned to another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlca.experiments.store import Store
from mlca.experiments.tasks import Outcome, Task, fingerprint
from mlca.experiments.workers import attempt
from mlca.optional import needing

SECONDS_TO_ANSWER = 30  # timeout for connecting to a scheduler


def execute(
    tasks: Sequence[Task],
    store: Store,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    time_limit: float | None = None,
    notify: Callable[[Outcome], None] = lambda outcome: None,
) -> None:
    """Run all tasks and store their outcomes.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks.
    store : Store
        The store of outcomes.
    jobs : int, default=1
        The number of parallel tasks, each on one thread.
    cluster : str, optional
        The address of a Dask scheduler, whose workers then run the tasks; in this case `jobs` has no effect.
    time_limit : float, optional
        The time limit per fit, in seconds.
    notify : callable, optional
        Called with every outcome after it has been stored.
    """
    done = _on_cluster(tasks, cluster, time_limit) if cluster else _here(tasks, jobs, time_limit)
    for outcome in done:
        store.put(outcome)
        notify(outcome)


def _here(tasks: Sequence[Task], jobs: int, time_limit: float | None) -> Iterator[Outcome]:
    from joblib import Parallel, delayed

    code = fingerprint()
    # Batches of one task: the results of a larger batch would be delayed until all its tasks are done.
    parallel = Parallel(n_jobs=jobs, backend="threading", return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(attempt)(task, code, time_limit) for task in tasks)


def _on_cluster(tasks: Sequence[Task], address: str, time_limit: float | None) -> Iterator[Outcome]:
    with needing("--cluster", "dask"):
        from distributed import Client, as_completed
    try:
        client: Any = Client(address, timeout=SECONDS_TO_ANSWER)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ValueError(f"no Dask scheduler at {address} ({error}): start one with `dask scheduler`") from None
    with client:
        by_key = {task.key: task for task in tasks}
        futures = [
            client.submit(attempt, task, fingerprint(), time_limit, key=key, pure=False) for key, task in by_key.items()
        ]
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            trouble = future.exception()
            if trouble is None:
                yield future.result()
            else:  # Dask gave up after several workers had died while running the task
                yield Outcome(by_key[future.key], "failed", {}, {}, f"Dask could not run the task: {trouble!r}")
            future.release()

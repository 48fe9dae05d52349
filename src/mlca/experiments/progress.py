"""Progress: a bar with rate and time left on a terminal, if rich can draw it; a few plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from mlca.experiments.tasks import Outcome

SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[Outcome], None]]:
    """Show how far `total` tasks are; yields what to call with every outcome.

    Examples
    --------
    >>> with progress("nodes", 2) as tell:
    ...     pass
    nodes: 2 tasks
    """
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        seen = False
    else:
        seen = sys.stdout.isatty()
    if not seen:
        yield _plain_lines(title, total)
        return
    columns = (
        TextColumn("{task.description:10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[latest]}", style="dim"),
    )
    with Progress(*columns) as bar:
        running = bar.add_task(title, total=total, rate="", latest="")
        started = monotonic()

        def tell(outcome: Outcome) -> None:
            done = bar.tasks[running].completed + 1
            rate = f"{done / (monotonic() - started):.1f}/s"
            bar.update(running, advance=1, rate=rate, latest=f"{outcome.task.algorithm} on {outcome.task.dataset}")
            if outcome.status != "done":
                bar.console.print(_complaint(outcome), markup=False)

        yield tell


def _plain_lines(title: str, total: int) -> Callable[[Outcome], None]:
    print(f"{title}: {total} tasks", flush=True)
    started = last = monotonic()
    done = 0

    def tell(outcome: Outcome) -> None:
        nonlocal done, last
        done += 1
        now = monotonic()
        if outcome.status != "done":
            print(_complaint(outcome), flush=True)
        if done == total or now - last > SECONDS_BETWEEN_LINES:
            rate = done / (now - started)
            left = f", {(total - done) / rate:.0f} s left" if done < total else ""
            print(f"{title}: {done} of {total}, {rate:.2f}/s{left}", flush=True)
            last = now

    return tell


def _complaint(outcome: Outcome) -> str:
    reason = outcome.trouble.strip().splitlines()[-1]
    return f"  {outcome.status}: {outcome.task}: {reason}"

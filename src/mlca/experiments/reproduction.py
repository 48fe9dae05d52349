"""Implementation of ``mlca reproduce``: runs the tasks of a scope and writes the report.

On a terminal, if rich is installed, progress is shown as a bar with rate and remaining time; otherwise as plain lines.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic

from mlca import __version__
from mlca.experiments.execution import execute
from mlca.experiments.report import Report, write_report
from mlca.experiments.scope import Scope, search_tasks, with_chosen
from mlca.experiments.store import Store
from mlca.experiments.studies import STUDIES
from mlca.experiments.tasks import LIBRARIES, Outcome, Task, fingerprint
from mlca.experiments.workers import closing_workers

STORE = "results.sqlite"


QUICK_NOTICE = (
    "A quick run (--quick): few folds and seeds, small datasets, short streams. "
    "Its results only show that everything works; do not cite them."
)


@dataclass(frozen=True)
class Machinery:
    """Settings for running tasks: parallel tasks, cluster and time limit.

    Attributes
    ----------
    jobs : int
        The number of parallel tasks.
    cluster : str or None
        The address of a Dask scheduler whose workers run the tasks.
    time_limit : float or None
        The time limit per fit, in seconds.
    """

    jobs: int = 1
    cluster: str | None = None
    time_limit: float | None = None


def reproduce(
    names: Sequence[str], scope: Scope, folder: Path, machinery: Machinery, *, tune: bool = False
) -> list[Path]:
    """Run experiments and write the report.

    Parameters
    ----------
    names : sequence of str
        The names of the experiments: keys of `STUDIES`.
    scope : Scope
        The part of the paper that the run covers.
    folder : Path
        The folder for the results and the report. Existing results are reused.
    machinery : Machinery
        The settings for running tasks.
    tune : bool, default=False
        Whether to search the paper's grids instead of taking its tuned parameters.

    Returns
    -------
    list of Path
        The files of the report.
    """
    import matplotlib

    matplotlib.use("agg")  # figures are written to files, so no display is needed
    with Store(folder / STORE) as store, closing_workers():
        if tune:
            search = search_tasks(scope)
            _do_missing("search", search, store, machinery)
            scope = with_chosen(scope, store.get(search))
        for name in names:
            _do_missing(name, STUDIES[name].tasks(scope), store, machinery)
        sections = tuple(
            make_section(scope, store.get(dict.fromkeys(STUDIES[name].tasks(scope))))
            for name in names
            for make_section in STUDIES[name].sections
        )
    notice = "" if scope.patient else QUICK_NOTICE
    return write_report(Report("The paper, reproduced", sections, facts(machinery), notice), folder)


def _do_missing(name: str, tasks: list[Task], store: Store, machinery: Machinery) -> None:
    missing = store.missing(tasks, machinery.time_limit)
    if not missing:
        return
    with progress(name, len(missing)) as notify:
        execute(
            missing,
            store,
            jobs=machinery.jobs,
            cluster=machinery.cluster,
            time_limit=machinery.time_limit,
            notify=notify,
        )


def facts(machinery: Machinery) -> tuple[tuple[str, str], ...]:
    """Return the conditions of the run: versions, machine, settings, date and command."""
    limit = "none" if machinery.time_limit is None else f"{machinery.time_limit:g} seconds per fit"
    return (
        ("mlca", f"{__version__}, code {fingerprint()}"),
        ("Python", platform.python_version()),
        *((library, _version(library)) for library in (*LIBRARIES, "joblib", "dask")),
        ("machine", f"{platform.platform()}, {_processor()}, {os.cpu_count()} cores"),
        ("tasks at a time", machinery.cluster or str(machinery.jobs)),
        ("threads per task", "1"),
        ("time limit", limit),
        ("date", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("command", " ".join(["mlca", *sys.argv[1:]])),
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """Return the name of the processor; on Linux from /proc/cpuinfo, else from Python."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[Outcome], None]]:
    """Show the progress of `total` tasks; yield a function to call with every outcome.

    Examples
    --------
    >>> with progress("nodes", 2) as notify:
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

        def notify(outcome: Outcome) -> None:
            done = bar.tasks[running].completed + 1
            rate = f"{done / (monotonic() - started):.1f}/s"
            bar.update(running, advance=1, rate=rate, latest=f"{outcome.task.algorithm} on {outcome.task.dataset}")
            if outcome.status != "done":
                bar.console.print(_complaint(outcome), markup=False)

        yield notify


def _plain_lines(title: str, total: int) -> Callable[[Outcome], None]:
    print(f"{title}: {total} tasks", flush=True)
    started = last = monotonic()
    done = 0

    def notify(outcome: Outcome) -> None:
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

    return notify


def _complaint(outcome: Outcome) -> str:
    reason = outcome.trouble.strip().splitlines()[-1]
    return f"  {outcome.status}: {outcome.task}: {reason}"

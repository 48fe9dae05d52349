"""One run of ``mlca reproduce``: from a scope to a report."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlca import __version__
from mlca.experiments.execution import execute
from mlca.experiments.progress import progress
from mlca.experiments.report import Report, write_report
from mlca.experiments.scope import Scope
from mlca.experiments.store import Store
from mlca.experiments.studies import STUDIES
from mlca.experiments.tasks import LIBRARIES, Task, fingerprint
from mlca.experiments.tuning import search_tasks, with_chosen
from mlca.experiments.workers import closing_workers

STORE = "results.sqlite"


QUICK_NOTICE = (
    "A quick look (--quick): few folds and seeds, small datasets, short streams. "
    "Its figures show that everything runs; do not cite them."
)


@dataclass(frozen=True)
class Machinery:
    """How tasks are done.

    Attributes
    ----------
    jobs : int
        How many at a time.
    cluster : str or None
        The address of a Dask scheduler whose workers do them.
    time_limit : float or None
        Seconds that one fit may take.
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
        The experiments, keys of `STUDIES`.
    scope : Scope
        What part of the paper.
    folder : Path
        Where results and report go. Results that are there already are used.
    machinery : Machinery
        How tasks are done.
    tune : bool, default=False
        Whether to search the paper's grids instead of taking its tuned parameters.

    Returns
    -------
    list of Path
        The files of the report.
    """
    import matplotlib

    matplotlib.use("agg")  # pictures go into files; no screen is needed
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
    with progress(name, len(missing)) as tell:
        execute(
            missing,
            store,
            jobs=machinery.jobs,
            cluster=machinery.cluster,
            time_limit=machinery.time_limit,
            tell=tell,
        )


def facts(machinery: Machinery) -> tuple[tuple[str, str], ...]:
    """Return what a reader needs to judge the numbers: versions, machine, date, command."""
    limit = "none" if machinery.time_limit is None else f"{machinery.time_limit:g} seconds a fit"
    return (
        ("mlca", f"{__version__}, code {fingerprint()}"),
        ("Python", platform.python_version()),
        *((library, _version(library)) for library in (*LIBRARIES, "joblib", "dask")),
        ("machine", f"{platform.platform()}, {_processor()}, {os.cpu_count()} cores"),
        ("tasks at a time", machinery.cluster or str(machinery.jobs)),
        ("threads a task", "1"),
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
    """Name the processor; Python knows it on some systems only."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()

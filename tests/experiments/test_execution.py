"""The same tasks in one process, in several, and on a cluster; killed runs and workers."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from mlca.experiments.execution import execute
from mlca.experiments.scope import scope_of
from mlca.experiments.store import Store
from mlca.experiments.studies import STUDIES
from mlca.experiments.tasks import Task
from mlca.experiments.workers import closing_workers

# Two runs may differ only in times.
TIMES = ("fit_seconds", "predict_seconds")


def planned():
    scope = scope_of(datasets=["flags"], algorithms=["mlknn", "mcic"], repetitions=9)
    return STUDIES["comparison"].tasks(scope)


def numbers(store, tasks):
    outcomes = store.get(tasks)
    assert {outcome.status for outcome in outcomes.values()} == {"done"}
    return {
        task.key: {name: value for name, value in outcome.values.items() if name not in TIMES}
        for task, outcome in outcomes.items()
    }


@pytest.fixture(scope="module")
def serial(data_folder, tmp_path_factory):
    """The outcomes of the tasks, run one after another."""
    path = tmp_path_factory.mktemp("serial") / "results.sqlite"
    with pytest.MonkeyPatch.context() as patch, Store(path) as store, closing_workers():
        patch.setenv("MLCA_DATA", str(data_folder))
        execute(planned(), store)
        return numbers(store, planned())


def test_two_jobs_equal_one_and_failures_stop_nothing(serial, made_up_data, tmp_path):
    bad = Task("fold", "MLCA", (("vigilance", 7.0),), "flags", repetition=0, fold=0)
    told = []
    with Store(tmp_path / "parallel.sqlite") as store:
        execute([bad, *planned()], store, jobs=2, notify=told.append)
        assert numbers(store, planned()) == serial
        failed = store.get([bad])[bad]
        assert store.missing([bad, *planned()], None) == [bad]
    assert len(told) == 1 + len(planned()) == 1 + 18
    assert failed.status == "failed"
    assert "ValueError: vigilance" in failed.trouble


# `mlca reproduce`, killed when its fifth outcome is in the store.
KILLED_RUN = """
import os, signal, sys
from mlca.cli import main
from mlca.experiments.store import Store
put, left = Store.put, 5
def put_and_die(store, outcome):
    global left
    put(store, outcome)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Store.put = put_and_die
main(sys.argv[1:])
"""


def test_killed_run_resumes(made_up_data, tmp_path):
    words = ["reproduce", "comparison", "--datasets", "emotions", "--algorithms", "mlknn", "mcic", "mlsaknn"]
    words += ["--out", str(tmp_path / "out")]
    path = tmp_path / "out" / "results.sqlite"
    command = [sys.executable, "-c", KILLED_RUN, *words]
    run = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=240, check=False)
    assert run.returncode == -signal.SIGKILL
    before = rows(path)
    assert len(before) == 5
    subprocess.run([sys.executable, "-m", "mlca", *words], check=True, stdout=subprocess.DEVNULL)
    after = rows(path)
    assert len(after) == 60
    assert {key: after[key] for key in before} == before, "what was done before has been done again"
    assert (tmp_path / "out" / "report.html").exists()


def wait_until(condition, seconds=240.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def rows(path):
    """Return finishing time and duration of each task, which differ between runs."""
    database = sqlite3.connect(path, timeout=60)
    try:
        return {key: rest for key, *rest in database.execute("SELECT key, finished, seconds, measured FROM results")}
    finally:
        database.close()


@pytest.fixture
def cluster(made_up_data, tmp_path):
    """Start a scheduler and two workers of Dask on this machine."""
    pytest.importorskip("distributed")
    quick = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s", "DASK_DISTRIBUTED__WORKER__DAEMON": "True"}
    address = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    shared = {"env": os.environ | quick, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(address)]
    worker = ["worker", "--scheduler-file", str(address), "--host", "127.0.0.1", "--no-nanny", "--no-dashboard"]
    worker += ["--nthreads", "1", "--local-directory", str(tmp_path / "dask")]
    processes = [subprocess.Popen(dask + scheduler, **shared)]
    try:
        wait_until(address.exists)
        processes += [subprocess.Popen(dask + worker, **shared) for _ in range(2)]
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_cluster_that_loses_a_worker_equals_one_process(serial, cluster, tmp_path):
    from distributed import Client

    scheduler_file, (_, first, _) = cluster
    with Client(scheduler_file=str(scheduler_file), timeout=30) as client:
        client.wait_for_workers(2, timeout=60)
        address = client.scheduler.address

    def kill_a_worker(outcome):
        first.kill()

    with Store(tmp_path / "cluster.sqlite") as store:
        execute(planned(), store, cluster=address, notify=kill_a_worker)
        assert numbers(store, planned()) == serial
    assert first.wait() == -signal.SIGKILL


def test_unreachable_cluster_is_reported(tmp_path, made_up_data, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("mlca.experiments.execution.SECONDS_TO_ANSWER", 1)
    with Store(tmp_path / "results.sqlite") as store, pytest.raises(ValueError, match="no Dask scheduler at"):
        execute(planned(), store, cluster="tcp://127.0.0.1:9")

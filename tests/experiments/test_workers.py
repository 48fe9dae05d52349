import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from mlca.experiments.tasks import Task, fingerprint
from mlca.experiments.workers import ONE_THREAD, Worker, attempt

SHORT = Task("growth", "MLCA", (("vigilance", 0.0),), "generated", size=50, nodes=60)
LONG = Task("growth", "MLCA", (("vigilance", 0.0),), "generated", size=3_000_000, nodes=2_000)


@pytest.fixture
def one_worker():
    worker = Worker()
    yield worker
    worker.close()


def test_timeout_ends_a_fit_and_the_next_task_runs():
    outcome = attempt(LONG, fingerprint(), time_limit=0.2)
    assert (outcome.status, outcome.seconds) == ("too long", 0.2)
    assert outcome.trouble == "a fit took more than 0.2 seconds"
    assert attempt(SHORT, fingerprint(), time_limit=60).status == "done"


def test_failures_carry_their_traceback_and_leave_the_worker_in_place(one_worker):
    broken = Task("fold", "MLCA", (("vigilance", 7.0),), "no such dataset", repetition=0, fold=0)
    failed = one_worker.do(broken, fingerprint(), None)
    assert failed.status == "failed"
    assert failed.trouble.startswith("Traceback")
    assert "no such dataset" in failed.trouble
    done = one_worker.do(SHORT, fingerprint(), None)
    assert done.values["nodes"] == 60


def test_dead_worker_is_a_failed_task(one_worker):
    threading.Timer(1.0, os.kill, (one_worker._process.pid, signal.SIGKILL)).start()
    outcome = one_worker.do(LONG, fingerprint(), None)
    assert (outcome.status, outcome.trouble) == ("failed", "the worker process died with exit code -9")
    assert not one_worker.is_alive()


def test_worker_ends_with_its_parent():
    script = (
        "from mlca.experiments.workers import Worker\n"
        "from mlca.experiments.tasks import Task\n"
        "worker = Worker()\n"
        "print(worker._process.pid, flush=True)\n"
        f"worker.do({LONG!r}, {fingerprint()!r}, None)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        try:
            child = psutil.Process(int(parent.stdout.readline()))
        finally:
            parent.kill()
    outlived = psutil.wait_procs([child], timeout=30)[1]
    for process in outlived:
        process.kill()
    assert outlived == []


def test_other_code_version_is_rejected():
    outcome = attempt(SHORT, "0123456789abcdef", None)
    assert outcome.status == "failed"
    assert "has other sources than at the start of the run" in outcome.trouble


def test_workers_use_one_thread_per_numeric_library():
    ask = (
        "import numpy, scipy.linalg, threadpoolctl\n"
        "print({pool['num_threads'] for pool in threadpoolctl.threadpool_info()})"
    )
    answer = subprocess.run(
        [sys.executable, "-c", ask], env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "{1}"

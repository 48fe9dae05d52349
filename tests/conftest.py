"""Settings of all tests: threads, Ctrl-C, deadlines, and skipping without real datasets."""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

# Set before NumPy is imported: there is one test process per core, and waiting BLAS threads would slow down all of them
# (GLOCAL's oracle: 87 s instead of 4).
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Shells start background jobs with Ctrl-C ignored, and children inherit this; tests that send it would wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without garbage collection, the collection of five thousand tests takes 6 s instead of 9, in each process.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


# No test asserts on time, so Hypothesis has no deadline. Unless a test sets its number of examples, `make test` runs 50
# (half of Hypothesis's default), and `make test-all` runs 400.
settings.register_profile("mlca", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.register_profile("thorough", settings.get_profile("mlca"), max_examples=400)
settings.load_profile("mlca")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Stop pytest-cov's second tracer in a worker, because pausing it would activate the first one again."""
    if hasattr(session.config, "workerinput") and "coverage" in sys.modules:
        first = sys.modules["coverage"].Coverage.current()
        if first is not None:
            first.stop()


def pytest_collection_modifyitems(items):
    for item in items:
        if not item.get_closest_marker("traced"):
            item.add_marker(pytest.mark.no_cover)
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)
    if os.environ.get("MLCA_DATA"):
        return
    reason = "needs the real datasets: set MLCA_DATA to their folder"
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=reason))

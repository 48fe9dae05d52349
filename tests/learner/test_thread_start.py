"""Behaviour if the system cannot start threads."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, and reads /proc")

# Enough memory for the model, but not for the stack of a thread (8 MiB).
WITHOUT_THREADS = """
import resource, threading
import numpy as np
from mlca import MLCA

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 20))
y = [{"a"} if row[0] > 0 else {"b"} for row in X]
alone = MLCA(window=30).partial_fit(X[:1000], y[:1000])
together = MLCA(window=30, n_jobs=2).set_params(n_jobs=None).partial_fit(X[:1000], y[:1000]).set_params(n_jobs=2)
expected = alone.predict_proba(X)
alone.partial_fit(X[1000:], y[1000:])
threading.stack_size(2**26)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 7 * 2**20, resource.RLIM_INFINITY))
try:
    threading.Thread(target=print).start()
    print("threads start all the same")
except RuntimeError:
    pass
assert np.array_equal(together.predict_proba(X), expected)
together.partial_fit(X[1000:], y[1000:])
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert np.array_equal(together.predict_proba(X), alone.predict_proba(X))
print("equal")
"""


def test_learning_and_predicting_continue_if_no_thread_can_be_started():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THREADS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr

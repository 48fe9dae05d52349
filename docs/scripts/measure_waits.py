"""Measure, for docs/inside.md, how long threads wait while a large model is read.

    python docs/scripts/measure_waits.py [NODES]

One thread learns row by row, one predicts row by row, and the main thread reads the model with one slow operation after
another. A wait is the duration of a call. The first line, without reading, is the baseline. Waits for Python's global
interpreter lock, which passes to another thread every few milliseconds, are included.
"""

import copy
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

import numpy as np

from mlca import MLCA

N_FEATURES = 100
TIMES = 5


def read_in_turn(model, folder):
    """Yield the name and the function of each operation that reads a model."""
    yield "nothing", lambda: time.sleep(0.5)
    for name in ("prototypes_", "counts_", "bandwidths_", "label_counts_"):
        yield name, lambda name=name: getattr(model, name)
    yield "save", lambda: model.save(folder / "model.mlca")
    yield "explain", lambda: model.explain(np.zeros(N_FEATURES))
    yield "deepcopy", lambda: copy.deepcopy(model)


def timed(call, waits, stop):
    """Call a function repeatedly until the event is set, and record the durations."""
    while not stop.is_set():
        begun = time.perf_counter()
        call()
        waits.append(time.perf_counter() - begun)


def longest_waits(model, read, rows):
    """Return the longest waits for learning and predicting in ms, and the seconds per read."""
    stop, learning, predicting = threading.Event(), deque(), deque()
    index = iter(range(10**9))
    learn = lambda: model.partial_fit(rows[[next(index) % len(rows)]], [{"a"}])  # noqa: E731
    threads = [
        threading.Thread(target=timed, args=(learn, learning, stop)),
        threading.Thread(target=timed, args=(lambda: model.predict(rows[:1]), predicting, stop)),
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    begun = time.perf_counter()
    for _ in range(TIMES):
        read()
    seconds = (time.perf_counter() - begun) / TIMES
    stop.set()
    for thread in threads:
        thread.join(60)
    return 1e3 * max(learning), 1e3 * max(predicting), seconds


def main(n_nodes):
    """Print the longest waits while a model with the given number of nodes is read."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_nodes, N_FEATURES))
    model = MLCA.published("MLCA", vigilance=0.01, n_jobs=2).fit(rows, [{"a"}, {"b", "c"}] * (n_nodes // 2))
    model.set_params(n_jobs=1)
    print(f"{model.n_nodes_:,} nodes, {N_FEATURES} attributes; longest of {TIMES} times each, in milliseconds")
    print(f"{'read':>14} {'learner':>8} {'predictor':>9}   seconds of reading")
    with tempfile.TemporaryDirectory() as folder:
        for name, read in read_in_turn(model, Path(folder)):
            learner, predictor, seconds = longest_waits(model, read, rng.normal(size=(1000, N_FEATURES)))
            print(f"{name:>14} {learner:>8.1f} {predictor:>9.1f}   {seconds:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)

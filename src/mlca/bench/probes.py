"""Measures time, memory, and the machine's limit: kernel terms per second on one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from mlca.kernels import native

N_NODES, N_ATTRIBUTES, REPEATS = 64, 256, 50
RUNS = 200  # about a fifth of a second in total, because an idle processor needs time to speed up


def exp64() -> float:
    """Return the number of kernel terms that one thread computes per second in float64."""
    rng = np.random.default_rng(0)
    x, nodes = rng.random(N_ATTRIBUTES), rng.random((N_NODES, N_ATTRIBUTES))
    seconds = best_time(lambda: native.sum_exactly(x, nodes, 3.0, REPEATS), RUNS)
    return N_NODES * N_ATTRIBUTES * REPEATS / seconds


STATUS = Path("/proc/self/statm")
PAGE = 4096


def best_time(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return the time of the fastest of several runs in seconds, after a warm-up run."""
    work()
    return min(single_time(work) for _ in range(repeats))


def single_time(work: Callable[[], Any]) -> float:
    """Return the time of one run in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class PeakMemory:
    """A context that measures the growth of the process's memory.

    Attributes
    ----------
    growth : int or None
        The largest growth in bytes since the context was entered; None if the system does not report it.
    peak : int or None
        The largest memory use of the process in bytes; None if the system does not report it.
    """

    def __init__(self) -> None:
        self.growth: int | None = None
        self.peak: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if STATUS.exists():
            self._start = _resident()
            self.growth = 0
            self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self.growth is not None:
            self._stop.set()
            self._thread.join()

    def _watch(self) -> None:
        done = False
        while not done:
            done = self._stop.wait(0.005)
            self.growth = max(self.growth or 0, _resident() - self._start)
            self.peak = self._start + self.growth


def _resident() -> int:
    return int(STATUS.read_text().split()[1]) * PAGE

"""The machine's own limits: the bare summed kernel, one thread, data in cache."""

from __future__ import annotations

import numpy as np

from mlca.bench.clock import best_time
from mlca.kernels import native

N_NODES, N_ATTRIBUTES, REPEATS = 64, 256, 50
RUNS = 200  # a fifth of a second: a processor that was idle takes some time to wake up


def exp64() -> float:
    """Return how many exact kernel terms a second are summed in float64."""
    rng = np.random.default_rng(0)
    x, nodes = rng.random(N_ATTRIBUTES), rng.random((N_NODES, N_ATTRIBUTES))
    seconds = best_time(lambda: native.sum_exactly(x, nodes, 3.0, REPEATS), RUNS)
    return N_NODES * N_ATTRIBUTES * REPEATS / seconds


def exp32() -> float:
    """Return how many rough kernel terms a second are summed in float32."""
    rng = np.random.default_rng(0)
    x = rng.random(N_ATTRIBUTES).astype(np.float32)
    tile = rng.random((N_ATTRIBUTES, N_NODES)).astype(np.float32)
    seconds = best_time(lambda: native.sum_roughly(x, tile, 1.0, REPEATS), RUNS)
    return N_NODES * N_ATTRIBUTES * REPEATS / seconds

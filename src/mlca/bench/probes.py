"""The machine's own limits: the bare summed kernel, one thread, data in cache."""

from __future__ import annotations

import numpy as np

from mlca.bench.clock import best_time
from mlca.compiled import compiled, compiled_loosely
from mlca.learner.kernels.fixedpoint import common_sum
from mlca.learner.kernels.screen import rough_kernel

N_NODES, N_ATTRIBUTES, REPEATS = 64, 256, 50
RUNS = 200  # a fifth of a second: a processor that was idle takes some time to wake up


def exp64() -> float:
    """Return how many exact kernel terms a second are summed in float64."""
    rng = np.random.default_rng(0)
    x, nodes = rng.random(N_ATTRIBUTES), rng.random((N_NODES, N_ATTRIBUTES))
    seconds = best_time(lambda: _sum_exactly(x, nodes, 3.0, REPEATS), RUNS)
    return N_NODES * N_ATTRIBUTES * REPEATS / seconds


def exp32() -> float:
    """Return how many rough kernel terms a second are summed in float32."""
    rng = np.random.default_rng(0)
    x = rng.random(N_ATTRIBUTES).astype(np.float32)
    tile = rng.random((N_ATTRIBUTES, N_NODES)).astype(np.float32)
    sums = np.zeros(N_NODES, np.float32)
    seconds = best_time(lambda: _sum_roughly(x, tile, np.float32(1.0), sums, REPEATS), RUNS)
    return N_NODES * N_ATTRIBUTES * REPEATS / seconds


@compiled
def _sum_exactly(x: np.ndarray, nodes: np.ndarray, r: float, repeats: int) -> int:
    total = 0
    for _ in range(repeats):
        for k in range(nodes.shape[0]):
            total += common_sum(x, nodes[k], r)
    return total


@compiled_loosely
def _sum_roughly(x: np.ndarray, tile: np.ndarray, r: np.float32, sums: np.ndarray, repeats: int) -> None:
    for _ in range(repeats):
        for i in range(x.shape[0]):
            for j in range(sums.shape[0]):
                sums[j] += rough_kernel(x[i] - tile[i, j], r)

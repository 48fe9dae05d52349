"""Measure `mlca.dask.fit` with one and with two workers, and the cost of its steps.

    python docs/scripts/measure_scaling.py [--rows N] [--blocks N] [--repeats N]

The rows are generated, with 32 features; nearly every row becomes a node. Dask clusters of one and of two workers
learn the same blocks, one cluster after the other. The results are for docs/scaling.md.
"""

from __future__ import annotations

import argparse
import pickle
from time import perf_counter, process_time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import mlca.dask
from mlca import MLCA, merge


def main() -> None:
    """Measure fits and their steps, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=160_000)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    size = options.rows // options.blocks
    X = da.random.default_rng(0).normal(size=(options.rows, 32), chunks=(size, 32))
    y = (X[:, :6] > 0.5).astype(int)
    for _ in range(options.repeats):
        (wall, busy), (wall_of_two, busy_of_two) = (with_workers(n, X, y) for n in (1, 2))
        print(f"one worker {wall:.1f} s, two {wall_of_two:.1f} s: {wall / wall_of_two:.2f} times", flush=True)
        print(f"  CPU time of the busiest worker {busy:.1f} s, {busy_of_two:.1f} s: {busy / busy_of_two:.2f} times")
    steps(np.asarray(X[:size].compute()), np.asarray(y[:size].compute()), options.blocks)


def with_workers(n: int, X: Any, y: Any) -> tuple[float, float]:
    """Return the seconds of a fit with n worker processes, and the busiest one's CPU time."""
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n, timeout=120)
        mlca.dask.fit(MLCA(), X[:2000], y[:2000], timeout=120)  # lets the workers import modules
        before = client.run(process_time)
        began = perf_counter()
        mlca.dask.fit(MLCA(), X, y, timeout=600)
        seconds, after = perf_counter() - began, client.run(process_time)
        return seconds, max(after[worker] - before[worker] for worker in before)


def steps(X: Any, y: Any, n_blocks: int) -> None:
    """Print the processor time of learning a block, sending its model and appending models."""
    began = process_time()
    parts = [MLCA().fit(X, y)]
    print(f"learning a block of {len(X)} rows: {(process_time() - began) / len(X) * 1e6:.1f} us per row")
    began = process_time()
    sent = pickle.dumps(parts[0], protocol=5)
    parts += [pickle.loads(sent) for _ in range(n_blocks - 1)]
    taken = (process_time() - began) / n_blocks
    print(f"a model as bytes: {len(sent) / len(X):.0f} per node; reading it {taken / len(X) * 1e6:.1f} us per node")
    began = process_time()
    merge(parts, how="append")
    print(f"appending {n_blocks} models: {(process_time() - began) / len(X) / n_blocks * 1e6:.1f} us per node")


if __name__ == "__main__":
    main()

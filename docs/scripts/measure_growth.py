"""Measure time and memory for each tenth of a long stream whose rows become nodes.

    python docs/scripts/measure_growth.py [--rows N] [--search exact|cells] [--jobs N]

The rows are generated around a hundred centres, with 32 features, and nearly every row becomes a node. They are
generated in portions, so that only the model uses more and more memory. The results are for docs/scaling.md.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np

from mlca import MLCA
from mlca.bench.probes import PeakMemory
from mlca.bench.workloads import clusters

PORTION = 50_000


def main() -> None:
    """Learn the rows, and print a line per tenth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows (default: 10,000,000)")
    parser.add_argument("--search", default="cells", choices=("exact", "cells"), help="default: cells")
    parser.add_argument("--jobs", type=int, default=2, help="threads (default: 2)")
    options = parser.parse_args()
    centres, labels = clusters(100, 32)
    rng, model = np.random.default_rng(0), MLCA(search=options.search, n_jobs=options.jobs)
    n_portions, began = max(options.rows // PORTION, 10), perf_counter()
    size = options.rows // n_portions
    print("rows, minutes so far, microseconds per row by the clock and of CPU time, longest portion in s, peak MiB")
    with PeakMemory() as memory:
        for tenth in range(10):
            clock, busy, longest = 0.0, 0.0, 0.0
            for _ in range(n_portions * tenth // 10, n_portions * (tenth + 1) // 10):
                cluster = rng.integers(len(centres), size=size)
                X, Y = centres[cluster] + 0.5 * rng.normal(size=(size, 32)), labels[cluster]
                started, started_busy = perf_counter(), process_time()
                model.partial_fit(X, Y)
                taken = perf_counter() - started
                clock, busy, longest = clock + taken, busy + process_time() - started_busy, max(longest, taken)
            learned = n_portions * (tenth + 1) // 10 * size
            n_rows = learned - n_portions * tenth // 10 * size
            print(
                f"{learned:,} {(perf_counter() - began) / 60:.1f} {1e6 * clock / n_rows:.0f} {1e6 * busy / n_rows:.0f}",
                f"{longest:.1f} {(memory.peak or 0) / 2**20:,.0f}",
                flush=True,
            )
    print(f"{model.n_nodes_:,} nodes")


if __name__ == "__main__":
    main()

"""Measure the memory of a dense node, by the growth of the process during `MLCA().fit`.

    python docs/scripts/measure_node_memory.py

Each shape is measured in a separate process; the results are for docs/scaling.md. The script needs Linux with glibc.
"""

from __future__ import annotations

import ctypes
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from mlca import MLCA

SHAPES = ((60_000, 32), (30_000, 120), (15_000, 294))


def main() -> None:
    """Measure each shape in its own process, and print the bytes per node."""
    for shape in SHAPES:
        with get_context("spawn").Pool(1) as pool:
            grown, peak = pool.apply(bytes_per_node, shape)
        row = 8 * shape[1]
        print(f"{shape[1]} features: {grown:.0f} bytes per node, {grown / row:.2f} rows; peak {peak:.0f}")


def bytes_per_node(n_rows: int, n_features: int) -> tuple[float, float]:
    """Return the final and the peak growth of the process's memory per fitted node."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    y = [{f"label{k % 6}", f"label{(k + 1) % 6}"} for k in range(n_rows)]
    MLCA().fit(X[:2000], y[:2000])  # loads modules and allocates buffers first
    before = resident("VmRSS")
    model = MLCA().fit(X, y)
    return (resident("VmRSS") - before) / model.n_nodes_, (resident("VmHWM") - before) / model.n_nodes_


def resident(field: str) -> int:
    """Return a memory field of /proc/self/status in bytes, after releasing unused memory."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{field}:")[1].split()[0])


if __name__ == "__main__":
    main()

"""Measure how fast codes exclude nodes from a search, in C++ on one thread.

    MLCA_DATA=... python docs/scripts/measure_screening.py [--neighbors N] [dataset ...]

All rows of a dataset are nodes, and 256 of them are queries. The script compiles measure_screening.cpp with g++ for
this processor.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from mlca import MLCA
from mlca.bench.samples import sample

DATASETS = ("scene", "yeast", "mediamill")
ROWS_FOR_BANDWIDTH = 1000
# Turns the kernel into a power of 2: exp(-t^2 / (2 s^2)) = 2^-(t SCALE / s)^2
SCALE = float(np.sqrt(np.log2(np.e) / 2.0))
COMPILE = (
    "g++ -std=c++20 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-signed-zeros"
    " -ffinite-math-only -DMLCA_LEVEL=measured -DMLCA_MODULE=none -DMLCA_ARITHMETIC=exact"
)


def main() -> None:
    """Export the data, then compile and run the C++ program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neighbors", type=int, default=10)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    arguments = parser.parse_args()
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "screening"
        source = here / "measure_screening.cpp"
        kernels = here.parents[1] / "src" / "kernels"
        subprocess.run([*COMPILE.split(), f"-I{kernels}", str(source), "-o", str(program)], check=True)
        for name in arguments.datasets:
            data = sample(name)
            X = np.ascontiguousarray(data.X, np.float64)
            model = MLCA.published().fit(X[:ROWS_FOR_BANDWIDTH], data.Y[:ROWS_FOR_BANDWIDTH])
            factor = SCALE / float(np.median(model.bandwidths_))
            exported = Path(folder) / "rows.bin"
            exported.write_bytes(np.array(X.shape, np.int64).tobytes() + np.float64(factor).tobytes() + X.tobytes())
            print(name, flush=True)
            subprocess.run([str(program), str(exported), str(arguments.neighbors)], check=True)


if __name__ == "__main__":
    main()

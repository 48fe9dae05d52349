"""Datasets for benchmarks: real data if available, else generated data of the same shape."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from mlca.datasets import load_dataset, three_discs

# By dataset: rows, features, non-zeros per row (None: dense), labels, labels per row.
SHAPES = {
    "scene": (2407, 294, None, 6, 1.1),
    "yeast": (2417, 103, None, 14, 4.2),
    "mediamill": (30993, 120, None, 101, 4.4),
    "bibtex": (4880, 1836, 69, 159, 2.4),
    "delicious": (12920, 500, 18, 983, 19.0),
    "emotions": (593, 72, None, 6, 1.9),
    "langlog": (1460, 1004, None, 75, 1.2),
    "eurlex-4k": (15539, 5000, 236, 3993, 5.3),
}
DENSE = ("mediamill", "langlog")


@dataclass(frozen=True)
class Sample:
    """Rows and their labels (CSR indicator matrix), and whether the data are real."""

    name: str
    X: Any
    Y: Any
    real: bool


@cache
def sample(name: str) -> Sample:
    """Return a real or generated dataset by name; of large datasets, only training rows."""
    if name == "three discs":
        stage = three_discs(random_state=0)[0]
        return Sample(name, stage.X, sparse.csr_array(stage.Y), True)
    if os.environ.get("MLCA_DATA") and name != "eurlex-4k":
        bunch = load_dataset(name, subset="train" if name in ("mediamill", "bibtex", "delicious") else "all")
        X = bunch.X.toarray() if sparse.issparse(bunch.X) and name in DENSE else bunch.X
        return Sample(name, np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X, bunch.Y, True)
    return generated(name)


def generated(name: str) -> Sample:
    """Generate data of a dataset's shape: clusters of dense rows, or Zipf-like sparse rows."""
    n, d, nonzeros, q, cardinality = SHAPES[name]
    rng = np.random.default_rng(0)
    Y = sparse.random_array(
        (n, q), density=cardinality / q, format="csr", rng=rng, data_sampler=lambda size: np.ones(size)
    )
    if nonzeros is None:
        centres = rng.normal(0, 1, (20, d))
        X = centres[rng.integers(0, 20, n)] + rng.normal(0, 0.5, (n, d))
        return Sample(name, X, Y.astype(np.uint8), False)
    popularity = 1.0 / np.arange(10, d + 10)
    popularity /= popularity.sum()
    indices = np.concatenate([np.sort(rng.choice(d, nonzeros, False, popularity)) for _ in range(n)])
    data = np.ones(len(indices)) if name != "eurlex-4k" else rng.random(len(indices))
    rows = sparse.csr_array((data, indices, np.arange(n + 1) * nonzeros), shape=(n, d))
    return Sample(name, rows, Y.astype(np.uint8), False)

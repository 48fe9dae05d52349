"""Measure accuracy and nodes of merged models, compared with learning in sequence.

    MLCA_DATA=... python docs/scripts/measure_merging.py [--published] [--vigilance V] [--orders N] [dataset ...]

The training rows (of the official split, or else 90 % of all rows) are put in random order. One model learns them in
sequence. Then 2 to 32 models each learn a consecutive part, and are merged by replay and by append.
Every number is the mean over the orders; the table is in Markdown, for docs/merging.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca import MLCA, merge
from mlca.datasets import load_dataset
from mlca.metrics import evaluate

DATASETS = ("yeast", "scene", "tmc2007-500", "mediamill")
N_PARTS = (2, 4, 8, 16, 32)
MEASURES = ("exact_match", "example_f1", "macro_auc")
WAYS = ("in sequence", "replay", "append", "one part alone")


def main() -> None:
    """Parse the options, measure each dataset, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--published", action="store_true", help="measure the paper's algorithm")
    parser.add_argument("--vigilance", type=float, default=0.01)
    parser.add_argument("--orders", type=int, default=3)
    options = parser.parse_args()
    make = MLCA.published if options.published else MLCA
    print(f"| dataset | parts | nodes: {WAYS[0]}, {WAYS[1]}, {WAYS[2]} |", " | ".join(WAYS), "|")
    print("|---" * (3 + len(WAYS)) + "|")
    for name in options.datasets:
        for n_parts, figures in measure(name, lambda: make(vigilance=options.vigilance), options.orders):
            nodes = ", ".join(f"{count:.0f}" for count in figures[:3, 0])
            cells = (" ".join(f"{value:.3f}" for value in way[1:]) for way in figures)
            print(f"| {name} | {n_parts} | {nodes} |", " | ".join(cells), "|", flush=True)


def measure(name: str, make: Any, n_orders: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield, for each number of parts, the mean node count and measures of each method."""
    train, test = split(name)
    runs: dict[int, list[Any]] = {n_parts: [] for n_parts in N_PARTS}
    for seed in range(n_orders):
        order = np.random.default_rng(seed).permutation(train[0].shape[0])
        in_sequence = judged(make().fit(train[0][order], train[1][order]), test)
        for n_parts in N_PARTS:
            parts = [make().fit(train[0][own], train[1][own]) for own in np.array_split(order, n_parts)]
            others = [judged(model, test) for model in (merge(parts), merge(parts, how="append"), parts[0])]
            runs[n_parts].append([in_sequence, *others])
    for n_parts, figures in runs.items():
        yield n_parts, np.mean(figures, axis=0)


def split(name: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the rows and labels for training, and the rows and labels for testing."""
    bunch = load_dataset(name)
    X = bunch.X
    if bunch.split is None:
        rows: NDArray[np.intp] = np.random.default_rng(0).permutation(X.shape[0])
        train, test = np.split(rows, [len(rows) * 9 // 10])
    else:
        train, test = bunch.split
    return (X[train], bunch.Y[train]), (X[test], bunch.Y[test])


def judged(model: MLCA, test: tuple[Any, Any]) -> list[float]:
    """Return the number of nodes, and the measures on the test rows."""
    found = evaluate(test[1], model=model, X=test[0]).as_dict()
    return [float(model.n_nodes_), *(found[name] for name in MEASURES)]


if __name__ == "__main__":
    main()

"""What merging costs: exact match and nodes of merged models beside learning in sequence.

    MLCA_DATA=... python docs/scripts/measure_merging.py [--vigilance V] [--orders N] [dataset ...]

Training rows (the official split, or 90 % where there is none) come in random order. They are learned in sequence by
one model, and in 2, 4 and 8 consecutive parts by as many models, which are then merged. The last column is the
alternative that was not taken: nodes as merged, but counters added up from the parts instead of replayed.
Every figure is the mean over the orders; the table is Markdown, for docs/merging.md.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca import MLCA, merge
from mlca.datasets import load_dataset
from mlca.learner.core import Learner
from mlca.metrics import exact_match

DATASETS = ("yeast", "scene", "bibtex", "mediamill")
N_PARTS = (2, 4, 8)
# Sparse in its file, but nearly without zeros.
DENSE = ("mediamill",)
HEADER = (
    "| dataset | parts | nodes in sequence | nodes merged | exact match in sequence | merged | difference "
    "| one part alone | counters added up |\n|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Figures:
    """What one order of the rows gave."""

    nodes_in_sequence: float
    nodes_merged: float
    match_in_sequence: float
    match_merged: float
    match_of_one_part: float
    match_added_up: float


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--vigilance", type=float, default=0.01)
    parser.add_argument("--orders", type=int, default=3)
    options = parser.parse_args()
    print(HEADER)
    for name in options.datasets:
        for n_parts, figures in measure(name, options.vigilance, options.orders):
            print(line(name, n_parts, figures), flush=True)


def measure(name: str, vigilance: float, n_orders: int) -> Iterator[tuple[int, Figures]]:
    """Yield the mean figures of a dataset for each number of parts."""
    train, test = split(name)
    runs: dict[int, list[Figures]] = {n_parts: [] for n_parts in N_PARTS}
    for seed in range(n_orders):
        order = np.random.default_rng(seed).permutation(train[0].shape[0])
        in_sequence = MLCA.published(vigilance=vigilance).fit(train[0][order], train[1][order])
        expected = matched(in_sequence, test)
        for n_parts in N_PARTS:
            parts = [
                MLCA.published(vigilance=vigilance).fit(train[0][own], train[1][own])
                for own in np.array_split(order, n_parts)
            ]
            merged = merge(parts)
            runs[n_parts].append(
                Figures(
                    nodes_in_sequence=in_sequence.n_nodes_,
                    nodes_merged=merged.n_nodes_,
                    match_in_sequence=expected,
                    match_merged=matched(merged, test),
                    match_of_one_part=matched(parts[0], test),
                    match_added_up=matched(with_counters_added_up(merged, parts), test),
                )
            )
    for n_parts, figures in runs.items():
        yield n_parts, Figures(*np.mean([astuple(run) for run in figures], axis=0))


def split(name: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the rows and labels to learn, and those to test on."""
    bunch = load_dataset(name)
    X = bunch.X.toarray() if name in DENSE else bunch.X
    if bunch.split is None:
        rows: NDArray[np.intp] = np.random.default_rng(0).permutation(X.shape[0])
        train, test = np.split(rows, [len(rows) * 9 // 10])
    else:
        train, test = bunch.split
    return (X[train], bunch.Y[train]), (X[test], bunch.Y[test])


def matched(model: MLCA, test: tuple[Any, Any]) -> float:
    """Return the exact match on the test rows."""
    return exact_match(test[1], model.predict(test[0]))


def with_counters_added_up(merged: MLCA, parts: Sequence[MLCA]) -> MLCA:
    """Return the merged model with the sums of the parts' counters; all parts must know the same labels."""
    model = copy.copy(merged)
    learner = model._learner
    whole, apart = learner.state(), [part._learner.state() for part in parts]
    for name in ("with", "without"):
        whole[name] = sum(state[name] for state in apart)
    # Of the tally, the counter updates: with several nodes, and with one.
    whole["tally"][2:] = sum(state["tally"][2:] for state in apart)
    model._learner = Learner.from_state(
        learner.parameters, learner.n_features, learner.n_labels, learner.sparse_nodes, whole
    )
    return model


def line(name: str, n_parts: int, figures: Figures) -> str:
    """Return a row of the table."""
    difference = figures.match_merged - figures.match_in_sequence
    return (
        f"| {name} | {n_parts} | {figures.nodes_in_sequence:.0f} | {figures.nodes_merged:.0f} "
        f"| {figures.match_in_sequence:.3f} | {figures.match_merged:.3f} | {difference:+.3f} "
        f"| {figures.match_of_one_part:.3f} | {figures.match_added_up:.3f} |"
    )


if __name__ == "__main__":
    main()

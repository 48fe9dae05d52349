"""Simulate search by cells for sparse nodes, which mlca always searches exactly.

    MLCA_DATA=... python docs/scripts/measure_sparse_cells.py [dataset ...]

The model learns the training rows with exact search; explanations of test rows show their voters. Then its nodes
are grouped into cells in four ways, and the cells nearest to each test row are visited until they contain a share of
the nodes. The table, in Markdown for docs/scaling.md, shows which share of the voters is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca import MLCA
from mlca.datasets import load_dataset

N_TESTED, ROUNDS, N_WORDS = 200, 4, 3
SHARES = (0.05, 0.1, 0.2, 0.4)
Floats = NDArray[np.float32]
# For each test row, groups of nodes in the order in which they are visited.
Groups = Iterator[list[NDArray[np.intp]]]


def main() -> None:
    """Parse the options, measure each dataset, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["tmc2007-500", "delicious"])
    print("| dataset | nodes | cells |", " | ".join(f"{share:.0%} visited" for share in SHARES), "|")
    print("|---" * (3 + len(SHARES)) + "|")
    for name in parser.parse_args().datasets:
        dataset = load_dataset(name)
        train, test = dataset.split
        X = sparse.csr_array(dataset.X)
        model = MLCA().fit(X[train], dataset.Y[train])
        rows = X[test[:N_TESTED]].toarray()
        voters = [model._learner.explain(row)["nodes"] for row in rows]
        roots = np.sqrt(model.feature_weights_ / model.feature_weights_.sum())
        nodes = (model.prototypes_.toarray() * roots).astype(np.float32)
        asked = (rows * roots).astype(np.float32)
        for way, groups_of in WAYS.items():
            found = np.mean(
                [shares(*pair, len(nodes)) for pair in zip(voters, groups_of(nodes, asked), strict=True)], 0
            )
            print(
                f"| {name} | {len(nodes):,} | {way} |", " | ".join(f"{share:.0%}" for share in found), "|", flush=True
            )


def shares(voters: Any, groups: list[NDArray[np.intp]], n_nodes: int) -> list[float]:
    """Return the share of voters found when each share of the nodes has been visited."""
    seen = np.zeros(n_nodes, dtype=bool)
    found, n_seen, left = [], 0, list(groups)
    for share in SHARES:
        while left and n_seen < share * n_nodes:
            group = left.pop(0)
            n_seen += np.count_nonzero(~seen[group])
            seen[group] = True
        found.append(float(seen[voters].mean()))
    return found


def by_distance(nodes: Floats, asked: Floats) -> Groups:
    """Group K nodes by the nearest of sqrt(K) centres, as mlca does for dense rows."""
    centres, of_node = centred(nodes)
    yield from visited(members(of_node[:, :1], len(centres)), distances(asked, centres))


def by_angle(nodes: Floats, asked: Floats) -> Groups:
    """Group nodes by distance after scaling nodes and rows to length 1."""
    yield from by_distance(of_length_one(nodes), of_length_one(asked))


def overlapping(nodes: Floats, asked: Floats) -> Groups:
    """Group nodes by angle; each node is in the cells of its two nearest centres."""
    centres, of_node = centred(of_length_one(nodes))
    yield from visited(members(of_node, len(centres)), distances(of_length_one(asked), centres))


def by_words(nodes: Floats, asked: Floats) -> Groups:
    """Group nodes by their most informative words: rare words with large weights."""
    telling = nodes.max(axis=0) ** 2 * np.log(len(nodes) / np.maximum((nodes > 0).sum(axis=0), 1))
    own = np.argsort(-((nodes > 0) * telling), axis=1)[:, :N_WORDS]
    yield from visited(members(own, nodes.shape[1]), np.where(asked > 0, -telling, np.inf))


def visited(cells: list[NDArray[np.intp]], costs: Floats) -> Groups:
    """Yield for each row its cells in the order of increasing cost."""
    for cost in costs:
        yield [cells[c] for c in np.argsort(cost, kind="stable") if np.isfinite(cost[c])]


def centred(nodes: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return centres after a few rounds of k-means, and the two nearest centres of each node."""
    centres = nodes[np.random.default_rng(0).choice(len(nodes), isqrt(len(nodes)), replace=False)]
    for _ in range(ROUNDS):
        nearest = distances(nodes, centres).argmin(axis=1)
        for c in range(len(centres)):
            if (nearest == c).any():
                centres[c] = nodes[nearest == c].mean(axis=0)
    return centres, np.argsort(distances(nodes, centres), axis=1)[:, :2]


def distances(rows: Floats, centres: Floats) -> Floats:
    """Return squared distances from rows to centres, minus each row's squared length."""
    scores: Floats = (centres**2).sum(axis=1) - 2 * rows @ centres.T
    return scores


def of_length_one(rows: Floats) -> Floats:
    """Return rows scaled to length 1."""
    scaled: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return scaled


def members(cells: NDArray[np.intp], n_cells: int) -> list[NDArray[np.intp]]:
    """Return the indices of the nodes in each cell, given the cells of each node."""
    return [np.flatnonzero((cells == c).any(axis=1)) for c in range(n_cells)]


WAYS: dict[str, Callable[[Floats, Floats], Groups]] = {
    "nearest centre": by_distance,
    "nearest centre by angle": by_angle,
    "two nearest centres by angle": overlapping,
    f"{N_WORDS} most telling words": by_words,
}


if __name__ == "__main__":
    main()

"""Measure the accuracy of `search="cells"`, compared with `search="exact"`.

    MLCA_DATA=... python docs/scripts/measure_cells.py [--rows N] [--jobs N] [stream ...]

Both learn each stream in its own order, sorted by label set, and with every row twice; both then predict the same test
rows. The table, in Markdown for docs/scaling.md, shows the share of voters that cells find, and the measures. Real
datasets use their official splits. Generated streams have N rows for training, and 3,000 more for testing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mlca import MLCA
from mlca.bench.workloads import clusters
from mlca.datasets import load_dataset, random_rbf, rotating_hyperplane
from mlca.metrics import evaluate

N_TESTED, N_EXPLAINED = 3000, 200
MEASURES = ("exact_match", "example_f1", "macro_auc")
ORDERS = ("its own", "sorted", "each row twice")
REAL = ("mediamill", "tmc2007-500", "delicious")
HEADER = ("stream", "order", "nodes", "compared", "voters found", "exact: exact match, F1, AUC", "change by cells")


def main() -> None:
    """Parse the options, measure each stream, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", default=[*REAL, *GENERATED])
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a generated stream (default: 100,000)")
    parser.add_argument("--jobs", type=int, default=1, help="threads (default: 1)")
    options = parser.parse_args()
    print("| " + " | ".join(HEADER) + " |\n" + "|---" * len(HEADER) + "|")
    for name in options.streams:
        train, test = of_dataset(name) if name in REAL else generated(name, options.rows)
        for order in ORDERS:
            rows = in_order(train[1], order)
            cells = compared(train[0][rows], train[1][rows], test, options.jobs)
            print(f"| {name} | {order} |", " | ".join(cells), "|", flush=True)


def compared(X: Any, Y: Any, test: Any, n_jobs: int) -> Iterator[str]:
    """Yield the cells of a table row that compares exact search with search by cells."""
    exact, cells = (MLCA(search=search, n_jobs=n_jobs).fit(X, Y) for search in ("exact", "cells"))
    yield f"{exact.n_nodes_:,}"
    if not has_cells(cells):
        np.testing.assert_array_equal(exact.predict_proba(test[0]), cells.predict_proba(test[0]))
        yield from ("no cells", "all", figures(exact, test)[0], "none")
        return
    shares = [found(exact, cells, test[0][[j]]) for j in range(N_EXPLAINED)]
    yield from (f"{share:.1%}" for share in np.mean(shares, axis=0))
    (shown, values), (_, others) = (figures(model, test) for model in (exact, cells))
    changes = others - values
    marks = ["**", "**"] if (np.abs(changes) > 0.002).any() else ["", ""]
    yield shown
    yield " ".join(f"{change:+.4f}" for change in changes).join(marks)


def has_cells(model: MLCA) -> bool:
    """Return whether the model searches by cells, for which it needs enough nodes."""
    return len(model._learner.state()["cells.centres"]) > 0


def found(exact: MLCA, cells: MLCA, row: Any) -> tuple[float, float]:
    """Return the share of nodes compared with a row, and the share of its voters found."""
    x = row.toarray()[0] if sparse.issparse(row) else row[0]
    all_voters, voters = (set(model._learner.explain(x)["nodes"].tolist()) for model in (exact, cells))
    return cells._learner.explain(x)["n_compared"] / cells.n_nodes_, len(voters & all_voters) / len(all_voters)


def figures(model: MLCA, test: Any) -> tuple[str, Any]:
    """Return the measures on the test rows, as text and as numbers."""
    measured = evaluate(test[1], model=model, X=test[0]).as_dict()
    values = np.array([measured[name] for name in MEASURES])
    return " ".join(f"{value:.3f}" for value in values), values


def in_order(Y: Any, order: str) -> Any:
    """Return the indices of the rows of a stream in the given order."""
    rows = np.arange(Y.shape[0])
    if order == "each row twice":
        return np.repeat(rows, 2)
    if order == "its own":
        return rows
    Y = sparse.csr_array(Y)
    sets = [Y.indices[low:high].tolist() for low, high in pairwise(Y.indptr)]
    return np.array(sorted(rows, key=sets.__getitem__))


def of_dataset(name: str) -> tuple[Any, Any]:
    """Return the rows and labels for training, and the rows and labels for testing."""
    dataset = load_dataset(name)
    X = dataset.X.toarray() if name == "mediamill" and sparse.issparse(dataset.X) else dataset.X
    train, test = dataset.split
    return (X[train], dataset.Y[train]), (X[test], dataset.Y[test])


def generated(name: str, n: int) -> tuple[Any, Any]:
    """Return rows and labels of a generated stream, and later rows and labels for testing."""
    X, Y = GENERATED[name](n + N_TESTED)
    return (X[:n], Y[:n]), (X[n:], Y[n:])


def drawn(stream: Any) -> tuple[Any, Any]:
    """Return all rows and labels of a stream as two arrays."""
    X, Y = zip(*stream, strict=True)
    return np.concatenate(X), np.concatenate(Y)


def normal(n: int) -> tuple[Any, Any]:
    """Return normally distributed rows with 32 features, and six labels."""
    X = np.random.default_rng(0).normal(size=(n, 32))
    return X, (X[:, :6] + 0.5 * X[:, 6:12] > 0.5).astype(np.uint8)


GENERATED: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "clusters": lambda n: clusters(n, 32),
    "centroids": lambda n: drawn(random_rbf(n, change="none")),
    "moving centroids": lambda n: drawn(random_rbf(n)),
    "hyperplanes": lambda n: drawn(rotating_hyperplane(n, change="none")),
    "normal": normal,
}


if __name__ == "__main__":
    main()

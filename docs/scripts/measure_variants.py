"""Measure the results in docs/variants.md: vigilance, variant and vote on six datasets.

Rows are shuffled once with a fixed seed; three quarters are learned and the rest predicted, on one thread. Run the
script with MLCA_DATA set to the folder of the datasets; it prints the table in Markdown. Speeds are rows per second of
processor time, so that other work on the machine does not count.
"""

from collections.abc import Callable
from functools import partial
from time import process_time

import numpy as np

from mlca import MLCA
from mlca.datasets import load_dataset
from mlca.metrics import exact_match, hamming_loss

DATASETS = ["flags", "emotions", "yeast", "scene", "genbase", "medical"]
VARIANTS = [
    ("MLCA", 0.01),
    ("MLCA", 0.30),
    ("MLCA-I", 0.01),
    ("MLCA-I", 0.15),
    ("MLCA-C", 0.01),
    ("MLCA-C", 0.25),
]


def rows_a_second(work: Callable[[], object], n_rows: int) -> str:
    """Repeat a function for a quarter of a second; return rows per second to two digits."""
    work()  # the first call is slower
    started, times = process_time(), 0
    while process_time() - started < 0.25:
        work()
        times += 1
    return f"{float(f'{n_rows * times / (process_time() - started):.2g}'):,.0f}"


def main() -> None:
    """Print one table per dataset."""
    for name in DATASETS:
        data = load_dataset(name)
        X, Y = data.X, data.Y.toarray()
        order = np.random.default_rng(0).permutation(len(Y))
        cut = len(Y) * 3 // 4
        train, test = order[:cut], order[cut:]
        print(f"\n**{name}**: {len(train)} rows learned, {len(test)} predicted, {X.shape[1]} attributes,", end=" ")
        print(f"{Y.shape[1]} labels\n")
        print(
            "| variant | vigilance | nodes | exact match | with frequencies | Hamming loss | with frequencies |", end=""
        )
        print(" learned per second | predicted per second |\n|---|---|---|---|---|---|---|---|---|")
        for variant, vigilance in VARIANTS:
            matches, losses = [], []
            for vote in ("frequencies", "counts"):
                model = MLCA.published(variant, vigilance=vigilance, vote=vote).fit(X[train], Y[train])
                predicted = model.predict(X[test])
                matches.append(f"{exact_match(Y[test], predicted):.3f}")
                losses.append(f"{hamming_loss(Y[test], predicted):.3f}")
            learning = rows_a_second(partial(model.fit, X[train], Y[train]), len(train))
            predicting = rows_a_second(partial(model.predict, X[test]), len(test))
            cells = [variant, f"{vigilance:.2f}", f"{model.n_nodes_:,}", *matches[::-1], *losses[::-1]]
            print("| " + " | ".join([*cells, learning, predicting]) + " |", flush=True)


if __name__ == "__main__":
    main()

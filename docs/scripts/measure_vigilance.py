"""Measure accuracy and nodes of `vigilance="auto"` and 0.01 for docs/variants.md.

Uses the available datasets of `mlca reproduce beyond` with the same splits: the official split, or five folds if the
paper cross-validates the dataset or the copy has no official split. Run it with MLCA_DATA set to the folder of the
datasets; it prints the table in Markdown, and below it the datasets where exact match or F1 differ by more than 0.01.
"""

import numpy as np

from mlca import MLCA
from mlca.datasets.catalogue import CATALOGUE
from mlca.experiments.scope import SCALE, scope_of
from mlca.experiments.splits import split_of
from mlca.metrics import exact_match, example_f1

FOLDS = 5
NEAR = 0.01
VIGILANCES = (0.01, "auto")


def measured(dataset: str, vigilance: float | str) -> list[float]:
    """Return the means over the folds: vigilance in use, nodes, exact match and example F1."""
    by_folds = SCALE.get(dataset) == "small" or not CATALOGUE[dataset].official_split
    found = []
    for repetition, fold in [(0, fold) for fold in range(FOLDS)] if by_folds else [(None, None)]:
        split = split_of(dataset, repetition, fold, scaled=False, dense=False)
        model = MLCA(vigilance=vigilance).fit(split.X, split.Y)
        predicted = model.predict(split.X_test)
        scores = (exact_match(split.Y_test, predicted), example_f1(split.Y_test, predicted))
        found.append((model.vigilance_, model.n_nodes_, *scores))
    return np.mean(found, axis=0).tolist()


def main() -> None:
    """Print the table, and the datasets with different results."""
    print("| dataset | vigilance, auto | nodes, .01 | nodes, auto | exact match, .01 | auto | F1, .01 | auto |")
    print("|---" * 8 + "|")
    apart = []
    scope = scope_of()
    for dataset in (*scope.small_datasets, *scope.others, *(set(scope.datasets) - set(scope.small_datasets))):
        (_, nodes, match, f1), (resolved, fewer, match_auto, f1_auto) = (measured(dataset, v) for v in VIGILANCES)
        numbers = f"{match:.3f} | {match_auto:.3f} | {f1:.3f} | {f1_auto:.3f}"
        print(f"| {dataset} | {resolved:.3f} | {nodes:,.0f} | {fewer:,.0f} | {numbers} |", flush=True)
        if max(abs(match - match_auto), abs(f1 - f1_auto)) > NEAR:
            apart.append(f"{dataset} ({match_auto - match:+.3f}, {f1_auto - f1:+.3f})")
    print(f"\nMore than {NEAR} apart: {', '.join(apart) or 'nowhere'}.")


if __name__ == "__main__":
    main()

"""Measure how repeated rows affect accuracy and calibration, for docs/measurements.md.

Uses five folds of each of five small datasets of the paper, split as in `mlca reproduce`. Run it with MLCA_DATA set to
the folder of the datasets; it prints the table in Markdown.
"""

import numpy as np

from mlca import MLCA
from mlca.experiments.splits import split_of
from mlca.metrics import calibration_error, evaluate

DATASETS = ("emotions", "scene", "yeast", "medical", "birds")
FOLDS = 5
MEASURES = ("exact_match", "example_f1", "macro_auc", "hamming_loss")


def orders(Y: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Return row indices by arrangement; the less frequent half of the labels is rare."""
    n = len(Y)
    rare = Y.sum(axis=0).argsort(kind="stable")[: Y.shape[1] // 2]
    weighted = np.repeat(np.arange(n), np.where(Y[:, rare].any(axis=1), 3, 1))
    return {
        "each row once": np.arange(n),
        "each row twice, copies together": np.repeat(np.arange(n), 2),
        "each row twice, in two passes": np.tile(np.arange(n), 2),
        "rows with a rare label three times, copies together": weighted,
        "rows with a rare label three times, shuffled": np.random.default_rng(seed).permutation(weighted),
    }


def measured(dataset: str) -> dict[str, list[float]]:
    """Return the mean of each measure over the folds, by arrangement of the rows."""
    found: dict[str, list[list[float]]] = {}
    for fold in range(FOLDS):
        split = split_of(dataset, 0, fold, scaled=False, dense=True)
        for name, rows in orders(split.Y, fold).items():
            model = MLCA().fit(split.X[rows], split.Y[rows])
            P = model.predict_proba(split.X_test)
            values = evaluate(split.Y_test, P, Y_pred=model.predict(split.X_test)).as_dict()
            scores = [*(values[measure] for measure in MEASURES), calibration_error(split.Y_test, P)]
            found.setdefault(name, []).append(scores)
    return {name: np.nanmean(scores, axis=0).tolist() for name, scores in found.items()}


def main() -> None:
    """Print a line per dataset and arrangement."""
    print(f"| dataset | rows learned | {' | '.join(MEASURES)} | calibration_error |")
    print("|---|---|" + "---:|" * (len(MEASURES) + 1))
    for dataset in DATASETS:
        for name, scores in measured(dataset).items():
            print(f"| {dataset} | {name} | {' | '.join(f'{score:.3f}' for score in scores)} |", flush=True)


if __name__ == "__main__":
    main()

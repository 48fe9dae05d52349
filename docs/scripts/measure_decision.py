"""Measure, for docs/calibration.md, the steps of the decision and rejected alternatives.

Uses two folds of each of the paper's twelve small datasets, split as in `mlca reproduce`. Probabilities of the test
rows are decomposed with `explain`. The alternatives learn from the predictions of training rows, each made before the
row was learned. Run it with MLCA_DATA set to the folder of the datasets; tables are printed in Markdown.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlca import MLCA
from mlca.experiments.algorithms import choose, make
from mlca.experiments.scope import SCALE
from mlca.experiments.splits import split_of
from mlca.metrics import brier_score, calibration_error, exact_match, example_f1, hamming_loss

FOLDS = (0, 1)
HALF = 0.5
PRIOR_ROWS = 3  # prior rows per knot of a calibration curve, as in MLCA
FLOORS = (0.2, 0.3, 0.4, HALF)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Results for a fold: decision steps on test rows, and predictions for training rows."""

    true: NDArray[np.uint8]
    steps: dict[str, Floats]
    none: Floats
    true_before: NDArray[np.uint8]
    said_before: Floats
    none_before: Floats
    neighbours: Floats


def judge(dataset: str, fold: int) -> Judged:
    """Train on a fold row by row, then explain every test row."""
    split = split_of(dataset, 0, fold, scaled=False, dense=True)
    model = MLCA(decision="calibrated").partial_fit(split.X[:1], split.Y[:1])
    said, none = [np.zeros(split.Y.shape[1])], [0.0]
    for row in range(1, len(split.Y)):
        explained = model.explain(split.X[row])
        said.append(explained.posterior)
        none.append(explained.none)
        model.partial_fit(split.X[row : row + 1], split.Y[row : row + 1])
    explained = [model.explain(row) for row in split.X_test]
    shares, calibrated = (np.array([getattr(one, name)[1:] for one in explained]) for name in ("shares", "calibrated"))
    steps = {
        "share of the votes": shares,
        "how often it came true": calibrated,
        "mean of both": (shares + calibrated) / 2,
        'with background: `MLCA(decision="calibrated")`': np.array([one.posterior for one in explained]),
    }
    mlknn = choose(["mlknn"])[0]
    neighbours = make("MLkNN", mlknn.tuned(dataset) or {}, 0).fit(split.X, split.Y).predict_proba(split.X_test)
    none_now = np.array([one.none for one in explained])
    return Judged(split.Y_test, steps, none_now, split.Y, np.array(said), np.array(none), neighbours)


def curve(said: Floats, true: NDArray[np.uint8]) -> Callable[[Floats], Floats]:
    """Return a calibration curve with eleven knots, each with a prior of three rows."""
    place = np.clip(said.ravel() * 10, 0, 10)
    below = np.minimum(place.astype(int), 9)
    part = place - below
    total, positive = np.zeros(11), np.zeros(11)
    for knots, weight in ((below, 1 - part), (below + 1, part)):
        np.add.at(total, knots, weight)
        np.add.at(positive, knots, weight * true.ravel())
    knots = np.arange(11) / 10
    return lambda p: np.interp(p, knots, (positive + PRIOR_ROWS * knots) / (total + PRIOR_ROWS))


def tried(one: Judged) -> dict[str, Floats]:
    """Return the probabilities of alternative rules, which learn from training rows only."""
    p, before, true = one.steps['with background: `MLCA(decision="calibrated")`'], one.said_before, one.true_before
    each = [curve(before[:, k], true[:, k])(p[:, k]) for k in range(p.shape[1])]
    return {
        "p calibrated once more, label by label": np.column_stack(each),
        "p calibrated once more, all labels together": curve(before, true)(p),
        "ML-kNN": one.neighbours,
    }


def decide(p: Floats, none: Floats, floor: float = 0.0) -> NDArray[np.uint8]:
    """Return the labels above 0.5, or else the likeliest if it exceeds "none" and a floor."""
    chosen = (p > HALF).astype(np.uint8)
    best = p.argmax(axis=1)
    rows = np.flatnonzero(~chosen.any(axis=1) & (p.max(axis=1) > np.maximum(none, floor)))
    chosen[rows, best[rows]] = 1
    return chosen


def learned_floor(one: Judged) -> float:
    """Return the floor that maximises exact match minus Hamming loss on the training rows."""
    candidates = np.arange(0, HALF + 0.01, 0.05)
    found = [decide(one.said_before, one.none_before, floor) for floor in candidates]
    gains = [exact_match(one.true_before, y) - hamming_loss(one.true_before, y) for y in found]
    return float(candidates[int(np.argmax(gains))])


def main() -> None:
    """Measure all datasets, and print the tables."""
    datasets = [name for name, scale in SCALE.items() if scale == "small"]
    errors: dict[str, list[float]] = {}
    briers: dict[str, list[float]] = {}
    decisions: dict[str, list[list[float]]] = {}
    for dataset in datasets:
        folds = [judge(dataset, fold) for fold in FOLDS]
        probabilities = [one.steps | tried(one) for one in folds]
        for name in probabilities[0]:
            found = [calibration_error(one.true, p[name]) for one, p in zip(folds, probabilities, strict=True)]
            errors.setdefault(name, []).append(float(np.mean(found)))
            found = [brier_score(one.true, p[name]) for one, p in zip(folds, probabilities, strict=True)]
            briers.setdefault(name, []).append(float(np.mean(found)))
        ways: dict[str, list[NDArray[np.uint8]]] = {"the rule": [], "no fallback": []}
        for one, p in zip(folds, probabilities, strict=True):
            ours = p['with background: `MLCA(decision="calibrated")`']
            ways["the rule"].append(decide(ours, one.none))
            ways["no fallback"].append((ours > HALF).astype(np.uint8))
            for floor in FLOORS[:-1]:
                ways.setdefault(f"the best label, if above {floor:.1f}", []).append(decide(ours, one.none, floor))
            name = "the best label, above a floor learned on the way"
            ways.setdefault(name, []).append(decide(ours, one.none, learned_floor(one)))
            pooled = p["p calibrated once more, all labels together"]
            none = curve(one.none_before, ~one.true_before.any(axis=1))(one.none)
            ways.setdefault("the rule, on p calibrated once more", []).append(decide(pooled, none))
        for name, chosen in ways.items():
            pairs = list(zip(folds, chosen, strict=True))
            decisions.setdefault(name, []).append(
                [
                    float(np.mean([measure(one.true, y) for one, y in pairs]))
                    for measure in (exact_match, example_f1, hamming_loss)
                ]
            )
        print(dataset, {name: round(values[-1], 4) for name, values in errors.items()}, flush=True)
    neighbours = np.array(errors["ML-kNN"])
    print(f"\n| calibration error | {' | '.join(datasets)} | mean | at most ML-kNN's | Brier score, mean |")
    print("|---" * (len(datasets) + 4) + "|")
    for name, values in errors.items():
        cells = [f"{value:.3f}" for value in (*values, np.mean(values))]
        print("|", " | ".join([name, *cells, f"{(values <= neighbours).sum()}", f"{np.mean(briers[name]):.4f}"]), "|")
    print("\n| decision | exact match | F1 by example | Hamming loss | Hamming loss below the rule's on |")
    print("|---|---|---|---|---|")
    rule = np.array(decisions["the rule"])
    for name, values in decisions.items():
        found = np.array(values)
        cells = [f"{found[:, column].mean():.4f}" for column in range(3)]
        print("|", " | ".join([name, *cells, f"{(found[:, 2] < rule[:, 2] - 5e-5).sum()}"]), "|")


if __name__ == "__main__":
    main()

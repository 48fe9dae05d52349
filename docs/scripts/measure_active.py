"""Measure, for docs/active.md, how many labels `query` saves, and the wrong labels found.

Run it with MLCA_DATA set to the folder of the datasets; it prints the tables in Markdown and writes
docs/images/active.svg. Each dataset is used with five seeds. A third of the rows, at most 500, are test rows. At first
30 random rows are labelled. Each step then chooses 30 more rows from a pool of at most 700. For `suspicious_labels`,
some labels are flipped.
"""

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from mlca import MLCA
from mlca.active import query, suspicious_labels
from mlca.datasets import load_dataset
from mlca.metrics import exact_match, micro_f1
from mlca.plots.style import COLOURS, FAINT

DATASETS = ["emotions", "scene", "yeast", "medical"]
N_SEEDS, STEP, N_STEPS, MOST_TEST, MOST_POOL = 5, 30, 10, 500, 700
FLIPPED = 0.05
PICTURE = Path(__file__).parent.parent / "images" / "active.svg"


def entropy_alone(model, X, n):
    """Choose the rows whose predictions have the highest entropy, the usual baseline."""
    p = np.clip(model.predict_proba(X), 1e-12, 1 - 1e-12)
    return np.argsort((p * np.log(p) + (1 - p) * np.log1p(-p)).sum(axis=1), kind="stable")[:n]


def at_random(rng, model, X, n):
    """Choose rows at random, the simplest baseline."""
    return rng.choice(X.shape[0], n, replace=False)


def read(name):
    """Return the rows of a dataset, sparse if stored as sparse, and its labels."""
    data = load_dataset(name)
    return data.X, data.Y.toarray().astype(np.uint8)


def curve(X, Y, choose, seed):
    """Return micro F1 and exact match after each step of labelling."""
    order = np.random.default_rng(seed).permutation(len(Y))
    third = len(Y) // 3
    test, pool = order[: min(third, MOST_TEST)], order[third + STEP : third + STEP + MOST_POOL]
    first = order[third : third + STEP]
    model = MLCA().fit(X[first], Y[first])
    values = []
    for step in range(N_STEPS + 1):
        predicted = model.predict(X[test])
        values.append((micro_f1(Y[test], predicted), exact_match(Y[test], predicted)))
        if step < N_STEPS:
            chosen = choose(model, X[pool], STEP)
            model.partial_fit(X[pool[chosen]], Y[pool[chosen]])
            pool = np.delete(pool, chosen)
    return values


def rows_until(values, goal):
    """Return the number of labelled rows at which a curve reaches a value, or None."""
    reached = np.flatnonzero(values >= goal)
    return None if not len(reached) else STEP * (1 + int(reached[0]))


def print_curves():
    """Print the table of labelling curves, and draw them."""
    figure, axes = plt.subplots(1, len(DATASETS), figsize=(11, 3.2), layout="constrained")
    print(
        "| dataset | micro F1, random | entropy alone | query | query - random, by seed | exact match, random | query |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, ax in zip(DATASETS, axes, strict=True):
        X, Y = read(name)
        runs = {}
        for rule in ("at random", "entropy alone", "query"):
            rules = [
                {
                    "at random": partial(at_random, np.random.default_rng(seed)),
                    "entropy alone": entropy_alone,
                    "query": query,
                }[rule]
                for seed in range(N_SEEDS)
            ]
            runs[rule] = np.array([curve(X, Y, choose, seed) for seed, choose in enumerate(rules)])
        areas = {rule: values[:, 1:].mean(axis=1) for rule, values in runs.items()}
        means = {rule: values.mean(axis=0) for rule, values in areas.items()}
        gains = ", ".join(f"{gain:+.3f}" for gain in (areas["query"] - areas["at random"])[:, 0])
        print(
            f"| {name} | {means['at random'][0]:.3f} | {means['entropy alone'][0]:.3f} | {means['query'][0]:.3f} "
            f"| {gains} | {means['at random'][1]:.3f} | {means['query'][1]:.3f} |",
            flush=True,
        )
        rows = STEP * np.arange(1, N_STEPS + 2)
        goal = runs["at random"].mean(axis=0)[-1, 0]
        print(
            f"<!-- {name}: random ends at {goal:.3f} with {rows[-1]} rows; query is there with "
            f"{rows_until(runs['query'].mean(axis=0)[:, 0], goal)} -->",
            flush=True,
        )
        for (rule, values), colour, line in zip(
            runs.items(), (FAINT, COLOURS[1], COLOURS[0]), (":", "--", "-"), strict=True
        ):
            ax.plot(rows, values[:, :, 0].mean(axis=0), color=colour, linestyle=line, label=rule)
        ax.set_title(name)
        ax.set_xlabel("labelled rows")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("micro F1")
    axes[0].legend(edgecolor="none")
    figure.savefig(PICTURE, metadata={"Date": None})


def precision(X, Y, seed):
    """Return the precision for flipped labels, and for rows that got another row's labels."""
    rng = np.random.default_rng(seed)
    flipped = rng.random(Y.shape) < FLIPPED
    found = suspicious_labels(MLCA(vigilance=0.0).fit(X, Y ^ flipped), int(flipped.sum()))
    cells = np.mean([flipped[one.node, one.label] for one in found])
    n_wrong = round(FLIPPED * len(Y))
    rows = rng.permutation(len(Y))[:n_wrong]
    others = Y.copy()
    others[rows] = Y[rng.integers(len(Y), size=n_wrong)]
    wrong = (others != Y).any(axis=1)
    worst = dict.fromkeys(one.node for one in suspicious_labels(MLCA(vigilance=0.0).fit(X, others), Y.size))
    return cells, np.mean(wrong[list(worst)[: int(wrong.sum())]])


def print_flipped():
    """Print the table on how well wrong labels are found."""
    print(
        "| dataset | rows | labels | 5 % of the labels flipped: precision | 5 % of the rows with another's: precision |"
    )
    print("|---|---|---|---|---|")
    for name in DATASETS:
        X, Y = read(name)
        # Without duplicates, every row becomes a node.
        _, once = np.unique(X.toarray() if sp.issparse(X) else X, axis=0, return_index=True)
        once = np.sort(once)[:1500]
        X, Y = X[once], Y[once]
        values = np.mean([precision(X, Y, seed) for seed in range(N_SEEDS)], axis=0)
        print(f"| {name} | {len(Y)} | {Y.shape[1]} | {values[0]:.2f} | {values[1]:.2f} |", flush=True)


if __name__ == "__main__":
    print_curves()
    print_flipped()

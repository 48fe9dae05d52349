"""Measure CPU seconds on a table of packages: training, prediction and single rows.

    python -m docs.scripts.measure_table_speed debian_depends.parquet

The file lists packages of a distribution with text, categories, numbers and missing values. Each figure is the smallest
of two runs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from river.feature_extraction import BagOfWords

from mlca import MLCA
from mlca.river import MLCAClassifier

WORDS = ["summary", "description"]


def seconds(work: Callable[[], Any], runs: int = 2) -> float:
    """Return the smallest CPU time of several runs."""
    times = []
    for _ in range(runs):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


def learn_and_predict(X: pd.DataFrame, y: list[list[str]], n: int) -> tuple[float, float]:
    """Return the seconds of learning the first n rows, and of predicting the last 3,000 rows."""
    models: list[MLCA] = []
    learning = seconds(lambda: models.append(MLCA().fit(X[:n], y[:n])))
    return learning, seconds(lambda: models[0].predict_proba(X[-3000:]))


def learn_words(texts: list[str], labels: list[list[str]]) -> None:
    """Predict and learn texts row by row, as River's bags of words."""
    bag, model = BagOfWords(), MLCAClassifier()
    for text, names in zip(texts, labels, strict=True):
        row = bag.transform_one(text)
        model.predict_one(row)
        model.learn_one(row, dict.fromkeys(names, True))


def main(path: str) -> None:
    """Measure each kind of table or text, and print the times."""
    warnings.simplefilter("ignore")
    table = pd.read_parquet(path).sample(frac=1, random_state=0).reset_index(drop=True)
    y = [list(names) for names in table.pop("labels")]
    rng = np.random.default_rng(0)
    table["gaps"] = table["installed_kb"].where(rng.random(len(table)) > 0.1)

    numbers = pd.DataFrame(rng.normal(size=(3000, 20))).add_prefix("x")
    truth = (numbers.to_numpy()[:, :3] > 0).astype(int)
    model, rows = MLCA().fit(numbers, truth), [numbers[i : i + 1] for i in range(300)]
    each = seconds(lambda: [model.predict(row) for row in rows]) / 300
    print(f"predict one numeric frame row, 20 columns: {1e6 * each:.0f} us", flush=True)

    short = table[["summary", "section"]]
    model, rows = MLCA().fit(short[:3000], y[:3000]), [short[i : i + 1] for i in range(4000, 4300)]
    each = seconds(lambda: [model.predict(row) for row in rows]) / 300
    print(f"predict one row of text and a category, {model.n_nodes_:,} nodes: {1e3 * each:.2f} ms", flush=True)

    fortran, labels = np.asfortranarray(rng.normal(size=(3000, 20))), np.ones((1, 1), dtype=int)
    model = MLCA(decision="bayes", similarity="correntropy", vigilance=0.9).fit(fortran[:100], np.ones((100, 1), int))
    each = seconds(lambda: [model.partial_fit(fortran[i : i + 1], labels) for i in range(3000)], 1) / 3000
    print(f"single rows of a Fortran-ordered array, partial_fit: {1 / each:,.0f} rows/s", flush=True)

    for name in (None, "section", "gaps"):
        learning, predicting = learn_and_predict(table[WORDS if name is None else [*WORDS, name]], y, 2500)
        print(f"2,500 packages, text and {name}: {learning:.2f} / {predicting:.2f} s", flush=True)
    learning, predicting = learn_and_predict(table.drop(columns="gaps"), y, 5000)
    print(f"5,000 packages as they are: {learning:.2f} / {predicting:.2f} s", flush=True)

    for name, texts in (("summaries", table["summary"]), ("summaries and descriptions", table[WORDS].agg(" ".join, 1))):
        taken = seconds(lambda texts=texts: learn_words(texts[:600].tolist(), y[:600]))
        print(f"River's BagOfWords, 600 {name}: {taken:.2f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""Measure exact match, F1 and macro AUC of MLCA() with categories and missing values.

Uses flags and birds as frames with names in nominal columns (5 x 10 and 10 folds), emotions with a tenth of its cells
deleted at random (10 folds), and the generated tickets of tests/tables/tickets.py. Set MLCA_DATA to the folder of the
datasets, and run the script from the root of the repository: python -m docs.scripts.measure_tables
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from mlca import MLCA
from mlca.datasets import load_dataset
from mlca.metrics import evaluate
from tests.tables.tickets import tickets


def frame_of(data, gaps=0.0):
    """Return a dataset as a frame with names in nominal columns; delete a share of the cells."""
    rows = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    frame = pd.DataFrame(rows, columns=data.feature_names)
    for column, values in data.categories.items():
        frame[column] = pd.Categorical([values[int(code)] for code in frame[column]])
    deleted = np.random.default_rng(0).random(frame.shape) < gaps
    return frame.mask(deleted) if gaps else frame


def folds(name, repetitions, gaps=0.0):
    """Return the means of the measures over folds, and the CPU seconds per fold."""
    data = load_dataset(name)
    frame, Y = frame_of(data, gaps), np.asarray(data.Y.todense())
    measured, began = [], time.process_time()
    for seed in range(repetitions):
        for train, test in KFold(10, shuffle=True, random_state=seed).split(frame):
            train = np.random.default_rng(seed).permutation(train)
            model = MLCA().fit(frame.iloc[train], Y[train])
            answers = model.predict_details(frame.iloc[test])
            result = evaluate(Y[test], answers.probabilities, Y_pred=answers.chosen())
            measured.append((result.exact_match, result.example_f1, result.macro_auc))
    return np.nanmean(measured, axis=0), (time.process_time() - began) / len(measured)


def main() -> None:
    """Measure the datasets and the generated tickets, and print the results."""
    warnings.simplefilter("ignore")
    for name, repetitions, gaps in (("flags", 5, 0.0), ("birds", 1, 0.0), ("emotions", 1, 0.1)):
        measures, seconds = folds(name, repetitions, gaps)
        print(f"{name:<9} {' / '.join(f'{value:.3f}' for value in measures)}, {seconds:.2f} s per fold", flush=True)
    test = tickets(1000, 2)
    for n in (1500, 3000):
        began = time.process_time()
        model = MLCA().fit(*tickets(n, 1))
        learned = time.process_time()
        score = model.score(*test)
        predicted = time.process_time()
        print(f"{n} tickets {score:.3f}, {learned - began:.1f} s to learn, {predicted - learned:.1f} s to predict")


if __name__ == "__main__":
    main()

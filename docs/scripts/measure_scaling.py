"""Measure what docs/tables.md says about numbers beside a category: as they are, and scaled by the rows learned.

Five folds each; column 0 is the category. The generated tables have an income, an age, a share and a deviation of a
thousandth, in one of them the income in steps of 10,000; in breast cancer the category is a quarter of one column, and
a label whether another is above its median, which is left out.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold

from mlca import MLCA
from mlca.metrics import exact_match, example_f1

MODELS = {
    "MLCA()": lambda: MLCA(categorical_features=[0]),
    "MLCA(vigilance=0.1)": lambda: MLCA(categorical_features=[0], vigilance=0.1),
    "MLCA.published()": lambda: MLCA.published(categorical_features=[0]),
}


def generated(seed, digits):
    """Return a table of 2,000 rows and its labels."""
    rng = np.random.default_rng(seed)
    income, age = np.exp(rng.normal(11, 0.8, 2000)).round(digits), rng.uniform(20, 80, 2000)
    share, small, code = rng.random(2000), rng.normal(0, 1e-3, 2000), rng.integers(0, 5, 2000)
    labels = [share > 0.6, (age > 50) & (code < 3), small > 0, income > 60_000]
    return np.column_stack([code, income, age, share, small]), np.column_stack(labels).astype(int)


def breast_cancer():
    """Return the table with a category made of a column, and its labels."""
    data = load_breast_cancer()
    X, code = data.data, np.searchsorted(np.quantile(data.data[:, 1], [0.25, 0.5, 0.75]), data.data[:, 1])
    labels = [data.target == 0, data.target == 1, X[:, 3] > np.median(X[:, 3])]
    return np.column_stack([code, np.delete(X, 3, axis=1)]), np.column_stack(labels).astype(int)


def measured(new, X, Y, scaling):
    """Return exact match and F1 by example, means over the folds."""
    found = []
    for learned, rest in KFold(5, shuffle=True, random_state=0).split(X):
        rows = X.copy()
        if scaling:
            rows[:, 1:] = (rows[:, 1:] - rows[learned, 1:].mean(axis=0)) / rows[learned, 1:].std(axis=0)
        predicted = new().fit(rows[learned], Y[learned]).predict(rows[rest])
        found.append((exact_match(Y[rest], predicted), example_f1(Y[rest], predicted)))
    return np.mean(found, axis=0)


if __name__ == "__main__":
    tables = {
        "generated": generated(1, 9),
        "in steps of 10,000": generated(2, -4),
        "breast cancer": breast_cancer(),
    }
    for name, (X, Y) in tables.items():
        for scaling in (False, True):
            figures = (
                f"{title} {' / '.join(f'{x:.3f}' for x in measured(new, X, Y, scaling))}"
                for title, new in MODELS.items()
            )
            print(f"{name}, {'scaled' if scaling else 'as they are'}: {', '.join(figures)}")

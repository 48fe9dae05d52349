"""Fixtures for datasets, and for the ten folds of the specification's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

from mlca.datasets import load_dataset
from mlca.metrics import evaluate


class Dataset(NamedTuple):
    X: NDArray[np.float64]
    Y: NDArray[np.uint8]

    def scaled(self) -> Dataset:
        return Dataset(MinMaxScaler().fit_transform(self.X), self.Y)


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], Dataset]:
    """Load a dataset of MLCA_DATA as dense arrays; use it in tests marked `data`."""

    def load(name: str) -> Dataset:
        loaded = load_dataset(name)
        X = loaded.X.toarray() if sparse.issparse(loaded.X) else loaded.X
        return Dataset(np.ascontiguousarray(X, dtype=np.float64), loaded.Y.toarray().astype(np.uint8))

    return load


@pytest.fixture(scope="session")
def mean_over_ten_folds() -> Callable[[Any, Dataset], dict[str, float]]:
    """Return a function that averages measures over ten folds.

    Rows are permuted with seed 0; fold f consists of rows f, f + 10, ... of that order.
    """

    def measure(model: Any, data: Dataset) -> dict[str, float]:
        order = np.random.RandomState(0).permutation(len(data.X))
        folds = []
        for f in range(10):
            test = order[f::10]
            train = np.setdiff1d(order, test)  # ascending: stream learners see the rows in the order of the file
            fitted = clone(model).fit(data.X[train], data.Y[train])
            predicted = fitted.predict(data.X[test])
            proba = fitted.predict_proba(data.X[test])
            folds.append(evaluate(data.Y[test], proba, Y_pred=predicted).as_dict())
        return {name: float(np.mean([fold[name] for fold in folds])) for name in folds[0]}

    return measure

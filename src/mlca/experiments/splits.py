"""Datasets for the experiments, and their splits into training and test rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from mlca.datasets import CATALOGUE, load_dataset
from mlca.datasets.locations import find
from mlca.optional import install

N_FOLDS = 10
# Rows with a larger share of non-zeros are treated as dense, even if the file stores them as sparse.
MOSTLY_ZERO = 0.5

# River contains this dataset, as `river.datasets.Yeast`.
RIVER_YEAST = "yeast"


@dataclass(frozen=True)
class Split:
    """Training and test rows of a dataset."""

    X: Any
    Y: NDArray[np.uint8]
    X_test: Any
    Y_test: NDArray[np.uint8]


def is_available(name: str) -> bool:
    """Return whether a dataset can be loaded without a download."""
    return find(CATALOGUE[name]) is not None or _river_has(name)


def how_to_get(name: str) -> str:
    """Return instructions for getting a missing dataset."""
    river = f", or {install('river')}, which includes it" if name == RIVER_YEAST else ""
    hint = "" if os.environ.get("MLCA_DATA") else ", or set MLCA_DATA to a folder that contains it"
    return f"{name} is missing, so it is left out; get it with `mlca datasets fetch {name}`{river}{hint}."


def split_of(name: str, repetition: int | None, fold: int | None, *, scaled: bool, dense: bool) -> Split:
    """Return the training and test rows of a dataset, from a fold or its official split.

    For a fold, the rows are shuffled by a generator whose seed is the index of the repetition. Every tenth row in the
    shuffled order is a test row. Training rows stay in the shuffled order, which matters because the algorithms learn
    row by row.

    Parameters
    ----------
    name : str
        The name of the dataset.
    repetition, fold : int or None
        The index of the shuffle, and of the fold within it; None for the official split.
    scaled : bool
        Whether features are scaled to [0, 1], with the ranges of the training rows.
    dense : bool
        Whether rows must be dense.
    """
    X, Y, split = whole(name)
    if fold is None or repetition is None:
        if split is None:
            raise ValueError(f"{name} has no official split: pass a repetition and a fold")
        training, tested = split
    else:
        training, tested = fold_rows(X.shape[0], repetition, fold)
    X_train, X_test = X[training], X[tested]
    if dense and sparse.issparse(X):
        X_train, X_test = X_train.toarray(), X_test.toarray()
    if scaled:
        # Sparse features are counts or 0/1: their minimum is 0, and their maximum alone determines the scale.
        scaler = MaxAbsScaler() if sparse.issparse(X_train) else MinMaxScaler()
        X_train, X_test = scaler.fit_transform(X_train), scaler.transform(X_test)
    return Split(X_train, Y[training], X_test, Y[tested])


def fold_rows(n_rows: int, repetition: int, fold: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the training rows and the test rows of one fold.

    Examples
    --------
    >>> training, tested = fold_rows(30, repetition=0, fold=3)
    >>> len(training), len(tested), len(set(training) | set(tested))
    (27, 3, 30)
    """
    order = np.random.RandomState(repetition).permutation(n_rows)
    place = np.arange(n_rows) % N_FOLDS
    return order[place != fold], order[place == fold]


@lru_cache(maxsize=1)
def whole(name: str) -> tuple[Any, NDArray[np.uint8], tuple[NDArray[np.intp], NDArray[np.intp]] | None]:
    """Read a dataset and its split; cache only the latest, as tasks are sorted by dataset."""
    if find(CATALOGUE[name]) is None and _river_has(name):
        return *_read_river_yeast(), None
    data = load_dataset(name)
    X = data.X
    if sparse.issparse(X) and X.nnz > MOSTLY_ZERO * X.shape[0] * X.shape[1]:
        X = X.toarray()  # Mediamill's file stores sparse rows but has no zeros
    return X, data.Y.toarray(), data.split


def _river_has(name: str) -> bool:
    return name == RIVER_YEAST and find_spec("river") is not None


def _read_river_yeast() -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    from river.datasets import Yeast

    stream = Yeast()  # type: ignore[no-untyped-call]
    rows, labels = zip(*((list(x.values()), list(y.values())) for x, y in stream), strict=True)
    return np.array(rows, dtype=np.float64), np.array(labels, dtype=np.uint8)

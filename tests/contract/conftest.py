"""Fixtures for every classifier of the package, and for data that each can learn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from tests.contract.all_classifiers import CLASSIFIERS, STREAM_CLASSIFIERS


class Data(NamedTuple):
    X: NDArray[np.float64]
    Y: NDArray[np.int64]
    queries: NDArray[np.float64]


@pytest.fixture(params=CLASSIFIERS)
def model(request: pytest.FixtureRequest) -> Any:
    """Return each classifier in turn, not yet fitted."""
    return clone(CLASSIFIERS[request.param])


@pytest.fixture(params=STREAM_CLASSIFIERS)
def stream_model(request: pytest.FixtureRequest) -> Any:
    """Return each stream learner in turn, not yet fitted."""
    return clone(CLASSIFIERS[request.param])


@pytest.fixture
def data() -> Data:
    """Return rows of the unit square with three half-planes as labels; the first row has all labels."""
    rng = np.random.default_rng(0)
    X = rng.random((70, 2))
    Y = np.stack([X[:, 0] > 0.4, X[:, 1] > 0.5, X.sum(axis=1) > 0.9], axis=1).astype(int)
    first = int(np.flatnonzero(Y.all(axis=1))[0])
    X[[0, first]], Y[[0, first]] = X[[first, 0]], Y[[first, 0]]
    return Data(X, Y, rng.random((15, 2)))

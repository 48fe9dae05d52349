"""Helpers for tests that interrupt learning: streams, and checks after a failure."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from mlca import load
from tests.learner.model_comparison import assert_exactly_same

MODES = ("common", "individual", "clustered")
KINDS = {"dense": np.asarray, "sparse": sparse.csr_array}
# Failing at every allocation takes minutes, and far longer with sanitizers, so sanitized runs test only some.
EVERY = [pytest.mark.slow, pytest.mark.plain]
SOME = [pytest.mark.slow, pytest.mark.sanitized]


def stream(n, d, kind="dense", seed=0):
    """Return rows and label lists: most rows become nodes; some labels appear late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, d))
    X[rng.random(X.shape) < 0.5] = 0.0
    again = rng.random(n) < 0.1
    X[again] = X[rng.integers(0, n, again.sum())]
    names = [f"label {j}" for j in range(2 + n // 40)]
    y = [rng.choice(names[: 2 + i // 40], rng.integers(0, 3), replace=False).tolist() for i in range(n)]
    return KINDS[kind](X), y


class WholeRows:
    """The models after each number of rows of a stream; each model is trained only once."""

    def __init__(self, make, X, y):
        self.make, self.X, self.y = make, X, y
        self.clean = {}

    def after(self, n):
        if n not in self.clean:
            self.clean[n] = self.make().partial_fit(self.X[:n], self.y[:n])
        return self.clean[n]

    def check(self, model):
        """Assert that a model equals one trained on its rows, and can learn the other rows."""
        n = model.n_seen_ if hasattr(model, "labels_") else 0
        if n == 0:
            assert not hasattr(model, "labels_") or model._learner.n_seen == 0
        else:
            assert_exactly_same(model, self.after(n))
            np.testing.assert_array_equal(model.predict_proba(self.X[:3]), self.after(n).predict_proba(self.X[:3]))
        if n < self.X.shape[0]:
            model.partial_fit(self.X[n:], self.y[n:])
        assert_exactly_same(model, self.after(self.X.shape[0]))


def assert_saves_and_pickles(model, folder):
    model.save(folder / "model.mlca")
    assert_exactly_same(load(folder / "model.mlca"), model)
    assert_exactly_same(pickle.loads(pickle.dumps(model)), model)

"""The plain learner of beyond.md: near the stored outputs of the specification's program, and the same in any order."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.learner.beyond import Beyond, Novelty, auto_vigilance
from tests.learner.drift import Drift
from tests.learner.streams import streams

pytestmark = pytest.mark.plain

# Generated streams are kept here; rows of real datasets never are: those oracles lie beside the datasets.
GENERATED = Path(__file__).parent.parent / "data"
OF_DATASETS = Path(os.environ.get("MLCA_DATA", "nowhere")).parent / "oracle"
CHOSEN = {
    "vigilance": 0.0,
    "n_neighbors": 10,
    "window": 50,
    "smoothing": 1.0,
    "attributes": "common",
    "rule": "published",
    "vote": "counts",
}


class DistinctRows:
    """Every distinct row is a node, as in the specification's programs."""

    def similarities(self, x, predicting=False):
        if predicting:
            return super().similarities(x, predicting)
        return [int(x != y) for y in self.y], 0


class DistinctBeyond(DistinctRows, Beyond):
    pass


class DistinctDrift(DistinctRows, Drift):
    pass


def prequential(model, X, Y, learned):
    """Return what is said of each row before it is learned; rows from `learned` on are not."""
    model.begin(X, Y.shape[1])
    p, predicted = np.zeros(Y.shape), np.zeros(Y.shape, int)
    for i, x in enumerate(model.X):
        if i:
            said = model.probabilities(x)
            p[i], predicted[i] = model.proba_of(said), model.predicted_of(said)
        if i < learned:
            model.learn(x, [int(v) for v in Y[i]])
    return p, predicted


@pytest.mark.parametrize(
    "name",
    ["flags_recency", "sparse_late", "drift_blobs", "drift_flags_recency"]
    + [
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("flags", "emotions", "virusgo", "virusgo_recency", "drift_flags")
    ],
)
def test_it_is_near_the_specification(name):
    file = f"beyond_{name}.npz"
    path = GENERATED / file if (GENERATED / file).exists() else OF_DATASETS / file
    if not path.exists():
        pytest.skip(f"needs {file} in the folder oracle beside that of MLCA_DATA")
    oracle = np.load(path)
    kind, learned = DistinctDrift if oracle["drift"] else DistinctBeyond, int(oracle["learned"])
    model = kind(recency=bool(oracle["recency"]), **CHOSEN)
    p, predicted = prequential(model, oracle["X"], oracle["Y"], learned)
    near = np.abs(p - oracle["proba"]) <= 2e-4
    equal = (predicted == oracle["predicted"]).all(axis=1)
    for part in (slice(learned), slice(learned, None)):
        assert near[part].mean() >= 0.995
        assert equal[part].mean() >= 0.99
    weights = np.array(model.learned.weights) / sum(model.learned.weights)
    np.testing.assert_allclose(weights, oracle["weights"], atol=1e-7)
    assert model.learned.sparse == oracle["sparse"]


@settings(max_examples=25, deadline=None)
@given(
    streams(max_rows=40),
    st.sampled_from([("learned", "calibrated"), ("learned", "bayes"), ("correntropy", "calibrated")]),
    st.randoms(use_true_random=False),
)
def test_columns_may_be_permuted(stream, kind, random):
    X, Y = stream
    order = random.sample(range(X.shape[1]), X.shape[1])
    chosen = CHOSEN | {"vigilance": 0.1, "similarity": kind[0], "decision": kind[1]}
    straight, permuted = Beyond(**chosen).fit(X, Y), Beyond(**chosen).fit(X[:, order], Y)
    for x in X[:5] + 0.125:
        assert straight.probabilities(x) == permuted.probabilities(x[order])


def test_a_row_far_from_everything_gets_the_frequencies():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (60, 2)), (rng.random((60, 3)) < 0.3).astype(int)
    for similarity in ("learned", "correntropy"):
        model = Beyond(similarity=similarity, **CHOSEN).fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba([1e300, -1e300]), Y.sum(axis=0) / 60)


def test_a_binary_row_that_shares_nothing_gets_the_frequencies():
    X, Y = np.eye(12)[np.arange(40) % 10], np.eye(5, dtype=int)[np.arange(40) % 5]
    model = Beyond(**CHOSEN).fit(X, Y)
    assert model.predict_proba(np.eye(12)[11]) == [0.2] * 5
    assert model.predict_proba(np.zeros(12)) == [0.2] * 5
    assert model.predict_proba(np.eye(12)[4] + np.eye(12)[11])[4] > 0.5


def test_novelty_is_the_share_of_rows_that_were_nearer():
    novelty = Novelty()
    assert (novelty.of(0.0), novelty.of(0.1)) == (0.0, 1.0)
    for distance in (0.0, 0.25, 0.25 + 1 / 128, 0.5):
        novelty.learn(distance)
    assert [novelty.of(d) for d in (0.0, 0.25, 0.25 + 1 / 128, 0.3, 0.5, 0.6, 1.0)] == [
        0.0,
        0.25,
        0.5,
        0.75,
        0.75,
        1.0,
        1.0,
    ]


@pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
def test_vigilance_follows_how_close_rows_are(attributes):
    rng = np.random.default_rng(0)
    options = {name: value for name, value in CHOSEN.items() if name != "vigilance"} | {"attributes": attributes}
    plane, wide = rng.random((50, 2)), rng.random((50, 30))
    assert 0.01 < auto_vigilance(plane, **options) < auto_vigilance(wide, **options) <= 0.3
    assert auto_vigilance(np.repeat(plane[:5], 10, axis=0), **options) == 0.01

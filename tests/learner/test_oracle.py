"""Comparison with stored outputs: of the authors' code for the paper's algorithm, and of simulations for our rule.

The simulations are plain programs that share no code with this package. That of `mixed_drift.npz` follows drift.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, reference
from tests.learner.model_comparison import state

# Outputs for generated streams are stored here, those for real datasets beside the datasets.
GENERATED = Path(__file__).parent.parent / "data"
OF_DATASETS = Path(os.environ.get("MLCA_DATA", "nowhere")).parent / "oracle"
CASES = [
    ("blobs", "released"),
    ("blobs", "published"),
    ("duplicates", "released"),
    ("duplicates", "published"),
    ("short", "released"),
]


@pytest.mark.parametrize(("stream", "rule"), CASES)
def test_state_and_probabilities_equal_those_of_the_authors(stream, rule):
    oracle = np.load(GENERATED / f"mlca_{stream}.npz")
    model = MLCA.published(vigilance=float(oracle["vigilance"]), rule=rule).fit(oracle["X"], oracle["Y"])

    def check(name, value):
        np.testing.assert_allclose(value, oracle[f"{rule}_{name}"], rtol=0, atol=1e-12, err_msg=name)

    check("weights", model.prototypes_)
    check("counts", model.counts_)
    check("label_counts", model.label_counts_.toarray())
    check("bandwidths", model.bandwidths_)
    check("with_label", state(model)["with"])
    check("without_label", state(model)["without"])
    check("proba", model.predict_proba(oracle["X_test"]))


def prequential(model, X, Y, learned):
    """Return the prediction of each row before it is learned; rows from `learned` on are only predicted."""
    p, predicted = np.zeros(Y.shape), np.zeros(Y.shape, int)
    model.partial_fit(X[:1], Y[:1])
    for i in range(1, learned):
        p[i], predicted[i] = model.predict_proba(X[i : i + 1])[0], model.predict(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    p[learned:], predicted[learned:] = model.predict_proba(X[learned:]), model.predict(X[learned:])
    return p, predicted


def oracle_of(file):
    path = GENERATED / file if (GENERATED / file).exists() else OF_DATASETS / file
    if not path.exists():
        pytest.skip(f"needs {file} in the folder oracle beside that of MLCA_DATA")
    return np.load(path)


LONG = [pytest.mark.slow, pytest.mark.plain]
NAMES = ["flags", "flags_recency", "sparse_late", "drift_blobs", "drift_flags", "drift_flags_recency"]
NAMES += [pytest.param(name, marks=pytest.mark.slow) for name in ("emotions", "virusgo", "virusgo_recency")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kind", "form"),
    [(MLCA, np.asarray), (MLCA, sparse.csr_array), pytest.param(reference.MLCA, np.asarray, marks=LONG)],
    ids=["dense", "sparse", "reference"],
)
def test_each_row_is_predicted_as_in_the_simulation(name, kind, form):
    oracle = oracle_of(f"beyond_{name}.npz")
    X, Y, learned = form(oracle["X"].astype(float)), oracle["Y"], int(oracle["learned"])
    drift = "follow" if oracle["drift"] else "off"
    model = kind(vigilance=0.0, decision="calibrated", recency=bool(oracle["recency"]), drift=drift)
    p, predicted = prequential(model, X, Y, learned)
    near = np.abs(p - oracle["proba"]) <= 2e-4
    equal = (predicted == oracle["predicted"]).all(axis=1)
    for part in (slice(learned), slice(learned, None)):
        assert near[part].mean() >= 0.995
        assert equal[part].mean() >= 0.99
    if kind is reference.MLCA:
        weights = model.similarity_.weights / model.similarity_.weights.sum()
        np.testing.assert_allclose(weights, oracle["weights"], atol=1e-7)
        assert model.similarity_.sparse == oracle["sparse"]


MIXED_NAMES = ["flags", "flags_recency", "sparse_late", "cells", "drift"]
MIXED_NAMES += [pytest.param(name, marks=pytest.mark.slow) for name in ("emotions", "virusgo", "virusgo_recency")]


@pytest.mark.parametrize("name", MIXED_NAMES)
@pytest.mark.parametrize(
    ("kind", "form"),
    [(MLCA, np.asarray), (MLCA, sparse.csr_array), pytest.param(reference.MLCA, np.asarray, marks=LONG)],
    ids=["dense", "sparse", "reference"],
)
def test_mixed_rows_are_predicted_as_in_the_simulation(name, kind, form):
    oracle = oracle_of(f"mixed_{name}.npz")
    X, Y, learned = form(oracle["X"].astype(float)), oracle["Y"], int(oracle["learned"])
    drift = "follow" if oracle.get("drift") else "off"
    model = kind(vigilance=0.0, decision="mixed", recency=bool(oracle["recency"]), drift=drift)
    p, predicted = prequential(model, X, Y, learned)
    near = np.abs(p - oracle["proba"]) <= 5e-4
    equal = (predicted == oracle["predicted"]).all(axis=1)
    for part in (slice(learned), slice(learned, None)):
        assert near[part].mean() >= 0.995
        assert equal[part].mean() >= 0.985
    if kind is MLCA:
        state = model._learner.state()
        w, H, hits = state["mixer.weights"], state["mixer.curvature"], state["mixer.hits"].tolist()
    else:
        w, H, hits = model.decision_.mixer.w, model.decision_.mixer.H, model.decision_.hits
    np.testing.assert_allclose(w, oracle["mixer"], atol=1e-6)
    np.testing.assert_allclose(H, oracle["H"], atol=1e-2)
    assert hits == oracle["hits"].tolist()

"""Final state and probabilities of the authors' released code, and of the version behind the paper's tables."""

from pathlib import Path

import numpy as np
import pytest

from mlca import MLCA
from mlca.learner.labels import counters

ORACLES = Path(__file__).parent.parent / "data"
CASES = [
    ("blobs", "released"),
    ("blobs", "published"),
    ("duplicates", "released"),
    ("duplicates", "published"),
    ("short", "released"),
]


@pytest.mark.parametrize(("stream", "rule"), CASES)
def test_state_and_probabilities_equal_the_reference_output(stream, rule):
    oracle = np.load(ORACLES / f"mlca_{stream}.npz")
    model = MLCA(vigilance=float(oracle["vigilance"]), rule=rule).fit(oracle["X"], oracle["Y"])

    def check(name, value):
        np.testing.assert_allclose(value, oracle[f"{rule}_{name}"], rtol=0, atol=1e-12, err_msg=name)

    check("weights", model.weights_)
    check("counts", model.counts_)
    check("label_counts", model.label_counts_.toarray())
    check("bandwidths", model.bandwidths_)
    learner = model._learner.settled()
    with_label, without_label = counters(learner.model, learner.n_labels)
    check("with_label", with_label)
    check("without_label", without_label)
    check("proba", model.predict_proba(oracle["X_test"]))

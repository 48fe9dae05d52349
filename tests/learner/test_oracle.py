"""Final state and probabilities of the authors' released code, and of the version behind the paper's tables."""

from pathlib import Path

import numpy as np
import pytest

from mlca import MLCA
from tests.learner.states import state

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
    model = MLCA.published(vigilance=float(oracle["vigilance"]), rule=rule).fit(oracle["X"], oracle["Y"])

    def check(name, value):
        np.testing.assert_allclose(value, oracle[f"{rule}_{name}"], rtol=0, atol=1e-12, err_msg=name)

    check("weights", model.weights_)
    check("counts", model.counts_)
    check("label_counts", model.label_counts_.toarray())
    check("bandwidths", model.bandwidths_)
    check("with_label", state(model)["with"])
    check("without_label", state(model)["without"])
    check("proba", model.predict_proba(oracle["X_test"]))

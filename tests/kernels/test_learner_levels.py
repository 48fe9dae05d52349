"""Every available processor level learns the same bits."""

import os
import subprocess
import sys

import pytest

from mlca import kernels

LEARN = """
import hashlib
import numpy as np
from scipy import sparse
from mlca import MLCA
from mlca.kernels import LEVEL
from mlca.learner.checking import capture

rng = np.random.default_rng(0)
X = rng.normal(0, 1, (180, 67))
X[rng.random(X.shape) < 0.4] = 0.0
X[90:120] = X[:30]
y = [[f"label {j}" for j in np.flatnonzero(row)] for row in rng.random((180, 5)) < 0.3]
digest = hashlib.sha256()
for rows in (X, sparse.csr_array(X), (X > 0).astype(float), sparse.csr_array((X > 0).astype(float))):
    for attributes in ("common", "individual", "clustered"):
        for vigilance in (0.01, 0.4):
            model = MLCA(attributes=attributes, vigilance=vigilance, window=25, n_jobs=2).fit(rows, y)
            state = capture(model._learner)
            for name in sorted(state):
                digest.update(state[name].tobytes())
            digest.update(model.predict_proba(rows).tobytes())
            explanation = model.explain(rows[3:4])
            digest.update(explanation.distances.tobytes() + explanation.posterior.tobytes())
print(LEVEL, digest.hexdigest())
"""


def learned(level):
    result = subprocess.run(
        [sys.executable, "-c", LEARN],
        env={**os.environ, "MLCA_CPU": level},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    used, digest = result.stdout.split()
    assert used == level
    return digest


@pytest.mark.skipif(len(kernels.available()) < 2, reason="only one level is available")
def test_all_levels_learn_the_same_bits():
    digests = {level: learned(level) for level in kernels.available()}
    assert len(set(digests.values())) == 1, digests

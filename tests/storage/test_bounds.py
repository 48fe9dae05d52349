"""Counts and features at their limits: every saved model can be loaded, in memory proportional to its file."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load, merge
from mlca.limits import MOST_FEATURES, MOST_ROWS, MOST_ROWS_OF_OUR_RULE
from tests.storage.archives import pack, unpack


def with_rows(path, n_rows, **parameters):
    """Return a loaded model whose only node has a given number of rows, which no test stream could reach."""
    model = MLCA(window=2, **parameters).fit(np.zeros((3, 2)), [["a"]] * 3)
    assert model.n_nodes_ == 1
    model.save(path)
    header, arrays = unpack(path)
    more = n_rows - 3
    arrays["tally"][1] += more
    arrays["counts"][0] += more
    arrays["label_counts.data"][0] += more
    if "with" in arrays:
        arrays["tally"][3] += more
        arrays["with"][:, -1] += more
    if "decision.totals" in arrays:
        arrays["decision.totals"][1] += more
    if "similarity.tally" in arrays:
        arrays["similarity.tally"][0] = n_rows + 1
    pack(path, header, arrays)
    return load(path)


PAPER = {"similarity": "correntropy", "decision": "bayes"}


@pytest.mark.parametrize(
    ("parameters", "most"),
    [
        (PAPER, MOST_ROWS),
        ({"similarity": "learned", "decision": "bayes"}, MOST_ROWS_OF_OUR_RULE),
        ({"similarity": "correntropy", "decision": "calibrated"}, MOST_ROWS_OF_OUR_RULE),
    ],
)
def test_models_with_too_many_rows_are_not_merged(tmp_path, parameters, most):
    half = with_rows(tmp_path / "half.mlca", most // 2, **parameters)
    less = with_rows(tmp_path / "less.mlca", most // 2 - 1, **parameters)
    with pytest.raises(ValueError, match="more than can be counted exactly"):
        merge([half, load(tmp_path / "half.mlca")])
    assert half.n_seen_ == most // 2  # both models are unchanged
    both = merge([half, less])
    assert both.n_seen_ == most - 1
    both.save(tmp_path / "both.mlca")
    assert load(tmp_path / "both.mlca").n_seen_ == most - 1


def test_model_with_too_many_rows_is_not_saved(tmp_path):
    path = tmp_path / "model.mlca"
    model = with_rows(path, MOST_ROWS - 1, **PAPER)
    before = path.read_bytes()
    model.partial_fit(np.zeros((1, 2)), [["a"]])
    with pytest.raises(ValueError, match="more than can be counted exactly"):
        model.save(path)
    assert path.read_bytes() == before


# In a separate process, because a process does not return freed memory, which would falsify the measurement.
EXPLAINING = """
import resource, sys
import numpy as np
from scipy import sparse
from mlca import MLCA, load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

model = load(sys.argv[1])
n_features = model.n_features_in_
row = sparse.csr_array(([1.0, 2.0], ([0, 0], [3, n_features - 1])), shape=(1, n_features))
before = peak()
print(str(model.explain(row)).count("x3 "), peak() - before)
"""


def test_a_small_file_that_announces_many_features_is_explained_with_little_memory(tmp_path):
    """An earlier version described each feature, which took a gigabyte and seven seconds."""
    path = tmp_path / "wide.mlca"
    X = sparse.random_array((60, 9), density=0.5, rng=0, format="csr")
    MLCA(window=10, **PAPER).fit(X, [["a"], ["b"]] * 30).save(path)
    header, arrays = unpack(path)
    header["n_features"] = MOST_FEATURES
    pack(path, header, arrays)
    assert path.stat().st_size < 50_000
    done = subprocess.run(
        [sys.executable, "-c", EXPLAINING, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    shown, megabytes = map(int, done.stdout.split())
    assert shown >= 1
    assert megabytes < 50 * 8  # 32 MB: a few rows with a float64 per feature


USING = """
import resource, sys
import numpy as np
from scipy import sparse
from mlca import load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

model = load(sys.argv[1])
n_features, before = model.n_features_in_, peak()
rows = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, n_features - 1])), shape=(2, n_features))
model.predict_proba(rows)
model.partial_fit(rows, [["a"], ["b"]])
print((peak() - before) // n_features)
"""


def test_memory_per_declared_feature_equals_the_documented_amount(tmp_path):
    """SECURITY.md states the amount; an earlier version, with lists of nodes per feature, took 273 bytes."""
    path = tmp_path / "waiting.mlca"
    X = sparse.random_array((30, 9), density=0.5, rng=0, format="csr")
    MLCA(window=40, search="exact").fit(X, [["a"], ["b"]] * 15).save(path)
    header, arrays = unpack(path)
    header["n_features"] = MOST_FEATURES // 4
    pack(path, header, arrays)
    done = subprocess.run(
        [sys.executable, "-c", USING, str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 240

"""Screening of mixed nodes (src/kernels/search/float_tiles.hpp) changes no bit.

The bounds support categories up to 1e18 and rows of up to 1024 features. So a category 1e19 disables them, and the
model must equal the one with the category 1 instead. Longer rows are screened by their numbers only
(src/kernels/nodes/sparse_nodes.hpp).
"""

import numpy as np
import pytest
from scipy import sparse

from mlca.learner.checking import capture
from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters
from tests.learner.algorithm_options import VARIANTS
from tests.learner.model_comparison import assert_same_arrays
from tests.learner.reference_comparison import assert_equals_reference
from tests.learner.test_mixed import fitted, learn

NOMINAL = (2, 5)


def stream(kind, n=330):
    """Rows of seven features, two of them categories, for several tiles of nodes; a fifth of the cells is missing."""
    rng = np.random.default_rng(len(kind))
    X = rng.normal(size=(n, 7))
    if kind == "ties":
        X = rng.integers(0, 3, (n, 7)).astype(float)
    elif kind == "hardly apart":
        X = 5 + 1e-7 * X
    elif kind == "far from zero":
        X += 1e7
    elif kind == "of all sizes":
        X *= 10.0 ** rng.integers(-9, 9, (n, 7))
    elif kind == "next to nothing":  # its factors are out of float32's range
        X *= 2.0**-140
    elif kind == "mostly zero":
        X *= rng.random((n, 7)) < 0.3
    elif kind == "zeros and ones":
        X = (X > 0).astype(float)
    X[:, NOMINAL] = rng.integers(1, 5, (n, 2))
    Y = np.column_stack([np.sin(3 * X[:, 0] / (np.abs(X[:, 0]).max() + 1)) > 0, X[:, 2] == 3, X[:, 5] > 2]).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, Y


KINDS = ["numbers", "ties", "hardly apart", "far from zero", "of all sizes", "next to nothing", "mostly zero"]
KINDS += ["zeros and ones"]
RULES = [
    {"similarity": "learned", "decision": "calibrated"},
    {"similarity": "learned", "decision": "calibrated", "drift": "follow", "vigilance": 0.1},
    {"similarity": "correntropy", "decision": "calibrated", "vigilance": 0.2},
    {"similarity": "correntropy", "decision": "bayes", "n_neighbors": 3},
    {"similarity": "learned", "decision": "bayes", "attributes": "individual", "vigilance": 0.1},
    {"similarity": "learned", "decision": "calibrated", "max_nodes": 150},
    {"similarity": "learned", "decision": "calibrated", "vigilance": 0.5},  # many rows join nodes
]


# Arrays that depend on the values of categories, or on the order of their traits.
NAMED_BY_CATEGORIES = {"weights", "recent", "similarity.trait_values", "background.indices", "background.data"}
NAMED_BY_CATEGORIES |= {"background.means"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: " ".join(map(str, rule.values())))
@pytest.mark.parametrize("kind", KINDS)
def test_screening_does_not_change_the_model(kind, rule):
    X, Y = stream(kind)
    parameters = Parameters(**rule, categorical_features=NOMINAL)
    other = X.copy()
    other[other[:, 2] == 1, 2] = 1e19
    screened, plain = fitted(parameters, X, Y), fitted(parameters, other, Y)
    found = screened.state(), plain.state()
    for name in found[0]:
        if name not in NAMED_BY_CATEGORIES:
            np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)
    new, other_new = X[::4].copy(), other[::4].copy()
    for rows in (new, other_new):
        rows[:, 0] += 0.25 * np.abs(rows[:, 1])
        rows[3] = np.nan
    answers = screened.settled().answers(new), plain.settled().answers(other_new)
    np.testing.assert_array_equal(answers[0].probabilities, answers[1].probabilities)


@pytest.mark.parametrize("exponent", [-500, -130, 130, 300])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: " ".join(map(str, rule.values())))
def test_scaling_numbers_by_a_power_of_two_does_not_change_probabilities(rule, exponent):
    X, Y = stream("numbers", 200)
    X = np.delete(X, NOMINAL, axis=1)  # without categories, rows join nodes more often
    other = X * 2.0**exponent
    first, second = (fitted(Parameters(**rule), rows, Y).settled() for rows in (X, other))
    assert first.n_nodes == second.n_nodes
    np.testing.assert_array_equal(first.answers(X[:40]).probabilities, second.answers(other[:40]).probabilities)


@pytest.mark.slow
def test_very_long_rows_equal_the_reference():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, 1030)) * (rng.random((70, 1030)) < 0.02)
    X[:, 3] = rng.integers(0, 3, 70)
    X[rng.random(X.shape) < 0.005] = np.nan
    Y = np.column_stack([X[:, 3] == 1, rng.random(70) < 0.5]).astype(int)
    options = VARIANTS["calibrated"] | {"categorical_features": [3]}
    assert_equals_reference(X, Y, options, "sparse", screen_from=1, queries=X[::9])


@pytest.mark.parametrize("rule", RULES[:4], ids=lambda rule: " ".join(map(str, rule.values())))
@pytest.mark.parametrize("lacking", [0.0, 0.002], ids=["complete", "incomplete"])
def test_screening_long_rows_by_their_numbers_does_not_change_the_model(rule, lacking):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 1030)) * (rng.random((600, 1030)) < 0.02)
    X[300:450] = X[:150] * (1 + 0.01 * rng.normal(size=(150, 1)))  # near other rows
    X[:, 3] = rng.integers(0, 3, 600)
    X[rng.random(X.shape) < lacking] = np.nan
    Y = np.column_stack([X[:, 3] == 1, rng.random(600) < 0.5]).astype(int)
    queries = np.where(rng.random((80, 1030)) < 0.01, np.nan, X[280:360])
    parameters = Parameters(**rule, categorical_features=(3,) if lacking else ())
    screened, plain = (
        learn(Learner(parameters, 1030, sparse_nodes=True, screen_from=at), sparse.csr_array(X), Y) for at in (1, 10**9)
    )
    assert_same_arrays(capture(screened), capture(plain))
    answers = [learner.settled().answers(queries).probabilities for learner in (screened, plain)]
    np.testing.assert_array_equal(*answers)

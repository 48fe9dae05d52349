"""`mlca.reference.MLCA`: no compiled code, the defaults of `mlca.MLCA`, and properties of its predictions."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import mlca
from mlca.reference import MLCA
from mlca.reference.decision import Novelty

WITHOUT_COMPILED_CODE = """
import sys
from importlib.abc import MetaPathFinder

class NoKernels(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("mlca._kernels"):
            raise ImportError(f"{name} must not be imported")

sys.meta_path.insert(0, NoKernels())
from mlca.reference import MLCA

X = [[0.0, 1.0], [9.0, 8.0]] * 30
model = MLCA().partial_fit(X, [["calm"], ["storm", "alarm"]] * 30)
assert model.predict([[9.0, 9.0], [0.0, 0.0]]).tolist() == [[0, 1, 1], [1, 0, 0]]
assert "mlca.kernels" not in sys.modules
"""


def test_no_compiled_code_is_needed():
    done = subprocess.run([sys.executable, "-c", WITHOUT_COMPILED_CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_options_and_defaults_are_those_of_the_compiled_classifier():
    own, compiled = (inspect.signature(kind).parameters for kind in (MLCA, mlca.MLCA))
    both = own.keys() & compiled.keys()
    assert {name for name in both if own[name].default != compiled[name].default} == set()
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in own.values())
    assert own.keys() - compiled.keys() == {"cell_limits"}  # for tests, which have few nodes
    assert compiled.keys() - own.keys() == {"columns", "epochs", "n_jobs", "text_features", "verbose"}


def test_all_forms_of_labels_and_rows_give_the_same_model():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (70, 3)), (rng.random((70, 2)) < 0.4).astype(int)
    X[X < 0] = 0.0
    names = [[name for name, has in zip("ab", row, strict=True) if has] for row in Y]
    whole = MLCA().partial_fit(X, Y).predict_proba(X)
    in_parts = MLCA().partial_fit(sparse.csr_array(X[:20]), Y[:20]).partial_fit(X[20:], sparse.csr_array(Y[20:]))
    np.testing.assert_array_equal(in_parts.predict_proba(sparse.csr_array(X)), whole)
    by_name = MLCA().partial_fit(X, names)
    order = [by_name.classes_.tolist().index(name) for name in "ab"]
    np.testing.assert_array_equal(by_name.predict_proba(X)[:, order], whole)
    np.testing.assert_array_equal(by_name.predict(X)[:, order], mlca.MLCA().fit(X, Y).predict(X))


def test_rows_without_any_label_have_no_columns():
    model = MLCA().partial_fit([[0.0], [1.0]] * 30, [[]] * 60)
    assert model.predict_proba([[0.0], [2.0]]).shape == model.predict([[0.0], [2.0]]).shape == (2, 0)


@pytest.mark.parametrize("columns", [["colour"], [True], np.array([True]), [1], [0.0]])
def test_categories_other_than_numbers_of_columns_are_rejected(columns):
    with pytest.raises(ValueError, match="takes categorical_features as column indices from 0 to 0, not"):
        MLCA(categorical_features=columns).partial_fit([[0.0]], [["a"]])


def test_classes_of_single_labels_are_rejected():
    with pytest.raises(ValueError, match="indicator matrix or lists of label names"):
        MLCA().partial_fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([["red"], ["blue"]], [["a"], ["b"]], "mlca.MLCA also takes text"),
        ([[0.0], [1.0, 2.0]], [["a"], ["b"]], "X holds something other than rows of numbers"),
        ([0.0, 1.0], [["a"], ["b"]], r"X must have two dimensions, but its shape is \(2,\)"),
        ([[0.0], [np.inf]], [["a"], ["b"]], "X holds an infinite value"),
        ([[0.0], [1.0]], [["a"]], "X has 2 rows, but y has 1"),
    ],
)
def test_rows_that_are_not_numbers_are_rejected(X, y, message):
    with pytest.raises(ValueError, match=message):
        MLCA().partial_fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decision": "best"}, "decision must be one of 'mixed', 'calibrated', 'bayes', not 'best'"),
        ({"decision": "bayes", "recency": True}, "recency and drift"),
        ({"decision": "calibrated", "objective": "f1"}, 'objective="f1" needs decision="mixed"'),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        MLCA(**options)


def test_unlearned_models_and_rows_of_another_width_are_rejected():
    model = MLCA()
    with pytest.raises(NotFittedError, match="has not learned any rows"):
        model.predict([[0.0]])
    model.partial_fit([[0.0]], [["a"]])
    with pytest.raises(ValueError, match=r"rows of 1 features, but its shape is \(1, 2\)"):
        model.predict([[0.0, 1.0]])


@pytest.mark.parametrize("decision", ["mixed", "calibrated", "bayes"])
@pytest.mark.parametrize("objective", ["exact", "f1", "hamming"])
def test_predictions_for_every_objective_equal_those_of_the_compiled_classifier(decision, objective):
    if objective == "f1" and decision != "mixed":
        return
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = (X + rng.normal(size=X.shape) > 1).astype(int)
    plain, compiled = (kind(decision=decision, objective=objective).partial_fit(X, Y) for kind in (MLCA, mlca.MLCA))
    np.testing.assert_array_equal(plain.predict_proba(X), compiled.predict_proba(X))
    np.testing.assert_array_equal(plain.predict(X), compiled.predict(X))


@pytest.mark.parametrize("similarity", ["learned", "correntropy"])
def test_distant_row_gets_the_frequencies(similarity):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (60, 2)), (rng.random((60, 3)) < 0.3).astype(int)
    model = MLCA(similarity=similarity).partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba([[1e100, -1e100]])[0], Y.sum(axis=0) / 60)


def test_binary_row_without_common_features_gets_the_frequencies():
    X, Y = np.eye(12)[np.arange(40) % 10], np.eye(5, dtype=int)[np.arange(40) % 5]
    model = MLCA().partial_fit(X, Y)
    assert model.predict_proba([np.eye(12)[11], np.zeros(12)]).tolist() == [[0.2] * 5] * 2
    assert model.predict_proba([np.eye(12)[4] + np.eye(12)[11]])[0, 4] > 0.5


def test_novelty_is_the_share_of_rows_that_were_nearer():
    novelty = Novelty()
    assert (novelty.of(0.0), novelty.of(0.1)) == (0.0, 1.0)
    for distance in (0.0, 0.25, 0.25 + 1 / 128, 0.5):
        novelty.learn(distance)
    shares = {0.0: 0.0, 0.25: 0.25, 0.25 + 1 / 128: 0.5, 0.3: 0.75, 0.5: 0.75, 0.6: 1.0, 1.0: 1.0}
    assert {distance: novelty.of(distance) for distance in shares} == shares


@pytest.mark.parametrize("attributes", ["common", "individual", "clustered"])
def test_automatic_vigilance_depends_on_nearest_distances(attributes):
    rng = np.random.default_rng(0)
    plane, wide = rng.random((50, 2)), rng.random((50, 30))
    repeated = np.repeat(plane[:5], 10, axis=0)
    plane, wide, repeated = (
        MLCA(vigilance="auto", attributes=attributes).partial_fit(X, [["a"]] * 50).vigilance_
        for X in (plane, wide, repeated)
    )
    assert 0.01 == repeated < plane < wide <= 0.3

"""Random combinations of options on random rows: all guarantees hold."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load, merge
from tests.learner.model_comparison import assert_exactly_same

SCALES = {"real": 1.0, "huge": 1e149, "tiny": 1e-300}
# The options that are drawn, each with its possible values.
OPTIONS = {
    "similarity": ["learned", "correntropy"],
    "decision": ["mixed", "calibrated", "bayes"],
    "objective": ["exact", "f1", "hamming"],
    "attributes": ["common", "individual", "clustered"],
    "rule": ["published", "released", "text"],
    "vigilance": [0.0, 0.01, 0.2, 0.999, "auto"],
    "window": [2, 5, 50],
    "n_neighbors": [2, 3, 10],
    "max_nodes": [None, None, 2, 5, 30],
    "recency": [False, True],
    "drift": ["off", "follow"],
    "categorical_features": [None, None, None, [0]],
    "epochs": [1, 1, 2],
}


def drawn_options(rng):
    options = {name: values[rng.integers(len(values))] for name, values in OPTIONS.items()}
    if options["decision"] == "bayes":
        options |= {"recency": False, "drift": "off"}
    if options["decision"] == "mixed":
        options |= {"similarity": "learned"}
    elif options["objective"] == "f1":
        options |= {"objective": "exact"}
    return options | {"random_state": 0}


def drawn_rows(rng, n, d):
    kind = rng.choice(["binary", "constant", "grid", "mostly zero", "repeated", *SCALES])
    X = rng.normal(0, 1, (n, d)) * SCALES.get(kind, 1.0)
    if kind == "binary":
        X = (X > 0.8).astype(float)
    elif kind == "constant":
        X[:] = rng.choice([0.0, 1.0, -3.5, 1e150])
    elif kind == "grid":
        X = X.round()
    elif kind == "mostly zero":
        X[rng.random((n, d)) < 0.9] = 0.0
    elif kind == "repeated":
        X = X[rng.integers(0, max(1, n // 5), n)]
    if rng.random() < 0.3:
        X[rng.random((n, d)) < rng.choice([0.05, 0.5, 1.0])] = np.nan
    return X


def drawn(seed):
    """Return options, rows, labels (some late, some rows without any) and rows to predict."""
    rng = np.random.default_rng(seed)
    n, d, q = rng.choice([1, 2, 3, 20, 60, 120]), rng.choice([1, 2, 3, 8, 17, 40]), rng.choice([1, 2, 3, 7])
    options, X = drawn_options(rng), drawn_rows(rng, n, d)
    if options["categorical_features"]:
        X[:, 0] = np.where(np.isnan(X[:, 0]), np.nan, rng.integers(0, 4, n))
    chance = rng.choice([0.0, 0.1, 0.5, 1.0])
    Y = [{f"l{j}" for j in range(q) if i >= 7 * j and rng.random() < chance} for i in range(n)]
    others = [rng.normal(0, 3, (2, d)), np.zeros((1, d)), np.full((1, d), 1e150), np.full((1, d), np.nan)]
    return rng, options, X, Y, np.concatenate([X[:3], *others])


def in_portions(rng, options, X, Y, path):
    """Learn in portions with two threads; predict, save and copy in between."""
    model = MLCA(**options | {"n_jobs": 2, "epochs": 1})
    for _ in range(options["epochs"]):
        low = 0
        while low < X.shape[0]:
            high = low + int(rng.choice([1, 3, 40]))
            model.partial_fit(X[low:high], Y[low:high])
            low = high
            if rng.random() < 0.2:
                model = pickle.loads(pickle.dumps(model))
            if rng.random() < 0.2:
                model.save(path)
                model = load(path)
            if rng.random() < 0.2:
                model.predict_proba(X[:1])
    return model


def assert_all_holds(seed, path):
    rng, options, X, Y, asked = drawn(seed)
    model = MLCA(**options).fit(X, Y)
    answers = model.predict_proba(asked)
    assert ((answers >= 0) & (answers <= 1)).all()
    if options["decision"] != "bayes":
        novelty = model.novelty(asked)
        assert ((novelty >= 0) & (novelty <= 1)).all()
    assert str(model.explain(asked[0]))

    thin, ask_thin = sparse.csr_array(X), sparse.csr_array(asked)
    for rows, questions in ((X, asked), (thin, ask_thin)):
        other = in_portions(rng, options, rows, Y, path)
        assert other.predict_proba(questions).tobytes() == answers.tobytes()
    if options["attributes"] != "clustered" and options["categorical_features"] is None:
        order = rng.permutation(X.shape[1])
        assert MLCA(**options).fit(X[:, order], Y).predict_proba(asked[:, order]).tobytes() == answers.tobytes()
    if options["vigilance"] != "auto" and len(X) > 3:
        half = len(X) // 2
        parts = [MLCA(**options).fit(X[low:high], Y[low:high]) for low, high in ((0, half), (half, None))]
        for how in ("replay", "append"):
            whole = merge(parts, how)
            assert whole.n_seen_ == model.n_seen_
            whole.save(path)
            again = load(path).partial_fit(X, Y)
            assert_exactly_same(again, whole.partial_fit(X, Y))


@pytest.mark.parametrize("part", [*range(4), *(pytest.param(part, marks=pytest.mark.slow) for part in range(4, 100))])
def test_guarantees_hold_under_any_options(part, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for seed in range(20 * part, 20 * part + 20):
            try:
                assert_all_holds(seed, tmp_path / "model.mlca")
            except Exception as failure:
                failure.add_note(f"seed {seed}: {drawn(seed)[1]}")
                raise


def test_file_is_accepted_after_a_node_that_voted_was_replaced(tmp_path):
    X, Y = np.arange(120.0)[:, None] ** 2, [{"a"}] * 120
    model = MLCA(similarity="correntropy", decision="bayes", vigilance=0.0, window=2, max_nodes=2).fit(X, Y)
    model.save(tmp_path / "model.mlca")
    assert_exactly_same(load(tmp_path / "model.mlca"), model)


def test_file_is_accepted_after_waiting_rows_were_merged(tmp_path):
    first, second = MLCA().fit([[0.0]], [{"b"}]), MLCA().fit([[1.0], [2.0]], [{"a"}, {"a", "b"}])
    whole = merge([first, second])
    whole.save(tmp_path / "model.mlca")
    assert_exactly_same(load(tmp_path / "model.mlca"), whole)

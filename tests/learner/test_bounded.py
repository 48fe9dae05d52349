"""Bounded memory: the compiled reservoir equals that of the reference, and every guarantee holds with it."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load, merge
from mlca.learner.core import Learner, rows_in
from mlca.learner.parameters import Parameters
from tests.learner.algorithm_options import PAPER, VARIANTS
from tests.learner.model_comparison import assert_exactly_same
from tests.learner.reference_comparison import assert_equals_reference

USUAL = {"window": 20, "n_neighbors": 5, "smoothing": 1.0, "rule": "published", "vote": "counts"}
OPTIONS = {"paper": PAPER} | VARIANTS
every_variant = pytest.mark.parametrize("beyond", OPTIONS.values(), ids=OPTIONS.keys())


def stream(n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, d)).round(1)
    return X, (X @ rng.normal(0, 1, (d, 4)) > 0.8).astype(int)


def learn(parameters, X, Y, is_sparse):
    learner = Learner(parameters, X.shape[1], is_sparse, screen_from=8)
    labels = sparse.csr_array(Y)
    rows = sparse.csr_array(X) if is_sparse else X
    learner.learn(rows, labels.indptr.astype(np.int64), labels.indices.astype(np.int32), Y.shape[1])
    return learner.settled()


@pytest.mark.parametrize("form", ["dense", "sparse"])
@every_variant
def test_reservoir_equals_the_reference(beyond, form):
    options = {"vigilance": 0.05} | USUAL | beyond
    assert_equals_reference(*stream(220), options | {"max_nodes": 70}, form, screen_from=8)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("variant", ["calibrated", "mixed", "mixed recency", "mixed drift"])
def test_reservoir_of_rows_with_rare_values_equals_the_reference(variant, form):
    """In most features, the linear models meet a category, missing value or number for the first time."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((130, 12)) < 0.9, 0.0, rng.normal(size=(130, 12)).round(1))
    Y = (X @ rng.normal(size=(12, 3)) > 0.1).astype(int)
    X[:, :2] = rng.integers(0, 20, (130, 2))
    X[rng.random(X.shape) < 0.03] = np.nan
    options = {"vigilance": 0.05, "max_nodes": 40, "categorical_features": [0, 1]} | USUAL | VARIANTS[variant]
    learner = assert_equals_reference(X, Y, options, form, screen_from=8, queries=X[:9])
    assert learner.n_nodes == 40


@every_variant
def test_chunks_threads_and_files_do_not_change_the_model(beyond, tmp_path):
    X, Y = stream(400)
    model = MLCA(max_nodes=90, **beyond)
    rng = np.random.default_rng(1)
    start = 0
    while start < len(X):
        end = start + int(rng.integers(1, 60))
        model.partial_fit(X[start:end], Y[start:end])
        model.save(tmp_path / "model.mlca")
        model = load(tmp_path / "model.mlca") if end % 2 else pickle.loads(pickle.dumps(model))
        start = end
    assert_exactly_same(model, MLCA(max_nodes=90, **beyond).fit(X, Y))
    assert_exactly_same(model, MLCA(max_nodes=90, n_jobs=2, **beyond).fit(X, Y))
    thin = MLCA(max_nodes=90, **beyond).fit(sparse.csr_array(X), Y)
    np.testing.assert_array_equal(thin.predict_proba(sparse.csr_array(X)), model.predict_proba(X))


@pytest.mark.parametrize("how", ["replay", "append"])
@every_variant
def test_merged_models_keep_the_bound_and_all_rows(beyond, how, tmp_path):
    X, Y = stream(400)
    parts = [MLCA(max_nodes=60, **beyond).fit(X[i::2], Y[i::2]) for i in range(2)]
    whole = merge(parts, how)
    assert whole.n_nodes_ == 60
    assert whole.n_seen_ == 400
    whole.save(tmp_path / "model.mlca")
    again = load(tmp_path / "model.mlca").partial_fit(X[:5], Y[:5])
    assert_exactly_same(again, whole.partial_fit(X[:5], Y[:5]))


def test_merged_model_may_have_fewer_nodes_than_the_bound(tmp_path):
    """The bandwidth of a single row is 1e-6, a thousand times these distances, so all nodes join it when merged."""
    X, Y = np.random.default_rng(0).normal(size=(22, 2)), np.ones((22, 1), int)
    parts = [MLCA(window=2, max_nodes=20).fit(1e-9 * X[a:b], Y[a:b]) for a, b in ((0, 1), (1, 22))]
    whole = merge(parts)
    assert (whole.n_nodes_, whole.counts_.sum(), whole.n_seen_) == (1, 21, 22)
    whole.save(tmp_path / "model.mlca")
    assert_exactly_same(load(tmp_path / "model.mlca"), whole)


def test_a_reservoir_is_an_even_sample_of_the_stream():
    """Each row is kept with the same probability, so each third of a long stream gives about equally many nodes."""
    X = np.arange(3000.0)[:, None]
    kept = MLCA(max_nodes=600, vigilance=0.0).fit(X, [["a"]] * 3000).prototypes_[:, 0]
    thirds = np.bincount((kept // 1000).astype(int), minlength=3)
    assert (np.abs(thirds - 200) < 5 * np.sqrt(200 * 2 / 3)).all()
    assert (np.diff(kept) > 0).all()


def test_explanation_shows_the_number_of_represented_rows():
    X, Y = stream()
    bounded, whole = (MLCA(max_nodes=bound).fit(X, Y) for bound in (50, None))
    explained = bounded.explain(X[0])
    assert (explained.n_seen, explained.n_represented) == (300, bounded.counts_.sum())
    assert f"stand for {explained.n_represented} of the 300 rows learned" in str(explained)
    explained = whole.explain(X[0])
    assert explained.n_seen == explained.n_represented == whole.counts_.sum()
    assert "stand for" not in str(explained)


@every_variant
@pytest.mark.parametrize("form", ["dense", "sparse", "gaps"])
def test_replaced_nodes_are_not_explained(tmp_path, beyond, form):
    """Replaced nodes stay stored until there are many; a loaded model has none of them."""
    X, Y = stream(n=110)
    if form == "gaps":
        X[::7, 2] = np.nan
    rows = sparse.csr_array(X) if form == "sparse" else X
    model = MLCA(max_nodes=60, **beyond).fit(rows, Y)
    model.save(tmp_path / "model.mlca")
    explained, again = (one.explain(X[100]) for one in (model, load(tmp_path / "model.mlca")))
    assert explained.nodes.tolist() == again.nodes.tolist()
    assert (explained.agreement, explained.values) == (again.agreement, again.values)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_explanation_has_the_voters_and_some_other_nodes(is_sparse):
    rng = np.random.default_rng(0)
    X = rng.random((700, 2000))  # more entries than an explanation shows
    learner = learn(Parameters(**USUAL, max_nodes=600), X, rng.integers(0, 2, (700, 2)), is_sparse)
    explained = learner.explain(X[0])
    shown = {name: explained[name].toarray() if is_sparse else explained[name] for name in ("voters", "ordinary")}
    weights = rows_in(learner.state("weights"), "weights", learner)
    weights = weights.toarray() if is_sparse else weights
    np.testing.assert_array_equal(shown["voters"], weights[explained["nodes"]])
    assert 200 <= len(shown["ordinary"]) < 600
    assert {row.tobytes() for row in shown["ordinary"]} <= {row.tobytes() for row in weights}

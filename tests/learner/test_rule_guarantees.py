"""What the specification guarantees, under the rules beyond the paper: bit for bit, whatever the stream."""

import copy
import os
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA, load
from mlca.learner.state import capture
from tests.learner.rules import RULES, rule_parameters, rule_streams, rules, stream_of, told_by
from tests.learner.states import assert_exactly_same, assert_threads_do_not_matter

FEW = settings(max_examples=30, deadline=None)
# Generated streams are kept here; oracles of datasets lie beside the datasets.
GENERATED = Path(__file__).parent.parent / "data"
OF_DATASETS = Path(os.environ.get("MLCA_DATA", "nowhere")).parent / "oracle"


def models():
    """Draw the arguments of a model: any rule beyond the paper, any way to make nodes."""
    return st.builds(lambda chosen, rule: told_by(chosen | rule), rule_parameters(), rules())


def assert_same_answers(first, second, rows, other_rows=None):
    other_rows = rows if other_rows is None else other_rows
    np.testing.assert_array_equal(first.predict_proba(rows), second.predict_proba(other_rows))
    np.testing.assert_array_equal(first.predict(rows), second.predict(other_rows))
    if first.decision == "calibrated":
        np.testing.assert_array_equal(first.novelty(rows), second.novelty(other_rows))


@FEW
@given(rule_streams(), models(), st.data())
def test_chunks_and_questions_in_between_do_not_matter(stream, chosen, data):
    X, Y = stream
    whole, parts = MLCA(**chosen).fit(X, Y), MLCA(**chosen)
    edges = sorted(data.draw(st.sets(st.integers(1, len(X)), max_size=6)) | {0, len(X)})
    for low, high in pairwise(edges):
        parts.partial_fit(X[low:high], Y[low:high])
        parts.predict(X[:2])
        parts.explain(X[0])
    assert_exactly_same(whole, parts)
    assert_same_answers(whole, parts, X)


@FEW
@given(rule_streams(), models(), st.integers(0, 110), st.booleans())
def test_labels_may_come_late_or_be_announced(stream, chosen, known_until, announced):
    X, Y = stream
    cut, q = min(known_until, len(X)), Y.shape[1]
    known = q if announced else max(int(np.flatnonzero(Y[:cut].any(axis=0)).max(initial=0)) + 1, 1)
    late = MLCA(**chosen)
    if cut:
        late.partial_fit(X[:cut], Y[:cut, :known], classes=range(q) if announced else None)
    late.partial_fit(X[cut:], Y[cut:]) if cut < len(X) else late.partial_fit(X[:1], Y[:1])
    from_the_start = MLCA(**chosen).fit(X, Y)
    if cut == len(X):
        from_the_start.partial_fit(X[:1], Y[:1])
    assert_exactly_same(from_the_start, late)
    assert_same_answers(from_the_start, late, X)


@FEW
@given(rule_streams(), models(), st.randoms(use_true_random=False))
def test_columns_may_be_permuted(stream, chosen, random):
    if chosen["attributes"] == "clustered":
        chosen = chosen | {"attributes": "individual"}  # a round takes attributes in an order of its own
    X, Y = stream
    order = random.sample(range(X.shape[1]), X.shape[1])
    straight, permuted = MLCA(**chosen).fit(X, Y), MLCA(**chosen).fit(X[:, order], Y)
    first, second = capture(straight._learner.settled()), capture(permuted._learner.settled())
    of_attributes = (
        "weights",
        "recent",
        "bandwidths",
        "similarity.weights",
        "similarity.knot",
        "background.i",
        "background.means",
        "background.d",
    )
    for name in first:
        if not name.startswith(of_attributes):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    if "similarity.weights" in first:
        np.testing.assert_array_equal(first["similarity.weights"][order], second["similarity.weights"])
        np.testing.assert_array_equal(first["background.deviations"], second["background.deviations"])
    assert_same_answers(straight, permuted, X, X[:, order])


@FEW
@given(rule_streams(), models())
def test_sparse_rows_give_the_same_model(stream, chosen):
    X, Y = stream
    dense, thin = MLCA(**chosen).fit(X, Y), MLCA(**chosen).fit(sparse.csr_array(X), Y)
    first, second = capture(dense._learner.settled()), capture(thin._learner.settled())
    for name in first.keys() & second.keys():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    probes = np.concatenate([X, X + 0.5, np.zeros((1, X.shape[1]))])
    assert_same_answers(dense, thin, probes, sparse.csr_array(probes))
    assert_same_answers(dense, thin, probes)


@settings(max_examples=20, deadline=None)
@given(
    rule_streams(max_rows=250, features=st.sampled_from([3, 65, 300])),
    models(),
    st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_any_number_of_threads_gives_the_same_model(stream, chosen, kind):
    X, Y = kind(stream[0]), stream[1]
    assert_same_answers(*assert_threads_do_not_matter(X, Y, chosen), X)


@FEW
@given(rule_streams(max_rows=60), models(), st.integers(2, 3))
def test_epochs_are_passes_over_the_same_rows(stream, chosen, epochs):
    X, Y = stream
    repeated = MLCA(**chosen).fit(np.tile(X, (epochs, 1)), np.tile(Y, (epochs, 1)))
    assert_exactly_same(repeated, MLCA(**chosen, epochs=epochs).fit(X, Y))


def saved(model, folder):
    model.save(folder / "model.mlca")
    return load(folder / "model.mlca")


COPIES = {
    "saved": saved,
    "pickled": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, folder: copy.deepcopy(model),
}


@pytest.mark.parametrize("how", COPIES)
@settings(max_examples=25, deadline=None)
@given(stream=rule_streams(), chosen=models(), thin=st.booleans(), cut=st.floats(0, 1))
def test_a_copy_goes_on_exactly_as_the_original(tmp_path_factory, how, stream, chosen, thin, cut):
    X, Y = stream
    rows = sparse.csr_array(X) if thin else X
    n = max(1, int(cut * len(X)))
    model = MLCA(**chosen).partial_fit(rows[:n], Y[:n])
    twin = COPIES[how](model, tmp_path_factory.getbasetemp())
    assert_exactly_same(model, twin)
    assert_same_answers(model, twin, rows)
    wider = np.column_stack([Y, 1 - Y])
    assert_exactly_same(model.partial_fit(rows, wider), twin.partial_fit(rows, wider))
    assert_same_answers(model, twin, rows)


@pytest.mark.parametrize("rule", RULES)
def test_labels_that_are_only_announced_are_in_every_answer(rule):
    X, Y = stream_of("real", 70, 3, 2, seed=1)
    model = MLCA(**told_by(RULES[rule] | {"vigilance": 0.1})).fit(X[:-1], Y[:-1])
    model.partial_fit(X[-1:], Y[-1:], classes=range(5))
    assert model.predict_proba(X[:2]).shape == (2, 5)
    explanation = model.explain(X[0])
    assert explanation.labels == (0, 1, 2, 3, 4)
    assert explanation.label_counts.shape[1] == len(explanation.posterior) == 5
    assert str(explanation)


@pytest.mark.parametrize(
    "name",
    ["flags", "flags_recency", "sparse_late", "drift_blobs", "drift_flags", "drift_flags_recency"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("emotions", "virusgo", "virusgo_recency")],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_model_says_of_each_row_what_the_specification_does(name, form):
    file = f"beyond_{name}.npz"
    path = GENERATED / file if (GENERATED / file).exists() else OF_DATASETS / file
    if not path.exists():
        pytest.skip(f"needs {file} in the folder oracle beside that of MLCA_DATA")
    oracle = np.load(path)
    X, Y, learned = form(oracle["X"].astype(float)), oracle["Y"], int(oracle["learned"])
    drift = "follow" if oracle["drift"] else "off"
    model = MLCA(vigilance=0.0, recency=bool(oracle["recency"]), drift=drift)
    p, predicted = np.zeros(Y.shape), np.zeros(Y.shape, int)
    model.partial_fit(X[:1], Y[:1])
    for i in range(1, learned):
        p[i], predicted[i] = model.predict_proba(X[i : i + 1])[0], model.predict(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    p[learned:], predicted[learned:] = model.predict_proba(X[learned:]), model.predict(X[learned:])
    near = np.abs(p - oracle["proba"]) <= 2e-4
    equal = (predicted == oracle["predicted"]).all(axis=1)
    for part in (slice(learned), slice(learned, None)):
        assert near[part].mean() >= 0.995
        assert equal[part].mean() >= 0.99

"""The guarantees of docs/inside.md, for the paper's algorithms and for ours: bit for bit, on any stream."""

import copy
import pickle
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA, load
from mlca.learner.checking import capture
from tests.learner.algorithm_options import (
    FEATURE_MODES,
    MIXED,
    PAPER,
    VARIANTS,
    mixed_options,
    our_options,
    paper_options,
)
from tests.learner.model_comparison import assert_exactly_same, assert_threads_do_not_matter, state
from tests.learner.random_streams import late_label_stream, late_label_streams, mixed_streams, streams

FEW = settings(max_examples=40, deadline=None)
# Linear models and the mixer learn from the 50th row on.
ALGORITHMS = {
    "paper": (streams, paper_options),
    "ours": (late_label_streams, our_options),
    "mixed": (partial(late_label_streams, min_rows=60), mixed_options),
    "mixed with categories and missing values": (partial(mixed_streams, min_rows=60), mixed_options),
}
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def draw(data, algorithm, **of_stream):
    """Draw rows, labels and options of an algorithm."""
    drawn_streams, drawn_options = ALGORITHMS[algorithm]
    X, Y, *nominal = data.draw(drawn_streams(**of_stream))
    return X, Y, data.draw(drawn_options()) | ({"categorical_features": nominal[0]} if nominal else {})


def without_groups(options):
    """Return options without clustered features, whose grouping depends on the order of columns."""
    return options | {"attributes": "individual"} if options["attributes"] == "clustered" else options


def assert_same_answers(first, second, rows, other_rows=None):
    other_rows = rows if other_rows is None else other_rows
    np.testing.assert_array_equal(first.predict_proba(rows), second.predict_proba(other_rows))
    np.testing.assert_array_equal(first.predict(rows), second.predict(other_rows))
    if first.decision != "bayes":
        np.testing.assert_array_equal(first.novelty(rows), second.novelty(other_rows))


@every_algorithm
@FEW
@given(data=st.data())
def test_chunks_and_interleaved_predictions_do_not_change_the_model(algorithm, data):
    X, Y, options = draw(data, algorithm, max_rows=130)
    whole, parts = MLCA(**options).fit(X, Y), MLCA(**options)
    edges = sorted(data.draw(st.sets(st.integers(1, len(X)), max_size=6)) | {0, len(X)})
    for low, high in pairwise(edges):
        parts.partial_fit(X[low:high], Y[low:high])
        parts.predict(X[:2])
        parts.explain(X[0])
        assert parts.n_nodes_ > 0
    assert_exactly_same(whole, parts)
    assert_same_answers(whole, parts, X)


@every_algorithm
@FEW
@given(data=st.data(), known_until=st.integers(0, 130), announced=st.booleans())
def test_labels_may_appear_late_or_be_declared(algorithm, data, known_until, announced):
    X, Y, options = draw(data, algorithm, max_rows=130)
    cut, q = min(known_until, len(X)), Y.shape[1]
    known = q if announced else max(int(np.flatnonzero(Y[:cut].any(axis=0)).max(initial=0)) + 1, 1)
    late = MLCA(**options)
    if cut:
        late.partial_fit(X[:cut], Y[:cut, :known], classes=range(q) if announced else None)
    late.partial_fit(X[cut:], Y[cut:]) if cut < len(X) else late.partial_fit(X[:1], Y[:1])
    from_the_start = MLCA(**options).fit(X, Y)
    if cut == len(X):
        from_the_start.partial_fit(X[:1], Y[:1])
    assert_exactly_same(from_the_start, late)
    assert_same_answers(from_the_start, late, X)


@every_algorithm
@FEW
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_permuted_columns_give_the_permuted_model(algorithm, data, random):
    X, Y, options = draw(data, algorithm)
    options = without_groups(options)
    order = random.sample(range(X.shape[1]), X.shape[1])
    straight = MLCA(**options).fit(X, Y)
    nominal = sorted(order.index(column) for column in options.get("categorical_features", ()))
    permuted = MLCA(**options | {"categorical_features": nominal}).fit(X[:, order], Y)
    first, second = capture(straight._learner.settled()), capture(permuted._learner.settled())
    for name in ("weights", "bandwidths", "similarity.weights"):
        by_feature = name in first and (name != "bandwidths" or options["attributes"] == "individual")
        if by_feature:
            np.testing.assert_array_equal(first.pop(name)[..., order], second.pop(name), err_msg=name)
    if "linear.weights" in first:
        features = np.append(order, -1)[second["linear.features"]]  # the bias belongs to no feature
        straight_order = np.lexsort((second["linear.values"], second["linear.kinds"], features))
        for name in ("linear.kinds", "linear.weights", "linear.squares"):
            np.testing.assert_array_equal(first[name], second[name][straight_order], err_msg=name)
    of_features = (
        "recent",
        "similarity.knot",
        "similarity.middles",
        "similarity.trait",
        "background.i",
        "background.means",
        "background.da",
        "linear",
    )
    for name in first:
        if not name.startswith(of_features):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert_same_answers(straight, permuted, X, X[:, order])


@pytest.mark.parametrize("variant", MIXED)
def test_guarantees_hold_with_cells(variant, tmp_path):
    """From 2,000 rows on, the linear models also use cells: ranges of each numeric feature."""
    X, Y = late_label_stream("real", 2060, 3, 3, seed=0)
    options, order = VARIANTS[variant] | {"max_nodes": 150}, [2, 0, 1]
    whole, parts = MLCA(**options).fit(X, Y), MLCA(**options)
    for low, high in pairwise([0, 60, 1990, 2003, 2060]):
        parts = saved(parts.partial_fit(X[low:high], Y[low:high]), tmp_path)
    assert_exactly_same(whole, parts)
    assert_threads_do_not_matter(X, Y, options)
    assert_same_answers(whole, MLCA(**options).fit(sparse.csr_array(X), Y), X[:50])
    assert_same_answers(whole, MLCA(**options).fit(X[:, order], Y), X[:50], X[:50, order])


@every_algorithm
@FEW
@given(data=st.data(), kind=st.sampled_from([sparse.csr_array, sparse.csr_matrix, sparse.coo_array]))
def test_sparse_rows_give_the_same_model(algorithm, data, kind):
    X, Y, options = draw(data, algorithm)
    dense, thin = MLCA(**options).fit(X, Y), MLCA(**options).fit(kind(X), Y)
    assert sparse.issparse(thin.prototypes_)
    first, second = state(dense), state(thin)
    for name in first.keys() | second.keys():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    probes = np.concatenate([X, X + 0.5, np.zeros((1, X.shape[1]))])
    assert_same_answers(dense, thin, probes, kind(probes))
    assert_same_answers(dense, thin, probes)


@every_algorithm
@settings(max_examples=25, deadline=None)
@given(data=st.data(), kind=st.sampled_from([np.asarray, sparse.csr_array]))
def test_any_number_of_threads_gives_the_same_model(algorithm, data, kind):
    """Threads look ahead if there are enough comparisons, as with wide rows."""
    X, Y, options = draw(data, algorithm, max_rows=275, features=st.sampled_from([3, 65, 300]))
    assert_same_answers(*assert_threads_do_not_matter(kind(X), Y, options), kind(X))


@pytest.mark.parametrize("attributes", FEATURE_MODES)
def test_number_of_threads_that_create_nodes_does_not_change_the_model(attributes):
    """Threads create long blocks of nodes together and rebuild the screen; sometimes a row joins a node."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (2300, 24)), (rng.random((2300, 3)) < 0.3).astype(int)
    X[100::97] = X[50 : len(X) - 50 : 97]
    one, _ = assert_threads_do_not_matter(X, Y, {"attributes": attributes, "vigilance": 0.01})
    assert 2048 < one.n_nodes_ < len(X)


@every_algorithm
@FEW
@given(data=st.data(), epochs=st.integers(2, 3))
def test_epochs_are_passes_over_the_same_rows(algorithm, data, epochs):
    X, Y, options = draw(data, algorithm, max_rows=65)
    repeated = MLCA(**options).fit(np.tile(X, (epochs, 1)), np.tile(Y, (epochs, 1)))
    assert_exactly_same(repeated, MLCA(**options, epochs=epochs).fit(X, Y))


@FEW
@given(streams(), paper_options(), st.integers(-20, 20))
def test_scaling_rows_by_a_power_of_two_changes_only_the_scale_of_the_model(stream, options, exponent):
    """Our rule has no such guarantee: ranks of 0 and 1 are special."""
    if options["attributes"] == "clustered" and stream[0].shape[1] < 4:
        options = options | {"attributes": "common"}  # a window of a few means may be constant
    X, Y = stream
    # At least two rows. No feature may be constant in a window, so successive rows always differ.
    X = np.concatenate([X, X[:1]]) + np.linspace(0, 1, len(X) + 1)[:, None] * np.arange(1, X.shape[1] + 1)
    assume((np.diff(X, axis=0) != 0.0).all())
    Y = np.concatenate([Y, Y[:1]])
    plain, scaled = MLCA(**options).fit(X, Y), MLCA(**options).fit(X * 2.0**exponent, Y)
    first, second = state(plain), state(scaled)
    # Nor may the mean of some features be constant, because its bandwidth would be about 1e-6 at any scale.
    assume((first["centre_bandwidths"] > 1e-4).all())
    for name in first:
        factor = 2.0**exponent if name in ("weights", "bandwidths", "centres", "centre_bandwidths") else 1
        np.testing.assert_array_equal(first[name] * factor, second[name], err_msg=name)
    np.testing.assert_array_equal(plain.predict_proba(X), scaled.predict_proba(X * 2.0**exponent))


def saved(model, folder):
    model.save(folder / "model.mlca")
    return load(folder / "model.mlca")


COPIES = {
    "saved": saved,
    "pickled": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, folder: copy.deepcopy(model),
}


@pytest.mark.parametrize("how", COPIES)
@every_algorithm
@settings(max_examples=25, deadline=None)
@given(data=st.data(), thin=st.booleans(), cut=st.floats(0, 1))
def test_a_copy_continues_exactly_as_the_original(tmp_path_factory, algorithm, how, data, thin, cut):
    X, Y, options = draw(data, algorithm)
    rows = sparse.csr_array(X) if thin else X
    n = max(1, int(cut * len(X)))
    model = MLCA(**options).partial_fit(rows[:n], Y[:n])
    twin = COPIES[how](model, tmp_path_factory.getbasetemp())
    assert_exactly_same(model, twin)
    assert_same_answers(model, twin, rows)
    wider = np.column_stack([Y, 1 - Y])
    assert_exactly_same(model.partial_fit(rows, wider), twin.partial_fit(rows, wider))
    assert_same_answers(model, twin, rows)


@pytest.mark.parametrize("variant", ["paper", *VARIANTS])
def test_declared_labels_are_in_every_prediction(variant):
    X, Y = late_label_stream("real", 70, 3, 2, seed=1)
    model = MLCA(**VARIANTS.get(variant, PAPER), vigilance=0.1).fit(X[:-1], Y[:-1])
    model.partial_fit(X[-1:], Y[-1:], classes=range(5))
    assert model.predict_proba(X[:2]).shape == (2, 5)
    explanation = model.explain(X[0])
    assert explanation.labels == (0, 1, 2, 3, 4)
    assert explanation.label_counts.shape[1] == len(explanation.posterior) == 5
    assert str(explanation)

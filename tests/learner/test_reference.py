"""The compiled learner equals `mlca.reference` bit for bit, under every option and on every path."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca.bench.baselines import PlainNumPy
from mlca.learner.core import Learner
from mlca.learner.parameters import SCREEN_FROM
from mlca.reference import mixed
from tests.learner.algorithm_options import (
    FEATURE_MODES,
    PAPER,
    SMALL_WINDOW,
    VARIANTS,
    mixed_options,
    our_options,
    paper_options,
)
from tests.learner.model_comparison import FEW_NODES, learned, parameters_of, state
from tests.learner.random_streams import ROW_KINDS, late_label_stream, late_label_streams, mixed_streams, streams
from tests.learner.reference_comparison import (
    FORMS,
    assert_equals_reference,
    assert_same_predictions,
    assert_same_state,
    queries_of,
    reference_of,
)

# The reference takes nearly all the time; on sanitized kernels the shorter of these streams are enough.
LONG = [pytest.mark.slow, pytest.mark.plain]
ALGORITHMS = {"paper": (streams(), paper_options()), "ours": (late_label_streams(), our_options())}


@pytest.mark.parametrize("screen_from", [10**9, 1, SCREEN_FROM], ids=["never", "always", "as users have it"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_stream_under_any_options_equals_the_reference(algorithm, form, screen_from, data):
    drawn_streams, drawn_options = ALGORITHMS[algorithm]
    assert_equals_reference(*data.draw(drawn_streams), data.draw(drawn_options), form, screen_from)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [paper_options(), our_options(), mixed_options()], ids=["paper", "ours", "mixed"])
@settings(max_examples=25, deadline=None)
@given(stream=mixed_streams(), data=st.data())
def test_categories_and_missing_values_equal_the_reference(options, form, stream, data):
    X, Y, nominal = stream
    options = data.draw(options) | {"categorical_features": nominal}
    nothing = np.full((1, X.shape[1]), np.nan)
    assert_equals_reference(X, Y, options, form, 1, queries=np.concatenate([queries_of(X), nothing]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), max_nodes=st.sampled_from([2, 7, 30]))
def test_bounded_learner_equals_the_reference(algorithm, form, data, max_nodes):
    drawn_streams, drawn_options = ALGORITHMS[algorithm]
    options = data.draw(drawn_options) | {"max_nodes": max_nodes}
    assert_equals_reference(*data.draw(drawn_streams), options, form, screen_from=8)


# Widths near those of vectors, tiles and byte counters; few rows if they are wide.
ROWS_OF_WIDTH = {7: 310, 65: 90, 257: 60, 300: 50}


def repeating_stream(n, d, binary, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, d))
    X[rng.random(X.shape) < 0.6] = 0.0
    if binary:
        X = (X != 0).astype(float)
    again = rng.random(n) < 0.15
    X[again] = X[rng.integers(0, n, again.sum())] + (0.0 if binary else 1e-3)
    return X, (rng.random((n, 4)) < 0.3).astype(int)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("attributes", FEATURE_MODES)
@pytest.mark.parametrize(("d", "n"), ROWS_OF_WIDTH.items())
def test_wide_rows_and_long_streams_equal_the_reference(d, n, attributes, form):
    # Each width is tested with binary and real rows; the slow test has all combinations.
    binary = (attributes == "individual") == (form == "dense")
    X, Y = repeating_stream(n if attributes == "common" else n * 2 // 3 if n < 300 else n, d, binary)
    assert_equals_reference(X, Y, SMALL_WINDOW | PAPER | {"attributes": attributes}, form)


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("binary", [False, True], ids=["real", "binary"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("attributes", FEATURE_MODES)
@pytest.mark.parametrize("d", ROWS_OF_WIDTH)
def test_three_hundred_rows_of_every_kind_equal_the_reference(d, attributes, form, binary):
    X, Y = repeating_stream(320, d, binary, seed=1)
    assert_equals_reference(X, Y, PAPER | {"vigilance": 0.1, "attributes": attributes}, form)


@pytest.mark.parametrize(
    ("variant", "rows"),
    [
        pytest.param(variant, rows, marks=LONG if (i + j) % 3 else [])
        for (i, variant), (j, rows) in product(enumerate(VARIANTS), enumerate(ROW_KINDS))
    ],
)
def test_every_variant_on_rows_of_every_kind_equals_the_reference(variant, rows):
    """Long enough for 54 recomputations of the similarity, most of them with changed knots."""
    place = 3 * sorted(VARIANTS).index(variant) + ROW_KINDS.index(rows)
    X, Y = late_label_stream(rows, 125, 5, 4, seed=place)
    options = SMALL_WINDOW | VARIANTS[variant] | {"attributes": FEATURE_MODES[place % 3]}
    options["vigilance"] = (0.01, 0.3, "auto")[place // 3 % 3]
    assert_equals_reference(X, Y, options, "dense" if place % 2 else "sparse", queries=queries_of(X, 3))


@pytest.mark.parametrize(
    ("attributes", "form", "variant", "shape"),
    [("common", "dense", "correntropy all", (90, 160))]
    + [
        pytest.param(attributes, form, variant, (130, 300), marks=LONG)
        for attributes, form, variant in product(FEATURE_MODES, FORMS, VARIANTS)
    ],
)
def test_two_threads_on_wide_rows_equal_the_reference(attributes, form, variant, shape):
    """The rows suffice for threads to look ahead (search for later rows); two rows join nodes, which ends a block.

    At first, a learned similarity is recomputed so often that looking ahead needs more rows, which take the reference
    minutes. In `make test`, test_guarantees.py compares two threads with one instead.
    """
    X, Y = late_label_stream("real", *shape, 4, seed=5, repeated=0.0)
    X[[60, 71]] = X[[3, 40]]
    options = SMALL_WINDOW | VARIANTS[variant] | {"attributes": attributes, "vigilance": 0.05}
    assert_equals_reference(X, Y, options, form, n_jobs=2, queries=queries_of(X, 1))


@pytest.mark.parametrize("variant", ["paper", *VARIANTS])
def test_late_and_announced_labels_equal_the_reference(variant):
    X, Y = late_label_stream("grid", 100, 4, 4, seed=8)
    options = SMALL_WINDOW | VARIANTS.get(variant, PAPER)
    reference = reference_of(X, Y, options)
    for announced in (False, True):
        learner = Learner(parameters_of(options), 4, sparse_nodes=False, cell_limits=FEW_NODES)
        for low in range(0, 100, 7):
            part = Y[low : low + 7]
            indptr = np.concatenate([[0], part.sum(axis=1).cumsum()])
            known = 4 if announced else int(np.flatnonzero(Y[: low + 7].any(axis=0)).max(initial=-1)) + 1
            learner.learn(X[low : low + 7], indptr, np.nonzero(part)[1].astype(np.int32), known)
        assert_same_state(learner, reference)
        assert_same_predictions(learner, reference, queries_of(X))


@pytest.mark.parametrize(
    ("form", "variant"),
    [("dense", "calibrated"), pytest.param("sparse", "correntropy all", marks=LONG)]
    + [pytest.param(form, "all", marks=LONG) for form in FORMS],
)
def test_more_tied_nodes_than_voters_equal_the_reference(form, variant):
    """Each row has its own feature and one that all share; labels alternate, so all features have the same weight."""
    n = 120  # 100 may vote; the similarity is recomputed after row 120, and then includes every feature
    X = np.column_stack([np.eye(n), np.ones(n)])
    Y = np.column_stack([np.arange(n) % 2, 1 - np.arange(n) % 2])
    options = SMALL_WINDOW | VARIANTS[variant] | {"vigilance": 0.0}
    learner = assert_equals_reference(X, Y, options, form, queries=queries_of(X, 1))
    voters = learner.explain(np.eye(n + 1)[n])
    assert voters["nodes"].tolist() == list(range(100))
    assert len(set(voters["distances"].tolist())) == 1


@pytest.mark.parametrize("variant", ["drift", pytest.param("correntropy all", marks=LONG)])
def test_more_nodes_than_fading_counts_equal_the_reference(variant):
    X, Y = late_label_stream("real", 560, 2, 2, seed=4, repeated=0.02)
    learner = assert_equals_reference(X, Y, SMALL_WINDOW | VARIANTS[variant] | {"vigilance": 0.001})
    assert learner.n_nodes > 512


@pytest.mark.parametrize("variant", ["mixed recency", pytest.param("mixed drift", marks=LONG)])
def test_persistence_of_labels_equals_the_reference(variant):
    X, Y = late_label_stream("real", 290, 2, 3, seed=4)
    Y = np.repeat(Y[::2], 2, axis=0)
    Y[:270, 2] = 0  # this label first appears when the counts are already in use
    learner = assert_equals_reference(X, Y, SMALL_WINDOW | VARIANTS[variant], queries=queries_of(X, 3))
    assert learner.state()["persistence.rows"] == 289 and Y[270:, 2].any()


@pytest.mark.parametrize("form", ["sparse", pytest.param("dense", marks=LONG)])
def test_small_gradients_are_skipped_where_features_and_labels_are_many(form):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(56, 1000)), (rng.random((56, 230)) < 0.1).astype(int)
    learner = assert_equals_reference(X, Y, SMALL_WINDOW | VARIANTS["mixed"], form, queries=queries_of(X, 1))
    n_weights, n_models = learner.state()["linear.weights"].shape
    assert (n_weights - 1) * (n_models - 1) > mixed.MANY


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("variant", ["all", "correntropy all"])
def test_more_segments_than_are_kept_equal_the_reference(variant):
    """The meaning of labels changes twice, so segments have different trust when two must be merged."""
    X, Y = late_label_stream("real", 1250, 2, 3, seed=4, repeated=0.03)
    Y[400:800] = Y[400:800, [1, 2, 0]]
    options = SMALL_WINDOW | VARIANTS[variant] | {"vigilance": 0.001}
    learner = assert_equals_reference(X, Y, options, queries=queries_of(X, 3))
    parts = learner.state()["drift.parts"]
    assert len(parts) == 16 and parts.sum() > 17 and parts.max() > 1


@pytest.mark.parametrize("vigilance", [0.01, 0.35])
@pytest.mark.parametrize(("n", "d"), [(40, 3), (300, 8), (200, 65)])
def test_numpy_rival_of_the_benchmark_learns_the_same_model(n, d, vigilance):
    rng = np.random.default_rng(d)
    X, Y = rng.normal(0, 1, (n, d)), (rng.random((n, 4)) < 0.3).astype(np.uint8)
    rival, model = PlainNumPy(vigilance).fit(X, Y), state(learned({"vigilance": vigilance}, X, Y))
    k = rival.n_nodes
    np.testing.assert_array_equal(rival.counts[:k], model["counts"])
    np.testing.assert_array_equal(rival.labels[:k], model["label_counts"])
    np.testing.assert_array_equal(rival.with_, model["with"])
    np.testing.assert_array_equal(rival.without, model["without"])
    np.testing.assert_allclose(rival.weights[:k], model["weights"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rival.bandwidths[:k], model["bandwidths"], rtol=1e-12)

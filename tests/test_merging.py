"""Merging models of a stream's parts: what is exact, and how well the rest is approximated."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mlca import MLCA, load
from mlca.datasets import load_dataset
from mlca.merging import merge
from tests.learner.algorithm_options import paper_options
from tests.learner.model_comparison import assert_exactly_same, assert_same_state, state, unfolded
from tests.learner.random_streams import streams
from tests.learner.reference_comparison import expected_state, reference_of

pytestmark = pytest.mark.traced

FEW = settings(max_examples=60, deadline=None)


def cut(data, X, Y):
    """Draw the parts of a stream, each with at least one row."""
    edges = sorted(data.draw(st.sets(st.integers(1, max(1, len(X) - 1)), max_size=4)) - {len(X)})
    return list(zip(np.split(X, edges), np.split(Y, edges), strict=True))


def learned_apart(data, parts, chosen):
    formats = [data.draw(st.sampled_from([np.asarray, sparse.csr_array])) for _ in parts]
    return [MLCA(**chosen).fit(read(X), Y) for read, (X, Y) in zip(formats, parts, strict=True)]


@FEW
@given(streams(max_rows=130), paper_options(), st.data())
def test_counts_labels_and_priors_are_those_of_the_whole_stream(stream, chosen, data):
    X, Y = stream
    parts = cut(data, X, Y)
    models = learned_apart(data, parts, chosen)
    before = [state(model) for model in models]
    whole, in_sequence = merge(models), MLCA(**chosen).fit(X, Y)
    assert whole.n_seen_ == len(X)
    assert whole.counts_.sum() == len(X)
    if all(len(part) >= chosen["window"] for part, _ in parts):  # shorter parts have waiting rows, whose window changes
        assert whole.n_nodes_ <= sum(model.n_nodes_ for model in models)
    np.testing.assert_array_equal(whole.label_counts_.sum(axis=0), Y.sum(axis=0))
    assert (whole.label_counts_.toarray() <= whole.counts_[:, np.newaxis]).all()
    np.testing.assert_array_equal(priors(whole), priors(in_sequence))
    merged = state(whole)
    np.testing.assert_array_equal((merged["with"] + merged["without"]).sum(axis=1), len(X) - 1)
    assert (merged["with"] >= 0).all() and (merged["without"] >= 0).all()
    held = whole._learner.settled().state()
    latest = unfolded(held, "recent", X.shape[1])[-chosen["window"] :]
    np.testing.assert_array_equal(latest, X[-chosen["window"] :])
    for model, old in zip(models, before, strict=True):  # the parts are unchanged
        for name, value in state(model).items():
            np.testing.assert_array_equal(value, old[name], err_msg=name)


def priors(model):
    return model.explain(np.zeros(model.n_features_in_)).prior


def absorb(memory, counters, other):
    """Let a model of the paper's algorithms learn the nodes of another, each as `alpha` equal rows."""
    for node in other.nodes:
        found = memory.distances(node.y)
        near = [memory.nodes[k] for k in found.nearest()[: memory.N_y]]
        made = memory.made
        placed = memory.learn(node.y, node.beta, found, node.sigma, node.alpha)
        counters.learn([placed, *near][: memory.N_y] if memory.made > made else near, node.beta, node.alpha)
    for centre in other.groups.centres:
        memory.groups.learn_value(*centre)
    memory.n += other.n
    for slot, rows in other.totals.items():
        memory.totals[slot] = memory.totals.get(slot, 0) + rows


@FEW
@given(streams(max_rows=110), paper_options(), st.booleans(), st.data())
def test_nodes_are_replayed_as_in_the_reference(stream, chosen, sparse_rows, data):
    X, Y = stream
    chosen["window"] = min(chosen["window"], 5)
    parts = cut(data, X, Y)
    assume(all(len(part) >= chosen["window"] for part, _ in parts[1:]))
    whole, *others = (reference_of(*part, chosen) for part in parts)
    for other in others:
        absorb(whole.memory_, whole.decision_, other.memory_)
    read = sparse.csr_array if sparse_rows else np.asarray
    merged = merge([MLCA(**chosen).fit(read(part), labels) for part, labels in parts])
    held, expected = merged._learner.settled().state(), expected_state(whole)
    for name in ("weights", "label_counts"):
        np.testing.assert_array_equal(unfolded(held, name, expected[name].shape[1]), expected.pop(name), err_msg=name)
    for name, array in expected.items():
        np.testing.assert_array_equal(held[name], array, err_msg=name)
    assert merged.n_seen_ == whole.memory_.n


@FEW
@given(streams(max_rows=60), paper_options(), st.integers(1, 60), st.data())
def test_parts_that_wait_for_their_first_window_are_learned_as_in_sequence(stream, chosen, first, data):
    X, Y = stream
    chosen["window"] = data.draw(st.integers(max(2, len(X) - first + 1), 80))
    assume(first < len(X))
    parts = [(X[:first], Y[:first]), *cut(data, X[first:], Y[first:])]
    assert_same_state(merge(learned_apart(data, parts, chosen)), MLCA(**chosen).fit(X, Y))


def test_merged_model_of_single_row_nodes_differs_only_in_first_window_bandwidths():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (300, 3)), rng.integers(0, 2, (300, 4))
    chosen = {"vigilance": 0.0, "window": 20}
    whole = state(merge([MLCA(**chosen).fit(X[part], Y[part]) for part in np.split(np.arange(300), [100, 200])]))
    expected = state(MLCA(**chosen).fit(X, Y))
    for name in ("weights", "counts", "label_counts", "n"):
        np.testing.assert_array_equal(whole[name], expected[name], err_msg=name)
    differ = np.flatnonzero(whole["bandwidths"] != expected["bandwidths"])
    assert set(differ) <= {*range(100, 119), *range(200, 219)}


@given(st.integers(1, 50), st.integers(1, 50), st.sampled_from(["published", "released"]))
def test_merged_prototype_equals_one_learned_row_by_row(before, count, rule):
    """A node of `before` equal rows is merged with one of `count` rows at another position."""
    chosen = {"vigilance": 0.9, "window": 2, "rule": rule}
    ends = [
        MLCA(**chosen).fit(np.full((n + 1, 1), place), np.ones((n + 1, 1), int))
        for n, place in ((before, 0.0), (count, 1e-8))
    ]
    one_by_one = MLCA(**chosen).fit(
        np.repeat([0.0, 1e-8], [before + 1, count + 1])[:, None], np.ones((before + count + 2, 1), int)
    )
    whole = merge(ends)
    assert whole.n_nodes_ == one_by_one.n_nodes_ == 1
    np.testing.assert_allclose(whole.prototypes_, one_by_one.prototypes_, rtol=1e-12)


def test_the_order_of_models_is_the_order_of_the_stream():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(0, 1, (240, 2)), rng.integers(0, 2, (240, 2))
    models = [MLCA(vigilance=0.0).fit(X[part], Y[part]) for part in np.split(np.arange(240), 3)]
    np.testing.assert_array_equal(merge(models).prototypes_, X)
    np.testing.assert_array_equal(merge(iter(models)).prototypes_, X)


def test_labels_are_matched_by_name():
    rng = np.random.default_rng(2)
    X = rng.normal(0, 1, (160, 2))
    left = MLCA().fit(X[:80], [{"sea", "sun"} if x[0] > 0 else {"sea"} for x in X[:80]])
    right = MLCA().fit(X[80:], [{"sun"} if x[1] > 0 else {"snow", "sea"} for x in X[80:]])
    whole = merge([left, right])
    assert whole.classes_.tolist() == list(dict.fromkeys([*left.classes_.tolist(), *right.classes_.tolist()]))
    counted = dict(zip(whole.classes_.tolist(), whole.label_counts_.sum(axis=0).tolist(), strict=True))
    upper, right_upper = int((X[:80, 0] > 0).sum()), int((X[80:, 1] > 0).sum())
    assert counted == {"sea": 80 + 80 - right_upper, "sun": upper + right_upper, "snow": 80 - right_upper}


def test_one_class_per_row_is_kept():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(9, 1, (100, 2))])
    models = [MLCA().fit(X[:100], ["low"] * 100), MLCA().fit(X[100:], ["high"] * 100)]
    assert merge(models).predict([[0, 0], [9, 9]]).tolist() == ["low", "high"]


def test_merged_model_continues_and_is_saved_like_any_other(tmp_path):
    rng = np.random.default_rng(4)
    X, Y = rng.normal(0, 1, (400, 3)), rng.integers(0, 2, (400, 2))
    for attributes in ("common", "individual", "clustered"):
        chosen = {"vigilance": 0.2, "attributes": attributes}
        whole = merge([MLCA(**chosen).fit(X[:100], Y[:100]), MLCA(**chosen).fit(X[100:300], Y[100:300])])
        whole.save(tmp_path / "whole.mlca")
        loaded = load(tmp_path / "whole.mlca")
        assert_same_state(whole, loaded)
        assert_same_state(whole.partial_fit(X[300:], Y[300:]), loaded.partial_fit(X[300:], Y[300:]))
        assert whole.n_seen_ == 400


def test_storage_of_nodes_follows_the_first_model():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(0, 1, (200, 3)), rng.integers(0, 2, (200, 2))
    thin, dense = MLCA(vigilance=0.1).fit(sparse.csr_array(X[:90]), Y[:90]), MLCA(vigilance=0.1).fit(X[:90], Y[:90])
    other = MLCA(vigilance=0.1).fit(X[90:], Y[90:])
    assert sparse.issparse(merge([thin, other]).prototypes_)
    assert not sparse.issparse(merge([dense, other]).prototypes_)
    assert_same_state(merge([thin, other]), merge([dense, other]))


@pytest.mark.parametrize("published", ["MLCA", "MLCA-I", "MLCA-C"])
def test_sparse_nodes_that_have_moved_are_merged_like_dense_ones(published):
    """A moved node has its first feature stored last here, far beyond those of the other model's nodes."""
    X = np.zeros((8, 6000))
    X[:5, 0] = 1, 2, 3, 4, 5
    X[5:, 5999], X[6:, 0], X[7:, 1] = 1, 1, 1
    Y = np.eye(8, 2, dtype=int)
    merged = []
    for form in (np.asarray, sparse.csr_array):
        parts = [
            MLCA.published(published, vigilance=0.9, window=2).fit(form(X[a:b]), Y[a:b]) for a, b in ((0, 5), (5, 8))
        ]
        merged.append(merge(parts))
    assert merged[0].n_nodes_ < 4
    assert_same_state(merged[0], merged[1])


def test_incompatible_models_are_rejected_with_the_reason():
    X = np.random.default_rng(6).normal(0, 1, (60, 2))
    labels = [{"a"}] * 60
    first = MLCA().fit(X, labels)
    with pytest.raises(ValueError, match="at least one model"):
        merge([])
    with pytest.raises(ValueError, match="listed twice"):
        merge([first, first])
    with pytest.raises(NotFittedError):
        merge([first, MLCA()])
    with pytest.raises(ValueError, match=r"with vigilance=0\.5, the first with vigilance=0\.01; train"):
        merge([first, MLCA(vigilance=0.5).fit(X, labels)])
    with pytest.raises(ValueError, match="model 2 has 1 features, the first has 2"):
        merge([first, MLCA().fit(X, labels), MLCA().fit(X[:, :1], labels)])
    with pytest.raises(ValueError, match="different feature names"):
        merge(
            [
                MLCA().fit(pd.DataFrame(X, columns=["a", "b"]), labels),
                MLCA().fit(pd.DataFrame(X, columns=["b", "a"]), labels),
            ]
        )
    with pytest.raises(ValueError, match="kind of labels"):
        merge([first, MLCA().fit(X, ["a"] * 60)])


def test_unnamed_columns_are_not_matched_with_names():
    X = np.random.default_rng(0).normal(size=(60, 2))
    named, bare = MLCA().fit(X, [{"sea"}] * 60), MLCA().fit(X, np.ones((60, 2)))
    with pytest.raises(ValueError, match=r"model 1 .*columns without names.*classes=names"):
        merge([named, bare])
    told = MLCA().partial_fit(X, np.ones((60, 2)), classes=["sea", "sun"])
    assert merge([named, told]).classes_.tolist() == ["sea", "sun"]
    assert merge([bare, MLCA().fit(X, np.ones((60, 3)))]).classes_.tolist() == [0, 1, 2]


def test_seeds_and_threads_may_differ():
    X = np.random.default_rng(7).normal(0, 1, (120, 2))
    labels = [{"a"} if x[0] > 0 else {"b"} for x in X]
    models = [MLCA(random_state=1).fit(X[:60], labels[:60]), MLCA(random_state=2, n_jobs=2).fit(X[60:], labels[60:])]
    assert merge(models).get_params() == models[0].get_params()


@pytest.mark.data
@pytest.mark.parametrize("n_parts", [8, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("decision", "loss"), [("calibrated", 0.01), ("mixed", 0.04)])  # averaged weights
def test_exact_match_on_scene_equals_learning_in_sequence(n_parts, decision, loss):
    train, test = load_dataset("scene", subset="train"), load_dataset("scene", subset="test")
    order = np.random.default_rng(0).permutation(train.X.shape[0])
    models = [MLCA(decision=decision).fit(train.X[part], train.Y[part]) for part in np.array_split(order, n_parts)]
    in_sequence = MLCA(decision=decision).fit(train.X[order], train.Y[order])
    hits = [(model.predict(test.X) == test.Y.toarray()).all(axis=1).mean() for model in (merge(models), in_sequence)]
    assert hits[0] == pytest.approx(hits[1], abs=loss)


# Nodes side by side


@FEW
@given(streams(max_rows=130), paper_options(), st.data())
def test_append_keeps_all_nodes_and_adds_counts(stream, chosen, data):
    X, Y = stream
    chosen["window"] = min(chosen["window"], 5)
    parts = cut(data, X, Y)
    assume(all(len(part) >= chosen["window"] for part, _ in parts))
    models = learned_apart(data, parts, chosen)
    before = [state(model) for model in models]
    whole, whole_of_one = merge(models, how="append"), merge(models[:1], how="append")
    assert_same_state(whole_of_one, models[0])
    merged = state(whole)
    width = before[0]["weights"].shape[1]
    for name in ("weights", "counts", "label_counts", "bandwidths"):
        np.testing.assert_array_equal(merged[name], np.concatenate([part[name] for part in before]), err_msg=name)
    assert merged["weights"].shape == (sum(model.n_nodes_ for model in models), width)
    assert whole.n_seen_ == whole.counts_.sum() == len(X)
    np.testing.assert_array_equal(priors(whole), priors(MLCA(**chosen).fit(X, Y)))
    np.testing.assert_array_equal((merged["with"] + merged["without"]).sum(axis=1), len(X) - 1)
    # Also counted: the first row of each further part, which that part did not count.
    counted = merged["with"] - sum(part["with"] for part in before)
    assert (counted >= 0).all() and counted.sum() <= sum(labels[0].sum() for _, labels in parts[1:])
    for model, old in zip(models, before, strict=True):
        for name, value in state(model).items():
            np.testing.assert_array_equal(value, old[name], err_msg=name)


@FEW
@given(streams(max_rows=150), st.integers(0, 3), st.data())
def test_appended_model_stays_the_same_after_saving_and_resuming(tmp_path_factory, stream, kind, data):
    X, Y = stream
    chosen = [
        {},
        {"decision": "calibrated", "recency": True, "drift": "follow"},
        {"max_nodes": 7, "recency": True},
        {"drift": "follow", "max_nodes": 20},
    ][kind] | {"window": 4, "vigilance": 0.1}
    models = learned_apart(data, cut(data, X, Y), chosen)
    whole = merge(models, how="append")
    assert whole.n_seen_ == len(X)
    assert whole.n_nodes_ <= chosen.get("max_nodes", len(X))
    path = tmp_path_factory.mktemp("append") / "whole.mlca"
    whole.save(path)
    loaded = load(path)
    assert_exactly_same(loaded, whole)
    assert_exactly_same(loaded.partial_fit(X, Y), whole.partial_fit(X, Y))
    np.testing.assert_array_equal(loaded.predict_proba(X), whole.predict_proba(X))


def test_append_in_any_order_keeps_the_same_nodes_in_that_order():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(0, 1, (240, 2)), rng.integers(0, 2, (240, 2))
    parts = np.split(np.arange(240), 3)
    models = [MLCA().fit(X[part], Y[part]) for part in parts]
    for order in ([0, 1, 2], [2, 0, 1]):
        whole = merge([models[i] for i in order], how="append")
        np.testing.assert_array_equal(whole.prototypes_, np.concatenate([models[i].prototypes_ for i in order]))
        np.testing.assert_array_equal(whole._learner.state()["recent"][-50:], X[parts[order[-1]]][-50:])


def test_append_merges_late_labels_and_missing_values():
    rng = np.random.default_rng(2)
    X = rng.normal(0, 1, (160, 2))
    left = MLCA().fit(X[:80], [{"sea", "sun"} if x[0] > 0 else {"sea"} for x in X[:80]])
    X[100, 1] = np.nan
    right = MLCA().fit(X[80:], [{"sun"} if x[1] > 0 else {"snow", "sea"} for x in X[80:]])
    for models in ([left, right], [right, left]):
        appended, replayed = merge(models, how="append"), merge(models)
        assert appended.classes_.tolist() == replayed.classes_.tolist()
        assert appended.n_nodes_ == left.n_nodes_ + right.n_nodes_
        np.testing.assert_array_equal(appended.label_counts_.sum(axis=0), replayed.label_counts_.sum(axis=0))
        assert np.isfinite(appended.predict_proba(X)).all()


def test_append_equals_replay_where_no_nodes_are_near():
    rng = np.random.default_rng(8)
    X, Y = rng.normal(0, 1, (300, 3)), rng.integers(0, 2, (300, 4))
    for form in (np.asarray, sparse.csr_array):
        models = [MLCA(vigilance=0.0).fit(form(X[part]), Y[part]) for part in np.split(np.arange(300), [100, 200])]
        assert_exactly_same(merge(models, how="append"), merge(models))


def test_append_to_a_bound_is_an_even_sample_of_all_rows():
    """Parts of 4,000, 2,000 and 1,000 rows: the remaining nodes have these proportions."""
    X, edges = np.arange(7000.0)[:, None], [4000, 6000]
    models = [MLCA(max_nodes=700, vigilance=0.0).fit(part, [["a"]] * len(part)) for part in np.split(X, edges)]
    whole = merge(models, how="append")
    assert whole.n_nodes_ == 700
    sizes = np.bincount(np.searchsorted(edges, whole.prototypes_[:, 0], side="right"), minlength=3)
    assert (np.abs(sizes - [400, 200, 100]) < 5 * np.sqrt(700 * 0.25)).all()
    assert (np.diff(whole.prototypes_[:, 0]) > 0).all()
    tree = merge([merge(models[:2], how="append"), models[2]], how="append")
    np.testing.assert_array_equal(tree.prototypes_, whole.prototypes_)


def test_unknown_way_of_merging_is_rejected():
    with pytest.raises(ValueError, match="how must be 'replay' or 'append'; got 'add'"):
        merge([], how="add")


BEYOND = {"vigilance": 0.2, "window": 20, "recency": True, "drift": "follow"}


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(4)
    X = rng.normal(0, 1, (330, 4))
    return X, (X[:, :3] + rng.normal(0, 0.3, (330, 3)) > 0.4).astype(int)


@pytest.fixture(scope="module")
def models_beyond(stream):
    X, Y = stream
    return [MLCA(**BEYOND).fit(X[own], Y[own]) for own in np.split(np.arange(330), [100, 210])]


class TestTheRuleBeyondThePaper:
    @pytest.mark.parametrize("how", ["replay", "append"])
    def test_counters_and_histograms_add_up(self, models_beyond, how):
        whole, parts = (held(merge(models_beyond, how)), [held(model) for model in models_beyond])
        names = ("decision.totals", "decision.shares", "decision.shares_with", "decision.novelty")
        for name in (*names, "persistence.rows", "persistence.counts"):
            np.testing.assert_array_equal(whole[name], sum(part[name] for part in parts), err_msg=name)
        np.testing.assert_array_equal(whole["persistence.last"], parts[-1]["persistence.last"])
        assert whole["counts"].sum() == 330
        assert whole["similarity.tally"][0] == 330 + 330 // 4

    @pytest.mark.parametrize("how", ["replay", "append"])
    def test_recent_past_is_that_of_the_parts_in_order(self, models_beyond, how):
        whole, parts = (held(merge(models_beyond, how)), [held(model) for model in models_beyond])
        lives = np.array([1.0, 4.0, 16.0, 64.0])
        rows, counts = np.zeros(4), np.zeros_like(parts[0]["recency.counts"])
        for part, n in zip(parts, (100, 110, 120), strict=True):
            rows = rows * 0.5 ** (n / lives) + part["recency.rows"]
            counts = counts * 0.5 ** (n / lives) + part["recency.counts"]
        np.testing.assert_allclose(whole["recency.rows"], rows, rtol=1e-9)
        np.testing.assert_allclose(whole["recency.counts"], counts, rtol=1e-9, atol=1e-12)

    def test_experts_are_those_of_the_last_part(self, stream):
        X, Y = stream
        halves = [MLCA(**BEYOND, decision="calibrated").fit(X[own], Y[own]) for own in np.split(np.arange(330), 2)]
        np.testing.assert_array_equal(held(merge(halves))["decision.experts"], held(halves[-1])["decision.experts"])

    @pytest.mark.parametrize("how", ["replay", "append"])
    def test_linear_models_and_mixer_are_averaged_by_rows(self, stream, how):
        X, Y = stream
        parts = [MLCA(window=20).fit(X[own], Y[own]) for own in np.split(np.arange(330), [110])]
        whole, (first, second) = held(merge(parts, how)), map(held, parts)
        np.testing.assert_array_equal(first["linear.features"], second["linear.features"])
        labels = [np.argsort(part["decision.arrived"]) + 2 for part in (whole, first, second)]
        columns = [np.concatenate(([0, 1], order)) for order in labels]
        average, a, b = (part["linear.weights"][:, c] for part, c in zip((whole, first, second), columns, strict=True))
        np.testing.assert_allclose(average, (110 * a + 220 * b) / 330, rtol=1e-5, atol=1e-7)
        squares, a, b = (part["linear.squares"][:, c] for part, c in zip((whole, first, second), columns, strict=True))
        np.testing.assert_allclose(squares, a + b - 1, rtol=1e-6)
        np.testing.assert_allclose(
            whole["mixer.weights"], (110 * first["mixer.weights"] + 220 * second["mixer.weights"]) / 330, rtol=1e-12
        )
        start = np.diag([30.0] * 4)
        np.testing.assert_allclose(
            whole["mixer.curvature"], first["mixer.curvature"] + second["mixer.curvature"] - start, rtol=1e-12
        )
        for name in ("mixer.hits", "mixer.f1"):
            np.testing.assert_array_equal(whole[name], first[name] + second[name])

    @pytest.mark.parametrize("how", ["replay", "append"])
    def test_merged_model_continues_like_one_of_the_whole_stream(self, stream, models_beyond, tmp_path, how):
        X, Y = stream
        merged, in_sequence = merge(models_beyond, how), MLCA(**BEYOND).fit(X, Y)
        assert abs(merged.score(X, Y) - in_sequence.score(X, Y)) < 0.05
        merged.save(tmp_path / "m.mlca")
        assert_same_state(load(tmp_path / "m.mlca").partial_fit(X, Y), merged.partial_fit(X, Y))

    @pytest.mark.parametrize("how", ["replay", "append"])
    def test_merged_model_has_all_labels_and_keeps_the_node_limit(self, stream, how):
        X, _ = stream
        left = MLCA(window=20, max_nodes=30).fit(X[:100], [{"sea"} if x[0] > 0 else set() for x in X[:100]])
        right = MLCA(window=20, max_nodes=30).fit(X[100:], [{"snow"} if x[1] > 0 else {"sea"} for x in X[100:]])
        whole = merge([left, right], how)
        assert whole.n_nodes_ == 30 and whole.n_seen_ == 330
        assert whole.classes_.tolist() == ["sea", "snow"]
        prior = whole.explain(X[0]).prior
        rows = [np.sum(X[:100, 0] > 0) + np.sum(X[100:, 1] <= 0), np.sum(X[100:, 1] > 0)]
        np.testing.assert_allclose(prior, np.array(rows) / 330, rtol=1e-9)

    def test_estimated_vigilances_must_be_equal(self, stream):
        X, Y = stream
        one, same = (MLCA(vigilance="auto").fit(X[:60] ** 3, Y[:60]) for _ in range(2))
        assert merge([one, same]).vigilance_ == one.vigilance_
        other = MLCA(vigilance="auto").fit(np.round(X[:60] / 2), Y[:60])
        assert other.vigilance_ != one.vigilance_
        with pytest.raises(ValueError, match=r"model 1 has the vigilance 0\.\d+, the first has 0\.\d+; set the same"):
            merge([one, other])


def held(model):
    return model._learner.settled().state()

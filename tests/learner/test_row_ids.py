"""The IDs of rows behind nodes: exact for all parameters and portions."""

from __future__ import annotations

import copy
import json
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA, load, merge
from mlca.learner.row_ids import MOST_PER_NODE, RowIds
from mlca.model import row_ids_of
from tests.learner.test_threads import asked_beside

pytestmark = pytest.mark.traced

PARAMETERS = [
    {},
    {"vigilance": 0.3},
    {"vigilance": "auto"},
    {"vigilance": 0.3, "attributes": "clustered"},
    {"max_nodes": 30},
    {"max_nodes": 8, "vigilance": 0.2, "window": 20},
    {"recency": True, "drift": "follow"},
]


def rows_and_labels(n, seed=0):
    X = np.random.default_rng(seed).integers(0, 6, size=(n, 3)).astype(float)
    return X, [[f"a{int(row[0])}", f"b{int(row[1])}"] for row in X]


def ids_of_nodes(model):
    return row_ids_of(model).behind(model._learner, range(model.n_nodes_))


def assert_ids_fit(model, labels):
    """Assert that the rows behind a node agree with its count and its label counts."""
    names, counts, label_counts = model.classes_.tolist(), model.counts_, model.label_counts_.toarray()
    for node, ids in enumerate(ids_of_nodes(model)):
        assert len(ids) == min(MOST_PER_NODE, counts[node])
        if counts[node] <= MOST_PER_NODE:
            found = [sum(name in labels[row] for row in ids) for name in names]
            assert found == label_counts[node].tolist()


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@settings(max_examples=8, deadline=None)
@given(n=st.integers(1, 160), cut=st.integers(1, 160), seed=st.integers(0, 9))
def test_each_node_has_the_ids_of_its_rows(parameters, n, cut, seed):
    X, labels = rows_and_labels(n, seed)
    cut = min(cut, n)
    model = MLCA(**parameters).partial_fit(X[:cut], labels[:cut], ids=range(cut))
    if cut < n:
        model.partial_fit(X[cut:], labels[cut:], ids=range(cut, n))
    assert_ids_fit(model, labels)
    plain = MLCA(**parameters).fit(X, labels)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("n_before", [0, 20, 60])
def test_rows_without_ids_are_left_out(n_before):
    X, labels = rows_and_labels(100)
    model = MLCA()
    if n_before:
        model.partial_fit(X[:n_before], labels[:n_before])
    model.partial_fit(X[n_before:80], labels[n_before:80], ids=[f"r{row}" for row in range(n_before, 80)])
    model.partial_fit(X[80:], labels[80:])
    known = {row_id for ids in ids_of_nodes(model) for row_id in ids}
    assert known == {f"r{row}" for row in range(n_before, 80)}


def test_rows_without_ids_fill_the_window_of_rows_with_ids():
    X, labels = rows_and_labels(70)
    model = MLCA().partial_fit(X[:30], labels[:30], ids=range(30)).partial_fit(X[30:], labels[30:])
    assert {row_id for ids in ids_of_nodes(model) for row_id in ids} == set(range(30))


def test_ids_are_saved_and_loaded(tmp_path):
    X, labels = rows_and_labels(90)
    for n in (20, 70):
        model = MLCA().partial_fit(X[:n], labels[:n], ids=range(n))
        model.save(tmp_path / "model.mlca")
        again = load(tmp_path / "model.mlca")
        assert ids_of_nodes(again) == ids_of_nodes(model)
        again.partial_fit(X[n:], labels[n:], ids=range(n, 90))
        assert_ids_fit(again, labels)


def test_fit_forgets_earlier_ids():
    X, labels = rows_and_labels(60)
    model = MLCA().fit(X, labels, ids=range(60)).fit(X, labels)
    assert row_ids_of(model) is None
    assert model.explain(X[0]).rows == ()


def test_merged_models_have_no_ids():
    X, labels = rows_and_labels(120)
    parts = [MLCA().fit(X[:60], labels[:60], ids=range(60)), MLCA().fit(X[60:], labels[60:])]
    assert row_ids_of(merge(parts)) is None
    assert row_ids_of(parts[0]) is not None


def test_explanation_of_a_frame_lists_ids():
    frame = pd.DataFrame({"text": ["red lamp", "green door"] * 40, "size": np.arange(80.0) % 7})
    tickets = [f"T-{i}" for i in range(80)]
    model = MLCA()
    for start in range(0, 80, 10):
        stop = start + 10
        model.partial_fit(frame[start:stop], [["lamp"], ["door"]] * 5, ids=tickets[start:stop])
    why = model.explain(frame.iloc[[3]])
    assert "T-3" in why.rows[0]
    assert "rows: T-3" in str(why)
    assert "T-3" in why._repr_html_()
    assert json.loads(json.dumps(why.to_dict()))["rows"][0][0] == "T-3"


@pytest.mark.parametrize("window", [2, 50])
def test_interrupted_rows_have_ids_of_their_nodes(window, monkeypatch):
    """In an earlier version, an interrupt between the last row of the first window and its IDs lost the IDs."""
    X, labels = rows_and_labels(90)
    for n_before in (window - 1, window, window + 7):
        model = MLCA(window=window, vigilance=0.3).partial_fit(X[:n_before], labels[:n_before], ids=range(n_before))
        with monkeypatch.context() as patch:
            patch.setattr(RowIds, "_note", interrupt)
            patch.setattr("mlca.learner.row_ids._rows_of_first_nodes", interrupt)
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(X[n_before:], labels[n_before:], ids=range(n_before, 90))
        seen = model.n_seen_
        assert seen > n_before
        assert model.explain(X[0]).rows
        model.partial_fit(X[seen:], labels[seen:], ids=range(seen, 90))
        kept = [row_id for ids in ids_of_nodes(model) for row_id in ids]
        assert len(kept) == len(set(kept)) and {*range(90)} - {seen - 1} <= {*kept} <= {*range(90)}
        for ids, counted in zip(ids_of_nodes(model), model.label_counts_.toarray().tolist(), strict=True):
            found = [sum(name in labels[row] for row in ids) for name in model.classes_.tolist()]
            assert all(one <= most for one, most in zip(found, counted, strict=True))


def interrupt(*_):
    raise KeyboardInterrupt


ODD_IDS = ["", "\0", "a\0", "\ud800", "\x1b[2J", "x" * 100_000, "<i>", "\n", 0, -1, 2**70, "0"]


def test_any_text_or_whole_number_is_an_id(tmp_path):
    X = np.arange(len(ODD_IDS), dtype=float)[:, None]
    model = MLCA(window=3).fit(X, [["a"], ["b"]] * (len(ODD_IDS) // 2), ids=ODD_IDS)
    model.save(tmp_path / "model.mlca")
    for one in (model, load(tmp_path / "model.mlca"), pickle.loads(pickle.dumps(model))):
        assert ids_of_nodes(one) == tuple((row_id,) for row_id in ODD_IDS)
        why = one.explain(X[4])
        assert "\x1b" not in str(why) and "<i>" not in why._repr_html_()
        assert json.loads(json.dumps(why.to_dict()))
    for odd in (True, 1.5, b"x", ("x",), np.float64(2), None, np.nan):
        with pytest.raises(ValueError, match=r"ids\[0\] is"):
            model.partial_fit(X[:1], [["a"]], ids=[odd])
    for odd in (7, "ab", [["a"]]):
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(X[:1], [["a"]], ids=odd)
    assert model.n_seen_ == len(ODD_IDS)


@pytest.mark.races
@pytest.mark.parametrize("parameters", [{"window": 20, "vigilance": 0.3}, {"max_nodes": 8, "window": 20}], ids=str)
def test_ids_are_learned_beside_threads_that_explain_save_and_merge(parameters, tmp_path):
    X, labels = rows_and_labels(160)
    model = MLCA(**parameters).partial_fit(X[:1], labels[:1], ids=[0])
    twin = MLCA(**parameters).fit(X[:30], labels[:30])

    def explain():
        assert {row_id for ids in model.explain(X[0]).rows for row_id in ids} <= {*range(160)}

    def save():
        path = tmp_path / f"{threading.get_ident()}.mlca"
        model.save(path)
        again = load(path)
        assert ids_of_nodes(again.partial_fit(X[:5], labels[:5], ids=range(5)))

    def copy_and_merge():
        assert row_ids_of(merge([copy.deepcopy(model), twin], how="append")) is None
        merge([model, twin])

    def learn():
        for low in range(1, 160, 3):
            model.partial_fit(X[low : low + 3], labels[low : low + 3], ids=range(low, min(low + 3, 160)))

    assert asked_beside([explain, save, copy_and_merge], learn) == []
    assert_ids_fit(model, labels)
    straight = MLCA(**parameters).fit(X, labels, ids=range(160))
    assert ids_of_nodes(model) == ids_of_nodes(straight)


def test_odd_ids_are_rejected_and_nothing_is_learned():
    X, labels = rows_and_labels(4)
    model = MLCA().fit(X, labels)
    with pytest.raises(ValueError, match="ids has 3 entries but y has 4 rows"):
        model.partial_fit(X, labels, ids=[1, 2, 3])
    with pytest.raises(ValueError, match=r"ids\[2\] is None; pass text or whole numbers"):
        model.partial_fit(X, labels, ids=["a", "b", None, "c"])
    assert model.n_seen_ == 4


def test_damaged_ids_are_reported():
    X, labels = rows_and_labels(4)
    model = MLCA().fit(X, labels)
    model.__dict__["extras_"] = {"row_ids": {"nodes": [["x"]], "waiting": []}}
    with pytest.raises(ValueError, match="the row IDs are damaged"):
        model.explain(X[0])

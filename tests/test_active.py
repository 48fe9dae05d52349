"""Tests of `mlca.active`: rows to label next, and suspicious labels."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA
from mlca.active import MOST_CANDIDATES, query, suspicious_labels
from mlca.datasets import random_rbf

FEW = settings(max_examples=15, deadline=None)


class Nodes:
    """A minimal model with the attributes that `mlca.active` uses."""

    def __init__(self, weights, label_counts, counts=None, chances=lambda X: np.full((X.shape[0], 1), 0.5)):
        self.prototypes_ = np.asarray(weights, dtype=float)
        self.label_counts_ = sp.csr_array(np.asarray(label_counts))
        self.counts_ = np.ones(len(self.prototypes_), dtype=np.int64) if counts is None else np.asarray(counts)
        self.classes_ = np.arange(self.label_counts_.shape[1])
        self.predict_proba = chances


def stream(n, seed=0):
    X, Y = zip(*random_rbf(n, change="none", random_state=seed), strict=True)
    return np.concatenate(X), np.concatenate(Y)


@FEW
@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 40))
def test_query_returns_the_requested_number_of_distinct_rows(seed, n_rows, n):
    X, Y = stream(100, seed)
    chosen = query(MLCA().fit(X[:60], Y[:60]), X[60 : 60 + n_rows], n)
    assert len(set(chosen.tolist())) == len(chosen) == min(n, n_rows)
    assert chosen.min() >= 0 and chosen.max() < n_rows


@FEW
@given(st.integers(0, 1000), st.integers(1, 10))
def test_smaller_query_returns_the_first_rows_of_a_larger_one(seed, n):
    X, Y = stream(150, seed)
    model = MLCA().fit(X[:60], Y[:60])
    np.testing.assert_array_equal(query(model, X[60:], 10)[:n], query(model, X[60:], n))


def test_query_changes_nothing_and_accepts_sparse_rows():
    X, Y = stream(200)
    X = np.where(X > 0.7, X, 0.0)
    model = MLCA().fit(X[:100], Y[:100])
    before = model.predict_proba(X)
    chosen = query(model, X[100:], 5)
    np.testing.assert_array_equal(query(model, sp.csr_matrix(X[100:]), 5), chosen)
    np.testing.assert_array_equal(query(MLCA().fit(sp.csr_array(X[:100]), Y[:100]), X[100:], 5), chosen)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_uncertain_rows_come_before_certain_ones():
    """Two clouds are equally far from all nodes; the one with uncertain predictions is chosen first."""
    rng = np.random.default_rng(0)
    clouds = np.repeat([[0.0, 9.0], [0.0, -9.0]], 20, axis=0) + 0.5 * rng.normal(size=(40, 2))
    model = Nodes(rng.normal(size=(50, 2)), np.ones((50, 1)))
    model.predict_proba = lambda X: np.where(X.toarray()[:, [1]] > 0, 0.5, 0.999)
    assert (query(model, clouds, 3) < 20).all()


def test_distant_clouds_come_first_and_outliers_last():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    X = np.repeat(centres, 30, axis=0) + 0.5 * rng.normal(size=(90, 2))
    X = np.vstack([X, [[-14.0, -14.0]]])
    chosen = query(Nodes(0.5 * rng.normal(size=(40, 2)), np.ones((40, 1))), X, 3)
    assert sorted(chosen[:2] // 30) == [1, 2]  # one row of each unknown cloud, none of the known cloud, and no outlier


def test_many_rows_are_sampled_evenly():
    X = np.random.default_rng(0).normal(size=(MOST_CANDIDATES + 500, 2))
    chosen = query(Nodes(X[:10], np.ones((10, 1))), X, 3)
    looked_at = np.linspace(0, len(X) - 1, MOST_CANDIDATES).round().astype(int)
    assert np.isin(chosen, looked_at).all()


def test_no_rows_give_an_empty_result_and_n_0_is_rejected():
    model = Nodes([[0.0], [1.0]], [[1], [1]])
    assert query(model, np.empty((0, 1)), 3).tolist() == []
    with pytest.raises(ValueError, match="n must be at least 1, not 0"):
        query(model, [[0.0]], 0)


def test_masked_cells_are_missing():
    X, Y = stream(100)
    model = MLCA().fit(X[:60], Y[:60])
    gaps = np.where(X[60:] > 0.8, np.nan, X[60:])
    masked = np.ma.masked_array(X[60:] * 9, np.isnan(gaps))
    np.copyto(masked.data, gaps, where=~np.isnan(gaps))
    assert query(model, masked, 5).tolist() == query(model, gaps, 5).tolist()


def test_labels_that_contradict_their_neighbours_are_found():
    X, Y = stream(600)
    rng = np.random.default_rng(1)
    flipped = rng.random(Y.shape) < 0.05
    model = MLCA(vigilance=0.0).fit(X, Y ^ flipped)
    assert model.n_nodes_ == len(X)
    n = int(flipped.sum())
    found = suspicious_labels(model, n)
    right = np.mean([flipped[one.node, one.label] for one in found])
    assert right > 0.5  # ten times the overall share of flipped labels
    assert [one.suspicion for one in found] == sorted((one.suspicion for one in found), reverse=True)
    np.testing.assert_array_equal([one.share for one in found], [(Y ^ flipped)[one.node, one.label] for one in found])


def test_a_node_does_not_vote_on_itself():
    """The node's label is the only one of its kind nearby, however many rows the node has."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    Y = np.zeros((30, 1), dtype=int)
    Y[11] = 40
    counts = np.ones(30, dtype=int)
    counts[11] = 40
    (found,) = suspicious_labels(Nodes(X, Y, counts), 1)
    assert (found.node, found.share) == (11, 1.0)
    assert found.expected < 0.4  # the prior, 0.58 (40 of 69 rows), counts as three votes


def test_many_labels_need_little_memory():
    rng = np.random.default_rng(0)
    model = Nodes(rng.normal(size=(400, 2)), rng.integers(0, 2, size=(400, 500)))
    tracemalloc.start()
    try:
        suspicious_labels(model, 3)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 12 * 400 * 500 * 8


def test_few_or_equal_nodes_have_finite_suspicions():
    one = Nodes([[0.0, 1.0]], [[1, 0]])
    assert [found.suspicion for found in suspicious_labels(one)] == [0.0, 0.0]
    assert suspicious_labels(one, 0) == []
    with pytest.raises(ValueError, match=r"n must be a whole number, not 2\.5"):
        suspicious_labels(one, 2.5)
    assert len(suspicious_labels(Nodes([[0.0], [1.0]], [[1], [0]]))) == 2
    same = Nodes(np.ones((5, 3)), np.eye(5, 2))
    assert all(np.isfinite(found.expected) for found in suspicious_labels(same))


@pytest.mark.filterwarnings("error")
def test_columns_of_frames_are_matched_by_name():
    X, Y = stream(100)
    frame = pd.DataFrame(X).add_prefix("x")
    model = MLCA().fit(frame[:60], Y[:60])
    assert query(model, frame[60:].iloc[:, ::-1], 5).tolist() == query(MLCA().fit(X[:60], Y[:60]), X[60:], 5).tolist()


class TestTables:
    """Missing values, categories and frames are treated as by the model."""

    rng = np.random.default_rng(3)
    CATEGORY = np.repeat([3, 1, 2], 40)
    SIZE = rng.normal(size=120)
    LABELS = tuple([f"of {code}"] for code in CATEGORY)

    @pytest.mark.filterwarnings("error")
    def test_unknown_category_comes_before_known_ones(self):
        frame = pd.DataFrame({"kind": np.array(["", "one", "two", "three"])[self.CATEGORY], "size": self.SIZE})
        known = self.CATEGORY != 2
        model = MLCA().fit(frame[known], [names for names, there in zip(self.LABELS, known, strict=True) if there])
        assert self.CATEGORY[query(model, frame, 1)[0]] == 2
        rows = np.column_stack([self.CATEGORY, self.SIZE])
        plain = MLCA(categorical_features=[0]).fit(rows[known], np.eye(4)[self.CATEGORY[known]])
        assert self.CATEGORY[query(plain, rows, 1)[0]] == 2

    @pytest.mark.parametrize("sparse", [False, True])
    def test_category_codes_are_compared_by_equality_only(self, sparse):
        """Codes 1 and 3 are as far apart as 1 and 2; as numbers they would dominate all other features."""
        labels = [["odd"] if code % 2 else ["even"] for code in self.CATEGORY]
        labels[5] = ["even"]
        rows = np.column_stack([self.CATEGORY * 100.0, self.SIZE / 1000, *np.zeros((3 * sparse, 120))])
        model = MLCA(categorical_features=[0]).fit(sp.csr_array(rows) if sparse else rows, labels)
        assert {found.node for found in suspicious_labels(model, 2)} == {5}
        recoded = np.where(rows == 200, 7.0, rows)
        again = MLCA(categorical_features=[0]).fit(sp.csr_array(recoded) if sparse else recoded, labels)
        assert suspicious_labels(again, 9) == suspicious_labels(model, 9)

    @pytest.mark.filterwarnings("error")
    def test_missing_values_are_ordinary_values(self):
        place = 0.1 * self.SIZE + 9.0 * self.CATEGORY
        rows = np.column_stack([place, np.full(120, np.nan), -place])
        rows[::7, 2] = np.nan
        labels = list(self.LABELS)
        labels[9] = ["of 1"]
        model = MLCA(vigilance=0).fit(rows, labels)
        assert {found.node for found in suspicious_labels(model, 2)} == {9}
        assert len(query(model, rows, 5)) == 5

    def test_n_must_be_a_whole_number(self):
        with pytest.raises(ValueError, match=r"n must be a whole number, not 2\.5"):
            query(MLCA().fit(self.SIZE[:, None], self.LABELS), self.SIZE[:, None], 2.5)

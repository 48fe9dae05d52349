"""Each measure against scikit-learn if the convention is shared, otherwise against a direct computation."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk

from mlca import metrics
from mlca.metrics import ranking

SET_MEASURES = [
    metrics.exact_match,
    metrics.example_f1,
    metrics.jaccard,
    metrics.hamming_loss,
    metrics.micro_f1,
    metrics.macro_f1,
]
SCORE_MEASURES = [
    metrics.macro_auc,
    metrics.micro_auc,
    metrics.ranking_loss,
    metrics.coverage,
    metrics.average_precision,
    metrics.one_error,
]


@st.composite
def label_sets(draw, n_tables=2):
    shape = (draw(st.integers(1, 12)), draw(st.integers(2, 8)))
    return tuple(draw(arrays(np.int8, shape, elements=st.integers(0, 1))) for _ in range(n_tables))


@st.composite
def scored_labels(draw):
    """Return scores of few distinct values, so that most are tied."""
    (Y,) = draw(label_sets(n_tables=1))
    return Y, draw(arrays(np.float64, Y.shape, elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])))


def mixed_rows(Y):
    return (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < Y.shape[1])


def same(ours, theirs):
    return ours == pytest.approx(theirs, abs=1e-12, nan_ok=True)


class TestAgainstScikitLearn:
    @settings(deadline=None)
    @given(label_sets())
    def test_measures_of_label_sets_equal_those_of_scikit_learn(self, tables):
        Y, P = tables
        assert same(metrics.exact_match(Y, P), sk.accuracy_score(Y, P))
        assert same(metrics.hamming_loss(Y, P), sk.hamming_loss(Y, P))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for ours, average in (
                (metrics.example_f1, "samples"),
                (metrics.micro_f1, "micro"),
                (metrics.macro_f1, "macro"),
            ):
                assert same(ours(Y, P), sk.f1_score(Y, P, average=average, zero_division=np.nan))

    @settings(deadline=None)
    @given(label_sets())
    def test_jaccard_equals_that_of_scikit_learn_on_rows_with_any_label(self, tables):
        Y, P = tables
        kept = (Y | P).any(axis=1)
        assume(kept.any())
        assert same(metrics.jaccard(Y, P), sk.jaccard_score(Y[kept], P[kept], average="samples"))

    @settings(deadline=None)
    @given(scored_labels())
    def test_rankings_equal_those_of_scikit_learn_on_rows_with_true_and_false_labels(self, table):
        Y, S = table
        mixed = mixed_rows(Y)
        assume(mixed.any())
        assert same(metrics.ranking_loss(Y, S), sk.label_ranking_loss(Y[mixed], S[mixed]))
        assert same(metrics.average_precision(Y, S), sk.label_ranking_average_precision_score(Y[mixed], S[mixed]))

    @settings(deadline=None)
    @given(scored_labels())
    def test_coverage_equals_that_of_scikit_learn_on_rows_with_a_label(self, table):
        Y, S = table
        kept = Y.any(axis=1)
        assume(kept.any())
        theirs = (sk.coverage_error(Y[kept], S[kept]) - 1) / (Y.shape[1] - 1)
        assert same(metrics.coverage(Y, S), theirs)

    @settings(deadline=None)
    @given(scored_labels(), st.integers(1, 9))
    def test_ndcg_equals_that_of_scikit_learn_on_rows_with_a_label(self, table, k):
        Y, S = table
        kept = Y.any(axis=1)
        assume(kept.any())
        assert same(metrics.ndcg_at_k(Y, S, k), sk.ndcg_score(Y[kept], S[kept], k=k))

    @settings(deadline=None)
    @given(scored_labels())
    def test_auc_equals_that_of_scikit_learn(self, table):
        Y, S = table
        both = Y.any(axis=0) & ~Y.all(axis=0)
        assume(both.any())
        assert same(metrics.macro_auc(Y, S), sk.roc_auc_score(Y[:, both], S[:, both], average="macro"))
        assert same(metrics.micro_auc(Y, S), sk.roc_auc_score(Y, S, average="micro"))


class TestByHand:
    @settings(deadline=None)
    @given(scored_labels())
    def test_one_error_counts_a_false_label_tied_for_the_top_as_an_error(self, table):
        Y, S = table
        errors = [
            any(s == max(scores) and not y for y, s in zip(true, scores, strict=True))
            for true, scores in zip(Y, S, strict=True)
            if 0 < sum(true) < len(true)
        ]
        expected = sum(errors) / len(errors) if errors else math.nan
        assert same(metrics.one_error(Y, S), expected)

    @settings(max_examples=50, deadline=None)
    @given(scored_labels(), st.integers(1, 6))
    def test_precision_at_k_is_the_mean_over_all_ways_to_break_ties(self, table, k):
        Y, S = table[0][:3, :5], table[1][:3, :5]
        rows = []
        for true, scores in zip(Y, S, strict=True):
            outcomes = []
            for tie_break in itertools.permutations(range(len(true))):
                order = sorted(range(len(true)), key=lambda j: (-scores[j], tie_break[j]))
                outcomes.append(sum(int(true[j]) for j in order[:k]) / k)
            rows.append(sum(outcomes) / len(outcomes))
        assert same(metrics.precision_at_k(Y, S, k), sum(rows) / len(rows))

    def test_undefined_rows_and_labels_are_left_out(self):
        Y = np.array([[1, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]])
        S = np.array([[0.9, 0.1, 0.2, 0.8], [0.9, 0.1, 0.2, 0.9], [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
        P = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
        assert metrics.example_f1(Y, P) == pytest.approx((1 + 0 + 1) / 3)
        assert metrics.ranking_loss(Y, S) == pytest.approx((0 + 1 / 3) / 2)
        assert metrics.average_precision(Y, S) == pytest.approx((1 + 1 / 2) / 2)
        assert metrics.one_error(Y, S) == pytest.approx((0 + 1) / 2)
        assert metrics.coverage(Y, S) == pytest.approx((1 + 1 + 3) / 3 / 3)
        assert metrics.precision_at_k(Y, S, 1) == pytest.approx((1 + 1 / 2 + 1 + 0) / 4)
        assert metrics.ndcg_at_k(Y, S, 1) == pytest.approx((1 + 1 / 2 + 1) / 3)
        # Label 0: 0.9 ties with one negative and beats the other; 0.1 loses to both.
        assert metrics.macro_auc(Y[:, :1], S[:, :1]) == pytest.approx((0.5 + 1 + 0 + 0) / 4)

    def test_macro_auc_leaves_out_labels_of_one_class(self):
        Y = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]])
        S = np.array([[0.9, 0.5, 0.1], [0.3, 0.5, 0.2], [0.4, 0.1, 0.3]])
        assert metrics.macro_auc(Y, S) == 1.0


class TestInvariance:
    @settings(deadline=None)
    @given(label_sets())
    def test_sparse_and_dense_labels_give_the_same_measures(self, tables):
        Y, P = tables
        for measure in SET_MEASURES:
            assert same(measure(sp.csr_matrix(Y), sp.coo_array(P)), measure(Y.astype(bool), P.astype(float)))

    @settings(deadline=None)
    @given(scored_labels())
    def test_block_size_does_not_change_measures(self, table):
        Y, S = table
        whole = metrics.evaluate(Y, S).as_dict()
        before = ranking.BLOCK_CELLS
        try:
            for ranking.BLOCK_CELLS in (1, 2 * Y.shape[1], 5 * Y.shape[1] + 1):
                assert metrics.evaluate(Y, S).as_dict() == pytest.approx(whole, abs=1e-12, nan_ok=True)
        finally:
            ranking.BLOCK_CELLS = before

    @settings(deadline=None)
    @given(scored_labels(), st.randoms(use_true_random=False))
    def test_order_of_rows_and_labels_does_not_change_measures(self, table, random):
        Y, S = table
        rows, labels = list(range(Y.shape[0])), list(range(Y.shape[1]))
        random.shuffle(rows)
        random.shuffle(labels)
        moved = metrics.evaluate(Y[rows][:, labels], S[rows][:, labels]).as_dict()
        assert moved == pytest.approx(metrics.evaluate(Y, S).as_dict(), abs=1e-12, nan_ok=True)

    @settings(deadline=None)
    @given(scored_labels())
    def test_monotone_float32_scores_give_the_same_measures(self, table):
        Y, S = table
        for measure in SCORE_MEASURES:
            assert same(measure(Y, (3 * S - 7).astype(np.float32)), measure(Y, S))

    def test_inputs_are_not_modified(self):
        Y = sp.csr_matrix(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
        metrics.evaluate(Y, np.zeros((2, 3)))
        assert Y.nnz == 3 and Y.dtype == np.float64


class TestInvalidInput:
    def test_shapes_that_differ_are_rejected(self):
        with pytest.raises(ValueError, match=r"Y_true has shape \(1, 2\), but Y_pred has shape \(1, 3\).*zeros"):
            metrics.exact_match([[0, 1]], [[0, 1, 0]])
        with pytest.raises(ValueError, match=r"scores has shape \(2, 2\)"):
            metrics.ranking_loss([[0, 1]], [[0, 1], [0, 1]])
        with pytest.raises(ValueError, match=r"Y_true must be a table.*shape \(3,\)"):
            metrics.hamming_loss([0, 1, 1], [0, 1, 1])

    @pytest.mark.parametrize("as_matrix", [np.array, sp.csr_array])
    def test_labels_other_than_0_and_1_are_rejected(self, as_matrix):
        with pytest.raises(ValueError, match="Y_pred must hold 0 and 1 only, but row 1, label 2 is 3"):
            metrics.exact_match(np.zeros((2, 3)), as_matrix([[0, 1, 0], [1, 0, 3]]))

    def test_missing_labels_are_rejected(self):
        with pytest.raises(ValueError, match="row 0, label 1 is nan"):
            metrics.exact_match([[0, np.nan]], [[0, 1]])

    def test_invalid_scores_are_rejected(self):
        with pytest.raises(ValueError, match=r"proba is NaN at row 1, label 0 \(2 in all\)"):
            metrics.evaluate([[0, 1], [1, 0]], [[0.1, 0.2], [np.nan, np.nan]])
        with pytest.raises(ValueError, match=r"scores is sparse.*toarray"):
            metrics.coverage([[0, 1]], sp.csr_array([[0.1, 0.2]]))
        with pytest.raises(ValueError, match="real numbers"):
            metrics.coverage([[0, 1]], [["a", "b"]])

    @pytest.mark.parametrize("measure", [metrics.precision_at_k, metrics.ndcg_at_k])
    def test_invalid_k_is_rejected(self, measure):
        with pytest.raises(ValueError, match="k must be at least 1, not 0"):
            measure([[0, 1]], [[0.1, 0.2]], k=0)
        with pytest.raises(ValueError, match=r"k must be a whole number, not 1\.5"):
            measure([[0, 1]], [[0.1, 0.2]], k=1.5)

"""Ranks and tests compared with Demsar (2006), scipy and scikit-posthocs."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from mlca.metrics import MEASURES
from mlca.statistics import critical_difference, friedman_test, nemenyi_test, rank_results

# AUC of C4.5 with pruning parameters m and cf tuned or not, on 14 datasets. Two results of the last dataset but one are
# printed as 0.975 but ranked 2 and 3, so a fourth digit is added.
DEMSAR = pd.DataFrame(
    [
        (0.763, 0.768, 0.771, 0.798),
        (0.599, 0.591, 0.590, 0.569),
        (0.954, 0.971, 0.968, 0.967),
        (0.628, 0.661, 0.654, 0.657),
        (0.882, 0.888, 0.886, 0.898),
        (0.936, 0.931, 0.916, 0.931),
        (0.661, 0.668, 0.609, 0.685),
        (0.583, 0.583, 0.563, 0.625),
        (0.775, 0.838, 0.866, 0.875),
        (1.000, 1.000, 1.000, 1.000),
        (0.940, 0.962, 0.965, 0.962),
        (0.619, 0.666, 0.614, 0.669),
        (0.972, 0.981, 0.9754, 0.975),
        (0.957, 0.978, 0.946, 0.970),
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)


@st.composite
def result_tables(draw):
    shape = (draw(st.integers(2, 12)), draw(st.integers(3, 7)))
    return draw(arrays(np.float64, shape, elements=st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.7, 0.9])))


class TestDemsarsExample:
    def test_average_ranks_equal_the_published_ones(self):
        ranks = rank_results(DEMSAR)
        assert ranks.names == tuple(DEMSAR.columns)
        assert str(rank_results([[0.2, 0.1]], names=[2, 10])) == "average rank\n2   1.000\n10  2.000"
        assert ranks.average() == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)

    def test_friedman_statistic_without_tie_correction_equals_the_published_one(self):
        result = friedman_test(DEMSAR, correct_ties=False)
        assert result.chi2 == pytest.approx(9.28, abs=5e-3)
        assert result.f == pytest.approx(3.69, abs=5e-3)
        assert result.f > 2.85  # the critical value in the text
        assert result.f_p == pytest.approx(stats.f.sf(result.f, 3, 39))

    def test_critical_differences_equal_the_published_ones(self):
        assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
        assert critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=5e-3)

    def test_nemenyi_finds_the_published_differences(self):
        """At 5 % no pair differs; at 10 % tuning m is better than no tuning."""
        assert not [pair for pair in nemenyi_test(DEMSAR) if pair.differs]
        differing = {(p.first, p.second) for p in nemenyi_test(DEMSAR, alpha=0.10) if p.differs}
        assert differing == {("C4.5+m+cf", "C4.5"), ("C4.5+m", "C4.5")}


class TestRanks:
    def test_ranking_follows_the_direction_of_each_measure(self):
        for name, measure in MEASURES.items():
            table = rank_results([[0.1, 0.9]], name).table
            assert table.tolist() == ([[2, 1]] if measure.better == "higher" else [[1, 2]])

    def test_each_row_may_have_its_own_direction(self):
        ranks = rank_results([[0.1, 0.9], [0.1, 0.9]], ["exact_match", "lower"])
        assert ranks.table.tolist() == [[2, 1], [1, 2]]

    def test_masked_results_are_missing(self):
        results = np.ma.masked_equal([[3, 9, 1], [3, 2, 1]], 9)
        with pytest.raises(ValueError, match="2 has no result in row 0"):
            rank_results(results)
        assert rank_results(results, missing="worst").table.tolist() == [[1, 3, 2], [1, 2, 3]]

    def test_missing_result_is_rejected_or_ranked_worst(self):
        results = pd.DataFrame({"a": [0.3, 0.4], "b": [np.nan, 0.1], "c": [np.nan, 0.2]})
        with pytest.raises(ValueError, match=r"b has no result in row 0: pass missing='worst'"):
            rank_results(results)
        for better in ("higher", "lower"):
            assert rank_results(results, better, missing="worst").table[0].tolist() == [1, 2.5, 2.5]

    def test_unknown_handling_of_missing_results_is_rejected(self):
        with pytest.raises(ValueError, match="missing must be 'raise' or 'worst'; got 'wrst'"):
            rank_results([[0.3, np.nan], [0.4, 0.1]], missing="wrst")

    @settings(deadline=None)
    @given(result_tables())
    def test_ranks_of_each_row_add_up_despite_ties(self, results):
        ranks = rank_results(results)
        k = ranks.n_algorithms
        assert ranks.table.sum(axis=1) == pytest.approx(np.full(len(results), k * (k + 1) / 2))

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match=r"its shape is \(3,\)"):
            rank_results([1, 2, 3])
        with pytest.raises(ValueError, match=r"better must be 'higher', 'lower' or one of .*; got 'best'"):
            rank_results([[1, 2]], "best")
        with pytest.raises(ValueError, match="better has 2 entries, but results has 1 rows"):
            rank_results([[1, 2]], ["higher", "lower"])
        with pytest.raises(ValueError, match="name each algorithm once"):
            rank_results([[1, 2]], names=["a", "a"])


class TestFriedman:
    @settings(deadline=None)
    @given(result_tables())
    def test_statistic_equals_that_of_scipy(self, results):
        ours = friedman_test(results)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = stats.friedmanchisquare(*results.T)
        if (results == results[:, :1]).all():  # all values in a row are tied, so SciPy divides by about zero
            assert (ours.chi2, ours.p) == (0, 1)
        else:
            assert ours.chi2 == pytest.approx(theirs.statistic)
            assert ours.p == pytest.approx(theirs.pvalue)

    def test_identical_rankings_give_an_infinite_statistic(self):
        result = friedman_test([[1, 2, 3]] * 5)
        assert math.isinf(result.f) and result.f_p == 0

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match=r"got 2 and 3; for two algorithms, use scipy\.stats\.wilcoxon"):
            friedman_test([[1, 2]] * 3)

    def test_printed_result_begins_with_the_sizes(self):
        assert str(friedman_test(DEMSAR)).splitlines()[0] == "Friedman test, 4 algorithms on 14 datasets"


class TestNemenyi:
    @settings(deadline=None, max_examples=30)
    @given(result_tables())
    def test_p_values_equal_those_of_scikit_posthocs(self, results):
        ours = nemenyi_test(results).p_values
        theirs = scikit_posthocs.posthoc_nemenyi_friedman(results).to_numpy()
        assert ours == pytest.approx(theirs, abs=1e-6)

    @pytest.mark.parametrize(("k", "n", "expected"), [(9, 16, 3.003), (4, 14, 1.2536)])
    def test_critical_difference_equals_the_tabulated_value(self, k, n, expected):
        assert critical_difference(k, n) == pytest.approx(expected, abs=5e-4)

    @settings(deadline=None, max_examples=30)
    @given(result_tables(), st.sampled_from([0.05, 0.5]))
    def test_pairs_differ_at_or_above_the_critical_difference(self, results, alpha):
        result = nemenyi_test(results, alpha=alpha)
        pairs = list(result)
        k = result.ranks.n_algorithms
        assert len(pairs) == k * (k - 1) / 2
        for pair in pairs:
            assert pair.difference >= 0
            if abs(pair.difference - result.critical_difference) > 1e-6:
                assert pair.differs == (pair.difference > result.critical_difference)

    @settings(deadline=None, max_examples=30)
    @given(result_tables(), st.sampled_from([0.05, 0.5]))
    def test_groups_are_the_maximal_cliques(self, results, alpha):
        result = nemenyi_test(results, alpha=alpha)
        alike = {frozenset((pair.first, pair.second)) for pair in result if not pair.differs}
        groups = [set(group) for group in result.groups()]
        covered = {frozenset((a, b)) for group in groups for a in group for b in group if a != b}
        assert covered == alike
        assert not any(one < other for one in groups for other in groups)

    def test_groups_overlap_in_rank_order(self):
        ranks = np.array([[1, 2, 3, 4, 5]] * 12)
        result = nemenyi_test(ranks, "lower", names=list("abcde"))
        assert result.critical_difference == pytest.approx(1.761, abs=1e-3)
        assert result.groups() == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match="alpha must be between 0 and 1; got 5"):
            nemenyi_test(DEMSAR, alpha=5)
        with pytest.raises(ValueError, match="1 algorithms on 3 datasets"):
            critical_difference(1, 3)

"""Statistical tests of whether algorithms differ over many datasets.

The input is a table of results: one row per dataset (or per dataset and measure), one column per algorithm. `ranks`
turns every row into ranks, where 1 is the best: results of different datasets cannot be averaged but their ranks can.
`friedman_test` tests whether the average ranks differ more than chance would explain. If so, `nemenyi_test` finds the
pairs of algorithms that differ: those whose average ranks are at least a critical difference apart.
`mlca.plots.plot_critical_difference` draws its result.

The procedure is that of Demsar (2006), which the paper follows.
"""

from mlca.statistics.friedman import Friedman, friedman_test
from mlca.statistics.nemenyi import Nemenyi, Pair, critical_difference, nemenyi_test
from mlca.statistics.ranks import Ranks, rank_results

__all__ = [
    "Friedman",
    "Nemenyi",
    "Pair",
    "Ranks",
    "critical_difference",
    "friedman_test",
    "nemenyi_test",
    "rank_results",
]

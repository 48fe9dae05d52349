"""Nodes described by the columns of the user's table, most unusual columns first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mlca.frames import _informative_places
from mlca.tables.feature_names import FeatureNames
from mlca.tables.informative import InformativeColumns, beside, dense_row
from mlca.tables.kinds import Categorical, Numeric, OneHot
from mlca.tables.layout import LabelLayout, TableLayout, XcLayout

LAYOUT = TableLayout(
    (Numeric("size"), OneHot("colour", ("blue", "red")), Numeric("weight")),
    LabelLayout("separated", ("tags",)),
)
CODED = TableLayout((Numeric("size"), Categorical("colour", ("blue", "red")), Numeric("weight")))
# Sizes 0 to 9, one node in ten red, equal weights.
NODES = np.array([[i, float(i != 7), float(i == 7), 5.0] for i in range(10)])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_most_unusual_columns_come_first(form):
    informative = InformativeColumns(FeatureNames(LAYOUT), form(NODES))
    row = np.array([0.0, 0.0, 1.0, 5.0])  # red is 3 deviations from the mean, size 0 is 1.6, the weight is average
    assert informative.most_unusual(row, 1) == [1]
    assert informative.most_unusual(row, 2) == [1, 0]
    assert informative.most_unusual(row, 9) == [1, 0, 2]
    assert [(informative.name(k), informative.in_words(row, k)) for k in range(3)] == [
        ("size", "0"),
        ("colour", "red"),
        ("weight", "5"),
    ]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_codes_count_like_numbers_of_0_and_1(form):
    nodes = np.column_stack([NODES[:, 0], 1 + NODES[:, 2], NODES[:, 3]])
    nodes[0] = np.nan
    informative = InformativeColumns(FeatureNames(CODED), form(nodes))
    row = np.array([5.0, 2.0, np.nan])
    assert informative.most_unusual(row, 1) == [1]
    assert [informative.in_words(row, k) for k in range(3)] == ["5", "red", "missing"]
    assert informative.most_unusual(np.array([9.0, np.nan, 5.0]), 1) == [0]


def test_unnamed_columns_are_shown_by_number():
    informative = InformativeColumns(FeatureNames(XcLayout(4, 1)), sparse.csr_array(NODES))
    row = dense_row(sparse.csr_array(NODES), 7)
    assert [(informative.name(k), informative.in_words(row, k)) for k in informative.most_unusual(row, 2)] == [
        ("attribute 2", "0"),
        ("attribute 3", "1"),
    ]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.floats(0, 0.4))
def test_features_missing_in_all_nodes_are_skipped(seed, n_features, density):
    rng = np.random.default_rng(seed)
    ordinary = sparse.random_array((7, n_features), density=density, rng=rng, format="csr")
    row = np.where(rng.random(n_features) < 0.3, rng.normal(size=n_features), 0.0)
    row[rng.random(n_features) < 0.1] = np.nan

    def informative(places):
        layout = TableLayout(tuple(Numeric(f"x{place}") for place in places.tolist()))
        return beside(FeatureNames(layout), ordinary[:, places], [row[places]], 12)

    assert informative(_informative_places(ordinary)) == informative(np.arange(n_features))

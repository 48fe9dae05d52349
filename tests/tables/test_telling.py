"""Nodes in the user's own terms."""

import numpy as np
import pytest
from scipy import sparse

from mlca.tables.kinds import Categorical, Numeric
from mlca.tables.layout import Labels, TableLayout, XcLayout
from mlca.tables.telling import TellingColumns, dense_row

LAYOUT = TableLayout(
    (Numeric("size", 0.0), Categorical("colour", ("blue", "red")), Numeric("weight", 0.0)),
    Labels("separated", ("tags",)),
)
# Sizes 0 to 9, one node in ten red, weights all alike.
NODES = np.array([[i, float(i != 7), float(i == 7), 5.0] for i in range(10)])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_least_ordinary_columns_come_in_the_order_of_the_table(form):
    telling = TellingColumns(LAYOUT, form(NODES))
    row = np.array([0.0, 0.0, 1.0, 5.0])  # red is 3 spreads away, size 0 is 1.6 below the mean, the weight as ever
    assert telling.of(row, 1) == [1]
    assert telling.of(row, 2) == [0, 1]
    assert telling.of(row, 9) == [0, 1, 2]
    assert [(telling.name(k), telling.in_words(row, k)) for k in range(3)] == [
        ("size", "0"),
        ("colour", "red"),
        ("weight", "5"),
    ]


def test_numbered_attributes():
    telling = TellingColumns(XcLayout(4, 1), sparse.csr_array(NODES))
    row = dense_row(sparse.csr_array(NODES), 7)
    assert [(telling.name(k), telling.in_words(row, k)) for k in telling.of(row, 2)] == [
        ("attribute 2", "0"),
        ("attribute 3", "1"),
    ]

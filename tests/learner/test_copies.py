"""Copies share the rows of nodes with their model until one of them changes."""

import copy
from itertools import product

import numpy as np
import pytest

from mlca import MLCA
from tests.learner.attacks import KINDS, MODES, WholeRows, stream
from tests.learner.model_comparison import assert_exactly_same, assert_same_arrays

RULES = ("published", "text")


@pytest.mark.parametrize(("attributes", "kind", "rule"), list(product(MODES, KINDS, RULES)))
def test_copy_and_model_are_independent(attributes, kind, rule):
    X, y = stream(200, 5, kind)
    other_X, other_y = stream(200, 5, kind, seed=1)

    def make():
        return MLCA(attributes=attributes, window=20, vigilance=0.3, rule=rule)

    model, copies = make().partial_fit(X[:60], y[:60]), []
    for low in range(60, 200, 20):
        twin = copy.deepcopy(model)
        copies.append(twin)
        twin.partial_fit(other_X[:30], other_y[:30])  # nodes move and are created in both models
        model.partial_fit(X[low : low + 20], y[low : low + 20])
        expected = make().partial_fit(X[:low], y[:low]).partial_fit(other_X[:30], other_y[:30])
        assert_exactly_same(twin, expected)
    WholeRows(make, X, y).check(model)
    assert [twin.n_seen_ for twin in copies] == [low + 30 for low in range(60, 200, 20)]


@pytest.mark.parametrize("kind", KINDS)
def test_copy_of_a_copy_outlives_both(kind):
    X, y = stream(120, 5, kind)
    whole_rows = WholeRows(lambda: MLCA(window=20, vigilance=0.3), X, y)
    first = whole_rows.make().partial_fit(X[:60], y[:60])
    second = copy.deepcopy(first)
    third = copy.deepcopy(second)
    first.partial_fit(X[60:], y[60:])
    del first, second
    whole_rows.check(third)


PARTS = {
    "weights": ("weights",),
    "counts": ("counts",),
    "bandwidths": ("bandwidths",),
    "label_counts": ("label_counts",),
    "none": (),
}
OF_NODES = {"cells", "linear", "weights", "counts", "bandwidths", "label_counts", "unlabelled"}


@pytest.mark.parametrize("options", [{}, {"max_nodes": 15}, {"drift": "follow", "recency": True}], ids=str)
@pytest.mark.parametrize(("attributes", "kind"), list(product(MODES, KINDS)))
def test_partial_state_equals_that_part_of_the_whole_state(attributes, kind, options):
    X, y = stream(90, 5, kind)
    learner = MLCA(attributes=attributes, window=20, **options).fit(X, y)._learner
    whole = learner.state()
    for part, names in PARTS.items():
        expected = {name: array for name, array in whole.items() if name.split(".")[0] not in OF_NODES - set(names)}
        assert_same_arrays(learner.state(part), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_partial_state_with_missing_values_equals_the_whole_state(kind):
    X, y = stream(90, 5)
    X[3, 2] = np.nan
    learner = MLCA(window=20).fit(KINDS[kind](X), y)._learner
    whole = learner.state()
    assert_same_arrays(learner.state("none"), {k: v for k, v in whole.items() if k.split(".")[0] not in OF_NODES})
    weights = learner.state("weights")
    assert_same_arrays(
        {k: v for k, v in weights.items() if k.split(".")[0] == "weights"},
        {k: v for k, v in whole.items() if k.split(".")[0] == "weights"},
    )

"""Reproduction of figures printed in the paper."""

from functools import cache

import numpy as np
import pytest

from mlca import MLCA
from mlca.datasets import load_dataset, three_discs

# condition: (nodes, exact match) after each distribution, as measured for this project's specification, which sets no
# target for the nodes of "seven".
SYNTHETIC = {
    "together": ([868], [0.972]),
    "three": ([710, 1183, 1542], [1.000, 0.964, 0.910]),
    "seven": (None, [1.000, 0.998, 0.996, 0.993, 0.955, 0.958, 0.925]),
}


@pytest.mark.parametrize("condition", SYNTHETIC)
def test_three_discs_reproduce_the_papers_nodes_and_matches(condition):
    nodes, matches = [], []
    for seed in range(5):
        model = MLCA.published(vigilance=0.1)
        run = []
        for stage in three_discs(condition=condition, random_state=seed):
            model.partial_fit(stage.X, stage.Y)
            right = (model.predict(stage.X_test) == stage.Y_test).all(axis=1).mean()
            run.append((model.n_nodes_, right))
        nodes.append([n for n, _ in run])
        matches.append([match for _, match in run])
    expected_nodes, expected_matches = SYNTHETIC[condition]
    np.testing.assert_allclose(np.mean(matches, axis=0), expected_matches, atol=0.01)
    if expected_nodes:
        np.testing.assert_allclose(np.mean(nodes, axis=0), expected_nodes, rtol=0.03)


CONFIGURATIONS = [("MLCA", 0.01), ("MLCA", 0.3), ("MLCA-I", 0.01), ("MLCA-I", 0.15), ("MLCA-C", 0.01), ("MLCA-C", 0.25)]
# Mean number of nodes over 2 x 10-fold cross-validation, in the order of CONFIGURATIONS (paper, table of nodes).
NODES = {
    "flags": (174.6, 163.9, 170.5, 88.2, 167.7, 19.1),
    "emotions": (533.7, 532.9, 533.7, 532.1, 533.7, 244.6),
    "birds": (580.5, 580.5, 580.5, 146.0, 580.0, 170.6),
    "virusgo": (159.3, 11.2, 86.3, 5.2, 159.3, 122.1),
    "gpositivego": (412.3, 28.3, 183.0, 8.8, 412.3, 308.8),
    "genbase": (192.0, 1.7, 31.9, 1.0, 192.0, 130.5),
    "medical": (871.0, 55.0, 450.9, 14.0, 871.0, 736.5),
    "plantgo": (775.6, 39.5, 301.5, 12.5, 766.4, 644.0),
    "langlog": (1130.6, 761.4, 1116.7, 513.1, 1130.6, 1118.4),
    "image": (1800.0, 1597.1, 1800.0, 1736.8, 1800.0, 1729.0),
    "scene": (2159.0, 2076.3, 2159.0, 2151.0, 2159.0, 2148.0),
    "yeast": (2175.3, 2123.1, 2175.3, 2168.8, 2175.3, 2015.6),
}
LARGER = ("plantgo", "langlog", "image", "scene", "yeast")
# Our copy of Langlog agrees with the paper in four of its six cells; with a larger vigilance it makes 7 % (MLCA) and
# 19 % (MLCA-I) more nodes, under every rule and whether rows are shuffled or not: perhaps the copies differ.
NOT_REPRODUCED = {("langlog", "MLCA", 0.3), ("langlog", "MLCA-I", 0.15)}


def cell(name, algorithm, vigilance, nodes):
    wide_and_slow = algorithm != "MLCA" and name in ("genbase", "medical")
    marks = [pytest.mark.slow] if name in LARGER or wide_and_slow else []
    if (name, algorithm, vigilance) in NOT_REPRODUCED:
        marks.append(pytest.mark.xfail(strict=True, reason="not reproduced; perhaps another copy of Langlog"))
    return pytest.param(name, algorithm, vigilance, nodes, marks=marks)


CELLS = [
    cell(name, *configuration, nodes)
    for name, row in NODES.items()
    for configuration, nodes in zip(CONFIGURATIONS, row, strict=True)
]


# Reading a file takes as long as learning it a few times.
loaded = cache(load_dataset)


@pytest.mark.data
@pytest.mark.parametrize(("name", "algorithm", "vigilance", "expected"), CELLS)
def test_node_counts_agree_with_the_papers_table(name, algorithm, vigilance, expected):
    dataset = loaded(name)
    n = dataset.X.shape[0]
    found = []
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(n)[: round(0.9 * n)]
        model = MLCA.published(algorithm, vigilance=vigilance, random_state=seed)
        found.append(model.fit(dataset.X[rows], dataset.Y[rows]).n_nodes_)
    tolerance = 0.03 if algorithm == "MLCA" else 0.06
    assert abs(np.mean(found) - expected) <= max(3, tolerance * expected), (np.mean(found), np.std(found))

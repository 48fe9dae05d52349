"""Forged values of similarity, decisions, recency and drift, each rejected with the name of its array.

Compiled code uses these numbers without checks, so there is a forgery beyond each bound.
"""

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load, merge
from tests.learner.algorithm_options import VARIANTS
from tests.learner.random_streams import late_label_stream
from tests.storage.archives import pack, unpack

pytestmark = pytest.mark.traced


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X, Y = late_label_stream("grid", 140, 4, 3, seed=2)
    for name, rule in VARIANTS.items():
        MLCA(**rule | {"vigilance": "auto", "window": 20}).fit(X, Y).save(folder / name)
    calibrated = {"decision": "calibrated", "window": 20}
    MLCA(**calibrated).fit(sparse.csr_array((X > 0).astype(float)), Y).save(folder / "binary")
    MLCA(**calibrated, vigilance="auto").fit(X[:9], Y[:9]).save(folder / "waiting")
    MLCA(**calibrated, max_nodes=30, drift="follow").fit(X, Y).save(folder / "bounded")
    MLCA(**calibrated, max_nodes=1000).fit(X, Y).save(folder / "below the bound")
    MLCA(window=20).fit(X[:9], Y[:9]).save(folder / "mixed waiting")
    return folder


def setting(name, place, value):
    def change(arrays):
        arrays[name][place] = value

    return change


def replacing(name, by):
    def change(arrays):
        arrays[name] = by(arrays[name])

    return change


def many_rows(n):
    """Return a change that adds unlabelled rows to a node, in all arrays that count them."""

    def change(arrays):
        for name, place in {"tally": 1, "counts": 0, "unlabelled": 0, "similarity.tally": 0}.items():
            arrays[name][place] += n
        if "with" in arrays:
            arrays["tally"][2] += n
            arrays["without"][:, 0] += n
        else:
            arrays["decision.totals"][0] += n

    return change


def one_linear_weight(arrays):
    """Add a linear weight before the first training step."""
    arrays["linear.features"] = np.zeros(1, "i4")
    arrays["linear.kinds"] = np.zeros(1, "u1")
    arrays["linear.values"] = np.zeros(1)
    arrays["linear.weights"] = np.zeros((1, len(arrays["decision.arrived"]) + 2), "f4")
    arrays["linear.squares"] = 1 + arrays["linear.weights"]


def two_cells(then=None):
    """Return a change that puts the nodes into two cells and then applies another change."""

    def change(arrays):
        arrays["cells.centres"] = np.zeros((2, 4), "i2")
        arrays["cells.nodes"] = np.arange(arrays["tally"][0], dtype="i4") % 2
        if then is not None:
            then(arrays)

    return change


LINEAR = "the linear models are inconsistent"
CELLS = "the cells do not fit the nodes"
OTHER_NODES = "the learned similarity was computed from other nodes"
SIMILARITY, DECISION = "the learned similarity is inconsistent", "the state of the decision is inconsistent"
NOT_FINITE = "holds numbers that are not finite"
ANOTHER_TIME = "'similarity.tally' must schedule the next similarity"
LAST = 2**63 - 1
FIRST = -(2**63)

# name: (file, change, message)
FORGERIES = {
    "due in the past": ("calibrated", setting("similarity.tally", 0, 140), ANOTHER_TIME),
    "due a row too late": ("calibrated", setting("similarity.tally", 0, 176), ANOTHER_TIME),
    "never due": ("calibrated", setting("similarity.tally", 0, LAST), ANOTHER_TIME),
    "too many knots": ("calibrated", setting("similarity.tally", 1, 18), SIMILARITY),
    "knots that wrap": ("calibrated", setting("similarity.tally", 1, FIRST), SIMILARITY),
    "no knots": ("calibrated", setting("similarity.tally", 1, 0), SIMILARITY),
    "a flag of no kind": ("calibrated", setting("similarity.tally", 2, 7), "'similarity.tally' must have 0 or 1"),
    "no background": ("calibrated", setting("similarity.tally", 3, 0), SIMILARITY),
    "no similarity": ("calibrated", setting("similarity.tally", 4, 0), "must have a similarity if and only if"),
    "a short tally": ("calibrated", replacing("similarity.tally", lambda a: a[:4]), "'similarity.tally' has shape"),
    "a weight less": ("calibrated", replacing("similarity.weights", lambda a: a[:-1]), SIMILARITY),
    "no weight": ("calibrated", setting("similarity.weights", 0, 0), SIMILARITY),
    "a negative weight": ("calibrated", setting("similarity.weights", 0, FIRST), SIMILARITY),
    "weights too large": ("calibrated", setting("similarity.weights", slice(None), 2**50), SIMILARITY),
    "weights that wrap": ("calibrated", setting("similarity.weights", slice(None), 2**62), SIMILARITY),
    "weights before nodes": (
        "waiting",
        replacing("similarity.weights", lambda a: np.ones(4, "i8")),
        "must be empty while there are no nodes",
    ),
    "knots out of order": ("calibrated", replacing("similarity.knots", lambda a: -a), SIMILARITY),
    "equal knots": ("calibrated", setting("similarity.knots", slice(None), 1.0), SIMILARITY),
    "a knot that is not a number": (
        "calibrated",
        setting("similarity.knots", 3, np.nan),
        "'similarity.knots' " + NOT_FINITE,
    ),
    "an endless knot": ("calibrated", setting("similarity.knots", -1, np.inf), "'similarity.knots' " + NOT_FINITE),
    "a huge knot": ("calibrated", setting("similarity.knots", -1, 1e302), SIMILARITY),
    "a knot less": ("calibrated", replacing("similarity.knots", lambda a: a[:-1]), SIMILARITY),
    "a knot for no value": ("calibrated", setting("similarity.knot_counts", 0, 0), SIMILARITY),
    "a knot for too many": ("calibrated", setting("similarity.knot_counts", -1, 255), SIMILARITY),
    "knots that begin nowhere": ("calibrated", setting("similarity.knot_starts", 1, FIRST), SIMILARITY),
    "knots that begin beyond": ("calibrated", setting("similarity.knot_starts", 1, LAST), SIMILARITY),
    "knots of zeros and ones": ("binary", replacing("similarity.knots", lambda a: np.ones(4)), SIMILARITY),
    "an attribute that is none": ("calibrated", setting("background.indices", 0, 4), SIMILARITY),
    "an attribute below": ("calibrated", setting("background.indices", 0, -1), SIMILARITY),
    "an attribute twice": ("calibrated", setting("background.indices", slice(None), 0), SIMILARITY),
    "coefficients too large": ("calibrated", setting("background.data", slice(None), 2**31 - 1), SIMILARITY),
    "the lowest coefficient": ("calibrated", setting("background.data", 0, -(2**31)), SIMILARITY),
    "a coefficient less": ("calibrated", replacing("background.data", lambda a: a[:-1]), SIMILARITY),
    "a label that begins nowhere": ("calibrated", setting("background.indptr", 1, FIRST), SIMILARITY),
    "a centre far up": ("calibrated", setting("background.centres", 0, 2**62), SIMILARITY),
    "a centre that has no opposite": ("calibrated", setting("background.centres", 0, FIRST), SIMILARITY),
    "a deviation that is not a number": ("calibrated", setting("background.deviations", 0, np.nan), NOT_FINITE),
    "a negative deviation": ("calibrated", setting("background.deviations", 0, -1.0), SIMILARITY),
    "a tiny deviation": ("calibrated", setting("background.deviations", 1, 5e-324), SIMILARITY),
    "a huge deviation": ("calibrated", setting("background.deviations", 1, 1e300), SIMILARITY),
    "totals of others": ("calibrated", setting("decision.totals", 1, 1), DECISION + "|label counts"),
    "totals that wrap": ("calibrated", setting("decision.totals", 1, LAST), DECISION),
    "negative totals": ("calibrated", setting("decision.totals", 0, FIRST), DECISION),
    "a label more": (
        "calibrated",
        replacing("decision.totals", lambda a: np.append(a, 0)),
        "'decision.totals' has shape",
    ),
    "a label twice": ("calibrated", setting("decision.arrived", slice(None), 1), DECISION),
    "no label": ("calibrated", setting("decision.arrived", 0, 0), DECISION),
    "a label out of range": ("calibrated", setting("decision.arrived", 0, 2**31 - 1), DECISION),
    "a label that has not come": ("calibrated", replacing("decision.arrived", lambda a: a[:-1]), DECISION),
    "shares above all rows": ("calibrated", setting("decision.shares", (0, 1, 0), 1), DECISION),
    "shares that wrap": ("calibrated", setting("decision.shares", (0, 1, slice(1, None)), LAST), DECISION),
    "the lowest share": ("calibrated", setting("decision.shares", (0, 1, 0), FIRST), DECISION),
    "shares less": (
        "calibrated",
        replacing("decision.shares", lambda a: a[:, :-1].copy()),
        "'decision.shares' has the wrong length",
    ),
    "more present than counted": ("calibrated", setting("decision.shares_with", (0, 1, 0), 2**60), DECISION),
    "fewer than none": ("calibrated", setting("decision.shares_with", (0, 1, 0), FIRST), DECISION),
    "novelty of more rows": ("calibrated", setting("decision.novelty", 0, 141), DECISION),
    "novelty that wraps": ("calibrated", setting("decision.novelty", slice(None), 2**62), DECISION),
    "bins of novelty": (
        "calibrated",
        replacing("decision.novelty", lambda a: a[:-1]),
        "'decision.novelty' has the wrong length",
    ),
    "an expert that is not a number": ("all", setting("decision.experts", 0, np.nan), NOT_FINITE),
    "an expert too good": ("all", setting("decision.experts", 0, 1e-9), DECISION),
    "an expert too bad": ("all", setting("decision.experts", 0, -1e300), DECISION),
    "an expert less": (
        "all",
        replacing("decision.experts", lambda a: a[:-1]),
        "'decision.experts' has the wrong length",
    ),
    "recent rows": ("recency", setting("recency.rows", 0, 101.0), DECISION),
    "no recent rows": ("recency", setting("recency.rows", 0, -np.inf), NOT_FINITE),
    "recent labels": ("recency", setting("recency.counts", (0, 0), -1e-300), DECISION),
    "recent labels of no number": ("recency", setting("recency.counts", (1, 3), np.nan), NOT_FINITE),
    "fewer recent labels": ("recency", replacing("recency.counts", lambda a: a[:-1]), DECISION),
    "a past that begins late": ("drift", setting("drift.first", 0, 1), DECISION),
    "a past out of order": ("drift", setting("drift.first", -1, 0), DECISION),
    "a past beyond the nodes": ("drift", setting("drift.first", -1, LAST), DECISION),
    "segments of nothing": ("drift", setting("drift.parts", 0, 0), DECISION),
    "segments that wrap": ("drift", setting("drift.parts", slice(None), LAST), DECISION),
    "too many segments": ("drift", replacing("drift.first", lambda a: np.arange(17)), DECISION),
    "trust too large": ("drift", setting("drift.trust", 0, 1.01), DECISION),
    "trust that is not a number": ("drift", setting("drift.trust", 0, np.nan), NOT_FINITE),
    "faded to nothing": ("drift", setting("fading.counts", 0, 0.99), DECISION),
    "grown by fading": ("drift", setting("fading.counts", 0, 1e9), DECISION),
    "fading of no number": ("drift", setting("fading.counts", 0, np.nan), NOT_FINITE),
    "more labels than rows": ("drift", setting("fading.data", 0, 5.1), DECISION),
    "labels of no number": ("drift", setting("fading.data", 0, np.inf), NOT_FINITE),
    "a faded label that is none": ("drift", setting("fading.indices", 0, 4), DECISION),
    "a faded label below": ("drift", setting("fading.indices", 0, -1), DECISION),
    "faded bounds that wrap": ("drift", setting("fading.indptr", 1, FIRST), "'fading.indptr' has invalid row bounds"),
    "faded bounds beyond": ("drift", setting("fading.indptr", 1, LAST), "'fading.indptr' has invalid row bounds"),
    "fewer that fade": ("drift", replacing("fading.counts", lambda a: a[:-1]), "'fading.counts' has the wrong length"),
    "trust of other segments": ("drift", replacing("drift.trust", lambda a: a[:-1]), DECISION),
    "parts of other segments": ("drift", replacing("drift.parts", lambda a: a[:-1]), DECISION),
    "a mean rank less": ("mixed", replacing("similarity.middles", lambda a: a[:-1]), SIMILARITY),
    "no mean ranks": ("mixed", replacing("similarity.middles", lambda a: a[:0]), SIMILARITY),
    "a mean rank below all": ("mixed", setting("similarity.middles", 0, -0.5), SIMILARITY),
    "a mean rank above all": ("mixed", setting("similarity.middles", 0, 34.0 * 2**17 + 1), SIMILARITY),
    "a mean rank that is not a number": ("mixed", setting("similarity.middles", 0, np.nan), NOT_FINITE),
    "mean ranks before nodes": (
        "mixed waiting",
        replacing("similarity.middles", lambda a: np.zeros(4)),
        "'similarity.middles' must be empty",
    ),
    "an input too strong": ("mixed", setting("mixer.weights", 0, 1001.0), DECISION),
    "an input of no number": ("mixed", setting("mixer.weights", 0, np.nan), "'mixer.weights' " + NOT_FINITE),
    "an input less": ("mixed", replacing("mixer.weights", lambda a: a[:-1]), "'mixer.weights' has the wrong length"),
    "a lopsided curvature": ("mixed", setting("mixer.curvature", (0, 1), 1.0), DECISION),
    "a curvature that falls": ("mixed", setting("mixer.curvature", (3, 3), -1.0), DECISION),
    "a curvature of nothing": ("mixed", setting("mixer.curvature", slice(None), 0.0), DECISION),
    "an endless curvature": ("mixed", setting("mixer.curvature", (0, 0), 1e300), DECISION),
    "a curvature of no number": ("mixed", setting("mixer.curvature", (0, 0), np.nan), NOT_FINITE),
    "curvatures less": (
        "mixed",
        replacing("mixer.curvature", lambda a: a[:-1].copy()),
        "'mixer.curvature' has the wrong length",
    ),
    "more pairs than rows": ("mixed recency", setting("persistence.rows", 0, 141), DECISION),
    "pairs below zero": ("mixed recency", setting("persistence.rows", 0, FIRST), DECISION),
    "pairs less": (
        "mixed recency",
        replacing("persistence.rows", lambda a: a[:0]),
        "'persistence.rows' has the wrong length",
    ),
    "a label after more rows": ("mixed recency", setting("persistence.counts", (1, 0), LAST), DECISION),
    "a label that stayed more often": ("mixed recency", setting("persistence.counts", (1, 1), LAST), DECISION),
    "a label that stayed less often": ("mixed recency", setting("persistence.counts", (1, 1), -1), DECISION),
    "a label that came more often": ("mixed recency", setting("persistence.counts", (1, 2), LAST), DECISION),
    "a label that came less often": ("mixed recency", setting("persistence.counts", (1, 2), -1), DECISION),
    "persistence of fewer labels": (
        "mixed recency",
        replacing("persistence.counts", lambda a: a[:-1].copy()),
        DECISION,
    ),
    "a last label beyond": ("mixed recency", replacing("persistence.last", lambda a: np.array([4], "i4")), DECISION),
    "a last label below": ("mixed recency", replacing("persistence.last", lambda a: np.array([-1], "i4")), DECISION),
    "last labels twice": ("mixed recency", replacing("persistence.last", lambda a: np.array([1, 1], "i4")), DECISION),
    "more hits than rows": ("mixed", setting("mixer.hits", 0, 141), DECISION),
    "fewer hits than none": ("mixed", setting("mixer.hits", 5, FIRST), DECISION),
    "a margin less": ("mixed", replacing("mixer.hits", lambda a: a[:-1]), "'mixer.hits' has the wrong length"),
    "more F1 than rows": ("mixed", setting("mixer.f1", 0, 140 * 2**20 + 1), DECISION),
    "less F1 than none": ("mixed", setting("mixer.f1", 0, -1), DECISION),
    "a threshold less": ("mixed", replacing("mixer.f1", lambda a: a[:-1]), "'mixer.f1' has the wrong length"),
    "a linear weight too large": ("mixed", setting("linear.weights", (1, 0), 64.5), LINEAR),
    "a linear weight too low": ("mixed", setting("linear.weights", (1, 0), -64.5), LINEAR),
    "a linear weight of no number": ("mixed", setting("linear.weights", (1, 0), np.nan), NOT_FINITE),
    "a square below the start": ("mixed", setting("linear.squares", (1, 0), 0.5), LINEAR),
    "an endless square": ("mixed", setting("linear.squares", (1, 0), np.inf), NOT_FINITE),
    "a huge square": ("mixed", setting("linear.squares", (1, 0), 3e38), LINEAR),
    "a linear model less": (
        "mixed",
        replacing("linear.weights", lambda a: a[:, :-1].copy()),
        "'linear.weights' has shape",
    ),
    "a row of squares less": ("mixed", replacing("linear.squares", lambda a: a[:-1]), "'linear.squares' has shape"),
    "a linear feature twice": ("mixed", setting("linear.features", slice(None), 0), LINEAR),
    "a linear feature beyond": ("mixed", setting("linear.features", -1, 4), LINEAR),
    "a linear feature below": ("mixed", setting("linear.features", 0, -2), LINEAR),
    "a feature of no kind": ("mixed", setting("linear.kinds", -1, 11), LINEAR),
    "a bias of another kind": ("mixed", setting("linear.kinds", 0, 9), LINEAR),
    "a category of a number": ("mixed", setting("linear.kinds", -1, 10), LINEAR),
    "a kind less": ("mixed", replacing("linear.kinds", lambda a: a[:-1]), "'linear.kinds' has shape"),
    "a number with a category": ("mixed", setting("linear.values", -1, 1.0), LINEAR),
    "a category of no number": ("mixed", setting("linear.values", -1, np.nan), "'linear.values' " + NOT_FINITE),
    "weights before the first step": ("mixed waiting", one_linear_weight, "'linear.features' must be empty before"),
    "a cell too far out": ("mixed cells", two_cells(setting("cells.centres", (1, 2), 2**15 - 1)), CELLS),
    "a cell too far down": ("mixed cells", two_cells(setting("cells.centres", (0, 0), -(2**15))), CELLS),
    "cells of other features": (
        "mixed cells",
        two_cells(replacing("cells.centres", lambda a: a[:, :-1].copy())),
        "'cells.centres' has shape",
    ),
    "cells of no node": (
        "mixed cells",
        two_cells(replacing("cells.nodes", lambda a: a[:0])),
        "'cells.nodes' has shape",
    ),
    "nodes of no cell": ("cells", replacing("cells.nodes", lambda a: np.zeros(3, "i4")), "'cells.nodes' has shape"),
    "a node in a third cell": ("cells", two_cells(setting("cells.nodes", 0, 2)), "'cells.nodes' must hold"),
    "a node before the cells": ("cells", two_cells(setting("cells.nodes", -1, -1)), "'cells.nodes' must hold"),
    "cells of a sparse similarity": ("cells", two_cells(setting("similarity.tally", 2, 1)), CELLS),
    "nodes that were never made": ("mixed drift", setting("drift.births", -1, LAST), OTHER_NODES),
    "nodes before the first": ("mixed drift", setting("drift.births", 0, -1), OTHER_NODES),
    "the same node twice": ("mixed drift", setting("drift.births", slice(None), 0), OTHER_NODES),
    "a similarity of no node": ("mixed drift", replacing("drift.births", lambda a: a[:0]), OTHER_NODES),
    "unlabelled below none": ("learned bayes", setting("unlabelled", 0, -1), "'unlabelled' must be from 0"),
    "unlabelled that wraps": (
        "learned bayes",
        setting("unlabelled", 0, FIRST),
        "'unlabelled' must be from 0",
    ),
    "unlabelled rows with labels": (
        "learned bayes",
        lambda arrays: arrays.update(unlabelled=arrays["counts"].copy()),
        "'unlabelled' counts rows that have a label",
    ),
    "rows without labels not counted": (
        "learned bayes",
        setting("unlabelled", slice(None), 0),
        "'unlabelled' must count all rows",
    ),
    "unlabelled of fewer nodes": (
        "learned bayes",
        replacing("unlabelled", lambda a: a[:-1]),
        "'unlabelled' has shape",
    ),
    "votes without Bayes' rule": ("calibrated", setting("tally", 2, 1), "'tally' records votes"),
    "unlabelled of others": ("learned bayes", replacing("unlabelled", lambda a: a[::-1].copy()), "'unlabelled' "),
    "a vigilance that is not a number": ("calibrated", setting("vigilance", 0, np.nan), "'vigilance' " + NOT_FINITE),
    "a vigilance below all": ("calibrated", setting("vigilance", 0, 0.0099), "'vigilance' must be from 0.01"),
    "a vigilance above all": ("calibrated", setting("vigilance", 0, 1.0), "'vigilance' must be from 0.01"),
    "no vigilance yet": ("calibrated", setting("vigilance", 0, -1.0), "'vigilance' must be from 0.01"),
    "two vigilances": ("calibrated", replacing("vigilance", lambda a: np.repeat(a, 2)), "'vigilance' has shape"),
    "a vigilance too early": ("waiting", setting("vigilance", 0, 0.1), "'vigilance' must be from 0.01"),
    "more nodes made than rows": ("bounded", setting("reservoir.tally", 1, 141), "'reservoir.tally' must be between"),
    "nodes made that wrap": (
        "bounded",
        setting("reservoir.tally", slice(None), LAST),
        "'reservoir.tally' must be between",
    ),
    "nodes never made": ("bounded", setting("reservoir.births", -1, LAST), "'reservoir.births' does not ascend"),
    "nodes before all": ("bounded", setting("reservoir.births", 0, FIRST), "'reservoir.births' does not ascend"),
    "nodes born together": (
        "bounded",
        setting("reservoir.births", slice(None), 3),
        "'reservoir.births' does not ascend",
    ),
    "a tally of three": (
        "bounded",
        replacing("reservoir.tally", lambda a: np.append(a, 30)),
        "'reservoir.tally' has shape",
    ),
    "node ids of fewer nodes": (
        "bounded",
        replacing("reservoir.births", lambda a: a[:-1]),
        "'reservoir.births' has shape",
    ),
    "totals of fewer labels": (
        "bounded",
        replacing("reservoir.totals", lambda a: a[:-1]),
        "'reservoir.totals' has shape",
    ),
    "totals of replaced nodes below the bound": (
        "below the bound",
        setting("reservoir.totals", 0, 140),
        "'reservoir.totals' must equal the nodes' label counts",
    ),
    "totals below the nodes": ("bounded", setting("reservoir.totals", 0, 0), "'reservoir.totals' must be from"),
    "totals above all rows": ("bounded", setting("reservoir.totals", 0, LAST), "'reservoir.totals' must be from"),
    "more rows than add up": ("learned bayes", many_rows(2**40), "more rows than can be counted exactly"),
    "more rows than can be calibrated": ("calibrated", many_rows(2**40), "more rows than can be counted exactly"),
}


@pytest.mark.parametrize("fault", FORGERIES)
def test_forgery_is_rejected_with_its_fault_named(files, tmp_path, fault):
    name, change, message = FORGERIES[fault]
    header, arrays = unpack(files / name)
    change(arrays)
    path = pack(tmp_path / "forged.mlca", header, arrays)
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize("rule", ["calibrated", "learned bayes", "correntropy"])
def test_largest_countable_number_of_rows_is_supported(files, tmp_path, rule):
    """Half of the allowed rows at one node: sums over rows come near their limits without overflow."""
    header, arrays = unpack(files / rule)
    arrays.setdefault("similarity.tally", np.zeros(5, "i8"))
    many_rows(2**39)(arrays)
    if rule == "correntropy":
        del arrays["similarity.tally"]
    else:
        arrays["similarity.tally"][0] = arrays["tally"][1] + 1
    model = load(pack(tmp_path / "many.mlca", header, arrays))
    X = np.random.default_rng(0).normal(0, 1, (3, 4))
    assert np.isfinite(model.predict_proba(X)).all()
    assert (model.partial_fit(X, [[1, 0, 0]] * 3).predict_proba(X) > 0).all()
    assert model.n_seen_ == 2**39 + 143
    if rule != "correntropy":
        assert (model._learner.state()["similarity.weights"] > 0).all()


def filled(name, value):
    return setting(name, slice(None), value)


def diagonal(value):
    return replacing("mixer.curvature", lambda a: value * np.eye(len(a)))


# Values at the bounds of what a file may hold; their sums exceed the bounds.
AT_BOUNDS = {
    "squares": ("mixed", filled("linear.squares", np.nextafter(np.float32(2.0**100), np.float32(0)))),
    "recent rows": ("mixed recency", filled("recency.rows", 100.0)),
    "recent labels": ("mixed recency", filled("recency.counts", 100.0)),
    "a large curvature": ("mixed", diagonal(2.0**70)),
    "a curvature below the start": ("mixed", diagonal(1.0)),
}


@pytest.mark.parametrize("how", ["replay", "append"])
@pytest.mark.parametrize("case", AT_BOUNDS)
def test_forged_models_at_their_bounds_are_merged_saved_and_loaded(files, tmp_path, case, how):
    """Earlier versions saved the merged models, but did not load them."""
    name, change = AT_BOUNDS[case]
    header, arrays = unpack(files / name)
    change(arrays)
    path = pack(tmp_path / "forged.mlca", header, arrays)
    both = merge([load(path), load(path)], how=how)
    X, Y = late_label_stream("grid", 9, 4, 3, seed=3)
    both.partial_fit(X, Y).save(tmp_path / "both.mlca")
    np.testing.assert_array_equal(load(tmp_path / "both.mlca").predict_proba(X), both.predict_proba(X))

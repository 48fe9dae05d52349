"""The rules beyond the paper, for the learner's tests: their names, streams that try them, and what they know."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from tests.learner.beyond import HALF_LIVES, Beyond, auto_vigilance
from tests.learner.drift import LAST, Drift
from tests.learner.states import unfolded

PUBLISHED = {"similarity": "correntropy", "decision": "bayes", "recency": False, "drift": "off"}
RULES = {
    "calibrated": PUBLISHED | {"similarity": "learned", "decision": "calibrated"},
    "recency": PUBLISHED | {"similarity": "learned", "decision": "calibrated", "recency": True},
    "drift": PUBLISHED | {"similarity": "learned", "decision": "calibrated", "drift": "follow"},
    "all": PUBLISHED | {"similarity": "learned", "decision": "calibrated", "drift": "follow", "recency": True},
    "learned bayes": PUBLISHED | {"similarity": "learned"},
    "correntropy": PUBLISHED | {"decision": "calibrated"},
    "correntropy all": PUBLISHED | {"decision": "calibrated", "drift": "follow", "recency": True},
}
USUAL = {
    "vigilance": 0.1,
    "n_neighbors": 10,
    "window": 20,
    "smoothing": 1.0,
    "attributes": "common",
    "rule": "published",
    "vote": "counts",
}
ROWS = ("real", "grid", "mostly zero", "binary", "sparse binary", "wide")
FEW_FEATURES = st.integers(1, 8)
FORMS = {"dense": np.asarray, "sparse": sparse.csr_array}


def rows_of(kind, n, d, rng):
    """Return rows of a kind: each is ranked, weighed and searched by code of its own."""
    X = rng.normal(0, 1, (n, d))
    if kind == "grid":
        X = np.round(2 * X) / 2
    elif kind == "mostly zero":
        X[rng.random(X.shape) < 0.7] = 0.0
    elif kind == "binary":
        X = (X > -0.3).astype(float)
    elif kind == "sparse binary":
        X = (X > 0.9).astype(float)
    elif kind == "wide":
        X = X * 10.0 ** rng.integers(-3, 4, d) + 10.0 * (rng.random(d) < 0.3)
    return X


def stream_of(kind, n, d, q, seed, repeated=0.2, density=0.3):
    """Return (X, Y): some rows come again, some have no label, and labels come late, one after the other."""
    rng = np.random.default_rng(seed)
    X = rows_of(kind, n, d, rng)
    again = rng.random(n) < repeated
    X[again] = X[rng.integers(0, n, again.sum())]
    meaning = rng.normal(0, 1, (d, q))
    Y = ((X - X.mean(axis=0)) @ meaning > np.quantile((X - X.mean(axis=0)) @ meaning, 1 - density)).astype(int)
    noise = rng.random(Y.shape) < 0.1
    Y[noise] = 1 - Y[noise]
    for label in range(1, q):
        Y[: label * n // (2 * q), label] = 0
    return X, Y


@st.composite
def rule_streams(draw, max_rows=110, features=FEW_FEATURES):
    n, d, q = draw(st.integers(1, max_rows)), draw(features), draw(st.integers(1, 4))
    repeated, density = draw(st.sampled_from([0.0, 0.4])), draw(st.sampled_from([0.0, 0.1, 0.4]))
    return stream_of(draw(st.sampled_from(ROWS)), n, d, q, draw(st.integers(0, 2**32 - 1)), repeated, density)


def rule_parameters():
    """Parameters of the learner, among them a vigilance that it finds by itself."""
    return st.fixed_dictionaries(
        {
            "vigilance": st.sampled_from([0.01, 0.1, 0.3, None]),
            "n_neighbors": st.sampled_from([2, 3, 10]),
            "window": st.sampled_from([2, 5, 20, 50]),
            "smoothing": st.sampled_from([0.5, 1.0]),
            "attributes": st.sampled_from(["common", "individual", "clustered"]),
            "rule": st.sampled_from(["published", "published", "released", "text"]),
            "vote": st.sampled_from(["counts", "frequencies"]),
        }
    )


def rules():
    return st.sampled_from(sorted(RULES)).map(RULES.get)


def told_by(chosen):
    """Return a model's arguments: where the learner finds its vigilance, users say so."""
    return chosen | {"vigilance": "auto" if chosen["vigilance"] is None else chosen["vigilance"]}


def plain_learner(X, Y, chosen):
    """Return the plain learner of a stream."""
    options = {name: value for name, value in chosen.items() if name != "drift"}
    if options["vigilance"] is None:
        window = [[float(v) for v in x] for x in X[: options["window"]]]
        nodes = {name: options[name] for name in USUAL}
        options["vigilance"] = auto_vigilance(window, **nodes)
    kind = Drift if chosen["drift"] == "follow" else Beyond
    return kind(**options).fit(X, Y)


# ------------------------------------------------------------------ what a learner and the plain one know


def assert_knows_the_same(learner, plain):
    """Assert that a settled learner's state is that of a plain one, bit for bit."""
    known = learner.state()
    told = learner.parameters
    assert told.vigilance == plain.V
    np.testing.assert_array_equal(unfolded(known, "weights", learner.n_features), plain.y)
    np.testing.assert_array_equal(known["counts"], plain.alpha)
    np.testing.assert_array_equal(unfolded(known, "label_counts", learner.n_labels), plain.beta)
    np.testing.assert_array_equal(known["unlabelled"], plain.none)
    if told.similarity == "learned":
        assert_same_similarity(known, plain)
    if told.decision == "bayes":
        np.testing.assert_array_equal(known["with"], plain.with_)
        np.testing.assert_array_equal(known["without"], plain.without)
        return
    assert_same_decision(known, plain)
    if told.recency:
        np.testing.assert_array_equal(known["recency.rows"], plain.recency.rows)
        nothing = [0.0] * len(HALF_LIVES)
        expected = [plain.recency.counts.get(slot, nothing) for slot in range(plain.q + 1)]
        np.testing.assert_array_equal(known["recency.counts"], expected)
    if told.drift == "follow":
        assert_same_drift(known, plain)


def assert_same_similarity(known, plain):
    similarity = plain.learned
    background = similarity.background or {}
    knots = similarity.ranks[0].knots
    tally = [plain.due, len(knots or []), similarity.sparse, similarity.background is not None, 1]
    np.testing.assert_array_equal(known["similarity.tally"], tally)
    np.testing.assert_array_equal(known["similarity.weights"], similarity.weights)
    if knots:
        for j, (low, high) in enumerate(pairwise(known["similarity.knot_starts"])):
            times = np.diff(known["similarity.knot_counts"][low:high].astype(int), prepend=0)
            kept = np.repeat(known["similarity.knots"][low:high], times) if high > low else np.zeros(len(knots))
            np.testing.assert_array_equal(kept, similarity.ranks[j].knots)
    bounds = known["background.indptr"]
    for slot, deviation in enumerate(known["background.deviations"].tolist()):
        if deviation == 0.0:
            assert slot not in background
            continue
        part = slice(bounds[slot], bounds[slot + 1])
        own = dict(
            zip(known["background.indices"][part].tolist(), known["background.data"][part].tolist(), strict=True)
        )
        expected = background[slot]
        assert own == {trait.attribute: b for trait, b in expected.coefficients}
        assert (known["background.centres"][slot], deviation) == (expected.centre, expected.deviation)
    assert (known["background.deviations"] > 0).sum() == len(background)


def assert_same_decision(known, plain):
    slots = range(plain.q + 1)
    np.testing.assert_array_equal(known["decision.totals"], [plain.totals.get(slot, 0) for slot in slots])
    np.testing.assert_array_equal(known["decision.arrived"], [slot for slot in plain.totals if slot])
    for e, calibration in enumerate(plain.calibrations):
        nothing = ([0] * 11, [0] * 11)
        for part, name in enumerate(("decision.shares", "decision.shares_with")):
            expected = [calibration.cells.get(slot, nothing)[part] for slot in slots]
            np.testing.assert_array_equal(known[name][e], expected, err_msg=name)
    np.testing.assert_array_equal(known["decision.novelty"], plain.novelties.rows)
    if plain.pool:
        np.testing.assert_array_equal(known["decision.experts"], plain.pool.log_weights)


def assert_same_drift(known, plain):
    for place, name in enumerate(("first", "parts", "trust")):
        np.testing.assert_array_equal(known[f"drift.{name}"], [segment[place] for segment in plain.segments])
    kept = plain.fading[-LAST:]
    np.testing.assert_array_equal(known["fading.counts"], [count for count, _ in kept])
    np.testing.assert_array_equal(
        unfolded(known, "fading", plain.q + 1),
        [[rows.get(slot, 0.0) for slot in range(plain.q + 1)] for _, rows in kept],
    )


def assert_says_the_same(learner, plain, queries, form=np.asarray, n_jobs=1):
    """Assert that a settled learner says of rows what a plain one does."""
    calibrated = plain.decision == "calibrated"
    answers = learner.answers(form(queries), n_jobs, novelty=calibrated)
    said = [plain.probabilities(x) for x in queries]
    smallest, largest = np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0)
    expected = np.clip([plain.proba_of(p) for p in said], smallest, largest)
    np.testing.assert_array_equal(answers.probabilities, expected)
    np.testing.assert_array_equal(answers.chosen(), [plain.predicted_of(p) for p in said])
    if calibrated:
        np.testing.assert_array_equal(answers.none, [p[0] for p in said])
        np.testing.assert_array_equal(answers.novelty, [plain.novelty(x) for x in queries])

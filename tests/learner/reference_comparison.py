"""Bit-for-bit comparison of the compiled learner with `mlca.reference`."""

import numpy as np
from scipy import sparse

from mlca import reference
from mlca.learner.parameters import SCREEN_FROM
from mlca.reference.decision import CELLS, PER_COUNT
from mlca.reference.experts import HALF_LIVES
from tests.learner.algorithm_options import PAPER
from tests.learner.model_comparison import FEW_NODES, learned, unfolded

FORMS = {"dense": np.asarray, "sparse": sparse.csr_array}


def reference_of(X, Y, options, cell_limits=FEW_NODES):
    """Return the settled reference model of a stream."""
    options = PAPER | {"search": "exact"} | options  # the defaults of `Parameters`
    return reference.MLCA(**options, cell_limits=cell_limits).partial_fit(X, Y).settled()


def queries_of(X, n=2):
    """Return rows to predict: learned ones, new ones, one of zeros, and one far from everything."""
    far = np.where(np.arange(X.shape[1]) % 2, -1e100, 1e100)
    return np.concatenate([X[:n], X[:n] + 0.25, X[-n:] * 0.5, np.zeros((1, X.shape[1])), far[None, :]])


def assert_equals_reference(
    X, Y, options, form="dense", screen_from=SCREEN_FROM, n_jobs=1, queries=None, cell_limits=FEW_NODES
):
    """Assert that the compiled learner of a stream equals the reference; return the learner."""
    learner = learned(options, FORMS[form](X), Y, screen_from, n_jobs, cell_limits).settled()
    expected = reference_of(X, Y, options, cell_limits)
    assert_same_state(learner, expected)
    assert_same_predictions(learner, expected, queries_of(X) if queries is None else queries, form, n_jobs)
    return learner


def assert_same_predictions(learner, expected, queries, form="dense", n_jobs=1):
    """Assert that a settled learner and a settled reference model make the same predictions."""
    calibrated = expected.decision != "bayes"
    answers = learner.answers(FORMS[form](queries), n_jobs, novelty=calibrated)
    np.testing.assert_array_equal(answers.probabilities, expected.predict_proba(queries))
    np.testing.assert_array_equal(answers.chosen(), expected.predict(queries))
    if calibrated:
        np.testing.assert_array_equal(answers.none, [expected.probabilities(x)[0] for x in queries])
        np.testing.assert_array_equal(answers.novelty, expected.novelty(queries))


def assert_same_state(learner, model):
    """Assert that a settled learner and a settled reference model have the same state."""
    held, expected = learner.state(), expected_state(model)
    for name, array in expected.items():
        own = unfolded(held, name, array.shape[1]) if name in MATRICES else held[name]
        np.testing.assert_array_equal(own, array, err_msg=name)
    left = {name.removesuffix(".indptr").removesuffix(".indices").removesuffix(".data") for name in held}
    assert left <= expected.keys() | NOT_COMPARED
    assert learner.vigilance == model.vigilance_
    if "similarity.weights" in expected:
        assert_same_knots(held, model.similarity_)
        assert_same_background(held, model.similarity_)


MATRICES = {"weights", "label_counts", "fading"}
# Compared separately, or needed only to continue training.
NOT_COMPARED = {"similarity.knots", "similarity.knot_starts", "similarity.knot_counts"}
NOT_COMPARED |= {"similarity.trait_attributes", "similarity.trait_values"}
NOT_COMPARED |= {"background", "background.means", "background.centres", "background.deviations"}
NOT_COMPARED |= {"tally", "recent", "waiting", "vigilance"}


def expected_state(model):
    """Return the arrays that the compiled learner must have to equal a reference model."""
    memory, nodes, q = model.memory_, model.memory_.nodes, model.n_labels_
    arrays = {
        "weights": [node.y for node in nodes],
        "counts": [node.alpha for node in nodes],
        "label_counts": [[node.beta.get(i + 1, 0) for i in range(q)] for node in nodes],
        "bandwidths": np.reshape([node.sigma for node in nodes], (len(nodes), -1)),
        "group_centres": [centre for centre, _, _ in memory.groups.centres],
        "group_counts": [count for _, count, _ in memory.groups.centres],
        "group_bandwidths": [bandwidth for _, _, bandwidth in memory.groups.centres],
    }
    if (model.similarity, model.decision) != ("correntropy", "bayes"):
        arrays["unlabelled"] = [node.beta.get(0, 0) for node in nodes]
    if model.max_nodes is not None:
        arrays["reservoir.tally"] = [memory.candidates, memory.made]
        arrays["reservoir.births"] = [node.node_id for node in nodes]
        arrays["reservoir.totals"] = [memory.totals.get(i + 1, 0) for i in range(q)]
    if model.similarity == "learned":
        arrays |= similarity_arrays(model)
    if model.similarity == "learned" and model.drift == "off" and model.search != "exact":
        cells = model.cells_
        arrays["cells.centres"] = cells.centres if cells else np.zeros((0, nodes[0].y.size))
        arrays["cells.nodes"] = [cells.cells[node.node_id] for node in nodes] if cells else []
    if model.decision == "bayes":
        counters = [model.decision_.of(i + 1) for i in range(q)]
        arrays["with"], arrays["without"] = ([pair[side] for pair in counters] for side in (0, 1))
    else:
        arrays |= decision_arrays(model, q)
    return {name: np.array(array) for name, array in arrays.items()}


def similarity_arrays(model):
    similarity = model.similarity_
    n_knots = 0 if similarity.binary else len(similarity.ranks.knots)
    return {
        "similarity.tally": [model.due_, n_knots, similarity.sparse, similarity.background is not None, 1],
        "similarity.weights": similarity.weights,
    }


def assert_same_background(held, similarity):
    """Assert equal background scores per label; nominal values are numbered after features."""
    background, d = similarity.background or {}, len(similarity.weights)
    values = [t for t, (_, value) in enumerate(similarity.traits) if value is not None]
    column = {t: feature for t, (feature, _) in enumerate(similarity.traits)} | {t: d + v for v, t in enumerate(values)}
    scored = np.flatnonzero(held["background.deviations"]).tolist()
    assert scored == sorted(background)
    for slot in scored:
        part, of_slot = slice(*held["background.indptr"][slot : slot + 2]), background[slot]
        own = zip(held["background.indices"][part].tolist(), held["background.data"][part].tolist(), strict=True)
        assert dict(own) == {column[t]: b for t, b in zip(of_slot.kept.tolist(), of_slot.coefficients, strict=True)}
        assert held["background.centres"][slot] == of_slot.centre
        assert held["background.deviations"][slot] == of_slot.deviation


def assert_same_knots(held, similarity):
    starts, knots = held["similarity.knot_starts"], held["similarity.knots"]
    if similarity.binary:
        assert len(knots) == 0
        return
    for j, expected in enumerate(similarity.ranks.knots.T):
        part = slice(starts[j], starts[j + 1])
        times = np.diff(held["similarity.knot_counts"][part].astype(int), prepend=0)
        kept = np.repeat(knots[part], times) if len(times) else np.zeros(len(expected))
        np.testing.assert_array_equal(kept, expected)


def decision_arrays(model, q):
    decision, memory, slots = model.decision_, model.memory_, range(q + 1)
    # A label's rows in cell 0 are stored as their difference from all rows, so that a new label needs no storage.
    all_rows = np.array([memory.n * PER_COUNT] + [0] * CELLS)
    calibrations = [decision.calibration] if model.decision == "mixed" else decision.calibrations
    cells = [[calibration.of(slot) for slot in slots] for calibration in calibrations]
    arrays = {
        "decision.totals": [memory.totals.get(slot, 0) for slot in slots],
        "decision.arrived": [slot for slot in memory.totals if slot],
        "decision.shares": [[np.array(total) - all_rows for total, _ in of_slots] for of_slots in cells],
        "decision.shares_with": [[present for _, present in of_slots] for of_slots in cells],
        "decision.novelty": decision.novelty.rows,
    }
    if decision.recency:
        arrays |= recency_arrays(decision.recency, q)
    if decision.segments:
        for place, name in enumerate(("first", "parts", "trust")):
            arrays[f"drift.{name}"] = [segment[place] for segment in decision.segments.segments]
    if model.decision == "mixed":
        return arrays | mixed_arrays(model, q)
    if decision.experts:
        arrays["decision.experts"] = decision.experts.log_weights
    if decision.fading:
        fading = [decision.fading.counts[memory.nodes[k].node_id] for k in decision.fading.latest(memory)]
        arrays["fading.counts"] = [count for count, _ in fading]
        arrays["fading"] = [[rows.get(slot, 0.0) for slot in slots] for _, rows in fading]
    return arrays


def recency_arrays(recency, q):
    nothing = [0.0] * len(HALF_LIVES)
    counts = [recency.counts.get(slot, nothing) for slot in range(q + 1)]
    return {"recency.rows": recency.rows, "recency.counts": counts}


KINDS = {"number": 0, "cell": 1, "missing": 9, "category": 10}


def mixed_arrays(model, q):
    """Return the mixer and the linear models, without features whose weights are unchanged."""
    decision, linear = model.decision_, model.decision_.linear
    changed = [c for c in range(len(linear.columns)) if linear.W[:, c].any() or (linear.G[:, c] != 1.0).any()]
    keys = {}
    for key, column in linear.columns.items():
        feature, kind, value = (*key, 0.0)[:3] if key else (-1, "number", 0.0)
        keys[feature, KINDS[kind] + (value if kind == "cell" else 0), value if kind == "category" else 0.0] = column
    keys = {key: column for key, column in sorted(keys.items()) if column in changed}
    columns = list(keys.values())
    arrays = {
        "similarity.middles": model.similarity_.middles,
        "mixer.weights": decision.mixer.w,
        "mixer.curvature": decision.mixer.H,
        "mixer.hits": decision.hits,
        "mixer.f1": decision.f1,
        "linear.features": [feature for feature, _, _ in keys],
        "linear.kinds": [kind for _, kind, _ in keys],
        "linear.values": [value for _, _, value in keys],
        "linear.weights": linear.W[:, columns].T,
        "linear.squares": linear.G[:, columns].T,
    }
    if decision.segments:
        arrays["drift.births"] = sorted(model.node_ids_)
    if decision.recency:
        persistence = decision.persistence
        arrays["persistence.rows"] = [persistence.rows]
        arrays["persistence.counts"] = [persistence.counts.get(slot, [0, 0, 0]) for slot in range(q + 1)]
        arrays["persistence.last"] = sorted(persistence.last)
    return arrays

"""Search in cells of nodes: equal to the reference, and dependent on the rows alone."""

from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load, merge, reference
from mlca.learner.checking import capture, restore
from mlca.learner.core import Learner
from mlca.learner.widening import widened
from mlca.options import CELL_LIMITS, PUBLISHED, CellLimits
from mlca.reference.node_cells import NodeCells
from mlca.reference.paper import Node
from mlca.reference.similarity import LearnedSimilarity
from mlca.river import MLCAClassifier
from mlca.serve.live_model import new_model, new_parameters
from tests.learner.algorithm_options import VARIANTS
from tests.learner.model_comparison import FEW_NODES, assert_same_arrays, learned, parameters_of, state
from tests.learner.reference_comparison import FORMS, assert_equals_reference, assert_same_state, reference_of

DATA = Path(__file__).parent.parent / "data"
CELLS = {name: options for name, options in VARIANTS.items() if options.get("search") == "cells"}
MIXED = VARIANTS["mixed cells"] | {"vigilance": 0.1, "window": 20}


def stream(n=260, d=4, seed=0):
    """Return rows around six centres, with labels that depend on the centre and on a feature."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(6, size=n)
    X = np.round(rng.normal(0, 2, (6, d))[cluster] + rng.normal(0, 0.6, (n, d)), 2)
    return X, np.column_stack([cluster % 2 == 0, cluster > 3, X[:, 0] > 0]).astype(int)


def learn_more(learner, rows, Y):
    labels = sparse.csr_array(Y)
    learner.learn(rows, labels.indptr.astype(np.int64), labels.indices.astype(np.int32), Y.shape[1], 1)


def n_cells(learner):
    return len(learner.state()["cells.centres"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("variant", CELLS)
def test_cells_equal_the_reference(variant, n_jobs, form):
    options = CELLS[variant] | {"vigilance": 0.1, "window": 20}
    learner = assert_equals_reference(*stream(), options, form, n_jobs=n_jobs)
    assert 10 < n_cells(learner) < learner.n_nodes


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rule", ["released", "text"])
def test_cells_under_other_rules_equal_the_reference(rule, form):
    assert n_cells(assert_equals_reference(*stream(), MIXED | {"rule": rule, "vigilance": 0.3}, form)) > 0


@pytest.mark.parametrize("form", FORMS)
def test_cells_with_bounded_nodes_equal_the_reference(form):
    learner = assert_equals_reference(*stream(), MIXED | {"max_nodes": 40}, form)
    assert n_cells(learner) == 6


@pytest.mark.parametrize("form", FORMS)
def test_cells_with_missing_values_and_categories_equal_the_reference(form):
    X, Y = stream()
    X[:, 3] = np.round(X[:, 3]) % 3
    X[150::7, 1] = np.nan
    assert n_cells(assert_equals_reference(X, Y, MIXED | {"categorical_features": [3]}, form)) > 0
    assert n_cells(assert_equals_reference(X, Y, MIXED, form)) > 0


def test_rows_with_missing_values_are_predicted_by_visited_nodes():
    X, Y = stream()
    queries = X[:9].copy()
    queries[np.arange(9), np.arange(9) % 4] = np.nan
    assert_equals_reference(X, Y, MIXED, queries=queries)


@pytest.mark.parametrize("form", FORMS)
def test_appended_nodes_are_kept_in_cells(form):
    """4,400 nodes have 66 cells; rows on a grid are often equally near to several centres."""
    limits, d, q = CellLimits(above=4000, least=100, per_root=2), 6, 2
    rng = np.random.default_rng(3)
    X = np.unique(rng.integers(1, 6, (6000, d)), axis=0)[:4405].astype(float)
    X = X[rng.permutation(len(X))]
    Y = np.column_stack([X[:, 0] > 2, X[:, 1] + X[:, 2] > 6]).astype(int)
    options = MIXED | {"vigilance": 0.0}
    whole, other = (
        learned(options, FORMS[form](X[a:b]), Y[a:b], cell_limits=limits) for a, b in ((0, 2100), (2100, 4400))
    )
    whole.absorb(other, np.arange(q, dtype=np.int32), q, append=True)
    learn_more(whole, FORMS[form](X[:0]), Y[:0])
    nodes = [
        Node(x, 1, {i + 1: 1 for i in np.flatnonzero(y)}, 1.0, k) for k, (x, y) in enumerate(zip(X, Y, strict=True))
    ]
    expected = NodeCells(nodes[:4400], LearnedSimilarity(nodes[:4400]), limits)
    learn_more(whole, FORMS[form](X[4400:]), Y[4400:])
    for node in nodes[4400:]:
        expected.join(node)
    state = whole.state()
    np.testing.assert_array_equal(state["cells.centres"], expected.centres)
    np.testing.assert_array_equal(state["cells.nodes"], list(expected.cells.values()))


def test_sparse_similarities_have_no_cells():
    X, Y = stream()
    X[np.arange(len(X)) % 5 > 0, 1:] = 0
    assert n_cells(assert_equals_reference(X, Y, MIXED | {"vigilance": 0.0})) == 0


@pytest.mark.parametrize("other", [{"similarity": "correntropy", "decision": "bayes"}, {"drift": "follow"}])
def test_search_is_exact_where_there_are_no_cells(other):
    X, Y = stream(120)
    exact, cells = (learned(MIXED | other | {"search": search}, X, Y) for search in ("exact", "cells"))
    assert_same_arrays(exact.state(), cells.state())


@pytest.mark.parametrize("search", ["exact", "auto", "cells"])
@pytest.mark.parametrize("algorithm", PUBLISHED)
def test_the_paper_s_algorithms_are_always_exact(algorithm, search):
    model = MLCA.published(algorithm, search=search).fit(*stream(60))
    assert model._learner.parameters.search == "exact"


@pytest.mark.parametrize("make", [MLCA, MLCAClassifier, reference.MLCA])
def test_auto_is_the_default_search(make):
    assert signature(make).parameters["search"].default == "auto"


@pytest.mark.parametrize("path", sorted(DATA.glob("golden_v[1-4]_*.mlca")), ids=lambda path: path.stem)
def test_models_of_files_from_before_cells_stay_exact(path):
    model = load(path)
    assert model.search == model._learner.parameters.search == "exact"


def test_logs_from_before_cells_stay_exact():
    kept = new_parameters({})
    del kept["search"]
    assert new_model(kept, None).search == "exact"


@pytest.mark.parametrize(
    ("options", "search"),
    [
        ({}, "cells"),
        ({"max_nodes": 40}, "cells"),
        ({"search": "exact"}, "exact"),
        ({"drift": "follow"}, "exact"),
        ({"similarity": "correntropy"}, "exact"),
        ({"search": "cells", "similarity": "correntropy"}, "exact"),
    ],
)
def test_resolved_search_does_not_prevent_continuation(options, search):
    X, Y = stream(120)
    model = MLCA(**options).partial_fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    assert model._learner.parameters.search == search
    assert_same_arrays(model._learner.state(), MLCA(**options).fit(X, Y)._learner.state())


def test_search_cannot_change_during_training():
    model = MLCA().partial_fit(*stream(60)).set_params(search="exact")
    with pytest.raises(ValueError, match="search was 'cells' when training began and is 'exact' now"):
        model.partial_fit(*stream(60))


def test_search_auto_resolves_to_cells():
    auto, cells, exact = (MLCA(search=search).fit(*stream(60)) for search in ("auto", "cells", "exact"))
    assert auto._learner.parameters == cells._learner.parameters != exact._learner.parameters
    assert auto.search == "auto" and merge([auto, cells]).n_seen_ == 120
    with pytest.raises(ValueError, match="search='exact', the first with search='cells'"):
        merge([auto, exact])


def test_visiting_all_cells_is_an_exact_search():
    X, Y = stream()
    every = CellLimits(above=15, least=10**6, per_root=0)
    exact = state(learned(MIXED | {"search": "exact"}, X, Y))
    cells = state(learned(MIXED, X, Y, cell_limits=every))
    assert_same_arrays(exact, {name: array for name, array in cells.items() if not name.startswith("cells.")})


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cells_of_several_blocks_hold_every_node(n_jobs, missing):
    """Nodes are stored in blocks of 64; the last rows all join the same cells, and some rows join nodes.

    Nodes with missing values are bounded by tiles, the others by four-bit codes.
    """
    rng = np.random.default_rng(4)
    X = rng.normal(size=(7000, 3))
    X[4000:] = X[4000 + np.argsort(X[4000:, 0])]
    X[6500:] = X[:500] + 1e-3
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > X[:, 2]]).astype(int)
    if missing:
        X[np.arange(7000) % 500 % 7 == 0, 1] = np.nan
    every = CellLimits(above=2000, least=10**6, per_root=0)
    options = MIXED | {"vigilance": 0.01}
    exact = state(learned(options | {"search": "exact"}, X, Y))
    first = learned(options, X[:5000], Y[:5000], n_jobs=n_jobs, cell_limits=every)
    resumed = Learner.from_state(first.parameters, 3, 2, False, first.state(), cell_limits=every)
    for learner in (first, resumed):
        learn_more(learner, X[5000:], Y[5000:])
        assert 40 < n_cells(learner) < learner.n_nodes / 64 and learner.n_nodes < 6900
        cells = {name: array for name, array in state(learner).items() if not name.startswith("cells.")}
        assert_same_arrays(exact, cells)


@pytest.mark.parametrize("form", FORMS)
def test_search_visits_at_least_as_many_nodes_as_vote(form):
    """Bayes' rule divides by the number of voters, so few visited nodes would change probabilities."""
    options = {"similarity": "learned", "decision": "bayes", "search": "cells", "n_neighbors": 20, "window": 20}
    X, Y = stream(60)
    learner = assert_equals_reference(X, Y, options, form)
    assert n_cells(learner) > 0 and len(learner.explain(X[0])["nodes"]) == 20


def test_cells_miss_some_voters():
    X, Y = stream()
    exact, cells = (learned(MIXED | {"search": search}, X, Y) for search in ("exact", "cells"))
    assert exact.n_nodes == cells.n_nodes
    assert (exact.answers(X).probabilities != cells.answers(X).probabilities).any()


def test_chunks_threads_and_storage_do_not_change_the_state():
    X, Y = stream(400)
    whole = learned(MIXED, X, Y)
    parts = Learner(parameters_of(MIXED), X.shape[1], False, cell_limits=FEW_NODES)
    for low in range(0, len(X), 37):
        labels = sparse.csr_array(Y[low : low + 37])
        parts.learn(X[low : low + 37], labels.indptr.astype(np.int64), labels.indices.astype(np.int32), 3, 1 + low % 3)
        parts.answers(X[:2])
    assert_same_arrays(whole.state(), parts.state())
    assert_same_arrays(state(whole), state(learned(MIXED, sparse.csr_array(X), Y, n_jobs=2)))


def test_order_of_columns_does_not_change_the_cells():
    X, Y = stream()
    order = [2, 0, 3, 1]
    first, second = learned(MIXED, X, Y).state(), learned(MIXED, np.ascontiguousarray(X[:, order]), Y).state()
    np.testing.assert_array_equal(first["cells.nodes"], second["cells.nodes"])
    np.testing.assert_array_equal(first["cells.centres"][:, order], second["cells.centres"])


@pytest.mark.parametrize("options", [{}, {"max_nodes": 60}], ids=["all nodes", "bounded"])
@pytest.mark.parametrize("form", FORMS)
def test_restored_learner_continues_as_the_original(form, options):
    X, Y = stream(300)
    whole = learned(MIXED | options, FORMS[form](X), Y)
    first = learned(MIXED | options, FORMS[form](X[:170]), Y[:170])
    resumed = Learner.from_state(first.parameters, 4, 3, form == "sparse", first.state(), cell_limits=FEW_NODES)
    for learner in (first.copy(), resumed):
        learn_more(learner, FORMS[form](X[170:]), Y[170:])
        assert_same_arrays(whole.state(), learner.state())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("variant", CELLS)
def test_merged_bounded_learner_equals_its_restored_state(variant, form):
    """Nodes that the merge has replaced were in cells, but not in a saved model."""
    options, limits = CELLS[variant] | {"vigilance": 0.0, "window": 2, "max_nodes": 60}, CellLimits(5, 2, 1)
    X, Y = stream()
    parts = (slice(0, 30), slice(30, 90), slice(90, 150))
    whole, *others = (learned(options, FORMS[form](X[part]), Y[part], cell_limits=limits) for part in parts)
    for other in others:
        whole.absorb(other, np.arange(3, dtype=np.int32), 3)
    again = restore(whole.parameters, 4, 3, whole.sparse_nodes, capture(whole), limits)
    assert n_cells(again) > 0
    queries = FORMS[form](X[150:])
    np.testing.assert_array_equal(again.answers(queries).probabilities, whole.answers(queries).probabilities)
    for learner in (again, whole):
        learn_more(learner, queries, Y[150:])
    assert_same_arrays(again.state(), whole.state())


def test_first_missing_value_keeps_the_cells():
    X, Y = stream()
    X[-1, 2] = np.nan
    assert_same_state(learned(MIXED, X, Y), reference_of(X, Y, MIXED))


def test_widened_learners_keep_their_cells():
    X, Y = stream()
    narrow = learned(MIXED, X, Y)
    wide = widened(narrow.copy(), 6)
    assert wide.state()["cells.centres"].shape == (n_cells(narrow), 6)


def test_models_save_cells_and_explain_them(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21_000, 3))
    y = (X > 0).astype(int)
    model = MLCA(search="cells", vigilance=0.0).fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.search == "cells"
    assert_same_arrays(model._learner.state(), again._learner.state())
    explanation = again.explain(X[0])
    assert CELL_LIMITS.least <= explanation.n_compared < explanation.n_nodes == model.n_nodes_ == 21_000
    assert f"compared with {explanation.n_compared:,} of the 21,000 nodes" in str(explanation)

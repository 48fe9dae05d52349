"""Arrays that do not fit are rejected by name before a loop runs, and nothing is changed."""

import threading
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA
from mlca.kernels import native
from tests.kernels.valid_calls import CALLS, bits, outcome

SEEDS = st.integers(0, 2**32 - 1)


def frozen(arguments):
    return [part.tobytes() if isinstance(part, np.ndarray) else part for part in arguments]


def arrays_of(arguments):
    return [place for place, part in enumerate(arguments) if isinstance(part, np.ndarray)]


@pytest.mark.parametrize("name", CALLS)
@given(seed=SEEDS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_wrong_shape_is_rejected(name, seed, data):
    arguments = list(CALLS[name](np.random.default_rng(seed), 0.0)[0])
    place = data.draw(st.sampled_from(arrays_of(arguments)))
    whole = arguments[place]
    axis = data.draw(st.integers(0, whole.ndim - 1))
    pad = [(0, int(axis == other)) for other in range(whole.ndim)]
    longer = data.draw(st.booleans()) or not whole.size
    arguments[place] = np.pad(whole, pad) if longer else np.delete(whole, 0, axis)
    before = frozen(arguments)
    try:
        getattr(native, name)(*arguments)
    except (ValueError, TypeError):
        assert frozen(arguments) == before  # otherwise the shape would be valid: one query more, one neighbour less


@pytest.mark.parametrize("name", CALLS)
def test_other_types_orders_and_dimensions_are_rejected(name):
    arguments, _ = CALLS[name](np.random.default_rng(1), 0.0)
    for place in arrays_of(arguments):
        array = arguments[place]
        other_type = array.astype(np.float32 if array.dtype == np.float64 else np.float64)
        spread = np.repeat(array, 2, axis=-1)[..., ::2]
        for wrong in (other_type, spread, array[None], array.tolist(), None):
            if wrong is spread and array.shape[-1] < 2:
                continue  # with one column, the memory order does not matter
            with pytest.raises(TypeError, match="incompatible function arguments"):
                getattr(native, name)(*arguments[:place], wrong, *arguments[place + 1 :])


INDICES = {  # arguments that are indices into other arguments
    "count_labels": {0: "neighbours", 1: "labels of rows", 2: "labels"},
    "scaled_distances": {2: "slots"},
    "count_votes": {0: "positions", 1: "k", 2: "slots", 3: "slots of masks"},
    "judge_voters": {0: "positions", 1: "k", 4: "slots", 5: "slots of masks"},
    "test_rows": {3: "k", 6: "slots", 7: "slots of masks"},
    "distances_to_centers": {1: "clusters"},
    "nearest_sparse": {2: "queries", 5: "rows"},
    "add_votes": {2: "child", 3: "columns"},
    "visit_rows": {0: "order", 4: "pairs"},
    "objectives": {2: "pairs"},
}


@pytest.mark.parametrize(("name", "place"), [(name, place) for name, places in INDICES.items() for place in places])
@pytest.mark.parametrize("foreign", [-2, 1_000, 2**31 - 1])
def test_indices_out_of_range_are_rejected(name, place, foreign):
    for seed in range(20):
        arguments, _ = CALLS[name](np.random.default_rng(seed), 0.0)
        if not arguments[place].size:
            continue
        at = seed % arguments[place].size
        arguments[place].flat[at] = foreign
        before = frozen(arguments)
        with pytest.raises(ValueError, match=INDICES[name][place]):
            getattr(native, name)(*arguments)
        assert frozen(arguments) == before


@pytest.mark.parametrize(
    ("name", "place", "foreign"),
    [
        ("nearest_dense", 4, 0),
        ("nearest_dense", 4, 1_000),
        ("nearest_sparse", 8, -1),
        ("count_labels", 3, -1),
        ("test_rows", 0, -1),
        ("test_rows", 1, -1),
        ("test_rows", 2, 1_000),
        ("ranking_loss", 0, -1),
        ("ranking_loss", 0, 1_000),
        ("ranking_pull", 0, 1_000),
        ("two_means", 1, -1),
        ("two_means", 2, 1_000),
    ],
)
def test_numbers_out_of_range_are_rejected(name, place, foreign):
    arguments = list(CALLS[name](np.random.default_rng(0), 0.0)[0])
    arguments[place] = foreign
    with pytest.raises(ValueError, match=r"\w"):
        getattr(native, name)(*arguments)


def test_cyclic_tree_is_rejected():
    arguments = list(CALLS["add_votes"](np.random.default_rng(0), 0.0)[0])
    arguments[2][0] = 0
    with pytest.raises(ValueError, match="child: 0 is not a child of node 0"):
        native.add_votes(*arguments)


@pytest.mark.parametrize("name", CALLS)
def test_read_only_inputs_are_accepted(name):
    arguments, changed = CALLS[name](np.random.default_rng(2), 0.0)
    expected = outcome(native, name, arguments, changed)
    for place in set(arrays_of(arguments)) - set(changed):
        arguments[place].flags.writeable = False
    returned = getattr(native, name)(*arguments)
    assert bits(returned, [arguments[place] for place in changed]) == expected
    for place in changed:
        arguments[place].flags.writeable = False
        with pytest.raises(TypeError):
            getattr(native, name)(*arguments)


def test_loops_run_in_parallel_threads():
    """A loop releases the interpreter's lock: another thread can run during it."""
    rng = np.random.default_rng(0)
    x, nodes = rng.random(256), rng.random((64, 256))

    def turns_in_the_midst():
        began, ended, turns = [], [], []

        def run():
            began.append(perf_counter())
            native.sum_exactly(x, nodes, 3.0, 3_000)
            ended.append(perf_counter())

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            turns.append(perf_counter())
        quarter = (ended[0] - began[0]) / 4
        return sum(began[0] + quarter < turn < ended[0] - quarter for turn in turns)

    # On a busy machine this thread may miss a whole attempt, but not twenty of them.
    assert any(turns_in_the_midst() for _ in range(20))


def learned(**parameters):
    X = np.random.default_rng(0).normal(0, 1, (40, 4))
    return MLCA(window=10, **parameters).fit(X, [["a"] if x > 0 else ["b", "c"] for x in X[:, 0]])._learner._compiled


NO_ROWS = np.zeros((0, 4)), (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


@pytest.mark.parametrize("rows", [*NO_ROWS, np.zeros((2, 4))], ids=["dense", "sparse", "two"])
def test_only_one_row_is_explained(rows):
    with pytest.raises(ValueError, match="rows to explain"):
        learned().explain(rows)


def test_negative_number_of_labels_is_not_restored():
    learner = learned()
    with pytest.raises(ValueError, match="n_labels must not be negative"):
        learner.restore(-1, learner.state())


@pytest.mark.parametrize(
    "parameters",
    [
        {"decision": "bayes"},
        {"decision": "calibrated"},
        {"similarity": "correntropy", "decision": "calibrated"},
        {"attributes": "individual"},
        {"recency": True},
        {"drift": "follow"},
        {"max_nodes": 20},
        {"categorical_features": [1]},
        {"n_neighbors": 3},
    ],
)
@pytest.mark.parametrize("append", [False, True])
def test_learners_of_different_kinds_are_not_merged(parameters, append):
    """`mlca.merge` compares parameters, but compiled code would access memory that the other learner does not have."""
    columns = np.arange(3, dtype=np.int32)
    for one, other in ((learned(), learned(**parameters)), (learned(**parameters), learned())):
        with pytest.raises(ValueError, match="that has the same settings"):
            one.absorb(other, columns, 3, append)

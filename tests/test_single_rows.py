"""The fast path for single rows: results, warnings and errors equal those of the slow path for any input."""

import copy
import pickle
import sys
import warnings
from collections import OrderedDict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA
from mlca.base import MultiLabelClassifier
from mlca.kernels import native
from mlca.river import MLCAClassifier
from mlca.river_rows import usual_row
from mlca.targets import LabelSet, read_targets
from tests.learner.model_comparison import assert_exactly_same, assert_same_arrays

pytestmark = pytest.mark.traced

WIDTH, N_LABELS = 3, 4
CELLS = st.sampled_from([0.0, -0.0, 1.0, -2.5, 0.1, 5e-324, 1e150, -1e150, 1.1e150, -1e200, np.inf, -np.inf, np.nan])
USUAL = st.floats(-4, 4)


class Rows(np.ndarray):
    """A subclass of ndarray, which takes the slow path."""


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(0, 1, (70, WIDTH)), rng.integers(0, 2, (70, N_LABELS))
    return {
        "numbers": MLCA().fit(X, Y),
        "waiting": MLCA().partial_fit(X[:9], Y[:9]),
        "sparse": MLCA().fit(sparse.csr_array(X), Y),
        "named": MLCA().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y),
        "classes": MLCA().fit(X, Y[:, 0]),
        "nothing": MLCA(),
    }


def outcome(model, call):
    """Call a method on a copy of the model; return result, error, warnings and the copy."""
    model = copy.deepcopy(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(model)
        except Exception as refusal:
            result = (type(refusal), str(refusal))
        else:
            if isinstance(result, np.ndarray):
                result = (result.dtype, result.shape, result.tobytes())
            elif result is model:
                result = "itself"
    return result, [(warning.category, str(warning.message)) for warning in caught], pickle.dumps(model)


READ_ROWS = MultiLabelClassifier._read_rows


def read_rows_the_long_way(self, X, targets=None):
    return READ_ROWS(self, X.view(Rows) if type(X) is np.ndarray else X, targets)


def calls_on(X, Y):
    return {
        "predict": lambda model: model.predict(X),
        "predict_proba": lambda model: model.predict_proba(X),
        "partial_fit": lambda model: model.partial_fit(X, Y),
        "fit": lambda model: model.fit(X, Y),
    }


@st.composite
def matrices(draw):
    n, width = draw(st.integers(0, 3)), draw(st.sampled_from([WIDTH, WIDTH, WIDTH, 0, 1, WIDTH + 1]))
    cells = draw(st.sampled_from([USUAL, CELLS]))
    values = draw(st.lists(cells, min_size=n * width, max_size=n * width))
    return np.array(values, dtype=np.float64).reshape(n, width)


@given(
    X=matrices(),
    n_targets=st.sampled_from([1, 1, 2]),
    kind=st.sampled_from(["numbers", "waiting", "sparse", "named", "classes", "nothing"]),
)
@example(X=np.full((1, WIDTH), np.nan), n_targets=2, kind="numbers")
@example(X=np.full((1, WIDTH + 1), 1e200), n_targets=2, kind="numbers")
@example(X=np.full((1, WIDTH), 1e200), n_targets=1, kind="named")
@settings(max_examples=50)
def test_single_row_has_the_same_outcome_in_all_forms(models, X, n_targets, kind):
    model = models[kind]
    Y = np.array([1, 0])[:n_targets] if kind == "classes" else np.eye(N_LABELS, dtype=np.uint8)[:n_targets]
    for name, call in calls_on(X, Y).items():
        expected = outcome(model, call)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MultiLabelClassifier, "_read_rows", read_rows_the_long_way)
            assert outcome(model, call) == expected
        spread = np.repeat(X, 2, axis=1)[:, ::2]
        for other in (X.view(Rows), np.asfortranarray(X), spread):
            assert outcome(model, calls_on(other, Y)[name]) == expected
        if X.size:
            assert outcome(model, calls_on(X.tolist(), Y)[name]) == expected


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, WIDTH), np.float32),
        np.ones((1, WIDTH), int),
        np.ones((1, WIDTH), bool),
        np.ones((1, WIDTH), object),
        np.ones((1, WIDTH), ">f8"),
        np.ma.masked_array(np.ones((1, WIDTH))),
        pd.DataFrame(np.ones((1, WIDTH))),
    ],
    ids=lambda X: f"{type(X).__name__} {getattr(X, 'dtype', '')}",
)
def test_ones_of_any_type_give_the_same_prediction(models, X):
    for method in (MLCA.predict, MLCA.predict_proba):
        np.testing.assert_array_equal(method(models["numbers"], X), method(models["numbers"], np.ones((1, WIDTH))))


@pytest.mark.parametrize(
    "X",
    [
        np.array([["a", "b", "c"]]),
        np.ones(WIDTH),
        np.ones((1, WIDTH, 1)),
        np.ones((1, WIDTH), complex),
    ],
)
def test_invalid_rows_are_rejected(models, X):
    for call in calls_on(X, np.eye(N_LABELS)[:1]).values():
        result, _, after = outcome(models["numbers"], call)
        assert issubclass(result[0], ValueError | TypeError)
        assert after == pickle.dumps(models["numbers"])


def test_none_is_a_missing_value(models):
    nothing = np.array([[None] * WIDTH])
    for method in (MLCA.predict, MLCA.predict_proba):
        expected = method(models["numbers"], np.full((1, WIDTH), np.nan))
        np.testing.assert_array_equal(method(models["numbers"], nothing), expected)


def test_assume_finite_is_respected(models):
    X = np.full((1, WIDTH), 1e200)
    with sklearn.config_context(assume_finite=True), pytest.raises(ValueError, match="beyond 1e"):
        models["numbers"].predict(X)


@given(st.lists(st.floats(width=64), min_size=1, max_size=40), st.floats(0, allow_nan=False, allow_infinity=False))
@example([np.nan], 1.7976931348623157e308)
@example([-np.nan, 0.0], 0.0)
@example([-0.0], 0.0)
@example([np.inf], 1.7976931348623157e308)
def test_all_within_equals_comparing_magnitudes(values, limit):
    rows = np.array([values])
    assert native.all_within(rows, limit) == bool((np.abs(rows) <= limit).all())


def test_all_within_looks_at_every_number_of_many():
    rows = np.ones((300, 300))
    assert native.all_within(rows, 1.0)
    for place in (0, 44_444, rows.size - 1):
        rows.flat[place] = -1.5
        assert not native.all_within(rows, 1.0)
        rows.flat[place] = 1.0


KNOWN = [
    None,
    LabelSet(tuple(range(N_LABELS)), form="indicator"),
    LabelSet(("a", "b", "c", "d"), form="indicator"),
    LabelSet((0, 1)),
]


@given(
    values=st.lists(st.sampled_from([0, 1, 1, 0, 2, -1, 0.5, np.nan]), min_size=5, max_size=5),
    n=st.integers(1, 2),
    width=st.sampled_from([N_LABELS, N_LABELS, 2, 5]),  # a single column may contain classes
    kind=st.sampled_from([np.uint8, np.int64, np.float64, np.bool_, object]),
    known=st.sampled_from(KNOWN),
    classes=st.sampled_from([None, ("a", "b", "c", "d"), ("a", "b", "c", "d", "e")]),
)
@settings(max_examples=150)
def test_one_row_of_an_indicator_equals_several_and_sparse_ones(values, n, width, kind, known, classes):
    with np.errstate(invalid="ignore"):
        row = np.array(values[:width]).astype(kind)
    alone = target_outcome(np.stack([row] * n), known, classes)
    followed = target_outcome(np.stack([row] * n + [np.zeros_like(row)]), known, classes)
    assert followed == (alone if isinstance(alone[0], type) else (*alone[:2], [*alone[2], alone[2][-1]], *alone[3:]))
    if kind is not object:
        assert target_outcome(sparse.csr_array(np.stack([row] * n)), known, classes) == alone


def target_outcome(y, known, classes):
    try:
        labels, rows = read_targets(y, known, classes)
    except ValueError as refusal:
        return type(refusal), str(refusal)
    assert (rows.indptr.dtype, rows.indices.dtype) == (np.int64, np.int32)
    return labels, rows.indices.tolist(), rows.indptr.tolist(), rows.n_labels, rows.n_before


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), min_size=1, max_size=6), st.integers(0, 3))
def test_names_row_by_row_equal_names_together(rows, n_classes):
    classes = list("fedc"[:n_classes])
    together, all_rows = read_targets([set(row) for row in rows], LabelSet((), form="names"), classes)
    labels, indices = LabelSet((), form="names"), []
    for row in rows:
        before = labels
        labels, own = read_targets([set(row)], labels, classes)
        indices.extend(own.indices.tolist())
        assert labels.columns == {name: column for column, name in enumerate(labels.names)}
        assert before.names == labels.names[: len(before.names)] == tuple(before.columns)
    assert (labels, indices) == (together, all_rows.indices.tolist())
    assert len(pickle.dumps(labels)) == len(pickle.dumps(LabelSet(labels.names, form="names")))


class Shout(str):
    """A label name with its own `__eq__`."""


class Half(float):
    """A number that NumPy converts to a different value."""

    def __float__(self):
        return super().__float__() / 2


FEATURES = ["a", "b", "c"]
VALUES = st.one_of(
    USUAL,
    st.sampled_from(
        [
            0,
            3,
            True,
            -(2**70),
            10**400,
            1e150,
            1.1e150,
            np.inf,
            np.nan,
            None,
            "1",
            np.float64(2),
            np.float32(0.1),
            np.int8(4),
            Fraction(1, 3),
            Half(3),
            np.bool_(True),
        ]
    ),
)


@pytest.fixture(scope="module")
def rivers():
    rng = np.random.default_rng(2)
    rows = rng.normal(0, 1, (60, 3)).tolist()
    grown = MLCAClassifier(window=20)
    for number, row in enumerate(rows):
        grown.learn_one(dict(zip(FEATURES, row, strict=True)), {"x": number % 2 == 0, "y": number % 3 == 0})
    return {"grown": grown, "new": MLCAClassifier()}


NAMES = [["a", "b"], [0, 1], [10**30, -7], [True, 0], [(1, 2), None], [Shout("a"), 2.5], ["ä" * 9, "\ud800"]]


@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize(
    ("values", "is_usual"),
    [
        ((1.5, -0.0), True),
        ((2**60 + 1, True), True),
        ((np.float64(0.1), 0), True),
        ((1e150, -1e150), True),
        ((1.1e150, 0.0), False),
        ((10**400, 0.0), False),
        ((0.0, np.nan), False),
        ((0.0, -np.inf), False),
        ((np.float32(0.1), 0.0), False),
        ((Half(3), 0.0), False),
        ((0.0, "1"), False),
        ((0.0, None), False),
    ],
)
def test_fast_path_takes_plain_numbers_only(names, values, is_usual):
    # Equal text and whole numbers need not be the same objects; all else must be.
    others = [pickle.loads(pickle.dumps(name)) if type(name) in (str, int) else name for name in names]
    features = {name: column for column, name in enumerate(names)}
    row = usual_row(dict(zip(others, values, strict=True)), features)
    assert (row is not None) == is_usual
    if is_usual:
        assert row.tobytes() == np.array([values], dtype=np.float64).tobytes()
    for other in ([*reversed(names)], names[:1], [*names, "more"], ["b", "a"], [1.0, 2.0]):
        assert usual_row(dict(zip(other, [1.0] * 3, strict=False)), features) is None
    assert usual_row({}, {}) is None


def test_equal_names_of_another_type_take_the_slow_path():
    features = {1: 0, "b": 1}
    for name in (True, 1.0, np.int64(1), Fraction(1)):
        assert usual_row({name: 1.0, "b": 2.0}, features) is None
        model = MLCAClassifier()
        model.learn_one({1: 5.0, "b": 2.0}, {"x": True})
        model.learn_one({name: 1.0, "b": 2.0}, {"x": True})
        assert list(model._features) == [1, "b"]
        np.testing.assert_array_equal(model._learner.settled().state("weights")["weights"], [[5.0, 2.0], [1.0, 2.0]])


@given(
    x=st.one_of(
        st.fixed_dictionaries(dict.fromkeys(FEATURES, USUAL)),
        st.fixed_dictionaries(dict.fromkeys(FEATURES, VALUES)),
        st.dictionaries(st.sampled_from([*FEATURES, "d", 0]), VALUES),
    ),
    y=st.one_of(st.dictionaries(st.sampled_from("xyz"), st.booleans()), st.just("x")),
    kind=st.sampled_from(["grown", "new"]),
)
@example(x={}, y={"x": True}, kind="new")
@example(x={"c": 1.0, "a": 2.0, "b": 3.0}, y={"x": True}, kind="grown")
@settings(max_examples=100)
def test_dict_equals_any_other_mapping(rivers, x, y, kind):
    for method, arguments in (("learn_one", (y,)), ("predict_one", ()), ("predict_proba_one", ())):
        short, long = ({**x}, OrderedDict(x))
        models = [copy.deepcopy(rivers[kind]) for _ in range(2)]
        results = []
        for model, row in zip(models, (short, long), strict=True):
            try:
                results.append(getattr(model, method)(row, *arguments))
            except Exception as refusal:
                results.append((type(refusal), str(refusal)))
        assert results[0] == results[1]
        assert (models[0]._features, models[0]._labels) == (models[1]._features, models[1]._labels)
        assert_same_arrays(models[0]._learner.state(), models[1]._learner.state())


def python_calls(call):
    """Return the Python functions that a call runs, including those of NumPy and scikit-learn, by file and name."""
    found = []

    def note(frame, event, _):
        if event == "call":
            found.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found[1:]  # the first is `call` itself


@pytest.mark.no_cover  # a tracer may call functions
def test_one_row_takes_few_python_calls(models):
    model, x, y = copy.deepcopy(models["numbers"]), np.ones((1, WIDTH)), np.eye(N_LABELS, dtype=int)[:1]
    model.partial_fit(x, y)
    assert len(learning := python_calls(lambda: model.partial_fit(x, y))) < 20, learning
    assert len(predicting := python_calls(lambda: model.predict(x))) < 14, predicting
    assert len(predicting := python_calls(lambda: model.predict_proba(x))) < 14, predicting


def test_rows_one_by_one_equal_the_same_rows_together(models):
    rng = np.random.default_rng(8)
    X, Y = rng.normal(0, 1, (40, WIDTH)), rng.integers(0, 2, (40, N_LABELS))
    for kind in ("numbers", "waiting", "sparse"):
        singly, together = copy.deepcopy(models[kind]), copy.deepcopy(models[kind])
        for i in range(len(X)):
            singly.partial_fit(X[i : i + 1], Y[i : i + 1])
        assert_exactly_same(singly, together.partial_fit(X, Y))
        np.testing.assert_array_equal(
            np.vstack([singly.predict(X[i : i + 1]) for i in range(9)]), together.predict(X[:9])
        )


def test_rows_of_a_fortran_ordered_array_take_the_fast_path(monkeypatch):
    X = np.random.default_rng(1).normal(size=(30, WIDTH))
    Y = [("a",) if row[0] > 0 else ("b",) for row in X]
    expected = MLCA().partial_fit(X, Y)
    cut = np.asfortranarray(X)
    monkeypatch.setattr(MultiLabelClassifier, "_converted", None)
    model = MLCA()
    for i in range(30):
        model.partial_fit(cut[i : i + 1], Y[i : i + 1])
    assert_exactly_same(model, expected)

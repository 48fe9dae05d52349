"""Datasets as streams: their order, labels that change, and measures by the published conventions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mlca.experiments.arrangements import arrange
from mlca.experiments.splits import whole
from mlca.experiments.streaming import GENERATORS, STREAM_MEASURES, stream_measures, stream_of, test_then_train
from mlca.experiments.tasks import Task
from mlca.experiments.work import do
from mlca.metrics import macro_f1, micro_f1

test_then_train.__test__ = False  # this function is not a test


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    whole.cache_clear()
    yield
    whole.cache_clear()


@st.composite
def two_tables(draw):
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
    cells = st.integers(0, 1)
    return draw(hnp.arrays(np.uint8, shape, elements=cells)), draw(hnp.arrays(np.uint8, shape, elements=cells))


@given(two_tables())
def test_the_measures_are_those_of_the_published_table(tables):
    true, predicted = tables
    found = stream_measures(true, predicted)
    assert tuple(found) == STREAM_MEASURES

    def f1(a, b):
        return 2 * (a & b).sum() / (a.sum() + b.sum()) if (a | b).any() else 0.0

    assert found["micro_f1"] == pytest.approx(f1(true, predicted))
    assert found["macro_f1"] == pytest.approx(np.mean([f1(a, b) for a, b in zip(true.T, predicted.T, strict=True)]))
    assert found["example_f1"] == pytest.approx(np.mean([f1(a, b) for a, b in zip(true, predicted, strict=True)]))
    assert found["exact_match"] == (true == predicted).all(axis=1).mean()
    assert found["hamming_loss"] == (true != predicted).mean()
    if (true | predicted).any(axis=0).all():
        assert found["macro_f1"] == pytest.approx(macro_f1(true, predicted))
        assert found["micro_f1"] == pytest.approx(micro_f1(true, predicted))


def some_labels(n_rows=60, n_labels=4):
    rng = np.random.default_rng(0)
    return np.arange(n_rows, dtype=float)[:, None], rng.integers(2, size=(n_rows, n_labels)).astype(np.uint8)


def test_rows_sorted_by_label_set_are_the_same_rows():
    X, Y = some_labels()
    arranged = arrange(X, Y, "sorted")
    rows = arranged.X[:, 0].astype(int)
    assert sorted(rows) == list(range(60))
    np.testing.assert_array_equal(arranged.Y, Y[rows])
    sets = [tuple(row) for row in arranged.Y.tolist()]
    assert sets == sorted(sets)


def test_a_sudden_change_rotates_the_second_half_and_its_new_part_is_that_half():
    X, Y = some_labels()
    changed, new_part = arrange(X, Y, "sudden"), arrange(X, Y, "new part")
    np.testing.assert_array_equal(changed.Y[:30], Y[:30])
    np.testing.assert_array_equal(changed.Y[30:], np.roll(Y[30:], 1, axis=1))
    np.testing.assert_array_equal(changed.Y[changed.parts["after"]], new_part.Y[new_part.parts["after"]])
    np.testing.assert_array_equal(changed.X[30:], new_part.X)
    assert changed.changes == (30,)


def test_returned_concept_is_measured_from_its_return():
    X, Y = some_labels()
    arranged = arrange(X, Y, "recurrent")
    np.testing.assert_array_equal(arranged.Y[arranged.parts["after"]], Y[40:])
    assert (arranged.Y[20:40] != Y[20:40]).any()
    assert arranged.changes == (20, 40)
    with pytest.raises(ValueError, match="unknown arrangement 'upside down'; expected"):
        arrange(X, Y, "upside down")


def test_each_row_is_predicted_before_it_is_learned(made_up_data):
    task = Task("prequential", "LastLabels", (), "flags")
    true = stream_of(task).Y
    repeated = np.vstack((np.zeros_like(true[:1]), true[:-1]))
    found = do(task, lambda begins: None)
    expected = stream_measures(true, repeated)
    assert {name: found.values[name] for name in STREAM_MEASURES} == expected
    assert found.values["rows"] == 194
    assert found.values["rows_per_second"] > 0
    assert found.values["model_bytes"] > 0
    curve = found.pictures["curve"]
    assert curve["row"] == [100, 123, 147, 170, 194]
    assert curve["rows_a_point"] == 100
    for end, measured in zip(curve["row"], curve["micro_f1"], strict=True):
        rows = slice(end - 100, end)
        assert measured == pytest.approx(stream_measures(true[rows], repeated[rows])["micro_f1"], abs=1e-4)


@pytest.mark.parametrize(("n_rows", "n_points", "rows_a_point"), [(60, 1, 60), (1000, 10, 100), (8000, 40, 200)])
def test_points_of_a_curve_are_over_many_rows(n_rows, n_points, rows_a_point):
    task = Task("prequential", "LastLabels", (), "tree", size=n_rows, arrangement="none")
    curve = do(task, lambda begins: None).pictures["curve"]
    assert curve["row"] == list(range(rows_a_point, n_rows + 1, rows_a_point))
    assert (len(curve["row"]), curve["rows_a_point"]) == (n_points, rows_a_point)


def test_shuffle_is_a_permutation_of_the_rows(made_up_data):
    as_filed, shuffled = (stream_of(Task("prequential", "LastLabels", (), "flags", repetition=r)) for r in (None, 0))
    assert not np.array_equal(as_filed.X, shuffled.X)
    assert sorted(map(tuple, as_filed.X.tolist())) == sorted(map(tuple, shuffled.X.tolist()))


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_streams_change_at_the_given_rows(name):
    def rows(change):
        return stream_of(Task("prequential", "LastLabels", (), name, size=300, arrangement=change))

    sudden, new_part = rows("sudden"), rows("new part")
    np.testing.assert_array_equal(sudden.X[150:], new_part.X)
    np.testing.assert_array_equal(sudden.Y[150:], new_part.Y)
    assert sudden.changes == (150,)
    assert rows("recurrent").changes == (100, 200)
    assert rows("none").changes == ()


def test_river_learns_the_same_rows(made_up_data):
    for algorithm in ("RiverLogistic", "RiverAdaptiveTree", "RiverNeighbours"):
        found = do(Task("prequential", algorithm, (), "flags"), lambda begins: None)
        assert 0.3 < found.values["micro_f1"] <= 1

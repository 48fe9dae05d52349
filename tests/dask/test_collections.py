"""Dask collections: prediction by blocks is lazy and typed; training equals `partial_fit` on one block at a time."""

import subprocess
import sys

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import mlca.dask
from mlca import MLCA
from mlca.peers import MLkNN
from tests.learner.model_comparison import assert_same_state

RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (300, 4))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0.5]).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd"), index=[f"row {j}" for j in range(300)])
LABELS = pd.DataFrame(Y, columns=["sea", "sun", "snow"], index=FRAME.index)


@pytest.fixture
def model():
    return MLCA(vigilance=0.1).fit(X, Y)


@pytest.fixture
def named_model():
    return MLCA(vigilance=0.1).fit(FRAME, LABELS)


def in_parts(frame, starts=(0, 100, 200)):
    """Return a frame in partitions of 100 rows without known divisions, as if read from files."""
    return dd.from_map(lambda start: frame.iloc[start : start + 100], starts, meta=frame.iloc[:0])


# Prediction.


@pytest.mark.parametrize("chunks", [(70, 4), (300, 4), (100, 3), (1, 2)])
def test_arrays_are_predicted_by_blocks(model, chunks):
    rows = da.from_array(X, chunks=chunks)
    probabilities, predicted = mlca.dask.predict_proba(model, rows), mlca.dask.predict(model, rows)
    assert probabilities.chunks == predicted.chunks == (rows.chunks[0], (3,))
    assert (probabilities.dtype, predicted.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(probabilities.compute(), model.predict_proba(X))
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))


def test_nothing_is_computed_until_asked_for(model):
    def fail(block):
        raise AssertionError("computed")

    rows = da.from_array(X, chunks=(100, 4)).map_blocks(fail, meta=np.empty((0, 4)))
    lazy = mlca.dask.predict(model, rows)
    frame = in_parts(FRAME).map_partitions(fail, meta=FRAME.iloc[:0])
    lazy_frame = mlca.dask.predict(MLCA().fit(FRAME, LABELS), frame)
    for answer in (lazy, lazy_frame):
        with pytest.raises(AssertionError, match="computed"):
            answer.compute(scheduler="synchronous")


def test_blocks_of_unknown_length_and_empty_blocks_are_predicted(model):
    rows = da.from_array(X, chunks=(100, 4))
    some = rows[rows[:, 0] > 2.0]
    kept = X[X[:, 0] > 2.0]
    none = rows[rows[:, 0] > 99.0]
    np.testing.assert_array_equal(mlca.dask.predict(model, some).compute(), model.predict(kept))
    assert mlca.dask.predict_proba(model, none).compute().shape == (0, 3)
    assert mlca.dask.predict(model, none).compute().dtype == np.int64


def test_sparse_blocks_are_predicted(model):
    rows = da.from_array(X * (abs(X) > 1), chunks=(100, 4)).map_blocks(sparse.csr_array)
    expected = model.predict_proba(sparse.csr_array(X * (abs(X) > 1)))
    np.testing.assert_array_equal(mlca.dask.predict_proba(model, rows).compute(), expected)


def test_frames_keep_their_index_and_name_the_labels(named_model):
    rows = in_parts(FRAME)
    probabilities, predicted = mlca.dask.predict_proba(named_model, rows), mlca.dask.predict(named_model, rows)
    assert probabilities.columns.tolist() == predicted.columns.tolist() == ["sea", "sun", "snow"]
    assert set(probabilities.dtypes) == {np.dtype(np.float64)}
    assert set(predicted.dtypes) == {np.dtype(np.int64)}
    expected = pd.DataFrame(named_model.predict_proba(FRAME), index=FRAME.index, columns=LABELS.columns)
    pd.testing.assert_frame_equal(probabilities.compute(), expected, check_index_type=False)
    np.testing.assert_array_equal(predicted.compute().to_numpy(), named_model.predict(FRAME))
    empty = mlca.dask.predict(named_model, rows[rows["a"] > 99.0]).compute()
    assert empty.shape == (0, 3)


def test_predictions_of_one_class_per_row_are_series_or_vectors():
    y = np.where(X[:, 0] > 0, "right", "left")
    model = MLCA(vigilance=0.1).fit(FRAME, y)
    predicted = mlca.dask.predict(model, in_parts(FRAME))
    assert isinstance(predicted, dd.Series)
    assert predicted.compute().tolist() == model.predict(FRAME).tolist()
    assert mlca.dask.predict_proba(model, in_parts(FRAME)).compute().columns.tolist() == ["left", "right"]
    model = MLCA(vigilance=0.1).fit(X, y)
    predicted = mlca.dask.predict(model, da.from_array(X, chunks=(130, 4)))
    assert predicted.chunks == ((130, 130, 40),)
    assert predicted.dtype == model.classes_.dtype
    assert predicted.compute().tolist() == model.predict(X).tolist()


def test_later_training_does_not_change_a_lazy_prediction(model):
    expected = model.predict_proba(X)
    lazy = mlca.dask.predict_proba(model, da.from_array(X, chunks=(100, 4)))
    model.partial_fit(X, 1 - Y)
    np.testing.assert_array_equal(lazy.compute(), expected)
    assert (mlca.dask.predict_proba(model, da.from_array(X, chunks=(100, 4))).compute() != expected).any()


def test_threads_share_a_model_whose_first_window_is_not_full():
    model = MLCA().fit(X[:40], Y[:40])
    expected = model.predict_proba(X)
    for _ in range(5):
        lazy = mlca.dask.predict_proba(model, da.from_array(X, chunks=(20, 4)))
        np.testing.assert_array_equal(lazy.compute(scheduler="threads", num_workers=8), expected)


def test_other_classifiers_of_the_package_predict_too():
    peer = MLkNN().fit(X, Y)
    np.testing.assert_array_equal(mlca.dask.predict(peer, da.from_array(X, chunks=(80, 4))).compute(), peer.predict(X))


# Learning


def learned_by_blocks(rows, targets):
    model = MLCA(vigilance=0.1)
    for low in range(0, 300, 100):
        model.partial_fit(rows[low : low + 100], targets[low : low + 100])
    return model


@pytest.mark.parametrize("y_chunks", [(100, 3), (75, 2), (300, 3)])
def test_arrays_give_the_model_of_partial_fit(y_chunks):
    rows, targets = da.from_array(X, chunks=(100, 2)), da.from_array(Y, chunks=y_chunks)
    model = MLCA(vigilance=0.1)
    assert mlca.dask.partial_fit(model, rows, targets) is model
    assert_same_state(model, learned_by_blocks(X, Y))


def test_frames_give_the_model_of_partial_fit():
    model = mlca.dask.partial_fit(MLCA(vigilance=0.1), in_parts(FRAME), in_parts(LABELS))
    assert_same_state(model, learned_by_blocks(FRAME, LABELS))
    assert model.classes_.tolist() == ["sea", "sun", "snow"]
    assert model.feature_names_in_.tolist() == list("abcd")


def test_label_names_in_bags_may_be_new_in_any_block():
    names = [{"sea"} if j < 100 else {"sea", "sun"} if x[0] > 0 else {"snow"} for j, x in enumerate(X)]
    rows, bag = da.from_array(X, chunks=(100, 4)), db.from_sequence(names, partition_size=100)
    model = mlca.dask.partial_fit(MLCA(vigilance=0.1), rows, bag)
    assert_same_state(model, learned_by_blocks(X, names))
    assert model.classes_.tolist()[0] == "sea"


def test_one_class_per_row_is_learned_from_a_series():
    y = pd.Series(np.where(X[:, 0] > 0, "right", "left"), index=FRAME.index)
    model = mlca.dask.partial_fit(MLCA(vigilance=0.1), in_parts(FRAME), in_parts(y))
    assert_same_state(model, learned_by_blocks(FRAME, y))


def test_training_continues_and_accepts_classes():
    names = [{"sea"} if x[0] > 0 else {"snow"} for x in X]
    model = MLCA(vigilance=0.1).partial_fit(X, names)
    bag = db.from_sequence(names, partition_size=100)
    mlca.dask.partial_fit(model, da.from_array(X, chunks=(100, 4)), bag, classes=["later"])
    expected = MLCA(vigilance=0.1).partial_fit(X, names).partial_fit(X, names, classes=["later"])
    assert_same_state(model, expected)
    assert model.classes_.tolist()[-1] == "later"


def test_empty_blocks_are_skipped():
    nothing_first = [300, 0, 300, 100]
    model = mlca.dask.partial_fit(MLCA(), in_parts(FRAME, nothing_first), in_parts(LABELS, nothing_first))
    assert_same_state(model, MLCA().fit(FRAME[:200], LABELS[:200]))


# Mismatching input


def test_mismatching_blocks_are_rejected():
    rows = da.from_array(X, chunks=(100, 4))
    with pytest.raises(ValueError, match="X has 3 blocks and Y 2"):
        mlca.dask.partial_fit(MLCA(), rows, db.from_sequence([{"a"}] * 300, partition_size=150))
    with pytest.raises(ValueError, match="X has 100 rows but y has 90") as rejected:
        mlca.dask.partial_fit(MLCA(), rows, db.from_sequence([{"a"}] * 270, partition_size=90))
    assert rejected.value.__notes__ == ["This was block 0 of X and Y; the blocks before it are learned."]


@pytest.mark.parametrize("convert", [True, False])
def test_lists_of_names_survive_conversion_to_text(convert):
    names = [["up"] if x[0] > 0 else ["down", "it's"] if x[1] > 0 else [] for x in X]
    with dask.config.set({"dataframe.convert-string": convert}):
        series = dd.from_pandas(pd.Series(names, index=FRAME.index), npartitions=3, sort=False)
        learned = mlca.dask.partial_fit(MLCA(vigilance=0.1), in_parts(FRAME), series)
    assert_same_state(learned, MLCA(vigilance=0.1).fit(FRAME, names))


@pytest.mark.parametrize("unfitted", [MLCA(), MLkNN()])
@pytest.mark.parametrize("ask", [mlca.dask.predict, mlca.dask.predict_proba])
def test_unfitted_model_predicts_nothing(ask, unfitted):
    with pytest.raises(NotFittedError):
        ask(unfitted, da.from_array(X, chunks=100))


def test_other_collections_are_rejected(model):
    with pytest.raises(TypeError, match="X is a ndarray"):
        mlca.dask.predict(model, X)
    with pytest.raises(TypeError, match="a ndarray is not a Dask collection"):
        mlca.dask.partial_fit(MLCA(), X, Y)


def test_missing_dask_is_reported_with_the_extra():
    code = "import sys; sys.modules['dask'] = None; import mlca.dask"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'ImportError: mlca.dask needs dask: pip install "mlca[dask]"' in answer.stderr


# Two workers


def test_two_workers_predict_and_learn_parts_that_are_merged(cluster, model, named_model):
    rows, targets = da.from_array(X, chunks=(60, 4)), da.from_array(Y, chunks=(60, 3))
    assert len(cluster.scheduler_info()["workers"]) == 2
    np.testing.assert_array_equal(mlca.dask.predict_proba(model, rows).compute(), model.predict_proba(X))
    predicted = mlca.dask.predict(named_model, in_parts(FRAME)).compute()
    np.testing.assert_array_equal(predicted.to_numpy(), named_model.predict(FRAME))
    learned = mlca.dask.partial_fit(MLCA(vigilance=0.1), rows, targets)
    assert_same_state(learned, MLCA(vigilance=0.1).fit(X, Y))

    parts = [
        dask.delayed(MLCA(vigilance=0.1).fit)(x, y)
        for x, y in zip(rows.to_delayed().ravel(), targets.to_delayed().ravel(), strict=True)
    ]
    whole = mlca.dask.merge(dask.compute(*parts))
    here = mlca.dask.merge(MLCA(vigilance=0.1).fit(X[low : low + 60], Y[low : low + 60]) for low in range(0, 300, 60))
    assert_same_state(whole, here)
    assert whole.partial_fit(X, Y).n_seen_ == 600

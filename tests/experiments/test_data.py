import numpy as np
import pytest

from mlca.experiments.splits import fold_rows, how_to_get, is_available, split_of


def test_folds_of_a_repetition_test_every_row_once():
    tested = np.concatenate([fold_rows(57, 0, fold)[1] for fold in range(10)])
    assert sorted(tested) == list(range(57))


def test_folds_are_reproducible_and_differ_between_repetitions():
    assert fold_rows(30, 0, 3)[1].tolist() == [10, 14, 7]
    assert fold_rows(30, 1, 3)[1].tolist() != [10, 14, 7]


def test_scaling_uses_training_rows_only(made_up_data):
    raw = split_of("flags", 0, 0, scaled=False, dense=False)
    scaled = split_of("flags", 0, 0, scaled=True, dense=False)
    low, high = raw.X.min(axis=0), raw.X.max(axis=0)
    np.testing.assert_allclose(scaled.X, (raw.X - low) / (high - low))
    np.testing.assert_allclose(scaled.X_test, (raw.X_test - low) / (high - low))


def test_without_a_fold_a_dataset_needs_an_official_split(made_up_data):
    with pytest.raises(ValueError, match="flags has no official split"):
        split_of("flags", None, None, scaled=False, dense=False)


def test_yeast_comes_from_river_without_another_copy(no_data):
    pytest.importorskip("river")
    assert is_available("yeast")
    split = split_of("yeast", 0, 0, scaled=False, dense=False)
    assert split.X.shape == (2175, 103)
    assert split.Y_test.shape == (242, 14)
    total = split.Y.sum() + split.Y_test.sum()
    assert total / 2417 == pytest.approx(4.237, abs=0.001)


def test_missing_dataset_is_named_with_a_remedy(no_data):
    assert not is_available("birds")
    assert how_to_get("birds") == (
        "birds is missing, so it is left out; get it with `mlca datasets fetch birds`, "
        "or set MLCA_DATA to a folder that contains it."
    )


@pytest.mark.data
def test_sparse_rows_are_scaled_like_dense_ones_and_stay_sparse():
    kept = split_of("medical", 0, 0, scaled=True, dense=False)
    full = split_of("medical", 0, 0, scaled=True, dense=True)
    np.testing.assert_array_equal(kept.X.toarray(), full.X)


@pytest.mark.data
def test_a_large_dataset_has_its_official_split():
    split = split_of("bibtex", None, None, scaled=False, dense=False)
    assert (split.X.shape[0], split.X_test.shape[0]) == (4880, 2515)


@pytest.mark.data
@pytest.mark.slow
def test_sparse_files_without_zeros_give_dense_rows():
    split = split_of("mediamill", None, None, scaled=True, dense=False)
    assert isinstance(split.X, np.ndarray)
    assert (split.X.min(), split.X.max()) == pytest.approx((0.0, 1.0))

"""The real files: the data have the published statistics, and different formats agree."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mlca.datasets import load_dataset, read_mat, read_mulan, read_xc, summarize

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("MLCA_DATA"), reason="set MLCA_DATA to the folder of the real datasets"),
]
DATA = Path(os.environ.get("MLCA_DATA", "."))

# instances, numeric and categorical attributes, labels, cardinality, rows of the official train part
PUBLISHED = {
    "flags": (194, 10, 9, 7, 3.392, None),
    "emotions": (593, 72, 0, 6, 1.869, None),
    "birds": (645, 258, 2, 19, 1.014, 322),
    "image": (2000, 294, 0, 5, 1.236, None),
    "scene": (2407, 294, 0, 6, 1.074, 1211),
    "yeast": (2417, 103, 0, 14, 4.237, None),
    "virusgo": (207, 0, 749, 6, 1.217, None),
    "gpositivego": (519, 0, 912, 4, 1.008, None),
    "genbase": (662, 0, 1185, 27, 1.252, None),  # 1186 with the protein's name
    "medical": (978, 0, 1449, 45, 1.245, None),
    "plantgo": (978, 0, 3091, 12, 1.079, None),
    "langlog": (1460, 0, 1004, 75, 1.180, None),
    "mediamill": (43907, 120, 0, 101, 4.376, 30993),
    "bibtex": (7395, 0, 1836, 159, 2.402, 4880),
    "delicious": (16105, 0, 500, 983, 19.020, 12920),
    "enron": (1702, 0, 1001, 53, 3.378, None),
    "tmc2007-500": (28596, 0, 500, 22, 2.158, 21519),
}
DENSE = {"mediamill", "flags", "emotions", "birds", "image", "scene", "yeast", "genbase"}


@cache
def load(name):
    """Load a dataset once for all tests that do not change it."""
    return load_dataset(name)


LARGE = ("tmc2007-500", "delicious", "mediamill")  # take up to minutes to read


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LARGE else []) for n in PUBLISHED])
def test_statistics_equal_the_published_ones(name):
    data = load(name)
    instances, numeric, categorical, labels, cardinality, n_train = PUBLISHED[name]
    summary = summarize(data.Y, data.categorical)
    assert data.X.shape == (instances, numeric + categorical)
    assert (summary.instances, summary.labels) == (instances, labels)
    assert (summary.numeric_attributes, summary.categorical_attributes) == (numeric, categorical)
    assert summary.cardinality == pytest.approx(cardinality, abs=0.001)
    assert sparse.issparse(data.X) == (name not in DENSE)
    assert data.X.dtype == np.float64
    assert data.Y.indices.dtype == data.Y.indptr.dtype == np.int32
    if sparse.issparse(data.X):
        assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
        assert data.X.has_canonical_format
    assert (data.Y.dtype, set(data.Y.data)) == (np.uint8, {1})
    assert np.isfinite(data.X.data if sparse.issparse(data.X) else data.X).all()
    assert len(set(data.feature_names)) == data.X.shape[1]
    assert len(set(data.label_names)) == labels
    if n_train is None:
        assert data.split is None
    else:
        assert [len(part) for part in data.split] == [n_train, instances - n_train]
        assert sorted(np.concatenate(data.split)) == list(range(instances))


@pytest.mark.parametrize(("name", "empty"), [("birds", 294), ("langlog", 207)])
def test_number_of_rows_without_a_label_is_as_expected(name, empty):
    assert np.count_nonzero(load(name).Y.sum(axis=1) == 0) == empty


def test_genbase_drops_the_name_of_the_protein_with_a_note():
    data = load("genbase")
    assert "protein" not in data.feature_names
    assert "'protein'" in data.DESCR
    assert set(np.unique(data.X)) == {0, 1}
    assert data.X.mean() < 0.5  # YES is 1 although the header names it first


def test_birds_nominal_codes_follow_the_header():
    data = load("birds")
    for column in np.flatnonzero(data.categorical):
        values = data.categories[data.feature_names[column]]
        assert set(np.unique(data.X[:, column])) <= set(range(len(values)))


def test_emotions_is_the_same_in_matlab_and_in_mulan_format():
    folder = DATA / "emotions"
    matlab = read_mat(folder / "emotions.mat")
    mulan = read_mulan(folder / "emotions.arff", folder / "emotions.xml")
    np.testing.assert_allclose(matlab.X, mulan.X, atol=1e-6)
    assert (matlab.Y != mulan.Y).nnz == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bibtex", "delicious"])
def test_both_formats_have_the_same_official_split(name):
    base = str(DATA / name / name)
    text = read_xc(f"{base}_data.txt.gz", train_split=f"{base}_trSplit.txt", test_split=f"{base}_tstSplit.txt")
    for part, subset in zip(text.split, ("train", "test"), strict=True):
        mulan = load_dataset(name, subset=subset)
        assert (text.X[part] != mulan.X).nnz == 0
        assert (text.Y[part] != mulan.Y).nnz == 0


@pytest.mark.slow
def test_mediamill_names_its_labels():
    assert load("mediamill").label_names[:2] == ["Class1", "Class2"]


def test_quoted_names_of_labels_match_the_list():
    assert "Swainson's Thrush" in load("birds").label_names


@pytest.mark.parametrize("name", ["flags", "medical"])
def test_frames_hold_the_same_values(name):
    arrays, frames = load(name), load_dataset(name, as_frame=True)
    X = arrays.X.toarray() if sparse.issparse(arrays.X) else arrays.X
    np.testing.assert_array_equal(frames.X.to_numpy(), X)
    np.testing.assert_array_equal(frames.Y.to_numpy(), arrays.Y.toarray())

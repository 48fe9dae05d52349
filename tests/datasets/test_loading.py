"""`load_dataset`: where it searches, what it downloads, what it returns."""

import hashlib
import io
import json
import urllib.request
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mlca.datasets import CATALOGUE, DownloadError, load_dataset, summarize
from mlca.datasets.catalogue import Archive, Entry, entry_of
from mlca.datasets.filesets import ExtremeText, Meka, Mulan
from mlca.datasets.locations import cache_folder, fetch, find
from mlca.datasets.openml import fetch_from_openml

HEADER = "@relation tiny\n@attribute name {p,q,r}\n@attribute a numeric\n@attribute b {0,1}\n"
ARFF = HEADER + "@attribute y {0,1}\n@attribute z {0,1}\n@data\n"
TRAIN, TEST = ARFF + "p,0.5,1,1,0\nq,1.5,0,1,1\n", ARFF + "r,?,1,0,0\n"
XML = '<labels><label name="z"/><label name="y"/></labels>'
MEKA = (ARFF + "p,0.5,1,1,0\nq,1.5,0,1,1\nr,?,1,0,0\n").replace("tiny", "'tiny: -C -2'")
ENTRY = Entry(
    "tiny",
    "Tiny things",
    "https://example.org/tiny",
    "A. Nobody: Nothing. 1999",
    (3, 2, 2),
    (Mulan(("tiny-train.arff", "tiny-test.arff"), "tiny.xml"),),
    Archive("http://127.0.0.1:9/", {"Tiny.arff": "tiny-meka.arff"}, Meka("tiny-meka.arff")),
    official_split=True,
    drop=("name",),
    note="The name is dropped.",
)


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Use separate folders, so that the user's data and cache are not touched."""
    monkeypatch.setenv("MLCA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MLCA_CACHE", str(tmp_path / "cache"))
    return {"data": tmp_path / "data" / "tiny", "cache": tmp_path / "cache" / "tiny"}


@pytest.fixture
def catalogue(monkeypatch):
    """Put an entry into the catalogue for one test."""
    return lambda entry: monkeypatch.setitem(CATALOGUE, entry.name, entry)


def put(folder, **files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def put_mulan(folder):
    put(folder, **{"tiny-train.arff": TRAIN, "tiny-test.arff": TEST, "tiny.xml": XML})


def zipped(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def from_server(server, content, **changes):
    server.answers = [server.ranges(content)]
    return replace(ENTRY, archive=replace(ENTRY.archive, url=server.url + "/tiny.zip", **changes))


def test_loaded_dataset_has_all_documented_attributes(places, catalogue):
    catalogue(ENTRY)
    put_mulan(places["data"])
    data = load_dataset("Tiny")
    np.testing.assert_array_equal(data.X, [[0.5, 1], [1.5, 0], [np.nan, 1]])
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0], [1, 1], [0, 0]])
    assert isinstance(data.Y, sparse.csr_array)
    assert (data.feature_names, data.label_names) == (["a", "b"], ["y", "z"])
    np.testing.assert_array_equal(data.categorical, [False, True])
    assert data.categories == {"b": ("0", "1")}
    np.testing.assert_array_equal(data.split[0], [0, 1])
    np.testing.assert_array_equal(data.split[1], [2])
    assert data.name == "tiny"
    for part in ("Tiny things", "https://example.org/tiny", "A. Nobody", "The name is dropped."):
        assert part in data.DESCR


def test_subset_selects_a_part_of_the_official_split(places, catalogue):
    catalogue(ENTRY)
    put_mulan(places["data"])
    train, test = (load_dataset("tiny", subset=subset) for subset in ("train", "test"))
    np.testing.assert_array_equal(train.X, [[0.5, 1], [1.5, 0]])
    np.testing.assert_array_equal(test.Y.toarray(), [[0, 0]])
    assert train.split is None


def test_files_of_an_arbitrary_split_are_joined(places, catalogue):
    catalogue(replace(ENTRY, official_split=False))
    put_mulan(places["data"])
    assert load_dataset("tiny").split is None
    with pytest.raises(ValueError, match="tiny has no official split"):
        load_dataset("tiny", subset="train")


def test_as_frame_gives_frames_with_column_names(places, catalogue):
    catalogue(ENTRY)
    put_mulan(places["data"])
    data = load_dataset("tiny", as_frame=True)
    assert list(data.X.columns) == ["a", "b"]
    assert list(data.Y.columns) == ["y", "z"]
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in data.Y.dtypes)
    assert data.Y.to_numpy().tolist() == [[1, 0], [1, 1], [0, 0]]


def test_sparse_dataset_gives_sparse_frame_with_generated_names(places, catalogue):
    fileset = ExtremeText(("tiny.txt",), ("train.txt", "test.txt"))
    catalogue(replace(ENTRY, collected=(fileset,), categorical="all"))
    put(places["data"], **{"tiny.txt": "3 2 2\n0 0:1\n1 1:2\n\n", "train.txt": "1\n2\n", "test.txt": "3\n"})
    data = load_dataset("tiny", as_frame=True)
    assert (data.feature_names, data.label_names) == (["x0", "x1"], ["y0", "y1"])
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in data.X.dtypes)
    assert data.X.sparse.to_dense().to_numpy().tolist() == [[1, 0], [0, 2], [0, 0]]
    assert data.categorical.all()


def test_label_names_must_match_the_data(places, catalogue):
    fileset = ExtremeText(("tiny.txt",), xml="tiny.xml")
    catalogue(replace(ENTRY, collected=(fileset,)))
    put(
        places["data"],
        **{"tiny.txt": "3 2 2\n0 0:1\n1 1:2\n\n", "tiny.xml": '<labels><label name="y"/></labels>'},
    )
    with pytest.raises(ValueError, match=r"tiny\.xml names 1 labels, but the data have 2"):
        load_dataset("tiny")


def test_data_folder_is_searched_before_the_cache(places, catalogue):
    catalogue(ENTRY)
    put_mulan(places["cache"])
    assert find(ENTRY)[1]["tiny.xml"].parent == places["cache"]
    put_mulan(places["data"])
    assert find(ENTRY)[1]["tiny.xml"].parent == places["data"]


def test_compressed_files_are_found(places, catalogue):
    import gzip

    catalogue(ENTRY)
    put(places["data"], **{"tiny-test.arff": TEST, "tiny.xml": XML})
    (places["data"] / "tiny-train.arff.gz").write_bytes(gzip.compress(TRAIN.encode()))
    assert load_dataset("tiny").X.shape == (3, 2)


def test_cache_folder_follows_the_environment_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("MLCA_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("MLCA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache_folder() == tmp_path / "shared" / "mlca"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "mlca"


def test_a_missing_dataset_is_downloaded_once(server, places, catalogue):
    content = zipped(**{"Folder/TINY.ARFF": MEKA, "readme.txt": "no"})
    checksum = "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()
    catalogue(from_server(server, content, checksum=checksum))
    for _ in range(2):
        assert load_dataset("tiny").label_names == ["y", "z"]
    assert len(server.requests) == 1
    assert [path.name for path in places["cache"].iterdir()] == ["tiny-meka.arff"]


def test_copy_without_split_is_rejected(server, catalogue):
    catalogue(from_server(server, zipped(**{"Tiny.arff": MEKA})))
    with pytest.raises(ValueError, match=r"do not contain its official split.*tiny-train\.arff, tiny-test\.arff"):
        load_dataset("tiny", subset="test")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<html>Sign in to continue</html>", "the download is not the expected archive"),
        (zipped(**{"Tiny.arff": MEKA})[:-30], "the download is not the expected archive"),
        (zipped(**{"Other.arff": MEKA}), r"the archive does not contain Tiny\.arff"),
        (zipped(**{"Tiny.arff": "%" * 70_000_000}), "expands to more than 50 times"),
    ],
)
def test_invalid_archives_are_rejected(server, places, catalogue, content, problem):
    catalogue(from_server(server, content))
    with pytest.raises(DownloadError, match=rf"(?s)tiny could not be downloaded\..*{problem}.*To download it manually"):
        load_dataset("tiny")
    assert list(places["cache"].iterdir()) == []


def test_missing_network_is_reported_with_the_remedy(server, places, catalogue):
    server.answers = [server.reject(404)]
    catalogue(replace(ENTRY, archive=replace(ENTRY.archive, url=server.url)))
    with pytest.raises(DownloadError) as error:
        load_dataset("tiny")
    for part in ("responded with 404", ENTRY.source, server.url, "tiny.xml", str(places["cache"]), "MLCA_DATA"):
        assert part in str(error.value)


def test_files_of_unexpected_shape_are_rejected(places, catalogue):
    catalogue(replace(ENTRY, shape=(4, 2, 2)))
    put_mulan(places["data"])
    with pytest.raises(ValueError, match=r"3 rows, 2 features and 2 labels; expected \(4, 2, 2\)"):
        load_dataset("tiny")


def test_inconsistent_files_are_rejected(places, catalogue):
    catalogue(ENTRY)
    put_mulan(places["data"])
    (places["data"] / "tiny-test.arff").write_text(TEST.replace("{p,q,r}", "{r,q,p}"))
    with pytest.raises(ValueError, match="different columns"):
        load_dataset("tiny")


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match=r"no dataset is called 'iris'; there are flags, emotions"):
        load_dataset("iris")
    with pytest.raises(ValueError, match=r"`subset` must be one of .*; got 'half'"):
        load_dataset("flags", subset="half")


OPENML_ARFF = "@RELATION tiny\n" + "".join(
    f"@ATTRIBUTE {name} {kind}\n"
    for name, kind in (("a", "NUMERIC"), ("'b c'", "NUMERIC"), ("y", "{TRUE,FALSE}"), ("z", "{TRUE,FALSE}"))
)
OPENML_ARFF += "@DATA\n0.5,1,TRUE,FALSE\n1.5,0,TRUE,TRUE\n?,1,FALSE,FALSE\n"


@pytest.fixture
def openml(server, monkeypatch):
    """Send every secure request of this process to the loopback server, which answers as OpenML does."""

    class ToLoopback(urllib.request.HTTPSHandler):
        def https_open(self, request):
            headers = dict(request.header_items())
            return self.parent.open(
                urllib.request.Request(server.url + request.selector, headers=headers),
                timeout=request.timeout,
            )

    feature = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    features = [
        {
            "index": str(index),
            "name": name,
            "data_type": kind,
            "is_target": str(kind == "nominal").lower(),
            **feature,
        }
        for index, (name, kind) in enumerate([("a", "numeric"), ("b c", "numeric"), ("y", "nominal"), ("z", "nominal")])
    ]
    description = {
        "id": "7",
        "name": "tiny",
        "version": "4",
        "status": "active",
        "format": "ARFF",
        "file_id": "8",
        "url": "https://www.openml.org/data/v1/download/8/tiny.arff",
        "md5_checksum": hashlib.md5(OPENML_ARFF.encode(), usedforsecurity=False).hexdigest(),
        "default_target_attribute": "y,z",
        "description": "Tiny things",
    }
    found = {"did": 7, "name": "tiny", "version": 4, "status": "active", "format": "ARFF"}
    pages = {
        "data/list": json.dumps({"data": {"dataset": [found]}}),
        "data/features": json.dumps({"data_features": {"feature": features}}),
        "data/qualities": json.dumps({"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "3"}]}}),
        "data/7": json.dumps({"data_set_description": description}),
        "download": OPENML_ARFF,
    }

    def answer(request):
        page = next(text for part, text in pages.items() if part in request.path)
        server.whole(page.encode())(request)

    server.answers = [answer]
    monkeypatch.setattr(urllib.request, "_opener", urllib.request.build_opener(ToLoopback()))
    return server


def test_openml_dataset_is_converted_and_cached(openml, places, catalogue):
    catalogue(replace(ENTRY, openml=("tiny", 4), drop=()))
    data = load_dataset("tiny")
    np.testing.assert_array_equal(data.X, [[0.5, 1], [1.5, 0], [np.nan, 1]])
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0], [1, 1], [0, 0]])
    assert (data.feature_names, data.label_names) == (["a", "b c"], ["y", "z"])
    assert sorted(path.name for path in places["cache"].iterdir()) == ["tiny-openml.arff", "tiny-openml.xml"]
    n_requests = len(openml.requests)
    load_dataset("tiny")
    assert len(openml.requests) == n_requests


def test_failed_write_leaves_no_temporary_files(openml, places):
    (places["cache"] / "tiny-openml.arff").mkdir(parents=True)
    with pytest.raises(OSError, match=r"tiny-openml\.arff"):
        fetch_from_openml("tiny", 4, places["cache"])
    assert sorted(path.name for path in places["cache"].iterdir()) == ["tiny-openml.arff", "tiny-openml.xml"]


def test_stalled_openml_falls_back_to_the_public_address(openml, catalogue):
    content = zipped(**{"Tiny.arff": MEKA})

    def answer(request):
        behave = openml.whole(content) if request.path.endswith("tiny.zip") else openml.stall(b"{}", 1)
        behave(request)

    openml.answers = [answer]
    entry = replace(ENTRY, openml=("tiny", 4), archive=replace(ENTRY.archive, url=openml.url + "/tiny.zip"))
    folder = fetch(entry, timeout=0.1)
    assert [path.name for path in folder.iterdir()] == ["tiny-meka.arff"]


def test_invalid_openml_response_falls_back_too(openml, catalogue):
    content = zipped(**{"Tiny.arff": MEKA})

    def answer(request):
        page = content if request.path.endswith("tiny.zip") else b'{"data": {}}'
        openml.whole(page)(request)

    openml.answers = [answer]
    catalogue(replace(ENTRY, openml=("tiny", 4), archive=replace(ENTRY.archive, url=openml.url + "/tiny.zip")))
    assert load_dataset("tiny").label_names == ["y", "z"]


def test_catalogue_is_complete():
    assert len(CATALOGUE) == 18
    for name, entry in CATALOGUE.items():
        assert entry_of(name) is entry
        assert entry.source.startswith("http")
        assert entry.citation
        assert set(entry.archive.members.values()) == set(entry.archive.fileset.files)
        if entry.official_split:
            fileset = entry.filesets[0]
            assert len(getattr(fileset, "arff", ())) == 2 or fileset.splits or len(fileset.data) == 2


def test_summary_ignores_stored_zeros_of_sparse_labels():
    Y = sparse.csr_array(np.array([[1, 0], [1, 1], [0, 0], [1, 0]]))
    Y.data[0] = 0
    summary = summarize(Y, np.zeros(3, bool))
    assert (summary.cardinality, summary.distinct_label_sets) == (0.75, 3)
    assert (summary.numeric_attributes, summary.categorical_attributes) == (3, 0)
    assert Y.nnz == 4  # the caller's matrix is unchanged

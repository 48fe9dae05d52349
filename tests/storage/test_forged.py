"""Files with a single forged value, each rejected with a ValueError that names file and fault, at low cost."""

import errno
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mlca import MLCA, load
from mlca.limits import MOST_FEATURES
from mlca.storage import HEADER
from mlca.storage.archive import read_archive
from tests.learner.model_comparison import assert_same_state
from tests.storage.archives import members_of, npy, pack, signed, unpack, write_members

pytestmark = pytest.mark.traced


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file of each kind that these tests need."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(0, 1, (80, 3)), 3)
    Y = (X[:, :2] > 0).astype(int)
    MLCA.published("MLCA-C", vigilance=0.6, n_neighbors=3).fit(X, Y).save(folder / "learned")
    MLCA.published().fit(X[:9], Y[:9]).save(folder / "waiting")
    MLCA.published().fit(sparse.csr_array(X), Y).save(folder / "sparse")
    MLCA.published().fit(X, Y[:, 0]).save(folder / "classes")
    MLCA.published(n_neighbors=60).fit(X[:50], Y[:50]).save(folder / "few nodes")
    MLCA.published(max_nodes=10).fit(X, Y).save(folder / "bounded")
    return folder


def set_header(**changes):
    return lambda header, arrays: header.update(changes)


def set_parameter(where, **changes):
    return lambda header, arrays: header[where].update(changes)


def set_array(name, change):
    def apply(header, arrays):
        arrays[name] = change(arrays[name].copy())

    return apply


def put(array, place, value):
    array[place] = value
    return array


def moved(counts, place, to):
    """Return counts in which one row of the first label is in another bin."""
    counts = counts.copy()
    counts[0, place] -= 1
    counts[0, to] += 1
    return counts


def both(first, second):
    def apply(header, arrays):
        first(header, arrays)
        second(header, arrays)

    return apply


# name: (file, change, message)
FORGERIES = {
    "newer": ("learned", set_header(version=99, written_by="mlca 9"), "version 99.*upgrade mlca"),
    "version of no kind": ("learned", set_header(version="2"), "invalid format version"),
    "foreign": ("learned", set_header(format="other"), "does not describe"),
    "flag of no kind": ("learned", set_header(single=0), "single in mlca.json is 0"),
    "labels of no kind": ("learned", set_header(labels=["a", [1]]), r"label \[1\] is a list"),
    "label by a fraction": ("learned", set_header(labels=[0, 1.5]), "has a fraction as a label name"),
    "labels twice": ("learned", set_header(labels=["a", "a"]), "expected 2 different"),
    "label more": ("learned", set_header(labels=[0, 1, 2], n_labels=3), "'label_counts'|'with' has shape"),
    "many labels": ("learned", set_header(n_labels=2**40), "n_labels is"),
    "features of no kind": (
        "learned",
        set_header(feature_names=["a", "b", 3]),
        "has 3 feature names; expected 3, all of them strings",
    ),
    "fewer feature names": ("learned", set_header(feature_names=["a", "b"]), "has 2 feature names; expected 3"),
    "more features": ("learned", set_header(n_features=1_000_000), "'bandwidths' has shape"),
    "no features": ("learned", set_header(n_features=0), "0 features; a model has 1 to"),
    "too many features": ("sparse", set_header(n_features=MOST_FEATURES + 1), f"has 1 to {MOST_FEATURES}"),
    "extras of no kind": ("learned", set_header(extras=[]), "extras in mlca.json"),
    "unknown parameter": ("learned", set_parameter("parameters", charm=1), "'charm'"),
    "vigilance asked for": ("learned", set_parameter("parameters", vigilance=7), "vigilance must be"),
    "vigilance used": ("learned", set_parameter("resolved", vigilance=1), "vigilance must be"),
    "huge smoothing": ("learned", set_parameter("resolved", smoothing=10**400), "smoothing must be a finite number"),
    "smoothing of no kind": ("learned", set_parameter("resolved", smoothing=[1]), "smoothing must be"),
    "neighbours": ("few nodes", set_parameter("resolved", n_neighbors=2**31), "n_neighbors must be"),
    "nodes": ("learned", set_parameter("resolved", max_nodes=2**63), "max_nodes must be at least 2 and at most"),
    "window": ("waiting", set_parameter("resolved", window=2**40), "window must be"),
    "threads": ("learned", set_parameter("parameters", n_jobs=10**6), "n_jobs must be at least -1024 and at most 1024"),
    "no thread": ("learned", set_parameter("parameters", n_jobs=0), "n_jobs must be a number of threads"),
    "seed": ("learned", set_parameter("resolved", seed=-1), "seed is -1"),
    "seed of no kind": ("learned", set_parameter("parameters", random_state="x"), "random_state is 'x'"),
    "unknown resolved": ("learned", set_parameter("resolved", charm=1), "unexpected resolved parameters"),
    "categories of no kind": ("learned", set_parameter("resolved", categorical_features=["a"]), r"not \['a'\]"),
    "categories out of order": (
        "learned",
        set_parameter("resolved", categorical_features=[2, 1]),
        "must be in ascending order",
    ),
    "category beyond the features": (
        "learned",
        set_parameter("resolved", categorical_features=[3]),
        "'categorical_features' must be from 0 to 2",
    ),
    "more nodes than allowed": (
        "bounded",
        set_parameter("resolved", max_nodes=9),
        "'tally' has 10 nodes, more than max_nodes=9",
    ),
    "array missing": ("learned", lambda header, arrays: arrays.pop("counts"), "lacks the array 'counts'"),
    "array too many": ("learned", lambda header, arrays: arrays.update(evil=np.ones(1)), "'evil.npy', which"),
    "path": ("learned", lambda header, arrays: arrays.update({"../x": np.ones(1)}), r"'\.\./x\.npy', which"),
    "wrong dtype": ("learned", set_array("counts", lambda a: a.astype(np.float32)), "'counts' must be <i8"),
    "byte order": ("learned", set_array("counts", lambda a: a.astype(">i8")), "'counts' must be <i8"),
    "index too large": ("learned", set_array("label_counts.indices", lambda a: a * 0 + 7), "index out of range"),
    "negative index": ("learned", set_array("label_counts.indices", lambda a: -a - 1), "index out of range"),
    "index twice": ("learned", set_array("label_counts.indices", lambda a: a * 0), "indices out of order"),
    "row bounds": ("learned", set_array("label_counts.indptr", lambda a: a[::-1].copy()), "row bounds"),
    "row bounds that wrap": ("learned", set_array("label_counts.indptr", lambda a: put(a, 1, -(2**63))), "row bounds"),
    "infinite": ("learned", set_array("weights", lambda a: put(a, (0, 0), np.inf)), "'weights' holds values"),
    "beyond fit": ("learned", set_array("weights", lambda a: put(a, (0, 0), 1.1e150)), "'weights' holds values"),
    "window beyond fit": ("learned", set_array("recent", lambda a: put(a, (0, 0), -np.inf)), "'recent' holds values"),
    "zero kept": ("sparse", set_array("weights.data", lambda a: put(a, 0, 0.0)), "'weights.data' stores zeros"),
    "no bandwidth": ("learned", set_array("bandwidths", lambda a: put(a, (0, 0), 0)), "'bandwidths' holds"),
    "tiny bandwidth": ("learned", set_array("bandwidths", lambda a: put(a, (0, 0), 5e-324)), "'bandwidths' holds"),
    "huge bandwidth": ("learned", set_array("bandwidths", lambda a: put(a, (0, 0), 1e300)), "'bandwidths' holds"),
    "group": ("learned", set_array("group_centres", lambda a: put(a, 0, 1e160)), "'group_centres' holds"),
    "group bandwidth": ("learned", set_array("group_bandwidths", lambda a: a * np.nan), "'group_bandwidths' holds"),
    "group counts": ("learned", set_array("group_counts", lambda a: a + 2**62), "'group_counts' counts more"),
    "no group": ("learned", set_array("group_centres", lambda a: a[:0]), "'group_centres' must exist if"),
    "empty node": ("learned", set_array("counts", lambda a: a * 0), "'counts' must be at least 1"),
    "rows lost": ("learned", set_array("counts", lambda a: put(a, 0, a[0] + 1)), "'counts' must add up"),
    "rows that wrap": ("learned", set_array("counts", lambda a: a * 0 + 2**62), "'counts' counts more"),
    "fewer nodes": ("learned", set_array("counts", lambda a: a[:-1]), "'counts' has shape"),
    "negative tally": ("learned", set_array("tally", lambda a: -a), "'tally' must hold four counts"),
    "uncountable": ("learned", set_array("tally", lambda a: a * 0 + 2**53), "more rows than can be counted"),
    "votes of one": ("learned", set_array("tally", lambda a: a[[0, 1, 3, 2]]), "'tally' must record a vote"),
    "no node": ("learned", set_array("tally", lambda a: put(a, 0, 0)), "'tally' must have nodes if"),
    "votes too many": ("learned", set_array("tally", lambda a: put(a, 2, a[2] + 1)), "'tally' must record"),
    "votes of several": ("learned", set_array("tally", lambda a: put(a, 0, 1)), "'tally' records votes among several"),
    "votes of the first": (
        "learned",
        set_array("tally", lambda a: np.array([a[0], a[1], a[0] - 1, a[1] - a[0]])),
        "must count the votes of a single node",
    ),
    "a vote too few": (
        "learned",
        set_array("tally", lambda a: np.array([a[0], a[1], a[0] - 2, a[1] - a[0] + 1])),
        "'tally' must record a vote",
    ),
    "early": ("learned", set_parameter("resolved", window=200), "'tally' counts .* fewer than"),
    "empty group": ("learned", set_array("group_counts", lambda a: put(a, 0, 0)), "'group_counts' must be at least 1"),
    "group too large": ("learned", set_array("group_counts", lambda a: a + 1000), "'group_counts' counts more"),
    "group more": ("learned", set_array("group_counts", lambda a: np.append(a, 1)), "'group_counts' has shape"),
    "label rows": ("learned", set_array("label_counts.indptr", lambda a: a[[0, -1]]), "'label_counts' has 1 rows"),
    "label data": (
        "learned",
        set_array("label_counts.data", lambda a: a[:-1]),
        "indices and data of different lengths",
    ),
    "sparse index": ("sparse", set_array("weights.indices", lambda a: a + 3), "'weights' has an index out of range"),
    "short window": ("learned", set_array("recent", lambda a: a[:-1]), "'recent' has shape"),
    "labels beyond rows": (
        "learned",
        set_array("label_counts.data", lambda a: put(a, 0, a[0] + 1000)),
        "'label_counts' must be from 1",
    ),
    "half a label": ("learned", set_array("label_counts.data", lambda a: put(a, a.argmax(), 1.5)), "must hold whole"),
    "bins": ("learned", set_array("with", lambda a: a + 1), "must add up|counts more"),
    "negative bins": ("learned", set_array("without", lambda a: put(a, (0, 0), -1)), "'without' holds a negative"),
    "bins that wrap": ("learned", set_array("with", lambda a: put(a, (0, 0), 2**62)), "'with' counts more"),
    "labels never learned": (
        "learned",
        lambda header, a: a.update({"without": a["with"] + a["without"], "with": a["with"] * 0}),
        "'with' must equal the labels' counts",
    ),
    "bins of an absent label": (
        "few nodes",
        both(
            set_array("without", lambda a: put(a, (0, a[0].argmax()), a[0].max() - 1)),
            set_array("without", lambda a: put(a, (0, 55), 1)),
        ),
        "votes of more nodes than exist",
    ),
    "a vote of one node more": (
        "few nodes",
        lambda header, a: a.update(without=moved(a["without"], a["without"][0].argmax(), a["tally"][0] + 1)),
        "votes of more nodes than exist",
    ),
    "waiting labels": ("waiting", set_array("waiting.indices", lambda a: a + 2), "'waiting' has an index"),
    "waiting twice": ("waiting", set_array("waiting.indices", lambda a: a * 0), "'waiting' has indices out of order"),
    "waiting for nothing": ("waiting", set_parameter("resolved", window=9), "'waiting' must have at most"),
    "nothing at all": (
        "waiting",
        both(
            both(set_array("waiting.indptr", lambda a: a[:1]), set_array("waiting.indices", lambda a: a[:0])),
            set_array("recent", lambda a: a[:0]),
        ),
        "contains no rows",
    ),
    "labels in no form": ("learned", set_header(form="sets"), "unknown label form 'sets'"),
    "a form of classes": ("learned", set_header(single=True, form="names"), "unknown label form 'names'"),
    "two classes a row": ("learned", set_header(single=True, form=None), "exactly one class to each row"),
    "waiting classes": ("waiting", set_header(single=True, form=None), "exactly one class per row"),
}


@pytest.mark.parametrize("fault", FORGERIES)
def test_forgery_is_rejected_with_its_fault_named(files, tmp_path, fault):
    name, change, message = FORGERIES[fault]
    header, arrays = unpack(files / name)
    change(header, arrays)
    path = pack(tmp_path / "forged.mlca", header, arrays)
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")


class Evil:
    def __reduce__(self):
        return os.system, ("touch was_here",)


def change_header(raw):
    return lambda members: members | {HEADER: raw(members[HEADER])}


MEMBERS = {
    "no json": (change_header(lambda raw: b"\xff{"), "mlca.json is damaged"),
    "deep json": (change_header(lambda raw: b"[" * 100_000), "mlca.json is damaged"),
    "list": (change_header(lambda raw: b"[]"), "does not describe"),
    "NaN": (change_header(lambda raw: raw.replace(b'"vigilance": 0.6', b'"vigilance": NaN')), "NaN is not a number"),
    "infinity": (change_header(lambda raw: raw.replace(b'"vigilance": 0.6', b'"vigilance": 1e999')), "1e999 is too"),
    "endless number": (change_header(lambda raw: raw.replace(b'"seed": 0', b'"seed": ' + b"9" * 10**5)), "damaged"),
    "key twice": (change_header(lambda raw: raw.replace(b"{", b'{"version": 1, ', 1)), "a key occurs twice"),
    "no header": (lambda members: {k: v for k, v in members.items() if k != HEADER}, "without mlca.json"),
    "other zip": (lambda members: {"word/document.xml": b"<x/>"}, "without mlca.json"),
    "pickle": (
        lambda members: members | {"counts.npy": npy(np.array([Evil()], dtype=object), allow_pickle=True)},
        "'counts' must be <i8",
    ),
    "huge shape": (
        lambda members: members | {"counts.npy": members["counts.npy"].replace(b"(", b"(99999999999, ", 1)},
        "'counts'",
    ),
    "no array": (lambda members: members | {"counts.npy": b"\x93NUMPY\1\0"}, "'counts' has no readable header"),
    "array of another version": (
        lambda members: members | {"counts.npy": members["counts.npy"].replace(b"NUMPY\1", b"NUMPY\2", 1)},
        "'counts' has no readable header",
    ),
    "changed value": (
        lambda members: members | {"recent.npy": members["recent.npy"][:-8] + struct.pack("<d", 0.5)},
        "checksum is wrong",
    ),
    "changed name": (
        lambda members: members | {HEADER: members[HEADER].replace(b'"labels": [\n  0', b'"labels": [\n  7')},
        "checksum is wrong",
    ),
    "no checksum": (change_header(lambda raw: raw.replace(b'"checksum"', b'"other"')), "checksum is wrong"),
}


@pytest.mark.parametrize("fault", MEMBERS)
def test_damaged_members_are_rejected_with_file_and_fault(files, tmp_path, monkeypatch, fault):
    monkeypatch.chdir(tmp_path)
    change, message = MEMBERS[fault]
    members = members_of(files / "learned")
    assert change(members) != members
    path = write_members(tmp_path / "forged.mlca", change(members).items())
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert not Path("was_here").exists()


def test_file_assembled_from_two_models_is_rejected(files, tmp_path):
    """The other model has the same shape, so only the checksum reveals the mixture."""
    header, arrays = unpack(files / "learned")
    pack(tmp_path / "other", header, arrays | {"weights": arrays["weights"] + 1})
    mixed = members_of(files / "learned") | {"weights.npy": members_of(tmp_path / "other")["weights.npy"]}
    with pytest.raises(ValueError, match="assembled from several"):
        load(write_members(tmp_path / "mixed", mixed.items()))


def central(raw, name, offset, form, value):
    """Change a field in a member's entry of the zip's directory."""
    place = raw.rindex(name.encode()) - 46
    assert raw[place : place + 4] == b"PK\1\2"
    raw = bytearray(raw)
    struct.pack_into(form, raw, place + offset, value)
    return bytes(raw)


def local(raw, name, offset, form, value):
    place = raw.index(name.encode()) - 30
    raw = bytearray(raw)
    struct.pack_into(form, raw, place + offset, value)
    return bytes(raw)


ZIPS = {
    "encrypted": (lambda raw: central(local(raw, "tally.npy", 6, "<H", 1), "tally.npy", 8, "<H", 1), "encrypted"),
    "method": (lambda raw: central(raw, "tally.npy", 10, "<H", 99), "compressed members"),
    "overlap": (lambda raw: central(raw, "tally.npy", 42, "<I", 0), "overlap"),
    "offset": (lambda raw: central(raw, "tally.npy", 42, "<I", 2**32 - 2), "overlap|truncated"),
    "size": (lambda raw: central(raw, "tally.npy", 24, "<I", 2**31), "two different sizes|overlap"),
    "both sizes": (
        lambda raw: central(central(raw, "tally.npy", 24, "<I", 2**31), "tally.npy", 20, "<I", 2**31),
        "overlap|between",
    ),
    "zip64 size": (lambda raw: central(raw, "tally.npy", 24, "<I", 2**32 - 1), "truncated|two different sizes"),
    "trailing": (lambda raw: raw + b"more", "truncated|behind"),
    "before": (lambda raw: b"more" + raw, "overlap"),
    "comment": (lambda raw: raw[:-2] + b"\3\0abc", "before, after or between"),
    "directory": (lambda raw: raw[:-10] + struct.pack("<II", 2**31, 0) + raw[-2:], "truncated"),
    "empty": (lambda raw: b"", "not an mlca model"),
    "text": (lambda raw: b"not a model", "not an mlca model"),
    "pickle": (lambda raw: pickle.dumps(MLCA()), r"a pickle, not an mlca model; .* write it with model\.save\(path\)"),
    "bare end": (lambda raw: raw[-22:], "not an mlca model|truncated|without"),
}


@pytest.mark.parametrize("fault", ZIPS)
def test_damaged_zip_files_are_rejected_with_file_and_fault(files, tmp_path, fault):
    change, message = ZIPS[fault]
    path = tmp_path / "forged.mlca"
    path.write_bytes(change((files / "learned").read_bytes()))
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")


def test_compressed_members_are_rejected(files, tmp_path):
    members = members_of(files / "learned") | {"zeros.npy": b"\0" * 10**7}
    path = write_members(tmp_path / "forged.mlca", members.items(), zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed members"):
        load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members_are_rejected(files, tmp_path):
    members = list(members_of(files / "learned").items())
    with pytest.raises(ValueError, match="two members of the same name"):
        load(write_members(tmp_path / "forged.mlca", [*members, members[1]]))


def test_invalid_files_are_rejected_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.mlca")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ValueError, match="a FIFO"):
            load(tmp_path / "fifo")


END_OF_ZIP = 22 + 20  # with room for the end locator of large zips, which zipfile searches for


class FailingFile(io.BytesIO):
    """A zip whose end can be read, and nothing else."""

    def __init__(self, content, number):
        super().__init__(content)
        self.number = number

    def read(self, size=-1):
        if self.tell() < len(self.getbuffer()) - END_OF_ZIP:
            raise OSError(self.number, os.strerror(self.number))
        return super().read(size)


def test_read_error_of_the_disk_is_not_a_forgery(files):
    content = (files / "learned").read_bytes()
    with pytest.raises(OSError, match="Input/output error"):
        read_archive(FailingFile(content, errno.EIO))
    with pytest.raises(ValueError, match="points outside the file"):
        read_archive(FailingFile(content, errno.EINVAL))


@pytest.mark.parametrize(
    ("failure", "seen", "message"),
    [
        (OSError(errno.EIO, "broken disk"), OSError, "broken disk"),
        (MemoryError(), ValueError, "more memory than is available"),
    ],
)
def test_other_exceptions_pass_unchanged_or_name_the_file(files, monkeypatch, failure, seen, message):
    def fail(file):
        raise failure

    monkeypatch.setattr("mlca.storage.models.read_archive", fail)
    with pytest.raises(seen, match=message):
        load(files / "learned")


def test_truncated_file_is_rejected_at_any_length(files, tmp_path):
    content = (files / "learned").read_bytes()
    path = tmp_path / "cut.mlca"
    for end in np.linspace(0, len(content) - 1, 60).astype(int):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=str(path)):
            load(path)


def test_flipped_bits_give_a_clear_error_or_the_same_model(files, tmp_path):
    content = (files / "learned").read_bytes()
    original = load(files / "learned")
    path = tmp_path / "flipped.mlca"
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            assert_same_state(load(path), original)
        except ValueError as error:
            assert str(path) in str(error)


def most_memory(path):
    """Return the peak memory of loading, whether or not the file was rejected."""
    tracemalloc.start()
    try:
        load(path)
    except ValueError:
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


GREEDY = {
    "features": ("sparse", set_header(n_features=2**40)),
    "labels": ("few nodes", set_header(n_labels=2**30)),
    "neighbours": ("few nodes", set_parameter("resolved", n_neighbors=2**30)),
    "window": ("waiting", set_parameter("resolved", window=2**30)),
    "tally": ("learned", set_array("tally", lambda a: a * 0 + 2**40)),
}


@pytest.mark.parametrize("fault", GREEDY)
def test_a_small_file_takes_little_memory(files, tmp_path, fault):
    name, change = GREEDY[fault]
    header, arrays = unpack(files / name)
    change(header, arrays)
    path = pack(tmp_path / "greedy.mlca", header, arrays)
    assert most_memory(path) < 20 * path.stat().st_size + 200_000


def test_a_wide_sparse_file_takes_little_memory(files, tmp_path):
    header, arrays = unpack(files / "sparse")
    path = pack(tmp_path / "wide.mlca", header | {"n_features": 2**17}, arrays)
    assert most_memory(path) < 100 * 2**17  # a few bytes per feature, without a window


def test_a_long_window_takes_memory_when_it_fills(files, tmp_path):
    header, arrays = unpack(files / "waiting")
    header["resolved"]["window"] = header["parameters"]["window"] = 2**20
    path = pack(tmp_path / "long.mlca", header, arrays)
    assert most_memory(path) < 20 * path.stat().st_size + 200_000


def test_version_1_without_checksum_is_checked_as_strictly(tmp_path):
    golden = Path(__file__).parent.parent / "data" / "golden_v1_dense.mlca"
    header, arrays = unpack(golden)
    assert signed(header, arrays) == header
    arrays["counts"][0] += 1
    with pytest.raises(ValueError, match="'counts' must add up"):
        load(pack(tmp_path / "forged.mlca", header, arrays))
    with pytest.raises(ValueError, match=r"resolved in mlca\.json is None"):  # raising the version does not help
        path = tmp_path / "newer.mlca"
        write_members(path, (members_of(golden) | {HEADER: json.dumps(header | {"version": 2}).encode()}).items())
        load(path)

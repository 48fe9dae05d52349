"""Model files: what comes back is what was saved, and nothing else ever comes back."""

import io
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA, load
from tests.learner.states import assert_same_state
from tests.learner.streams import parameters, streams

GOLDEN = Path(__file__).parent / "data"


def small_model(**chosen):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(0, 1, (80, 3)), 3)
    Y = (X[:, :2] > 0).astype(int)
    return MLCA(**chosen).fit(X, Y), X, Y


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams(max_rows=130), parameters(), st.booleans(), st.floats(0, 1))
def test_a_loaded_model_goes_on_exactly_as_the_original(tmp_path, stream, chosen, thin, cut):
    X, Y = stream
    rows = sparse.csr_array(X) if thin else X
    n = max(1, int(cut * len(X)))
    model = MLCA(**chosen).partial_fit(rows[:n], Y[:n])
    model.save(tmp_path / "model.mlca")
    loaded = load(tmp_path / "model.mlca")
    assert loaded.get_params() == model.get_params()
    assert_same_state(model, loaded)
    np.testing.assert_array_equal(model.predict_proba(rows), loaded.predict_proba(rows))
    wider = np.column_stack([Y, 1 - Y])
    assert_same_state(model.partial_fit(rows, wider), loaded.partial_fit(rows, wider))


def test_names_of_labels_and_features_are_kept(tmp_path):
    _, X, _ = small_model()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MLCA().fit(frame, [{"yes", 3, 2.5, True} if x[0] > 0 else {"no"} for x in X])
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    assert loaded.predict_labels(frame) == model.predict_labels(frame)


def test_one_class_per_row_is_kept(tmp_path):
    _, X, Y = small_model()
    MLCA().fit(X, Y[:, 0]).save(tmp_path / "m")
    assert set(load(tmp_path / "m").predict(X)) <= {0, 1}


def test_labels_that_a_file_cannot_hold_are_named(tmp_path):
    model = MLCA().fit([[1.0], [2.0]], [{("a", "tuple")}, set()])
    with pytest.raises(ValueError, match=r"'a', 'tuple'.* is a tuple"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["dense", "sparse_clustered", "waiting_individual"])
def test_files_of_version_1_stay_readable(name):
    """The golden files were written by mlca 0.1.0 (see tests/data/write_golden.py) with these answers."""
    answers = json.loads((GOLDEN / "golden_v1.json").read_text())[name]
    model = load(GOLDEN / f"golden_v1_{name}.mlca")
    assert model.n_nodes_ == answers["n_nodes"]
    assert model.n_seen_ == answers["n_seen"]
    assert model.classes_.tolist() == answers["classes"]
    np.testing.assert_allclose(model.predict_proba(answers["rows"]), answers["proba"], rtol=1e-12)
    model.partial_fit(answers["rows"], [{"new"}] * len(answers["rows"]))
    np.testing.assert_allclose(model.predict_proba(answers["rows"]), answers["proba_after"], rtol=1e-12)


class TestAtomicSaving:
    def test_an_existing_file_survives_a_failure(self, tmp_path):
        model, _, _ = small_model()
        path = tmp_path / "model.mlca"
        model.save(path)
        before = path.read_bytes()
        unsaveable = MLCA().fit([[1.0], [2.0]], [{frozenset()}, set()])
        with pytest.raises(ValueError, match="frozenset"):
            unsaveable.save(path)
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["model.mlca"]

    def test_a_killed_process_leaves_the_old_file_or_the_new_one(self, tmp_path):
        model, X, _ = small_model()
        path = tmp_path / "model.mlca"
        model.save(path)
        script = (
            "import sys, os, threading, time\n"
            "from mlca import load\n"
            "model = load(sys.argv[1])\n"
            "print('ready', flush=True)\n"
            "threading.Timer(float(sys.argv[2]), lambda: os._exit(9)).start()\n"
            "while True: model.save(sys.argv[1])\n"
        )
        for delay in (0.01, 0.023, 0.04):
            process = subprocess.run(
                [sys.executable, "-c", script, str(path), str(delay)], capture_output=True, timeout=120, check=False
            )
            assert process.returncode == 9, process.stderr
            np.testing.assert_array_equal(load(path).predict_proba(X), model.predict_proba(X))

    def test_permissions_are_those_of_any_new_file(self, tmp_path):
        model, _, _ = small_model()
        model.save(tmp_path / "model.mlca")
        (tmp_path / "plain").write_text("")
        assert (tmp_path / "model.mlca").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_a_missing_folder_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            small_model()[0].save(tmp_path / "nowhere" / "model.mlca")


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_header(members, **changes):
    header = json.loads(members["mlca.json"]) | changes
    return members | {"mlca.json": json.dumps(header).encode()}


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/mlca_was_here",)


@pytest.fixture
def saved(tmp_path):
    model, _, _ = small_model(attributes="clustered")
    model.save(tmp_path / "model.mlca")
    return tmp_path / "model.mlca"


HOSTILE = {
    "newer": (lambda m: with_header(m, version=99, written_by="mlca 9"), "version 99.*upgrade mlca"),
    "version of no kind": (lambda m: with_header(m, version="1"), "no format version"),
    "foreign json": (lambda m: m | {"mlca.json": b'{"format": "other"}'}, "does not describe"),
    "no json": (lambda m: m | {"mlca.json": b"\xff{"}, "damaged"),
    "deep json": (lambda m: m | {"mlca.json": b"[" * 100_000}, "damaged"),
    "no header": (lambda m: {k: v for k, v in m.items() if k != "mlca.json"}, "without mlca.json"),
    "array missing": (lambda m: {k: v for k, v in m.items() if k != "counts.npy"}, "lacks the array 'counts'"),
    "array renamed": (
        lambda m: {("count.npy" if k == "counts.npy" else k): v for k, v in m.items()},
        "lacks the array 'counts'",
    ),
    "pickle": (
        lambda m: m | {"counts.npy": npy(np.array([Evil()], dtype=object), allow_pickle=True)},
        "'counts' is of another kind",
    ),
    "wrong dtype": (lambda m: m | {"counts.npy": npy(np.ones(3, np.float32))}, "'counts' is of another kind"),
    "huge shape": (
        lambda m: m | {"counts.npy": npy(np.ones(3, np.int64)).replace(b"(3,), ", b"(2147483648,), "[:6])},
        "'counts'|damaged",
    ),
    "index out of range": (
        lambda m: m | {"label_counts.indices.npy": npy(np.full_like(read(m, "label_counts.indices"), 7))},
        "'label_counts' has an index out of range",
    ),
    "negative index": (
        lambda m: m | {"label_counts.indices.npy": npy(np.full_like(read(m, "label_counts.indices"), -1))},
        "'label_counts' has an index out of range",
    ),
    "row bounds": (
        lambda m: m | {"label_counts.indptr.npy": npy(read(m, "label_counts.indptr")[::-1].copy())},
        "'label_counts' has row bounds",
    ),
    "NaN weights": (lambda m: m | {"weights.npy": npy(read(m, "weights") * np.nan)}, "'weights' are not all finite"),
    "zero bandwidth": (lambda m: m | {"bandwidths.npy": npy(read(m, "bandwidths") * 0)}, "'bandwidths' are not all"),
    "no counts": (lambda m: m | {"counts.npy": npy(read(m, "counts") * 0)}, "'counts' has a node without"),
    "fewer nodes": (lambda m: m | {"counts.npy": npy(read(m, "counts")[:-1])}, "'counts' has shape"),
    "negative tally": (lambda m: m | {"tally.npy": npy(-read(m, "tally"))}, "'tally' holds no four counts"),
    "counters that do not add up": (lambda m: m | {"with.npy": npy(read(m, "with") + 1)}, "do not add up"),
    "no group": (lambda m: m | {"group_centres.npy": npy(np.empty(0))}, "'group_centres' do not fit"),
    "vigilance": (
        lambda m: with_header(m, parameters=json.loads(m["mlca.json"])["parameters"] | {"vigilance": 7}),
        "vigilance must be",
    ),
    "unknown parameter": (lambda m: with_header(m, parameters={"charm": 1}), "charm"),
    "many labels": (lambda m: with_header(m, n_labels=2**40), "n_labels is"),
    "labels twice": (lambda m: with_header(m, labels=["a", "a"]), "not 2 different"),
    "more features": (lambda m: with_header(m, n_features=1_000_000), "has shape"),
}


def read(members, name):
    return np.load(io.BytesIO(members[f"{name}.npy"]))


class TestForeignFiles:
    @pytest.mark.parametrize("fault", HOSTILE)
    def test_a_hostile_file_is_refused_with_its_fault_named(self, saved, fault):
        change, message = HOSTILE[fault]
        rewritten(saved, change(members_of(saved)))
        with pytest.raises(ValueError, match=message) as error:
            load(saved)
        assert str(saved) in str(error.value)
        assert not Path("/tmp/mlca_was_here").exists()

    def test_compressed_members_are_refused(self, saved):
        rewritten(saved, members_of(saved) | {"zeros.npy": b"\0" * 10**7}, zipfile.ZIP_DEFLATED)
        with pytest.raises(ValueError, match="compressed members"):
            load(saved)

    def test_a_file_is_never_unfolded_beyond_its_size(self, saved):
        members = members_of(saved)
        content = bytearray(members["weights.npy"])
        header = content[10 : 10 + int.from_bytes(content[8:10], "little")]
        lying = header.replace(b"(", b"(9999999999999,", 1)[: len(header) - 1] + b"\n"
        content[10 : 10 + len(header)] = lying
        rewritten(saved, members | {"weights.npy": bytes(content)})
        tracemalloc.start()
        with pytest.raises(ValueError, match=str(saved)):
            load(saved)
        assert tracemalloc.get_traced_memory()[1] < 50 * saved.stat().st_size
        tracemalloc.stop()

    def test_text_empty_and_missing_files(self, tmp_path):
        (tmp_path / "text.mlca").write_text("not a model")
        (tmp_path / "empty.mlca").write_bytes(b"")
        for name in ("text.mlca", "empty.mlca"):
            with pytest.raises(ValueError, match=f"{name}: not an mlca model"):
                load(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "missing.mlca")

    def test_any_zip_is_not_a_model(self, tmp_path):
        rewritten(tmp_path / "other.mlca", {"word/document.xml": b"<x/>"})
        with pytest.raises(ValueError, match=r"without mlca\.json"):
            load(tmp_path / "other.mlca")

    def test_a_truncated_file_is_refused_wherever_it_ends(self, saved):
        content = saved.read_bytes()
        for end in np.linspace(0, len(content) - 1, 60).astype(int):
            saved.write_bytes(content[:end])
            with pytest.raises(ValueError, match=str(saved)):
                load(saved)

    def test_flipped_bytes_give_a_clear_error_or_the_same_model(self, saved):
        content = saved.read_bytes()
        original = load(saved)
        rng = np.random.default_rng(0)
        for _ in range(300):
            damaged = bytearray(content)
            damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
            saved.write_bytes(damaged)
            try:
                assert_same_state(load(saved), original)
            except ValueError as error:
                assert str(saved) in str(error)

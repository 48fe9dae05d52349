"""Saving: the old or the new file in the right place, without leftovers."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlca import MLCA, load
from mlca.replacing import replacing

pytestmark = pytest.mark.traced

needs_posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX: permissions, FIFOs, devices, SIGKILL")


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(1).normal(0, 1, (80, 3))
    return MLCA().fit(X, (X[:, :2] > 0).astype(int))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_existing_file_survives_a_failure(tmp_path, model):
    path = tmp_path / "model.mlca"
    model.save(path)
    before = path.read_bytes()
    unsaveable = MLCA().fit([[1.0], [2.0]], [{frozenset()}, set()])
    with pytest.raises(ValueError, match="frozenset"):
        unsaveable.save(path)
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == before
    assert names(tmp_path) == ["model.mlca"]


@needs_posix
def test_permissions_are_kept_or_those_of_a_new_file(tmp_path, model):
    path = tmp_path / "model.mlca"
    model.save(path)
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    for mode in (0o600, 0o664):
        path.chmod(mode)
        model.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


@needs_posix
def test_private_model_is_never_readable_by_others(tmp_path):
    path = tmp_path / "model.mlca"
    path.touch(0o600)
    with replacing(path):
        assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 for entry in tmp_path.iterdir())


def test_missing_folder_is_reported(tmp_path, model):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.save(tmp_path / "nowhere" / "model.mlca")


def test_a_link_stays_and_its_target_is_replaced(tmp_path, model):
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to("store/middle")
    (tmp_path / "store" / "middle").symlink_to("model.mlca")
    for _ in range(2):  # once without and once with an existing target
        model.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink() and (tmp_path / "store" / "middle").is_symlink()
        assert names(tmp_path / "store") == ["middle", "model.mlca"]
    assert load(tmp_path / "link").n_seen_ == 80


@needs_posix
def test_folders_devices_and_fifos_are_rejected(tmp_path, model):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("fifo", "null"):
        with pytest.raises(ValueError, match=rf"{name} is a device, a FIFO"):
            model.save(tmp_path / name)
    assert names(tmp_path) == ["fifo", "null"]
    assert Path("/dev/null").is_char_device()


def test_temporary_names_cannot_be_guessed_and_long_names_fit(tmp_path):
    found = set()
    path = tmp_path / ("é" * 127)  # 254 bytes
    for _ in range(3):
        with replacing(path):
            found.add(next(name for name in names(tmp_path) if name.endswith(".part")))
    assert len(found) == 3
    assert names(tmp_path) == [path.name]


def test_only_leftovers_of_dead_processes_are_removed(tmp_path, model):
    path = tmp_path / "model.mlca"
    (tmp_path / ".model.mlca.0123456789abcdef.part").write_bytes(b"left by a killed process")
    (tmp_path / ".model.mlca.abcd_123.part").write_bytes(b"left by mlca 0.1")
    others = [".model.mlca.part", ".other.mlca.0123456789abcdef.part", ".model.mlca.bak.0123456789abcdef.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"another's")
    with replacing(path) as file:
        file.write(b"of one who takes longer")
        file.flush()
        model.save(path)
        assert len(names(tmp_path)) == len(others) + 2
    assert path.read_bytes() == b"of one who takes longer"
    assert names(tmp_path) == sorted(["model.mlca", *others])


# Saves a model over another one repeatedly; each time the process is killed one step later. A step is an audit event of
# Python about the folder, such as opening, renaming or listing. Ends with the first complete save.
KILLED_SAVES = """
import os, signal, sys
from pathlib import Path
from mlca import load
path, other = sys.argv[1:]
model = load(other)
killed, found = 0, []
while True:
    child = os.fork()
    if child == 0:
        left = killed
        def watch(event, arguments):
            global left
            if os.path.dirname(path) in str(arguments):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(watch)
        model.save(path)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    found.append(load(path).n_seen_)
    if status == 0:
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
    killed += 1
print(*found)
"""


@needs_posix
def test_killed_process_leaves_the_old_file_or_the_new_one(tmp_path, model):
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "model.mlca"
    model.save(path)
    MLCA().fit([[1.0], [2.0]], [{"a"}, {"b"}]).save(tmp_path / "new")
    command = [sys.executable, "-W", "ignore", "-c", KILLED_SAVES, str(path), str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    rows = [int(word) for word in done.stdout.split()]
    assert rows == sorted(rows, reverse=True)  # the old model has 80 rows, the new one 2
    assert rows.count(80) >= 3 and rows.count(2) >= 2  # killed before and after the new file was in place
    assert names(path.parent) == ["model.mlca"]


@needs_posix
def test_new_file_is_on_disk_before_the_rename(tmp_path, model, monkeypatch):
    """A power failure cannot be tested; but the content must be on disk before the rename."""
    steps = []

    def noting(act, inode):
        return lambda *places: steps.append((act.__name__, inode(places[0]))) or act(*places)

    monkeypatch.setattr(os, "fsync", noting(os.fsync, lambda file: (os.fstat(file).st_ino, os.fstat(file).st_size)))
    monkeypatch.setattr(os, "replace", noting(os.replace, lambda path: (path.stat().st_ino, path.stat().st_size)))
    path = tmp_path / "model.mlca"
    model.save(path)
    written, folder = (path.stat().st_ino, path.stat().st_size), (tmp_path.stat().st_ino, tmp_path.stat().st_size)
    assert steps == [("fsync", written), ("replace", written), ("fsync", folder)]


WRITES_HALF = """
import os, sys
from mlca.replacing import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), 9)
"""


@needs_posix
def test_leftovers_of_a_killed_save_are_removed_by_the_next(tmp_path, model):
    path = tmp_path / "model.mlca"
    model.save(path)
    process = subprocess.run([sys.executable, "-c", WRITES_HALF, str(path)], timeout=60, check=False)
    assert process.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    assert load(path).n_seen_ == 80
    model.save(path)
    assert names(tmp_path) == ["model.mlca"]


@pytest.mark.parametrize("moment", [0.0, 3e8, 7.3e9])
def test_file_can_be_saved_in_any_year_and_stores_none(tmp_path, monkeypatch, moment):
    """The time of a board without a clock starts in 1970, that of zip files in 1980."""
    model = MLCA().fit(np.eye(3), [("a",), ("b",), ("a", "b")])
    model.save(tmp_path / "now.mlca")
    monkeypatch.setattr("time.time", lambda: moment)
    model.save(tmp_path / "then.mlca")
    assert (tmp_path / "then.mlca").read_bytes() == (tmp_path / "now.mlca").read_bytes()

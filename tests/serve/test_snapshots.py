"""Snapshots: atomic, verified, and never required."""

import shutil

import numpy as np
import pytest

from mlca import MLCA
from mlca.serve.live_model import Learned, LiveModel
from mlca.serve.log import LoggedRow
from mlca.serve.request_rows import Columns, pack
from mlca.serve.snapshots import Snapshots
from tests.serve.log_streams import FittingView, fit_log, log_of, make_rows, state_of
from tests.serve.service_process import until


@pytest.fixture
def told():
    return []


@pytest.fixture
def snapshots(tmp_path, told):
    return Snapshots(tmp_path / "snapshots", "this log", told.append)


def grow(live, n):
    start = live.facts.position
    rows = make_rows(n, start)
    packed = pack(np.array([row["x"] for row in rows]))
    logged = [
        LoggedRow(start + 1 + i, x, tuple(row["labels"]), ("red",), row["id"], 0.0, b"")
        for i, (row, x) in enumerate(zip(rows, packed, strict=True))
    ]
    live.learn(logged, Columns(3))


def test_restored_snapshot_continues_as_the_live_model(snapshots, tmp_path):
    live = LiveModel(Learned(MLCA()))
    grow(live, 70)
    path = snapshots.save(live)
    again = snapshots.newest(FittingView())
    assert (again.position, again.generation) == (70, 0)
    with live.measures() as measures:
        assert again.measures.to_json() == measures.to_json()
        assert measures.pairs == 70
    other = LiveModel(again)
    for model in (live, other):
        grow(model, 50)
    live.snapshot(tmp_path / "a.mlca", {})
    other.snapshot(tmp_path / "b.mlca", {})
    assert state_of(tmp_path / "a.mlca") == state_of(tmp_path / "b.mlca")
    assert path.exists()


def test_damage_falls_back_to_the_previous_snapshot(snapshots, told, tmp_path):
    live = LiveModel(Learned(MLCA()))
    grow(live, 60)
    snapshots.save(live)
    grow(live, 10)
    path = snapshots.save(live)
    content = path.read_bytes()
    good = state_of(path)
    fallen = 0
    for place in [*range(0, len(content), 499), *range(len(content) - 200, len(content), 7)]:
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        found = snapshots.newest(FittingView())
        if found.position == 70:  # a byte without effect, such as a time stamp of the archive
            found.model.save(tmp_path / "again.mlca")
            assert state_of(tmp_path / "again.mlca") == good
        else:
            assert found.position == 60
            fallen += 1
            assert not path.exists()
    assert fallen > 20
    assert all("cannot be used" in sentence for sentence in told)
    path.write_bytes(content[: len(content) // 2])
    assert snapshots.newest(FittingView()).position == 60


def test_snapshot_of_another_log_is_rejected(snapshots, told, tmp_path):
    live = LiveModel(Learned(MLCA()))
    grow(live, 60)
    snapshots.save(live)
    assert Snapshots(tmp_path / "snapshots", "another log", told.append).newest(FittingView()) is None
    assert "another log" in told[0]


def test_snapshots_with_a_forgotten_row_are_removed(snapshots):
    live = LiveModel(Learned(MLCA()))
    for _ in range(3):
        grow(live, 10)
        snapshots.save(live)
    snapshots.drop_from(21)
    assert snapshots.positions() == [20, 10]
    snapshots.drop_from(20)  # its last row is the forgotten one
    assert snapshots.positions() == [10]


def test_old_snapshots_are_thinned_out_to_the_beginning(snapshots):
    live = LiveModel(Learned(MLCA(vigilance=0.3)))
    for _ in range(40):
        grow(live, 10)
        snapshots.save(live)
    positions = snapshots.positions()
    assert positions[:2] == [400, 390]
    assert len(positions) <= 9
    assert 10 in positions
    assert any(150 < position < 350 for position in positions)


def test_service_falls_back_and_replays(serve, tmp_path):
    server = serve()
    server.learn(make_rows(120))
    server.stop()
    server.start()
    server.learn(make_rows(80, start=120))
    server.stop()
    newest = max((server.data / "snapshots").glob("*.mlca"))
    newest.write_bytes(newest.read_bytes()[:-30])
    server.start()
    until(lambda: "cannot be used" in server.err.read_text(), "reported to the operator")
    _, content, headers = server.ask("GET", "/v1/model/file")
    (tmp_path / "served.mlca").write_bytes(content)
    assert headers["mlca-position"] == "200"
    fitted = fit_log(log_of(server.data), tmp_path / "fitted.mlca")
    assert state_of(tmp_path / "served.mlca") == fitted
    server.stop()
    shutil.rmtree(server.data / "snapshots")  # without snapshots, the log is sufficient
    server.start()
    (tmp_path / "served.mlca").write_bytes(server.ask("GET", "/v1/model/file")[1])
    assert state_of(tmp_path / "served.mlca") == fitted

"""Forgotten rows leave the log, the files and the model, as if they had never existed."""

import struct

import numpy as np
import pytest

from mlca.serve.follower import Follower
from mlca.serve.live_model import new_parameters
from mlca.serve.log import LogView, create_log, open_log
from mlca.serve.log_changes import Forget, Learn
from mlca.serve.request_rows import Columns, pack
from mlca.serve.snapshots import Snapshots
from mlca.serve.sqlite import SQLite
from tests.serve.log_streams import fit_log, log_of, make_rows, state_of
from tests.serve.service_process import until

SECRET = 12345.678901234567


def served_state(server, tmp_path):
    status, content, headers = server.ask("GET", "/v1/model/file")
    assert status == 200, content
    (tmp_path / "served.mlca").write_bytes(content)
    return state_of(tmp_path / "served.mlca"), int(headers["mlca-position"]), int(headers["mlca-generation"])


def test_model_equals_one_that_never_saw_the_rows(serve, tmp_path):
    server = serve()
    rows = make_rows(300)
    server.learn(rows)
    assert server.post("/v1/predict", {"rows": [{"x": rows[0]["x"]}], "min_position": 300})["generation"] == 0
    gone = ["r7", "r250", "r39", "r39", "nobody"]
    answer = server.post("/v1/forget", {"ids": gone, "wait": True})
    assert answer == {
        "position": 300,
        "generation": 1,
        "forgotten": 3,
        "unknown": ["nobody"],
        "rebuilt": True,
        "rebuild": None,
    }
    never = [row for row in rows if row["id"] not in gone]
    fitted = fit_log([(0, r["id"], np.array(r["x"]), r["labels"]) for r in never], tmp_path / "never.mlca")
    assert served_state(server, tmp_path) == (fitted, 300, 1)
    # A late retry does not restore them, and later rows are learned.
    assert server.learn([rows[7]])["duplicates"] == ["r7"]
    server.learn(make_rows(20, start=300))
    server.post("/v1/predict", {"rows": [{"x": [0, 0, 0]}], "min_position": 320, "min_generation": 1})
    expected = fit_log(log_of(server.data), tmp_path / "fitted.mlca")
    assert served_state(server, tmp_path) == (expected, 320, 1)
    server.kill()
    server.start()
    assert served_state(server, tmp_path) == (expected, 320, 1)


def test_forgotten_rows_leave_the_disk(serve, tmp_path):
    server = serve()
    rows = make_rows(60)
    rows[30] = {"id": "person", "x": [SECRET, -SECRET, 1.0], "labels": ["unmistakable-label"]}
    server.learn(rows)
    waiting = {"id": "waiting", "x": [SECRET, 2.0, 3.0]}
    server.post("/v1/predict", {"rows": [waiting], "keep": True, "min_position": 60})
    server.stop()  # writes a snapshot that contains the row
    server.start()
    payloads = (struct.pack("<d", SECRET), b"unmistakable-label")
    assert {payload for payload in payloads for content in contents(server) if payload in content} == set(payloads)
    assert server.post("/v1/forget", {"ids": ["person", "waiting"], "wait": True})["rebuilt"]
    until(lambda: not any(payload in content for payload in payloads for content in contents(server)), "erased")
    assert server.get("/v1/rows?id=person")["state"] == server.get("/v1/rows?id=waiting")["state"] == "forgotten"
    server.post("/v1/explain", {"id": "person"}, 422)


@pytest.mark.parametrize("killed", [False, True])
def test_forgotten_waiting_rows_leave_the_disk(serve, killed):
    """The model never learned it, so the generation does not change; a service that is killed at once erases it
    later."""
    server = serve()
    waiting, payload = {"id": "waiting", "x": [SECRET, 2.0, 3.0]}, struct.pack("<d", SECRET)
    server.post("/v1/predict", {"rows": [waiting], "keep": True})
    assert any(payload in content for content in contents(server))
    answer = server.post("/v1/forget", {"ids": ["waiting"]})
    assert (answer["forgotten"], answer["generation"]) == (1, 0)
    if killed:
        server.kill()
        server.start()
    until(lambda: not any(payload in content for content in contents(server)), "erased", seconds=20)


def contents(server):
    return [path.read_bytes() for path in server.data.rglob("*") if path.is_file() and path.suffix != ".part"]


# The first download exceeds every timeout, the second fails when its file is written.
DOWNLOADS = """
import time
from mlca.serve import asgi
from mlca.serve.live_model import LiveModel

calls, snapshot = [], LiveModel.snapshot
asgi.ANSWER_SECONDS = 3.0

def late_or_never(self, path, about):
    calls.append(path)
    if len(calls) == 1:
        asgi.ANSWER_SECONDS = 60.0
        time.sleep(5)
    facts = snapshot(self, path, about)
    if len(calls) == 2:
        raise MemoryError
    return facts

LiveModel.snapshot = late_or_never
"""


def test_abandoned_downloads_are_removed(serve):
    """A downloaded file would contain rows that are forgotten later."""
    server = serve(before=DOWNLOADS)
    server.learn(make_rows(10))
    status, answer, _ = server.ask("GET", "/v1/model/file?min_position=10")
    assert (status, "no response within" in answer["error"]["problem"]) == (503, True)
    folder = server.data / "snapshots"
    assert list(folder.iterdir())  # still rebuilding
    until(lambda: not list(folder.iterdir()), "removed", seconds=20)
    assert server.ask("GET", "/v1/model/file")[0] == 500
    assert not list(folder.iterdir())
    assert server.ask("GET", "/v1/model/file")[0] == 200
    until(lambda: not list(folder.iterdir()), "removed when it was sent", seconds=20)


def test_forgetting_waiting_rows_keeps_the_generation(serve):
    server = serve()
    server.post("/v1/predict", {"rows": [{"id": "a", "x": [1, 2]}], "keep": True})
    assert server.post("/v1/forget", {"ids": ["a"]})["generation"] == 0
    answer = server.post("/v1/labels", {"rows": [{"id": "a", "labels": ["x"]}]})
    assert (answer["learned"], answer["duplicates"]) == (0, ["a"])


def test_all_rows_can_be_forgotten(serve):
    server = serve()
    server.learn(make_rows(5))
    server.post("/v1/predict", {"rows": [{"x": [0, 0, 0]}], "min_position": 5})
    assert server.post("/v1/forget", {"ids": [f"r{i}" for i in range(5)], "wait": True})["rebuilt"]
    answer = server.post("/v1/predict", {"rows": [{"x": [0, 0, 0]}]})
    assert (answer["position"], answer["generation"], answer["rows"][0]["labels"]) == (5, 1, [])
    assert server.get("/v1/model")["nodes"] == 0
    server.learn(make_rows(5, start=5))
    assert server.post("/v1/predict", {"rows": [{"x": [0, 0, 0]}], "min_position": 10})["rows"][0]["probabilities"]


def test_forgetting_survives_kills(serve, tmp_path):
    server = serve()
    server.learn(make_rows(400))
    server.stop()
    server.start()
    for turn in range(3):
        server.post("/v1/forget", {"ids": [f"r{10 * turn + 3}", f"r{300 + turn}"]})
        server.kill()
        server.start()
        fitted = fit_log(log_of(server.data), tmp_path / "fitted.mlca")
        assert served_state(server, tmp_path) == (fitted, 400, turn + 1)


class ForgettingView(LogView):
    """A view of a log from which a row is forgotten whenever the view is read."""

    forgetful, n_forgotten = None, 0

    def read(self, after, limit):
        if ForgettingView.forgetful is not None:
            ForgettingView.forgetful.write([Forget([f"r{ForgettingView.n_forgotten}"])])
            ForgettingView.n_forgotten += 1
        return super().read(after, limit)


@pytest.fixture
def follower(tmp_path, monkeypatch):
    """A follower without its thread, of a log of 400 rows of which one is forgotten whenever 50 are read."""
    log = create_log(SQLite(tmp_path / "log.sqlite"), new_parameters({}), None, None)
    rows = make_rows(400)
    packed = pack(np.array([row["x"] for row in rows]))
    log.write([Learn([row["id"] for row in rows], packed, [tuple(row["labels"]) for row in rows], Columns(3))])
    monkeypatch.setattr("mlca.serve.log.LogView", ForgettingView)
    monkeypatch.setattr("mlca.serve.follower._CHAPTER", 50)
    monkeypatch.setattr(ForgettingView, "forgetful", open_log(SQLite(tmp_path / "log.sqlite")))
    monkeypatch.setattr(ForgettingView, "n_forgotten", 0)
    snapshots = Snapshots(tmp_path / "snapshots", log.beginning.identity, pytest.fail)
    follower = Follower(log, snapshots, None, lambda rows: None, lambda name, facts: None, pytest.fail)
    yield follower
    log.database.close()


def test_rows_forgotten_faster_than_a_rebuild_takes_are_collected(follower, tmp_path):
    """Eight rows are forgotten during each rebuild, which ends with the exact model of the generation it began with."""
    generations = []
    for turn in range(4):
        generation = ForgettingView.n_forgotten
        rows = log_of(tmp_path)
        follower._recover() if turn == 0 else follower._step()
        follower.live.snapshot(tmp_path / "served.mlca", {})
        assert state_of(tmp_path / "served.mlca") == fit_log(rows, tmp_path / "fitted.mlca")
        assert (follower.live.facts.position, follower.live.facts.generation) == (400, generation)
        assert follower.rebuild is None
        generations.append(generation)
    assert generations == [0, 8, 16, 24]
    ForgettingView.forgetful.database.close()
    ForgettingView.forgetful = None
    follower._step()
    assert follower.live.facts.generation == follower._log.head.generation == 32


def test_progress_of_a_rebuild_is_reported(follower, monkeypatch):
    seen = []
    follower._recover()
    read = ForgettingView.read

    def looking(self, after, limit):
        seen.append(follower.rebuild)
        return read(self, after, limit)

    monkeypatch.setattr(ForgettingView, "read", looking)
    follower._step()
    assert seen == [(8, position, 400) for position in range(0, 400, 50)]
    assert str(seen[-1]) == "350 of 400 rows"
    ForgettingView.forgetful.database.close()


SLOW = """
import time
from mlca.serve import follower, log
follower._CHAPTER = 20
read = log.LogView.read
log.LogView.read = lambda self, *place: (time.sleep(0.02), read(self, *place))[1]
"""


def test_service_finishes_rebuilds_while_rows_are_forgotten_one_by_one(serve, tmp_path):
    server = serve(before=SLOW)
    server.learn(make_rows(400))
    until(lambda: server.get("/health/ready")["position"] == 400, "learned")
    generations, told = set(), []

    def forget_another():
        answer = server.post("/v1/forget", {"ids": [f"r{len(told)}"]})
        told.append(answer["rebuild"])
        server.learn(make_rows(1, start=1000 + len(told)))
        ready = server.get("/health/ready")
        generations.add(ready["generation"])
        return len(generations) > 4 and ready["position"] > 400

    until(forget_another, "several generations")
    assert any(rebuild is not None and rebuild["end"] >= 400 for rebuild in told)
    until(lambda: served_state(server, tmp_path)[1:] == (400 + len(told), len(told)), "all followed")
    assert served_state(server, tmp_path)[0] == fit_log(log_of(server.data), tmp_path / "fitted.mlca")


@pytest.mark.parametrize("ids", [[], "r1", [1], [""], None])
def test_invalid_lists_of_ids_are_rejected(shared, ids):
    shared.post("/v1/forget", {"ids": ids}, 422)

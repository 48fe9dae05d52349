"""A log that is missing, truncated, older than the snapshots, or a different one: nothing starts and nothing
changes."""

import hashlib
import os
import shutil
import sqlite3

import pytest

from tests.serve.log_streams import make_rows
from tests.serve.service_process import Server, until

QUESTION = {"rows": [{"x": [0.5, -0.5, 0.1]}, {"x": [0, 0, 0]}], "top": 100}


def run_sql(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def remove_log(data):
    for path in data.glob("log.sqlite*"):
        path.unlink()


def empty_log(data):
    remove_log(data)
    (data / "log.sqlite").touch()


def go_back(data):
    """Restore an older log, like an incomplete backup."""
    run_sql(
        data / "log.sqlite",
        "DELETE FROM mlca_rows WHERE position > 100",
        "UPDATE mlca_log SET position = 100, checksum = (SELECT checksum FROM mlca_rows WHERE position = 100)",
    )


def cut(data):
    run_sql(data / "log.sqlite", "DELETE FROM mlca_rows WHERE position > 100")


def lose_a_forgetting(data):
    run_sql(data / "log.sqlite", "DELETE FROM mlca_forgettings", "UPDATE mlca_log SET generation = 0")


@pytest.fixture(scope="module")
def stopped(fork_server, tmp_path_factory):
    """The folder of a stopped service that has learned 200 rows and forgotten one, and its last response."""
    server = Server(fork_server, tmp_path_factory.mktemp("stopped") / "good").start()
    server.learn(make_rows(200))
    server.post("/v1/predict", QUESTION | {"min_position": 200})
    server.post("/v1/forget", {"ids": ["r150"], "wait": True})
    answer = server.post("/v1/predict", QUESTION | {"min_generation": 1})
    server.stop()
    return server.data, answer["rows"]


@pytest.fixture
def copied(stopped, tmp_path):
    shutil.copytree(stopped[0], tmp_path / "data")
    return tmp_path / "data", stopped[1]


def refusal_of(server):
    """Start a service that must not start; return its error message."""
    with pytest.raises(AssertionError):
        server.start(ready=False)
    assert server.exit_code(60) == 1
    return server.err.read_text()


def contents_of(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (remove_log, "it has position 200, but there is no log"),
        (empty_log, "it has position 200, but there is no log"),
        (go_back, "it has position 200, but the log ends at 100"),
        (cut, "it records 200 rows, but contains 100, up to position 100"),
        (lose_a_forgetting, "it has generation 1, but the log has generation 0"),
    ],
)
def test_service_with_lost_or_damaged_log_does_not_start_and_changes_nothing(fork_server, copied, damage, found):
    data, _ = copied
    damage(data)
    before = contents_of(data / "snapshots")
    server = Server(fork_server, data)
    for _ in range(2):  # a second attempt gives the same result
        said = refusal_of(server)
        assert found in said
        assert "--accept-log" in said and "--model" in said
    assert contents_of(data / "snapshots") == before != {}
    assert not (data / "set-aside").exists()


@pytest.mark.parametrize(("damage", "position"), [(remove_log, 0), (empty_log, 0), (go_back, 100), (cut, 100)])
def test_an_accepted_log_is_continued_and_the_snapshots_are_set_aside(serve, copied, damage, position):
    data, _ = copied
    damage(data)
    before = contents_of(data / "snapshots")
    server = serve("--accept-log")
    model = server.get("/v1/model")
    assert (model["position"], model["log_position"]) == (position, position)
    contradicting = {name: content for name, content in before.items() if int(name[:12]) > position}
    assert contents_of(data / "set-aside") == contradicting != {}
    until(lambda: '"set aside"' in server.err.read_text(), "reported to the operator")
    server.learn(make_rows(5, start=500))
    server.stop()
    again = serve(name="again")  # from now on without the option
    assert again.get("/health/ready")["position"] == position + 5


def test_snapshot_can_start_a_new_log(serve, copied, tmp_path):
    data, answer = copied
    remove_log(data)
    newest = max((data / "snapshots").glob("*.mlca"))
    server = serve("--model", newest, data="new")
    found = server.post("/v1/predict", QUESTION)
    assert (found["position"], found["rows"]) == (0, answer)
    assert server.learn(make_rows(3, start=900))["position"] == 3
    server.stop()
    here = serve("--model", newest, "--accept-log", name="here")  # or in the same folder
    assert here.post("/v1/predict", QUESTION)["rows"] == answer
    here.stop()
    assert serve(name="again").post("/v1/predict", QUESTION)["rows"] == answer


def test_start_with_snapshots_of_another_log_is_rejected(fork_server, serve, copied, tmp_path):
    data, _ = copied
    other = serve(data="other")
    other.learn(make_rows(300, seed=1))
    other.stop()
    remove_log(data)
    shutil.copy(tmp_path / "other" / "log.sqlite", data / "log.sqlite")
    assert "of another log" in refusal_of(Server(fork_server, data))


def test_log_that_went_back_and_continued_differently_is_detected(fork_server, serve, copied, tmp_path):
    """Position and generation are not below those of the snapshot, but the checksum differs."""
    data, _ = copied
    shutil.copytree(data, tmp_path / "elsewhere")
    go_back(tmp_path / "elsewhere")
    elsewhere = serve("--accept-log", data="elsewhere")
    elsewhere.learn(make_rows(150, start=1000))
    elsewhere.stop()
    remove_log(data)
    shutil.copy(tmp_path / "elsewhere" / "log.sqlite", data / "log.sqlite")
    said = refusal_of(Server(fork_server, data))
    assert "up to its position 200 the log has other rows than the snapshot" in said


def test_pipes_links_and_copies_among_snapshots_change_nothing(serve, copied):
    """A named pipe once blocked the start forever, and a copy with a later name looked like a lost log."""
    data, answer = copied
    snapshots = data / "snapshots"
    shutil.copy(max(snapshots.glob("*.mlca")), snapshots / "999999999999-000001.mlca")
    os.mkfifo(snapshots / "000000000201-000001.mlca")
    (snapshots / "000000000202-000001.mlca").symlink_to(__file__)
    (snapshots / "odd\n.mlca").write_text("x")
    server = serve()
    assert server.get("/v1/model")["position"] == 200
    assert server.post("/v1/predict", QUESTION)["rows"] == answer


def test_a_folder_without_snapshots_starts_with_any_log(serve, copied):
    data, _ = copied
    go_back(data)
    shutil.rmtree(data / "snapshots")
    assert serve().get("/health/ready")["position"] == 100

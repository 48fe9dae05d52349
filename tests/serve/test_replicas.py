"""Three services, one log in a real PostgreSQL: killed, restarted, with forgotten rows; equal bits at equal
positions."""

import http.client
import json
import shutil
import sqlite3
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.serve.log_streams import DEFAULTS_OF_0_2, fit_log, make_rows, reader_of, state_of
from tests.serve.postgresql_cluster import BINARIES, MISSING, Cable, Cluster
from tests.serve.service_process import Server, ask, until
from tests.serve.table_streams import make_table

# As created by mlca 0.2.0.
OLD_TABLES = {
    "mlca_log": "version INTEGER NOT NULL, identity TEXT NOT NULL, parameters TEXT NOT NULL, start BYTEA, "
    "columns TEXT, position BIGINT NOT NULL, generation BIGINT NOT NULL",
    "mlca_rows": "number BIGSERIAL PRIMARY KEY, id TEXT NOT NULL UNIQUE, position BIGINT UNIQUE, x BYTEA, labels TEXT, "
    "predicted TEXT, at DOUBLE PRECISION",
    "mlca_forgettings": "generation BIGINT PRIMARY KEY, first BIGINT NOT NULL",
}

pytestmark = pytest.mark.skipif(BINARIES is None or not find_spec("psycopg"), reason=MISSING)


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.close()


def log_of(url):
    import psycopg

    with psycopg.connect(url) as connection:
        read = reader_of(connection.execute("SELECT columns FROM mlca_log").fetchone()[0])
        rows = connection.execute(
            "SELECT position, id, x, labels FROM mlca_rows WHERE position IS NOT NULL ORDER BY position"
        ).fetchall()
    return [
        (position, id, None if x is None else read(x), None if labels is None else json.loads(labels))
        for position, id, x, labels in rows
    ]


def served(server, position, generation, tmp_path):
    path = f"/v1/model/file?min_position={position}&min_generation={generation}"
    until(lambda: server.ask("GET", path)[0] == 200, f"position {position}")
    _, content, headers = server.ask("GET", path)
    (tmp_path / "served.mlca").write_bytes(content)
    return state_of(tmp_path / "served.mlca"), int(headers["mlca-position"]), int(headers["mlca-generation"])


class Stream:
    """A client that sends rows to services in turn, and repeats them with the same IDs until they are acknowledged."""

    def __init__(self, ports, start, n):
        self.sent = make_rows(n, start=start)
        self.acknowledged = set()
        self._ports = ports
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self):
        self._thread.join(120)
        assert not self._thread.is_alive()
        assert self.acknowledged == {row["id"] for row in self.sent}

    def _run(self):
        for start in range(0, len(self.sent), 10):
            rows = self.sent[start : start + 10]
            until(lambda rows=rows, start=start: self._send(rows, start), "acknowledged", 100)
            self.acknowledged |= {row["id"] for row in rows}

    def _send(self, rows, start):
        for turn in range(len(self._ports)):
            port = self._ports[(start // 10 + turn) % len(self._ports)]
            try:
                if ask(port, "POST", "/v1/learn", {"rows": rows}, seconds=20)[0] == 200:
                    return True
            except (OSError, http.client.HTTPException):
                continue
        return False


def test_three_services_survive_a_kill_and_a_database_restart(serve, cluster, tmp_path):
    url = cluster.url("three")
    servers = [serve("--log", url, data=f"data{number}") for number in range(3)]
    ports = [server.port for server in servers]
    streams = [Stream(ports[n:] + ports[:n], 10_000 * n, 200) for n in range(3)]
    until(lambda: all(len(stream.acknowledged) >= 50 for stream in streams), "a quarter")
    servers[1].kill()
    until(lambda: all(len(stream.acknowledged) >= 100 for stream in streams), "a half")
    cluster.stop()
    cluster.start()
    for stream in streams:
        stream.join()
    servers[1].start()
    log = log_of(url)
    assert [row[0] for row in log] == list(range(1, 601))  # nothing lost, nothing twice, no gaps
    assert {row[1] for row in log} == set().union(*(stream.acknowledged for stream in streams))
    fitted = fit_log(log, tmp_path / "fitted.mlca")
    for server in servers:
        assert served(server, 600, 0, tmp_path) == (fitted, 600, 0)
    x = {"rows": [{"x": [0.1, -0.2, 0.3]}], "top": 1000, "min_position": 600}
    answers = [server.post("/v1/predict", x) for server in servers]
    assert answers[0] == answers[1] == answers[2]
    # Rows forgotten by one service are forgotten by all; the generation shows which services have done so.
    forgotten = {"ids": [log[100][1], log[500][1]]}
    until(lambda: servers[2].ask("POST", "/v1/forget", forgotten)[0] == 200, "a new connection to the database")
    fitted = fit_log(log_of(url), tmp_path / "fitted.mlca")
    for server in servers:
        assert served(server, 600, 1, tmp_path) == (fitted, 600, 1)
    # A row that waits in one service can be labelled in another.
    kept = {"rows": [{"id": "w", "x": [1, 2, 3]}], "keep": True}
    until(lambda: servers[0].ask("POST", "/v1/predict", kept)[0] == 200, "a new connection to the database")
    assert servers[2].post("/v1/labels", {"rows": [{"id": "w", "labels": ["red"]}]})["position"] == 601
    assert servers[1].post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 601})["position"] == 601


def test_stopped_service_catches_up_from_a_shared_snapshot(serve, cluster, tmp_path):
    url = cluster.url("snapshots")
    first = serve("--log", url, "--vigilance", "0.3", data="first")
    for start in range(0, 6000, 1000):
        first.learn(make_rows(1000, start=start))
    fitted = fit_log(log_of(url), tmp_path / "fitted.mlca", vigilance=0.3)
    assert served(first, 6000, 0, tmp_path) == (fitted, 6000, 0)
    first.stop()  # the service stores its snapshot in the database
    shutil.rmtree(first.data)
    second = serve("--log", url, data="second")
    assert list((second.data / "snapshots").glob("000000006000-*.mlca"))
    assert served(second, 6000, 0, tmp_path) == (fitted, 6000, 0)
    # Forgetting rows removes the shared snapshot in the same commit.
    second.post("/v1/forget", {"ids": ["r17"]})
    second.kill()
    third = serve("--log", url, data="third")
    assert not list((third.data / "snapshots").glob("000000006000-000000.mlca"))
    fitted = fit_log(log_of(url), tmp_path / "fitted.mlca", vigilance=0.3)
    assert served(third, 6000, 1, tmp_path) == (fitted, 6000, 1)


def test_table_rows_give_the_same_model_in_all_services(serve, cluster, tmp_path):
    url = cluster.url("tables")
    servers = [serve("--log", url, data=f"data{number}") for number in range(2)]
    rows = make_table(120)
    for number, start in enumerate(range(0, 120, 15)):
        servers[number % 2].learn(rows[start : start + 15])
    fitted = fit_log(log_of(url), tmp_path / "fitted.mlca")
    for server in servers:
        assert served(server, 120, 0, tmp_path) == (fitted, 120, 0)
    asked = {"rows": [{"x": {"note": "printer crash", "height": 2}}], "top": 1000}
    assert servers[0].post("/v1/predict", asked) == servers[1].post("/v1/predict", asked)


def test_two_services_that_create_a_log_share_one(fork_server, serve, cluster):
    url = cluster.url("begun")
    servers = [serve("--log", url, data=f"data{number}", ready=False) for number in range(3)]
    for number, server in enumerate(servers):
        server.learn([{"id": f"n{number}", "x": [1, 2], "labels": ["a"]}])
    assert [row[0] for row in log_of(url)] == [1, 2, 3]


def test_unreachable_database_is_reported(serve, cluster, tmp_path):
    url = cluster.url("absent")
    server = serve("--log", url)
    server.learn(make_rows(60))
    server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 60})
    cluster.stop()
    try:
        status, answer, headers = server.ask("POST", "/v1/learn", {"rows": make_rows(1, start=60)})
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "no part of this request was accepted" in answer["error"]["problem"]
        assert server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}]})["position"] == 60
        until(lambda: server.ask("GET", "/health/ready")[0] == 503, "not ready")
        assert server.get("/health/live") == {"live": True}
    finally:
        cluster.start()
    until(lambda: server.ask("GET", "/health/ready")[0] == 200, "ready again")
    assert server.learn(make_rows(1, start=60))["position"] == 61


IMPATIENT = """
from mlca.serve import postgresql
postgresql._SILENCE = dict.fromkeys(postgresql._SILENCE, 1.0)
postgresql._OPTIONS["connect_timeout"] = 2
"""


def test_hanging_database_is_reported_and_awaited(serve, cluster, tmp_path):
    """The database accepts connections without responding. Tests the service's own code with shorter limits."""
    url = cluster.url("hanging")
    server = serve("--log", url, before=IMPATIENT)
    rows = make_rows(64)
    server.learn(rows[:60])
    x = {"rows": [{"x": [1, 2, 3]}]}
    server.post("/v1/predict", x | {"min_position": 60})
    with cluster.hanging():
        answers = []
        clients = [
            threading.Thread(target=lambda row=row: answers.append(server.ask("POST", "/v1/learn", {"rows": [row]})))
            for row in rows[60:62]
        ]
        for client in clients:
            client.start()
        until(lambda: server.ask("GET", "/health/ready")[0] == 503, "not ready")
        for client in clients:
            client.join(60)
        assert [(status, headers["Retry-After"]) for status, _, headers in answers] == [(503, "1")] * 2
        assert "the log could not be written" in answers[0][1]["error"]["problem"]
        # Many reads of the log do not delay requests that need none.
        curious = [threading.Thread(target=server.ask, args=("GET", "/v1/rows?id=r1")) for _ in range(12)]
        for thread in curious:
            thread.start()
        assert server.post("/v1/predict", x)["position"] == 60
        assert server.post("/v1/explain", {"x": [1, 2, 3]})["position"] == 60
        assert any(thread.is_alive() for thread in curious)
        assert server.get("/health/live") == {"live": True}
        assert "cannot be read now" in server.get("/v1/model", 503)["error"]["problem"]
        for thread in curious:
            thread.join(60)
        assert server.ask("GET", "/health/ready")[0] == 503
    until(lambda: server.ask("GET", "/health/ready")[0] == 200, "ready again")
    server.learn(rows)  # again with the same IDs, whether or not they were stored
    log = log_of(url)
    assert sorted(row[1] for row in log) == sorted(row["id"] for row in rows)
    assert served(server, 64, 0, tmp_path) == (fit_log(log, tmp_path / "fitted.mlca"), 64, 0)
    with cluster.hanging():
        server.stop()  # the shutdown does not wait for it either


def test_model_follows_a_log_that_went_back(serve, cluster, tmp_path):
    """As after a failover to a standby without the last rows: at equal positions the models stay equal."""
    import psycopg

    url = cluster.url("back")
    server = serve("--log", url)
    server.learn(make_rows(80))
    server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 80})
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM mlca_rows WHERE position > 60")
        connection.execute(
            "UPDATE mlca_log SET position = 60, checksum = (SELECT checksum FROM mlca_rows WHERE position = 60)"
        )
    until(lambda: server.get("/health/ready")["position"] == 60, "back")
    assert server.learn(make_rows(30, start=100))["position"] == 90
    assert served(server, 90, 0, tmp_path) == (fit_log(log_of(url), tmp_path / "fitted.mlca"), 90, 0)
    assert "has gone back to position 60" in server.err.read_text()


def test_model_follows_a_log_that_continued_with_other_rows(serve, cluster, tmp_path):
    """As after a failover to a standby that continued alone: position and generation are not below the model's."""
    import psycopg

    from mlca.serve.log import read_head
    from mlca.serve.log_changes import Learn, carry_out
    from mlca.serve.postgresql import _Session
    from mlca.serve.request_rows import Columns, pack

    url = cluster.url("exchanged")
    server = serve("--log", url)
    server.learn(make_rows(80))
    before = server.get("/v1/model")["checksum"]
    until(lambda: server.get("/health/ready")["position"] == 80, "learned")
    rows = make_rows(20, start=500)
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM mlca_rows WHERE position > 60")
        connection.execute(
            "UPDATE mlca_log SET position = 60, checksum = (SELECT checksum FROM mlca_rows WHERE position = 60)"
        )
        session = _Session(connection)
        packed = pack(np.array([row["x"] for row in rows]))
        change = Learn([row["id"] for row in rows], packed, [tuple(row["labels"]) for row in rows], Columns(3))
        head = carry_out(session, read_head(session), change)[0]
        session.execute("UPDATE mlca_log SET position = ?, checksum = ?", (head.position, head.checksum))
    until(lambda: server.get("/health/ready")["checksum"] == head.checksum.hex() != before, "followed")
    assert served(server, 80, 0, tmp_path) == (fit_log(log_of(url), tmp_path / "fitted.mlca"), 80, 0)
    assert "or has other rows" in server.err.read_text()
    server.stop()
    server.start()
    assert server.get("/health/ready")["checksum"] == head.checksum.hex()


def test_services_at_the_same_position_have_the_same_checksum(serve, cluster):
    url = cluster.url("checksums")
    servers = [serve("--log", url, data=f"data{number}") for number in range(2)]
    for start in range(0, 60, 20):
        position = servers[start // 20 % 2].learn(make_rows(20, start=start))["position"]
        for server in servers:
            server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": position})
        assert servers[0].get("/v1/model")["checksum"] == servers[1].get("/v1/model")["checksum"] is not None


def test_a_database_that_lost_its_log_does_not_start_a_service_with_snapshots(serve, fork_server, cluster):
    server = serve("--log", cluster.url("lost"))
    server.learn(make_rows(80))
    server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 80})
    server.stop()
    other = Server(fork_server, server.data, "--log", cluster.url("empty"), name="other")
    with pytest.raises(AssertionError):
        other.start(ready=False)
    assert "it has position 80, but there is no log" in other.err.read_text()
    assert list((server.data / "snapshots").iterdir())


@pytest.mark.parametrize("version", [1, 2])
def test_a_log_of_an_older_version_gets_checksums(serve, cluster, tmp_path, version):
    import psycopg

    url = cluster.url(f"version{version}")
    source = sqlite3.connect(":memory:")
    source.executescript(Path(__file__).with_name(f"log_of_version_{version}.sql").read_text())
    with psycopg.connect(url) as connection:
        for table, columns in OLD_TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
            for row in source.execute(f"SELECT * FROM {table}"):
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
    source.close()
    log = log_of(url)
    server = serve("--log", url)
    assert repr(log_of(url)) == repr(log)
    expected = fit_log(log, tmp_path / "fitted.mlca", **DEFAULTS_OF_0_2)
    assert served(server, len(log), 1, tmp_path) == (expected, len(log), 1)
    assert serve("--log", url, data="second").get("/v1/model")["checksum"] == server.get("/v1/model")["checksum"]


def test_unconfirmed_commit_is_reported_as_unknown(serve, cluster):
    """The connection breaks during the commit: the rows may be stored, and here they are."""
    url, cable = cluster.url("doubt"), Cable(cluster.port)
    try:
        server = serve("--log", url.replace(str(cluster.port), str(cable.port)))
        server.learn(make_rows(3))
        cable.cut_at_commit = True
        answer = server.post("/v1/learn", {"rows": make_rows(1, start=3)}, 503)
        assert "it is unknown" in answer["error"]["problem"]
        assert "same IDs" in answer["error"]["remedy"]
        found = server.learn(make_rows(1, start=3))
        assert (found["position"], found["duplicates"]) == (4, ["r3"])
        server.stop()
    finally:
        cable.close()

"""Full disks, locked files, cut requests, slow clients, clock changes: the service responds or rejects, and loses
nothing."""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import psutil
import pytest

from mlca.cli import main
from mlca.client import Client
from mlca.serve.tokens import add_token
from tests.serve.log_streams import fit_log, log_of, make_rows, state_of
from tests.serve.service_process import SECONDS, Server, ask, until

LEARN = "POST /v1/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def assert_sound(server, tmp_path, rows):
    """Assert that the log has exactly these rows in order, and that the model equals one trained on them at once."""
    log = log_of(server.data)
    assert [row[1] for row in log] == [row["id"] for row in rows]
    status, content, _ = server.ask("GET", f"/v1/model/file?min_position={len(rows)}")
    assert status == 200, content
    (tmp_path / "served.mlca").write_bytes(content)
    assert state_of(tmp_path / "served.mlca") == fit_log(log, tmp_path / "fitted.mlca")


@pytest.fixture
def small_disk(tmp_path):
    """Mount a disk of 400 kB in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "mlca-test", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_full_disk_rejects_rows_until_there_is_space(fork_server, small_disk, tmp_path):
    server = Server(fork_server, small_disk / "data")
    server.folder = tmp_path
    server.start()
    try:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(150_000))
        taken, number = [], 0
        while True:
            rows = make_rows(50, start=number)
            status, answer, headers = server.ask("POST", "/v1/learn", {"rows": rows})
            if status != 200:
                break
            taken += rows
            number += 50
        assert status == 503
        assert "no part of this request was accepted" in answer["error"]["problem"]
        assert headers["Retry-After"] == "1"
        until(lambda: "full" in server.err.read_text(), "reported to the operator")
        # It continues to respond, and restarts after a kill with all acknowledged rows.
        position = server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}]})["position"]
        assert position <= len(taken)
        server.kill()
        server.start()
        assert [row[1] for row in log_of(server.data)] == [row["id"] for row in taken]
        ballast.unlink()
        server.learn(rows)
        assert_sound(server, tmp_path, taken + rows)
    finally:
        server.end()


def test_operator_log_on_a_full_disk_stops_nothing_else(fork_server, small_disk, tmp_path):
    """Lines may be lost there, but not requests, events or the shutdown."""
    server = Server(fork_server, tmp_path / "data")
    server.folder = small_disk
    server.start()
    try:
        (small_disk / "ballast").write_bytes(bytes(300_000))
        with contextlib.suppress(OSError):
            (small_disk / "more").write_bytes(bytes(400_000))
        for number in range(0, 1500, 5):
            server.learn(make_rows(5, start=number))
        position = server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 1500})["position"]
        assert position == 1500
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while heard.count(b"event: state") < 3:  # the first event answers the request, the others come from the clock
            heard += connection.recv(65536)
        connection.close()
        os.kill(server.pid, signal.SIGTERM)
        assert server.exit_code(60) == 0
        assert len(log_of(server.data)) == 1500
    finally:
        server.end()


def test_stalled_log_collector_blocks_nothing(serve, tmp_path):
    """Standard error is a full pipe: predictions, rows and the shutdown continue."""
    os.mkfifo(tmp_path / "serve-data-1.err")
    collector = os.open(tmp_path / "serve-data-1.err", os.O_RDONLY | os.O_NONBLOCK)
    size = fcntl.fcntl(collector, fcntl.F_SETPIPE_SZ, 4096) if hasattr(fcntl, "F_SETPIPE_SZ") else 2**16
    try:
        server = serve(ready=False)
        until(lambda: server.ask("GET", "/health/ready")[0] == 200, "ready")
        for number in range(size // 50):  # each line has more than a hundred characters
            assert server.ask("GET", "/health/live", seconds=20)[0] == 200, number
        assert server.ask("POST", "/v1/learn", {"rows": make_rows(5)}, seconds=20)[0] == 200
        os.kill(server.pid, signal.SIGTERM)
        assert server.exit_code(60) == 0
    finally:
        os.close(collector)
    assert len(log_of(server.data)) == 5


def test_file_size_limit_acts_like_a_full_disk(serve, tmp_path):
    """Acts like a disk quota, and needs no permission to mount a disk."""
    server = serve(limits={"RLIMIT_FSIZE": 300_000})
    os.kill(server.pid, 0)
    taken, number, status = [], 0, 200
    while status == 200 and number < 20_000:
        rows = make_rows(200, start=number)
        status, answer, _ = server.ask("POST", "/v1/learn", {"rows": rows})
        if status == 200:
            taken += rows
        number += 200
    assert status == 503, answer
    assert server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}]})["rows"]
    assert [row[1] for row in log_of(server.data)] == [row["id"] for row in taken]
    server.kill()
    server._limits = {}
    server.start()
    server.learn(rows)
    assert_sound(server, tmp_path, taken + rows)


def test_unwritable_folder_is_reported_at_the_start(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["serve", "--data", str(tmp_path / "file" / "data"), "--port", "0"]) == 1
    assert "Not a directory" in capsys.readouterr().err
    folder = tmp_path / "readonly"
    folder.mkdir()
    (folder / "log.sqlite").mkdir()  # a file in place of the folder, which blocks even root
    assert main(["serve", "--data", str(folder), "--port", "0"]) == 1
    assert "log.sqlite" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_write_permission_is_reported_at_the_start(tmp_path, capsys):
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o500)
    assert main(["serve", "--data", str(folder), "--port", "0"]) == 1
    assert "Permission denied; the service keeps its log there" in capsys.readouterr().err


def test_read_only_disk_is_reported_and_the_log_continues_once_writable(fork_server, small_disk, tmp_path, capsys):
    """With a log, an empty folder, or no folder: rejected, and continued once the folder is writable."""
    server = Server(fork_server, small_disk / "data")
    server.folder = tmp_path
    try:
        server.start()
        server.learn(make_rows(60))
        server.kill()
        (small_disk / "empty").mkdir()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        for name in ("data", "empty", "none"):
            assert main(["serve", "--data", str(small_disk / name), "--port", "0"]) == 1
            assert "Read-only file system; the service keeps its log there" in capsys.readouterr().err
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        server.start()
        assert_sound(server, tmp_path, make_rows(60))
    finally:
        server.end()


@pytest.mark.parametrize("port", ["99999", "65536", "-1", "80a"])
def test_invalid_port_is_rejected(tmp_path, capsys, port):
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--data", str(tmp_path / "data"), "--port", port])
    expected = f"argument --port: {port!r} is not a port: a whole number from 0 (any free port) to 65535"
    assert (ended.value.code, expected in capsys.readouterr().err) == (2, True)
    assert not (tmp_path / "data").exists()


def test_missing_file_locks_are_reported(tmp_path, capsys, monkeypatch):
    """Windows lacks these locks."""
    import_module("mlca.cli.locking")  # needs no fcntl on Windows, but this machine is not Windows
    monkeypatch.setitem(sys.modules, "fcntl", None)
    for words in (["--data", str(tmp_path), "--port", "0"], ["token", "--tokens", str(tmp_path / "t"), "--name", "a"]):
        assert main(["serve", *words]) == 1
        assert "mlca serve runs on Linux and macOS" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_second_process_on_same_folder_is_rejected(serve, capsys):
    server = serve()
    assert main(["serve", "--data", str(server.data), "--port", "0"]) == 1
    assert "another mlca serve uses this folder" in capsys.readouterr().err
    server.learn(make_rows(3))
    server.kill()  # the lock is released when its owner ends
    server.start()
    assert server.get("/v1/model")["log_position"] == 3


def test_requests_to_a_locked_log_get_503_until_it_is_released(serve, tmp_path):
    server = serve()
    server.learn(make_rows(60))
    connection = sqlite3.connect(server.data / "log.sqlite", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    status, _, headers = server.ask("POST", "/v1/learn", {"rows": make_rows(1, start=60)})
    assert (status, headers["Retry-After"]) == (503, "1")
    until(lambda: "locked" in server.err.read_text(), "reported to the operator")
    assert server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}]})["rows"]
    connection.execute("ROLLBACK")
    connection.close()
    assert server.learn(make_rows(1, start=60))["position"] == 61
    assert_sound(server, tmp_path, make_rows(61))


@pytest.mark.parametrize("cut", [10, 60, 150, 400])
def test_truncated_request_changes_nothing(shared, cut):
    before = shared.get("/v1/model")["log_position"]
    body = json.dumps({"rows": make_rows(5, start=100 * cut)}).encode()
    head = f"{LEARN}Content-Length: {len(body)}\r\n\r\n"
    for linger in (False, True):
        connection = socket.create_connection(("127.0.0.1", shared.port), timeout=30)
        connection.sendall((head.encode() + body)[: len(head) // 2 + cut])
        if linger:  # like a disconnected cable: a reset instead of a regular close
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
    assert shared.get("/v1/model")["log_position"] == before
    chunked = f"{LEARN}Transfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as connection:
        connection.sendall(chunked + b"zz\r\nno number\r\n")
        assert b" 400 " in connection.recv(1000)
    assert shared.get("/v1/model")["log_position"] == before


@pytest.mark.parametrize(
    "begun", ["GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "GET /", f"{LEARN}Transfer-Encoding: chunked\r\n\r\n0\r\nX: "]
)
@pytest.mark.parametrize("more", [b"a" * 1000, b"a\r\nX: "])
def test_endless_headers_fill_no_memory(serve, begun, more):
    """An earlier version used 1.2 GB for 60 MB of small headers before it checked the token."""
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(begun.encode())
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 10_000_000:
                connection.sendall(more * 50)
                sent += len(more) * 50
        assert sent < 10_000_000
    assert server.get("/health/live")["live"]


def test_chunked_body_is_accepted(serve):
    server = serve()
    body = json.dumps({"rows": make_rows(200)}).encode()
    parts = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\nX: y\r\n\r\n"
    assert len(parts) > 2**16
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(f"{LEARN}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode())
        connection.sendall(parts)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b'"learned":200' in answer, answer


def test_two_hundred_slow_clients_block_nothing(serve, tmp_path):
    server = serve()
    body = json.dumps({"rows": make_rows(5, start=5000)}).encode()
    head = f"{LEARN}Content-Length: {len(body)}\r\n\r\n"
    slow = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(200)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(head.encode()[: 30 if number % 2 else None])
        for turn in range(20):
            for connection in slow[::2]:
                connection.sendall(body[turn : turn + 1])
            server.learn(make_rows(5, start=5 * turn))
            server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 5 * turn + 5})
    finally:
        for connection in slow:
            connection.close()
    assert_sound(server, tmp_path, make_rows(100))


def test_large_body_blocks_nothing(shared):
    """Other requests get their responses first, although the large one was sent earlier."""
    body = b'{"rows": [' + b"1.25," * (3 * 2**20) + b"0]}"
    head = f"{LEARN}Content-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as large:
        large.sendall(head + body[:-1])
        shared.get("/health/live")
        large.sendall(body[-1:])
        for _ in range(5):
            shared.get("/health/live")
        assert not select.select([large], [], [], 0)[0]  # no response yet
        assert b" 413 " in large.recv(1000)  # rejected, because it has too many rows


def test_duplicate_name_is_found_quickly(shared):
    """Among a hundred thousand names; an earlier version compared each with all others."""
    names = ", ".join(f'"a{number}": 1' for number in range(100_000))
    for path in ("/v1/learn", "/v1/predict"):
        status, answer, _ = shared.ask("POST", path, f'{{{names}, "rows": [], "rows": []}}'.encode())
        assert (status, answer["error"]["field"]) == (422, "rows")


def test_missing_body_raises_timeout(shared, monkeypatch):
    """In this process, with a shorter limit: the same code, not twenty seconds of waiting."""
    import asyncio

    from starlette.requests import Request

    from mlca.serve import request_bodies
    from mlca.serve.request_errors import RequestError

    async def never():
        await asyncio.sleep(60)

    monkeypatch.setattr(request_bodies, "BODY_SECONDS", 0.05)
    scope = {"type": "http", "mlca.headers": {b"content-type": b"application/json"}, "method": "POST", "path": "/"}
    with pytest.raises(RequestError) as caught:
        asyncio.run(request_bodies.read_body(Request(scope, never)))
    assert caught.value.status == 408


# A different time at every call: 1970 (a board without a clock), 2201, 1979, 2033, 2106.
CLOCK = """
import itertools, time
from mlca.serve import follower

moments = itertools.cycle([0.0, 7.3e9, 3e8, 2e9, 4.3e9])
time.time = lambda: next(moments)
time.time_ns = lambda: int(1e9 * time.time())
follower._SNAPSHOT_ROWS, follower._SNAPSHOT_SECONDS = 20, (0.0, 0.0)
"""


def test_clock_jumps_change_nothing(serve, tmp_path):
    """The clock jumps by centuries with every call: order, model, snapshots, waiting, tokens and events continue."""
    secret = add_token(tmp_path / "tokens.json", "all", ["predict", "learn", "admin"])
    server = serve("--tokens", tmp_path / "tokens.json", before=CLOCK)
    rows = make_rows(120)
    with Client(server.url, secret) as client:
        events = client.events()
        next(events)
        for start in (0, 30):
            position = client.learn(rows[start : start + 30])["position"]
            assert client.predict([{"x": [1, 2, 3]}], min_position=position)["position"] == position
        bare = [{"id": row["id"], "x": row["x"]} for row in rows[60:90]]
        assert client.predict(bare, keep=True)["kept"] == 30
        assert client.labels(rows[60:90])["position"] == 90
        until(lambda: len(client.model()["snapshots"]) > 1, "snapshots")
        states = (event.facts for event in events if event.name == "state")
        assert next(facts["uptime"] for facts in states if facts["log_position"] == 90) < SECONDS
        assert {label["at"] for label in client.model()["labels"]} & {0.0, 7.3e9, 3e8, 2e9, 4.3e9}
        assert client.forget(["r50"], wait=True)["rebuilt"]
        events.close()
        server.kill()
        server._words = (*server._words, "--port", server.port)
        for moment in (0, 7.3e9):  # the times of the files are arbitrary as well
            for path in (tmp_path / "tokens.json", *(server.data / "snapshots").iterdir()):
                os.utime(path, (moment, moment))
            server.start()
            assert client.row_state("r50") == "forgotten"
            server.stop()
        server.start()
        assert client.learn(rows)["learned"] == 30
        position = client.predict([{"x": [1, 2, 3]}], min_position=120)["position"]
        os.utime(tmp_path / "tokens.json", (1, 1))
        assert client.model()["log_position"] == position == 120
    log = log_of(server.data)
    assert [row[1] for row in log] == [row["id"] for row in rows]
    _, content, _ = server.ask("GET", "/v1/model/file", token=secret)
    (tmp_path / "served.mlca").write_bytes(content)
    assert state_of(tmp_path / "served.mlca") == fit_log(log, tmp_path / "fitted.mlca")
    assert not [line for line in server.err.read_text().splitlines() if '"trouble"' in line or '"fault"' in line]


# The second chunk fails after the model has learned it and before its measures are updated.
FAULT = """
from mlca.serve.measures import LogMeasures

calls, add = [], LogMeasures.add

def failing(self, rows):
    calls.append(rows)
    if len(calls) == 2:
        raise MemoryError
    add(self, rows)

LogMeasures.add = failing
"""


def test_failed_model_is_neither_used_nor_saved(serve, tmp_path):
    """The model is ahead of its position: a restart would learn the same rows again."""
    server = serve(before=FAULT)
    server.learn(make_rows(60))
    until(lambda: "learning has stopped: MemoryError" in server.err.read_text(), "reported to the operator")
    for path, body in (("/v1/predict", {"rows": [{"x": [1, 2, 3]}]}), ("/v1/explain", {"x": [1, 2, 3]})):
        status, answer, headers = server.ask("POST", path, body)
        assert (status, headers["Retry-After"]) == (503, "1"), answer
        assert "training of the model has failed" in answer["error"]["problem"]
    assert server.ask("GET", "/v1/model/file")[0] == server.ask("GET", "/health/ready")[0] == 503
    assert server.learn(make_rows(10, start=60))["position"] == 70  # the log is intact
    assert server.get("/v1/model")["log_position"] == 70
    server.stop()
    assert not list((server.data / "snapshots").glob("*.mlca"))
    server._before = ""
    server.start()
    assert_sound(server, tmp_path, make_rows(70))


def test_service_stops_gracefully_under_load(serve, tmp_path):
    server = serve()
    acknowledged, stop = [], threading.Event()

    def load(number):
        while not stop.is_set():
            rows = make_rows(5, start=number)
            number += 5
            try:
                if ask(server.port, "POST", "/v1/learn", {"rows": rows}, seconds=20)[0] == 200:
                    acknowledged.extend(row["id"] for row in rows)
            except OSError:
                return

    threads = [threading.Thread(target=load, args=(100_000 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: len(acknowledged) > 50, "under load")
    server.stop()
    stop.set()
    for thread in threads:
        thread.join(30)
    ids = [row[1] for row in log_of(server.data)]
    assert set(acknowledged) <= set(ids)
    newest = max(path.name for path in (server.data / "snapshots").glob("*.mlca"))
    assert int(newest.split("-")[0]) == len(ids)
    assert not (server.data / "log.sqlite-wal").exists()


def test_parameters_that_differ_from_the_log_are_rejected(serve, capsys):
    server = serve("--vigilance", "0.2")
    server.learn(make_rows(3))
    server.stop()
    assert main(["serve", "--data", str(server.data), "--port", "0", "--vigilance", "0.3"]) == 1
    assert "vigilance=0.2, not 0.3" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--data", str(server.data / "new"), "--port", "0", "--vigilance", "7"])
    assert "--vigilance must be at least 0" in capsys.readouterr().err
    assert main(["serve", "--data", str(server.data / "new"), "--port", "0", "--vote", "frequencies"]) == 1
    assert "vote has no effect without --decision bayes" in capsys.readouterr().err
    server.start()  # omitting the parameters is accepted
    assert server.get("/v1/model")["parameters"]["vigilance"] == 0.2


def test_newer_log_version_is_rejected(serve, capsys):
    server = serve()
    server.stop()
    connection = sqlite3.connect(server.data / "log.sqlite")
    connection.execute("UPDATE mlca_log SET version = 99")
    connection.commit()
    connection.close()
    assert main(["serve", "--data", str(server.data), "--port", "0"]) == 1
    assert "format version 99" in capsys.readouterr().err


def test_command_starts_prints_its_address_and_stops(tmp_path):
    """Started directly, like users start it, without the fork server."""
    command = [sys.executable, "-m", "mlca", "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    with (
        (tmp_path / "err").open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            line = process.stdout.readline()
            assert line.startswith("mlca serve: http://127.0.0.1:"), Path(tmp_path / "err").read_text()
            port = int(line.rsplit(":", 1)[1].rstrip("/\n"))
            assert ask(port, "GET", "/health/live")[0] == 200
            assert ask(port, "POST", "/v1/learn", {"rows": make_rows(2)})[0] == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert len(log_of(tmp_path / "data")) == 2


@pytest.mark.slow
def test_slow_bodies_raise_timeout_in_the_service(serve):
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"POST /v1/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        connection.sendall(b"Content-Length: 100\r\n\r\n{")
        assert b" 408 " in connection.recv(1000)


@pytest.mark.slow
def test_idle_connections_are_closed(serve):
    server = serve()
    whole = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for head, answered in ((b"", False), (b"POST /v1/learn HTTP/1.1\r\nHost: ", False), (whole + whole[:30], True)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(head)
            if answered:
                assert connection.recv(1000).endswith(b'{"live":true}')
            assert connection.recv(1000) == b""
    assert server.get("/health/live") == {"live": True}


@pytest.mark.slow
def test_clients_that_do_not_read_are_disconnected(serve):
    """Each client keeps a response of some megabytes waiting, which would fill the memory permanently."""
    server = serve()
    server.learn([{"id": f"l{i}", "x": [i, 1.0], "labels": [f"{n}" * 60 for n in range(1000)]} for i in range(3)])
    rows = [{"x": [1.0, 2.0]}] * 50
    body = json.dumps({"rows": rows, "top": 1000, "min_position": 3}).encode()
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    process, silent = psutil.Process(server.pid), []
    before = process.num_fds()
    for _ in range(20):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        silent.append(connection)
    until(lambda: process.num_fds() >= before + 20, "all are there")
    until(lambda: process.num_fds() < before + 10, "all are given up", seconds=120)
    for connection in silent:
        connection.close()
    assert server.get("/health/live") == {"live": True}

"""The client and `mlca send`: no duplicates and no losses, whatever happens to the service in between."""

import csv
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas as pd
import psutil
import pytest

from mlca import MLCA
from mlca.cli import main
from mlca.client import Client, ServiceError
from tests.serve.log_streams import log_of, make_rows
from tests.serve.service_process import until


def test_every_method_of_the_client_works(serve):
    server = serve()
    with Client(server.url) as client:
        rows = make_rows(60)
        assert client.learn(rows)["learned"] == 60
        assert client.learn(rows)["duplicates"] == [row["id"] for row in rows]
        position = client.learn([{"x": np.array([1.0, 2.0, 3.0]), "labels": {"red"}}])["position"]
        answer = client.predict([{"x": (1, 2, np.float32(3))}], top=2, min_position=position)
        assert len(answer["rows"][0]["probabilities"]) == 2
        kept = client.predict([{"x": [3, 2, 1]}], keep=True)
        id = kept["rows"][0]["id"]
        assert client.row_state(id) == "waiting"
        assert client.labels([{"id": id, "labels": ("blue",)}])["learned"] == 1
        assert client.row_state(id) == "learned"
        assert client.explain([1, 2, 3])["nodes"]
        assert client.explain(id=id)["nodes"][0]["distance"] == 0
        assert client.forget([id, "a/b c?"], wait=True)["unknown"] == ["a/b c?"]
        assert client.row_state("a/b c?") == "unknown"
        assert client.model()["generation"] == 1


def test_error_names_row_and_remedy(shared):
    client = Client(shared.url)
    client.learn([{"x": [1, 2, 3], "labels": []}])
    with pytest.raises(ServiceError, match=r"row 1: x has 2 numbers.*send 3 numbers") as caught:
        client.learn([{"x": [1, 2, 3], "labels": []}, {"x": [1, 2], "labels": []}])
    assert (caught.value.status, caught.value.row, caught.value.field) == (422, 1, "x")
    client.close()


def test_single_text_is_not_split_into_letters(serve):
    server = serve()
    with Client(server.url) as client:
        client.learn([{"id": id, "x": [1, 2], "labels": ["a"]} for id in ("r", "1", "2", "r12")])
        with pytest.raises(ServiceError, match="labels is missing or not a list"):
            client.learn([{"x": [1, 2], "labels": "storm"}])
        client.predict([{"id": "kept", "x": [1, 2]}], keep=True)
        with pytest.raises(ServiceError, match="labels is missing or not a list"):
            client.labels([{"id": "kept", "labels": "storm"}])
        with pytest.raises(ServiceError, match="ids is not a list"):
            client.forget("r12")
        assert client.model()["generation"] == 0
        assert client.model()["log_position"] == 4


def test_labels_have_the_same_forms_as_in_mlca(serve):
    """A dict means its true keys, whole numbers are names; other types are rejected."""
    server = serve()
    with Client(server.url) as client:
        taken = [{"sea": True, "sun": False}, {"sun": np.True_}, {"sea", "sun"}, np.array(["sea"]), [np.int64(7), 8]]
        taken += [{Enum("Tag", {"SEA": "sea"}, type=str).SEA: True}, [Enum("Code", {"SEVEN": 7}, type=int).SEVEN]]
        client.learn([{"x": [1, 2], "labels": labels} for labels in taken])
        client.predict([{"id": "kept", "x": [1, 2]}], keep=True)
        client.labels([{"id": "kept", "labels": {"sea": True, "wind": False}}])
        assert [sorted(row[3]) for row in log_of(server.data)] == [
            ["sea"], ["sun"], ["sea", "sun"], ["sea"], ["7", "8"], ["sea"], ["7"], ["sea"]
        ]  # fmt: skip
        for labels, told in (
            ([None], "None among"),
            (["sea", float("nan")], "nan among"),
            ([pd.NA], "<NA> among"),
            ([True, False], "True among"),
            ([1.5], "1.5 among"),
            ({"sea": "no"}, "the label 'sea' is mapped to 'no'"),
            ({"sea": None}, "the label 'sea' is mapped to None"),
            ({None: True}, "None among"),
        ):
            with pytest.raises(ValueError, match=told):
                client.learn([{"x": [1, 2], "labels": labels}])
            with pytest.raises(ValueError, match=told):
                client.labels([{"id": "kept", "labels": labels}])
        with pytest.raises(ValueError, match="None among"):
            client.forget(["kept", None])
        with pytest.raises(ServiceError, match="labels is missing or not a list"):
            client.learn([{"x": [1, 2], "labels": None}])
        with pytest.raises(TypeError, match="bytes"):
            client.learn([{"x": [1, 2], "labels": b"sea"}])
        assert client.model()["log_position"] == 8


def test_sets_of_labels_have_the_same_order_in_every_process():
    """Otherwise the order of new labels would differ between runs of the same program."""
    ask = "from mlca.jsonrows import plain_names; print(plain_names({'sun', 'sea', 'fog', 'wind', 'ice', 'rain'}))"
    told = [
        subprocess.run(
            [sys.executable, "-c", ask], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]


def test_connections_end_with_their_threads(shared):
    here = psutil.Process()

    def count():
        return sum(connection.raddr and connection.raddr.port == shared.port for connection in here.net_connections())

    client = Client(shared.url)
    client.model()
    before = count()
    barrier = threading.Barrier(10)

    def ask():
        barrier.wait(60)
        client.model()
        barrier.wait(60)  # all threads have a connection at the same time
        most.append(count())

    most = []
    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert max(most) > before
    until(lambda: count() == before, "closed", seconds=20)
    assert client.model()["ready"]
    client.close()
    assert count() == before - 1


def test_closed_stream_accepts_no_rows(shared):
    with Client(shared.url) as client:
        with client.batches() as stream:
            stream.learn([1, 2, 3], [])
        with pytest.raises(ValueError, match="closed"):
            stream.learn([1, 2, 3], [])
        assert stream.acknowledged == 1


def test_service_below_a_path_is_supported(shared):
    with Client(f"{shared.url}/below/") as client, pytest.raises(ServiceError) as caught:
        client.model()
    assert caught.value.status == 404  # only a proxy would know that address
    with Client(f"{shared.url}/") as client:
        assert client.model()["ready"]


def test_unreachable_service_is_reported_in_time():
    with pytest.raises(ServiceError, match="cannot be reached"):
        Client("http://127.0.0.1:1", patience=0.3).model()
    with pytest.raises(ValueError, match="token"):
        Client("http://127.0.0.1:1", "two\r\nlines")


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "http://", "ftp://a", "http://a:99999", "http://a:b", "http://a..b", "http://[::1",
     "http://a/b c", "http://a b/", "http://a/\xe9", "http://a:0"],
)  # fmt: skip
def test_invalid_address_is_rejected_at_once(url):
    """An earlier version retried some for a minute, and failed on others with a codec error."""
    with pytest.raises(ValueError, match="is not the address of a service; expected something like"):
        Client(url)


@contextmanager
def hostile_service(answer):
    """Answer one connection with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run():
            connection, _ = listener.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(answer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def test_html_page_instead_of_a_response_is_an_error():
    """A proxy may respond with a page that asks for a password, with status 200."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Log in</html>")

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ServiceError, match="the response has status 200 and is not from mlca serve: <html>Log in"):
            Client(f"http://127.0.0.1:{server.server_port}").model()


DEEP = b"[" * 100_000
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (OK + b"\r\n" + DEEP, "status 200 and is not from mlca serve"),
        (OK + b"\r\n[]", "status 200 and is not from mlca serve"),
        (b"HTTP/1.1 422 No\r\n\r\n" + DEEP, "status 422 and is not from mlca serve"),
        (OK + b"Content-Length: 1000\r\n\r\n{}", "cannot be reached"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\nx", "cannot be reached"),
    ],
    ids=["deep", "a list", "a deep error", "cut", "a huge chunk"],
)
def test_hostile_response_raises_service_error(answer, problem):
    with hostile_service(answer) as url, pytest.raises(ServiceError, match=problem):
        Client(url, timeout=5, patience=0.0).row_state("a")


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.learn([{"x": [1.0], "labels": []}]),
        lambda client: client.labels([{"id": "a", "labels": []}]),
        lambda client: client.row_state("a"),
        lambda client: client.model(),
    ],
    ids=["learn", "labels", "row_state", "model"],
)
def test_response_without_its_fields_raises_service_error(ask):
    with (
        hostile_service(OK + b"Content-Length: 2\r\n\r\n{}") as url,
        Client(url) as client,
        pytest.raises(ServiceError, match=r"the response has status 200 and is not from mlca serve: \{\}"),
    ):
        ask(client)


@pytest.mark.parametrize("data", [b"{not json}", b"\xff", b"1", DEEP], ids=["text", "not UTF-8", "a number", "deep"])
def test_hostile_event_raises_service_error(data):
    with hostile_service(OK + b"\r\ndata: " + data + b"\n\n") as url, pytest.raises(ServiceError, match="is not from"):
        next(Client(url).events())


@pytest.mark.parametrize("more", [b"x", b"x\ndata: "], ids=["in one line", "in many lines"])
def test_endless_event_raises_service_error(more, monkeypatch):
    monkeypatch.setattr("mlca.client._LARGEST_EVENT", 5000)
    with (
        hostile_service(OK + b"\r\ndata: " + more * 5000) as url,
        pytest.raises(ServiceError, match="an event of more than 5000 bytes"),
    ):
        next(Client(url).events())


def test_client_continues_after_a_crash(serve, fork_server):
    """Batches in the background, while the service is killed and comes back on the same port."""
    server = serve()
    server._words = ("--port", server.port)
    sent = make_rows(600)
    client = Client(server.url, patience=60)

    def crash():
        for _ in range(2):
            server.kill()
            server.start(ready=False)

    killer = threading.Thread(target=crash)
    with client.batches(size=20, seconds=0.2) as stream:
        for number, row in enumerate(sent):
            stream.learn(row["x"], row["labels"], row["id"])
            if number == 100:
                killer.start()
    killer.join(60)
    assert stream.acknowledged == 600
    assert [row[1] for row in log_of(server.data)] == [row["id"] for row in sent]
    client.close()


def test_batches_report_rejected_rows(shared):
    client = Client(shared.url)
    client.learn([{"x": [1, 2, 3], "labels": []}])
    with pytest.raises(ServiceError, match="labels"), client.batches(size=5) as stream:
        stream.learn([1, 2, 3], [""])
    client.close()


def test_events_continue_after_a_restart(serve):
    server = serve()
    server._words = ("--port", server.port)
    with Client(server.url) as client:
        events = client.events()
        assert next(events).name == "state"
        client.learn([{"x": [1, 2], "labels": ["storm"]}])
        assert next(event for event in events if event.name == "label").facts["label"] == "storm"
        server.kill()
        server.start()
        assert next(event for event in events if event.name == "state").facts["log_position"] == 1
        events.close()


@pytest.fixture
def table(tmp_path):
    def write(n, name="table.csv", start=0):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "c", "tags", "key"])
            for row in make_rows(n, start=start):
                writer.writerow([*row["x"], "|".join(row["labels"]), row["id"]])
        return tmp_path / name

    return write


def send(capsys, path, server, *words):
    code = main(["send", str(path), "--to", server.url, "--labels", "tags", "--json", *words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if code == 0 else err


def test_file_is_sent_once_and_its_growth_later(serve, table, capsys):
    server = serve()
    words = ("--id", "key", "--batch", "30")
    assert send(capsys, table(100), server, *words) == (0, {"sent": 100, "known": 0, "position": 100})
    assert send(capsys, table(130), server, *words) == (0, {"sent": 30, "known": 100, "position": 130})
    log = log_of(server.data)
    assert [(row[1], list(row[2].values()), row[3]) for row in log] == [
        (row["id"], row["x"], row["labels"]) for row in make_rows(130)
    ]
    assert server.get("/v1/model")["columns"]["names"] == ["a", "b", "c"]


def test_generated_ids_have_file_and_number(serve, table, capsys):
    server = serve()
    main(["send", str(table(50)), "--to", server.url, "--labels", "tags,key"])  # invalid flags: rejected
    assert "must be 0 or 1" in capsys.readouterr().err
    write = table(50)
    text = write.read_text().splitlines()
    write.write_text("\n".join(line.rsplit(",", 1)[0] for line in text) + "\n")
    assert send(capsys, write, server, "--predict-first")[1]["sent"] == 50
    assert send(capsys, write, server)[1] == {"sent": 0, "known": 50, "position": 50}
    # Another file with the same name gets other IDs.
    other = table(5, start=900)
    other.write_text("\n".join(line.rsplit(",", 1)[0] for line in other.read_text().splitlines()) + "\n")
    assert send(capsys, other, server)[1]["sent"] == 5
    until(lambda: b"mlca_pairs_total 50" in server.ask("GET", "/metrics")[1], "50 pairs")


def test_invalid_rows_stop_or_are_skipped(serve, table, capsys, tmp_path):
    """A service that began with a model of named numbers accepts numbers only."""
    first = make_rows(20, start=100)
    frame = pd.DataFrame([row["x"] for row in first], columns=["a", "b", "c"])
    MLCA(recency=True).fit(frame, [tuple(row["labels"]) for row in first]).save(tmp_path / "numbers.mlca")
    server = serve("--model", tmp_path / "numbers.mlca")
    path = table(10)
    lines = path.read_text().splitlines()
    lines[4] = "1,many,3,red,r3"
    path.write_text("\n".join(lines) + "\n")
    code, said = send(capsys, path, server, "--id", "key")
    assert code == 1
    assert "line 5: 'b' is not a number" in said
    assert send(capsys, path, server, "--id", "key", "--on-error", "skip")[1]["sent"] == 9
    # The line is corrected later and then sent, although later rows are already known.
    lines[4] = "1,2,3,red,r3"
    path.write_text("\n".join(lines) + "\n")
    assert send(capsys, path, server, "--id", "key")[1] == {"sent": 1, "known": 9, "position": 10}
    assert log_of(server.data)[-1][1] == "r3"
    code, said = send(capsys, path, server, "--id", "nokey")
    assert (code, "'nokey'" in said) == (1, True)


def test_rows_without_an_id_are_rejected_or_skipped(serve, tmp_path, capsys):
    """An earlier version gave all of them the ID None: only the first was learned."""
    server = serve()
    path = tmp_path / "table.jsonl"
    path.write_text("".join(json.dumps({"key": key, "a": 1, "tags": ["x"]}) + "\n" for key in ("r", None, None, "")))
    code, said = send(capsys, path, server, "--id", "key")
    assert (code, "table.jsonl, line 2: 'key' is empty; fill it in, or leave out --id" in said) == (1, True)
    assert send(capsys, path, server, "--id", "key", "--on-error", "skip")[1] == {"sent": 1, "known": 0, "position": 1}
    assert [row[1] for row in log_of(server.data)] == ["r"]


def test_number_too_large_to_learn_is_reported(serve, tmp_path, capsys):
    server = serve()
    path = tmp_path / "table.csv"
    path.write_text("a,tags\n1,x\n1e200,y\n")
    code, said = send(capsys, path, server)
    assert (code, "line 3: 'a' is 1e200, a number outside the supported range; rescale it" in said) == (1, True)


def test_interrupted_send_resumes(serve, table, capsys):
    server = serve()
    rows = [{**row, "x": dict(zip("abc", row["x"], strict=True))} for row in make_rows(2300)]
    server.learn(rows[:1234])
    found = send(capsys, table(2300), server, "--id", "key", "--batch", "500")
    assert found == (0, {"sent": 1066, "known": 1234, "position": 2300})


def test_table_of_tickets_is_sent_unchanged(serve, tmp_path, capsys):
    """Numbers as numbers, text as text, missing values as null; rejected rows are reported by file and line."""
    server = serve()
    lines = ["key,note,hours,zip,tags", "a,the printer is broken again,1.5,007,printer", "b,,,12,"]
    lines += [f"c{i},my invoice number {i} is wrong,{i},{i:03},invoice" for i in range(1000)]
    path = tmp_path / "tickets.csv"
    path.write_text("\n".join(lines) + "\n")
    assert send(capsys, path, server, "--id", "key", "--batch", "500")[1]["sent"] == 1002
    first, second = (row[2] for row in log_of(server.data)[:2])
    assert first == {"note": "the printer is broken again", "hours": 1.5, "zip": "007"}
    assert second == {"note": None, "hours": None, "zip": 12}
    until(lambda: server.get("/v1/model")["columns"]["settled"], "settled")
    kinds = server.get("/v1/model")["columns"]
    assert (kinds["names"], kinds["kinds"]) == (["hours", "note", "zip"], ["numeric", "text", "numeric"])
    path.write_text("\n".join([*lines, "d,help,many,1,", "e,help,2,1,"]) + "\n")
    code, said = send(capsys, path, server, "--id", "key")
    assert (code, "tickets.csv, line 1004: row 2: x['hours'] is not a number" in said) == (1, True)
    assert send(capsys, path, server, "--id", "key", "--on-error", "skip")[1] == {
        "sent": 1, "known": 1002, "position": 1003
    }  # fmt: skip


def test_row_without_features_is_rejected_with_the_correct_form():
    with pytest.raises(ValueError, match=r'a row needs its features as "x", such as'):
        Client("http://127.0.0.1:9").predict([{"wind": 20.0}])

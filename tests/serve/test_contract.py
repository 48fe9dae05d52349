"""The HTTP interface: responses, errors with row, field and remedy, and no partial changes."""

import asyncio
import gc
import json
import shlex
import shutil
import socket
import subprocess
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA, load
from mlca.client import Client
from mlca.serve.events import MOST_LISTENERS, Events
from mlca.serve.request_bodies import MOST_BYTES
from mlca.serve.request_errors import RequestError
from mlca.serve.worker_threads import AT_ONCE, SideWorker
from tests.docs.pages import ROOT, blocks_of
from tests.serve.log_streams import log_of, make_rows
from tests.serve.service_process import until


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_examples_return_the_documented_responses(serve):
    server = serve()
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    block = next(block.text for block in blocks_of(page) if block.text.startswith("$ curl"))
    examples = block.removeprefix("$ ").split("\n$ ")
    assert len(examples) == 2
    for example in examples:
        command, answer = example.strip().rsplit("\n", 1)
        words = shlex.split(command.replace("\\\n", "").replace("http://127.0.0.1:8000", server.url))
        done = subprocess.run([*words, "--silent", "--max-time", "60"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, answer)


def test_stream_is_learned_from_the_first_row(serve):
    server = serve()
    assert server.get("/health/live") == {"live": True}
    first = server.post("/v1/predict", {"rows": [{"id": "a", "x": {"t": 1, "u": 2.5}}], "keep": True})
    nothing = {"id": "a", "labels": [], "probabilities": {}, "novelty": None}
    assert first == {"position": 0, "generation": 0, "rows": [nothing], "kept": 1}
    assert server.get("/v1/rows?id=a") == {"id": "a", "state": "waiting", "position": None}
    assert server.get("/v1/model")["waiting"] == 1
    labelled = server.post("/v1/labels", {"rows": [{"id": "a", "labels": ["calm", "calm"]}]})
    assert labelled == {"position": 1, "generation": 0, "learned": 1, "duplicates": []}
    assert server.get("/v1/rows?id=a") == {"id": "a", "state": "learned", "position": 1}
    learned = server.learn([{"id": "b", "x": {"u": 9, "t": 8}, "labels": []}, {"id": "a", "x": {"t": 0}, "labels": []}])
    assert learned == {"position": 2, "generation": 0, "learned": 1, "duplicates": ["a"]}
    answer = server.post("/v1/predict", {"rows": [{"x": {"t": 1, "u": 2.5}}], "min_position": 2, "top": 1})
    assert answer["position"] == 2
    assert list(answer["rows"][0]["probabilities"]) == ["calm"]
    model = server.get("/v1/model")
    kinds = {"names": ["t", "u"], "kinds": ["numeric", "numeric"], "settled": False}
    assert model["columns"] == {"table": True, "width": 2, **kinds}
    assert [(label["label"], label["count"], label["first"]) for label in model["labels"]] == [("calm", 1, 1)]
    assert [row[2] for row in log_of(server.data)] == [{"t": 1, "u": 2.5}, {"t": 8, "u": 9}]
    explained = server.post("/v1/explain", {"id": "b"})
    assert explained["nodes"][0]["distance"] == 0
    assert explained["probabilities"][0]["label"] == "calm"


def test_predictions_equal_those_of_a_local_learner(shared):
    rows = make_rows(200)
    shared.learn(rows)
    model = MLCA(recency=True).fit(np.array([row["x"] for row in rows]), [tuple(row["labels"]) for row in rows])
    asked = [row["x"] for row in make_rows(30, start=5000)]
    body = {"rows": [{"x": x} for x in asked], "top": 1000, "min_position": 200}
    answer = shared.post("/v1/predict", body)
    probabilities = [[row["probabilities"][name] for name in model.classes_] for row in answer["rows"]]
    assert probabilities == model.predict_proba(np.array(asked)).tolist()
    assert [set(row["labels"]) for row in answer["rows"]] == model.predict_labels(np.array(asked))
    explained = model.explain(asked[0])
    for of_label in shared.post("/v1/explain", {"x": asked[0], "top": 1000})["probabilities"]:
        assert list(of_label["reasons"].items()) == list(explained.reasons(of_label["label"])[:8])
    assert all(list(row["probabilities"].values()) == sorted(row["probabilities"].values(), reverse=True)
               for row in answer["rows"])  # fmt: skip


def test_thresholds_and_objectives_equal_those_of_a_local_learner(serve):
    server, rows = serve(), make_rows(200)
    server.learn(rows)
    labels = [tuple(row["labels"]) for row in rows]
    model = MLCA(recency=True).fit(np.array([row["x"] for row in rows]), labels)
    asked = [row["x"] for row in make_rows(30, start=5000)]
    name = model.classes_[0]
    choices = [{"threshold": 0.3}, {"threshold": {name: 0.05}}, {"objective": "f1"}, {"objective": "hamming"}, {}]
    body = {"rows": [{"x": x} for x in asked], "min_position": 200}
    client = Client(server.url)
    for choice in choices:
        chosen = model.set_params(objective=choice.get("objective", "exact"))
        expected = chosen.predict_labels(np.array(asked), threshold=choice.get("threshold"))
        assert [set(row["labels"]) for row in server.post("/v1/predict", body | choice)["rows"]] == expected
        found = client.predict(body["rows"], min_position=200, **choice)
        assert [set(row["labels"]) for row in found["rows"]] == expected


@pytest.mark.parametrize(
    ("choice", "field", "problem"),
    [
        ({"threshold": 1.5}, "threshold", "at most 1"),
        ({"threshold": "0.5"}, "threshold", "finite number"),
        ({"threshold": None}, "threshold", "finite number"),
        ({"threshold": {"unheard of": 0.5}}, "threshold", "'unheard of', which the model does not know"),
        ({"objective": "accuracy"}, "objective", "must be one of"),
        ({"objective": "f1", "threshold": 0.5}, "threshold", "both"),
        ({"threshold": {"\ud800": 0.5}}, "threshold", "which the model does not know"),
        ({"threshold": {"x" * 10**6: 0.5}}, "threshold", "threshold names the label"),
        ({"objective": ["x" * 10**6]}, "objective", "must be one of"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_thresholds_and_objectives_are_rejected(shared, choice, field, problem):
    error = shared.post("/v1/predict", {"rows": [{"x": [0.0, 0.0, 0.0]}]} | choice, status=422)["error"]
    assert error["field"] == field and problem in error["problem"]
    assert len(error["problem"]) < 500  # the request is not echoed


def test_requests_in_one_call_get_their_own_responses(serve):
    """Concurrent clients, each with its own rows and number of labels, while others send rows to learn."""
    server = serve()
    rows = make_rows(400)
    server.learn(rows[:200])
    X, labels = np.array([row["x"] for row in rows]), [tuple(row["labels"]) for row in rows]
    models = {}  # the model at the position of each response
    model = MLCA(recency=True).partial_fit(X[:200], labels[:200])
    for position in range(200, 401):
        models[position] = model.predict_proba(X), model.predict_labels(X), list(model.classes_)
        if position < 400:
            model.partial_fit(X[position : position + 1], labels[position : position + 1])
    answers = []

    def ask_again_and_again(client):
        for turn in range(40):
            numbers = [(7 * client + 3 * turn + i) % 400 for i in range(1 + client % 3)]
            asked = [{"id": f"{client}-{number}", "x": rows[number]["x"]} for number in numbers]
            body = {"rows": asked, "top": client, "min_position": 200}
            answers.append((client, numbers, server.post("/v1/predict", body)))

    def learn():
        for number in range(200, 400, 4):
            server.learn(rows[number : number + 4])

    threads = [threading.Thread(target=ask_again_and_again, args=(client,)) for client in range(8)]
    threads.append(threading.Thread(target=learn))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == 8 * 40
    for client, numbers, answer in answers:
        probabilities, chosen, names = models[answer["position"]]
        for number, row in zip(numbers, answer["rows"], strict=True):
            assert row["id"] == f"{client}-{number}"
            assert set(row["labels"]) == set(chosen[number])
            best = sorted(zip(-probabilities[number], range(len(names)), strict=True))[:client]
            assert list(row["probabilities"].items()) == [(names[j], -p) for p, j in best]


BAD_ROWS = [
    ({"x": [1, 2, 3], "labels": []}, "id", "UUID"),
    ({"id": 7, "x": [1, 2, 3], "labels": []}, "id", "UUID"),
    ({"id": "", "x": [1, 2, 3], "labels": []}, "id", "1 to 200"),
    ({"id": "n\0", "x": [1, 2, 3], "labels": []}, "id", "Unicode"),
    ({"id": "n", "labels": []}, "x", "list of numbers"),
    ({"id": "n", "x": [1, 2], "labels": []}, "x", "3 numbers"),
    ({"id": "n", "x": "1 2 3", "labels": []}, "x", "list of 3 numbers"),
    ({"id": "n", "x": [1, "2", 3], "labels": []}, "x[1]", "numbers"),
    ({"id": "n", "x": [1, True, 3], "labels": []}, "x[1]", "numbers"),
    ({"id": "n", "x": [1, None, 3], "labels": []}, "x[1]", "numbers"),
    ({"id": "n", "x": [1, 2, 10**400], "labels": []}, "x[2]", "finite"),
    ({"id": "n", "x": [1, 2, -1e200], "labels": []}, "x[2]", "finite"),
    ({"id": "n", "x": {"a": 1, "b": 2, "c": 3}, "labels": []}, "x", "list of 3"),
    ({"id": "n", "x": [1, 2, 3]}, "labels", "[]"),
    ({"id": "n", "x": [1, 2, 3], "labels": "sea"}, "labels", "list of names"),
    ({"id": "n", "x": [1, 2, 3], "labels": ["sea", 3]}, "labels[1]", "list of names"),
    ({"id": "n", "x": [1, 2, 3], "labels": [""]}, "labels[0]", "1 to 200"),
    ({"id": "n", "x": [1, 2, 3], "labels": [], "lables": []}, "lables", "labels"),
    (["n", [1, 2, 3], []], "", "id"),
]


@pytest.mark.parametrize(("bad", "field", "remedy"), BAD_ROWS, ids=lambda value: str(value)[:30])
def test_bad_row_is_named_and_nothing_is_learned(shared, bad, field, remedy):
    shared.learn([{"id": "good", "x": [1, 2, 3], "labels": []}])
    before = shared.get("/v1/model")["log_position"]
    answer = shared.learn([{"id": "innocent", "x": [1, 2, 3], "labels": []}, bad], status=422)
    assert (answer["error"]["row"], answer["error"]["field"]) == (1, field)
    assert remedy in answer["error"]["remedy"]
    assert shared.get("/v1/rows?id=innocent")["state"] == "unknown"
    assert shared.get("/v1/model")["log_position"] == before


def test_two_first_requests_agree_on_columns(serve):
    """Both are checked while there are no columns: one decides the columns, and the other is rejected."""
    server = serve()
    statuses = []

    def learn(name, x):
        statuses.append(server.ask("POST", "/v1/learn", {"rows": [{"id": name, "x": x, "labels": ["a"]}]})[0])

    firsts = ([1.0, 1.0], [1.0, 1.0, 1.0], {"t": 1.0})
    threads = [threading.Thread(target=learn, args=(f"n{n}", firsts[n % 3])) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert set(statuses) <= {200, 422}
    assert len({(type(row[2]), len(row[2])) for row in log_of(server.data)}) == 1
    assert len(log_of(server.data)) == statuses.count(200)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b"null", 422),
        (b"\xff\xfe", 422),
        (b'{"rows": []}', 422),
        (b'{"rows": 3}', 422),
        (b'{"rows": [{"id": "n", "x": [NaN, 1, 1], "labels": []}]}', 422),
        (b'{"rows": [{"id": "n", "x": [1e999, 1, 1], "labels": []}]}', 422),
        (b'{"rows": [{"id": "\\ud800", "x": [1, 1, 1], "labels": []}]}', 422),
        (b'{"rows": [{"id": "n", "x": [1, 1, 1], "labels": ["\\udfff"]}]}', 422),
        (b'{"rows": [{"id": "n", "\\ud800": 1}]}', 422),
        (b'{"\\ud800": 1}', 422),
        (b'{"rows": [{"id": "n", "id": "m", "x": [1, 1, 1], "labels": []}]}', 422),
        (b'{"rows": [], "rows": [{"id": "n", "x": [1, 1, 1], "labels": []}]}', 422),
        (b'{"rows": ' + b"[" * 100_000, 422),
        (b'{"rows": [{"id": "n", "x": [' + b"9" * 5000 + b', 1, 1], "labels": []}]}', 422),
        (json.dumps({"rows": [{"id": str(i), "x": [1, 1, 1], "labels": []} for i in range(5001)]}).encode(), 413),
        (b" " * (17 * 2**20), 413),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_invalid_bodies_are_rejected(shared, body, status):
    shared.learn([{"id": "good", "x": [1, 2, 3], "labels": []}])
    found, answer, headers = shared.ask("POST", "/v1/learn", body)
    assert found == status
    assert answer["error"]["remedy"]
    # The rest of a body that is too long would be read as the next request.
    assert (headers.get("connection") == "close") == (status == 413)


@settings(max_examples=60)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["rows", "id", "x", "labels", "top", "keep", "wait", "ids", "z"]), inner),
                    max_leaves=12),
       st.sampled_from(["/v1/learn", "/v1/labels", "/v1/predict", "/v1/explain", "/v1/forget"]))  # fmt: skip
def test_any_json_body_gets_an_expected_status(shared, body, path):
    status, answer, _ = shared.ask("POST", path, json.dumps(body).encode())
    assert status in (200, 422, 503), answer


def test_wrong_methods_types_and_addresses_are_rejected(shared):
    status, _, headers = shared.ask("GET", "/v1/learn")
    assert (status, headers["Allow"]) == (405, "POST")
    status, content, headers = shared.ask("HEAD", "/")
    assert (status, content) == (200, b"")
    assert int(headers["Content-Length"]) > 10_000
    for address in ("/v2/learn", "/v1/learn/", "/v1", "//", "/v1/%6cearn%00"):
        assert shared.ask("GET", address)[0] == 404
    assert shared.ask("POST", "/v1/learn", b"{}", headers={"Content-Type": "text/plain"})[0] == 415
    status, answer, headers = shared.ask("GET", "/nowhere", headers={"X-Request-Id": "abc-1"})
    assert (status, answer["request"], headers["X-Request-Id"]) == (404, "abc-1", "abc-1")
    assert shared.ask("GET", "/nowhere", headers={"X-Request-Id": "<script>"})[2]["X-Request-Id"] != "<script>"


def test_min_position_reads_own_writes(serve):
    server = serve()
    for number in range(30):
        position = server.learn(make_rows(3, start=3 * number))["position"]
        answer = server.post("/v1/predict", {"rows": [{"x": [0, 0, 0]}], "min_position": position})
        assert answer["position"] >= position
    # Waiting for a position that is never reached ends.
    status, answer, headers = server.ask("POST", "/v1/predict", {"rows": [{"x": [0, 0, 0]}], "min_position": 10**6})
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "position 90" in answer["error"]["problem"]


@pytest.mark.parametrize("asked", ["9" * 5000, "9" * 19, "-1", "1.0", "x", "", "%D9%A3", "1&min_position=x"])
def test_invalid_positions_in_addresses_are_rejected(shared, asked):
    shared.learn([{"id": "good", "x": [1, 2, 3], "labels": []}])
    status, answer, _ = shared.ask("GET", f"/v1/model/file?min_position={asked}")
    assert (status, answer["error"]["field"]) == (422, "min_position")


def test_large_requests_are_parsed_like_small_ones(serve):
    """Another thread parses them in smaller steps; errors and responses are the same."""
    server = serve()
    rows = [{**row, "x": row["x"] + [0.0] * 197} for row in make_rows(300)]
    assert len(json.dumps(rows)) > AT_ONCE
    assert server.learn(rows)["learned"] == 300
    assert [row[2].tolist() for row in log_of(server.data)] == [row["x"] for row in rows]
    bare = [{"id": f"p{row['id']}", "x": row["x"]} for row in rows]
    body = {"rows": bare, "top": 3, "min_position": 300}
    large = server.post("/v1/predict", body | {"keep": True})
    small = [server.post("/v1/predict", body | {"rows": bare[start : start + 20]}) for start in range(0, 300, 20)]
    assert large["rows"] == [row for answer in small for row in answer["rows"]]
    assert large["kept"] == server.get("/v1/model")["waiting"] == 300
    labels = [{"id": row["id"], "labels": [f"{n}" * 60 for n in range(20)]} for row in bare]
    assert len(json.dumps(labels)) > AT_ONCE
    assert server.post("/v1/labels", {"rows": labels})["position"] == 600
    bad = {"id": "bad", "x": [*bare[0]["x"][:-1], "1"], "labels": []}
    answer = server.learn([*({**row, "id": f"n{row['id']}"} for row in rows), bad], status=422)
    assert (answer["error"]["row"], answer["error"]["field"]) == (300, "x[199]")
    good = json.dumps({"rows": rows})
    for text in (good[:-1], good.replace("0.0]", "NaN]", 1), good.replace("0.0]", "9" * 5000 + "]", 1), f"[{good}]"):
        assert server.ask("POST", "/v1/learn", text.encode())[0] == 422
    assert server.ask("POST", "/v1/learn", b'{"rows": [' + b"[]," * 600_000 + b"[]]}")[0] == 413
    assert server.get("/v1/model")["log_position"] == 600


def test_response_beyond_the_limit_is_rejected(serve):
    server = serve()
    server.learn([{"id": "a", "x": [1, 2], "labels": [f"l{n}" for n in range(1000)]}])
    body = {"rows": [{"x": [1, 2]}] * 1001, "top": 1000, "min_position": 1}
    answer = server.post("/v1/predict", body, 413)
    assert "smaller top" in answer["error"]["remedy"]
    assert len(server.post("/v1/predict", body | {"top": 9})["rows"]) == 1001


def test_byte_order_mark_is_skipped(shared):
    body = "\ufeff" + json.dumps({"rows": [{"x": [1, 2, 3]}]})
    assert shared.ask("POST", "/v1/predict", body.encode())[0] == 200
    assert shared.ask("POST", "/v1/predict", body.encode("utf-16"))[0] == 422


def test_downloaded_model_continues_in_python(shared, tmp_path):
    position = shared.learn(make_rows(60, start=8000))["position"]
    status, content, headers = shared.ask("GET", f"/v1/model/file?min_position={position}")
    assert status == 200
    (tmp_path / "model.mlca").write_bytes(content)
    model = load(tmp_path / "model.mlca")
    assert model.n_seen_ == int(headers["mlca-position"])
    model.partial_fit([[1.0, 2.0, 3.0]], [("new",)])
    until(lambda: not list(shared.data.rglob("*.export.part")), "the file that was sent is gone")
    # No partial download: a later request for the rest could get another model.
    status, content, headers = shared.ask("GET", "/v1/model/file", headers={"Range": "bytes=7-"})
    assert (status, headers["Accept-Ranges"], content[:2]) == (200, "none", b"PK")


def test_training_continues_from_a_model(serve, tmp_path):
    rows = make_rows(80)
    X, labels = np.array([row["x"] for row in rows]), [tuple(row["labels"]) for row in rows]
    start = MLCA(vigilance=0.1).fit(X[:60], labels[:60])
    start.save(tmp_path / "start.mlca")
    server = serve("--model", tmp_path / "start.mlca")
    server.learn(rows[60:])
    asked = {"rows": [{"x": X[3].tolist()}], "top": 1000, "min_position": 20}
    expected = start.partial_fit(X[60:], labels[60:]).predict_proba(X[3:4])[0].tolist()
    for _ in range(2):
        answer = server.post("/v1/predict", asked)
        assert [answer["rows"][0]["probabilities"][name] for name in start.classes_] == expected
        server.kill()
        server.start()
    server.stop()


def test_kept_predictions_are_measured_once_their_labels_arrive(serve):
    server = serve()
    server.learn([{"id": f"s{i}", "x": [float(i % 2), 0.0], "labels": [["even", "odd"][i % 2]]} for i in range(60)])
    rows = [{"id": f"p{i}", "x": [float(i % 2), 0.0]} for i in range(20)]
    answer = server.post("/v1/predict", {"rows": rows, "keep": True, "min_position": 60})
    truth = [["even"], ["odd"]] * 9 + [["odd"], ["odd", "new"]]
    server.post("/v1/labels", {"rows": [{"id": f"p{i}", "labels": truth[i]} for i in range(20)]})
    pairs = [(set(row["labels"]), set(labels)) for row, labels in zip(answer["rows"], truth, strict=True)]
    exact = sum(a == b for a, b in pairs) / 20
    f1 = sum(2 * len(a & b) / (len(a) + len(b)) for a, b in pairs) / 20
    hits, wrong = sum("odd" in a & b for a, b in pairs), sum("odd" in a ^ b for a, b in pairs)
    assert 0 < exact < 1
    for turn in range(2):
        server.post("/v1/predict", {"rows": [{"x": [0, 0]}], "min_position": 80})
        metrics = server.ask("GET", "/metrics")[1].decode()
        assert "mlca_pairs_total 20" in metrics
        assert f'mlca_prequential_exact_match{{over="all"}} {exact}' in metrics
        assert float(metrics.split('mlca_prequential_f1{over="recent"} ')[1].split()[0]) == pytest.approx(f1)
        labels = {label["label"]: label for label in server.get("/v1/model")["labels"]}
        assert labels["new"]["first"] == 80
        assert labels["odd"]["f1"] == pytest.approx(2 * hits / (2 * hits + wrong))
        (server.stop, server.kill)[turn]()  # restart from a snapshot, and from the log
        if turn == 0:
            server.start()


def test_events_report_states_and_new_labels(serve):
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""

        def hears(what):
            nonlocal heard
            heard += connection.recv(65536)
            return what in heard

        until(lambda: hears(b"event: state"), "the first state")
        server.learn([{"id": "a", "x": [1, 2], "labels": ["storm"]}])
        until(lambda: hears(b'event: label\ndata: {"label": "storm", "position": 1}'), "the new label")
        until(lambda: hears(b'"log_position": 1'), "the next state")
        server.post("/v1/forget", {"ids": ["a"]})
        until(lambda: hears(b"event: rebuilt"), "rebuilt")
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as other:
            other.sendall(b"HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")  # after its end, another can follow
            other.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answers = b""
            while b'{"live":true}' not in answers:
                answers += other.recv(65536)
        server.stop()  # although there is a listener


def test_number_of_waiting_large_requests_is_limited():
    async def run():
        side, begin = SideWorker(), threading.Event()
        waiting = [asyncio.create_task(side(MOST_BYTES, begin.wait, 60)) for _ in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as caught:
            await side(MOST_BYTES, begin.wait, 60)
        assert (caught.value.status, await side(9, len, "small")) == (429, 5)
        begin.set()
        assert all(await asyncio.gather(*waiting))
        assert await side(MOST_BYTES, len, "again") == 5
        side.stop()

    asyncio.run(run())


def test_number_of_listeners_is_limited():
    events = Events()
    streams = [events.listen({}) for _ in range(MOST_LISTENERS)]
    with pytest.raises(RequestError) as caught:
        events.listen({})
    assert caught.value.status == 429
    streams.pop()  # as if the client disconnected before the stream began
    gc.collect()
    streams.append(events.listen({}))
    events.publish("state", {})
    with pytest.raises(RequestError):
        events.listen({})

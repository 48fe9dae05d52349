"""Access control: tokens, scopes, hosts, origins, and a log without row data."""

import asyncio
import json
import re
import socket
import stat
import threading

import pytest

from mlca.cli import main
from mlca.serve import tokens as tokens_module
from mlca.serve.request_errors import RequestError
from mlca.serve.tokens import TokenGuard, Tokens, add_token
from tests.serve.log_streams import make_rows
from tests.serve.service_process import until

ROUTES = [
    ("POST", "/v1/predict", {"rows": [{"x": [1, 2, 3]}]}, "predict"),
    ("POST", "/v1/explain", {"x": [1, 2, 3]}, "predict"),
    ("POST", "/v1/learn", {"rows": [{"id": "n", "x": [1, 2, 3], "labels": []}]}, "learn"),
    ("POST", "/v1/labels", {"rows": [{"id": "r0", "labels": []}]}, "learn"),
    ("POST", "/v1/forget", {"ids": ["n"]}, "admin"),
    ("GET", "/v1/rows?id=n", None, "learn"),
    ("GET", "/v1/model", None, "predict"),
    ("GET", "/v1/model/file", None, "admin"),
    ("GET", "/metrics", None, "predict"),
    ("GET", "/v1/events", None, "predict"),
]
OPEN = ["/health/live", "/health/ready", "/openapi.json", "/"]


# Responses to wrong tokens are delayed only briefly here: these tests send many.
SHORT_HOLD = "from mlca.serve import tokens; tokens.HOLD_SECONDS = 0.001"


@pytest.fixture(scope="module")
def guarded(fork_server, tmp_path_factory):
    """A service that requires tokens, and a token of each scope."""
    from tests.serve.service_process import Server

    folder = tmp_path_factory.mktemp("guarded")
    tokens = {scope: add_token(folder / "tokens.json", scope, [scope]) for scope in ("predict", "learn", "admin")}
    server = Server(fork_server, folder / "data", "--tokens", folder / "tokens.json", before=SHORT_HOLD).start()
    server.post("/v1/learn", {"rows": make_rows(60)}, token=tokens["learn"])
    yield server, tokens, folder / "tokens.json"
    server.end()


@pytest.mark.parametrize(("method", "path", "body", "scope"), ROUTES, ids=[route[1] for route in ROUTES])
def test_every_route_requires_its_own_scope(guarded, method, path, body, scope):
    server, tokens, _ = guarded
    for wrong in (None, "", "mlca_guess", tokens[scope][:-1], tokens[scope].upper()):
        status, answer, headers = server.ask(method, path, body, token=wrong)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer"), answer
    for other in tokens:
        if other != scope:
            status, answer, _ = server.ask(method, path, body, token=tokens[other])
            assert status == 403, answer
    if path != "/v1/events":  # a stream that never ends
        assert server.ask(method, path, body, token=tokens[scope])[0] == 200


def test_keep_needs_the_scope_learn(guarded, serve, tmp_path):
    """With a token for predictions only, no rows are written, no IDs are used, and the columns stay undecided."""
    server, tokens, path = guarded
    kept = {"rows": [{"id": "order-17", "x": [9, 9, 9]}], "keep": True}
    status, answer, _ = server.ask("POST", "/v1/predict", kept, token=tokens["predict"])
    assert (status, answer["error"]["problem"]) == (403, "this token lacks the scope 'learn', which keep needs")
    assert server.get("/v1/rows?id=order-17", token=tokens["learn"])["state"] == "unknown"
    both = add_token(path, "keeper", ["predict", "learn"])
    assert server.post("/v1/predict", kept, token=both)["kept"] == 1
    empty = serve("--tokens", path)
    assert empty.ask("POST", "/v1/predict", kept, token=tokens["predict"])[0] == 403
    assert empty.get("/v1/model", token=tokens["predict"])["columns"] is None


def test_public_routes_reveal_nothing(guarded):
    server, _, _ = guarded
    for path in OPEN:
        status, content, headers = server.ask("GET", path)
        assert status == 200
        assert b"red" not in (content if isinstance(content, bytes) else b"") or path == "/"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        assert "Server" not in headers
    described = {path for path, methods in server.get("/openapi.json")["paths"].items()}
    assert {route[1].partition("?")[0] for route in ROUTES} <= described


def test_removed_token_is_revoked(guarded):
    server, _, path = guarded
    secret = add_token(path, "guest", ["predict"])
    until(lambda: server.ask("GET", "/v1/model", token=secret)[0] == 200, "the new token is known")
    plain = json.loads(path.read_text())
    plain["tokens"] = [token for token in plain["tokens"] if token["name"] != "guest"]
    path.write_text(json.dumps(plain))
    until(lambda: server.ask("GET", "/v1/model", token=secret)[0] == 401, "revoked")


class HeldAnswers:
    """A replacement for `asyncio.sleep` that delays responses until they are released."""

    def __init__(self):
        self.seconds, self.released = [], asyncio.Event()

    async def __call__(self, seconds):
        self.seconds.append(seconds)
        await self.released.wait()


@pytest.fixture
def secret(tmp_path):
    return add_token(tmp_path / "tokens.json", "user", ["predict"])


@pytest.fixture
def guard(tmp_path, secret):
    failures = []
    guard = TokenGuard(Tokens(tmp_path / "tokens.json"), lambda address, count: failures.append((address, count)))
    guard.told = failures
    return guard


def test_wrong_tokens_are_counted_per_address_and_delayed(guard, secret, monkeypatch):
    async def guess():
        held = HeldAnswers()
        monkeypatch.setattr(tokens_module.asyncio, "sleep", held)
        for number in range(tokens_module.FREE_FAILURES):
            assert await guard.holder(f"guess {number}", "192.0.2.1") is None
        assert held.seconds == []
        held_answers = [
            asyncio.ensure_future(guard.holder("guess", "192.0.2.1")) for _ in range(tokens_module.MOST_HELD)
        ]
        while len(held.seconds) < len(held_answers):
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        assert set(held.seconds) == {tokens_module.HOLD_SECONDS}
        # Too many responses to this address are delayed: further ones are rejected at once.
        with pytest.raises(RequestError) as caught:
            await guard.holder("guess", "192.0.2.1")
        assert (caught.value.status, caught.value.retry_after) == (429, 1)
        # A client behind the same address is not locked out, even if it never came before.
        assert (await guard.holder(secret, "192.0.2.1")).name == "user"
        # Other addresses notice nothing, and nothing was counted for them.
        assert await guard.holder("guess", "192.0.2.2") is None
        held.released.set()
        assert await asyncio.gather(*held_answers) == [None] * len(held_answers)

    asyncio.run(asyncio.wait_for(guess(), 60))
    total = tokens_module.FREE_FAILURES + tokens_module.MOST_HELD + 1
    assert guard.told == [*(("192.0.2.1", count) for count in range(1, total + 1)), ("192.0.2.2", 1)]


def test_addresses_of_one_ipv6_network_are_counted_together_and_old_failures_forgotten(guard, monkeypatch):
    now = 0.0
    monkeypatch.setattr(tokens_module.time, "monotonic", lambda: now)
    asyncio.run(guard.holder("guess", "2001:db8::1"))
    asyncio.run(guard.holder("guess", "2001:db8::ffff:2"))
    asyncio.run(guard.holder("guess", "2001:db8:0:1::1"))
    asyncio.run(guard.holder("guess", "::ffff:192.0.2.9"))
    now = tokens_module.FORGIVEN_AFTER + 1
    asyncio.run(guard.holder("guess", "2001:db8::1"))
    assert guard.told == [
        ("2001:db8::/64", 1),
        ("2001:db8::/64", 2),
        ("2001:db8:0:1::/64", 1),
        ("192.0.2.9", 1),
        ("2001:db8::/64", 1),
    ]


def test_number_of_remembered_addresses_is_bounded(guard, monkeypatch):
    monkeypatch.setattr(tokens_module, "_MOST_REMEMBERED", 3)

    async def come():
        for number in range(5):
            await guard.holder("guess", f"192.0.2.{number}")

    asyncio.run(come())
    assert len(guard._failures) == 3


def test_wrong_tokens_are_logged_and_counted_and_requests_without_one_are_not(serve, tmp_path):
    secret = add_token(tmp_path / "tokens.json", "user", ["predict"])
    server = serve("--tokens", tmp_path / "tokens.json", before=SHORT_HOLD)
    for _ in range(3):
        assert server.ask("GET", "/v1/model")[0] == 401
    for number in range(30):
        assert server.ask("GET", "/v1/model", token=f"mlca_{number}")[0] == 401
    assert b"mlca_wrong_tokens_total 30\n" in server.ask("GET", "/metrics", token=secret)[1]
    server.stop()
    lines = [json.loads(line) for line in server.err.read_text().splitlines()]
    wrong = [(line["address"], line["failures"]) for line in lines if line["event"] == "wrong token"]
    assert wrong == [("127.0.0.1", count) for count in range(1, 31)]
    assert "mlca_0" not in server.err.read_text()


def test_explaining_a_row_of_the_log_requires_the_scope_learn(guarded):
    server, tokens, path = guarded
    assert server.ask("POST", "/v1/explain", {"x": [1, 2, 3]}, token=tokens["predict"])[0] == 200
    status, answer, _ = server.ask("POST", "/v1/explain", {"id": "r7"}, token=tokens["predict"])
    assert (status, answer["error"]["problem"]) == (
        403,
        "this token lacks the scope 'learn', which an explanation by id needs",
    )
    # The error does not reveal whether there is such a row.
    assert server.ask("POST", "/v1/explain", {"id": "never"}, token=tokens["predict"])[0] == 403
    both = add_token(path, "both", ["predict", "learn"])
    assert server.ask("POST", "/v1/explain", {"id": "r7"}, token=both)[0] == 200


@pytest.mark.parametrize(
    "damage",
    [
        None,
        "",
        "{",
        "[]",
        "\xff",
        '{"format": "mlca tokens", "version": 2, "tokens": []}',
        '{"format": "mlca tokens", "version": 1, "tokens": [{"name": "a", "scopes": "predict", "sha256": "0"}]}',
        '{"format": "mlca tokens", "version": 1, "tokens": [{"name": "a", "scopes": ["root"], "sha256": ""}]}',
        '{"format": "mlca tokens", "version": 1, "tokens": {"name": 3}}',
    ],
)
def test_damaged_token_file_rejects_all_requests(guarded, damage):
    server, tokens, path = guarded
    good = path.read_bytes()
    try:
        if damage is None:
            path.unlink()
        else:
            path.write_text(damage, encoding="latin-1")
        until(lambda: server.ask("GET", "/v1/model", token=tokens["predict"])[0] == 503, "noticed")
        status, answer, headers = server.ask("GET", "/v1/model", token=tokens["predict"])
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "tokens" in answer["error"]["problem"]
        assert server.ask("GET", "/v1/model")[0] == 401
        assert server.ask("GET", "/health/live")[0] == 200
    finally:
        path.write_bytes(good)
    until(lambda: server.ask("GET", "/v1/model", token=tokens["predict"])[0] == 200, "healed")
    until(lambda: "the tokens cannot be read" in server.err.read_text(), "reported to the operator")


def test_messages_of_the_http_server_are_json_lines(serve):
    server = serve()
    for nonsense in (
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(nonsense)
            assert connection.recv(1000)
    server.stop()
    lines = [json.loads(line) for line in server.err.read_text().splitlines()]
    assert "uvicorn.error" in {line.get("source") for line in lines}
    assert all(line["at"].endswith("Z") for line in lines)


def test_token_file_has_hashes_only_and_owner_permissions(tmp_path, capsys):
    path = tmp_path / "tokens.json"
    assert main(["serve", "token", "--tokens", str(path), "--name", "a", "--scopes", "predict,learn"]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Tokens(path).holder(secret).scopes == {"predict", "learn"}
    assert main(["serve", "token", "--tokens", str(path), "--name", "a"]) == 1
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "token", "--tokens", str(path), "--name", "b", "--scopes", "root"])
    assert stopped.value.code == 2
    path.write_text('{"format": "mlca tokens", "version": 1, "tokens": [{"name": "x"}]}')
    with pytest.raises(ValueError, match="not a token file"):
        Tokens(path)


def test_tokens_created_at_the_same_time_are_all_kept(tmp_path):
    path = tmp_path / "tokens.json"
    barrier, secrets = threading.Barrier(8), {}

    def make(number):
        barrier.wait(60)
        for turn in range(5):
            name = f"{number}-{turn}"
            secrets[name] = add_token(path, name, ["predict"])

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    tokens = Tokens(path)
    assert len(secrets) == 40
    assert {name: tokens.holder(secret).name for name, secret in secrets.items()} == {name: name for name in secrets}
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_tokens_only_local_requests_are_accepted(shared, fork_server, tmp_path, capsys):
    assert main(["serve", "--data", str(tmp_path / "d"), "--host", "0.0.0.0"]) == 1
    assert "--tokens FILE" in capsys.readouterr().err
    assert "only requests from this machine" in shared.out.read_text()
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        assert shared.ask("GET", "/v1/model", headers={"Host": host})[0] == 421
    for host in ("localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:80"):
        assert shared.ask("GET", "/v1/model", headers={"Host": host})[0] == 200


def send_raw(server, *headers, target="/v1/model"):
    """Request the model with these header lines and no others; return the status."""
    request = "\r\n".join([f"GET {target} HTTP/1.1", *headers, "Connection: close", "", ""])
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request.encode())
        return int(connection.recv(1000).split()[1])


def test_without_tokens_a_request_needs_exactly_one_host_header(shared):
    assert send_raw(shared, "Host: 127.0.0.1") == 200
    assert send_raw(shared, "Host: evil.example", "Host: 127.0.0.1") == 400
    assert send_raw(shared, "Host: 127.0.0.1", "Host: evil.example") == 400
    assert send_raw(shared, "Host: 127.0.0.1", "Host: 127.0.0.1") == 400
    assert send_raw(shared) == 421


def test_host_of_a_complete_address_must_be_the_host_header(shared):
    """According to HTTP, the host of the address counts and the header is ignored."""
    assert send_raw(shared, "Host: 127.0.0.1", target="http://127.0.0.1/v1/model") == 200
    assert send_raw(shared, "Host: evil.example", target="http://evil.example/v1/model") == 421
    for address in (
        "http://evil.example/v1/model",
        "http://127.0.0.1@evil.example/v1/model",
        "HTTP://evil.example:80/",
    ):
        assert send_raw(shared, "Host: 127.0.0.1", target=address) == 400
    assert send_raw(shared, "Host: 127.0.0.1", target="/v1/model?of=http://evil.example/") == 200


def test_security_headers_must_not_be_repeated(guarded):
    """It is ambiguous which of two would count: proxies and servers differ."""
    server, tokens, _ = guarded
    right, wrong = f"Authorization: Bearer {tokens['predict']}", "Authorization: Bearer mlca_wrong"
    assert send_raw(server, "Host: x", right) == 200
    assert send_raw(server, "Host: x", wrong, right) == 400
    assert send_raw(server, "Host: x", right, wrong) == 400
    assert send_raw(server, "Host: x", "Host: y", right) == 400
    assert send_raw(server, "Host: x", "Origin: http://x", "Origin: http://evil.example", right) == 400


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    "framing",
    [
        *(
            f"{coding}\r\nContent-Length: 5"
            for coding in (CHUNKED, "transfer-encoding : chunked", f"{CHUNKED}, identity")
        ),
        *(f"{CHUNKED}\r\nTransfer-Encoding: x\r\nContent-Length: {length}" for length in (5, 500)),
        "Transfer-Encoding: xchunked\r\nContent-Length: 5",
        "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        *(f"Content-Length: {length}" for length in ("+5", "-1", "0x5", "5, 5", "5 5", "99999999999999999999999", "")),
        *(f"{CHUNKED}\r\n\r\n{size}\r\n[1,2]" for size in ("-5", "+5", "0x5", "5_0", "ffffffffffffffffff")),
        f"{CHUNKED}\n\n5\n[1,2]\n0\n",
    ],
)
def test_requests_that_a_proxy_would_split_differently_are_rejected(shared, framing):
    """The second request would bypass the checks of a proxy that sees it as the body of the first."""
    hidden = json.dumps({"rows": [{"id": "hidden", "x": [1, 2, 3], "labels": []}]})
    head = "POST /v1/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = f"{head}{framing}\r\n\r\n0\r\n\r\n{head}Content-Length: {len(hidden)}\r\n\r\n{hidden}"
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as connection:
        connection.sendall(request.encode())
        answers = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"400"]
    assert shared.get("/v1/rows?id=hidden")["state"] == "unknown"


def test_requests_from_other_sites_are_rejected(shared):
    body = {"rows": [{"id": "evil", "x": [1, 2, 3], "labels": []}]}
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{shared.port + 1}", "https://localhost"):
        assert shared.ask("POST", "/v1/learn", body, headers={"Origin": origin})[0] == 403
    # What a form or fetch without preflight can send:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert shared.ask("POST", "/v1/learn", body, headers={"Content-Type": kind})[0] == 415
    assert shared.get("/v1/rows?id=evil")["state"] == "unknown"
    assert shared.ask("OPTIONS", "/v1/learn", headers={"Origin": "http://evil.example"})[0] in (403, 405)


def test_operator_log_has_request_ids_and_no_row_data(serve):
    server = serve()
    secret = {"id": "secret-id", "x": [1234.5678, 2, 3], "labels": ["secret-label"]}
    server.learn([secret])
    server.post("/v1/predict", {"rows": [{"id": "secret-id", "x": secret["x"]}], "min_position": 1})
    server.learn([{**secret, "secret-field": 1}], status=422)
    server.learn([{**secret, "x": ["secret-x", 2, 3]}], status=422)
    server.get("/v1/rows?id=secret-id")
    server.post("/v1/explain", {"id": "secret-id"})
    server.ask("GET", "/secret-path?secret=1")
    server.post("/v1/forget", {"ids": ["secret-id"], "wait": True})
    server.ask("GET", "/v1/model", headers={"X-Request-Id": "trace-7"})
    server.stop()
    said = server.err.read_text()
    assert "secret" not in said
    assert "1234.5678" not in said
    lines = [json.loads(line) for line in said.splitlines()]
    mine = [line for line in lines if line.get("request") == "trace-7"]
    assert [(line["route"], line["status"]) for line in mine] == [("/v1/model", 200)]
    assert {"started", "request", "stopping", "stopped", "rebuilt"} <= {line["event"] for line in lines}


def test_files_have_owner_permissions(shared):
    modes = {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in [shared.data, *shared.data.rglob("*")]}
    assert modes == {0}

"""Services for tests: real processes on loopback, and a plain HTTP client."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 60


def until(condition, what, seconds=SECONDS):
    """Wait until a condition is true and return its value; fail with `what` on timeout."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(0.01)


class ForkServer:
    """Starts tests/serve/fork_server.py and sends it orders."""

    def __init__(self, folder):
        script = Path(__file__).with_name("fork_server.py")
        self._errors = (folder / "fork_server.err").open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self._process.stdout.readline() == "ready\n", (folder / "fork_server.err").read_text()

    def order(self, **order):
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()
        self._errors.close()


class Server:
    """One process of `mlca serve`."""

    def __init__(self, fork_server, data, *words, name="serve", limits=None, environment=None, before=""):
        self.data = Path(data)
        self.folder = self.data.parent
        self._fork_server, self._words, self._name = fork_server, words, name
        self._limits, self._environment, self._before = limits or {}, environment or {}, before
        self.starts = 0
        self.pid = None

    def start(self, *, ready=True):
        self.starts += 1
        base = self.folder / f"{self._name}-{self.data.name}-{self.starts}"
        self.out, self.err = base.with_suffix(".out"), base.with_suffix(".err")
        port = [] if "--port" in self._words else ["--port", "0"]
        words = ["serve", "--data", str(self.data), *port, *map(str, self._words)]
        self.pid = self._fork_server.order(
            words=words,
            out=str(self.out),
            err=str(self.err),
            limits=self._limits,
            environment=self._environment,
            before=self._before,
        )
        until(
            lambda: (self.out.exists() and "http://" in self.out.read_text()) or self.exit_code() is not None, "started"
        )
        assert "http://" in self.out.read_text(), self.err.read_text()
        self.port = int(self.out.read_text().split("http://")[1].split("/")[0].rsplit(":", 1)[1])
        if ready:
            until(lambda: self.ask("GET", "/health/ready")[0] == 200, f"ready; {self.err.read_text()[-500:]}")
        return self

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def exit_code(self, seconds=0):
        return self._fork_server.order(wait=self.pid, seconds=seconds)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        assert self.exit_code(SECONDS) == -signal.SIGKILL

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        code = self.exit_code(SECONDS)
        assert code == 0, (code, self.err.read_text()[-2000:])

    def end(self):
        if self.pid is not None and self.exit_code() is None:
            self.kill()

    def ask(self, method, path, body=None, token=None, seconds=SECONDS, headers=()):
        return ask(self.port, method, path, body, token, seconds, headers)

    def post(self, path, body, status=200, **more):
        found, answer, _ = self.ask("POST", path, body, **more)
        assert found == status, (found, answer)
        return answer

    def get(self, path, status=200, **more):
        found, answer, _ = self.ask("GET", path, **more)
        assert found == status, (found, answer)
        return answer

    def learn(self, rows, status=200):
        return self.post("/v1/learn", {"rows": rows}, status)


def ask(port, method, path, body=None, token=None, seconds=SECONDS, headers=()):
    """Send one request; return status, JSON (or bytes) and headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        sent = dict(headers)
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(content) if is_json else content, answer.headers
    finally:
        connection.close()

"""Measures speed, latency and recovery of the service, and the speed of the bare learner.

A run starts `mlca serve` on this machine. Clients in this process send prepared requests over persistent connections,
so that they take little time themselves. All processes share the machine's cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca import MLCA
from mlca.bench.results import Target, targets_in_words

ATTRIBUTES, NODES, LABELS, BATCH = 103, 1000, 14, 100
_LOG_ROWS, _LOG_ATTRIBUTES = 100_000, 20
_SECONDS = 10.0
_CONNECTIONS = 16


@dataclass(frozen=True)
class Measurement:
    """A named measured value with its unit."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class ServeResults:
    """All measurements of the service, and targets with measured values."""

    cores: int
    figures: tuple[Measurement, ...]
    targets: tuple[Target, ...]

    def __str__(self) -> str:
        out = [f"{self.cores} cores, shared by service and clients", ""]
        out += [f"{figure.name:<72} {figure.value:>12,.4g} {figure.unit}" for figure in self.figures]
        return "\n".join([*out, "", *targets_in_words(self.targets)])

    def to_json(self) -> str:
        """Return all results as a JSON string."""
        return json.dumps(asdict(self), indent=1)


class ServiceProcess:
    """An `mlca serve` process on a free port of this machine.

    Parameters
    ----------
    data : Path
        The folder of the service.
    """

    def __init__(self, data: Path, *words: str) -> None:
        command = [sys.executable, "-m", "mlca", "serve", "--data", str(data), "--port", "0", *words]
        self.began = time.perf_counter()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError("mlca serve did not start; run it in a shell to see why")
        self.port = int(line.rsplit(":", 1)[1].rstrip("/\n"))
        self.listening_after = time.perf_counter() - self.began

    def wait_until_ready(self) -> float:
        """Wait until the service is ready; return the seconds since it was started."""
        import http.client

        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.request("GET", "/health/ready")
            ready = connection.getresponse().status == 200
            connection.close()
            if ready:
                return time.perf_counter() - self.began
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the service gracefully."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)
        if self._process.stdout is not None:
            self._process.stdout.close()


def run_service_benchmarks() -> ServeResults:
    """Run all benchmarks of the service, which takes about two minutes."""
    figures: list[Measurement] = []
    targets: list[Target] = []
    with tempfile.TemporaryDirectory() as folder:
        _announce("in process")
        learned_here, predicted_here = _in_process()
        figures += [
            Measurement(f"learned in process, batches of {BATCH}", learned_here, "rows/s"),
            Measurement(f"predicted in process, batches of {BATCH}", predicted_here, "rows/s"),
        ]
        _announce("through HTTP")
        service = ServiceProcess(Path(folder) / "rates")
        figures.append(Measurement("from the command to listening, on an empty folder", service.listening_after, "s"))
        figures.append(Measurement("from the command to ready, on an empty folder", service.wait_until_ready(), "s"))
        predicted = asyncio.run(_predict(service.port))
        _announce("single rows under load")
        rate, p50, p99, beside = asyncio.run(_single_rows(service.port))
        learned = asyncio.run(_learn(service.port, NODES + beside))
        service.stop()
        figures += [
            Measurement(f"learned through HTTP, batches of {BATCH}, durable and in the model", learned, "rows/s"),
            Measurement(f"predicted through HTTP, batches of {BATCH}", predicted, "rows/s"),
            Measurement(f"single rows predicted, {_CONNECTIONS} connections, while rows are learned", rate, "rows/s"),
            Measurement("rows learned during these predictions", beside / _SECONDS, "rows/s"),
            Measurement("median latency of these predictions", p50, "ms"),
            Measurement("99th percentile latency of these predictions", p99, "ms"),
        ]
        for what, found, here in (("learned", learned, learned_here), ("predicted", predicted, predicted_here)):
            targets.append(
                Target(f"{what} through HTTP (40 % of in process, or 5,000)", min(5000, 0.4 * here), found, "rows/s")
            )
        targets += [
            Target("single rows predicted while 500 rows/s are learned", 2000, rate, "rows/s"),
            Target("99th percentile latency of these predictions", 25, p99, "ms", at_most=True),
        ]
        _announce("recovery")
        figures += _recovery(Path(folder) / "recovery")
    return ServeResults(os.cpu_count() or 1, tuple(figures), tuple(targets))


def _announce(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


def _rows(n: int, start: int) -> tuple[NDArray[np.float64], list[tuple[str, ...]]]:
    """Return labelled rows with the shape of Yeast; nearly every row becomes a node."""
    rng = np.random.default_rng([1, start])
    X = rng.normal(0, 0.1, (n, ATTRIBUTES)).round(6)
    return X, [tuple(f"class{j}" for j in np.flatnonzero(x[:LABELS] > 0.05)) for x in X]


def _in_process() -> tuple[float, float]:
    """Return the rates of learning and predicting in this process, from a thousand nodes on."""
    X, labels = _rows(2 * NODES, 0)
    model = MLCA(recency=True).partial_fit(X[:NODES], labels[:NODES])  # as in the service
    model.predict_proba(X[:BATCH])
    began = time.perf_counter()
    for start in range(0, NODES, BATCH):
        model.predict_proba(X[start : start + BATCH])
    predicted = NODES / (time.perf_counter() - began)
    began = time.perf_counter()
    for start in range(NODES, 2 * NODES, BATCH):
        model.partial_fit(X[start : start + BATCH], labels[start : start + BATCH])
    return NODES / (time.perf_counter() - began), predicted


class _Connection:
    """A persistent connection that sends prepared requests."""

    async def open(self, port: int) -> _Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def ask(self, request: bytes) -> Any:
        """Send a request and return the body of the response."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the service rejected a request: {body[:300].decode()}")
        return body

    def close(self) -> None:
        self._writer.close()


def _request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    return head.encode() + b"\r\n\r\n" + content


def _learning(n: int, start: int, ids: str = "") -> list[bytes]:
    X, labels = _rows(n, start)
    rows = [{"id": f"{ids}{start + i}", "x": X[i].tolist(), "labels": labels[i]} for i in range(n)]
    return [_request("/v1/learn", {"rows": rows[first : first + BATCH]}) for first in range(0, n, BATCH)]


def _predicting(n: int, rows: int, **options: int) -> list[bytes]:
    X, _ = _rows(n * rows, 7)
    return [
        _request(
            "/v1/predict", {"rows": [{"x": x.tolist()} for x in X[i * rows : (i + 1) * rows]], "top": 3, **options}
        )
        for i in range(n)
    ]


async def _send(port: int, requests: list[bytes], connections: int) -> float:
    """Send requests over several connections; return the seconds until the last response."""
    waiting = iter(requests)

    async def work() -> None:
        connection = await _Connection().open(port)
        for request in waiting:
            await connection.ask(request)
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    return time.perf_counter() - began


async def _predict(port: int) -> float:
    """Predict through HTTP with a thousand nodes; return the rate in rows per second."""
    await _send(port, _learning(NODES, 0), 4)
    await _send(port, _predicting(1, 1, min_position=NODES), 1)
    return 20 * BATCH / await _send(port, _predicting(20, BATCH), 4)


async def _learn(port: int, position: int) -> float:
    """Learn through HTTP; return the rate, timed until the model has learned all rows."""
    learning = _learning(NODES, NODES)
    began = time.perf_counter()
    await _send(port, learning, 4)
    await _send(port, _predicting(1, 1, min_position=position + NODES), 1)
    return NODES / (time.perf_counter() - began)


async def _single_rows(port: int) -> tuple[float, float, float, int]:
    """Predict single rows while rows are learned; return speed and latency.

    The values are the predictions per second, the median and the 99th percentile of their latency in milliseconds, and
    the number of rows learned meanwhile.
    """
    requests = _predicting(200, 1)
    # Learned rows repeat earlier rows, so the number of nodes stays at a thousand. Requests are prepared before the
    # clock starts, because preparing a request takes longer than serving it.
    turns = int(500 * _SECONDS / NODES)
    batches = [batch for turn in range(turns) for batch in _learning(NODES, 0, f"again{turn}-")]
    times: list[float] = []
    stop = time.perf_counter() + _SECONDS

    async def predict(number: int) -> None:
        connection = await _Connection().open(port)
        while (began := time.perf_counter()) < stop:
            await connection.ask(requests[number % len(requests)])
            times.append(time.perf_counter() - began)
            number += _CONNECTIONS
        connection.close()

    async def learn() -> int:
        connection = await _Connection().open(port)
        began = time.perf_counter()
        done = 0
        for request in batches:
            await asyncio.sleep(max(0.0, began + done / 500 - time.perf_counter()))
            if time.perf_counter() >= stop:
                break
            await connection.ask(request)
            done += BATCH
        connection.close()
        return done

    predicting = [asyncio.create_task(predict(number)) for number in range(_CONNECTIONS)]
    learned = await learn()
    await asyncio.gather(*predicting)
    times.sort()
    milliseconds = [1000 * times[len(times) * share // 100] for share in (50, 99)]
    return len(times) / _SECONDS, milliseconds[0], milliseconds[1], learned


def _recovery(data: Path) -> list[Measurement]:
    """Measure how long a service takes to start, from its log alone and from a snapshot."""
    from mlca.serve.live_model import new_parameters
    from mlca.serve.log import create_log
    from mlca.serve.log_changes import Learn
    from mlca.serve.request_rows import Columns, pack
    from mlca.serve.sqlite import SQLite

    data.mkdir()
    database = SQLite(data / "log.sqlite")
    log = create_log(database, new_parameters({"vigilance": 0.3}), None, None)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(200, _LOG_ATTRIBUTES))
    for start in range(0, _LOG_ROWS, 1000):
        kinds = rng.integers(0, 200, 1000)
        X = centres[kinds] + rng.normal(0, 0.1, (1000, _LOG_ATTRIBUTES))
        ids = [str(start + i) for i in range(1000)]
        labels: list[tuple[str, ...]] = [(f"class{kind % 10}",) for kind in kinds]
        log.write([Learn(ids, pack(X), labels, Columns(_LOG_ATTRIBUTES))])
    database.close()
    figures = []
    for source in ("the log alone", "a snapshot"):
        service = ServiceProcess(data)
        seconds = service.wait_until_ready()
        figures.append(
            Measurement(f"ready after {_LOG_ROWS:,} rows ({_LOG_ATTRIBUTES} attributes), from {source}", seconds, "s")
        )
        service.stop()
    return figures

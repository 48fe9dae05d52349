"""The service under mixed load for a while: memory, threads and descriptors stay level.

Takes half a minute here, and an hour with `make soak`. The model does not grow in this test, since its memory would
grow too.
"""

import os
import threading
import time

import psutil
import pytest

from mlca.client import Client, ServiceError
from tests.serve.log_streams import make_rows
from tests.serve.service_process import ask

SECONDS = float(os.environ.get("MLCA_SOAK_SECONDS", "30"))
# Beside other tests the clients are idle most of the time; `make soak` runs alone.
PAUSE = 0.0 if "MLCA_SOAK_SECONDS" in os.environ else 0.4


@pytest.mark.waits
@pytest.mark.timeout(600 + SECONDS)  # an hour exceeds the timeout of other tests
def test_memory_threads_and_files_stay_bounded_under_load(serve):
    server = serve("--vigilance", "0.9")
    process = psutil.Process(server.pid)
    stop, troubles, done = threading.Event(), [], [0, 0, 0, 0]

    def worker(number):
        turn = 0
        with Client(server.url) as client:
            while not stop.is_set():
                try:
                    work(client, number, turn)
                except (ServiceError, OSError) as error:
                    troubles.append(repr(error))
                turn += 1
                done[number] += 1
                stop.wait(PAUSE)

    def work(client, number, turn):
        # The same two hundred rows repeatedly, with new IDs.
        rows = [{**row, "id": f"{number}-{turn}-{row['id']}"} for row in make_rows(20, start=20 * (turn % 10))]
        if number == 0:
            client.learn(rows)
        elif number == 1:
            client.predict([{"id": row["id"], "x": row["x"]} for row in rows], keep=True)
            client.labels(rows)
        elif number == 2:
            client.predict([{"x": row["x"]} for row in rows])
            client.explain(rows[0]["x"])
            ask(server.port, "GET", "/v1/model/file")
            ask(server.port, "GET", "/metrics")
        else:  # a listener that disconnects; an invalid request; a forgotten row
            events = client.events()
            next(events)
            events.close()
            ask(server.port, "POST", "/v1/learn", b"{")
            client.forget([f"0-{turn}-r{20 * (turn % 10)}"])
            stop.wait(SECONDS / 15)

    server.learn(make_rows(200))
    threads = [threading.Thread(target=worker, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    seen = []
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        stop.wait(SECONDS / 24)
        seen.append((process.memory_info().rss, process.num_threads(), process.num_fds()))
    stop.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not troubles, troubles[:3]
    assert min(done) > 3
    early, late = seen[len(seen) // 3 : 2 * len(seen) // 3], seen[2 * len(seen) // 3 :]
    memory, threads_, descriptors = (max(s[i] for s in late) - max(s[i] for s in early) for i in range(3))
    print(
        f"{SECONDS:.0f} s: {sum(done):,} turns; memory {memory / 2**20:+.1f} MiB, "
        f"threads {threads_:+}, files {descriptors:+}"
    )
    assert memory < 24 * 2**20
    assert threads_ <= 2
    assert descriptors <= 8
    server.stop()


@pytest.mark.slow
def test_memory_threads_and_files_stay_bounded_in_a_minute_of_continuous_load(serve, monkeypatch):
    monkeypatch.setitem(globals(), "SECONDS", 60.0)
    monkeypatch.setitem(globals(), "PAUSE", 0.0)
    test_memory_threads_and_files_stay_bounded_under_load(serve)

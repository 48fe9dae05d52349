"""kill -9 at random times under load: every acknowledged row is there once, and the model has the same bits."""

import http.client
import threading
import time

import numpy as np
import pytest

from tests.serve.log_streams import fit_log, log_of, make_rows, state_of
from tests.serve.service_process import ask, until
from tests.serve.table_streams import make_table


class Load:
    """Clients that learn, predict, keep and label their own rows until the service ends."""

    def __init__(self, port, first, make, clients=4):
        self.acknowledged, self.errors = {}, []
        self._make = make
        self._threads = [
            threading.Thread(target=self._run, args=(port, first + 100_000 * number, number))
            for number in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def wait_for_something(self):
        until(lambda: self.acknowledged, "something was acknowledged")

    def join(self):
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not self.errors, self.errors[:3]

    def _run(self, port, number, kind):
        try:
            while True:
                rows = self._make(7, number)
                number += 7
                if kind == 0:  # as in a stream: predicted first, labelled later
                    bare = [{"id": row["id"], "x": row["x"]} for row in rows]
                    self._ask(port, "/v1/predict", {"rows": bare, "keep": True, "top": 1})
                    labels = [{"id": row["id"], "labels": row["labels"]} for row in rows]
                    self._ask(port, "/v1/labels", {"rows": labels})
                else:
                    self._ask(port, "/v1/learn", {"rows": rows})
                self.acknowledged |= {row["id"]: row for row in rows}
        except (OSError, http.client.HTTPException):
            return  # the service was killed

    def _ask(self, port, path, body):
        status, answer, _ = ask(port, "POST", path, body, seconds=20)
        if status != 200:
            self.errors.append((path, status, answer))
            raise OSError


def check(server, acknowledged, tmp_path):
    """Compare log and model of a restarted service."""
    log = log_of(server.data)
    positions, ids = [row[0] for row in log], [row[1] for row in log]
    assert positions == list(range(1, len(log) + 1))
    assert len(set(ids)) == len(ids)
    assert set(acknowledged) <= set(ids)
    for _, id, x, labels in log:
        if id in acknowledged:
            assert (x if isinstance(x, dict) else x.tolist()) == acknowledged[id]["x"]
            assert labels == acknowledged[id]["labels"]
    status, content, headers = server.ask("GET", "/v1/model/file")
    assert (status, int(headers["mlca-position"])) == (200, len(log))
    (tmp_path / "served.mlca").write_bytes(content)
    assert state_of(tmp_path / "served.mlca") == fit_log(log, tmp_path / "fitted.mlca")


def crash_and_check(serve, tmp_path, times, make=make_rows):
    rng = np.random.default_rng(times)
    server = serve()
    acknowledged = {}
    for turn in range(times):
        load = Load(server.port, 1_000_000 * turn, make)
        load.wait_for_something()
        time.sleep(rng.uniform(0, 0.7))
        if turn % 2:  # also while a snapshot is written
            server.ask("GET", "/v1/model/file")
        server.kill()
        load.join()
        acknowledged |= load.acknowledged
        server.start()
        check(server, acknowledged, tmp_path)
        if turn % 3 == 2:  # and from a snapshot, which a graceful shutdown writes
            settled = server.get("/v1/model")["columns"]["settled"]
            server.stop()
            assert bool(list((server.data / "snapshots").glob("*.mlca"))) == settled
            server.start()
            check(server, acknowledged, tmp_path)
    assert len(acknowledged) > 20 * times


def test_log_and_model_survive_five_kills(serve, tmp_path):
    crash_and_check(serve, tmp_path, 5)


def test_table_survives_kills_while_learning(serve, tmp_path):
    crash_and_check(serve, tmp_path, 3, make_table)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # more than a hundred starts, each of which learns the whole log again
def test_log_and_model_survive_fifty_kills(serve, tmp_path):
    crash_and_check(serve, tmp_path, 50)

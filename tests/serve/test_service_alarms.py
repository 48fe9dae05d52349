"""Alarms of the service: events, counts, and marks on the page."""

import asyncio

import numpy as np
import pytest

from mlca.client import Client
from mlca.metrics.stream.alarms import Watch
from mlca.serve.log import LoggedRow
from mlca.serve.measures import look, look_at_novelty
from mlca.serve.service import Service, ServiceSettings

pytest.importorskip("river", reason="River's ADWIN raises the alarms")


def row(position, labels, predicted, x=b""):
    return LoggedRow(
        position, x, tuple(labels), None if predicted is None else tuple(predicted), f"r{position}", 0.0, b""
    )


def test_forgotten_or_unpredicted_rows_raise_no_drift():
    right = [row(i, ["a"], ["a"]) for i in range(1, 400)]
    wrong = [row(i, ["a"], ["b"]) for i in range(400, 800)]
    assert [fact["kind"] for fact in look(Watch(("a",)), right + wrong)]
    gone = [row(i, ["a", "new"], ["b"], None) for i in range(400, 800)]
    not_asked = [row(i, ["a"], None) for i in range(400, 800)]
    assert list(look(Watch(("a",)), right + gone + not_asked)) == []


def test_rising_novelty_is_an_event(tmp_path):
    rng = np.random.default_rng(0)
    told = []

    async def run():
        service = Service(ServiceSettings(tmp_path / "data"))
        service.events.publish = lambda name, facts: told.append((name, facts))
        await service.start()
        try:
            service.traffic.count_predicted(600, rng.random(600).tolist())
            service.traffic.count_predicted(400, (0.6 + 0.4 * rng.random(400)).tolist())
            async with asyncio.timeout(60):
                while not service.traffic.alarms()[1]["novelty"] or not told:
                    await asyncio.sleep(0.05)
            assert service.traffic.unseen_novelty() == []
            return service.state()["alarms"]
        finally:
            await service.stop()

    (alarm,) = asyncio.run(run())
    assert told == [("alarm", alarm)]
    assert (alarm["kind"], alarm["label"], alarm["position"]) == ("novelty", None, 0)
    assert alarm["after"] > alarm["before"]
    assert list(look_at_novelty(Watch(), 0, rng.random(1000).tolist())) == []


def test_alarms_are_events_and_counts(serve):
    server = serve("--vigilance", "0.01")
    rows = [{"id": f"a{i}", "x": [float(i % 2) + i / 5000, 0.0]} for i in range(1200)]
    names = ("even", "odd")

    def send(part, turned, extra=()):
        server.post("/v1/predict", {"rows": part, "keep": True})
        labelled = [{"id": row["id"], "labels": [names[(int(row["x"][0]) + turned) % 2], *extra]} for row in part]
        position = server.post("/v1/labels", {"rows": labelled})["position"]
        server.post("/v1/predict", {"rows": [{"x": [0, 0]}], "min_position": position})

    with Client(server.url) as client:
        events = client.events()
        assert next(events).name == "state"
        for start in range(0, 600, 100):
            send(rows[start : start + 100], 0)
        assert 'mlca_alarms_total{kind="drift"} 0' in server.ask("GET", "/metrics")[1].decode()
        for start in range(600, 1100, 100):
            send(rows[start : start + 100], 1)
        send(rows[1100:1101], 1, ["hail"])
        alarms = []
        for event in events:
            alarms += [event.facts] if event.name == "alarm" else []
            if alarms and alarms[-1]["kind"] == "new label":
                break
    drifted = [alarm for alarm in alarms if alarm["kind"] == "drift"]
    assert {(alarm["label"], alarm["measure"]) for alarm in drifted} >= {(None, "exact_match")}
    assert all(alarm["position"] > 600 and alarm["after"] < alarm["before"] for alarm in drifted)
    assert drifted[0]["text"].startswith(f"row {drifted[0]['position']}: drift, ")
    assert (alarms[-1]["label"], alarms[-1]["position"]) == ("hail", 1101)
    metrics = server.ask("GET", "/metrics")[1].decode()
    assert f'mlca_alarms_total{{kind="drift"}} {len(drifted)}' in metrics
    assert 'mlca_alarms_total{kind="new label"} 1' in metrics

"""Operations on a service by threads and commands: its model must be that of the acknowledged rows."""

import itertools
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

pytest.importorskip("uvicorn", reason='needs "mlca[serve]"')

from mlca import load, reference
from mlca.cli import main
from mlca.tables import columns as deciding
from tests.learner.reference_comparison import assert_same_state
from tests.lives import FEW_AND_MANY, run_lives
from tests.lives.plain_tables import reference_of_rows
from tests.serve.conftest import fork_server  # noqa: F401
from tests.serve.log_streams import log_of
from tests.serve.service_process import Server

WINDOW = 10
# Columns of tables settle after this many rows, in the service and in this test.
FIRST_ROWS = 24
SETTLE_EARLY = f"from mlca.tables import columns\ncolumns.FIRST_ROWS = {FIRST_ROWS}"
TEXT_FEATURES = 24  # few, because the plain reference is slow
OPTIONS = {"recency": True, "window": WINDOW}

NUMBER = st.sampled_from([0.0, 1.0, -1.5, 0.1, 2.0, 1e6])
ALWAYS = {"temp": st.one_of(NUMBER, st.none()), "site": st.sampled_from(["A", "B", "C", "D", None])}
SOMETIMES = {
    "wind": st.integers(-3, 3),
    "urgent": st.booleans(),
    "colour": st.sampled_from(["red", "green", "blue"]),
    "note": st.sampled_from(["the printer is out of paper", "no paper and no ink in it", "please reset my password"]),
}
X = {
    "numbers": st.lists(NUMBER, min_size=3, max_size=3),
    "table": st.fixed_dictionaries(ALWAYS, optional=SOMETIMES),
}
LABELS = st.sets(st.sampled_from("abcde"), max_size=3).map(sorted)


def rows_of(data, kind, most=12):
    return data.draw(st.lists(st.tuples(X[kind], LABELS), min_size=1, max_size=most))


class Life(RuleBasedStateMachine):
    """A service, and its expected state."""

    def __init__(self, forks):
        super().__init__()
        self.forks = forks
        self.folder = tempfile.TemporaryDirectory()
        self.ids = (f"r{number}" for number in itertools.count())
        self.learned, self.waiting, self.forgotten = {}, {}, []  # id -> (x, labels); id -> x; ids
        self.position = self.generation = 0
        self.server = None

    @initialize(kind=st.sampled_from(sorted(X)))
    def begin(self, kind):
        self.kind, data = kind, Path(self.folder.name) / "data"
        self.server = Server(
            self.forks, data, "--window", WINDOW, "--text-features", TEXT_FEATURES, before=SETTLE_EARLY
        )
        self.server.start()

    def take(self, rows):
        """Record rows that are acknowledged."""
        self.learned |= rows
        self.position += len(rows)

    def named(self, drawn):
        return {next(self.ids): row for row in drawn}

    # ---- learning

    @rule(data=st.data(), again=st.booleans())
    def learn(self, data, again):
        rows = self.named(rows_of(data, self.kind))
        known = [*self.learned, *self.forgotten][-2:] if again else []
        sent = [*rows.items(), *((id, (next(iter(rows.values()))[0], ["late"])) for id in known)]
        answer = self.server.learn([{"id": id, "x": x, "labels": labels} for id, (x, labels) in sent])
        self.take(rows)
        assert answer == {
            "position": self.position,
            "generation": self.generation,
            "learned": len(rows),
            "duplicates": known,
        }

    @rule(data=st.data())
    def learn_from_threads(self, data):
        parts = [self.named(rows_of(data, self.kind, 4)) for _ in range(3)]
        with ThreadPoolExecutor(3) as threads:
            sent = ([{"id": id, "x": x, "labels": labels} for id, (x, labels) in part.items()] for part in parts)
            assert [answer["learned"] for answer in threads.map(self.server.learn, sent)] == [*map(len, parts)]
        rows = {id: row for part in parts for id, row in part.items()}
        self.take({id: rows[id] for _, id, _, _ in log_of(self.server.data) if id in rows})

    @rule(data=st.data(), labels=LABELS, at_once=st.booleans())
    def keep(self, data, labels, at_once):
        rows = {id: x for id, (x, _) in self.named(rows_of(data, self.kind, 4)).items()}
        sent = [{"id": id, "x": x} for id, x in rows.items()]
        assert self.server.post("/v1/predict", {"rows": sent, "keep": True})["kept"] == len(rows)
        self.waiting |= rows
        if at_once:
            self.label(data, labels)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), labels=LABELS)
    def label(self, data, labels):
        ids = data.draw(st.lists(st.sampled_from(sorted(self.waiting)), min_size=1, max_size=3, unique=True))
        answer = self.server.post("/v1/labels", {"rows": [{"id": id, "labels": labels} for id in ids]})
        self.take({id: (self.waiting.pop(id), labels) for id in ids})
        assert (answer["learned"], answer["position"]) == (len(ids), self.position)

    @precondition(lambda self: self.kind == "table")
    @rule(data=st.data())
    def send_by_shell(self, data):
        rows = {id: ({**dict.fromkeys(ALWAYS), **x}, y) for id, (x, y) in self.named(rows_of(data, "table")).items()}
        file = Path(self.folder.name) / "sent.jsonl"
        lines = [{"name": id, **x, "tags": "|".join(labels)} for id, (x, labels) in rows.items()]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = [file, "--to", self.server.url, "--labels", "tags", "--separator", "|", "--id", "name", "--batch", 5]
        assert main(["send", *map(str, words)]) == 0
        found = {id: x for _, id, x, _ in log_of(self.server.data) if id in rows}
        self.take({id: (found[id], labels) for id, (_, labels) in rows.items()})

    # ---- forgetting

    @precondition(lambda self: self.learned or self.waiting)
    @rule(data=st.data())
    def forget(self, data):
        known = sorted([*self.learned, *self.waiting])
        ids = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
        answer = self.server.post("/v1/forget", {"ids": ids, "wait": True})
        self.generation += any(id in self.learned for id in ids)
        assert (answer["forgotten"], answer["generation"], answer["rebuilt"]) == (len(ids), self.generation, True)
        for id in ids:
            self.learned.pop(id, None)
            self.waiting.pop(id, None)
        self.forgotten += ids

    @precondition(lambda self: self.learned and len(self.waiting) > 1)
    @rule(data=st.data(), labels=LABELS)
    def change_everything_at_once(self, data, labels):
        """One waiting row is both labelled and forgotten: in either order, it is forgotten in the end."""
        new = self.named(rows_of(data, self.kind, 4))
        kept = {id: x for id, (x, _) in self.named(rows_of(data, self.kind, 4)).items()}
        contested, labelled = data.draw(st.permutations(sorted(self.waiting)))[:2]
        gone = data.draw(st.lists(st.sampled_from(sorted(self.learned)), min_size=1, max_size=3, unique=True))
        requests = {
            "/v1/learn": {"rows": [{"id": id, "x": x, "labels": labels} for id, (x, labels) in new.items()]},
            "/v1/labels": {"rows": [{"id": id, "labels": labels} for id in (labelled, contested)]},
            "/v1/forget": {"ids": [contested, *gone], "wait": True},
            "/v1/predict": {"rows": [{"id": id, "x": x} for id, x in kept.items()], "keep": True},
        }
        with ThreadPoolExecutor(len(requests)) as threads:
            answers = dict(zip(requests, threads.map(self.server.post, requests, requests.values()), strict=True))
        self.generation += 1
        forgotten = answers["/v1/forget"]
        assert (forgotten["forgotten"], forgotten["generation"]) == (1 + len(gone), self.generation)
        assert forgotten["rebuilt"]
        assert (answers["/v1/learn"]["learned"], answers["/v1/predict"]["kept"]) == (len(new), len(kept))
        assert answers["/v1/labels"]["duplicates"] in ([], [contested])
        new[labelled] = (self.waiting.pop(labelled), labels)
        del self.waiting[contested]
        self.waiting |= kept
        self.take({id: new[id] for _, id, _, _ in log_of(self.server.data) if id in new})
        self.position += answers["/v1/labels"]["learned"] - 1
        for id in gone:
            del self.learned[id]
        self.forgotten += [contested, *gone]

    # ---- restarts

    @rule(killed=st.booleans())
    def restart(self, killed):
        if killed:
            self.server.kill()
        else:
            self.server.stop()
        self.server.start()

    # ---- invariants

    @invariant()
    def the_log_has_the_acknowledged_rows_in_order(self):
        rows = [(id, x, labels) for _, id, x, labels in log_of(self.server.data) if x is not None]
        assert [(id, x if self.kind == "table" else x.tolist(), labels) for id, x, labels in rows] == [
            (id, x, labels) for id, (x, labels) in self.learned.items()
        ]

    def plain(self):
        """Return the plain reference of the rows, and the function that encodes rows for it."""
        rows, labels = [x for x, _ in self.learned.values()], [labels for _, labels in self.learned.values()]
        if self.kind == "numbers":
            return reference.MLCA(**OPTIONS).partial_fit(np.array(rows), labels), np.array
        return reference_of_rows(rows, labels, OPTIONS, TEXT_FEATURES)

    @precondition(lambda self: self.learned)
    @rule(data=st.data())
    def predict(self, data):
        asked = [x for x, _ in rows_of(data, self.kind, 3)] + [x for x, _ in self.learned.values()][-2:]
        body = {"rows": [{"x": x} for x in asked], "top": 100, "min_position": self.position}
        answer = self.server.post("/v1/predict", body)
        assert (answer["position"], answer["generation"]) == (self.position, self.generation)
        model, read = self.plain()
        X, names = read(asked), model.classes_.tolist()
        expected = [dict(zip(names, row, strict=True)) for row in model.predict_proba(X).tolist()]
        assert [row["probabilities"] for row in answer["rows"]] == expected
        chosen = [{name for name, has in zip(names, row, strict=True) if has} for row in model.predict(X).tolist()]
        assert [set(row["labels"]) for row in answer["rows"]] == chosen
        assert [row["novelty"] for row in answer["rows"]] == model.novelty(X).tolist()

    @precondition(lambda self: self.learned)
    @rule()
    def download(self):
        """The file has the state of the plain reference."""
        status, content, headers = self.server.ask("GET", f"/v1/model/file?min_position={self.position}")
        assert (status, int(headers["mlca-generation"])) == (200, self.generation)
        file = Path(self.folder.name) / "served.mlca"
        file.write_bytes(content)
        served, (plain, _) = load(file), self.plain()
        assert served.n_seen_ == len(self.learned)
        assert served.classes_.tolist() == plain.classes_.tolist()
        if len(served.classes_) > 0:
            assert_same_state(served._learner.settled(), plain.settled())

    def teardown(self):
        if self.server is not None:
            if self.learned:
                self.download()
            self.server.end()
        self.folder.cleanup()


@pytest.mark.parametrize("thorough", FEW_AND_MANY)
def test_service_model_after_any_operations_equals_fit_on_its_log(fork_server, thorough, monkeypatch):  # noqa: F811
    monkeypatch.setattr(deciding, "FIRST_ROWS", FIRST_ROWS)
    run_lives(lambda: Life(fork_server), 6, 150, 20, thorough)

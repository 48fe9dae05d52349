"""The log compared with a log in plain Python, for any sequence of requests and restarts; and shared commits."""

import sqlite3
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mlca.serve.committing import Committer
from mlca.serve.database import DamageError
from mlca.serve.log import Log, create_log, open_log
from mlca.serve.log_changes import Forget, Keep, Label, Learn
from mlca.serve.request_errors import RequestError
from mlca.serve.request_rows import Columns
from mlca.serve.sqlite import SQLite

IDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5)
ONE = Columns(1)


def payload(number):
    return number.to_bytes(8, "little")


def rows_of(log):
    with log.viewing() as view:
        return view.read(0, 1000)


class PlainLog(RuleBasedStateMachine):
    """The expected content of the log, as dictionaries."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "log.sqlite"
        self.log = create_log(SQLite(self.path), {"p": 1}, None, None)
        self.rows, self.order, self.generation, self.numbers = {}, [], 0, 0

    def teardown(self):
        self.log.database.close()
        self.folder.cleanup()

    def fresh(self, ids):
        self.numbers += len(ids)
        return [payload(self.numbers + i) for i in range(len(ids))]

    def learn_plainly(self, id, x, labels):
        """Return whether the row is learned; otherwise it is a duplicate."""
        row = self.rows.get(id)
        if row is not None and row["state"] != "waiting":
            return False
        predicted = None if row is None else row["predicted"]
        self.rows[id] = {"state": "learned", "x": x, "labels": labels, "predicted": predicted}
        self.order.append(id)
        return True

    @rule(ids=IDS)
    def learn(self, ids):
        xs, labels = self.fresh(ids), [(f"l{i}",) for i in range(len(ids))]
        duplicates = [id for id, x, own in zip(ids, xs, labels, strict=True) if not self.learn_plainly(id, x, own)]
        receipt = self.log.write([Learn(ids, xs, labels, ONE)])[0]
        assert (receipt.taken, receipt.others) == (len(ids) - len(duplicates), duplicates)

    @rule(ids=IDS)
    def keep(self, ids):
        xs = self.fresh(ids)
        new = {}
        for id, x in zip(ids, xs, strict=True):
            if id not in self.rows and id not in new:
                new[id] = {"state": "waiting", "x": x, "labels": (), "predicted": ("p",)}
        self.rows |= new
        receipt = self.log.write([Keep(ids, xs, [("p",)] * len(ids), ONE)])[0]
        assert receipt.taken == len(new)

    @rule(ids=IDS)
    def label(self, ids):
        outcome = self.log.write([Label(ids, [("q",)] * len(ids))])[0]
        if any(id not in self.rows for id in ids):
            assert isinstance(outcome, RequestError)
            assert outcome.row == next(i for i, id in enumerate(ids) if id not in self.rows)
            return
        duplicates = [id for id in ids if not self.learn_plainly(id, self.rows[id]["x"], ("q",))]
        assert outcome.others == duplicates

    @rule(ids=IDS)
    def forget(self, ids):
        gone = {id for id in ids if id in self.rows and self.rows[id]["state"] != "forgotten"}
        self.generation += any(self.rows[id]["state"] == "learned" for id in gone)
        for id in gone:
            self.rows[id] = {"state": "forgotten", "x": None, "labels": (), "predicted": None}
        receipt = self.log.write([Forget(ids)])[0]
        assert (receipt.taken, receipt.head.generation) == (len(gone), self.generation)
        assert receipt.others == [id for id in ids if id not in self.rows]

    @rule()
    def open_again(self):
        identity = self.log.beginning.identity
        self.log.database.close()
        self.log = open_log(SQLite(self.path))
        assert self.log.beginning.identity == identity

    @rule()
    def fail_in_the_middle(self):
        """Raise an error inside a transaction, which must leave everything unchanged."""
        with pytest.raises(KeyError), self.log.database.writing() as session:
            session.execute("UPDATE mlca_log SET position = position + 7")
            session.execute("DELETE FROM mlca_rows")
            raise KeyError

    @invariant()
    def is_equal(self):
        with self.log.viewing() as view:
            rows, forgotten = view.read(0, 1000), view.first_forgotten(0)
        assert view.head.position == len(self.order)
        assert view.head.generation == self.generation
        self.log.check()
        found = [(row.id, row.x, row.labels, row.predicted) for row in rows]
        assert found == [(id, *(self.rows[id][name] for name in ("x", "labels", "predicted"))) for id in self.order]
        assert (forgotten is None) == (self.generation == 0)
        for id, row in self.rows.items():
            state, position = self.log.find(id)
            assert (state, self.log.content(id)) == (row["state"], row["x"])
            assert position == (self.order.index(id) + 1 if id in self.order else None)
        assert self.log.count_waiting() == sum(row["state"] == "waiting" for row in self.rows.values())


PlainLog.TestCase.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
TestPlainLog = PlainLog.TestCase


@pytest.fixture
def log(tmp_path):
    log = create_log(SQLite(tmp_path / "log.sqlite"), {}, None, None)
    yield log
    log.database.close()


def test_waiting_requests_share_a_commit_and_their_number_is_limited(log, tmp_path, monkeypatch):
    writes, write = [], Log.write

    def counted(self, requests):
        writes.append(len(requests))
        return write(self, requests)

    monkeypatch.setattr(Log, "write", counted)
    committer = Committer(log, lambda problem: None)
    futures = [committer.submit(Learn([f"r{i}"], [payload(i)], [("a",)], ONE)) for i in range(512)]
    with pytest.raises(RequestError) as caught:
        committer.submit(Forget(["r1"]))
    assert (caught.value.status, caught.value.retry_after) == (429, 1)
    committer.start()
    assert [future.result(30).head.position for future in futures] == list(range(1, 513))
    committer.stop()
    assert writes == [64] * 8


def test_bad_request_does_not_affect_others_of_its_commit(log):
    outcomes = log.write(
        [
            Learn(["a"], [payload(1)], [()], ONE),
            Label(["nobody"], [()]),
            Learn(["b"], [payload(2) * 2], [()], Columns(2)),
            Learn(["c"], [payload(3)], [()], ONE),
        ]
    )
    assert [isinstance(outcome, RequestError) for outcome in outcomes] == [False, True, True, False]
    assert [row.id for row in rows_of(log)] == ["a", "c"]


def test_failed_commit_is_reported_to_all_and_changes_nothing(log, tmp_path):
    told = []
    committer = Committer(log, told.append)
    lock = sqlite3.connect(tmp_path / "log.sqlite", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    futures = [committer.submit(Learn([f"r{i}"], [payload(i)], [()], ONE)) for i in range(3)]
    committer.start()
    for future in futures:
        with pytest.raises(RequestError, match="same IDs"):
            future.result(30)
    lock.execute("ROLLBACK")
    lock.close()
    assert committer.submit(Learn(["r1"], [payload(1)], [()], ONE)).result(30).head.position == 1
    committer.stop()
    assert len(told) == 1


def test_cancelled_client_does_not_affect_others(log):
    """After a minute of a hanging disk or database, later commits must still be made and confirmed."""
    committer = Committer(log, pytest.fail)
    gone = committer.submit(Learn(["a"], [payload(1)], [()], ONE))
    assert gone.cancel()
    committer.start()
    assert committer.submit(Learn(["b"], [payload(2)], [()], ONE)).result(30).taken == 1
    committer.stop()
    assert [row.id for row in rows_of(log)] == ["b"]


def test_old_view_does_not_move_the_log_back(log):
    """A reader's view is older than the commit; the position of the log is that of the commit."""
    taken = []
    reading = log.database.reading

    @contextmanager
    def slowly():
        with reading() as session:
            session.execute("SELECT position FROM mlca_log")  # from here on the reader sees this state
            if not taken:
                taken.append(None)
                writer = threading.Thread(
                    target=lambda: taken.extend(log.write([Learn(["a"], [payload(1)], [()], ONE)]))
                )
                writer.start()
                writer.join(30)
            yield session

    log.database.reading = slowly
    with log.viewing() as view:
        assert (view.head.position, view.head.columns) == (0, None)
    assert taken[1].head.position == 1
    assert (log.head.position, log.head.columns) == (1, ONE)


def test_missing_rows_are_detected(log):
    log.write([Learn(["a", "b", "c"], [payload(i) for i in range(3)], [()] * 3, ONE)])
    with log.database.writing() as session:
        session.execute("DELETE FROM mlca_rows WHERE position = 2")
    with pytest.raises(DamageError, match="2 rows instead of 3 after position 0"):
        rows_of(log)
    with pytest.raises(DamageError, match="records 3 rows, but contains 2, up to position 3"):
        log.check()


def test_commits_wait_for_the_disk_and_erased_rows_are_overwritten(log):
    """Checks settings: a crash of the process cannot test the flush, because the system keeps the data."""
    with log.database.reading() as session:
        assert session.execute("PRAGMA journal_mode") == [("wal",)]
        assert session.execute("PRAGMA synchronous") == [(2,)]  # FULL
        assert session.execute("PRAGMA secure_delete") == [(1,)]

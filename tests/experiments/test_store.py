import sqlite3
from dataclasses import replace

import pytest

from mlca.experiments.store import Store
from mlca.experiments.tasks import Outcome, Task

TASK = Task("fold", "MLkNN", (("k", 3),), "flags", repetition=0, fold=0)
OTHER = replace(TASK, fold=1)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        yield store


def test_stored_outcomes_are_returned(store):
    outcome = Outcome(TASK, "done", {"nodes": 3.5}, {"1": {"weights": [[0.0, 1.0]]}}, "", 1.5)
    store.put(outcome)
    assert store.get([TASK, OTHER]) == {TASK: outcome}


def test_store_has_the_times_of_results(tmp_path, store):
    store.put(Outcome(TASK, "done", {}, {}))
    store.put(Outcome(OTHER, "too long", {}, {}))
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        database.execute("UPDATE results SET finished = '2026-01-02T03:04:05+00:00' WHERE status = 'done'")
    first, last = store.period([TASK, OTHER])
    assert (first.isoformat(), first < last) == ("2026-01-02T03:04:05+00:00", True)
    assert store.period([TASK]) == (first, first)
    assert store.period([replace(TASK, fold=2)]) is None


def test_each_missing_task_is_named_once_in_its_order(store):
    store.put(Outcome(TASK, "done", {}, {}))
    third = replace(TASK, fold=2)
    assert store.missing([third, TASK, OTHER, third], None) == [third, OTHER]


def test_failed_task_is_repeated(store):
    store.put(Outcome(TASK, "failed", {}, {}, "Traceback ..."))
    assert store.missing([TASK], None) == [TASK]


def test_timeout_is_repeated_only_with_more_time(store):
    store.put(Outcome(TASK, "too long", {}, {}, "", seconds=10.0))
    assert store.missing([TASK], 10.0) == []
    assert store.missing([TASK], 5.0) == []
    assert store.missing([TASK], 11.0) == [TASK]
    assert store.missing([TASK], None) == [TASK]


def test_file_is_readable_with_plain_sql(tmp_path, store):
    store.put(Outcome(TASK, "done", {"exact_match": 0.25, "nodes": float("nan")}, {}))
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        rows = database.execute(
            "SELECT task ->> '$.dataset', measured ->> '$.exact_match' FROM results WHERE status = 'done'"
        ).fetchall()
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert rows == [("flags", 0.25)]


def test_other_file_is_not_modified(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_text("a letter to my aunt, which is long enough to be no empty file")
    with pytest.raises(ValueError, match=r"results\.sqlite cannot be used as a store"):
        Store(path)
    assert path.read_text().startswith("a letter")

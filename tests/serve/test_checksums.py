"""Checksums of the log: every change of a row is detected, older logs get checksums, and damage can be accepted."""

import os
import shutil
import signal
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from mlca.serve import log_upkeep
from mlca.serve.database import DamageError, LogError
from mlca.serve.log import create_log, open_log
from mlca.serve.log_changes import Forget, Keep, Label, Learn
from mlca.serve.log_upkeep import accept_log
from mlca.serve.request_errors import RequestError
from mlca.serve.request_rows import Columns
from mlca.serve.sqlite import SQLite, _Session
from tests.serve.log_streams import DEFAULTS_OF_0_2, fit_log, log_of, make_rows, state_of
from tests.serve.service_process import until

ONE = Columns(1)


def packed(*values):
    return [struct.pack("<d", value) for value in values]


def fill(log):
    """Write four learned rows (the second and third labelled later, the fourth forgotten) and a waiting row."""
    log.write([Learn(["a"], packed(1), [("l",)], ONE), Keep(["b", "c", "w"], packed(2, 3, 9), [["l"], [], ["l"]], ONE)])
    log.write([Label(["c", "b"], [("m",), ()]), Learn(["d"], packed(4), [()], ONE), Forget(["d"])])
    return log


@pytest.fixture
def log(tmp_path):
    log = fill(create_log(SQLite(tmp_path / "log.sqlite"), {"p": 1}, None, None))
    yield log
    log.database.close()


def read_all(log):
    with log.viewing() as view:
        return view.read(0, 100)


def change(log, statement, *values):
    with log.database.writing() as session:
        session.execute(statement, values)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE mlca_rows SET x = zeroblob(8) WHERE position = 1",
        "UPDATE mlca_rows SET x = NULL WHERE position = 1",
        "UPDATE mlca_rows SET labels = '[\"n\"]' WHERE position = 1",
        "UPDATE mlca_rows SET labels = NULL WHERE position = 2",
        "UPDATE mlca_rows SET predicted = '[\"n\"]' WHERE position = 2",
        "UPDATE mlca_rows SET predicted = NULL WHERE position = 2",
        "UPDATE mlca_rows SET at = at + 1 WHERE position = 2",
        "UPDATE mlca_rows SET at = NULL WHERE position = 2",
        "UPDATE mlca_rows SET id = 'z' WHERE position = 2",
        "UPDATE mlca_rows SET salt = zeroblob(16) WHERE position = 3",
        "UPDATE mlca_rows SET salt = NULL WHERE position = 3",
        "UPDATE mlca_rows SET digest = zeroblob(16) WHERE position = 3",
        "UPDATE mlca_rows SET digest = NULL WHERE position = 3",
        "UPDATE mlca_rows SET checksum = zeroblob(16) WHERE position = 3",
        "UPDATE mlca_rows SET checksum = NULL WHERE position = 4",
        "UPDATE mlca_rows SET digest = zeroblob(16) WHERE position = 4",
        "UPDATE mlca_rows SET labels = '[]' WHERE position = 4",
        "UPDATE mlca_rows SET x = zeroblob(8) WHERE position = 4",
        "UPDATE mlca_rows SET position = 9 WHERE position = 4",
        "DELETE FROM mlca_rows WHERE position = 2",
        'UPDATE mlca_log SET columns = \'{"width": 2, "names": null}\'',
        "UPDATE mlca_log SET checksum = zeroblob(16)",
        "UPDATE mlca_log SET position = 3",
        "UPDATE mlca_log SET position = 5",
    ],
)
def test_any_change_of_a_learned_row_is_detected(log, statement):
    assert [row.id for row in read_all(log)] == ["a", "c", "b", "d"]
    change(log, statement)
    with pytest.raises(DamageError, match=r"the log is damaged: .*restore it .* --accept-log"):
        read_all(log)


@pytest.mark.parametrize("column", ["x", "labels", "predicted", "at", "salt", "id"])
@pytest.mark.parametrize("value", ["7", "'seven'", "1.5", "x'00ff'"])
def test_values_of_another_type_are_damage_that_can_be_accepted(log, column, value):
    change(log, f"UPDATE mlca_rows SET {column} = {value} WHERE position = 2")
    with pytest.raises(DamageError, match="position 2 differs from what was written"):
        read_all(log)
    with log.database.writing() as session:
        assert accept_log(session).erased == [2]
    assert [row.x is None for row in read_all(log)] == [False, True, False, True]


# Every column with content: table, column, and the condition that selects the row.
STORED = [
    *(
        ("mlca_log", name, "1")
        for name in ["identity", "parameters", "start", "columns", "position", "generation", "checksum"]
    ),
    *(
        ("mlca_rows", name, which)
        for name in ["id", "x", "labels", "predicted", "at", "salt", "digest", "checksum"]
        for which in ("position = 2", "position = 4", "id = 'w'")
    ),
    *(("mlca_forgettings", name, "1") for name in ("generation", "first")),
]


def use_all(log):
    """Use a log in every way, and raise the first error."""
    log.check()
    read_all(log)
    with log.viewing() as view:
        assert not any(view.fits(position, 1, b"") for position in range(5))
        view.first_forgotten(0)
    for id in "acbdw":
        log.find(id)
        log.content(id)
    ids, x, labels = ["w", "n"], packed(9, 9), [("l",), ()]
    for written in (Keep(["k"], packed(8), [[]], ONE), Label(["w"], [()]), Learn(ids, x, labels, ONE), Forget(["b"])):
        outcome = log.write([written])[0]
        if isinstance(outcome, RequestError):
            raise outcome
    read_all(log)


# As a length, the first value exceeds the memory of any machine.
@pytest.mark.parametrize("value", ["9000000000000000000", "'seven'", "1.5", "x'00ff'"])
def test_values_of_another_type_anywhere_are_reported_as_damage(tmp_path, value):
    good, path = tmp_path / "good.sqlite", tmp_path / "log.sqlite"
    fill(create_log(SQLite(good), {"p": 1}, None, None)).database.close()
    for table, column, which in STORED:
        shutil.copy(good, path)
        connection = sqlite3.connect(path)
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE {which}")
        connection.commit()
        connection.close()
        with closing(SQLite(path)) as database, suppress(LogError, RequestError):
            use_all(open_log(database))
        with closing(SQLite(path)) as database:
            try:
                with database.writing() as session:
                    accept_log(session)
                accepted = open_log(database)
            except DamageError:
                continue  # for example because the columns are unknown
            accepted.check()
            assert len(read_all(accepted)) == accepted.head.position, (table, column, which)


@pytest.mark.parametrize("column", ["identity = 'x'", "parameters = '{}'", "start = zeroblob(1)"])
@pytest.mark.parametrize("n_rows", [0, 4])
def test_change_of_the_beginning_is_detected(tmp_path, column, n_rows):
    log = create_log(SQLite(tmp_path / "log.sqlite"), {"p": 1}, None, None)
    if n_rows:
        fill(log)
    change(log, f"UPDATE mlca_log SET {column}")
    log.database.close()
    again = open_log(SQLite(tmp_path / "log.sqlite"))
    with pytest.raises(DamageError, match="starting model or columns do not match its first checksum"):
        again.check()
    if n_rows:
        with pytest.raises(DamageError, match="position 1 does not match the previous checksum"):
            read_all(again)
    again.database.close()


def test_a_damaged_row_is_not_returned_by_its_id(log):
    """Otherwise the changed row would be explained as if a client had sent it."""
    change(log, "UPDATE mlca_rows SET x = zeroblob(8) WHERE id IN ('a', 'w')")
    for id in "aw":
        with pytest.raises(DamageError, match="differs from what was written"):
            log.content(id)
    assert (log.content("c"), log.content("d"), log.content("unknown")) == (packed(3)[0], None, None)


def test_a_log_without_its_columns_cannot_be_accepted(log):
    change(log, "UPDATE mlca_log SET columns = NULL")
    with pytest.raises(DamageError, match="record of its columns is missing"), log.database.writing() as session:
        accept_log(session)


def test_exchanged_rows_are_detected(log):
    """Each row is intact, but at the wrong position."""
    change(log, "UPDATE mlca_rows SET position = 99 WHERE position = 2")
    change(log, "UPDATE mlca_rows SET position = 2 WHERE position = 3")
    change(log, "UPDATE mlca_rows SET position = 3 WHERE position = 99")
    with pytest.raises(DamageError, match="position 2 does not match the previous checksum"):
        read_all(log)


def test_nothing_is_appended_to_a_log_whose_end_is_damaged(log):
    change(log, "UPDATE mlca_log SET checksum = zeroblob(16)")
    with pytest.raises(DamageError):
        log.write([Learn(["e"], packed(5), [()], ONE)])
    assert log.find("e")[0] == "unknown"


@pytest.mark.parametrize(
    "damage", ["x = zeroblob(8)", "x = 'text'", "x = 7", "predicted = '[]'", "digest = NULL", "salt = NULL", "salt = 7"]
)
def test_a_waiting_row_that_was_damaged_is_not_labelled_but_can_be_sent_again(log, damage):
    change(log, f"UPDATE mlca_rows SET {damage} WHERE id = 'w'")
    rejected = log.write([Label(["w"], [("l",)])])[0]
    assert isinstance(rejected, RequestError)
    assert "is damaged" in rejected.problem
    assert log.write([Learn(["w"], packed(9), [("l",)], ONE)])[0].taken == 1
    assert read_all(log)[-1].predicted is None  # this snapshot was not used
    assert log.check() is None


def test_a_prediction_is_kept_when_the_row_is_learned_with_its_x(log):
    log.write([Learn(["w"], packed(10), [("m",)], ONE)])
    row = read_all(log)[-1]
    assert (row.x, row.labels, row.predicted) == (packed(10)[0], ("m",), ("l",))


def test_equal_rows_have_different_digests_and_forgetting_erases_the_salt(log, tmp_path):
    """Otherwise a digest would confirm a guess of forgotten content."""
    log.write([Learn(["e", "f"], packed(7, 7), [("l",)] * 2, ONE), Forget(["e"])])
    with log.database.reading() as session:
        (forgotten, other) = session.execute("SELECT digest, salt FROM mlca_rows WHERE id IN ('e', 'f') ORDER BY id")
    assert forgotten[0] != other[0]
    assert forgotten[1] is None and other[1] is not None
    assert [row.x is None for row in read_all(log)] == [False, False, False, True, True, False]


def test_view_does_not_see_later_writes(log, tmp_path):
    other = open_log(SQLite(tmp_path / "log.sqlite"))
    with log.viewing() as view:
        other.write([Forget(["a"]), Learn(["e"], packed(5), [()], ONE)])
        assert [row.x is None for row in view.read(0, 100)] == [False, False, False, True]
        assert view.first_forgotten(1) is None
    assert [row.x is None for row in read_all(log)] == [True, False, False, True, False]
    other.database.close()


def test_accepting_a_log_forgets_damaged_rows_and_keeps_the_others(log):
    before = read_all(log)
    change(log, "UPDATE mlca_rows SET x = zeroblob(8) WHERE position = 2")
    with log.database.writing() as session:
        repairs = accept_log(session)
    assert (repairs.position, repairs.erased, repairs.corrected) == (4, [2], 0)
    log.check()
    with log.viewing() as view:
        after = view.read(0, 100)
        assert (view.head.generation, view.first_forgotten(1)) == (2, 2)
    assert [row.x for row in after] == [before[0].x, None, before[2].x, None]
    assert [row.checksum for row in after] == [row.checksum for row in before]
    with log.database.writing() as session:  # the second time there is nothing to repair
        assert accept_log(session).erased == []


@pytest.mark.parametrize(
    ("damage", "corrected"),
    [
        ("UPDATE mlca_rows SET digest = zeroblob(16) WHERE position = 2", 1),
        ("UPDATE mlca_rows SET checksum = zeroblob(16) WHERE position = 2", 1),
        ("UPDATE mlca_log SET checksum = zeroblob(16)", 0),
        ("UPDATE mlca_log SET position = 2", 0),
        ("UPDATE mlca_log SET position = 7", 0),
        ("UPDATE mlca_log SET generation = 0", 0),
        ("UPDATE mlca_log SET generation = 5", 0),
        ("DELETE FROM mlca_forgettings", 0),
        ("DELETE FROM mlca_rows WHERE position = 4", 0),
        ("UPDATE mlca_rows SET digest = zeroblob(16) WHERE position = 4", 1),
    ],
)
def test_accepting_a_log_repairs_what_is_not_a_row(log, damage, corrected):
    before = [row.x for row in read_all(log)]
    change(log, damage)
    with log.database.writing() as session:
        repairs = accept_log(session)
    assert (repairs.erased, repairs.corrected) == ([], corrected)
    log.check()
    with log.viewing() as view:
        after = [row.x for row in view.read(0, 100)]
    assert after == before[: len(after)] and len(after) >= 3
    log.go_back(view.head)
    assert log.write([Learn(["z"], packed(5), [()], ONE)])[0].head.position == len(after) + 1
    read_all(log)


def test_rows_missing_in_between_cannot_be_accepted(log):
    change(log, "DELETE FROM mlca_rows WHERE position = 2")
    with (
        pytest.raises(DamageError, match="it has no row at position 2, but one at 3"),
        log.database.writing() as session,
    ):
        accept_log(session)


def load_old_log(folder, version):
    """Create a log in the format of mlca 0.2.0 in a folder."""
    folder.mkdir()
    with sqlite3.connect(folder / "log.sqlite") as connection:
        connection.executescript(Path(__file__).with_name(f"log_of_version_{version}.sql").read_text())
        rows = connection.execute("SELECT id, position, x, labels, predicted, at FROM mlca_rows ORDER BY number")
        rows = rows.fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize("version", [1, 2])
def test_older_logs_get_checksums_on_opening(tmp_path, version, monkeypatch):
    before = load_old_log(tmp_path / "data", version)
    monkeypatch.setattr(log_upkeep, "_STEP", 7)
    log = open_log(SQLite(tmp_path / "data" / "log.sqlite"))
    log.check()
    with log.viewing() as view:
        rows = view.read(0, 1000)
        assert view.head.generation == 1
    assert len(rows) == log.head.position == sum(row[1] is not None for row in before)
    with log.database.reading() as session:
        after = session.execute("SELECT id, position, x, labels, predicted, at FROM mlca_rows ORDER BY number")
        unsealed = session.execute(
            "SELECT count(*) FROM mlca_rows WHERE x IS NOT NULL AND (salt IS NULL OR digest IS NULL)"
        )
    assert after == before
    assert unsealed == [(0,)]
    waiting = [row[0] for row in before if row[1] is None and row[2] is not None]
    assert bool(waiting) == (version == 2)
    if waiting:
        assert log.write([Label(waiting, [("l",)] * len(waiting))])[0].taken == len(waiting)
    log.database.close()
    again = open_log(SQLite(tmp_path / "data" / "log.sqlite"))
    again.check()
    assert [row.checksum for row in read_all(again)][: len(rows)] == [row.checksum for row in rows]
    again.database.close()


def test_failed_upgrade_leaves_the_log_unchanged(tmp_path, monkeypatch):
    load_old_log(tmp_path / "data", 2)
    path = tmp_path / "data" / "log.sqlite"

    def fail(session):
        raise MemoryError

    monkeypatch.setattr(log_upkeep, "accept_log", fail)
    database = SQLite(path)
    with pytest.raises(MemoryError):
        open_log(database)
    database.close()
    monkeypatch.undo()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version FROM mlca_log").fetchone() == (2,)
        assert "salt" not in [column[1] for column in connection.execute("PRAGMA table_info(mlca_rows)")]
    connection.close()
    log = open_log(SQLite(path))
    log.check()
    log.database.close()


def run_and_kill(path, n_statements):
    """Open a log in a process that kills itself before its n-th statement; return whether it was killed."""
    process = os.fork()
    if not process:
        try:
            log_upkeep._STEP = 7
            left = iter(range(n_statements, 0, -1))

            def counted(method):
                def run(*words):
                    if next(left) == 1:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return method(*words)

                return run

            for name in ("execute", "execute_many"):
                setattr(_Session, name, counted(getattr(_Session, name)))
            open_log(SQLite(path))
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("version", [1, 2])
def test_an_upgrade_that_is_killed_anywhere_leaves_the_log_as_it_was(tmp_path, version):
    before = load_old_log(tmp_path / "data", version)
    path, n_statements = tmp_path / "data" / "log.sqlite", 1
    while run_and_kill(path, n_statements):
        with sqlite3.connect(path) as connection:
            if connection.execute("SELECT version FROM mlca_log").fetchone() == (3,):
                break  # the upgrade was committed
            assert "salt" not in [column[1] for column in connection.execute("PRAGMA table_info(mlca_rows)")]
            rows = connection.execute("SELECT id, position, x, labels, predicted, at FROM mlca_rows ORDER BY number")
            assert rows.fetchall() == before
        connection.close()
        n_statements += 1
    assert n_statements > 20  # tables, columns, rows and the version
    log = open_log(SQLite(path))
    log.check()
    assert [row.id for row in read_all(log)] == [
        row[0] for row in sorted(before, key=lambda row: row[1] or 0) if row[1]
    ]
    log.database.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_service_continues_an_older_log(serve, tmp_path, version):
    load_old_log(tmp_path / "data", version)
    server = serve()
    position = server.get("/health/ready")["position"]
    _, content, _ = server.ask("GET", "/v1/model/file")
    (tmp_path / "served.mlca").write_bytes(content)
    expected = fit_log(log_of(server.data), tmp_path / "fitted.mlca", **DEFAULTS_OF_0_2)
    assert state_of(tmp_path / "served.mlca") == expected
    checksum = server.get("/v1/model")["checksum"]
    server.stop()
    server.start()
    assert server.get("/v1/model")["checksum"] == checksum
    assert server.get("/health/ready")["position"] == position


def flip_a_bit_of(path, value):
    content = bytearray(path.read_bytes())
    place = content.find(struct.pack("<d", value))
    assert place > 0
    content[place + 6] ^= 0x08
    path.write_bytes(content)


def test_flipped_bit_is_detected_on_replay_and_can_be_accepted(serve, tmp_path):
    server = serve()
    rows = make_rows(300)
    server.learn(rows)
    server.stop()
    flip_a_bit_of(server.data / "log.sqlite", rows[150]["x"][1])
    server.start()  # the snapshot contains the unchanged row
    assert server.get("/v1/model")["position"] == 300
    server.stop()
    kept = tmp_path / "kept"
    shutil.move(server.data / "snapshots", kept)
    server.start(ready=False)
    status = until(lambda: server.ask("GET", "/health/ready")[1].get("error"), "not ready")
    until(lambda: "position 151 differs from what was written" in server.err.read_text(), "reported to the operator")
    assert server.ask("POST", "/v1/predict", {"rows": [{"x": [0, 0, 0]}]})[0] == 503, status
    server.stop()
    shutil.rmtree(server.data / "snapshots")
    shutil.move(kept, server.data / "snapshots")
    names = {path.name for path in (server.data / "snapshots").iterdir()}
    accepting = serve("--accept-log", name="accepting")
    model = accepting.get("/v1/model")
    assert (model["position"], model["generation"]) == (300, 1)
    assert accepting.get("/v1/rows?id=r150")["state"] == "forgotten"
    assert {path.name for path in (server.data / "set-aside").iterdir()} == names
    never = [row for row in rows if row["id"] != "r150"]
    fitted = fit_log([(0, r["id"], np.array(r["x"]), r["labels"]) for r in never], tmp_path / "never.mlca")
    (tmp_path / "served.mlca").write_bytes(accepting.ask("GET", "/v1/model/file")[1])
    assert state_of(tmp_path / "served.mlca") == fitted


@pytest.mark.parametrize("n_flips", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_random_bit_flips_are_detected_or_change_nothing(tmp_path, n_flips):
    """Also in SQLite's own pages: it reports damage, or reads the rows that were written."""
    path = tmp_path / "log.sqlite"
    log = create_log(SQLite(path), {"p": 1}, None, None)
    rows = make_rows(60)
    packed_rows = [np.array(row["x"]).tobytes() for row in rows]
    log.write([Learn([row["id"] for row in rows], packed_rows, [tuple(row["labels"]) for row in rows], Columns(3))])
    log.write([Forget(["r7"])])
    expected = read_all(log)
    log.database.close()
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    noticed = 0
    for _ in range(n_flips):
        content = bytearray(good)
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        database = SQLite(path)
        try:
            found = open_log(database)
            if found is None:  # otherwise the snapshots would reveal the damage
                raise LogError("there is no log")
            found.check()
            assert read_all(found) == expected
        except LogError:
            noticed += 1
        finally:
            database.close()
    assert noticed > n_flips // 10

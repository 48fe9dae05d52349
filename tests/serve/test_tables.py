"""Tables in the service: cells of any kind are learned by one recipe, in any portions."""

import json
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA, load
from mlca.client import Client
from mlca.serve.live_model import Learned, LiveModel, new_model, new_parameters
from mlca.serve.log import LoggedRow
from mlca.serve.request_errors import RequestError
from mlca.serve.request_rows import TABLE, Columns, pack_rows, read_rows
from mlca.serve.snapshots import Snapshots
from mlca.serve.table_cells import LONGEST_TEXT, cells_of_rows, check_cells, read_cells
from mlca.tables import TableLearner
from mlca.tables import columns as deciding
from mlca.tables.table_learner import MOST_CELLS
from tests.serve.log_streams import DEFAULTS_OF_0_2, FittingView, fit_log, log_of, state_of
from tests.serve.service_process import until
from tests.serve.table_streams import frame_of, make_table


@pytest.fixture
def early(monkeypatch):
    """Make recipes settle after 40 rows."""
    monkeypatch.setattr(deciding, "FIRST_ROWS", 40)


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.mlca")
        return state_of(Path(folder) / "model.mlca")


def learned(rows, cuts=()):
    """Return the model of rows that arrive in portions, as in the log."""
    model = MLCA(recency=True)
    table = TableLearner(model, "missing")
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        if stop > start:
            cells = [dict(sorted(row["x"].items())) for row in rows[start:stop]]
            table.learn(cells_of_rows(cells), [tuple(row["labels"]) for row in rows[start:stop]])
    return model


def test_model_equals_that_of_the_same_frame_in_python(monkeypatch):
    rows = make_table(128)
    labels = [tuple(row["labels"]) for row in rows]
    assert saved(learned(rows, [1, 50])) == saved(MLCA(recency=True).fit(frame_of(rows), labels))
    monkeypatch.setattr(deciding, "FIRST_ROWS", 50)  # also when the recipe settles in between
    rows = make_table(128, late=False)
    labels = [tuple(row["labels"]) for row in rows]
    assert saved(learned(rows, [1, 30, 77])) == saved(MLCA(recency=True).partial_fit(frame_of(rows), labels))


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("n", [27, 140])  # before the recipe has settled, and afterwards
def test_portions_do_not_change_the_model(early, texts, n):
    rows = make_table(n, texts=texts)
    expected = saved(learned(rows))
    for seed in range(4):
        cuts = np.sort(np.random.default_rng(seed).integers(0, n, 6)).tolist()
        assert saved(learned(rows, cuts)) == expected


CELLS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.integers(-(10**149), 10**149) | st.text(max_size=5)
    | st.floats(-1e150, 1e150) | st.sampled_from(["", "?", "1,234", "1,5", "1_0", "nan", "inf", "2026-02-30",
       "0001-01-01", "9999-12-31T23:59", "yes", "no", "a b c d e", "two words", "\0", "٣", "1e999"])
)  # fmt: skip
NAMES = st.sampled_from(["a", "b*", "b[*]", "id", "Unnamed: 0", " ", "date"])
ANY_ROWS = st.lists(st.dictionaries(NAMES, CELLS, min_size=1, max_size=4), min_size=1, max_size=14)


@settings(max_examples=40, deadline=None)
@given(ANY_ROWS, st.integers(1, 12), st.lists(st.integers(0, 14), max_size=3))
def test_every_accepted_row_can_be_learned(rows, first_rows, cuts):
    before = deciding.FIRST_ROWS
    deciding.FIRST_ROWS = first_rows
    try:
        rows = [{"x": read_cells(x, 0), "labels": [f"l{len(x)}"]} for x in rows]
        cuts = sorted(min(cut, len(rows)) for cut in cuts)
        model = learned(rows, cuts)
        assert model.n_seen_ == len(rows)
        assert saved(model) == saved(learned(rows))
        live = Learned(model)
        model.predict_details(live.encode([row["x"] for row in rows]))
    finally:
        deciding.FIRST_ROWS = before


def test_unreadable_cell_is_rejected_or_learned_as_missing(early):
    rows = make_table(40, texts=False)
    good = learned(rows)
    layout = TableLearner(good).layout
    for cells, place in [({"temp": "warm"}, "x['temp']"), ({"urgent": 7}, "x['urgent']")]:
        with pytest.raises(RequestError) as caught:
            check_cells([{"temp": 1}, cells], layout)
        assert (caught.value.status, caught.value.row, caught.value.field) == (422, 1, place)
        assert "null" in caught.value.remedy
    check_cells([{"temp": "3.5", "site": 7, "urgent": "yes", "new": "x"}, {"temp": None}, {"temp": "?"}], layout)
    full = {f"c{i}": 1 for i in range(MOST_CELLS)}
    with pytest.raises(RequestError, match="one too many"):
        check_cells([full], layout)
    one, other = ({"id": "z", "x": {"temp": cell, "site": "A"}, "labels": ["north"]} for cell in ("warm", None))
    assert saved(learned([*rows, one])) == saved(learned([*rows, other]))
    assert saved(learned([*rows, one])) != saved(learned([*rows, {**one, "x": {"temp": 3, "site": "A"}}]))


def test_numbers_too_large_after_scaling_are_missing(early):
    rows = make_table(40)
    for number, row in enumerate(rows):
        row["x"]["level"] = 1e-9 * (number % 2)  # a number beside text, which is scaled
    one, other = ({"x": {"level": cell, "site": "A"}, "labels": []} for cell in (1e145, None))
    assert saved(learned([*rows, one])) == saved(learned([*rows, other]))


def test_late_columns_begin_with_their_first_value(early):
    rows = make_table(60, texts=False, late=False)
    nothing = {"id": "n", "x": {"height": None, "width": "?", "site": "B"}, "labels": []}
    layout = TableLearner(learned([*rows, nothing])).layout
    assert [column.name for column in layout.columns] == ["site", "temp", "urgent"]
    brought = {"id": "b", "x": {"height": 3, "width": "a rather long text it is"}, "labels": []}
    layout = TableLearner(learned([*rows, nothing, brought])).layout
    assert [(column.name, column.kind) for column in layout.columns[3:]] == [("height", "numeric"), ("width", "text")]


def test_snapshots_start_once_columns_have_settled(early, tmp_path):
    rows = make_table(130)

    logged = [
        LoggedRow(place, x, tuple(row["labels"]), None, row["id"], 0.0, b"")
        for place, (row, x) in enumerate(zip(rows, pack_rows([row["x"] for row in rows]), strict=True), 1)
    ]
    live = LiveModel(Learned(MLCA(recency=True)))
    live.learn(logged[0:39], TABLE)
    assert not live.facts.settled
    live.learn(logged[39:95], TABLE)
    assert live.facts.settled
    snapshots = Snapshots(tmp_path / "snapshots", "this log", print)
    snapshots.save(live)
    again = LiveModel(snapshots.newest(FittingView()))
    assert again.facts == live.facts
    again.learn(logged[95:130], TABLE)
    again.snapshot(tmp_path / "again.mlca", {})
    assert state_of(tmp_path / "again.mlca") == saved(learned(rows))


@pytest.mark.parametrize(
    ("x", "field"),
    [
        ({"a": [1]}, "x['a']"),
        ({"a": {"b": 1}}, "x['a']"),
        ({"a": 1e151}, "x['a']"),
        ({"a": 10**400}, "x['a']"),
        ({"a": float("nan")}, "x['a']"),
        ({"a": "\ud800"}, "x['a']"),
        ({"a": "x" * (LONGEST_TEXT + 1)}, "x['a']"),
        ({f"c{i}": "x" * LONGEST_TEXT for i in range(30)}, "x"),
        ({f"c{i}": 1 for i in range(MOST_CELLS + 1)}, "x"),
        ({"": 1}, "x"),
        ({"n" * 201: 1}, "x"),
        ({}, "x"),
        ([1.0], "x"),
        ("a", "x"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_invalid_cells_are_rejected(x, field):
    with pytest.raises(RequestError) as caught:
        read_cells(x, 3)
    assert (caught.value.status, caught.value.row, caught.value.field) == (422, 3, field)


def served(server, position, tmp_path):
    until(lambda: server.get("/v1/model")["position"] >= position, f"position {position}")
    status, content, _ = server.ask("GET", "/v1/model/file")
    assert status == 200, content
    (tmp_path / "served.mlca").write_bytes(content)
    return state_of(tmp_path / "served.mlca")


@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        (Columns(2), "send a list of 2 numbers"),
        (Columns(2, ("a", "b")), "send a list of 2 numbers, or an object that maps column names to numbers"),
    ],
)
def test_remedy_for_x_that_is_not_a_row_mentions_only_supported_formats(columns, remedy):
    with pytest.raises(RequestError) as caught:
        read_rows([{"x": "1, 2"}], columns, need_ids=False, need_labels=False, most=1)
    assert (caught.value.problem, caught.value.remedy) == ("x is a string", remedy)


def test_table_is_learned_from_the_first_row(serve, tmp_path):
    server = serve()
    row = {"id": "r1", "x": {"temp": 3.1, "site": "A"}, "labels": ["storm"]}
    assert server.learn([row]) == {"position": 1, "generation": 0, "learned": 1, "duplicates": []}
    rows = make_table(120)
    server.learn(rows[:40])
    for portion in range(40, 120, 16):
        server.learn(rows[portion : portion + 16])
    until(lambda: server.get("/v1/model")["position"] == 121, "position 121")
    assert server.post("/v1/predict", {"rows": [{"x": {"sky": "blue"}}]})["rows"][0]["probabilities"]
    columns = server.get("/v1/model")["columns"]
    kinds = dict(zip(columns["names"], columns["kinds"], strict=True))
    known = {"site": "categorical", "temp": "numeric", "note": "text", "urgent": "boolean", "height": "numeric"}
    assert (kinds, columns["settled"]) == (known, False)
    before = served(server, 121, tmp_path)
    assert before == fit_log(log_of(server.data), tmp_path / "fitted.mlca")
    asked = [{"note": "the printer has a crash", "site": "Z", "temp": None}, {"height": 1}, rows[3]["x"]]
    answer = server.post("/v1/predict", {"rows": [{"x": x} for x in asked], "top": 1000})
    here = load(tmp_path / "served.mlca")
    expected = here.predict_proba(frame_of([*({"x": x} for x in asked), rows[100]]).reindex(columns=list(known)))[:3]
    found = [[row["probabilities"][name] for name in here.classes_] for row in answer["rows"]]
    assert found == expected.tolist()
    values = server.post("/v1/explain", {"x": asked[0]})["values"]
    said = {value["column"]: value["row"] for value in values}
    assert said["note"] == "the printer has a crash"
    assert (said["site"], said["temp"]) == ("Z", "missing")
    assert server.post("/v1/explain", {"id": "t3"})["nodes"][0]["distance"] == 0
    # Columns and categories that only forgotten rows had are removed as well.
    server.learn([{"id": "person", "x": {"secret": "unmistakable"}, "labels": ["secret"]}])
    assert server.post("/v1/forget", {"ids": ["person", "t7"]})["forgotten"] == 2
    until(lambda: server.get("/v1/model")["generation"] == 1, "rebuilt")
    assert "secret" not in server.get("/v1/model")["columns"]["names"]
    forgotten = served(server, 122, tmp_path)
    assert forgotten == fit_log(log_of(server.data), tmp_path / "fitted.mlca")
    assert forgotten != before
    server.kill()
    assert "unmistakable" not in server.err.read_text()
    server.start()
    assert served(server, 122, tmp_path) == forgotten


def test_settled_table_rejects_mismatching_cells(serve, tmp_path):
    server = serve()
    rows = make_table(1010, texts=False)
    odd = {"id": "odd", "x": {"temp": "warm", "site": "B"}}
    server.learn(rows[:500])
    server.post("/v1/predict", {"rows": [odd], "keep": True})  # while the mismatch cannot be detected yet
    server.learn(rows[500:1000])
    until(lambda: server.get("/v1/model")["columns"]["settled"], "settled")
    for path in ("learn", "predict"):
        bad = {"id": "bad", "x": {"temp": "cold"}} | ({"labels": []} if path == "learn" else {})
        error = server.post(f"/v1/{path}", {"rows": [bad]}, 422)["error"]
        assert (error["row"], error["field"]) == (0, "x['temp']")
    server.post("/v1/explain", {"x": {"urgent": "perhaps"}}, 422)
    assert server.post("/v1/labels", {"rows": [{"id": "odd", "labels": ["north"]}]})["position"] == 1001
    # The row is known now and acknowledged as a duplicate; a new row with such a cell is still rejected.
    again = {**odd, "labels": ["north"]}
    assert server.learn([rows[0], again])["duplicates"] == ["t0", "odd"]
    error = server.learn([again, rows[1000], {**again, "id": "odder"}], status=422)["error"]
    assert (error["row"], error["field"]) == (2, "x['temp']")
    server.learn(rows[1000:])
    expected = served(server, 1011, tmp_path)
    assert expected == fit_log(log_of(server.data), tmp_path / "fitted.mlca")
    server.stop()
    assert list((server.data / "snapshots").glob("*1011-*.mlca"))
    server.start()
    assert served(server, 1011, tmp_path) == expected


def test_service_starts_from_a_model_of_tables(serve, tmp_path):
    rows = make_table(90, late=False)
    start = MLCA(recency=True).fit(frame_of(rows[:70]), [tuple(row["labels"]) for row in rows[:70]])
    start.save(tmp_path / "start.mlca")
    server = serve("--model", tmp_path / "start.mlca")
    assert server.get("/v1/model")["columns"]["settled"]
    with Client(server.url) as client:
        table = frame_of(rows[70:])
        table["temp"] = table["temp"].astype(float)  # None becomes NaN
        parts = [
            {"id": row["id"], "x": x, "labels": row["labels"]}
            for row, (_, x) in zip(rows[70:], table.iterrows(), strict=True)
        ]
        assert client.learn(parts)["learned"] == 20
        client.predict([{"x": {"seen": pd.Timestamp("2026-01-31"), "count": np.int64(3), "ok": np.True_}}])
    start.partial_fit(frame_of(rows[70:]), [tuple(row["labels"]) for row in rows[70:]])
    assert served(server, 20, tmp_path) == saved(start)


def test_service_continues_from_a_log_of_version_1(serve, tmp_path):
    (tmp_path / "data").mkdir()
    with sqlite3.connect(tmp_path / "data" / "log.sqlite") as connection:
        connection.executescript(Path(__file__).with_name("log_of_version_1.sql").read_text())
    connection.close()
    server = serve()
    columns = server.get("/v1/model")["columns"]
    assert (columns["table"], columns["names"]) == (False, ["heat", "wind", "rain"])
    here = [row for row in log_of(server.data) if row[2] is not None]
    model = MLCA(recency=True, **DEFAULTS_OF_0_2)
    model.fit(np.array([row[2] for row in here]), [tuple(row[3]) for row in here])
    assert (len(here), served(server, 60, tmp_path)) == (59, saved(model))
    server.learn([{"id": "n1", "x": {"wind": 1, "heat": 2, "rain": 3}, "labels": []}])
    server.learn([{"id": "n2", "x": [1, 2, 3], "labels": []}])
    assert [row[2].tolist() for row in log_of(server.data)[60:]] == [[2, 1, 3], [1, 2, 3]]
    for x, field in [({"heat": 1}, "x['wind']"), ({"heat": 1, "wind": 1, "rain": "no"}, "x['rain']")]:
        assert server.learn([{"id": "n3", "x": x, "labels": []}], 422)["error"]["field"] == field
    version = sqlite3.connect(server.data / "log.sqlite").execute("SELECT version FROM mlca_log").fetchone()
    assert version == (3,)


def test_log_has_canonical_form_and_version(serve):
    server = serve()
    server.learn([{"id": "a", "x": {"b": 1, "a": "ä", "c": None}, "labels": []}])
    connection = sqlite3.connect(server.data / "log.sqlite")
    assert connection.execute("SELECT version FROM mlca_log").fetchone() == (3,)
    packed = connection.execute("SELECT x FROM mlca_rows").fetchone()[0]
    connection.close()
    assert packed == '{"a":"ä","b":1,"c":null}'.encode()
    assert json.loads(packed) == {"a": "ä", "b": 1, "c": None}


@pytest.mark.parametrize("portion", [1, 7, 60])
def test_kinds_of_columns_can_be_set(portion):
    chosen = {"columns": {"id": "ignore", "code": "category", "note": "number"}, "text_features": 128}
    parameters = json.loads(json.dumps(new_parameters(chosen)))
    cells = [{"code": i % 3, "id": i, "note": "n/a" if i % 5 else "?!", "size": i / 7} for i in range(60)]
    rows = [
        LoggedRow(place, x, ("a",) if place % 3 else (), None, f"r{place}", 0.0, b"")
        for place, x in enumerate(pack_rows(cells), 1)
    ]
    service = Learned(new_model(parameters, None))
    for start in range(0, 60, portion):
        service.learn(rows[start : start + portion], TABLE)
    kinds = {column.name: (column.kind, column.width) for column in service.facts().layout.columns}
    assert kinds["code"] == ("categorical", 1) and kinds["id"][1] == 0
    assert kinds["note"] == ("text", 128)  # no cell is a number, and nothing may fail
    assert service.model.n_seen_ == 60

"""`mlca predict`: the output equals the model's predictions, in every format."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mlca import load
from tests.cli.weather_table import as_matrix, weather_rows, write_csv

ROWS = weather_rows(40, 5)


@pytest.fixture
def new(tmp_path):
    return write_csv(tmp_path / "new.csv", ROWS)


def expected(model, choose):
    """Return, per row, the names and probabilities of the labels that `choose` selects, most likely first."""
    loaded, X = load(model), as_matrix(ROWS)
    names, chosen = loaded.classes_, []
    for own, predicted in zip(loaded.predict_proba(X), loaded.predict(X), strict=True):
        order = choose(np.argsort(-own, kind="stable"), own, predicted)
        chosen.append((names[order].tolist(), own[order].tolist()))
    return chosen


def as_predicted(order, own, predicted):
    return order[predicted[order] == 1]


def more_likely_than(p):
    return lambda order, own, predicted: order[own[order] > p]


def test_json_lines_have_exact_probabilities(model, new, call, tmp_path):
    assert call("predict", model, new, "--out", tmp_path / "p.jsonl")[0] == 0
    found = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["row"] for row in found] == list(range(1, 41))
    assert [(row["labels"], row["probabilities"]) for row in found] == expected(model, as_predicted)
    assert [set(row["labels"]) for row in found] == load(model).predict_labels(as_matrix(ROWS))
    assert [row["novelty"] for row in found] == load(model).novelty(as_matrix(ROWS)).tolist()


def test_parquet_output_has_labels_probabilities_and_novelty(model, new, call, tmp_path):
    assert call("predict", model, new, "--out", tmp_path / "p.parquet", "--threshold", "0.1")[0] == 0
    found = pd.read_parquet(tmp_path / "p.parquet")
    chosen = [(list(names), list(p)) for names, p in zip(found.labels, found.probabilities, strict=True)]
    assert chosen == expected(model, more_likely_than(0.1))
    assert found.novelty.tolist() == load(model).novelty(as_matrix(ROWS)).tolist()


def labels_of(out):
    return [set(json.loads(line)["labels"]) for line in out.splitlines()]


def test_thresholds_apply_per_label_and_to_all_others(model, new, call):
    loaded, X = load(model), as_matrix(ROWS)
    first, *others = loaded.classes_.tolist()
    _, out, _ = call("predict", model, new, "--json", "--threshold", "0.2", "--threshold", f"{first}=0.9")
    assert labels_of(out) == loaded.predict_labels(X, threshold=dict.fromkeys(others, 0.2) | {first: 0.9})
    code, _, err = call("predict", model, new, "--threshold", "fog on Mars=0.9")
    assert code == 1 and "the label 'fog on Mars', which the model does not know" in err


@pytest.mark.parametrize("objective", ["exact", "f1", "hamming"])
def test_objective_is_used_by_predict_and_stored_by_train(objective, model, new, call, tmp_path):
    expected = load(model).set_params(objective=objective).predict_labels(as_matrix(ROWS))
    _, out, _ = call("predict", model, new, "--json", "--objective", objective)
    assert labels_of(out) == expected
    path = write_csv(tmp_path / "train.csv", weather_rows(60, 1))
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--objective", objective]
    assert call("train", path, *words)[0] == 0
    assert load(tmp_path / "m.mlca").objective == objective


def test_unsupported_objective_is_rejected(new, call, tmp_path):
    path = write_csv(tmp_path / "train.csv", weather_rows(60, 1))
    assert call("train", path, "--labels", "tags", "--out", tmp_path / "m.mlca", "--decision", "calibrated")[0] == 0
    code, _, err = call("predict", tmp_path / "m.mlca", new, "--objective", "f1")
    assert code == 1 and 'objective="f1" needs decision="mixed"' in err


def test_csv_output_has_the_most_likely_labels_and_novelty(model, new, call, tmp_path):
    assert call("predict", model, new, "--out", tmp_path / "p.csv", "--top", "2")[0] == 0
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row, (names, probabilities) in zip(rows, expected(model, lambda order, *_: order[:2]), strict=True):
        assert row["labels"].split("|") == names
        np.testing.assert_allclose([float(p) for p in row["probabilities"].split("|")], probabilities, rtol=1e-5)
    novelty = load(model).novelty(as_matrix(ROWS))
    np.testing.assert_allclose([float(row["novelty"]) for row in rows], novelty, rtol=1e-3)


def test_published_algorithm_has_no_novelty(new, call, tmp_path):
    path = write_csv(tmp_path / "train.csv", weather_rows(60, 1))
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--published", "MLCA"]
    assert call("train", path, *words)[0] == 0
    _, out, _ = call("predict", tmp_path / "m.mlca", new)
    assert {row["novelty"] for row in csv.DictReader(out.splitlines())} == {""}
    _, out, _ = call("predict", tmp_path / "m.mlca", new, "--json")
    assert {json.loads(line)["novelty"] for line in out.splitlines()} == {None}


def test_no_label_column_is_needed_and_the_summary_is_json(model, call_json, tmp_path):
    rows = [[*cells[:2], "monsoon", []] for cells in ROWS]
    path = write_csv(tmp_path / "new.csv", rows)
    path.write_text("\n".join(line.rsplit(",", 1)[0] for line in path.read_text().splitlines()))
    facts = call_json("predict", model, path, "--out", tmp_path / "p.csv")
    assert facts["rows"] == 40
    assert facts["unseen"] == {"season=monsoon": 40}


def test_numbers_of_skipped_rows_are_left_out(model, new, call, tmp_path):
    lines = new.read_text().splitlines()
    new.write_text("\n".join([lines[0], "oops", *lines[1:]]))
    code, out, err = call("predict", model, new, "--on-error", "skip")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["row", *map(str, range(2, 42))]
    assert "line 2: the row has 1 cells" in err


def test_failure_leaves_no_partial_file(model, new, call, tmp_path):
    (tmp_path / "p.csv").write_text("old")
    new.write_text(new.read_text() + "oops\n")
    assert call("predict", model, new, "--out", tmp_path / "p.csv")[0] == 1
    assert (tmp_path / "p.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.mlca", "new.csv", "p.csv"]


def test_failure_ends_standard_output_after_whole_lines(model, call, tmp_path):
    """Earlier rows may have been written (see docs/cli.md), but only as whole lines, and the exit code reports it."""
    path = write_csv(tmp_path / "long.csv", weather_rows(1200, 6))
    _, whole, _ = call("predict", model, path)
    path.write_text(path.read_text() + "oops\n")
    code, out, err = call("predict", model, path)
    assert code == 1 and "long.csv, line 1202: the row has 1 cells" in err
    assert whole.startswith(out) and out.endswith("\n") and len(out) < len(whole)


def test_mismatching_file_produces_no_output(model, call, tmp_path):
    (tmp_path / "other.csv").write_text("temp,season\n1,winter\n")
    code, out, err = call("predict", model, tmp_path / "other.csv")
    assert (code, out) == (1, "")
    assert "missing column 'humidity' (numeric)" in err


def test_output_separator_occurs_in_no_label(tmp_path, call):
    (tmp_path / "a.jsonl").write_text('{"x": 1, "tags": ["a|b", "c;d"]}\n{"x": 2, "tags": ["e"]}\n' * 30)
    assert call("train", tmp_path / "a.jsonl", "--labels", "tags", "--out", tmp_path / "m.mlca")[0] == 0
    _, out, _ = call("predict", tmp_path / "m.mlca", tmp_path / "a.jsonl", "--top", "3")
    rows = list(csv.DictReader(out.splitlines()))
    assert sorted(rows[0]["labels"].split(",")) == ["a|b", "c;d", "e"]


def test_missing_row_id_is_written_as_empty_cell(model, call, tmp_path):
    path = tmp_path / "new.jsonl"
    rows = [{"temp": 1, "humidity": 50, "season": "winter", "key": key} for key in (7, None, float("nan"))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert call("predict", model, path, "--id", "key", "--out", tmp_path / "p.csv")[0] == 0
    assert [row["key"] for row in csv.DictReader((tmp_path / "p.csv").open())] == ["7", "", ""]


def test_line_ends_in_cells_do_not_end_the_row(model, call, tmp_path):
    """Before Python 3.13, `csv` does not quote a carriage return, which readers take for the end of a row."""
    ids = ["a\rb", "c\nd", "\re", "f\r\ng", 'h"\r']
    rows = [[*row[:3], name, []] for row, name in zip(weather_rows(5, 3), ids, strict=True)]
    path = write_csv(tmp_path / "new.csv", rows, ["temp", "humidity", "season", "key", "tags"])
    code, _, err = call("predict", model, path, "--id", "key", "--out", tmp_path / "p.csv")
    assert code == 0, err
    with (tmp_path / "p.csv").open(newline="") as file:
        carried = [row["key"].removeprefix("'") for row in csv.DictReader(file)]
    assert carried == [name.strip() for name in ids]
    assert not (tmp_path / "p.csv").read_bytes().endswith(b"\r\n")


def test_wrong_arguments_exit_with_code_2(model, new, call):
    assert call("predict", model, new, "--out", "p.xlsx")[0] == 2
    assert call("predict", model, new, "--top", "0")[0] == 2
    assert call("predict", model, new, "--top", "2", "--threshold", "0.1")[0] == 2


def test_pipeline_that_is_closed_early_ends_quietly(model, new):
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "mlca", "predict", str(model), "-"],
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    os.close(read)
    _, err = process.communicate(new.read_bytes(), timeout=120)
    assert (process.returncode, err) == (0, b"")

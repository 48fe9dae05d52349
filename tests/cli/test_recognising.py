"""`mlca train`: detection of columns, ID columns, held-out rows and tuning."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.cli.train import is_kept_apart
from mlca.frames import recipe_of
from mlca.metrics import prequential
from mlca.progress import GrowingCost
from tests.cli.weather_table import HEADER, as_matrix, new_model, weather_rows, write_csv
from tests.tables.tickets import tickets

ROWS = weather_rows(230, 1)


def expected_model(rows=ROWS):
    return new_model().partial_fit(as_matrix(rows), [tuple(tags) for *_, tags in rows])


def written_with_commas(rows):
    return [[str(t).replace(".", ","), str(h).replace(".", ","), s, tags] for t, h, s, tags in rows]


def written_by_pandas(path, kind=list):
    frame = pd.DataFrame(ROWS, columns=HEADER)
    frame["tags"] = [kind(own) for own in frame["tags"]]
    frame.to_csv(path, index=False)


FILES = {
    "tabs in a .csv": lambda path: write_csv(path, ROWS, delimiter="\t"),
    "decimal commas": lambda path: write_csv(path, written_with_commas(ROWS), delimiter=";"),
    "decimal commas and tabs": lambda path: write_csv(path, written_with_commas(ROWS), delimiter="\t"),
    "lists that pandas wrote": written_by_pandas,
    "tuples that pandas wrote": lambda path: written_by_pandas(path, tuple),
    "arrays that pandas wrote": lambda path: written_by_pandas(path, lambda own: np.array(own, dtype=object)),
}


@pytest.mark.parametrize("name", FILES)
def test_same_rows_in_other_notation_give_the_same_model(tmp_path, call, name):
    FILES[name](tmp_path / "a.csv")
    code, out, err = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")
    assert code == 0, err
    np.testing.assert_array_equal(load(tmp_path / "m.mlca").prototypes_, expected_model().prototypes_)
    assert ("decimal commas" in out) == ("commas" in name)


def test_kinds_of_columns_are_printed_and_ids_left_out(tmp_path, call):
    frame, topics = tickets(200, 1)
    frame.assign(tags=["|".join(own) for own in topics]).to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")
    assert code == 0
    told = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()[1:7]}
    assert {name: words[0] for name, words in told.items()} == {
        "ticket": "ignored",
        "text": "text",
        "priority": "categorical",
        "hours": "numeric",
        "returning": "boolean",
        "opened": "date",
    }
    assert told["ticket"][1].startswith("an id: all 200 values differ")
    assert told["opened"][1] == "time, position in the year, position in the week, position in the day"
    facts = json.loads(call("inspect", tmp_path / "m.mlca", "--json")[1])
    assert facts["sparse"] and any("hours" in node["values"] for node in facts["labels"][0]["typical_nodes"])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_ids_are_copied_and_not_learned(tmp_path, call, suffix):
    rows = [[f"=no{i}", *row] for i, row in enumerate(ROWS)]
    write_csv(tmp_path / "a.csv", rows, header=["name", *HEADER])
    train = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"]
    code, out, _ = call(*train, "--id", "name")
    assert code == 0 and "name" in out.splitlines()[4] and "copied by `predict`" in out
    assert load(tmp_path / "m.mlca").n_features_in_ == 3
    code, _, err = call("predict", tmp_path / "m.mlca", tmp_path / "a.csv", "--out", tmp_path / f"p{suffix}")
    assert code == 0, err
    read = {".csv": pd.read_csv, ".jsonl": lambda path: pd.read_json(path, lines=True), ".parquet": pd.read_parquet}
    found = read[suffix](tmp_path / f"p{suffix}")
    assert list(found.columns) == ["row", "name", "labels", "probabilities", "novelty"]
    quote = "'" if suffix == ".csv" else ""  # keeps spreadsheets from running the cell
    assert found["name"].tolist() == [f"{quote}=no{i}" for i in range(230)]
    code, _, err = call(*train, "--id", "name", "--numeric", "name")
    assert code == 1 and "is selected by two options" in err
    code, _, err = call(*train, "--id", "nobody")
    assert code == 1 and "no column is called 'nobody'" in err
    code, _, err = call("predict", tmp_path / "m.mlca", tmp_path / "a.csv", "--id", "temp")
    assert code == 1 and "copied, not learned" in err


def test_held_out_rows_are_measured(tmp_path, call, call_json):
    write_csv(tmp_path / "a.csv", ROWS)
    words = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"]
    facts = call_json(*words, "--holdout", ".2")
    apart = [is_kept_apart(number, 0.2) for number in range(1, 231)]
    assert facts["rows"] == apart.count(False) and 25 < apart.count(True) < 70
    kept = [row for row, held in zip(ROWS, apart, strict=True) if not held]
    model = expected_model(kept)
    np.testing.assert_array_equal(load(tmp_path / "m.mlca").prototypes_, model.prototypes_)
    rest = [row for row, held in zip(ROWS, apart, strict=True) if held]
    assert facts["holdout"]["exact_match"] == pytest.approx(model.score(as_matrix(rest), [tags for *_, tags in rest]))
    code, out, _ = call(*words, "--holdout", ".2")
    assert code == 0 and "On the 20% of the rows held out:" in out and "Exact match" in out
    assert call(*words, "--holdout", "2")[0] == 2
    assert call("train", "-", "--labels", "tags", "--out", tmp_path / "m.mlca", "--holdout", ".2")[0] == 1


def test_missing_values_of_held_out_rows_are_not_counted(tmp_path, call_json):
    apart = [is_kept_apart(number, 0.2) for number in range(1, 231)]
    rows = [
        ["", h, "monsoon", tags] if held else [t, h, s, tags] for (t, h, s, tags), held in zip(ROWS, apart, strict=True)
    ]
    rows[apart.index(False)][0] = ""
    write_csv(tmp_path / "a.csv", rows)
    words = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", "--holdout", ".2"]
    assert call_json(*words)["missing"] == {"temp": 1}


def test_tuning_shows_its_trials_and_explains_the_choice(tmp_path, call, call_json):
    write_csv(tmp_path / "a.csv", ROWS)
    words = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", "--tune"]
    code, out, err = call(*words)
    assert code == 0, err
    lines = out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("Tuned on the first 230 rows"))
    assert len([line for line in lines[first + 2 : first + 8] if "common" in line or "individual" in line]) == 6
    chosen = lines[first + 8]
    assert chosen.startswith("Chosen: --vigilance ") and "F1" in chosen
    facts = call_json(*words)
    stream = zip(as_matrix(ROWS), [tuple(tags) for *_, tags in ROWS], strict=True)
    measured = prequential(new_model(vigilance=0.1), stream, alarms=False).records[-1].running
    assert facts["tuning"][2]["vigilance"] == 0.1 and facts["tuning"][2]["example_f1"] == measured.example_f1
    best = max(trial["example_f1"] for trial in facts["tuning"])
    model = load(tmp_path / "m.mlca")
    own = [t for t in facts["tuning"] if (t["vigilance"], t["attributes"]) == (model.vigilance, model.attributes)]
    assert own[0]["example_f1"] >= best - 0.01
    assert all(t["nodes"] >= own[0]["nodes"] for t in facts["tuning"] if t["example_f1"] >= best - 0.01)


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("x,tags\noops,a\n" + "1.5,b\n" * 20, 2, "'oops' is not a number within bounds, as column 'x'"),
        ("x,tags\n1,a,b\n" + "1.5,b\n" * 20, 2, "the row has 3 cells"),
        ("x,t\n1.5,maybe\n" + "1.5,0\n1.5,1\n" * 20, 2, "label 't' must be 0 or 1"),
        ("x,t\n1.5,[a\n" + '1.5,"[""a""]"\n' * 20, 2, "not a list such as"),
        ("x,y,tags\n1,,a\n" + "soon,2024-01-02,a\n1,2024-01-03,b\n" * 20, 3, "'soon'"),
        ("day,tags\nthen,a\n" + "2024-01-02,a\n2024-01-03,b\n" * 20, 2, "'then' is not a date, as column 'day'"),
        ('[1]\n{"x": 1, "tags": "a"}\n', 1, "found a list"),
    ],
)
def test_every_bad_cell_is_named_even_in_the_first_row(tmp_path, call, content, line, problem):
    path = tmp_path / ("a.jsonl" if content.startswith("[") else "a.csv")
    path.write_text(content)
    labels = "t" if ",t\n" in content else "tags"
    options = ["--numeric", "x"] if "soon" in content else []
    code, _, err = call("train", path, "--labels", labels, "--out", tmp_path / "m.mlca", *options)
    assert code == 1 and f"{path}, line {line}: " in err and problem in err, err


def test_time_left_accounts_for_increasing_cost_per_row():
    """If the cost per row grows linearly, the second half of the rows takes three times as long as the first."""
    cost = GrowingCost()
    for percent in range(1, 51):
        cost.note(percent / 100, 100 * (percent / 100) ** 2)
    assert cost.left(0.5, 25) == pytest.approx(75, abs=1)
    even = GrowingCost()
    for percent in range(1, 51):
        even.note(percent / 100, percent)
    assert even.left(0.5, 50) == pytest.approx(50, abs=1)
    assert GrowingCost().left(None, 5) is None


@pytest.mark.parametrize("command", ["inspect", "predict"])
def test_closed_pipe_ends_quietly(model, tmp_path, command):
    more = [write_csv(tmp_path / "a.csv", weather_rows(3000, 2))] if command == "predict" else []
    words = [sys.executable, "-m", "mlca", command, str(model), *map(str, more)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert done.returncode == 0 and b"Broken" not in done.stderr and b"Traceback" not in done.stderr


def test_model_from_python_shows_names(tmp_path, call):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["width", "height"])
    MLCA().fit(frame, [{"wide"} if w > 0 else {"narrow"} for w in frame["width"]]).save(tmp_path / "m.mlca")
    code, out, _ = call("inspect", tmp_path / "m.mlca")
    assert code == 0 and "2 numeric" in out and "width" in out
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = call("explain", tmp_path / "m.mlca", tmp_path / "a.csv", "--row", "3")
    assert code == 0 and f"{frame['width'][2]:.4g}" in out and "distance" in out
    assert recipe_of(load(tmp_path / "m.mlca")) is None  # the names alone suffice

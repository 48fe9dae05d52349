"""`mlca train`: equal rows give equal models from files of every format, exactly as with `partial_fit`."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.frames import recipe_of
from tests.cli.weather_table import HEADER, as_matrix, new_model, run, weather_rows, write_csv

ROWS = weather_rows(230, 1)


def expected_model(rows=ROWS, **parameters):
    return new_model(**parameters).partial_fit(as_matrix(rows), [tuple(tags) for *_, tags in rows])


def assert_equal_models(a, b):
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.n_seen_ == b.n_seen_
    np.testing.assert_array_equal(a.prototypes_, b.prototypes_)
    np.testing.assert_array_equal(a.label_counts_.toarray(), b.label_counts_.toarray())
    np.testing.assert_array_equal(a.bandwidths_, b.bandwidths_)


def as_frame(rows):
    return pd.DataFrame(rows, columns=HEADER)


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(dict(zip(HEADER, cells, strict=True))) + "\n" for cells in rows))


def write_arff(path, rows):
    tags = ["beach", "cold", "rain"]
    head = "@relation weather\n@attribute temp numeric\n@attribute humidity numeric\n"
    head += "@attribute season {spring,summer,winter}\n"
    head += "".join(f"@attribute {tag} {{0,1}}\n" for tag in tags) + "@data\n"
    body = [f"{t},{h},{s}," + ",".join(str(int(tag in own)) for tag in tags) for t, h, s, own in rows]
    path.write_text(head + "\n".join(body))


WRITERS = {
    "a.csv": lambda path: write_csv(path, ROWS),
    "semicolon.csv": lambda path: write_csv(path, ROWS, delimiter=";", separator=","),
    "a.tsv": lambda path: write_csv(path, ROWS, delimiter="\t", separator=";"),
    "a.jsonl": lambda path: write_jsonl(path, ROWS),
    "a.parquet": lambda path: as_frame(ROWS).to_parquet(path),
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress(write_csv(path.parent / "plain", ROWS).read_bytes())),
    "lists.csv": lambda path: write_csv(path, [[*cells[:3], [json.dumps(cells[3])]] for cells in ROWS]),
    "no_suffix": lambda path: write_jsonl(path, ROWS),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_model_of_partial_fit(tmp_path, call, name):
    WRITERS[name](tmp_path / name)
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--vigilance", "0.05", "--attributes", "individual"]
    code, _, err = call("train", tmp_path / name, *words)
    assert code == 0, err
    expected = expected_model(vigilance=0.05, attributes="individual")
    assert_equal_models(load(tmp_path / "m.mlca"), expected)


OPTIONS = {
    "--published MLCA-I --vigilance 0.15": {
        "similarity": "correntropy",
        "decision": "bayes",
        "attributes": "individual",
        "vigilance": 0.15,
    },
    "--similarity correntropy --decision calibrated --recency": {
        "similarity": "correntropy",
        "decision": "calibrated",
        "recency": True,
    },
    "--decision bayes --vote frequencies --neighbors 5": {
        "decision": "bayes",
        "vote": "frequencies",
        "n_neighbors": 5,
    },
    "--vigilance auto --drift follow --max-nodes 40": {"vigilance": "auto", "drift": "follow", "max_nodes": 40},
}


@pytest.mark.parametrize("words", OPTIONS)
def test_options_set_the_parameters_of_the_model(tmp_path, call, words):
    write_csv(tmp_path / "a.csv", ROWS)
    code, _, err = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", *words.split())
    assert code == 0, err
    assert_equal_models(load(tmp_path / "m.mlca"), expected_model(**OPTIONS[words]))


def test_batch_size_does_not_change_the_model(tmp_path, call, monkeypatch):
    monkeypatch.setattr("mlca.tables.batches.BATCH_ROWS", 17)
    write_csv(tmp_path / "a.csv", ROWS)
    assert call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")[0] == 0
    assert_equal_models(load(tmp_path / "m.mlca"), expected_model())


@pytest.mark.parametrize("labels", ["beach,cold,rain", "[bcr]*"])
def test_arff_with_0_1_label_columns_equals_partial_fit(tmp_path, call, labels):
    write_arff(tmp_path / "a.arff", ROWS)
    assert call("train", tmp_path / "a.arff", "--labels", labels, "--out", tmp_path / "m.mlca")[0] == 0
    model = load(tmp_path / "m.mlca")
    names = ["beach", "cold", "rain"]
    indicator = np.array([[name in tags for name in names] for *_, tags in ROWS]).astype(int)
    assert_equal_models(model, new_model().partial_fit(as_matrix(ROWS), indicator, classes=names))


def test_meka_and_mulan_declare_the_labels(tmp_path, call):
    write_arff(tmp_path / "mulan.arff", ROWS)
    text = (tmp_path / "mulan.arff").read_text()
    (tmp_path / "meka.arff").write_text(text.replace("@relation weather", "@relation 'weather: -C -3'"))
    (tmp_path / "l.xml").write_text('<labels><label name="beach"/><label name="cold"/><label name="rain"/></labels>')
    assert call("train", tmp_path / "meka.arff", "--out", tmp_path / "a.mlca")[0] == 0
    words = ["--labels", tmp_path / "l.xml", "--out", tmp_path / "b.mlca"]
    assert call("train", tmp_path / "mulan.arff", *words)[0] == 0
    assert_equal_models(load(tmp_path / "a.mlca"), load(tmp_path / "b.mlca"))
    assert load(tmp_path / "a.mlca").classes_.tolist() == ["beach", "cold", "rain"]


def test_model_of_xc_text_equals_model_of_read_xc(tmp_path, call):
    from mlca.datasets import read_xc

    rng = np.random.default_rng(3)
    lines = [
        ",".join(map(str, np.flatnonzero(rng.random(4) < 0.5)))
        + "".join(f" {j}:{rng.random():.3f}" for j in np.flatnonzero(rng.random(30) < 0.2) + 1)
        for _ in range(120)
    ]
    (tmp_path / "data.xc").write_text("120 30 4\n" + "\n".join(lines) + "\n\n")
    code, out, err = call("train", tmp_path / "data.xc", "--out", tmp_path / "m.mlca")
    assert code == 0, err
    assert "30 features, numbered from 1" in out
    table = read_xc(tmp_path / "data.xc")
    names = [tuple(str(j) for j in row.nonzero()[0]) for row in table.Y.toarray()]
    model, expected = load(tmp_path / "m.mlca"), MLCA().partial_fit(table.X, names)
    np.testing.assert_array_equal(model.prototypes_.toarray(), expected.prototypes_.toarray())
    assert model.classes_.tolist() == expected.classes_.tolist()


def test_sparse_arff_stays_sparse(tmp_path, call):
    head = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y {0,1}\n@data\n"
    (tmp_path / "s.arff").write_text(head + "{0 1.5, 2 1}\n{1 2}\n{}\n" * 30)
    assert call("train", tmp_path / "s.arff", "--labels", "y", "--out", tmp_path / "m.mlca")[0] == 0
    X = np.array([[1.5, 0], [0, 2], [0, 0]] * 30)
    expected = MLCA().partial_fit(X, [("y",), (), ()] * 30)
    model = load(tmp_path / "m.mlca")
    assert model._learner.sparse_nodes
    np.testing.assert_allclose(model.prototypes_.toarray(), expected.prototypes_)


def test_detected_column_kinds_are_shown_and_can_be_overridden(tmp_path, call):
    rows = [[2000 + i % 3, f"note {i}", t, s, tags] for i, (t, _, s, tags) in enumerate(ROWS)]
    write_csv(tmp_path / "a.csv", rows, header=["year", "note", "temp", "season", "tags"])
    train = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"]
    _, out, _ = call(*train)
    lines = {line.split()[0]: line for line in out.splitlines()[1:5]}
    assert "numeric" in lines["year"] and "scaled" in lines["year"]
    assert "text" in lines["note"] and "words and pairs of words, hashed to 16,384 features" in lines["note"]
    assert "3 values: spring, summer, winter" in lines["season"]
    _, out, _ = call(*train, "--categorical", "year", "--ignore", "s*,note")
    assert "year    categorical  3 values: 2000, 2001, 2002" in out
    assert "season  ignored      as you wish" in out
    assert load(tmp_path / "m.mlca").prototypes_.shape[1] == 2


def test_very_different_spreads_cause_a_hint(tmp_path, call):
    rows = [[t * 1000, h / 100, s, tags] for t, h, s, tags in ROWS]
    write_csv(tmp_path / "a.csv", rows)
    train = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"]
    assert "'temp' has" in call(*train)[1]
    assert "Hint" not in call(*train, "--attributes", "individual")[1]
    write_csv(tmp_path / "a.csv", ROWS)
    assert "Hint" not in call(*train)[1]


def test_missing_values_are_kept_and_reported(tmp_path, call_json):
    rows = [["" if i == 3 else "NA" if i == 4 else t, h, "?" if i < 5 else s, g] for i, (t, h, s, g) in enumerate(ROWS)]
    write_csv(tmp_path / "a.csv", rows)
    facts = call_json("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", "--vigilance", "0")
    assert facts["missing"] == {"temp": 2, "season": 5}
    X = as_matrix(ROWS)
    X[3:5, 0] = X[:5, 2] = np.nan
    expected = new_model(vigilance=0.0).partial_fit(X, [tuple(tags) for *_, tags in ROWS])
    assert_equal_models(load(tmp_path / "m.mlca"), expected)


def test_recipe_is_stored_and_survives_python(tmp_path, model):
    recipe = recipe_of(load(model))
    assert [column.name for column in recipe.layout.learned] == ["temp", "humidity", "season"]
    assert recipe.layout.labels.separator == "|"
    again = load(model).partial_fit([[1.0, 60, 3]], [{"cold"}])
    again.save(tmp_path / "again.mlca")
    assert recipe_of(load(tmp_path / "again.mlca")).to_json() == recipe.to_json()
    again.fit([[1.0], [2.0]], [{"a"}, {"b"}]).save(tmp_path / "other.mlca")
    assert recipe_of(load(tmp_path / "other.mlca")) is None


def test_growth_is_recorded(call_json, tmp_path):
    write_csv(tmp_path / "a.csv", weather_rows(2500, 1))
    call_json("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")
    write_csv(tmp_path / "b.csv", weather_rows(20, 2))
    call_json("update", tmp_path / "m.mlca", tmp_path / "b.csv")
    assert [note.rows for note in recipe_of(load(tmp_path / "m.mlca")).growth] == [1000, 2000, 2500, 2520]


def test_format_of_standard_input_is_detected(tmp_path):
    path = write_csv(tmp_path / "a.csv", ROWS)
    done = run(["train", "-", "--labels", "tags", "--out", tmp_path / "m.mlca"], stdin=gzip.compress(path.read_bytes()))
    assert done.returncode == 0, done.stderr
    assert b"standard input: labels from column 'tags'" in done.stdout
    assert_equal_models(load(tmp_path / "m.mlca"), expected_model())


def test_quoted_cells_may_contain_anything(tmp_path, call):
    rows = [[t, h, f'"{s}",\nof\r\nit', tags] for t, h, s, tags in ROWS]
    write_csv(tmp_path / "a.csv", rows)
    assert call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")[0] == 0
    assert_equal_models(load(tmp_path / "m.mlca"), expected_model())


GOOD = "temp,season,tags\n1.5,winter,cold\n25,summer,beach|hot\n"
BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "header only": (b"temp,season,tags\n", "there is no row, only a header"),
    "duplicate columns": (b"temp,temp,tags\n1,2,a\n", "columns 1 and 2 are both called 'temp'"),
    "no header": (b"1,2,3\n4,5,6\n", "must name the columns"),
    "utf-16": (GOOD.encode("utf-16"), "the file is UTF-16"),
    "latin-1": (GOOD.replace("hot", "été").encode("latin-1"), "line 3: byte 0xe9 is not UTF-8; convert the file"),
    "latin-1 header": (GOOD.replace("season", "été").encode("latin-1"), "line 1: byte 0xe9 is not UTF-8"),
    "short row": (GOOD.encode() + b"3,winter\n", "line 4: the row has 2 cells, the first line names 3 columns"),
    "open quote": (GOOD.encode() + b'3,"winter,cold\n4,', "line 4: unexpected end of data"),
    "no label column": (b"a,b\n1,2\n", "no column is called 'tags'; there are 'a', 'b'"),
    "only labels": (b"tags\na\nb\n", "no column is left to learn from"),
    "damaged gzip": (gzip.compress(GOOD.encode() * 50)[:-20], "the compressed file is damaged or truncated"),
    "a word among numbers": (GOOD.encode() + b"1,winter,a\n" * 30 + b"x,winter,a\n", "line 34: 'x' is not a number"),
    "infinite": (
        GOOD.encode() + b"1,winter,a\n" * 9 + b"1e999,winter,a\n",
        "line 13: '1e999' is not a number within bounds, as column 'temp'",
    ),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_bad_file_is_reported_and_nothing_is_written(tmp_path, call, fault):
    content, message = BAD_FILES[fault]
    (tmp_path / "a.csv").write_bytes(content)
    code, _, err = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")
    assert code == 1
    assert f"mlca train: {tmp_path / 'a.csv'}" in err and message in err
    assert not (tmp_path / "m.mlca").exists()


def test_bad_rows_can_be_skipped(tmp_path, call):
    path = write_csv(tmp_path / "a.csv", ROWS)
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b"1,2\n", b"warm,60,winter,cold\n", b"1,60,\xe9t\xe9,beach\n", b"1,_2,winter,cold\n", b'1,2,"a"b,c\n']
    path.write_bytes(b"".join([*lines[:50], *bad[:2], *lines[50:], *bad[2:]]))
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--on-error", "skip"]
    code, out, err = call("train", path, *words)
    assert code == 0
    assert "5 rows could not be read and were skipped" in out
    for line, problem in [
        (51, "2 cells"),
        (52, "'warm' is not a number"),
        (234, "0xe9"),
        (235, "'_2'"),
        (236, "quote"),
    ]:
        assert any(f"{path}, line {line}: " in told and problem in told for told in err.splitlines()), (line, err)
    assert_equal_models(load(tmp_path / "m.mlca"), expected_model())


def test_many_skipped_rows_are_counted_not_named(tmp_path, call):
    path = write_csv(tmp_path / "a.csv", ROWS)
    path.write_text(path.read_text() + "1,2\n" * 30)
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--on-error", "skip", "--json"]
    code, out, err = call("train", path, *words)
    assert code == 0
    assert json.loads(out)["skipped"] == 30
    assert len(err.splitlines()) == 11


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--numeric", "season"], "column 'season' has no number"),
        (["--numeric", "temp", "--ignore", "temp"], "'temp' cannot have two kinds"),
        (["--ignore", "tags"], "'tags' cannot have two kinds"),
        (["--ignore", "wind"], "no column is called 'wind'"),
        (["--format", "parquet"], "not a Parquet file"),
    ],
)
def test_options_that_do_not_fit_the_file_are_rejected(tmp_path, call, words, message):
    write_csv(tmp_path / "a.csv", ROWS)
    code, _, err = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", *words)
    assert (code, message in err) == (1, True), err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vigilance", "7"], "--vigilance must be at least 0 and below 1, not 7.0"),
        (["--max-nodes", "0"], "--max-nodes must be at least 2, not 0"),
        (["--published", "MLCA", "--attributes", "individual"], "--attributes is fixed for the paper's MLCA"),
        (["--decision", "bayes", "--recency"], 'need decision="mixed" or "calibrated"'),
    ],
)
def test_invalid_hyperparameter_is_a_usage_error(tmp_path, call, words, message):
    write_csv(tmp_path / "a.csv", ROWS)
    code, _, err = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca", *words)
    assert (code, message in err) == (2, True), err


def test_missing_packages_are_reported_before_the_work(tmp_path, call):
    write_csv(tmp_path / "a.csv", ROWS)
    code, _, err = call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "nowhere" / "m.mlca")
    assert code == 1 and "no such folder" in err
    code, _, err = call("train", tmp_path / "a.csv", "--out", tmp_path / "m.mlca")
    assert code == 1 and "name the label columns, for example --labels tags" in err and "'season'" in err
    assert call("train", tmp_path / "b.csv", "--labels", "tags", "--out", tmp_path / "m.mlca")[0] == 1
    assert call("train", tmp_path / "a.csv")[0] == 2

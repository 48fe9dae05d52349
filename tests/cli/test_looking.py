"""`mlca evaluate`, `inspect`, `explain`, `completion` and the help: what a user sees."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.cli import COMMANDS
from mlca.metrics import evaluate, prequential
from tests.cli.weather_table import as_matrix, weather_rows, write_csv

OWN = ["train", "update", "predict", "evaluate", "inspect", "explain", "completion"]
TEST_ROWS = weather_rows(450, 5, tags_too=["storm"])


@pytest.fixture
def test_file(tmp_path):
    return write_csv(tmp_path / "test.csv", TEST_ROWS)


class TestEvaluate:
    def test_measures_equal_the_library_and_unknown_labels_count_as_missed(self, model, test_file, call, call_json):
        facts = call_json("evaluate", model, test_file)
        names = [*load(model).classes_.tolist(), "storm"]
        truth = np.array([[name in tags for name in names] for *_, tags in TEST_ROWS])
        X, storm = as_matrix(TEST_ROWS), np.zeros(450)
        scores = np.column_stack([load(model).predict_proba(X), storm])
        predicted = np.column_stack([load(model).predict(X), storm])
        assert facts["unknown_labels"] == ["storm"]
        assert facts["measures"] == evaluate(truth, scores, Y_pred=predicted).as_dict()
        _, out, _ = call("evaluate", model, test_file)
        assert "Exact match" in out and "does not know, counted as missed: storm" in out

    def test_prequential_predicts_and_learns_row_by_row_and_changes_no_file(self, model, test_file, call_json):
        before = model.read_bytes()
        facts = call_json("evaluate", model, test_file, "--prequential")
        X, Y = as_matrix(TEST_ROWS), [tuple(tags) for *_, tags in TEST_ROWS]
        result = prequential(load(model), zip(X, Y, strict=True), every=200)
        assert [record["row"] for record in facts["records"]] == [200, 400, 450]
        for found, record in zip(facts["records"], result.records, strict=True):
            for name in ("exact_match", "window_hamming_loss", "n_labels", "n_nodes"):
                assert found[name] == record.as_dict()[name]
        assert facts["records"][0]["ranking_loss"] is None
        assert model.read_bytes() == before

    def test_prequential_learns_new_categories_and_columns(self, model, test_file, call_json):
        frame = pd.read_csv(test_file).assign(gusts=np.arange(450) * 0.7 % 5)
        frame.loc[100::3, "season"] = "monsoon"
        tags = [tuple(tags) for *_, tags in TEST_ROWS]
        frame.to_csv(test_file, index=False)
        facts = call_json("evaluate", model, test_file, "--prequential")
        rows = frame.drop(columns="tags")
        stream = [(rows[i : i + 1], tags[i : i + 1]) for i in range(450)]
        last = prequential(load(model), stream, every=200).records[-1].as_dict()
        assert facts["records"][-1]["exact_match"] == last["exact_match"]
        assert facts["records"][-1]["n_nodes"] == last["n_nodes"]
        assert not facts["unseen"]

    def test_prequential_shows_and_draws_the_curve(self, model, test_file, call, tmp_path):
        code, out, _ = call("evaluate", model, test_file, "--prequential", "--picture", tmp_path / "curve.png")
        assert code == 0
        curve = next(line for line in out.splitlines() if line.startswith("exact match")).split()[2]
        assert len(curve) == 3 and set(curve) <= set("▁▂▃▄▅▆▇█")
        assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")

    def test_curve_window_sets_the_window_of_the_records(self, model, test_file, call, call_json):
        facts = call_json("evaluate", model, test_file, "--prequential", "--curve-window", "500")
        assert facts["window"] == 500
        assert [record["row"] for record in facts["records"]] == [100, 200, 300, 400, 450]
        assert call("evaluate", model, test_file, "--prequential", "--curve-window", "4")[0] == 2

    def test_table_of_long_curve_has_at_most_20_rows(self, model, tmp_path, call):
        path = write_csv(tmp_path / "long.csv", weather_rows(4300, 6))
        _, out, _ = call("evaluate", model, path, "--prequential")
        rows = [int(line.split()[0]) for line in out.splitlines()[2:] if line[:8].strip().isdigit()]
        assert len(rows) <= 20 and rows[-1] == 4300

    def test_picture_requires_prequential(self, model, test_file, call):
        assert call("evaluate", model, test_file, "--picture", "x.png")[0] == 2
        assert call("evaluate", model, test_file, "--prequential", "--picture", "x.txt")[0] == 2

    def test_invalid_picture_is_rejected_before_the_work(self, model, test_file, call, tmp_path, monkeypatch):
        """The plot is written last, so a late error would lose all measurements."""
        monkeypatch.setattr("mlca.metrics.prequential", None)
        (tmp_path / "folder.png").mkdir()
        (tmp_path / "data.svg").write_bytes(test_file.read_bytes())
        for data, picture, message in [
            (test_file, tmp_path / "nowhere" / "x.png", "there is no such folder"),
            (test_file, tmp_path / "folder.png", "is a folder; name a file in it"),
            (tmp_path / "data.svg", tmp_path / "data.svg", "an input that would be overwritten; name another file"),
        ]:
            code, out, err = call("evaluate", model, data, "--prequential", "--picture", picture)
            assert (code, out) == (1, "") and message in err, err


class TestInspect:
    def test_facts_equal_those_of_the_model(self, model, call_json):
        facts, loaded = call_json("inspect", model), load(model)
        assert (facts["rows"], facts["nodes"]) == (300, loaded.n_nodes_)
        assert facts["parameters"]["vigilance"] == 0.1
        tags = [tags for *_, tags in weather_rows(300, 1)]
        counts = {label["label"]: label["rows"] for label in facts["labels"]}
        assert counts == {name: sum(name in own for own in tags) for name in ("cold", "beach", "rain")}
        assert list(counts.values()) == sorted(counts.values(), reverse=True)
        assert facts["growth"] == [{"rows": 300, "nodes": loaded.n_nodes_, "labels": 3}]
        assert facts["file_bytes"] == model.stat().st_size and facts["memory_bytes"] > 1000

    def test_inspect_shows_importance_and_evidence_by_column(self, model, call_json, call):
        facts = call_json("inspect", model)
        contributions = facts["contributions"]
        assert set(contributions) == {"temp", "humidity", "season"} and sum(contributions.values()) == pytest.approx(1)
        assert list(contributions.values()) == sorted(contributions.values(), reverse=True)
        assert {column["name"]: column["contribution"] for column in facts["columns"]} == contributions
        speaks = {label["label"]: label["speaks"] for label in facts["labels"]}
        assert speaks["beach"]["temp"] > 0 > speaks["cold"]["temp"]
        for scores in speaks.values():  # strongest first, as in `explain`
            assert list(scores.values()) == sorted(scores.values(), key=abs, reverse=True)
        within = [facts["nearest_within"][share] for share in ("0.5", "0.9", "0.99")]
        assert within == sorted(within) and within[0] > 0 and within[-1] <= 1
        assert facts["vigilance"] == 0.1 and facts["rows_represented"] == 300
        _, out, _ = call("inspect", model)
        assert all(word in out for word in ("importance", "novelty", "evidence for (+) and against (-) the label"))

    def test_inspect_shows_weights_of_mixer_and_linear_models(self, model, call_json, call):
        facts, loaded = call_json("inspect", model), load(model)
        state, names = loaded._learner.state(), loaded.classes_.tolist()
        assert list(facts["input_weights"].values()) == state["mixer.weights"].tolist()
        for label in facts["labels"]:
            column = 2 + state["decision.arrived"].tolist().index(1 + names.index(label["label"]))
            of_features = state["linear.weights"][state["linear.features"] >= 0, column].tolist()
            assert list(label["linear"].values()) == sorted(of_features, key=abs, reverse=True)[: len(label["linear"])]
            assert {"temp", "season = summer"} <= label["linear"].keys()
        _, out, _ = call("inspect", model)
        assert "mixer       nodes " in out and "largest weights of the linear model: " in out

    def test_published_algorithm_has_no_feature_weights(self, tmp_path, call, call_json):
        MLCA.published("MLCA-I").fit([[1.0], [2.0]], [{"a"}, {"b"}]).save(tmp_path / "m.mlca")
        facts = call_json("inspect", tmp_path / "m.mlca")
        assert facts["nearest_within"] == facts["labels"][0]["speaks"] == {}
        assert facts["input_weights"] == facts["labels"][0]["linear"] == {}
        assert call("inspect", tmp_path / "m.mlca")[0] == 0

    def test_typical_nodes_are_shown_in_user_terms(self, model, call_json, call):
        loaded = load(model)
        beach = next(label for label in call_json("inspect", model)["labels"] if label["label"] == "beach")
        column = loaded.classes_.tolist().index("beach")
        own = loaded.label_counts_.toarray()[:, column]
        assert beach["typical_nodes"][0]["node"] == int(np.argmax(own**2 / loaded.counts_))
        for node in beach["typical_nodes"]:
            assert node["values"]["season"] == "summer"
            assert node["values"]["temp"] == f"{loaded.prototypes_[node['node'], 0]:.4g}"
        _, out, _ = call("inspect", model)
        assert "season summer" in out and "2 numeric, 1 categorical: 3 features" in out

    def test_typical_node_has_many_rows_with_the_label_and_few_without(self, tmp_path, call, call_json):
        path = write_csv(tmp_path / "a.csv", weather_rows(600, 4))
        words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--vigilance", "0.35", "--attributes", "individual"]
        assert call("train", path, *words)[0] == 0
        loaded = load(tmp_path / "m.mlca")
        own = loaded.label_counts_.toarray()
        typical = np.argmax(own**2 / loaded.counts_[:, np.newaxis], axis=0).tolist()
        assert typical != np.argmax(own, axis=0).tolist()
        found = {
            label["label"]: label["typical_nodes"][0]["node"]
            for label in call_json("inspect", tmp_path / "m.mlca")["labels"]
        }
        assert [found[name] for name in loaded.classes_.tolist()] == typical

    def test_inspect_accepts_model_trained_in_python(self, tmp_path, call):
        MLCA().fit([[1.0], [2.0]], [{"a"}, {"b"}]).save(tmp_path / "m.mlca")
        code, out, _ = call("inspect", tmp_path / "m.mlca")
        assert code == 0 and "names and kinds are unknown" in out

    def test_file_that_is_not_a_model_is_rejected(self, tmp_path, call):
        (tmp_path / "m.mlca").write_text("no model")
        code, _, err = call("inspect", tmp_path / "m.mlca")
        assert code == 1 and "m.mlca: not an mlca model" in err


class TestExplain:
    def test_long_sentences_are_wrapped_only_on_a_terminal(self, model, test_file, call, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        _, redirected, _ = call("explain", model, "--row", "17", test_file)
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        _, shown, _ = call("explain", model, "--row", "17", test_file)
        assert shown.split() == redirected.split()
        assert all(len(line) <= 40 for line in shown.split("\n\n", 1)[1].splitlines() if "  " not in line.strip())
        assert any(len(line) > 40 for line in redirected.splitlines() if "  " not in line)

    def test_explanation_equals_the_model_with_user_values(self, model, test_file, call, call_json):
        facts = call_json("explain", model, "--row", "17", test_file)
        row = as_matrix(TEST_ROWS)[16]
        expected = load(model).explain(row)
        assert facts["nodes"] == expected.nodes.tolist()
        assert facts["posterior"] == expected.posterior.tolist()
        assert facts["predicted"] == sorted(expected.predicted)
        for name in ("none", "novelty", "far"):
            assert facts[name] == getattr(expected, name)
        for name in ("weights", "shares", "calibrated", "background", "opinions", "expert_weights"):
            assert facts[name] == getattr(expected, name).tolist()
        assert facts["agreement"] == dict(expected.agreement) and set(facts["agreement"]) <= {
            "temp",
            "humidity",
            "season",
        }
        temp, humidity, season, _ = TEST_ROWS[16]
        assert facts["values"]["row"] == {"temp": f"{temp:.4g}", "humidity": f"{humidity:.4g}", "season": season}
        nearest = facts["values"][str(expected.nodes[0])]
        assert nearest["temp"] == f"{load(model).prototypes_[expected.nodes[0], 0]:.4g}"
        _, out, _ = call("explain", model, "--row", "17", test_file)
        assert str(expected) in out and "season" in out

    def test_missing_row_number_is_rejected(self, model, test_file, call):
        code, _, err = call("explain", model, "--row", "451", test_file)
        assert code == 1 and "there is no row 451; the last readable row is 450" in err
        assert call("explain", model, "--row", "0", test_file)[0] == 2

    def test_xc_features_are_shown_by_number(self, tmp_path, call):
        (tmp_path / "a.xc").write_text("60 5 2\n" + "0 1:1 3:2\n1 2:4\n" * 30)
        assert call("train", tmp_path / "a.xc", "--out", tmp_path / "m.mlca")[0] == 0
        code, out, _ = call("explain", tmp_path / "m.mlca", "--row", "2", tmp_path / "a.xc")
        assert code == 0 and "attribute 2" in out
        assert call("inspect", tmp_path / "m.mlca")[0] == 0
        code, _, err = call("predict", tmp_path / "m.mlca", write_csv(tmp_path / "a.csv", weather_rows(3, 1)))
        assert code == 1 and "was trained on XC text; this file has another format" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_every_command(call, shell):
    code, out, _ = call("completion", shell)
    assert code == 0
    assert all(command in out for command in OWN)


def test_the_bash_completion_is_valid_bash_and_completes(tmp_path, call):
    script = call("completion", "bash")[1]
    (tmp_path / "completion").write_text(script)
    ask = "source completion; COMP_WORDS=(mlca tr); COMP_CWORD=1; _shtab_mlca; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["train"], done.stderr


def test_every_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from mlca.cli import main\n"
        "for command in sys.argv[1:]:\n"
        "    try: main([*filter(None, [command]), '--help'])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'pyarrow', 'rich', 'shtab', 'matplotlib'}\n"
        "print(sorted(heavy & {*sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "", *OWN], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert all(f"usage: mlca {command}" in done.stdout for command in OWN)
    assert set(OWN) <= set(COMMANDS)


@pytest.mark.skipif(os.name != "posix", reason="terminals are POSIX's")
def test_terminal_shows_progress_and_live_curve(model, test_file, tmp_path):
    import pty

    commands = [
        ["train", str(test_file), "--labels", "tags", "--out", str(tmp_path / "m.mlca")],
        ["evaluate", str(model), str(test_file), "--prequential"],
    ]
    code = "import sys, json\nfrom mlca.cli import main\nfor words in json.loads(sys.argv[1]): assert main(words) == 0"
    screen, terminal = pty.openpty()
    words = [sys.executable, "-c", code, json.dumps(commands)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=terminal, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    seen = b""
    try:
        while part := os.read(screen, 65536):
            seen += part
    except OSError:  # the other end is closed, and everything is read
        pass
    os.close(screen)
    assert process.wait(timeout=60) == 0, seen
    assert b"450 rows" in seen and b"rows/s" in seen and b"nodes" in seen
    assert b"exact match" in seen and any(bar.encode() in seen for bar in "▁▂▃▄▅▆▇█")


def test_missing_extras_are_reported(tmp_path, model, test_file):
    """Run with an interpreter that finds neither pyarrow, rich, shtab, uvicorn nor Matplotlib."""
    for name in ("pyarrow", "rich", "shtab", "matplotlib", "uvicorn"):
        (tmp_path / "without").mkdir(exist_ok=True)
        (tmp_path / "without" / f"{name}.py").write_text(f"raise ImportError('no {name} here')")
    code = (
        "import sys, json\n"
        f"sys.path.insert(0, {str(tmp_path / 'without')!r})\n"
        "from mlca.cli import main\n"
        "sys.exit(max(main(words) for words in json.loads(sys.argv[1])))\n"
    )
    commands = [
        ["predict", str(model), str(test_file), "--out", str(tmp_path / "p.parquet")],
        ["completion", "bash"],
        ["evaluate", str(model), str(test_file), "--prequential", "--picture", "x.png"],
        ["reproduce", "nodes", "--quick", "--out", str(tmp_path / "reproduced")],
        ["serve", "--data", str(tmp_path / "served")],
        ["bench", "serve"],
    ]
    done = subprocess.run([sys.executable, "-c", code, json.dumps(commands)], capture_output=True, text=True)
    assert done.returncode == 1
    told = re.findall(r'pip install "mlca\[(\w+)\]"', done.stderr)
    assert told == ["frames", "cli", "plots", "experiments", "serve", "serve"], done.stderr
    assert not (tmp_path / "reproduced").exists()


def test_failure_is_one_line_without_traceback(tmp_path, call):
    code, out, err = call("predict", tmp_path / "m.mlca", tmp_path / "a.csv")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1 and "m.mlca" in err

"""The command, from its arguments to the report."""

import json
import re
import sqlite3
import subprocess
import sys

import pytest

from mlca.cli import main
from mlca.experiments.scope import scope_of
from mlca.experiments.studies import nodes


def test_without_datasets_the_stream_still_runs(no_data, tmp_path, capsys):
    assert main(["reproduce", "continual", "--quick", "--algorithms", "mlca", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {tmp_path / 'out' / 'report.html'}"
    text = (tmp_path / "out" / "report.md").read_text()
    assert "11 exact matches" in text
    assert text.count("Nodes of MLCA, condition") >= 3
    page = (tmp_path / "out" / "report.html").read_text()
    version, notice = text.splitlines()[2:5:2]
    assert version.startswith("mlca 0.") and " UTC; mlca" in version
    assert notice.startswith("> **A quick run (--quick)")
    assert page.index("A quick run (--quick)") < page.index('<nav id="contents"')


def test_missing_datasets_are_reported_and_the_rest_runs(made_up_data, tmp_path, capsys):
    words = ["reproduce", "nodes", "--datasets", "flags", "birds", "--seeds", "1", "--algorithms", "mlca-0.30"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "birds is missing, so it is left out; get it with `mlca datasets fetch birds`" in said
    text = (tmp_path / "out" / "report.md").read_text()
    assert "birds is missing" in text
    assert "quick run" not in text
    assert re.search(r"\| flags \| MLCA V=0.30 \| 163.9 \|", text)


def test_second_run_repeats_nothing(made_up_data, tmp_path, capsys):
    words = ["reproduce", "comparison", "--datasets", "flags", "--seeds", "1", "--algorithms", "mlknn"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "comparison: 1 of 1" in capsys.readouterr().out
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"report: {tmp_path / 'report.html'}\n"


def test_tuning_searches_the_papers_grid_first(made_up_data, tmp_path, capsys):
    words = ["reproduce", "comparison", "--tune", "--datasets", "flags", "--seeds", "1", "--algorithms", "mlknn"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "search: 10 tasks" in capsys.readouterr().out
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        rows = [
            (json.loads(task), json.loads(found))
            for task, found in database.execute("SELECT task, measured FROM results")
        ]
    searched = {task["parameters"]["k"]: found["training_exact_match"] for task, found in rows if task["on_training"]}
    final = [task["parameters"]["k"] for task, _ in rows if not task["on_training"]]
    assert len(searched) == 10
    assert final == [max(searched, key=searched.get)]


def test_unknown_names_are_rejected(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "nodes", "--jobs", "0"])
    assert stop.value.code == 2
    assert "--jobs: invalid positive int value: '0'" in capsys.readouterr().err
    assert main(["reproduce", "nodes", "--algorithms", "svm"]) == 1
    assert "unknown algorithm 'svm'" in capsys.readouterr().err


def test_command_imports_nothing_heavy_until_it_runs():
    ask = "import sys; from mlca.cli import build_parser; build_parser(); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip() == "False"


@pytest.mark.data
@pytest.mark.slow
def test_node_counts_of_reproduction_agree_with_the_paper(tmp_path):
    words = ["reproduce", "nodes", "--datasets", "flags", "virusgo", "gpositivego", "--out", str(tmp_path)]
    assert main(words) == 0
    scope = scope_of(datasets=["flags", "virusgo", "gpositivego"])
    assert len(nodes.tasks(scope)) == 3 * 6 * 20
    verdict = re.search(r"(\d+) of 18 numbers of nodes agree", (tmp_path / "report.md").read_text())
    assert int(verdict.group(1)) >= 15


@pytest.mark.data
@pytest.mark.slow
def test_quick_run_writes_every_section_of_the_report(tmp_path):
    assert main(["reproduce", "all", "--quick", "--jobs", "2", "--out", str(tmp_path)]) == 0
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        assert database.execute("SELECT DISTINCT status FROM results").fetchall() == [("done",)]
    text = (tmp_path / "report.md").read_text()
    for title in ("Continual learning", "Number of nodes", "Grid search of V", "Comparison", "Several epochs", "Time"):
        assert f"\n## {title}" in text

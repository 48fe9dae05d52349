"""The script that writes results to the research pages keeps every section that it is not asked to write."""

import runpy
from pathlib import Path

import pytest

from mlca.experiments.reproduction import STORE
from mlca.experiments.scope import scope_of
from mlca.experiments.store import Store
from mlca.experiments.studies import beyond
from mlca.experiments.tasks import Outcome

SCRIPT = Path(__file__).parents[2] / "docs" / "scripts" / "write_proof_pages.py"
PAGE = """# An old title

By hand.

## Beyond the paper

What was found on another day.

## Larger datasets

Out of date.

## A leftover

Gone.
"""


@pytest.fixture
def main(monkeypatch):
    monkeypatch.setenv("MLCA_DATA", "/nowhere")  # the plan must not depend on the available datasets
    return runpy.run_path(str(SCRIPT))["main"]


def results_of(folder, dataset):
    """Store an exact match of 0.625 for every task on a dataset."""
    tasks = [task for task in beyond.tasks(scope_of()) if task.dataset == dataset]
    with Store(folder / STORE) as store:
        for task in tasks:
            store.put(Outcome(task, "done", {"exact_match": 0.625}, {}))
    return tasks


def test_only_the_given_section_is_rewritten(main, tmp_path):
    page = tmp_path / "beyond.md"
    page.write_text(PAGE)
    results_of(tmp_path, "yeast")
    main(tmp_path, ["beyond/large"], tmp_path)
    text = page.read_text()
    assert text.startswith("# Comparison with batch learners\n\nBy hand.\n\n## Beyond the paper\n\nWhat was found")
    assert "another day.\n\n## Larger datasets\n" in text
    assert text.endswith("mlca reproduce beyond --out reproduction\n```\n")
    assert "Out of date" not in text
    assert "leftover" not in text
    main(tmp_path, ["beyond/large"], tmp_path)
    assert page.read_text() == text  # writing a second time changes nothing


def test_section_has_code_version_and_date(main, tmp_path):
    tasks = results_of(tmp_path, "yeast")
    main(tmp_path, ["beyond"], tmp_path)
    text = (tmp_path / "beyond.md").read_text()
    if tasks:  # River, if installed, contains yeast
        assert "| MLCA() | 0.625 |" in text
        assert "[^beyond]: Results of 20" in text
        assert text.index("| MLCA() | 0.625 |") < text.index("### How it was run: beyond the paper")
    assert "## Larger datasets\n\nNothing was run on a larger dataset." in text

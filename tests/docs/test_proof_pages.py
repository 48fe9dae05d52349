"""The script that puts results on the pages of the proof: what it is not asked to write stays."""

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

Again:

```
mlca reproduce beyond
```

By hand.

## Beyond the paper

What was found on another day.

## Larger datasets

Out of date.

## Somebody's leftover

Gone.
"""


@pytest.fixture
def main(monkeypatch):
    monkeypatch.setenv("MLCA_DATA", "/nowhere")  # the plan must not depend on the datasets of this machine
    return runpy.run_path(str(SCRIPT))["main"]


def results_of(folder, dataset):
    """Store an exact match of .625 for every task on a dataset."""
    tasks = [task for task in beyond.tasks(scope_of()) if task.dataset == dataset]
    with Store(folder / STORE) as store:
        for task in tasks:
            store.put(Outcome(task, "done", {"exact_match": 0.625}, {}))
    return tasks


def test_one_section_is_written_and_the_rest_stays(main, tmp_path):
    page = tmp_path / "beyond.md"
    page.write_text(PAGE)
    results_of(tmp_path, "yeast")
    main(tmp_path, ["beyond/large"], tmp_path)
    text = page.read_text()
    assert text.startswith("# Beyond the paper: MLCA() beside batch learners\n\nAgain, on your own machine")
    assert "\n```\n\nBy hand.\n\n## Beyond the paper\n\nWhat was found on another day.\n\n## Larger datasets\n" in text
    assert "Out of date" not in text
    assert "leftover" not in text
    main(tmp_path, ["beyond/large"], tmp_path)
    assert page.read_text() == text  # writing again changes nothing


def test_a_section_says_of_which_code_and_day_it_is(main, tmp_path):
    tasks = results_of(tmp_path, "yeast")
    main(tmp_path, ["beyond"], tmp_path)
    text = (tmp_path / "beyond.md").read_text()
    if tasks:  # River brings yeast along, where it is installed
        assert "| MLCA() | 0.625 |" in text
        assert "Results of 20" in text
        assert "code " in text
    assert "## Larger datasets\n\nNothing was run on a larger dataset." in text

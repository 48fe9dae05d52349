"""Tests of tests/covered.py, which checks the coverage of each measured file."""

import os
import subprocess
import sys

import pytest

from tests import covered


def test_file_below_the_coverage_limit_is_reported(tmp_path):
    pytest.importorskip("coverage", reason="needs pytest-cov")
    (tmp_path / "asked.py").write_text("import hardly\n")
    (tmp_path / "hardly.py").write_text("def unasked():\n    return 1\n")
    shown = tmp_path / "summary.md"
    surroundings = os.environ | {"COVERAGE_FILE": str(tmp_path / "measured"), "GITHUB_STEP_SUMMARY": str(shown)}

    def python(*words):
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)

    measured = python("-m", "coverage", "run", "--source=.", "asked.py")
    assert measured.returncode == 0, measured.stderr
    found = python(covered.__file__)
    assert found.returncode == 1
    assert found.stderr.startswith("hardly.py: the tests reach 50.0 %, fewer than 95 %") and "asked" not in found.stderr
    assert "| asked.py" in shown.read_text() and "| hardly.py" in shown.read_text()


def test_file_named_on_the_page_is_explained():
    assert covered.faults({"learner/core.py": 94.9, "targets/text.py": 95.0}, "* `learner/core.py`: of Windows") == []
    assert len(covered.faults({"learner/core.py": 94.9}, "* `learner/cores.py`: of Windows")) == 1

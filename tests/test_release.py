"""Workflows, versions and addresses for publishing agree with the package."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import mlca

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SUPPORTED = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))


def backend(script, *words):
    command = [sys.executable, str(ROOT / "build_backend" / script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_workflows_name_every_python_that_is_supported():
    assert SUPPORTED and PROJECT["project"]["requires-python"] == f">={SUPPORTED[0]}"
    for path in WORKFLOWS:
        (listed,) = re.findall(r"^ +python: \[(.+)\]$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert listed == ", ".join(f'"{version}"' for version in SUPPORTED), path.name


def test_files_that_workflows_name_exist():
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"(?<![\w/])((?:tests|build_backend|\.github)/[\w./-]*\w|\.ci/run)", text)
        assert named and [name for name in named if not (ROOT / name).exists()] == []


def test_actions_are_pinned_to_commits():
    """A tag can be moved to other code, which would then run with permission to publish on PyPI."""
    for path in WORKFLOWS:
        used = re.findall(r"uses: (?!\./)(\S+)", path.read_text(encoding="utf-8"))
        assert used and [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name)] == []


def test_wheels_are_built_for_the_first_python_and_for_the_first_with_a_stable_interface():
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{SUPPORTED[0].replace('.', '')}-*", f"{PROJECT['tool']['scikit-build']['wheel']['py-api']}-*"]


def test_linters_are_pinned():
    """`make lint`, `make types` and the pre-commit hooks use the same versions."""
    dev = PROJECT["project"]["optional-dependencies"]["dev"]
    for tool in ("ruff", "mypy", "check-jsonschema"):
        assert any(line.startswith(f"{tool}==") for line in dev), tool
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"entry: make --no-print-directory (\w+)$", hooks, re.MULTILINE) == ["lint", "types"]


@pytest.mark.parametrize(
    ("tag", "said"),
    [("v0.0.1", f"the tag is v0.0.1, the version {mlca.__version__}"), (f"v{mlca.__version__}", "")],
)
def test_other_version_or_repository_is_not_published(tag, said):
    answer = backend("release.py", tag, "https://example.org/somebody/else")
    assert answer.returncode == 1
    assert said in answer.stderr
    assert "it must be https://example.org/somebody/else" in answer.stderr


def test_oldest_versions_are_the_lowest_allowed():
    lowest, allowed = (backend("requirements.py", *words, "frames", "cli").stdout for words in (["--oldest"], []))
    assert "numpy>=2.0\n" in allowed and lowest == allowed.replace(">=", "==")
    lines = allowed.splitlines()
    assert {"pandas>=2.2.2", "rich>=13.7"} < set(lines) and len(set(lines)) == len(lines)


def test_extras_of_extras_are_included():
    alone, together = (
        backend("requirements.py", *words).stdout for words in (["experiments"], ["plots", "cli", "frames"])
    )
    assert alone == together and "mlca" not in alone


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_is_short():
    lines = README.splitlines()
    assert len(lines) <= 90 and max(map(len, lines)) <= 120


@pytest.mark.parametrize("source", [None, "https://example.org/owner/mlca"])
def test_readme_has_no_relative_links_on_a_package_index(source):
    command = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import readme\n"
        "urls = {} if sys.argv[2] == 'None' else {'Source': sys.argv[2]}\n"
        "print(json.dumps(readme.dynamic_metadata({}, {'version': '1.2.3', 'urls': urls})))"
    )
    words = [sys.executable, "-c", command, str(ROOT / "build_backend"), str(source)]
    page = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["readme"]["text"]
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert all(target.startswith("https://") for target in targets)
    if source is not None:
        assert f"{source}/raw/v1.2.3/docs/images/running_frozen_retrained.png" in targets
        assert f"{source}/blob/v1.2.3/docs/installation.md#extras" in targets


def test_sdist_has_readme_without_relative_links(tmp_path):
    pytest.importorskip("scikit_build_core")
    script = (
        "import sys; sys.path.insert(0, 'build_backend'); import mlca_build; print(mlca_build.build_sdist(sys.argv[1]))"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    with tarfile.open(tmp_path / built) as archive:
        (name,) = [name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO")]
        text = archive.extractfile(name).read().decode()
    assert "# mlca" in text and "## When not to use it" in text and "](docs/" not in text

"""Every example of README and docs runs, and prints the documented output.

The blocks of a page run in order, in one namespace and one temporary folder: ```python blocks unchanged, and the `mlca`
commands of ```console blocks, which must print the lines below them, if there are any. An ```output block is the output
of the block before. X, Y and X_new represent the reader's own data if a page does not define them.
"""

import ast
import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlca.cli import main
from tests.docs.pages import ROOT, Block, api_reference, blocks_of, page_id, pages

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def quiet_place(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_page_examples_run_and_print_the_shown_output(page):
    text = page.read_text(encoding="utf-8")
    for module in ("river", "dask", "pandas"):
        if f"import {module}" in text or f"from {module}" in text or f"mlca.{module}" in text:
            pytest.importorskip(module)
    blocks = blocks_of(text)
    if "load_dataset(" in "".join(b.text for b in blocks if b.kind == "python") and not os.environ.get("MLCA_DATA"):
        pytest.skip("needs the real datasets: set MLCA_DATA to their folder")
    rows = np.random.default_rng(0).normal(size=(60, 4))
    namespace = {"__name__": "__main__", "X": rows[:40], "Y": (rows[:40, :3] > 0).astype(int), "X_new": rows[40:]}
    printed = ""
    for block in blocks:
        if block.kind == "python":
            printed = run_python(block, page, namespace)
        elif block.kind == "console":
            for command, shown in block.commands():
                said = run_command(command, page, block)
                where = f"{page.name}, line {block.line}: {command} prints\n{said}"
                assert not shown or lines_of(without_times(said)) == lines_of(without_times("\n".join(shown))), where
        elif block.kind == "output":
            assert lines_of(printed) == lines_of(block.text), f"{page.name}, line {block.line}: prints\n{printed}"


def run_python(block: Block, page: Path, namespace: dict) -> str:
    # Line numbers in a traceback are those of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return out.getvalue()


def run_command(command: str, page: Path, block: Block) -> str:
    if set(command) & set("|<>"):
        python = shlex.quote(sys.executable)
        shell = command.replace("mlca ", f"{python} -m mlca ", 1)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", shell], capture_output=True, text=True)
        code, said = done.returncode, done.stderr
    else:
        both = io.StringIO()
        with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
            code = main(shlex.split(command, comments=True)[1:])
        said = both.getvalue()
    assert code == 0, f"{page.name}, line {block.line}: {command}\n{said}"
    return said


def without_times(text: str) -> str:
    """Return the output of a command without varying parts: seconds and rates."""
    return re.sub(r"[\d.,]+(?= (?:s|rows/s)\b)", "#", text)


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_blocks_are_found_with_kind_and_line():
    commands = "$ mlca inspect m\nsaid\n$ ls\nfiles\nmlca bench\nmlca completion bash\n"
    text = f"a\n```python\nx = 1\n```\n\n```console\n{commands}```\n\n``` {{ .text }}\ny\n```\n"
    python, console, plain = blocks_of(text)
    assert (python.kind, python.text, python.line) == ("python", "x = 1\n", 3)
    assert (console.commands(), plain.kind) == ([("mlca inspect m", ["said"]), ("mlca completion bash", [])], "")


def test_timings_are_ignored_in_command_output():
    assert without_times("300 rows in 0.5 s (1,585 rows/s)") == "300 rows in # s (# rows/s)"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_use_the_public_interface(script):
    names = re.findall(r"^::: (mlca[\w.]*)$", api_reference(), re.MULTILINE)
    public = {tuple(name.rsplit(".", 1)) for name in names}
    nodes = ast.walk(ast.parse(script.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module.startswith("mlca")]
    used = {(node.module, alias.name) for node in imports for alias in node.names}
    assert used <= public


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_scripts_run_and_print_output(script, monkeypatch, capfd):
    if "river" in script.stem:
        pytest.importorskip("river")
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    printed = capfd.readouterr().out
    assert printed
    if script.stem == "three_discs":
        missing = [line for line in printed.splitlines() if "(" in line and line not in GALLERY]
        assert not missing, "docs/gallery.md shows other figures"

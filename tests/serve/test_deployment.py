"""The unit and the Containerfile in docs: as far as they can be tried without systemd and a registry."""

import re
import shlex
import shutil
import subprocess

import pytest

from mlca.cli import build_parser
from tests.docs.pages import ROOT

UNIT, CONTAINER = ROOT / "docs" / "mlca-serve.service", ROOT / "docs" / "Containerfile"


def commands():
    starts = re.findall(r"^(?:# )?ExecStart=\S+/mlca (.*)$", UNIT.read_text(), re.MULTILINE)
    entry = re.search(r'^ENTRYPOINT \["\S+/mlca", (.*)\]$', CONTAINER.read_text(), re.MULTILINE)[1]
    return [*starts, entry.replace(",", "")]


@pytest.mark.parametrize("words", commands())
def test_the_commands_are_those_of_this_version(words):
    args = build_parser().parse_args(shlex.split(words))
    assert args.command == "serve"
    assert args.data
    assert args.host == "127.0.0.1" or args.tokens


def test_systemd_finds_nothing_wrong(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    program = tmp_path / "mlca"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/mlca/bin/mlca", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    about_it = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert about_it == []

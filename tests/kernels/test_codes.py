"""The screening of nodes by four-bit codes: a C++ program that attacks it, compiled for each processor level."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

KERNELS = Path(__file__).parents[2] / "src" / "kernels"
# The same flags as in CMakeLists.txt.
FLAGS = [
    "-std=c++20",
    "-O2",
    "-ftree-loop-vectorize",
    "-fvect-cost-model=dynamic",
    "-fpeel-loops",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-ffinite-math-only",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Wshadow",
    "-Werror",
    "-DMLCA_LEVEL=attacked",
    "-DMLCA_MODULE=none",
    "-DMLCA_PROBES",
    "-DMLCA_ARITHMETIC=exact",
]
# The processor features that code of a level requires.
NEEDED = {"x86-64": set(), "x86-64-v2": {"ssse3"}, "x86-64-v3": {"avx2", "fma"}, "x86-64-v4": {"avx512bw"}}
# Compiles in half the time; used by `make test`.
USUAL = ["-march=x86-64-v3", "-O1"]

compiler = shutil.which("g++")
pytestmark = [pytest.mark.plain, pytest.mark.skipif(compiler is None, reason="no g++ here")]


def _features() -> set[str]:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    return {word for line in text.splitlines() if line.startswith("flags") for word in line.split()}


def _levels() -> list[Any]:
    if platform.machine() not in ("x86_64", "AMD64"):
        return [[]]
    return [USUAL, *(pytest.param([f"-march={level}"], marks=pytest.mark.slow) for level in NEEDED)]


@pytest.mark.parametrize("attacks", ["codes", "postings"])
@pytest.mark.parametrize("level", _levels(), ids=lambda level: " ".join(level) or platform.machine())
def test_code_bounds_hold_and_candidate_lists_are_exact(level: list[str], attacks: str, tmp_path: Path) -> None:
    """Compile the attacks for one level and, if the processor supports it, run them."""
    program = tmp_path / attacks
    source = Path(__file__).with_name(f"{attacks}.cpp")
    assert compiler is not None
    command = [compiler, *FLAGS, *level, f"-I{KERNELS}", str(source), "-o", str(program)]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert compiled.returncode == 0, compiled.stderr
    if level and not NEEDED[level[0].removeprefix("-march=")] <= _features():
        pytest.skip("compiled, but this processor cannot run it")
    ran = subprocess.run([str(program), "1"], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout

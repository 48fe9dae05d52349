"""The build backend: scikit-build-core, with a compiler from PyPI if the machine has none.

pip calls these functions (PEP 517 and 660). If the variable CXX is set or a compiler is on the path, scikit-build-core
is used unchanged. Otherwise `ziglang`, whose binary contains Clang and a C++ library, becomes a requirement of the
build.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scikit_build_core import build as backend
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

COMPILERS = ("c++", "g++", "clang++")
COMPILER_FROM_PYPI = "ziglang>=0.13"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return additional requirements for building: CMake, Ninja and a compiler, if missing."""
    return backend.get_requires_for_build_wheel(config_settings) + _missing_compiler()


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return additional requirements for an editable installation, as for a wheel."""
    return backend.get_requires_for_build_editable(config_settings) + _missing_compiler()


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel."""
    with _compiler():
        return backend.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable installation."""
    with _compiler():
        return backend.build_editable(wheel_directory, config_settings, metadata_directory)


def _missing_compiler() -> list[str]:
    found = os.environ.get("CXX") or any(shutil.which(name) for name in COMPILERS)
    return [] if found else [COMPILER_FROM_PYPI]


@contextmanager
def _compiler() -> Iterator[None]:
    """Provide CMake with a compiler and its archiver while the build runs."""
    if not _missing_compiler():
        yield
        return
    import ziglang

    zig = Path(ziglang.__file__).with_name("zig")
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="mlca-zig-") as folder:
        # CMake expects one file per tool. By default, zig compiles for this machine's processor only, so the baseline
        # is selected; a source file may enable more. Before linking, zig compiles its own C++ library, once for
        # stripped output (-s) and once for other output. All output is stripped, so that it is compiled only once.
        for tool, command in (("c++", "c++ -mcpu=baseline -s"), ("ar", "ar"), ("ranlib", "ranlib")):
            script = Path(folder, tool)
            script.write_text(f'#!/bin/sh\nexec "{zig}" {command} "$@"\n')
            script.chmod(0o755)
        os.environ["CXX"] = str(Path(folder, "c++"))
        # Users without a compiler are not developers, so warnings of this compiler are not errors.
        settings = f"-DCMAKE_AR={folder}/ar -DCMAKE_RANLIB={folder}/ranlib -DMLCA_WARNINGS_ARE_ERRORS=OFF"
        os.environ["CMAKE_ARGS"] = f"{before.get('CMAKE_ARGS', '')} {settings}"
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

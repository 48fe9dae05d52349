"""Installations: imports, read-only folders, built packages, and machines without a compiler."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import mlca
from mlca import kernels

ROOT = Path(__file__).parent.parent
COMPILED = sorted(Path(kernels.native.__file__).parent.glob("_kernels_*"))
LEARN = """
import numpy as np
from mlca import MLCA, kernels
X = np.random.default_rng(0).normal(0, 1, (60, 3))
print(MLCA().fit(X, (X > 0).astype(int)).predict(X).sum(), kernels.native.__file__)
"""


def run(code, path=None, **environment):
    """Run code in a separate process; with a path, use the package there instead of the installed one."""
    flags, start = (["-S"], f"import sys\nsys.path[:0] = {[str(path), *sys.path]!r}\n") if path else ([], "")
    return subprocess.run(
        [sys.executable, *flags, "-c", start + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_importing_the_package_imports_nothing_heavy():
    result = run("import sys, mlca; print(sorted({'numpy', 'sklearn', 'mlca.kernels'} & set(sys.modules)))")
    assert result.stdout.strip() == "[]"


def test_importing_the_kernels_imports_nothing_heavy():
    result = run("import sys, mlca.kernels; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))")
    assert result.stdout.strip() == "[]"


def test_dir_lists_the_public_names_of_the_package():
    assert dir(mlca) == sorted(mlca.__all__)
    for name in set(mlca.__all__) - {"__version__"}:
        assert getattr(mlca, name).__module__.startswith("mlca.")
    assert not hasattr(mlca, "nonsense")


@pytest.mark.parametrize(
    "use",
    [
        "MLCA().fit(table, [['a'], ['b']])",
        "MLCA().fit([[0.0], [1.0]], table)",
        "hamming_loss(table, table)",
    ],
)
def test_arrow_tables_without_pandas_report_what_is_missing(use):
    pytest.importorskip("pyarrow")
    code = f"""
import sys
class WithoutPandas:
    def find_spec(self, name, *others):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("there is none", name=name)
sys.meta_path.insert(0, WithoutPandas())
import pyarrow
from mlca import MLCA
from mlca.metrics import hamming_loss
table = pyarrow.table({{"size": [0, 1]}})
{use}
"""
    error = run(code).stderr.splitlines()[-1]
    assert error == 'ImportError: a table of polars or Arrow needs pandas: pip install "mlca[frames]"'


def installed_elsewhere(folder):
    """Copy the package with compiled modules beside Python files, as in an ordinary installation."""
    package = folder / "mlca"
    shutil.copytree(Path(mlca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "_kernels_*.so"))
    for module in COMPILED:
        shutil.copy(module, package)
    return package


def test_a_read_only_installation_without_any_cache_folder_works(tmp_path):
    """Nothing can be written beside the package or in the user's folders: files block them, even for root."""
    package = installed_elsewhere(tmp_path / "site")
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where the folder of the cache would be")
    home = tmp_path / "home"
    home.write_text("a file where the home folder would be")
    result = run(LEARN, package.parent, HOME=str(home), XDG_CACHE_HOME=str(home))
    assert result.returncode == 0, result.stderr
    here = run(LEARN).stdout.split()
    assert result.stdout.split() == [here[0], str(package / Path(here[1]).name)]


def test_installation_without_compiled_modules_is_reported(tmp_path):
    package = installed_elsewhere(tmp_path)
    for module in package.glob("_kernels_*.so"):
        module.unlink()
    error = run("import mlca.kernels", tmp_path).stderr.splitlines()[-1]
    assert error.startswith("ImportError: mlca's compiled modules are missing; install the package (pip install .)")


def build(kind, source, out, **environment):
    """Build an sdist or a wheel with the project's own backend, like pip: first requirements, then the build."""
    script = (
        "import os, sys\n"
        "os.chdir(sys.argv[2])\n"
        "sys.path.insert(0, 'build_backend')\n"
        "import mlca_build\n"
        "print(getattr(mlca_build, 'build_' + sys.argv[1])(sys.argv[3]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, kind, str(source), str(out)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return out / result.stdout.splitlines()[-1]


def test_sdist_has_all_sources_and_nothing_built(tmp_path):
    pytest.importorskip("scikit_build_core")
    with tarfile.open(build("sdist", ROOT, tmp_path)) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    kernels_here = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("src/kernels/**/*.?pp")}
    needed = {"pyproject.toml", "CMakeLists.txt", "build_backend/mlca_build.py", "README.md", "LICENSE", "PKG-INFO"}
    assert needed | kernels_here | {"src/mlca/py.typed", "src/mlca/_kernels.pyi"} <= names
    assert not [name for name in names if name.endswith(".so") or name.startswith(("build/", ".venv/"))]


COMPILERS = ("c++", "g++", "gcc", "cc", "clang", "ld", "ar", "ranlib", "as", "strip", "cmake", "ninja")


def path_without_compilers(folder):
    """Make a folder of links to every program on the path that does not compile, assemble or link."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            words = program.name.replace(".", "-").split("-")
            link = folder / program.name
            if not any(word in COMPILERS for word in words) and not link.is_symlink():
                link.symlink_to(program)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(3600)  # takes 400 seconds of processor time
def test_machine_without_compiler_gets_one_from_the_package_index(tmp_path):
    """All build tools come from PyPI; the wheel works and contains no sources."""
    path = path_without_compilers(tmp_path / "bin")
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CMAKE_ARGS")}
    environment |= {"PATH": str(path), "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig")}
    assert shutil.which("c++", path=str(path)) is None
    source = tmp_path / "source"  # a separate build folder
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", "results"))
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path / "wheels"), str(source)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    if "No matching distribution" in built.stderr:
        pytest.skip("no package index in reach")
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (tmp_path / "wheels").glob("mlca-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "mlca/py.typed" in names
    assert {name.split(".")[0] for name in names if name.endswith(".so")} >= {f"mlca/_kernels_{kernels.LEVEL}"}
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".a"))]
    result = run(LEARN, tmp_path / "site")
    assert result.stdout.split()[0] == run(LEARN).stdout.split()[0], result.stderr

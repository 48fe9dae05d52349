"""What a user's machine meets: imports, folders that cannot be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mlca


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_read_only_installation_without_any_cache_folder_works(tmp_path):
    """Nothing can be written beside the package nor in the user's folders: files are in the way, even for root."""
    package = tmp_path / "site" / "mlca"
    shutil.copytree(Path(mlca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where the folder of the cache would be")
    (tmp_path / "home").write_text("a file where the home folder would be")
    result = run(
        "import mlca, numpy\n"
        "X = numpy.random.default_rng(0).normal(0, 1, (60, 3))\n"
        "print(mlca.__file__, mlca.MLCA().fit(X, (X > 0).astype(int)).n_seen_)",
        PYTHONPATH=str(package.parent),
        HOME=str(tmp_path / "home"),
        XDG_CACHE_HOME=str(tmp_path / "home"),
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(package / "__init__.py"), "60"]


def test_importing_the_package_imports_nothing_heavy():
    result = run("import sys, mlca; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))")
    assert result.stdout.strip() == "[]"


def test_names_of_the_package():
    assert {"MLCA", "load", "__version__"} <= set(dir(mlca))
    assert not hasattr(mlca, "nonsense")

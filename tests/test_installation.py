"""What a user's machine meets: import, compiled code on disk, folders that cannot be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mlca

SCRIPT = """
import numpy as np
from mlca import MLCA
from mlca.learner.kernels.learn import learn
from mlca.learner.kernels.predict import predict_dense
X = np.random.default_rng(0).normal(0, 1, (60, 3))
print(MLCA().fit(X, (X > 0).astype(int)).predict(X).sum())
for function in (learn, predict_dense):
    print(sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values()))
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_second_process_does_not_compile_again():
    first, second = run(SCRIPT), run(SCRIPT)
    assert second.stdout.splitlines()[1:] == ["1 0", "1 0"], second.stderr
    assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0]


def test_what_was_compiled_is_valid_only_while_no_kernel_has_changed(tmp_path):
    package = tmp_path / "mlca"
    shutil.copytree(Path(mlca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import numpy\nfrom mlca.learner.kernels.bandwidth import median\n"
        "median(numpy.ones(3), numpy.ones(3))\nprint(sum(median.stats.cache_hits.values()))"
    )
    hits = [run(script, PYTHONPATH=str(tmp_path)).stdout.strip() for _ in range(2)]
    with (package / "learner" / "kernels" / "votes.py").open("a") as other:
        other.write("# changed\n")
    hits.append(run(script, PYTHONPATH=str(tmp_path)).stdout.strip())
    assert hits == ["0", "1", "0"]


def test_a_read_only_installation_without_any_cache_folder_works(tmp_path):
    """Nothing can be written beside the package nor in the user's folders: files are in the way, even for root."""
    package = tmp_path / "site" / "mlca"
    shutil.copytree(Path(mlca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where the folder of the cache would be")
    (tmp_path / "home").write_text("a file where the home folder would be")
    result = run(
        "import mlca, numpy\n"
        "from mlca.learner.kernels.fixedpoint import common_sum\n"
        "print(mlca.__file__, common_sum(numpy.zeros(3), numpy.ones(3), 9e9) == 3 * 2**40)",
        PYTHONPATH=str(package.parent),
        HOME=str(tmp_path / "home"),
        XDG_CACHE_HOME=str(tmp_path / "home"),
        NUMBA_CACHE_DIR="",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(package / "__init__.py"), "True"]


def test_importing_the_package_imports_nothing_heavy():
    result = run("import sys, mlca; print(sorted({'numpy', 'numba', 'sklearn'} & set(sys.modules)))")
    assert result.stdout.strip() == "[]"


def test_names_of_the_package():
    assert {"MLCA", "load", "__version__"} <= set(dir(mlca))
    assert not hasattr(mlca, "nonsense")

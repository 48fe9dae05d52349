import inspect
import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import mlca
from mlca import kernels
from mlca.experiments import rivals
from mlca.experiments.tasks import RIVER_PREFIX, Task, in_order

TASK = Task("fold", "MLCA", (("vigilance", 0.1),), "flags", repetition=0, fold=1)


def test_key_does_not_depend_on_the_order_of_parameters():
    first = replace(TASK, parameters=in_order({"vigilance": 0.1, "window": 20}))
    second = replace(TASK, parameters=in_order({"window": 20, "vigilance": 0.1}))
    assert first.key == second.key


def test_every_field_is_part_of_the_key():
    others = {
        "work": "stream",
        "algorithm": "MLkNN",
        "parameters": (("vigilance", 0.2),),
        "dataset": "birds",
        "seed": 1,
        "repetition": 1,
        "fold": 2,
        "scaled": True,
        "on_training": True,
        "epochs": 2,
        "size": 5,
        "nodes": 5,
        "arrangement": "rotated",
    }
    assert set(others) == {field.name for field in fields(Task)}
    keys = {replace(TASK, **{name: value}).key for name, value in others.items()}
    assert len(keys | {TASK.key}) == len(others) + 1


def test_key_depends_on_code_that_can_change_a_result(tmp_path):
    copy = _copy_package(tmp_path)
    key = _key_in(tmp_path)
    for name in ("plots/style.py", "experiments/studies/nodes.py"):
        _append_comment(copy / name)
    assert _key_in(tmp_path) == key
    _append_comment(copy / "learner" / "replay.py")
    assert _key_in(tmp_path) != key


def test_river_version_changes_the_keys_of_its_learners_only(tmp_path):
    _copy_package(tmp_path)
    rivers = Task("prequential", rivals.RiverLogistic.__name__, (), "flags")
    keys = [_key_in(tmp_path, task) for task in (TASK, rivers)]
    (tmp_path / "river-0.dist-info").mkdir()
    (tmp_path / "river-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: river\nVersion: 0\n")
    assert _key_in(tmp_path) == keys[0]
    assert _key_in(tmp_path, rivers) != keys[1]


def test_names_of_river_learners_are_recognised():
    rivers = {name for name in rivals.__all__ if "river" in inspect.getsource(getattr(rivals, name))}
    assert rivers == {name for name in rivals.__all__ if name.startswith(RIVER_PREFIX)}


def _copy_package(folder):
    copy = folder / "mlca"
    shutil.copytree(Path(mlca.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for level in kernels.available():  # an editable installation stores compiled modules elsewhere
        module = Path(kernels.load_level(level).__file__)
        shutil.copy(module, copy / module.name)
    return copy


def _append_comment(path):
    path.write_text(path.read_text() + "# changed\n")


def _key_in(folder, task=TASK):
    # An editable install finds its own sources before any path.
    ask = "import sys; sys.meta_path[:] = [one for one in sys.meta_path if 'Redirect' not in type(one).__name__]; "
    ask += f"from mlca.experiments.tasks import Task; print({task!r}.key)"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()

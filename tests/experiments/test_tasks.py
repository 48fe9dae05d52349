import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import mlca
from mlca import kernels
from mlca.experiments.tasks import Task, in_order

TASK = Task("fold", "MLCA", (("vigilance", 0.1),), "flags", repetition=0, fold=1)


def test_equal_tasks_have_one_key_whatever_the_order_of_parameters():
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


def test_code_that_can_change_a_result_changes_the_key_and_nothing_else_does(tmp_path):
    copy = tmp_path / "mlca"
    shutil.copytree(Path(mlca.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for level in kernels.available():  # an editable install keeps compiled modules elsewhere
        module = Path(kernels.load_level(level).__file__)
        shutil.copy(module, copy / module.name)
    key = _key_in(tmp_path)
    for name in ("plots/style.py", "experiments/studies/nodes.py"):
        _append_comment(copy / name)
    assert _key_in(tmp_path) == key
    _append_comment(copy / "learner" / "merging.py")
    assert _key_in(tmp_path) != key


def _append_comment(path):
    path.write_text(path.read_text() + "# changed\n")


def _key_in(folder):
    # An editable install finds its own sources before any path.
    ask = "import sys; sys.meta_path[:] = [one for one in sys.meta_path if 'Redirect' not in type(one).__name__]; "
    ask += f"from mlca.experiments.tasks import Task; print({TASK!r}.key)"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()

"""Modules of all levels that this processor supports: the same names, the same bits, and the requested one."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlca
from mlca import kernels
from tests.kernels.valid_calls import CALLS, outcome

SEEDS = st.integers(0, 2**32 - 1)
MODULES = [kernels.load_level(level) for level in kernels.available()]


def ask(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", f"from mlca import kernels\n{code}"],
        env={name: value for name, value in os.environ.items() if name != "MLCA_CPU"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", CALLS)
@given(seed=SEEDS, strange=st.sampled_from([0.0, 0.2]))
@settings(max_examples=60, deadline=None)
def test_all_levels_give_the_same_bits(name, seed, strange):
    arguments, changed = CALLS[name](np.random.default_rng(seed), strange)
    first, *others = (outcome(module, name, arguments, changed) for module in MODULES)
    assert all(other == first for other in others)


def test_every_loop_is_tested_here():
    """Every loop of the module is in the calls or belongs to the learner."""
    of_learner = {"all_within", "constant_bandwidth", "processor_has"}
    functions = {name for name in vars(kernels.native) if callable(getattr(kernels.native, name)) and name[0] != "_"}
    assert {name for name in functions if name[0].islower()} - of_learner == set(CALLS)


@pytest.mark.parametrize("module", MODULES)
def test_modules_match_their_type_stubs(module):
    stub = ast.parse(Path(mlca.__file__).with_name("_kernels.pyi").read_text())
    stubbed = {name: part for part in stub.body for name in named(part)}
    assert public(vars(module)) == public(stubbed)
    for name, part in stubbed.items():
        if isinstance(part, ast.ClassDef) and not name.startswith("_"):
            assert public(vars(getattr(module, name))) == public(name for member in part.body for name in named(member))


def named(part):
    if isinstance(part, ast.AnnAssign):
        return [part.target.id]
    return [part.name] if isinstance(part, ast.FunctionDef | ast.ClassDef) else []


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_best_level_is_chosen_by_default():
    best = kernels.available()[-1]
    assert ask("print(kernels.LEVEL, kernels.native.__name__)").stdout.split() == [best, f"mlca._kernels_{best}"]
    for level in kernels.available():
        assert ask("print(kernels.native.__name__)", MLCA_CPU=level).stdout.split() == [f"mlca._kernels_{level}"]
    assert ask("print(kernels.LEVEL)", MLCA_CPU="").stdout.split() == [best]


@pytest.mark.parametrize("word", ["v1", "V3", "best", "v3 "])
def test_unavailable_level_raises_with_the_available_ones(word):
    error = ask("", MLCA_CPU=word).stderr.splitlines()[-1]
    assert error == f"ValueError: MLCA_CPU is {word!r}; unset it, or set it to one of {', '.join(kernels.available())}"


def test_unsupported_module_fails_to_import():
    built = [level for level in kernels.LEVELS if list(Path(MODULES[0].__file__).parent.glob(f"_kernels_{level}.*"))]
    for level in set(built) - set(kernels.available()):
        result = ask(f"kernels.load_level({level!r})")
        assert f"ImportError: this processor lacks instructions of x86-64-{level}" in result.stderr
        assert result.returncode == 1
        assert ask("", MLCA_CPU=level).returncode == 1


def test_all_levels_have_the_same_sources():
    assert len({module.sources for module in MODULES}) == 1
    assert len(kernels.native.sources) == 64

"""Random sequences of operations on models: in any order, the model depends only on its rows.

Each file has one state machine of hypothesis. A machine keeps the rows that its model should have learned, in order,
and a plain model of them: `mlca.reference.MLCA`, or a model that learned the same rows without anything in between.
`make test` runs a few fixed sequences; `make test-all` runs hundreds of new ones.
"""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

FEW_AND_MANY = [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.plain])]


def run_lives(machine, few, many, steps, thorough):
    """Run a state machine: the same few sequences each time, or many new ones."""
    chosen = settings(
        max_examples=many if thorough else few,
        stateful_step_count=2 * steps if thorough else steps,
        derandomize=not thorough,
        database=None if not thorough else settings.default.database,
    )
    run_state_machine_as_test(machine, settings=chosen)

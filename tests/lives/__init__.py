"""Random sequences of operations, after which a model must depend only on its rows.

Each file has one state machine of Hypothesis. A machine keeps the rows that its model should have learned, in order,
and a model to compare with: `mlca.reference.MLCA`, or a model that learned the same rows without other operations.
`make test` runs a few fixed sequences; `make test-all` runs hundreds of new ones.
"""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

FEW_AND_MANY = [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.plain])]


def run_lives(machine, few, many, steps, thorough):
    """Run a state machine on a few fixed sequences, or on many new ones if `thorough`."""
    chosen = settings(
        max_examples=many if thorough else few,
        stateful_step_count=2 * steps if thorough else steps,
        derandomize=not thorough,
        database=None if not thorough else settings.default.database,
    )
    run_state_machine_as_test(machine, settings=chosen)

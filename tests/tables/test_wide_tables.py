"""The cost of very wide tables is proportional to the number of columns."""

import sys

import numpy as np
import pandas as pd

from mlca.cli import main


def calls_of(work):
    """Count function calls, including compiled functions: a measure of cost that does not depend on the load."""
    n_calls = 0

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return n_calls


def test_time_is_linear_in_the_number_of_columns(tmp_path):
    work = []
    for n_columns in (50, 400, 800):  # the first call does the imports
        path, model = str(tmp_path / f"{n_columns}.csv"), str(tmp_path / f"{n_columns}.mlca")
        numbers = np.random.default_rng(0).normal(size=(30, n_columns))
        frame = pd.DataFrame(numbers, columns=[f"c{i}" for i in range(n_columns)])
        frame.assign(tags=["a", "b"] * 15).to_csv(path, index=False)
        assert main(["train", path, "--labels", "tags", "--out", model]) == 0
        work.append(calls_of(lambda: main(["inspect", model])))  # noqa: B023 - called here
    assert work[2] < 2.5 * work[1]

"""Probabilities compared with outcomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mlca.metrics import brier_score, calibration_error

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)


@st.composite
def forecasts(draw):
    shape = draw(SHAPES)
    true = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    return true, draw(hnp.arrays(np.float64, shape, elements=st.floats(0, 1)))


@given(forecasts())
def test_measures_equal_a_plain_loop(forecast):
    true, proba = forecast
    cells = list(zip(true.ravel().tolist(), proba.ravel().tolist(), strict=True))
    assert brier_score(true, proba) == pytest.approx(sum((p - y) ** 2 for y, p in cells) / len(cells))
    bins = [[(y, p) for y, p in cells if min(int(p * 10), 9) == b] for b in range(10)]
    error = sum(abs(sum(p for _, p in b) - sum(y for y, _ in b)) for b in bins) / len(cells)
    assert calibration_error(true, proba) == pytest.approx(error, abs=1e-12)


@given(forecasts())
def test_order_of_rows_and_labels_does_not_matter(forecast):
    true, proba = forecast
    assert calibration_error(true[::-1, ::-1], proba[::-1, ::-1]) == pytest.approx(calibration_error(true, proba))


def test_correct_forecast_has_no_error():
    true = np.array([[1, 0]] * 3 + [[0, 0]] * 7)
    proba = np.tile([0.3, 0.0], (10, 1))
    assert calibration_error(true, proba) == pytest.approx(0)
    assert brier_score(true, proba) == pytest.approx(0.3 * 0.7 / 2)
    assert calibration_error(true, 1 - proba) == pytest.approx((0.4 + 1) / 2)


def test_certain_forecast_is_in_the_last_bin():
    assert calibration_error([[0, 1]], [[1.0, 0.95]]) == pytest.approx(
        0.475
    )  # of those with probability 0.975, half are true


def test_scores_outside_0_to_1_are_rejected():
    with pytest.raises(ValueError, match=r"between 0 and 1; got 1\.5 at row 0, label 1"):
        calibration_error([[1, 0]], [[0.2, 1.5]])

"""The three discs: geometry, and the labels known at each stage."""

import numpy as np
import pytest

from mlca.datasets import three_discs
from mlca.datasets.synthetic import CENTRES


def covered(X):
    return (np.linalg.norm(X[:, None] - CENTRES, axis=2) <= 1.0).astype(np.uint8)


def as_rows(X, Y):
    return sorted(map(tuple, np.hstack([X, Y]).tolist()))


def test_centres_are_an_equilateral_triangle_of_side_1_1():
    sides = [np.linalg.norm(CENTRES[a] - CENTRES[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(sides, 1.1)


def test_condition_together_gives_one_shuffled_stage():
    (stage,) = three_discs(2000, condition="together")
    assert stage.X.shape == (6000, 2)
    np.testing.assert_array_equal(stage.Y, covered(stage.X))
    np.testing.assert_array_equal(stage.Y_test, stage.Y)
    np.testing.assert_array_equal(stage.X_test, stage.X)
    first_half, second_half = stage.Y[:3000].mean(axis=0), stage.Y[3000:].mean(axis=0)
    np.testing.assert_allclose(first_half, second_half, atol=0.06)


def test_points_are_uniform_in_the_area_of_their_disc():
    first, *_ = three_discs(20_000, condition="three")
    radius = np.linalg.norm(first.X - CENTRES[0], axis=1)
    for r in (0.25, 0.5, 0.75):
        assert np.mean(radius <= r) == pytest.approx(r**2, abs=0.01)


def test_condition_three_labels_only_discs_presented_so_far():
    stages = three_discs(500, condition="three")
    assert [stage.name for stage in stages] == ["1", "2", "3"]
    for number, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(stage.Y, covered(stage.X)[:, :number])
        np.testing.assert_array_equal(stage.Y_test, covered(stage.X_test)[:, :number])
        assert stage.Y[:, number - 1].all()
        learned = np.vstack([earlier.X for earlier in stages[:number]])
        np.testing.assert_array_equal(stage.X_test, learned)
    overlap = covered(stages[0].X)[:, 1] == 1
    assert overlap.any()
    assert (stages[0].Y[overlap] == [1]).all()
    assert (stages[1].Y_test[:500][overlap] == [1, 1]).all()


def test_condition_seven_presents_one_region_per_stage():
    stages = three_discs(500, condition="seven")
    assert [stage.name for stage in stages] == ["1", "2", "3", "123", "12", "13", "23"]
    presented = 0
    for stage in stages:
        region = [int(str(disc) in stage.name) for disc in (1, 2, 3)]
        np.testing.assert_array_equal(stage.Y, np.tile(region, (len(stage.X), 1)))
        presented += len(stage.X)
        assert len(stage.X_test) == presented
        np.testing.assert_array_equal(stage.X_test[-len(stage.X) :], stage.X)
        np.testing.assert_array_equal(stage.Y_test, covered(stage.X_test))
    assert presented == 1500


def test_rows_of_a_region_are_shuffled():
    centre = three_discs(3000, condition="seven")[3]
    # Unshuffled, the rows drawn from disc 1 would come first and lie nearer to its centre.
    distance = np.linalg.norm(centre.X - CENTRES[0], axis=1)
    half = len(distance) // 2
    assert distance[:half].mean() == pytest.approx(distance[half:].mean(), abs=0.03)


def test_all_conditions_present_the_same_points():
    (together,) = three_discs(200, condition="together", random_state=3)
    for condition in ("three", "seven"):
        last = three_discs(200, condition=condition, random_state=3)[-1]
        assert as_rows(last.X_test, last.Y_test) == as_rows(together.X, together.Y)


def test_seed_determines_the_points():
    one, same, other = (three_discs(50, random_state=seed)[0].X for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_one_point_per_disc_gives_seven_stages():
    stages = three_discs(1, condition="seven")
    assert len(stages) == 7
    assert len(stages[-1].X_test) == 3


def test_wrong_arguments_are_rejected():
    with pytest.raises(ValueError, match="`n_per_disc` must be at least 1; got 0"):
        three_discs(0)
    with pytest.raises(ValueError, match=r"`condition` must be .*'seven'; got 'four'"):
        three_discs(10, condition="four")

"""The paper's synthetic stream: three overlapping discs, presented in three ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

RADIUS = 1.0
SIDE = 1.1
CENTRES = SIDE * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])

# The regions of condition "seven", in the paper's order: which of the three discs cover each.
REGIONS = {
    "1": (1, 0, 0),
    "2": (0, 1, 0),
    "3": (0, 0, 1),
    "123": (1, 1, 1),
    "12": (1, 1, 0),
    "13": (1, 0, 1),
    "23": (0, 1, 1),
}


@dataclass(frozen=True)
class Stage:
    """One stage of a stream: the rows to learn, and the rows to test.

    Attributes
    ----------
    name : str
        The discs of the stage, such as ``"2"`` or ``"13"``.
    X : ndarray of shape (n_rows, 2)
        The rows to learn, in order.
    Y : ndarray of shape (n_rows, n_labels), uint8
        The labels of these rows that are known at this stage.
    X_test : ndarray of shape (n_presented, 2)
        All rows presented so far, including this stage.
    Y_test : ndarray of shape (n_presented, n_labels), uint8
        Their labels with respect to all discs presented so far.
    """

    name: str
    X: NDArray[np.float64]
    Y: NDArray[np.uint8]
    X_test: NDArray[np.float64]
    Y_test: NDArray[np.uint8]


def three_discs(
    n_per_disc: int = 10_000,
    *,
    condition: Literal["together", "three", "seven"] = "together",
    random_state: Any = 0,
) -> list[Stage]:
    """Draw points from three overlapping discs and present them as a stream.

    The discs have radius 1; their centres are the corners of an equilateral triangle with side 1.1. Each disc
    contributes `n_per_disc` points, uniform in its area; label j means "inside disc j". The same `random_state` gives
    the same points in every condition.

    Parameters
    ----------
    n_per_disc : int, default=10_000
        The number of points per disc.
    condition : {"together", "three", "seven"}, default="together"
        How the points are presented:

        - ``"together"``: one stage, all points shuffled, three label columns.
        - ``"three"``: disc 1, then disc 2, then disc 3. Stage j has j label columns, because a row
          has labels only for the discs presented so far: a point of disc 1 that also lies inside disc 2 is learned as
          {1} at the first stage and tested as {1, 2} from the second on.
        - ``"seven"``: the same points by region: the three regions of a single disc, the centre
          covered by all three, then the pairs 12, 13 and 23; shuffled within each region. A region's
          label set is fully known when it is presented, so Y has three columns at every stage,
          with only zeros for discs that have not been presented yet.
    random_state : int, RandomState instance or None, default=0
        The seed of the points and of their order.

    Returns
    -------
    list of Stage
        The stages in the order of presentation.

    Notes
    -----
    The paper divides the Hamming loss by three labels from the start. To reproduce this at the first two stages of
    ``"three"``, append columns of zeros to Y_test and to the prediction.

    Examples
    --------
    >>> from mlca.datasets import three_discs
    >>> for stage in three_discs(1000, condition="three"):
    ...     print(stage.name, stage.X.shape, stage.Y.shape, stage.Y_test.shape)
    1 (1000, 2) (1000, 1) (1000, 1)
    2 (1000, 2) (1000, 2) (2000, 2)
    3 (1000, 2) (1000, 3) (3000, 3)
    >>> [stage.name for stage in three_discs(1000, condition="seven")]
    ['1', '2', '3', '123', '12', '13', '23']
    """
    if n_per_disc < 1:
        raise ValueError(f"`n_per_disc` must be at least 1; got {n_per_disc}")
    rng = check_random_state(random_state)
    X = _draw(n_per_disc, rng)
    Y = _inside(X)
    if condition == "three":
        return _disc_by_disc(X, Y, n_per_disc)
    order = rng.permutation(len(X))
    X, Y = X[order], Y[order]
    if condition == "together":
        return [Stage("123", X, Y, X, Y)]
    if condition == "seven":
        return _region_by_region(X, Y)
    raise ValueError(f"`condition` must be 'together', 'three' or 'seven'; got {condition!r}")


def _draw(n_per_disc: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Draw points uniformly from the area of each disc, one disc after another."""
    # The area grows with the square of the radius, hence the square root.
    radius = RADIUS * np.sqrt(rng.uniform(size=(3, n_per_disc)))
    angle = rng.uniform(0.0, 2.0 * np.pi, size=(3, n_per_disc))
    offset = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.asarray(CENTRES[:, None, :] + offset, dtype=np.float64).reshape(-1, 2)


def _inside(X: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return which discs cover each point, always including the point's own disc."""
    distance = np.linalg.norm(X[:, None, :] - CENTRES[None, :, :], axis=2)
    inside = distance <= RADIUS
    disc = np.repeat(np.arange(3), len(X) // 3)
    inside[np.arange(len(X)), disc] = True  # a point on the rim may be rounded out of its own disc
    return np.asarray(inside, dtype=np.uint8)


def _disc_by_disc(X: NDArray[np.float64], Y: NDArray[np.uint8], n_per_disc: int) -> list[Stage]:
    stages = []
    for disc in range(3):
        learned = slice(disc * n_per_disc, (disc + 1) * n_per_disc)
        known = slice(0, disc + 1)
        presented = slice(0, learned.stop)
        stages.append(Stage(str(disc + 1), X[learned], Y[learned, known], X[presented], Y[presented, known]))
    return stages


def _region_by_region(X: NDArray[np.float64], Y: NDArray[np.uint8]) -> list[Stage]:
    stages = []
    region_of = Y @ np.array([4, 2, 1])
    order = np.empty(0, dtype=np.intp)
    for name, covered in REGIONS.items():
        rows = np.flatnonzero(region_of == np.dot(covered, [4, 2, 1]))
        order = np.concatenate([order, rows])
        stages.append(Stage(name, X[rows], Y[rows], X[order], Y[order]))
    return stages

"""Concepts that draw the labelled rows of drifting streams: hyperplanes, centroids, trees.

The concepts are those of MOA's `HyperplaneGenerator`, `RandomRBFGenerator` with drift and `RandomTreeGenerator`, with a
label set instead of one class. Each kind of random number has its own generator and is drawn row by row, so the rows do
not depend on the chunk size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

DrawnRows = NDArray[np.float64]
DrawnLabels = NDArray[np.uint8]

# MOA's defaults: the probability that the movement of a weight reverses, and the shape of a random tree.
_TURN_BACK = 0.1
_FIRST_LEAF_LEVEL = 3
_DEEPEST_LEVEL = 5
_LEAF_SHARE = 0.15
# Random tree: the numbers of numeric features, of categorical features, and of values per categorical feature.
N_NUMBERS, N_CATEGORIES, N_VALUES = 5, 5, 5
N_COLUMNS = N_NUMBERS + N_CATEGORIES * N_VALUES


@dataclass(frozen=True)
class Size:
    """The numbers of features and labels, and the density of the labels.

    Attributes
    ----------
    n_features, n_labels : int
        The numbers of features and labels.
    density : float
        The mean share of the labels that are true for a row.
    """

    n_features: int
    n_labels: int
    density: float

    @classmethod
    def of(cls, n_features: int, n_labels: int, cardinality: float) -> Size:
        """Return a `Size` whose density follows from the mean number of labels per row."""
        if not 0.0 < cardinality < n_labels:
            raise ValueError(f"`cardinality` must be between 0 and the number of labels, {n_labels}; got {cardinality}")
        return cls(n_features, n_labels, cardinality / n_labels)


class Concept(Protocol):
    """A rule that assigns labels, from which any number of rows can be drawn."""

    def draw(self, rows: NDArray[np.int64]) -> tuple[DrawnRows, DrawnLabels]:
        """Draw the rows with these indices; a moving concept moves by one step per row."""


class Hyperplanes:
    """Uniform rows in the unit cube; each label is true on one side of its own hyperplane.

    Parameters
    ----------
    seed : SeedSequence
        The source of all random numbers.
    size : Size
        The numbers of features and labels. The density is the share of rows on the labelled side; MOA uses one half.
    noise : float
        The probability that a cell of the labels is flipped.
    speed : float
        The change of each weight after each row; 0 for none.
    """

    def __init__(self, seed: np.random.SeedSequence, size: Size, noise: float, speed: float) -> None:
        shape = (size.n_labels, size.n_features)
        drawing, self._for_rows, self._for_noise, self._for_turns = map(np.random.default_rng, seed.spawn(4))
        # MOA's weights are positive, which would tilt the hyperplanes of all labels alike; here they have both signs.
        self._weights = drawing.uniform(-1.0, 1.0, size=shape)
        self._way = np.ones(shape, dtype=np.int64)
        self._steps = np.zeros(shape, dtype=np.int64)
        self._height = NormalDist().inv_cdf(1.0 - size.density)
        self._noise, self._speed = noise, speed

    def draw(self, rows: NDArray[np.int64]) -> tuple[DrawnRows, DrawnLabels]:
        """Draw rows; if the concept moves, rotate the hyperplanes after each row."""
        n_labels, n_features = self._weights.shape
        X = self._for_rows.random((len(rows), n_features))
        weights = self._turning(len(rows)) if self._speed else self._weights[None]
        score = np.einsum("nkj,nj->nk", np.broadcast_to(weights, (len(rows), *self._weights.shape)), X - 0.5)
        deviation = np.sqrt((weights**2).sum(axis=2) / 12.0)
        flipped = self._for_noise.random((len(rows), n_labels)) < self._noise
        return X, ((score > self._height * deviation) ^ flipped).astype(np.uint8)

    def _turning(self, n_rows: int) -> DrawnRows:
        """Return the weights for each of the next rows; they do not depend on the chunk size."""
        turns = self._for_turns.random((n_rows, *self._weights.shape)) < _TURN_BACK
        ways = np.concatenate((self._way[None], np.where(turns, -1, 1))).cumprod(axis=0)
        steps = np.concatenate((self._steps[None], ways[:-1])).cumsum(axis=0)
        self._way, self._steps = ways[-1], steps[-1]
        return np.asarray(self._weights + self._speed * steps[:-1])


class Centroids:
    """Rows around centroids; each centroid has its own weight, spread and label set.

    Parameters
    ----------
    seed : SeedSequence
        The source of all random numbers.
    size : Size
        The numbers of features and labels. The density is the probability of a label in a centroid's set.
    n_centroids : int
        The number of centroids.
    speed : float
        The distance that each centroid moves per row. Centroids are reflected at the faces of the unit cube.
    """

    def __init__(self, seed: np.random.SeedSequence, size: Size, n_centroids: int, speed: float) -> None:
        drawing, self._for_choices, self._for_ways, self._for_lengths = map(np.random.default_rng, seed.spawn(4))
        self._centres = drawing.random((n_centroids, size.n_features))
        self._spreads = drawing.random(n_centroids)
        self._shares = drawing.random(n_centroids).cumsum()
        self._labels = label_sets(drawing, n_centroids, size)
        ways = drawing.uniform(-1.0, 1.0, size=(n_centroids, size.n_features))
        self._velocities = speed * ways / np.linalg.norm(ways, axis=1, keepdims=True)

    def draw(self, rows: NDArray[np.int64]) -> tuple[DrawnRows, DrawnLabels]:
        """Draw a centroid for each row by weight, and a position around the centroid."""
        n_features = self._centres.shape[1]
        chance = self._for_choices.random(len(rows)) * self._shares[-1]
        centroid = np.searchsorted(self._shares, chance, side="right")
        path = self._centres[centroid] + self._velocities[centroid] * rows[:, None]
        centres = 1.0 - np.abs(1.0 - path % 2.0)  # reflected at 0 and 1
        ways = self._for_ways.uniform(-1.0, 1.0, size=(len(rows), n_features))
        lengths = self._for_lengths.standard_normal(len(rows)) * self._spreads[centroid]
        X = centres + ways * (lengths / np.linalg.norm(ways, axis=1))[:, None]
        return X, self._labels[centroid]


@dataclass
class _Split:
    """A node of a random tree: a leaf without children, or a split."""

    leaf: int = -1
    attribute: int = -1
    at: float = 0.0
    children: list[_Split] = field(default_factory=list)


class LabelTree:
    """Rows of five numbers and five categories, labelled by the leaves of a random tree.

    Parameters
    ----------
    seed : SeedSequence
        The source of all random numbers.
    size : Size
        The numbers of features and labels. The density is the probability of a label in a leaf's set.
    over : int
        The number of rows during which all leaves, one after another, get another label set; 0 for no change.
    """

    def __init__(self, seed: np.random.SeedSequence, size: Size, over: int) -> None:
        drawing, self._for_numbers, self._for_values = map(np.random.default_rng, seed.spawn(3))
        self._n_leaves = 0
        free = list(range(N_NUMBERS + N_CATEGORIES))
        self._root = self._grow(drawing, 0, free, np.zeros(N_NUMBERS), np.ones(N_NUMBERS))
        self._first = label_sets(drawing, self._n_leaves, size)
        self._second = label_sets(drawing, self._n_leaves, size)
        turn = drawing.permutation(self._n_leaves) + 1
        self._changes_at = turn * over / (self._n_leaves + 1) if over else np.full(self._n_leaves, np.inf)

    def draw(self, rows: NDArray[np.int64]) -> tuple[DrawnRows, DrawnLabels]:
        """Draw uniform rows, and return them with the label sets of their leaves."""
        numbers = self._for_numbers.random((len(rows), N_NUMBERS))
        values = self._for_values.integers(N_VALUES, size=(len(rows), N_CATEGORIES))
        leaves = np.empty(len(rows), dtype=np.intp)
        self._descend(self._root, numbers, values, np.arange(len(rows)), leaves)
        changed = (rows >= self._changes_at[leaves])[:, None]
        ones = np.eye(N_VALUES)[values].reshape(len(rows), N_CATEGORIES * N_VALUES)
        return np.hstack((numbers, ones)), np.where(changed, self._second[leaves], self._first[leaves])

    def _grow(
        self,
        drawing: np.random.Generator,
        level: int,
        free: list[int],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> _Split:
        is_leaf = level >= _DEEPEST_LEVEL or (level >= _FIRST_LEAF_LEVEL and drawing.random() < _LEAF_SHARE)
        if is_leaf:
            self._n_leaves += 1
            return _Split(leaf=self._n_leaves - 1)
        attribute = free[int(drawing.integers(len(free)))]
        if attribute >= N_NUMBERS:  # a categorical feature splits at most once per path
            rest = [other for other in free if other != attribute]
            children = [self._grow(drawing, level + 1, rest, low, high) for _ in range(N_VALUES)]
            return _Split(attribute=attribute, children=children)
        at = float(drawing.uniform(low[attribute], high[attribute]))
        below, above = high.copy(), low.copy()
        below[attribute] = above[attribute] = at
        children = [self._grow(drawing, level + 1, free, low, below), self._grow(drawing, level + 1, free, above, high)]
        return _Split(attribute=attribute, at=at, children=children)

    def _descend(
        self,
        node: _Split,
        numbers: DrawnRows,
        values: NDArray[np.int64],
        reached: NDArray[np.intp],
        leaves: NDArray[np.intp],
    ) -> None:
        """Store the leaf of each row in `reached`, which lists the rows that reach `node`."""
        if not node.children:
            leaves[reached] = node.leaf
            return
        if node.attribute < N_NUMBERS:
            goes_to = (numbers[reached, node.attribute] >= node.at).astype(np.int64)
        else:
            goes_to = values[reached, node.attribute - N_NUMBERS]
        for number, child in enumerate(node.children):
            below = reached[goes_to == number]
            if len(below):
                self._descend(child, numbers, values, below, leaves)


def label_sets(drawing: np.random.Generator, n_sets: int, size: Size) -> DrawnLabels:
    """Draw label sets: all labels have the same probability; an empty set gets one label."""
    sets = (drawing.random((n_sets, size.n_labels)) < size.density).astype(np.uint8)
    spare = drawing.integers(size.n_labels, size=n_sets)
    empty = np.flatnonzero(~sets.any(axis=1))
    sets[empty, spare[empty]] = 1
    return sets

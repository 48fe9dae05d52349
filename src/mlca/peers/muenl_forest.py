"""The detector of MuENL: a forest of random 2-means trees over the known rows.

Each tree is grown on a small sample. A node splits its rows in two by 2-means on a few random columns of the features
and of the classifiers' scores; a leaf stores the ball around its rows. A query descends to a leaf of each tree, and
counts as new for the tree if it lies outside that leaf's ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from mlca.base import Rows
from mlca.kernels import native
from mlca.peers.scoring import BLOCK_CELLS


@dataclass(frozen=True)
class TreeShape:
    """Parameters of a tree: the limits of a split and the number of columns it considers."""

    sample: int
    height: int
    min_leaf: int
    feature_columns: int
    score_columns: int
    tries: int


class Tree(NamedTuple):
    """The nodes of one tree, breadth first; a node's second child directly follows its first."""

    child: NDArray[np.int64]
    columns: NDArray[np.int64]
    means: NDArray[np.float64]
    centres: NDArray[np.float64]
    radii: NDArray[np.float64]
    sizes: NDArray[np.int64]


class Forest:
    """Trees that vote on whether a row lies in a region without known rows.

    Parameters
    ----------
    rows : ndarray or sparse array of shape (n_rows, n_features)
        The known rows.
    scores : ndarray of shape (n_rows, n_labels)
        The classifiers' scores of these rows.
    n_trees : int
        The number of trees.
    shape : TreeShape
        The parameters of each tree.
    rng : numpy.random.Generator
        The random source of samples, columns and starting means.
    """

    def __init__(
        self,
        rows: Rows,
        scores: NDArray[np.float64],
        n_trees: int,
        shape: TreeShape,
        rng: np.random.Generator,
    ) -> None:
        n_rows = rows.shape[0]
        self.trees = []
        for _ in range(n_trees):
            drawn = rng.choice(n_rows, shape.sample, replace=n_rows < shape.sample)
            self.trees.append(grow_tree(_dense(rows[drawn]), scores[drawn], shape, rng))

    def novelty(self, rows: Rows, scores: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
        """Return the share of trees to which each row is new.

        A row is new to a tree if its distance from the centre of its leaf exceeds `ratio` times the leaf's radius.
        """
        votes = np.zeros(rows.shape[0])
        size = max(1, BLOCK_CELLS // max(1, rows.shape[1]))
        for block in gen_batches(rows.shape[0], size):
            dense, rated, counts = _dense(rows[block]), scores[block], votes[block]
            for tree in self.trees:
                native.add_votes(
                    dense, rated, tree.child, tree.columns, tree.means, tree.centres, tree.radii, ratio, counts
                )
        return votes / len(self.trees)


def grow_tree(
    rows: NDArray[np.float64], scores: NDArray[np.float64], shape: TreeShape, rng: np.random.Generator
) -> Tree:
    """Grow one tree on a sample, breadth first."""
    joined = np.hstack([rows, scores])
    n_features = rows.shape[1]
    width = min(shape.feature_columns, n_features) + min(shape.score_columns, scores.shape[1])
    members = [np.arange(len(rows))]
    heights = [1]
    child: list[int] = []
    columns: list[NDArray[np.int64]] = []
    means: list[NDArray[np.float64]] = []
    while len(child) < len(members):
        node_rows, height = members[len(child)], heights[len(child)]
        split = None
        if len(node_rows) >= 2 * shape.min_leaf and height < shape.height:
            split = _find_split(joined[node_rows], n_features, shape, rng)
        if split is None:
            child.append(-1)
            columns.append(np.zeros(width, dtype=np.int64))
            means.append(np.zeros((2, width)))
        else:
            child.append(len(members))
            columns.append(split[0])
            means.append(split[1])
            members += [node_rows[split[2]], node_rows[~split[2]]]
            heights += [height + 1, height + 1]
    centres = np.array([rows[node_rows].mean(axis=0) for node_rows in members])
    radii = np.array(
        [native.farthest(rows[node_rows], centre) for node_rows, centre in zip(members, centres, strict=True)]
    )
    sizes = np.array([len(node_rows) for node_rows in members])
    return Tree(np.array(child), np.array(columns), np.array(means), centres, radii, sizes)


def _find_split(
    points: NDArray[np.float64], n_features: int, shape: TreeShape, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]] | None:
    """Return the columns, both means and a mask of the first part; None if all tries fail."""
    n_scores = points.shape[1] - n_features
    for _ in range(shape.tries):
        features = rng.choice(n_features, min(shape.feature_columns, n_features), replace=False)
        labels = rng.choice(n_scores, min(shape.score_columns, n_scores), replace=False)
        columns = np.concatenate([features, n_features + labels])
        starts = rng.choice(len(points), 2, replace=False)
        chosen = np.ascontiguousarray(points[:, columns])
        means, first, settled = native.two_means(chosen, starts[0], starts[1])
        smaller = min(np.count_nonzero(first), np.count_nonzero(~first))
        if settled and smaller >= shape.min_leaf:
            return columns, means, first
    return None


def _dense(rows: Any) -> NDArray[np.float64]:
    dense: NDArray[np.float64] = rows.toarray() if sparse.issparse(rows) else np.ascontiguousarray(rows)
    return dense

"""Streams with concept drift: multi-label versions of MOA's generators, and relabelling.

A stream yields chunks (X, Y), so ten million rows need no more memory than one chunk. All generators support the same
kinds of change, at the same rows (`_is_changed`):

- ``"none"``: no change.
- ``"sudden"``: from the middle on, rows follow another concept.
- ``"gradual"``: around the middle, rows of the new concept become more frequent, by MOA's sigmoid over a tenth of the
  stream.
- ``"incremental"``: a single concept moves a little with every row.
- ``"recurrent"``: the middle third follows another concept, then the first one returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mlca.datasets.concepts import N_COLUMNS, Centroids, Concept, DrawnLabels, DrawnRows, Hyperplanes, LabelTree, Size

Change: TypeAlias = Literal["none", "sudden", "gradual", "incremental", "recurrent"]
CHANGES: tuple[Change, ...] = get_args(Change)

# The changes for relabelled data: labels are rotated or not, so there is no incremental change.
Rotation: TypeAlias = Literal["sudden", "gradual", "recurrent"]


def rotating_hyperplane(
    n_rows: int = 50_000,
    *,
    n_features: int = 10,
    n_labels: int = 5,
    cardinality: float = 2.0,
    change: Change = "incremental",
    speed: float = 0.001,
    noise: float = 0.05,
    chunk: int = 1000,
    random_state: Any = 0,
) -> Iterator[tuple[DrawnRows, DrawnLabels]]:
    """Generate a stream in which each label is one side of a rotating hyperplane.

    Rows are uniform in the unit cube. MOA's generator has one hyperplane and two classes; here each label has its own
    hyperplane over the same rows.

    Parameters
    ----------
    n_rows : int, default=50_000
        The number of rows of the stream.
    n_features, n_labels : int, default=10 and 5
        The numbers of features and labels.
    cardinality : float, default=2.0
        The mean number of labels per row, before noise. The equivalent in MOA is half of `n_labels`.
    change : {"incremental", "none", "sudden", "gradual", "recurrent"}, default="incremental"
        How the concept changes; ``"incremental"`` is MOA's rotation.
    speed : float, default=0.001
        The change of each weight after each row, if the change is incremental. A step keeps the direction of the
        previous one, or reverses it with a probability of 10 %.
    noise : float, default=0.05
        The probability that a cell of Y is flipped.
    chunk : int, default=1000
        The number of rows per chunk; it does not change the stream.
    random_state : int, RandomState instance or None, default=0
        The seed.

    Returns
    -------
    iterator of (X, Y)
        X float64 of shape (chunk, n_features), Y uint8 of shape (chunk, n_labels); the last chunk may be shorter.

    Examples
    --------
    >>> from mlca.datasets import rotating_hyperplane
    >>> for X, Y in rotating_hyperplane(2500):
    ...     print(X.shape, Y.shape, Y.sum(axis=0))
    (1000, 10) (1000, 5) [387 419 425 404 411]
    (1000, 10) (1000, 5) [409 418 406 378 411]
    (500, 10) (500, 5) [182 195 194 198 204]
    """
    size, moving = Size.of(n_features, n_labels, cardinality), speed if change == "incremental" else 0.0
    return _stream(lambda seed: Hyperplanes(seed, size, noise, moving), n_rows, change, chunk, random_state)


def random_rbf(
    n_rows: int = 50_000,
    *,
    n_features: int = 10,
    n_labels: int = 5,
    cardinality: float = 2.0,
    change: Change = "incremental",
    speed: float = 0.0001,
    n_centroids: int = 50,
    chunk: int = 1000,
    random_state: Any = 0,
) -> Iterator[tuple[DrawnRows, DrawnLabels]]:
    """Generate a stream of rows around centroids, which have label sets and may move.

    MOA's centroids have one class each; here they have a set of labels, and a row has the labels of its centroid.

    Parameters
    ----------
    n_rows : int, default=50_000
        The number of rows of the stream.
    n_features, n_labels : int, default=10 and 5
        The numbers of features and labels.
    cardinality : float, default=2.0
        The mean number of labels per centroid; a centroid without labels gets one.
    change : {"incremental", "none", "sudden", "gradual", "recurrent"}, default="incremental"
        How the concept changes. Each concept has its own centroids and label sets.
    speed : float, default=0.0001
        The distance that each centroid moves per row if the change is incremental. Centroids are reflected at the
        faces of the unit cube.
    n_centroids : int, default=50
        The number of centroids per concept.
    chunk : int, default=1000
        The number of rows per chunk; it does not change the stream.
    random_state : int, RandomState instance or None, default=0
        The seed.

    Returns
    -------
    iterator of (X, Y)
        X float64 of shape (chunk, n_features), Y uint8 of shape (chunk, n_labels); the last chunk may be shorter.

    Examples
    --------
    >>> from mlca.datasets import random_rbf
    >>> X, Y = next(random_rbf(10_000_000))
    >>> X.shape, Y.shape, int(Y.sum())
    ((1000, 10), (1000, 5), 2213)
    """
    size, moving = Size.of(n_features, n_labels, cardinality), speed if change == "incremental" else 0.0
    return _stream(lambda seed: Centroids(seed, size, n_centroids, moving), n_rows, change, chunk, random_state)


def random_tree(
    n_rows: int = 50_000,
    *,
    n_labels: int = 5,
    cardinality: float = 2.0,
    change: Change = "sudden",
    chunk: int = 1000,
    random_state: Any = 0,
) -> Iterator[tuple[DrawnRows, DrawnLabels]]:
    """Generate a stream whose label sets belong to the leaves of a random tree.

    Features and the shape of the tree are MOA's: five numbers, uniform in [0, 1], and five categories of five values.
    No leaf is above the third level or below the fifth. A category becomes five columns of 0 and 1. MOA's leaves have
    one class each; here they have a set of labels.

    Parameters
    ----------
    n_rows : int, default=50_000
        The number of rows of the stream.
    n_labels : int, default=5
        The number of labels.
    cardinality : float, default=2.0
        The mean number of labels per leaf; a leaf without labels gets one.
    change : {"sudden", "none", "gradual", "incremental", "recurrent"}, default="sudden"
        How the concept changes. Another concept is another tree. MOA's tree has no incremental change; here one leaf
        after another gets another label set.
    chunk : int, default=1000
        The number of rows per chunk; it does not change the stream.
    random_state : int, RandomState instance or None, default=0
        The seed.

    Returns
    -------
    iterator of (X, Y)
        X float64 of shape (chunk, 30), Y uint8 of shape (chunk, n_labels); the last chunk may be shorter.

    Examples
    --------
    >>> from mlca.datasets import random_tree
    >>> X, Y = next(random_tree(2000, n_labels=3, cardinality=1))
    >>> X.shape, int(X[0, 5:].sum()), Y.shape
    ((1000, 30), 5, (1000, 3))
    """
    size, moving = Size.of(N_COLUMNS, n_labels, cardinality), n_rows if change == "incremental" else 0
    return _stream(lambda seed: LabelTree(seed, size, moving), n_rows, change, chunk, random_state)


def rotate_labels(Y: Any, change: Rotation = "sudden", *, random_state: Any = 0) -> NDArray[np.uint8] | sp.csr_array:
    """Add concept drift by moving the labels of some rows one column to the right.

    The last label becomes the first. Rows, sizes of label sets and label correlations stay the same, so any difference
    in accuracy is due to the change alone.

    Parameters
    ----------
    Y : array-like or sparse of shape (n_rows, n_labels)
        The labels in the order of the stream.
    change : {"sudden", "gradual", "recurrent"}, default="sudden"
        Which rows are rotated: the second half; increasingly many rows around the middle; or the middle third.
    random_state : int, RandomState instance or None, default=0
        The seed for the choice of rows in a gradual change.

    Returns
    -------
    ndarray or csr_array of shape (n_rows, n_labels)
        The changed labels; sparse if Y is.

    Examples
    --------
    >>> from mlca.datasets import rotate_labels
    >>> rotate_labels([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1],
           [1, 0, 0]], dtype=uint8)
    """
    sparse = sp.issparse(Y)
    labels = sp.coo_array(Y if sparse else np.asarray(Y, dtype=np.uint8))
    if change not in get_args(Rotation):
        raise ValueError(f"`change` must be one of {', '.join(map(repr, get_args(Rotation)))}; got {change!r}")
    n_rows, n_labels = labels.shape
    coin = np.random.default_rng(_seeds(random_state)[2])
    changed = _is_changed(change, np.arange(n_rows), n_rows, coin)
    columns = np.where(changed[labels.row], (labels.col + 1) % n_labels, labels.col)
    rotated = sp.csr_array((labels.data, (labels.row, columns)), shape=labels.shape)
    return rotated if sparse else rotated.toarray()


def _stream(
    concept_of: Callable[[np.random.SeedSequence], Concept], n_rows: int, change: Change, chunk: int, random_state: Any
) -> Iterator[tuple[DrawnRows, DrawnLabels]]:
    """Check the common arguments, draw both concepts, and return an iterator over chunks."""
    if change not in CHANGES:
        raise ValueError(f"`change` must be one of {', '.join(map(repr, CHANGES))}; got {change!r}")
    if n_rows < 1 or chunk < 1:
        raise ValueError(f"`n_rows` and `chunk` must be at least 1; got {n_rows} and {chunk}")
    first, second, changing = _seeds(random_state)
    concepts = [concept_of(first), concept_of(second)]
    return _chunks(concepts, n_rows, change, chunk, np.random.default_rng(changing))


def _chunks(
    concepts: Sequence[Concept], n_rows: int, change: Change, chunk: int, coin: np.random.Generator
) -> Iterator[tuple[DrawnRows, DrawnLabels]]:
    for start in range(0, n_rows, chunk):
        rows = np.arange(start, min(start + chunk, n_rows))
        changed = _is_changed(change, rows, n_rows, coin)
        parts = [concept.draw(rows[changed == second]) for second, concept in enumerate(concepts)]
        order = np.argsort(np.argsort(changed, kind="stable"), kind="stable")
        yield np.concatenate([X for X, _ in parts])[order], np.concatenate([Y for _, Y in parts])[order]


def _is_changed(change: str, rows: NDArray[np.int64], n_rows: int, coin: np.random.Generator) -> NDArray[np.bool_]:
    """Return a mask of the rows that follow the second concept."""
    if change == "sudden":
        return rows >= n_rows // 2
    if change == "recurrent":
        return (rows >= n_rows // 3) & (rows < 2 * n_rows // 3)
    if change == "gradual":
        far = np.clip(-4.0 * (rows - n_rows // 2) / (n_rows / 10), -700.0, 700.0)
        return np.asarray(coin.random(len(rows)) < 1.0 / (1.0 + np.exp(far)))
    return np.zeros(len(rows), dtype=np.bool_)


def _seeds(random_state: Any) -> list[np.random.SeedSequence]:
    """Return the seeds of the first concept, the second concept and the change."""
    entropy = int(check_random_state(random_state).randint(2**31 - 1))
    return np.random.SeedSequence(entropy).spawn(3)

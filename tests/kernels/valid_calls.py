"""Valid calls of every compiled loop outside the learner, with random arrays.

Each call lists the arguments that the loop changes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

# Special floating-point numbers, which are mixed with ordinary numbers.
STRANGE = np.array([0.0, -0.0, 5e-324, 1e-300, 1e200, -1e308, np.inf, -np.inf, np.nan])


def numbers(rng, *shape, strange=0.0):
    usual = rng.normal(0, 1, shape)
    return np.where(rng.random(shape) < strange, rng.choice(STRANGE, shape), usual)


def csr(rng, n_rows, n_columns, index):
    filled = rng.random((n_rows, n_columns)) < 0.4
    bounds = np.append(0, np.cumsum(filled.sum(axis=1))).astype(index)
    columns = np.nonzero(filled)[1].astype(index)
    return bounds, columns, rng.normal(0, 1, len(columns))


def nearest_dense(rng, strange):
    n, m, d = rng.integers(1, [6, 30, 9])
    k = int(rng.integers(1, m + 1))
    rough, margin = numbers(rng, n, m, strange=strange), np.full(n, np.inf if strange else 0.3)
    return (rough, margin, numbers(rng, n, d), numbers(rng, m, d), k, -1), ()


def nearest_sparse(rng, strange):
    n, m, d = rng.integers(2, [6, 30, 9])
    index = rng.choice([np.int32, np.int64])
    rough, margin = numbers(rng, n, m, strange=strange), np.full(n, np.inf if strange else 0.3)
    return (rough, margin, *csr(rng, n, d, index), *csr(rng, m, d, index), int(rng.integers(1, m)), 0), ()


def count_labels(rng, strange):
    n, k, m, q = rng.integers(1, 8, 4)
    bounds, labels, _ = csr(rng, m, q, np.int64)
    return (rng.integers(0, m, (n, k)), bounds, labels.astype(np.int32), int(q)), ()


def scaled_distances(rng, strange):
    n, m, d = rng.integers(1, [9, 9, 40])
    low, high = numbers(rng, d, strange=strange), numbers(rng, d, strange=strange)
    return (numbers(rng, d), numbers(rng, m, d, strange=strange), rng.integers(0, m, n), low, high), ()


def window(rng):
    n, q = rng.integers(1, [30, 5])
    k = rng.choice([1, 3, 5, 7], q)
    indicator, masks = rng.integers(0, 2, (2, n, q), dtype=np.uint8)
    return n, q, k, (rng.permutation(n), rng.permutation(n), indicator, masks)


def count_votes(rng, strange):
    n, _, k, parts = window(rng)
    return (rng.permutation(n), k, *parts), ()


def judge_voters(rng, strange):
    n, q, k, parts = window(rng)
    errors = np.zeros(n, dtype=np.int64)
    return (rng.permutation(n), k, rng.integers(0, 2, q, dtype=np.uint8), errors, *parts), (3, 7)


def test_rows(rng, strange):
    n, _, k, parts = window(rng)
    start, first = sorted(int(place) for place in rng.integers(0, n, 2))
    return (start, first, int(n), k, bool(rng.integers(2)), numbers(rng, n, n, strange=strange), *parts), ()


def distances_to_centers(rng, strange):
    n, m, d = rng.integers(1, [9, 9, 40])
    sums, weights = numbers(rng, m, d, strange=strange), numbers(rng, m, strange=strange)
    return (numbers(rng, d), rng.integers(0, m, n), numbers(rng, n), sums, weights), ()


def radius_with(rng, strange):
    d = int(rng.integers(1, 40))
    x, sums, squares = (numbers(rng, d, strange=strange) for _ in range(3))
    return (x, float(rng.random()), sums, squares, float(rng.random())), ()


def ranking_loss(rng, strange):
    n, q = rng.integers(1, [20, 6])
    targets = rng.choice([-1.0, 1.0], (n, q))
    label_scores, scores = numbers(rng, n, strange=strange), numbers(rng, n, q, strange=strange)
    return (int(rng.integers(q)), label_scores, scores, targets, rng.random(n), 0.7), ()


def ranking_pull(rng, strange):
    label, _, scores, targets, importance, share = ranking_loss(rng, strange)[0]
    return (label, scores, targets, importance, share), ()


def farthest(rng, strange):
    n, d = rng.integers(1, [20, 40])
    return (numbers(rng, n, d, strange=strange), numbers(rng, d)), ()


def two_means(rng, strange):
    n, d = rng.integers(1, [40, 9])
    start, other = (int(place) for place in rng.integers(0, n, 2))
    return (numbers(rng, n, d, strange=strange), start, other), ()


def add_votes(rng, strange):
    n, d, q, width, n_splits = rng.integers(1, [20, 9, 5, 6, 6])
    n_nodes = 2 * n_splits + 1
    child = np.full(n_nodes, -1)
    child[:n_splits] = 2 * np.arange(n_splits) + 1  # breadth first
    columns = rng.integers(0, d + q, (n_nodes, width))
    means, centres = numbers(rng, n_nodes, 2, width, strange=strange), numbers(rng, n_nodes, d, strange=strange)
    tree = child, columns, means, centres, rng.random(n_nodes)
    return (numbers(rng, n, d), numbers(rng, n, q), *tree, 1.1, np.zeros(n)), (8,)


def pairs(rng):
    n, q = rng.integers(1, [12, 6])
    relevant = rng.random((n, q)) < 0.5
    counts = relevant.sum(axis=1) * (q - relevant.sum(axis=1))
    return relevant, 0.5 + rng.random(n), np.append(0, np.cumsum(counts))


def visit_rows(rng, strange):
    relevant, costs, starts = pairs(rng)
    n, q = relevant.shape
    points = numbers(rng, n, 3)
    kernel = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    changed = np.zeros(starts[-1]), np.zeros((n, q)), np.zeros((n, q))
    return (rng.permutation(n), kernel, relevant, costs, starts, 0.5, 0.3, 1e-6, *changed), (8, 9, 10)


def objectives(rng, strange):
    relevant, costs, starts = pairs(rng)
    dual, scores = (numbers(rng, *relevant.shape, strange=strange) for _ in range(2))
    return (relevant, costs, starts, 0.5, 0.3, numbers(rng, starts[-1], strange=strange), dual, scores), ()


def fill_row(rng, strange):
    d = int(rng.integers(1, 40))
    names = [f"feature {j}" for j in range(d)]
    x = dict(zip(names, numbers(rng, d, strange=strange).tolist(), strict=True))
    return (x, dict.fromkeys(names), np.zeros((1, d)), 1e150), (2,)


def sum_exactly(rng, strange):
    n, d = rng.integers(1, [9, 70])
    return (rng.random(d), rng.random((n, d)), float(3 * rng.random()), 2), ()


CALLS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        nearest_dense,
        nearest_sparse,
        count_labels,
        scaled_distances,
        count_votes,
        judge_voters,
        test_rows,
        distances_to_centers,
        radius_with,
        ranking_loss,
        ranking_pull,
        farthest,
        two_means,
        add_votes,
        visit_rows,
        objectives,
        fill_row,
        sum_exactly,
    )
}
test_rows.__test__ = False  # type: ignore[attr-defined]


def outcome(module, name, arguments, changed):
    """Call a loop on copies; return the bits of all results and changed arguments."""
    copies = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    return bits(getattr(module, name)(*copies), [copies[place] for place in changed])


def bits(returned, changed):
    """Return the bytes of results and changed arguments; all NaNs count as equal."""
    parts = (*returned, *changed) if isinstance(returned, tuple) else (returned, *changed)
    arrays = [np.asarray(part) for part in parts if part is not None]
    for array in arrays:
        if array.dtype.kind == "f":
            np.copyto(array, np.nan, where=np.isnan(array))
    return [array.tobytes() for array in arrays]

"""Similarity of instances to dense nodes: which N are nearest, and how near exactly.

Sums are in units of 2^-40 (see fixedpoint); small is similar. From some number of nodes on they are screened in
float32 first (see screen), a few instances at a time, and only what survives is computed exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled, keep_apart
from mlca.learner.kernels.fixedpoint import common_sum, common_sums, dissimilarity, group_root, individual_sum
from mlca.learner.kernels.nearest import NO_LIMIT, Search, nth_largest, offer
from mlca.learner.kernels.screen import (
    FIT_ERROR,
    LARGEST_NORM,
    LARGEST_SCALE,
    ROOT_FIT_ERROR,
    put_in_tile,
    rough_error,
    rough_group_error,
    rough_group_sums,
    rough_root_sums,
    rough_sums,
)

# Without screening: nodes whose sums are computed in one go, attributes after which hopeless ones are abandoned, and
# the share of the terms that may be left over if abandoning is to pay.
PORTION = 64
STRETCH = 64
WORTHWHILE = 0.8


class DenseNodes(NamedTuple):
    """Weights of nodes, one row a node, and their float32 tiles for screening.

    Under individual bandwidths `scales` holds each node's r, and `scale_tiles` its tiles; else they are
    empty. `largest` bounds all nodes: sum|y| (sum r|y| under individual bandwidths), r and 1 / r; `reach` bounds
    their |y| in each attribute.
    """

    weights: NDArray[np.float64]
    tiles: NDArray[np.float32]
    scales: NDArray[np.float64]
    scale_tiles: NDArray[np.float32]
    largest: NDArray[np.float64]
    reach: NDArray[np.float64]


@compiled
def refresh_dense(nodes: DenseNodes, node: int) -> None:
    """Bring what is derived from a node's weights up to date."""
    weights = nodes.weights[node]
    put_in_tile(nodes.tiles, node, weights)
    norm = 0.0
    if nodes.scales.shape[1] > 0:
        for i in range(weights.shape[0]):
            norm += abs(weights[i]) * nodes.scales[node, i]
    else:
        for i in range(weights.shape[0]):
            norm += abs(weights[i])
    nodes.largest[0] = max(nodes.largest[0], norm)
    for i in range(weights.shape[0]):
        nodes.reach[i] = max(nodes.reach[i], abs(weights[i]))


@compiled
def set_scales_dense(nodes: DenseNodes, node: int, scales: np.ndarray) -> None:
    """Give a node its own r for every attribute."""
    nodes.scales[node] = scales
    put_in_tile(nodes.scale_tiles, node, scales)
    for i in range(scales.shape[0]):
        nodes.largest[1] = max(nodes.largest[1], scales[i])
        nodes.largest[2] = max(nodes.largest[2], 1.0 / scales[i])


@compiled
def nearest_common_dense(rows: np.ndarray, nodes: DenseNodes, search: Search, screen_from: int) -> None:
    """List the nearest nodes of each row under a common bandwidth."""
    norm, r = nodes.largest[0], search.r
    in_range = norm <= LARGEST_NORM
    for j in range(rows.shape[0]):
        in_range = in_range and r[j] <= LARGEST_SCALE and r[j] * LARGEST_SCALE >= 1.0
    if search.n_nodes[0] < screen_from or not in_range:
        for j in range(rows.shape[0]):
            _list_all(j, rows[j], nodes, search)
        return
    most = search.n_nodes[-1]
    rough = _rough_space(nodes, rows.shape[0], most)
    rough_sums(rows.astype(np.float32), nodes.tiles, most, r, rough)
    for j in range(rows.shape[0]):
        bar = _bar(rough[j], search, j, rows.shape[1], FIT_ERROR, r[j] * norm)
        for k in range(search.n_nodes[j]):
            if rough[j, k] >= bar:
                offer(search, j, k, common_sum(rows[j], nodes.weights[k], r[j]))


@compiled
def _list_all(j: int, x: np.ndarray, nodes: DenseNodes, search: Search) -> None:
    """Compute the sums of row j with all nodes exactly, by portions.

    As no term is negative, a node whose sum has reached that of the last on the list is out, ties included: the list
    keeps the older of two equals. Whether abandoning such nodes half-way spares enough is seen from
    each portion: once it does not, the rest is summed without asking. Mediamill gains a half by it,
    Scene a seventh, and Yeast would lose a tenth.
    """
    n_nodes, r = search.n_nodes[j], search.r[j]
    totals = np.empty(PORTION, np.int64)
    stretch, limit = STRETCH, NO_LIMIT
    for low in range(0, n_nodes, PORTION):
        high = min(low + PORTION, n_nodes)
        done = common_sums(x, nodes.weights, low, high, r, stretch, limit, totals)
        if limit < NO_LIMIT and done > WORTHWHILE * (high - low) * x.shape[0]:
            stretch = x.shape[0]
        for k in range(low, high):
            if totals[k - low] < limit:
                limit = offer(search, j, k, totals[k - low])


@compiled
def nearest_individual_dense(rows: np.ndarray, nodes: DenseNodes, search: Search, screen_from: int) -> None:
    """List the nearest nodes of each row under each node's own bandwidths."""
    norm, scale = nodes.largest[0], max(nodes.largest[1], nodes.largest[2])
    if search.n_nodes[0] < screen_from or norm > LARGEST_NORM or scale > LARGEST_SCALE:
        for j in range(rows.shape[0]):
            for k in range(search.n_nodes[j]):
                offer(search, j, k, individual_sum(rows[j], nodes.weights[k], nodes.scales[k]))
        return
    most = search.n_nodes[-1]
    rough = _rough_space(nodes, rows.shape[0], most)
    rough_root_sums(rows.astype(np.float32), nodes.tiles, nodes.scale_tiles, most, rough)
    for j in range(rows.shape[0]):
        bar = _bar(rough[j], search, j, rows.shape[1], ROOT_FIT_ERROR, norm)
        for k in range(search.n_nodes[j]):
            if rough[j, k] >= bar:
                offer(search, j, k, individual_sum(rows[j], nodes.weights[k], nodes.scales[k]))


@compiled
def nearest_clustered_dense(x: np.ndarray, nodes: DenseNodes, search: Search, screen_from: int) -> None:
    """List the nearest nodes of the one row under one bandwidth a group of attributes."""
    keep_apart()
    grouping, n_nodes = search.grouping, search.n_nodes[0]
    d, n_groups, order = x.shape[0], grouping.size[0], grouping.order
    grouped_x, grouped_y, grouped_r = np.empty(d), np.empty(d), np.empty(d)
    starts, ends, sizes = np.zeros(n_groups, np.int64), grouping.ends[:n_groups], np.empty(n_groups)
    largest_r, smallest_r = 0.0, np.inf
    for j in range(n_groups):
        starts[j] = ends[j - 1] if j > 0 else 0
        sizes[j] = ends[j] - starts[j]
        for place in range(starts[j], ends[j]):
            grouped_x[place] = x[order[place]]
            grouped_r[place] = grouping.scales[j]
        largest_r, smallest_r = max(largest_r, grouping.scales[j]), min(smallest_r, grouping.scales[j])
    terms = np.empty(d, np.int64)
    # Sums of all terms before a place: a group's sum is a difference of two, with no branch on its size.
    before = np.zeros(d + 1, np.int64)
    in_range = nodes.largest[0] <= LARGEST_NORM and largest_r <= LARGEST_SCALE and smallest_r * LARGEST_SCALE >= 1.0
    screened = n_nodes >= screen_from and in_range
    rough = _rough_space(nodes, 1, n_nodes if screened else 0)[0]
    bar = 0.0
    if screened:
        rough_group_sums(x.astype(np.float32), nodes.tiles, grouping, n_nodes, rough)
        best = np.empty(search.found.shape[1], np.float32)
        bar = nth_largest(rough, n_nodes, best) - 2.0 * rough_group_error(grouping, nodes.reach)
    for k in range(n_nodes):
        if screened and rough[k] < bar:
            continue
        weights = nodes.weights[k]
        for place in range(d):
            grouped_y[place] = weights[order[place]]
        for place in range(d):
            terms[place] = dissimilarity(grouped_x[place] - grouped_y[place], grouped_r[place])
        running = 0
        for place in range(d):
            running += terms[place]
            before[place + 1] = running
        total = 0
        for j in range(n_groups):
            total += group_root(before[ends[j]] - before[starts[j]], sizes[j])
        offer(search, 0, k, total)


@compiled
def _rough_space(nodes: DenseNodes, n_rows: int, n_nodes: int) -> np.ndarray:
    width = nodes.tiles.shape[2]
    return np.empty((n_rows, (n_nodes + width - 1) // width * width), np.float32)


@compiled
def _bar(rough: np.ndarray, search: Search, j: int, n_attributes: int, fit_error: float, scaled_norm: float) -> float:
    """Return the rough sum below which a node is certainly not among the nearest."""
    best = np.empty(search.found.shape[1], np.float32)
    last = nth_largest(rough, search.n_nodes[j], best)
    return last - 2.0 * rough_error(n_attributes, fit_error, scaled_norm, best[0])

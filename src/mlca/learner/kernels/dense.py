"""Similarity of one instance to dense nodes: which N are nearest, and how near exactly.

Sums are in units of 2^-40 (see fixedpoint); small is similar. From some number of nodes on they are screened in
float32 first (see screen), and only what survives is computed exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled, keep_apart
from mlca.learner.kernels.fixedpoint import common_sum, dissimilarity, group_root, individual_sum
from mlca.learner.kernels.groups import Grouping
from mlca.learner.kernels.nearest import insert, nth_largest
from mlca.learner.kernels.screen import (
    FIT_ERROR,
    LARGEST_NORM,
    LARGEST_SCALE,
    ROOT_FIT_ERROR,
    SHRINK,
    put_in_tile,
    rough_error,
    rough_group_error,
    rough_group_sums,
    rough_root_sums,
    rough_sums,
)


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
def nearest_common_dense(
    x: np.ndarray,
    nodes: DenseNodes,
    n_nodes: int,
    r: float,
    screen_from: int,
    found: np.ndarray,
    sums: np.ndarray,
) -> int:
    """List the nearest nodes under a common bandwidth; return how many there are."""
    length = 0
    norm = nodes.largest[0]
    if n_nodes < screen_from or norm > LARGEST_NORM or r > LARGEST_SCALE or r * LARGEST_SCALE < 1.0:
        for k in range(n_nodes):
            length = insert(found, sums, length, k, common_sum(x, nodes.weights[k], r))
        return length
    rough, small_x = _rough_space(x, nodes, n_nodes)
    rough_sums(small_x, nodes.tiles, n_nodes, np.float32(r * SHRINK), rough)
    bar = _bar(rough, n_nodes, found.shape[0], x.shape[0], FIT_ERROR, r * norm)
    for k in range(n_nodes):
        if rough[k] >= bar:
            length = insert(found, sums, length, k, common_sum(x, nodes.weights[k], r))
    return length


@compiled
def nearest_individual_dense(
    x: np.ndarray, nodes: DenseNodes, n_nodes: int, screen_from: int, found: np.ndarray, sums: np.ndarray
) -> int:
    """List the nearest nodes under each node's own bandwidths; return how many there are."""
    length = 0
    norm, scale = nodes.largest[0], max(nodes.largest[1], nodes.largest[2])
    if n_nodes < screen_from or norm > LARGEST_NORM or scale > LARGEST_SCALE:
        for k in range(n_nodes):
            length = insert(found, sums, length, k, individual_sum(x, nodes.weights[k], nodes.scales[k]))
        return length
    rough, small_x = _rough_space(x, nodes, n_nodes)
    rough_root_sums(small_x, nodes.tiles, nodes.scale_tiles, n_nodes, rough)
    bar = _bar(rough, n_nodes, found.shape[0], x.shape[0], ROOT_FIT_ERROR, norm)
    for k in range(n_nodes):
        if rough[k] >= bar:
            length = insert(found, sums, length, k, individual_sum(x, nodes.weights[k], nodes.scales[k]))
    return length


@compiled
def nearest_clustered_dense(
    x: np.ndarray,
    nodes: DenseNodes,
    n_nodes: int,
    grouping: Grouping,
    screen_from: int,
    found: np.ndarray,
    sums: np.ndarray,
) -> int:
    """List the nearest nodes under one bandwidth a group of attributes; return how many there are."""
    keep_apart()
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
    rough, small_x = _rough_space(x, nodes, n_nodes if screened else 0)
    bar = 0.0
    if screened:
        rough_group_sums(small_x, nodes.tiles, grouping, n_nodes, rough)
        best = np.empty(found.shape[0], np.float32)
        bar = nth_largest(rough, n_nodes, found.shape[0], best) - 2.0 * rough_group_error(grouping, nodes.reach)
    length = 0
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
        length = insert(found, sums, length, k, total)
    return length


@compiled
def _rough_space(x: np.ndarray, nodes: DenseNodes, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    width = nodes.tiles.shape[2]
    rough = np.empty((n_nodes + width - 1) // width * width, np.float32)
    return rough, x.astype(np.float32)


@compiled
def _bar(
    rough: np.ndarray, n_nodes: int, n_nearest: int, n_attributes: int, fit_error: float, scaled_norm: float
) -> float:
    """Return the rough sum below which a node is certainly not among the nearest."""
    best = np.empty(n_nearest, np.float32)
    last = nth_largest(rough, n_nodes, n_nearest, best)
    return last - 2.0 * rough_error(n_attributes, fit_error, scaled_norm, best[0])

"""How many attributes an instance shares with each node, where all of them hold nothing but ones.

For each attribute there is a list of the nodes that have it, 64 nodes to an entry: the number of the tile of nodes,
and a mask with a bit for each. So a list is never longer than there are tiles, nor than there are nodes on it. The
masks of the youngest tile stand apart, one an attribute, until it is full: nodes that enter write to a few cache
lines, not to the ends of lists that are scattered in memory.

An instance's overlaps are counted for whole tiles at once. Counters stand upright: bit k of `planes[b, tile]` is
bit b of the count of node k of the tile. Logical operations then add in 64 counters together, and in as many tiles as a
vector holds. Four attributes are added at a time, by full adders first, so that only what they carry travels through
the upper planes. Nothing branches on the data: adding one mask after the other as far as its carries reach was five
times slower.

Nodes enter when they are made. When one has moved, its bits stay behind and nobody asks for its count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.compiled import compiled, keep_apart
from mlca.learner.kernels.ragged import Ragged, append, places_to_append

WIDTH = 64
# Counts of so many attributes fit into eight planes, and into a byte.
MOST = 255
N_PLANES = 8
TOGETHER = 4


def _spread_bits() -> np.ndarray:
    """Return for each byte a word whose bytes are its bits."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint64).ravel()


SPREAD = _spread_bits()


class Owners(NamedTuple):
    """The nodes that have each attribute: masks of full tiles in `lists`, of the youngest in `masks`.

    `tile[0]` is the number of the youngest tile.
    """

    lists: Ragged
    masks: NDArray[np.uint64]
    tile: NDArray[np.int64]


@compiled
def enter(owners: Owners, attributes: np.ndarray, node: int) -> None:
    """Put the next node into the masks of its attributes."""
    bit, masks = np.uint64(1) << np.uint64(node % WIDTH), owners.masks
    for i in attributes:
        masks[i] |= bit
    if node % WIDTH == WIDTH - 1:
        _close_tile(owners)


@compiled
def withdraw(owners: Owners, attributes: np.ndarray, node: int) -> None:
    """Take the youngest node out again."""
    if node % WIDTH == WIDTH - 1:
        _open_tile(owners)
    bit, masks = np.uint64(1) << np.uint64(node % WIDTH), owners.masks
    for i in attributes:
        masks[i] ^= bit


@compiled
def places_to_enter(owners: Owners, node: int) -> int:
    """Return how many free places the lists' pool needs so that a node can enter."""
    places = 0
    if node % WIDTH == WIDTH - 1:
        for i in range(owners.masks.shape[0]):
            places += places_to_append(owners.lists, i, 1)
    return places


@compiled
def _close_tile(owners: Owners) -> None:
    for i in range(owners.masks.shape[0]):
        if owners.masks[i] != np.uint64(0):
            append(owners.lists, i, owners.tile[0], owners.masks[i])
            owners.masks[i] = np.uint64(0)
    owners.tile[0] += 1


@compiled
def _open_tile(owners: Owners) -> None:
    """Undo the closing of the tile that was closed last."""
    lists = owners.lists
    owners.tile[0] -= 1
    for i in range(owners.masks.shape[0]):
        last = lists.start[i] + lists.length[i] - 1
        if lists.length[i] > 0 and lists.keys[last] == owners.tile[0]:
            owners.masks[i] = lists.values[last]
            lists.length[i] -= 1


@compiled
def count_overlaps(own: np.ndarray, owners: Owners, n_nodes: int) -> np.ndarray:
    """Return for each node that entered how many of an instance's attributes it has."""
    n_tiles = (n_nodes + WIDTH - 1) // WIDTH
    overlaps = np.zeros(n_tiles * WIDTH, np.int32)
    words = np.empty(n_tiles * WIDTH // 8, np.uint64)
    masks = np.empty((TOGETHER, n_tiles), np.uint64)
    for low in range(0, own.shape[0], MOST):
        planes = np.zeros((N_PLANES, n_tiles), np.uint64)
        for first in range(low, min(low + MOST, own.shape[0]), TOGETHER):
            _unfold(own[first : min(first + TOGETHER, low + MOST)], owners, masks)
            _add_four(masks, planes)
        _lay_down(planes, words)
        counts = words.view(np.uint8)
        for k in range(overlaps.shape[0]):
            overlaps[k] += counts[k]
    return overlaps


@compiled
def _unfold(own: np.ndarray, owners: Owners, masks: np.ndarray) -> None:
    """Lay the masks of a few attributes out by tile; those that are not there are zero."""
    keep_apart()
    lists, youngest = owners.lists, owners.tile[0]
    keys, values = lists.keys, lists.values
    masks[:] = np.uint64(0)
    for j in range(own.shape[0]):
        start = lists.start[own[j]]
        for place in range(start, start + lists.length[own[j]]):
            tile = np.uint32(keys[place])  # unsigned: Numba then asks for no negative index
            if tile < masks.shape[1]:
                masks[j, tile] = values[place]
        if youngest < masks.shape[1]:
            masks[j, youngest] = owners.masks[own[j]]


@compiled
def _add_four(masks: np.ndarray, planes: np.ndarray) -> None:
    """Add four masks to the upright counters."""
    keep_apart()
    for tile in range(planes.shape[1]):
        ones, carry_a = _full_add(planes[0, tile], masks[0, tile], masks[1, tile])
        ones, carry_b = _full_add(ones, masks[2, tile], masks[3, tile])
        twos, carry = _full_add(planes[1, tile], carry_a, carry_b)
        planes[0, tile], planes[1, tile] = ones, twos
        for level in range(2, N_PLANES):
            before = planes[level, tile]
            planes[level, tile] = before ^ carry
            carry &= before


@compiled
def _full_add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Add three bits in all places: return sums and carries."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@compiled
def _lay_down(planes: np.ndarray, words: np.ndarray) -> None:
    """Turn upright counters into bytes, eight to a word."""
    keep_apart()
    for tile in range(planes.shape[1]):
        for part in range(8):
            word = np.uint64(0)
            for level in range(N_PLANES):
                byte = (planes[level, tile] >> np.uint64(8 * part)) & np.uint64(255)
                word += SPREAD[byte] << np.uint64(level)
            words[8 * tile + part] = word

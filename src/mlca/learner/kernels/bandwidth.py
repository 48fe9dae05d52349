"""Bandwidths from a window of instances: Silverman's rule for each attribute.

The window is dense, whatever the rows were, and is read in the order of the stream in two passes: other
formulas would differ in the last bits, and the bits decide. Loops run over attributes inside and over
instances outside, so that each attribute is added up in the same order while the vector units work
on several of them at once.
"""

from __future__ import annotations

import numpy as np

from mlca.compiled import compiled

# The deviation of an attribute that is constant in the window.
SMALLEST_DEVIATION = 1e-6


@compiled
def attribute_means(window: np.ndarray, means: np.ndarray) -> None:
    """Fill in each attribute's mean over the window."""
    means[:] = 0.0
    for j in range(window.shape[0]):
        row = window[j]
        for i in range(means.shape[0]):
            means[i] += row[i]
    for i in range(means.shape[0]):
        means[i] /= window.shape[0]


@compiled
def attribute_bandwidths(window: np.ndarray, bandwidths: np.ndarray, scratch: np.ndarray) -> None:
    """Fill in S_i = (4 / (2 + d))^(1 / (4 + d)) G_i m^(-1 / (4 + d)) for every attribute.

    `scratch` has three rows of d values: means, smallest and largest values.
    """
    m, d = window.shape
    means, smallest, largest = scratch[0], scratch[1], scratch[2]
    attribute_means(window, means)
    smallest[:] = window[0]
    largest[:] = window[0]
    bandwidths[:] = 0.0
    for j in range(m):
        row = window[j]
        for i in range(d):
            smallest[i] = min(smallest[i], row[i])
            largest[i] = max(largest[i], row[i])
            deviation = row[i] - means[i]
            bandwidths[i] += deviation * deviation
    silverman = (4.0 / (2.0 + d)) ** (1.0 / (4.0 + d))
    shrinking = float(m) ** (-1.0 / (4.0 + d))
    for i in range(d):
        deviation = SMALLEST_DEVIATION
        # A deviation can underflow to 0 although the attribute varies; it is as good as constant then.
        if m > 1 and largest[i] > smallest[i] and bandwidths[i] > 0.0:
            deviation = np.sqrt(bandwidths[i] / (m - 1))
        bandwidths[i] = silverman * deviation * shrinking


@compiled
def median(values: np.ndarray, scratch: np.ndarray) -> float:
    """Return the median: the middle value, or the mean of the middle two."""
    n = values.shape[0]
    scratch[:n] = values
    upper = n // 2
    _partition(scratch, 0, n - 1, upper)
    if n % 2 == 1:
        return scratch[upper]
    below = scratch[0]
    for i in range(1, upper):
        below = max(below, scratch[i])
    return (below + scratch[upper]) / 2.0


@compiled
def _partition(values: np.ndarray, low: int, high: int, target: int) -> None:
    """Put the target-th smallest value in its place, smaller ones before it; equal values do no harm."""
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            return

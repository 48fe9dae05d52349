"""Bandwidths from a window of instances: Silverman's rule for each attribute.

The window is dense, whatever the rows were, and is read in the order of the stream in two passes: other
formulas would differ in the last bits, and the bits decide. Loops run over attributes inside and over
instances outside, so that each attribute is added up in the same order while the vector units work
on several of them at once.
"""

from __future__ import annotations

import numpy as np

from mlca.compiled import compiled, keep_apart

# The deviation of an attribute that is constant in the window.
SMALLEST_DEVIATION = 1e-6


# Attributes are taken by blocks whose part of a window stays in the first cache for both passes.
BLOCK = 256


@compiled
def attribute_means(window: np.ndarray, low: int, high: int, means: np.ndarray) -> None:
    """Fill in the mean over the window of the attributes from `low` to `high`."""
    part = means[low:high]
    part[:] = 0.0
    for j in range(window.shape[0]):
        row = window[j, low:high]
        for i in range(part.shape[0]):
            part[i] += row[i]
    for i in range(part.shape[0]):
        part[i] /= window.shape[0]


@compiled
def attribute_bandwidths(window: np.ndarray, bandwidths: np.ndarray, means: np.ndarray) -> None:
    """Fill in S_i = (4 / (2 + d))^(1 / (4 + d)) G_i m^(-1 / (4 + d)) for every attribute, and the means on the way."""
    keep_apart()
    m, d = window.shape
    silverman = (4.0 / (2.0 + d)) ** (1.0 / (4.0 + d))
    shrinking = float(m) ** (-1.0 / (4.0 + d))
    for low in range(0, d, BLOCK):
        high = min(low + BLOCK, d)
        attribute_means(window, low, high, means)
        _squared_deviations(window, low, high, means, bandwidths)
    for i in range(d):
        if _is_constant(window, i, means[i], bandwidths[i]):
            bandwidths[i] = -1.0
    for i in range(d):  # a loop of its own, so that roots are taken several at a time
        deviation = np.sqrt(bandwidths[i] / (m - 1)) if bandwidths[i] >= 0.0 else SMALLEST_DEVIATION
        bandwidths[i] = silverman * deviation * shrinking


@compiled
def _squared_deviations(window: np.ndarray, low: int, high: int, means: np.ndarray, squares: np.ndarray) -> None:
    part, centres = squares[low:high], means[low:high]
    part[:] = 0.0
    for j in range(window.shape[0]):
        row = window[j, low:high]
        for i in range(part.shape[0]):
            deviation = row[i] - centres[i]
            part[i] += deviation * deviation


@compiled
def _is_constant(window: np.ndarray, attribute: int, mean: float, squares: float) -> bool:
    """Whether an attribute has one value in the whole window.

    Its mean may miss that value, but by rounding only; so an attribute with larger squares need not be looked at.
    Squares can also underflow to 0 although the attribute varies: it is as good as constant then.
    """
    m = window.shape[0]
    rounding = 4.0 * m * 2.0**-53 * mean
    if squares > m * rounding * rounding:
        return False
    if squares == 0.0:
        return True
    for j in range(1, m):  # noqa: SIM110 - Numba compiles no generators
        if window[j, attribute] != window[0, attribute]:
            return False
    return True


@compiled
def median(values: np.ndarray, scratch: np.ndarray) -> float:
    """Return the median: the middle value, or the mean of the middle two."""
    keep_apart()
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

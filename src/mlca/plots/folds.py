"""Box plots of a measure over folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlca.plots.style import COLOURS, FAINT, HATCHES, INK, axis_title, known_measure, literal, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_folds(results: Mapping[str, Sequence[float]], measure: str = "exact_match", *, ax: Axes | None = None) -> Axes:
    """Draw each algorithm's results over folds as a box, with the folds as points.

    Parameters
    ----------
    results : mapping of names to sequences of float
        Each algorithm's values, one per fold. NaN is left out; an algorithm without values gets an empty line.
    measure : str, default "exact_match"
        The name of a measure in `mlca.metrics.MEASURES`.
    ax : Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    Axes
        The plot has one line per algorithm, so that long names are readable, with the first at the top.

    Examples
    --------
    >>> ax = plot_folds({"MLCA": [0.30, 0.32, 0.28], "ML-kNN": [0.25, 0.29, 0.27]})
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['MLCA', 'ML-kNN']
    """
    title = axis_title(known_measure(measure))
    if not results:
        raise ValueError("no results to draw: pass a mapping of names to the values of their folds")
    values = [np.asarray(folds, dtype=np.float64) for folds in results.values()]
    values = [folds[~np.isnan(folds)] for folds in values]
    if ax is None:
        longest = max(map(len, results))
        ax = new_axes(4.8 + 0.08 * longest, 1.0 + 0.42 * len(values))
    heights = list(range(len(values)))
    boxes = ax.boxplot(
        values,
        positions=heights,
        orientation="horizontal",
        widths=0.6,
        patch_artist=True,
        showfliers=False,
        medianprops={"color": INK, "linewidth": 2.0},
    )
    for i, box in enumerate(boxes["boxes"]):
        box.set(facecolor=COLOURS[i % len(COLOURS)], alpha=0.45, hatch=HATCHES[i % len(HATCHES)])
    for height, folds in zip(heights, values, strict=True):
        spread = np.linspace(-0.15, 0.15, len(folds)) if len(folds) > 1 else np.zeros(len(folds))
        ax.plot(folds, height + spread, "o", color=INK, markersize=2.5, alpha=0.6, zorder=3)
    ax.set_yticks(heights, list(map(literal, results)))
    ax.invert_yaxis()
    ax.set_xlabel(title)
    ax.grid(axis="x", color=FAINT, alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return ax

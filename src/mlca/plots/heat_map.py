"""A heat map of a measure over a grid of two parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mlca.plots.style import FAINT, axis_title, known_measure, literal, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_grid(
    values: ArrayLike,
    rows: Sequence[object],
    columns: Sequence[object],
    measure: str = "exact_match",
    *,
    row_title: str = "",
    column_title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw results as a heat map: brighter is better, and the best cell is framed.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        The measure for each combination; NaN if it is missing, which is drawn hatched.
    rows, columns : sequence
        The values of the two parameters.
    measure : str, default "exact_match"
        The name of a measure in `mlca.metrics.MEASURES`, which determines whether higher or lower is better.
    row_title, column_title : str, optional
        Names of the two parameters.
    ax : Axes, optional
        Where to draw; the colour bar takes some of its space. Default: a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_grid([[0.2, 0.4], [0.3, 0.1]], [5, 10], [0.01, 0.1], row_title="n_neighbors")
    >>> [text.get_text() for text in ax.texts]
    ['0.200', '0.400', '0.300', '0.100']
    """
    known = known_measure(measure)
    table = np.asarray(values, dtype=np.float64)
    if table.shape != (len(rows), len(columns)) or not table.size:
        raise ValueError(
            f"values has shape {table.shape}, but rows and columns have {len(rows)} and {len(columns)} entries; "
            "pass one entry per row and per column, and at least one cell"
        )
    longest_row, longest_column = (max(len(str(value)) for value in names) for names in (rows, columns))
    if ax is None:
        width = 2.2 + 0.62 * len(columns) + 0.08 * longest_row
        height = max(2.4, 0.9 + 0.42 * len(rows)) + 0.08 * longest_column
        ax = new_axes(width, height)
    image = ax.imshow(table, cmap="cividis" if known.better == "higher" else "cividis_r", aspect="auto")
    ax.set_facecolor("white")
    ax.set_xticks(range(len(columns)), list(map(literal, columns)))
    ax.set_yticks(range(len(rows)), list(map(literal, rows)))
    if longest_column > 6:
        ax.tick_params(axis="x", rotation=90)
    ax.set_xlabel(column_title)
    ax.set_ylabel(row_title)
    ax.spines[:].set_visible(False)
    _write_values(ax, table, known.better == "higher")
    _frame_best(ax, table, known.better == "higher")
    ax.figure.colorbar(image, ax=ax, label=axis_title(known))
    return ax


def _write_values(ax: Axes, table: np.ndarray[tuple[int, ...], np.dtype[np.float64]], higher: bool) -> None:
    """Write each value on its cell in black or white; hatch cells without a value."""
    from matplotlib.patches import Rectangle

    defined = table[~np.isnan(table)]
    middle = (defined.min() + defined.max()) / 2 if defined.size else 0.0
    for (i, j), value in np.ndenumerate(table):
        if np.isnan(value):
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, hatch="///", edgecolor=FAINT))
        else:
            bright = value > middle if higher else value < middle
            colour = "black" if bright else "white"
            ax.text(j, i, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=8)


def _frame_best(ax: Axes, table: np.ndarray[tuple[int, ...], np.dtype[np.float64]], higher: bool) -> None:
    from matplotlib.patches import Rectangle

    if np.isnan(table).all():
        return
    best = np.nanargmax(table) if higher else np.nanargmin(table)
    i, j = np.unravel_index(best, table.shape)
    # The best cell is the brightest, so a dark frame inside it is visible in colour and in grey.
    ax.add_patch(Rectangle((float(j) - 0.45, float(i) - 0.45), 0.9, 0.9, fill=False, edgecolor="black", linewidth=2))

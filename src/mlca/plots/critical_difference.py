"""The critical-difference diagram: average ranks, with bars that join similar algorithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlca.plots.style import ACCENT, FAINT, INK, literal, new_canvas
from mlca.statistics import Nemenyi

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_FONT, SMALLEST_FONT = 10.0, 4.0
MARGIN = 0.12  # in inches, like all lengths in this module


@dataclass(frozen=True)
class Geometry:
    """Positions of all parts of the diagram, in inches from the lower left corner."""

    font: float
    width: float
    left: float
    """Left end of the scale: the worst rank."""
    right: float
    """Right end of the scale: rank 1."""
    line: float
    """Height of a line of text."""
    n_lanes: int
    n_lines: int
    ranks: float
    """Number of ranks that the scale spans, or the ruler above it if that is longer."""

    def place(self, rank: float) -> float:
        """Return the horizontal position of a rank."""
        return self.right - (rank - 1) * self.inches(1)

    def inches(self, ranks: float) -> float:
        """Return the length that represents a difference of ranks."""
        return ranks * (self.right - self.left) / self.ranks

    @property
    def ruler(self) -> float:
        """Vertical position of the ruler."""
        return self.height - MARGIN - self.line

    @property
    def scale(self) -> float:
        """Vertical position of the scale."""
        return self.ruler - 2 * self.line

    @property
    def lane(self) -> float:
        """Vertical distance between two bars."""
        return 0.55 * self.line

    @property
    def names_below(self) -> float:
        """Vertical distance from the scale to the first name."""
        return (self.n_lanes + 1) * self.lane + 0.6 * self.line

    @property
    def height(self) -> float:
        """Total height: the ruler, the scale, the bars, the names."""
        return 2 * MARGIN + 3.2 * self.line + self.names_below + (self.n_lines - 0.5) * self.line


def plot_critical_difference(result: Nemenyi, *, ax: Axes | None = None) -> Axes:
    """Draw the average ranks of algorithms, and mark groups that do not differ.

    The best algorithm is on the right, as in the paper. A bar joins algorithms whose average ranks differ by less than
    the critical difference, which the ruler above shows. The average rank follows each name.

    Parameters
    ----------
    result : Nemenyi
        The result of `mlca.statistics.nemenyi_test`.
    ax : Axes, optional
        Where to draw; the text shrinks until it fits. Default: a new figure, large enough for the names.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from mlca.statistics import nemenyi_test
    >>> accuracy = [[0.7, 0.8, 0.9], [0.6, 0.7, 0.8], [0.5, 0.6, 0.9], [0.4, 0.3, 0.6]]
    >>> ax = plot_critical_difference(nemenyi_test(accuracy, names=["kNN", "tree", "MLCA"]))
    >>> [text.get_text() for text in ax.texts if "(" in text.get_text()]
    ['MLCA (1.00)', 'tree (2.25)', 'kNN (2.75)']
    """
    average = result.ranks.average()
    order = result.best_first()
    names = [f"{literal(result.ranks.names[i])} ({average[i]:.2f})" for i in order]
    ranks = [float(average[i]) for i in order]
    bars = _bars(result, ranks)
    n_lanes = max((lane for _, _, lane in bars), default=-1) + 1
    longest = max(len(names) - 1.0, result.critical_difference)
    if ax is None:
        geometry = _lay_out(_text_widths(names), n_lanes, longest, LARGEST_FONT, None)
        ax = new_canvas(geometry.width, geometry.height)
    else:
        geometry = _fit(ax, _text_widths(names), n_lanes, longest)
    ax.set(xlim=(0, geometry.width), ylim=(0, geometry.height))
    ax.set_axis_off()
    _draw_ruler(ax, geometry, result.critical_difference)
    _draw_scale(ax, geometry, len(names))
    _draw_names(ax, geometry, names, ranks)
    _draw_bars(ax, geometry, bars)
    return ax


def _bars(result: Nemenyi, ranks: list[float]) -> list[tuple[float, float, int]]:
    """Return each group's best and worst rank, and a lane in which its bar touches no other."""
    rank_of = dict(zip((result.ranks.names[i] for i in result.best_first()), ranks, strict=True))
    bars: list[tuple[float, float, int]] = []
    for group in result.groups():
        best, worst = rank_of[group[0]], rank_of[group[-1]]
        taken = {lane for _, end, lane in bars if end >= best - 0.02 * len(ranks)}
        bars.append((best, worst, next(lane for lane in range(len(bars) + 1) if lane not in taken)))
    return bars


def _lay_out(text_widths: list[float], n_lanes: int, ranks: float, font: float, width: float | None) -> Geometry:
    """Compute the geometry for a font size; the default width fits the names and the scale."""
    n_right = (len(text_widths) + 1) // 2
    gap = MARGIN + font / 72
    right_names = font * max(text_widths[:n_right]) + gap
    left_names = font * max(text_widths[n_right:]) + gap
    if width is None:
        width = left_names + right_names + max(3.5, 0.3 * len(text_widths))
    line = 1.6 * font / 72
    return Geometry(font, width, left_names, width - right_names, line, n_lanes, n_right, ranks)


def _fit(ax: Axes, text_widths: list[float], n_lanes: int, ranks: float) -> Geometry:
    """Return the geometry with the largest text that leaves a third of the Axes to the scale."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    font = LARGEST_FONT
    geometry = _lay_out(text_widths, n_lanes, ranks, font, box.width)
    while font > SMALLEST_FONT and (geometry.height > box.height or geometry.right - geometry.left < box.width / 3):
        font -= 0.25
        geometry = _lay_out(text_widths, n_lanes, ranks, font, box.width)
    return geometry


def _text_widths(texts: list[str]) -> list[float]:
    """Return the width of each text, in inches per point of font size."""
    from matplotlib.textpath import TextPath

    return [float(TextPath((0, 0), text, size=100).get_extents().width) / 100 / 72 for text in texts]


def _draw_ruler(ax: Axes, geometry: Geometry, critical_difference: float) -> None:
    begin, height = geometry.left, geometry.ruler
    end = begin + geometry.inches(critical_difference)
    ax.plot([begin, end], [height, height], color=INK, linewidth=1.5, marker="|", markersize=0.8 * geometry.font)
    label = f"CD = {critical_difference:.2f}"
    _write(ax, geometry, (begin + end) / 2, height + 0.25 * geometry.line, label, ha="center", va="bottom")


def _draw_scale(ax: Axes, geometry: Geometry, worst: int) -> None:
    height, place = geometry.scale, geometry.place
    ax.plot([place(worst), place(1)], [height, height], color=INK, linewidth=1.2)
    for rank in range(1, worst + 1):
        ax.plot([place(rank)] * 2, [height, height + 0.3 * geometry.line], color=INK, linewidth=1.2)
        _write(ax, geometry, place(rank), height + 0.4 * geometry.line, str(rank), ha="center", va="bottom")


def _draw_names(ax: Axes, geometry: Geometry, names: list[str], ranks: list[float]) -> None:
    """Write the better half of the names on the right, and the rest, worst first, on the left."""
    step = 0.4 * geometry.font / 72
    for i, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        on_right = i < geometry.n_lines
        height = geometry.scale - geometry.names_below - (i if on_right else len(names) - 1 - i) * geometry.line
        edge, side = (geometry.right, 1) if on_right else (geometry.left, -1)
        end = edge + side * step
        places = [geometry.place(rank), geometry.place(rank), end]
        ax.plot(places, [geometry.scale, height, height], color=FAINT, linewidth=0.9, zorder=1)
        _write(ax, geometry, end + side * step, height, name, ha="left" if on_right else "right", va="center_baseline")


def _draw_bars(ax: Axes, geometry: Geometry, bars: list[tuple[float, float, int]]) -> None:
    overhang = 0.35 * geometry.font / 72
    for best, worst, lane in bars:
        height = geometry.scale - (lane + 1) * geometry.lane
        ends = [geometry.place(worst) - overhang, geometry.place(best) + overhang]
        ax.plot(ends, [height, height], color=ACCENT, linewidth=0.4 * geometry.font, solid_capstyle="butt", zorder=3)


def _write(ax: Axes, geometry: Geometry, x: float, y: float, text: str, **alignment: Any) -> None:
    ax.text(x, y, text, fontsize=geometry.font, color=INK, **alignment)

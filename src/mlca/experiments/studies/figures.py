"""Figures for the report, as SVG strings."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mlca.plots import plot_critical_difference, plot_grid, plot_nodes
from mlca.plots.style import COLOURS, FAINT, LINE_STYLES, MARKERS, axis_title, known_measure, widen
from mlca.statistics import Nemenyi

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RASTER_DPI = 110


def draw_critical_difference(result: Nemenyi) -> str:
    """Draw average ranks, and connect ranks that do not differ significantly."""
    return _svg(_figure_of(plot_critical_difference(result)))


def draw_grid(values: Any, rows: Sequence[object], columns: Sequence[object], row_title: str, column_title: str) -> str:
    """Draw exact match over a grid as a heat map."""
    return _svg(_figure_of(plot_grid(values, rows, columns, row_title=row_title, column_title=column_title)))


def draw_nodes(stages: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw, side by side, the nodes after each stage of a stream."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    columns = min(len(stages), 4)
    rows = -(-len(stages) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.1 * columns + 1.2, 3.0 * rows), squeeze=False)
    legends: dict[str, Any] = {}
    for ax, (number, nodes) in zip(axes.flat, stages.items(), strict=False):
        names = [{str(label + 1) for label in labels} for labels in nodes["labels"]]
        plot_nodes(nodes["weights"], names, ax=ax)
        ax.set(title=f"after {number}", xlabel="", ylabel="", xticks=[], yticks=[])
        for points in ax.collections:
            points.set(rasterized=True, sizes=[5.0], linewidths=0)
            # A label set has the same colour in all stages; `plot_nodes` chooses its colours for each stage alone.
            points.set_facecolor(_colour_of(str(points.get_label())))
            legends.setdefault(str(points.get_label()), points)
        ax.get_legend().remove()
    for ax in axes.flat[len(stages) :]:
        ax.set_axis_off()
    shown = sorted(legends, key=lambda name: (name.count("+"), name))
    handles = [Line2D([], [], marker="o", linestyle="", color=_colour_of(name)) for name in shown]
    figure.tight_layout(rect=(0, 0, 1 - 1.1 / figure.get_figwidth(), 1))
    figure.legend(handles, shown, title="label set", loc="center right", frameon=False)
    return _svg(figure)


def draw_curves(
    curves: Mapping[str, Sequence[float | None]], across: Sequence[float], measure: str, across_title: str
) -> str:
    """Draw a measure over a parameter, with one line per entry of `curves`."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for i, (name, values) in enumerate(curves.items()):
        style = {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": LINE_STYLES[i % len(LINE_STYLES)],
            "marker": MARKERS[i],
        }
        ax.plot(across, [float("nan") if value is None else value for value in values], label=name, **style)  # type: ignore[arg-type]
    ax.set(xlabel=across_title, ylabel=axis_title(known_measure(measure)), xticks=list(across))
    widen(ax)
    return _framed(figure, ax, "y")


def draw_over_rows(curves: Mapping[str, Mapping[str, Any]], measure: str) -> str:
    """Draw each learner's measure over the rows of a stream; dotted lines mark changes."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.4, 3.4), layout="constrained")
    for i, (name, curve) in enumerate(curves.items()):
        colour, line = COLOURS[i % len(COLOURS)], LINE_STYLES[i // len(COLOURS) % len(LINE_STYLES)]
        ax.plot(curve["row"], curve[measure], label=name, linewidth=1.3, color=colour, linestyle=line)
    for row in next(iter(curves.values()))["changes"]:
        ax.axvline(row, color=FAINT, linestyle=":")
    ax.set(xlabel="rows", ylabel=axis_title(known_measure(measure)), ylim=(0, 1))
    return _framed(figure, ax, "y")


def note_over_rows(curves: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the note for a figure of `draw_over_rows`: the number of rows per point."""
    return f"Each point is over the {next(iter(curves.values()))['rows_a_point']:,} rows up to it."


def draw_growth(curves: Mapping[str, Mapping[int, float]], across_title: str) -> str:
    """Draw training times over a size on logarithmic axes, where powers are straight lines."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for i, (name, seconds) in enumerate(curves.items()):
        ax.loglog(list(seconds), list(seconds.values()), label=name, color=COLOURS[i], marker=MARKERS[i])
    sizes = sorted({size for seconds in curves.values() for size in seconds})
    ax.set(xlabel=across_title, ylabel="seconds of training")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # powers of ten alone would be too few ticks
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    return _framed(figure, ax, "both")


# The seven regions of three discs; all other predictions are grey.
_REGIONS = ("1", "2", "3", "1 + 2", "1 + 3", "2 + 3", "1 + 2 + 3")


def _colour_of(label_set: str) -> str:
    return COLOURS[_REGIONS.index(label_set)] if label_set in _REGIONS else FAINT


def _framed(figure: Figure, ax: Axes, grid: Literal["y", "both"]) -> str:
    """Add grid lines and a legend beside the curves, and return the figure as SVG."""
    ax.grid(axis=grid, color=FAINT, alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False)
    return _svg(figure)


def _figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes are not part of a figure")
    return figure


def _svg(figure: Figure) -> str:
    """Return a figure as a reproducible SVG string, and close it."""
    import matplotlib
    import matplotlib.pyplot as plt

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "mlca", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, dpi=RASTER_DPI)
    plt.close(figure)
    return text.getvalue()

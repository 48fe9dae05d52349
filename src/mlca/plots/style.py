"""Shared parts of the plots: colours, markers, line styles, and new figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mlca.messages import shown
from mlca.metrics.registry import MEASURES, Measure
from mlca.optional import needing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito without its yellow, which is hard to see on white; light and dark alternate.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "#000000")
ACCENT = "#D55E00"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "*")
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "\\\\\\", "...", "xxx", "---", "+++")
INK = "#222222"
FAINT = "#8A8A8A"
LEAST_SPAN = 0.2  # shortest span of a measure's axis; on a shorter one noise would look like drift


def new_axes(width: float, height: float) -> Axes:
    """Return the Axes of a new figure, sized in inches, whose layout keeps all text inside."""
    return _new_figure(width, height, layout="constrained").add_subplot()


def new_canvas(width: float, height: float) -> Axes:
    """Return Axes that fill a new figure, sized in inches, for plots that place their text."""
    return _new_figure(width, height, layout=None).add_axes((0, 0, 1, 1))


def _new_figure(width: float, height: float, layout: Literal["constrained"] | None) -> Figure:
    with needing("mlca.plots", "plots"):
        import matplotlib.pyplot as plt
    return plt.figure(figsize=(width, height), layout=layout)


def makes_room(ax: Axes) -> bool:
    """Return whether the figure's layout makes room for text outside its Axes."""
    figure = ax.get_figure(root=True)
    return figure is not None and figure.get_layout_engine() is not None


def known_measure(name: str) -> Measure:
    """Return the properties of a measure, or raise ValueError if it is unknown."""
    if name not in MEASURES:
        raise ValueError(f"{name!r} is not a measure: choose one of {', '.join(MEASURES)}")
    return MEASURES[name]


def axis_title(measure: Measure) -> str:
    """Return a measure's label, followed by whether higher or lower is better."""
    return f"{measure.label} ({measure.better} is better)"


def widen(ax: Axes) -> None:
    """Make the axis of a measure, which lies between 0 and 1, span at least `LEAST_SPAN`."""
    low, high = ax.get_ylim()
    missing = LEAST_SPAN - (high - low)
    if missing > 0:
        low = min(max(low - missing / 2, -0.01), 1.01 - LEAST_SPAN)
        ax.set_ylim(low, low + LEAST_SPAN)


def literal(name: object) -> str:
    r"""Return a name that Matplotlib draws literally.

    A dollar sign would start a formula, control characters cannot be drawn, and names that begin with an underscore
    would be missing from the legend.

    Examples
    --------
    >>> print(literal("over $100"), literal("_rare"), literal("two\nlines"), sep=",")
    over \$100, _rare,two\nlines
    """
    text = shown(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def shorten(text: str, length: int) -> str:
    """Shorten a long text in the middle, since names often differ at their ends."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 3
    return text[: length - 1 - tail] + "…" + text[len(text) - tail :]

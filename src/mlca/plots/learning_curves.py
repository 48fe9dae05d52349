"""Plots over the rows of a stream: measures, new labels, alarms and trust in segments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlca.metrics import Prequential, Record
from mlca.plots.style import (
    COLOURS,
    FAINT,
    LINE_STYLES,
    MARKERS,
    axis_title,
    known_measure,
    literal,
    makes_room,
    new_axes,
    shorten,
    widen,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 40  # largest number of labels drawn as vertical lines; more labels are drawn as ticks at the top
ALARMS = {"drift": ("v", "drift"), "novelty": ("D", "novelty rising")}  # markers and legend entries
NAME_SPACING = 0.033  # as a share of the Axes' width: closer names would overlap


def plot_stream(
    results: Prequential | Mapping[str, Prequential],
    measure: str = "exact_match",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how a measure develops over a stream.

    Parameters
    ----------
    results : Prequential, or mapping of names to Prequential
        The result of `mlca.metrics.prequential`. For one run, the measure is drawn over the latest rows and over all
        rows; for several runs (on one stream), over the latest rows of each.
    measure : str, default "exact_match"
        One of the measures that `prequential` records.
    ax : Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    Axes
        Dotted lines mark the rows where new labels appear; names that would overlap are replaced by a count. With more
        than 40 labels, there are only ticks at the top. Markers at the bottom are drift and novelty alarms; with
        several runs, they are stacked, in the colours of the curves.

    Examples
    --------
    >>> from mlca.metrics import Record, StreamMeasures
    >>> whole, recent = StreamMeasures(0.5, 0.6, 0.5, 0.2, 0.6), StreamMeasures(0.7, 0.8, 0.7, 0.1, 0.8)
    >>> records = [Record(n, whole, recent, 2, None, 1e4, 100) for n in (100, 200)]
    >>> ax = plot_stream(Prequential(tuple(records), {"sea": 0, "sun": 90}, window=100))
    >>> [text.get_text() for text in ax.texts], ax.get_ylabel()
    (['sea', 'sun'], 'Exact match (higher is better)')
    """
    title = axis_title(known_measure(measure))
    curves = _curves(results, measure)
    runs = [results] if isinstance(results, Prequential) else list(results.values())
    ax = new_axes(7.2, 4.2) if ax is None else ax
    for i, (name, (rows, values)) in enumerate(curves.items()):
        ax.plot(
            rows,
            values,
            label=literal(name),
            color=COLOURS[i % len(COLOURS)],
            linestyle=LINE_STYLES[i % len(LINE_STYLES)],
            marker=MARKERS[i % len(MARKERS)],
            markevery=max(1, len(rows) // 12),
            markersize=5,
        )
    last_row = max((run.records[-1].row for run in runs if run.records), default=1)
    ax.set_xlim(0, 1.02 * last_row)
    widen(ax)
    _mark_labels(ax, runs[0].labels_appeared, last_row)
    _mark_alarms(ax, runs)
    ax.set_xlabel("rows learned")
    ax.set_ylabel(title)
    ax.grid(axis="y", color=FAINT, alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="best", framealpha=0.85, edgecolor="none")
    return ax


def _curves(results: Prequential | Mapping[str, Prequential], measure: str) -> dict[str, tuple[list[int], list[float]]]:
    """Return the rows and values of each curve, by name."""
    if isinstance(results, Prequential):
        wanted = [
            (f"last {results.window} rows", results, "windowed"),
            ("all rows so far", results, "running"),
        ]
    else:
        wanted = [(name, run, "windowed") for name, run in results.items()]
    if not wanted:
        raise ValueError("no runs to draw: pass a result of prequential, or a mapping of names to results")
    curves = {}
    for name, run, past in wanted:
        if run.records and not hasattr(run.records[0].running, measure):
            raise ValueError(f"prequential does not record {measure!r}: choose a field of StreamMeasures")
        values = [getattr(getattr(record, past), measure) for record in run.records]
        curves[name] = ([record.row for record in run.records], values)
    return curves


def _mark_labels(ax: Axes, appeared: Mapping[Hashable, int], last_row: int) -> None:
    """Draw a line where each label first appears, with its name or, if crowded, a count.

    The names are above the Axes if the figure has room there, otherwise inside at the top.
    """
    transform = ax.get_xaxis_transform()
    bottom = 0.0 if len(appeared) <= MOST_LINES else 0.97
    ax.vlines(
        list(appeared.values()),
        bottom,
        1,
        transform=transform,
        color=FAINT,
        linewidth=0.8,
        linestyle=":",
        zorder=0,
    )
    height, align = (1.02, "bottom") if makes_room(ax) else (0.98, "top")
    for row, labels in _gather(appeared, NAME_SPACING * last_row):
        text = literal(shorten(labels[0], 16)) if len(labels) == 1 else f"{len(labels)} labels"
        ax.text(
            row,
            height,
            text,
            transform=transform,
            rotation=90,
            ha="center",
            va=align,
            fontsize=8,
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
        )


def _mark_alarms(ax: Axes, runs: list[Prequential]) -> None:
    """Draw a marker at the bottom for each drift or novelty alarm; new labels have lines."""
    for kind, (marker, name) in ALARMS.items():
        if any(alarm.kind == kind for run in runs for alarm in run.alarms):
            ax.scatter([], [], marker=marker, color=FAINT, label=name)
    for i, run in enumerate(runs):
        for kind, (marker, _) in ALARMS.items():
            rows = [alarm.row for alarm in run.alarms if alarm.kind == kind]
            ax.scatter(
                rows,
                [0.03 + 0.04 * i] * len(rows),
                marker=marker,
                s=22,
                color=FAINT if len(runs) == 1 else COLOURS[i % len(COLOURS)],
                transform=ax.get_xaxis_transform(),
                clip_on=False,
                zorder=3,
            )


def _gather(appeared: Mapping[Hashable, int], spacing: float) -> list[tuple[int, list[str]]]:
    """Group labels that first appear less than `spacing` rows apart, to avoid overlaps."""
    gathered: list[tuple[int, list[str]]] = []
    for label, row in sorted(appeared.items(), key=lambda entry: entry[1]):
        name = label if isinstance(label, str) else f"label {label}"
        if gathered and row - gathered[-1][0] < spacing:
            gathered[-1][1].append(name)
        else:
            gathered.append((row, [name]))
    return gathered


SEGMENT = 64  # number of nodes in the shortest segment
VOTING = 0.7  # segments below this share of the highest trust do not vote


def plot_trust(result: Prequential, *, ax: Axes | None = None) -> Axes:
    """Draw the trust of a ``drift="follow"`` model in each segment of its past, over a stream.

    Parameters
    ----------
    result : Prequential
        The result of `mlca.metrics.prequential` for a model with ``drift="follow"``.
    ax : Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    Axes
        The horizontal axis shows the rows, and the vertical axis the nodes, with the oldest at the bottom. Segments
        that vote are coloured by their trust; those that do not are grey.

    Examples
    --------
    >>> from mlca import MLCA
    >>> from mlca.datasets import random_rbf
    >>> from mlca.metrics import prequential
    >>> stream = random_rbf(1500, change="recurrent", chunk=50)
    >>> ax = plot_trust(prequential(MLCA(drift="follow"), stream, every=100, alarms=False))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rows learned', 'nodes, oldest first')
    """
    records = [record for record in result.records if record.segments]
    if not records:
        raise ValueError('no record has segments: pass the result of prequential for MLCA(drift="follow")')
    rows = np.array([0, *(record.row for record in records)])
    newest = max(record.segments[-1][0] for record in records) // SEGMENT + 1
    nodes = SEGMENT * np.arange(newest + 1)
    trust = np.column_stack([_trust_of(record, newest) for record in records])
    votes = trust >= VOTING * np.nanmax(trust, axis=0)
    ax = new_axes(7.2, 4.2) if ax is None else ax
    ax.pcolormesh(rows, nodes, np.where(votes, np.nan, trust), cmap="Greys", vmin=-0.3, vmax=1.8)
    coloured = ax.pcolormesh(rows, nodes, np.where(votes, trust, np.nan), cmap="viridis", vmin=0, vmax=1)
    ax.figure.colorbar(coloured, ax=ax, label="trust; grey: no vote")
    ax.set(xlabel="rows learned", ylabel="nodes, oldest first", xlim=(0, rows[-1]))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _trust_of(record: Record, n_parts: int) -> NDArray[np.float64]:
    """Return the trust in each group of 64 nodes; NaN for nodes that did not exist yet."""
    begins, trust = np.array(record.segments).T
    parts = SEGMENT * np.arange(n_parts)
    segment = np.searchsorted(begins, parts, side="right") - 1
    # The last segment is the one being filled.
    return np.where(parts <= begins[-1], trust[segment], np.nan)

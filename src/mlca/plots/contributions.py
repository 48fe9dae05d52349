"""Bar chart of the contributions for and against a label."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from mlca.plots.style import ACCENT, COLOURS, FAINT, INK, literal, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_REASON = 40


def plot_contributions(
    explanation: Any, label: Hashable | None = None, *, most: int = 12, ax: Axes | None = None
) -> Axes:
    """Draw what each word, category, range and input adds to the logit of a label.

    Parameters
    ----------
    explanation : Explanation
        The result of `MLCA.explain`.
    label : hashable, optional
        The label. Default: the most likely predicted one, or "no label" if none is predicted.
    most : int, default=12
        The largest number of separate bars; the remaining contributions are combined in one more bar.
    ax : Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    Axes
        The largest contribution is at the top. Bars to the right are evidence for the label. Without
        `decision="mixed"`, the bars are each node's share of the votes.

    Examples
    --------
    >>> import numpy as np
    >>> from mlca import MLCA
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = MLCA().fit(X, [{"high"} if x > 0 else {"low"} for x in X[:, 0]])
    >>> ax = plot_contributions(model.explain([1.5, 0.0]))
    >>> ax.get_title()
    'high: probability 1.00'
    >>> [text.get_text() for text in ax.get_yticklabels()][:2]
    ['nearest nodes', 'x0 = 1.5']
    """
    reasons = list(explanation.reasons(label))
    bars = [(literal(shorten(name, LONGEST_REASON)), added) for name, added in reasons[:most]]
    if len(reasons) > most:
        bars.append((f"{len(reasons) - most} others", sum(added for _, added in reasons[most:])))
    if ax is None:
        ax = new_axes(7.0, 1.2 + 0.28 * max(1, len(bars)))
    places, sizes = range(len(bars)), [added for _, added in bars]
    drawn = ax.barh(places, sizes, color=[COLOURS[0] if added >= 0 else ACCENT for added in sizes], height=0.7)
    ax.bar_label(drawn, [f"{added:+.2f}" for added in sizes], padding=3, color=INK, fontsize=8)
    ax.set_yticks(places, [name for name, _ in bars])
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.axvline(0, color=FAINT, linewidth=0.8)
    ax.set_xlabel("added to the logit" if explanation.inputs else "part of the votes")
    ax.set_title(_title(explanation, label))
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _title(explanation: Any, label: Hashable | None) -> str:
    if label is None:
        likeliest = [explanation.labels[place] for place in explanation.order]
        label = next((name for name in likeliest if name in explanation.predicted), None)
    if label is None:
        return "no label" if explanation.none is None else f"no label: probability {explanation.none:.2f}"
    return f"{literal(label)}: probability {explanation.posterior[explanation.labels.index(label)]:.2f}"

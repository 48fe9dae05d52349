"""Node maps, which show the positions of a model's nodes and the labels they predict."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlca.plots.style import COLOURS, FAINT, INK, MARKERS, literal, makes_room, new_axes, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_LABEL = "no label"
MOST_SETS = 11  # more combinations of colour and marker would be hard to distinguish
SMALLEST_AREA, LARGEST_AREA = 14.0, 130.0  # of a marker, in square points
CROWD = 400  # beyond this number of nodes, markers get smaller


def plot_nodes(
    nodes: Any,
    label_sets: Sequence[Iterable[Hashable]] | None = None,
    counts: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the nodes of a model, coloured by the label set that each predicts.

    Two features are the axes. With more features, the axes are the first two principal components of the ranks: each
    value is replaced by the share of nodes with smaller values, so that outliers do not compress the others, and
    weighted as in the model's learned similarity. Zeros of sparse positions stay 0. The axis labels show each
    component's share of the variance; nodes that are close in the plot may be far apart.

    Parameters
    ----------
    nodes : fitted classifier, or array-like or sparse matrix of shape (n_nodes, n_features)
        A model with `prototypes_`, `counts_`, `classes_` and `predict`; or the positions themselves.
    label_sets : sequence of iterables, optional
        With positions: the labels that each node predicts.
    counts : array-like of shape (n_nodes,), optional
        With positions: the number of rows of each node; nodes with more rows are larger.
    ax : Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    Axes
        Each of the eleven most frequent label sets has a marker and a colour; the others are grey.

    Examples
    --------
    >>> ax = plot_nodes([[0, 0], [1, 0], [0, 1]], [{"sea"}, {"sea", "sun"}, set()], counts=[9, 4, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['no label', 'sea', 'sea + sun']
    >>> plot_nodes([[0, 0, 5], [1, 0, 3], [0, 1, 3]], [{"sea"}, {"sea", "sun"}, set()]).get_xlabel()
    'principal component 1 of ranks: 50 % of the variance'
    """
    importance = None
    if label_sets is None:
        weights, label_sets, counts = _of_model(nodes)
        importance = getattr(nodes, "feature_weights_", None)
    else:
        weights = nodes if sp.issparse(nodes) else np.asarray(nodes, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] < 2:
        raise ValueError(f"a node map needs at least two features; got positions of shape {weights.shape}")
    if len(label_sets) != weights.shape[0]:
        raise ValueError(f"{weights.shape[0]} nodes, but {len(label_sets)} label sets: pass one per node")
    weights, names = _places(weights, importance)
    titles = [_title(labels) for labels in label_sets]
    groups = _groups(titles)
    if ax is None:
        longest = max((len(group.title) for group in groups), default=0)
        ax = new_axes(5.8 + 0.08 * longest, 4.8)
    areas = _areas(counts, len(weights))
    for group in groups:
        ax.scatter(
            weights[group.nodes, 0],
            weights[group.nodes, 1],
            s=areas[group.nodes],
            c=group.colour,
            marker=group.marker,
            edgecolors=INK,
            linewidths=0.4,
            alpha=0.9,
            label=literal(group.title),
            zorder=1 if group.colour == FAINT else 2,
        )
    # Widening the limits leaves the box where the layout put it; shrinking the box would move the legend.
    ax.set_aspect("equal", adjustable="datalim")
    title = "label set" if counts is None else "label set\n(size: rows)"
    if makes_room(ax):
        legend = ax.legend(title=title, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    else:
        legend = ax.legend(title=title, loc="best", framealpha=0.85, edgecolor="none")
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_sizes([45.0])  # type: ignore[attr-defined]
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    return ax


def _places(weights: Any, importance: NDArray[np.float64] | None) -> tuple[NDArray[np.float64], list[str]]:
    """Return 2-D positions and axis names: two features, or two principal components."""
    n_nodes, n_features = weights.shape
    if n_features == 2:
        return weights.toarray() if sp.issparse(weights) else weights, ["feature 1", "feature 2"]
    if n_nodes < 3:
        raise ValueError(f"a node map of {n_features} features needs at least 3 nodes, got {n_nodes}; pass more")
    from sklearn.decomposition import PCA

    ranks = _sparse_ranks(weights) if sp.issparse(weights) else _ranks(weights)
    if importance is not None:
        ranks = ranks * np.sqrt(importance / importance.max())  # square root, because squared distances are weighted
    components = PCA(2, svd_solver="arpack" if min(n_nodes, n_features) > 2 else "full", random_state=0)
    places = components.fit_transform(ranks)
    shares = components.explained_variance_ratio_
    names = [
        f"principal component {i} of ranks: {100 * share:.0f} % of the variance" for i, share in enumerate(shares, 1)
    ]
    return places, names


def _ranks(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each value's rank in its column, in (0, 1]; missing values get the mean rank."""
    from scipy.stats import rankdata

    known = np.maximum(np.count_nonzero(~np.isnan(weights), axis=0), 1)
    ranks = rankdata(weights, axis=0, nan_policy="omit") / known
    drawn: NDArray[np.float64] = np.where(np.isnan(ranks), (known + 1) / (2 * known), ranks)
    return drawn


def _sparse_ranks(weights: Any) -> sp.csr_array:
    """Return the signed rank of each stored value's magnitude in its column; zeros stay 0."""
    columns = sp.csc_array(weights, copy=True)
    columns.data = np.nan_to_num(columns.data)
    for start, stop in pairwise(columns.indptr.tolist()):
        values = columns.data[start:stop]
        columns.data[start:stop] = np.sign(values) * _ranks(np.abs(values)[:, np.newaxis])[:, 0]
    return columns.tocsr()


def _of_model(model: Any) -> tuple[Any, list[set[Hashable]], ArrayLike]:
    missing = [name for name in ("prototypes_", "counts_", "classes_") if not hasattr(model, name)]
    if missing:
        raise ValueError(
            f"{type(model).__name__} has no {', '.join(missing)}: "
            "pass a fitted model with nodes, or positions together with label_sets"
        )
    weights = model.prototypes_ if sp.issparse(model.prototypes_) else np.asarray(model.prototypes_)
    names = np.asarray(model.classes_).tolist()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # nodes have the model's columns
        predicted = np.asarray(model.predict(weights))
    if predicted.ndim == 1:  # one class per row
        return weights, [{name} for name in predicted.tolist()], model.counts_
    return weights, [{names[j] for j in np.flatnonzero(row)} for row in predicted], model.counts_


def _title(labels: Iterable[Hashable]) -> str:
    return " + ".join(sorted(str(label) for label in labels)) or NO_LABEL


class NodeGroup(NamedTuple):
    """The nodes that predict the same label set, and how they are drawn."""

    colour: str
    marker: str
    title: str
    nodes: NDArray[np.intp]


def _groups(titles: Sequence[str]) -> list[NodeGroup]:
    """Group the nodes by label set, small sets first; rare sets form one last group."""
    of_node = np.array(titles)
    frequent = Counter(titles).most_common(MOST_SETS)
    shown = sorted((title for title, _ in frequent), key=lambda t: (t != NO_LABEL, t.count(" + "), t))
    groups = []
    for i, title in enumerate(shown):
        colour = COLOURS[i % len(COLOURS)] if title != NO_LABEL else "white"
        nodes = np.flatnonzero(of_node == title)
        groups.append(NodeGroup(colour, MARKERS[i % len(MARKERS)], shorten(title, 40), nodes))
    rest = np.flatnonzero(~np.isin(of_node, shown))
    if rest.size:
        n_sets = len(set(of_node[rest].tolist()))
        groups.append(NodeGroup(FAINT, ".", f"{n_sets} other sets", rest))
    return groups


def _areas(counts: ArrayLike | None, n_nodes: int) -> NDArray[np.float64]:
    scale = min(1.0, CROWD / n_nodes)
    if counts is None:
        return np.full(n_nodes, 40.0 * scale)
    won = np.asarray(counts, dtype=np.float64)
    share: NDArray[np.float64] = won / max(won.max(), 1.0)
    return scale * (SMALLEST_AREA + (LARGEST_AREA - SMALLEST_AREA) * share)

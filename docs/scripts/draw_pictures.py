"""Draw the figures of docs/concepts.md into docs/images.

Every figure shows results that the package computes on a small stream with a fixed seed.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from mlca import MLCA
from mlca.datasets import three_discs
from mlca.metrics import exact_match
from mlca.plots import plot_nodes
from mlca.plots.style import COLOURS, FAINT, INK

IMAGES = Path(__file__).parent.parent / "images"
BLUE, ORANGE, GREEN = COLOURS[:3]
DISCS = ["left", "right", "top"]


def discs(n_per_disc: int, vigilance: float, **parameters: Any) -> tuple[MLCA, np.ndarray]:
    """Return a model that has learned the three discs with named labels, and the rows."""
    (stage,) = three_discs(n_per_disc, random_state=0)
    names = [[DISCS[j] for j in row.nonzero()[0]] for row in stage.Y]
    return MLCA.published(vigilance=vigilance, **parameters).fit(stage.X, names), stage.X


def draw_vigilance() -> None:
    """Draw the nodes that MLCA creates from the same rows at three vigilances."""
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), sharex=True, sharey=True, layout="constrained")
    for ax, vigilance in zip(axes, (0.05, 0.1, 0.3), strict=True):
        model, X = discs(2000, vigilance)
        plot_nodes(model, ax=ax)
        if ax.get_legend():
            ax.get_legend().remove()
        ax.set(xlabel="", ylabel="")
        ax.set_title(f"vigilance {vigilance}: {model.n_nodes_:,} nodes of {len(X):,} rows", fontsize=10)
        ax.set_aspect("equal", adjustable="box")
    save(figure, "vigilance")


def draw_window() -> None:
    """Draw a stream whose spread changes, and the bandwidths of new nodes."""
    rng = np.random.default_rng(0)
    spread = np.repeat([1.0, 0.2, 2.0], 200)
    stream = (rng.normal(size=600) * spread)[:, None]
    model, made = MLCA.published(vigilance=0.0, window=50), []
    for row in stream:
        model.partial_fit(row[None], [{"any"}])
        made.append(model.n_nodes_)
    born = np.searchsorted(made, np.arange(1, model.n_nodes_ + 1)) + 1
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, layout="constrained")
    above.plot(np.arange(1, 601), stream[:, 0], ".", color=FAINT, markersize=4)
    above.axvspan(451, 500, color=ORANGE, alpha=0.3, lw=0)
    above.set_ylim(-8.5, 7.5)
    above.text(475.5, 6, "window of row 500", ha="center", color=INK, fontsize=9)
    above.set(ylabel="the attribute", title="a stream whose spread changes at rows 200 and 400")
    below.plot(born, model.bandwidths_, ".", color=BLUE, markersize=4)
    below.set(ylabel="bandwidth of the new node", xlabel="row", ylim=(0, None))
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, "window")


def draw_node() -> None:
    """Draw a few nodes with their rows, and the region within the vigilance of each node."""
    rng = np.random.default_rng(3)
    X = np.vstack([rng.uniform(-0.5, 0.5, (60, 2)) + place for place in ((0, 0), (2.2, 0.4), (1.0, 1.9))])
    tags = [["sea"]] * 60 + [["sea", "sun"]] * 60 + [["sun"]] * 60
    order = rng.permutation(len(X))
    model = MLCA.published(vigilance=0.65).fit(X[order], [tags[i] for i in order])
    figure, ax = plt.subplots(figsize=(7.4, 5.4), layout="constrained")
    ax.plot(*X.T, ".", color=FAINT, markersize=5, label="rows")
    s = float(np.mean(model.bandwidths_))
    grid = np.stack(np.meshgrid(np.linspace(-1.4, 3.6, 300), np.linspace(-1.3, 3.1, 300)), axis=-1)
    for k, (place, count) in enumerate(zip(model.prototypes_, model.counts_, strict=True)):
        distance = np.sqrt(np.mean(1 - np.exp(-((grid - place) ** 2) / (2 * s * s)), axis=-1))
        ax.contour(grid[..., 0], grid[..., 1], distance, levels=[0.65], colors=BLUE, linewidths=1, linestyles=":")
        ax.plot(*place, "o", color=BLUE, markersize=9, markeredgecolor=INK)
        own = model.label_counts_.toarray()[k]
        text = ", ".join(f"{name} {n}" for name, n in zip(model.classes_, own, strict=True) if n)
        apart = place - model.prototypes_
        crowded = np.any((apart[:, 0] > 0) & (np.abs(apart).max(axis=1) < 0.6))  # beside the text of another node
        ax.annotate(
            f"{count} row{'s' if count > 1 else ''}\n{text}",
            place,
            xytext=(9, -30 if crowded else 6),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            bbox={"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1},
        )
    ax.set(aspect="equal", title=f"{model.n_nodes_} nodes of {len(X)} rows at vigilance 0.65", xlim=(-1.4, 3.6))
    ax.set_ylim(-1.3, 3.1)
    save(figure, "node")


def draw_prediction() -> None:
    """Draw the steps of a prediction: nearest nodes, votes, and posterior probabilities."""
    model, _ = discs(700, 0.1)
    row = np.array([0.2, 0.55])
    explained = model.explain(row)
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 4.2), width_ratios=(1.25, 1, 1), layout="constrained"
    )
    left.plot(*model.prototypes_.T, ".", color="#cccccc", markersize=4)
    voters = model.prototypes_[explained.nodes]
    left.scatter(*voters.T, s=30, color=BLUE, edgecolors=INK, linewidths=0.5, zorder=3)
    left.plot(*row, "X", color=ORANGE, markersize=11, markeredgecolor=INK, zorder=4)
    reach = 1.6 * np.abs(voters - row).max()
    left.set(title="1. the ten nearest nodes vote", aspect="equal", xlim=row[0] + np.array([-reach, reach]))
    left.set_ylim(row[1] - reach, row[1] + reach)
    places, names = np.arange(len(explained.labels)), [str(name) for name in explained.labels]
    middle.bar(places, explained.votes, color=BLUE)
    for place, votes, bin_ in zip(places, explained.votes, explained.bins, strict=True):
        middle.text(place, votes, f"{votes:.0f} votes\nbin {bin_}", ha="center", va="bottom", fontsize=9)
    middle.set(title="2. their label counts give bins", ylim=(0, 1.3 * explained.votes.max()))
    right.bar(places - 0.2, explained.prior, 0.36, color="#cccccc", label="prior")
    right.bar(places + 0.2, explained.posterior, 0.36, color=GREEN, label="posterior")
    for place, p in zip(places, explained.posterior, strict=True):
        right.text(place + 0.2, p, f"{p:.2f}", ha="center", va="bottom", fontsize=9)
    right.axhline(0.5, color=INK, lw=0.8, ls="--")
    right.set(title="3. prior and bin give the posterior", ylim=(0, 1.28))
    right.legend(frameon=False, loc="upper left", ncols=2)
    for ax in (middle, right):
        ax.set_xticks(places, names)
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, "prediction")
    print(explained)


def draw_memory() -> None:
    """Draw the accuracy on all earlier regions after each new region of a stream."""
    stages = three_discs(condition="seven", random_state=0)
    names = [" + ".join(stage.name) for stage in stages]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for ax, vote in zip(axes, ("counts", "frequencies"), strict=True):
        model, matches = MLCA.published(vigilance=0.1, vote=vote), np.full((len(stages), len(stages)), np.nan)
        for i, stage in enumerate(stages):
            model.partial_fit(stage.X, stage.Y)
            for j in range(i + 1):
                matches[j, i] = exact_match(stages[j].Y, model.predict(stages[j].X))
        ax.imshow(matches, aspect="auto", cmap="Blues", vmin=0, vmax=2.2)
        for j, i in np.argwhere(~np.isnan(matches)):
            ax.text(i, j, f"{matches[j, i]:.3f}", ha="center", va="center", fontsize=9, color=INK)
        ax.set_xticks(range(len(stages)), names)
        ax.set_yticks(range(len(stages)), names)
        ax.set(xlabel="learned last (the discs that cover the region)", title=f'vote="{vote}"')
        ax.spines[:].set_visible(False)
        print(vote, model.n_nodes_, np.round(matches, 3), sep="\n")
    axes[0].set_ylabel("asked about")
    save(figure, "memory")


def save(figure: Any, name: str) -> None:
    """Save a figure with few colours, for a small file, and close it."""
    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=110)
    Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(figure)


if __name__ == "__main__":
    for draw in (draw_vigilance, draw_window, draw_node, draw_prediction, draw_memory):
        draw()

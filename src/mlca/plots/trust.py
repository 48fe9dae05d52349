"""Which parts of the past a model trusts, over the rows of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlca.metrics import Prequential, Record
from mlca.plots.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEGMENT = 64  # nodes of the shortest segment
VOTING = 0.7  # of the highest trust: segments below it do not vote


def plot_trust(result: Prequential, *, ax: Axes | None = None) -> Axes:
    """Draw how far a model with ``drift="follow"`` trusts each part of its past, over the rows of a stream.

    Parameters
    ----------
    result : Prequential
        What `mlca.metrics.prequential` returned for such a model.
    ax : Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    Axes
        Rows go to the right, the nodes of the past upwards, the oldest at the bottom. Segments that vote are coloured
        by their trust, those that do not are grey.

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
        raise ValueError('no record tells of segments: pass what prequential returned for MLCA(drift="follow")')
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
    """Return the trust in each run of 64 nodes; NaN for nodes that were not made yet."""
    begins, trust = np.array(record.segments).T
    parts = SEGMENT * np.arange(n_parts)
    segment = np.searchsorted(begins, parts, side="right") - 1
    # The last segment is the run that is being filled.
    return np.where(parts <= begins[-1], trust[segment], np.nan)

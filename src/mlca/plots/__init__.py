"""Plots of results.

Each function takes a result of the package (a Nemenyi test, a model, a test-then-train run, a table), draws it on the
given Axes or on a new figure, and returns the Axes; saving and showing are up to the caller. `style` holds the shared
parts. Colours are those of Okabe and Ito, which colour-blind readers can distinguish; markers, hatches and line styles
repeat the information for greyscale prints.

Matplotlib is imported when the first plot is drawn.
"""

from mlca.plots.contributions import plot_contributions
from mlca.plots.critical_difference import plot_critical_difference
from mlca.plots.folds import plot_folds
from mlca.plots.heat_map import plot_grid
from mlca.plots.learning_curves import plot_stream, plot_trust
from mlca.plots.node_map import plot_nodes

__all__ = [
    "plot_contributions",
    "plot_critical_difference",
    "plot_folds",
    "plot_grid",
    "plot_nodes",
    "plot_stream",
    "plot_trust",
]

"""Pictures of results.

Each function takes what the rest of the package returns (a Nemenyi test, a model, a test-then-train
run, a table), draws it on the Axes it is given or on a new figure that fits the content, and returns
the Axes: saving and showing are the caller's. `style` holds what they share. Colours are those of
Okabe and Ito, which colour-blind eyes can tell apart; markers, hatches and line styles say the same
once more, for print in grey.

Matplotlib is imported when the first picture is drawn.
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

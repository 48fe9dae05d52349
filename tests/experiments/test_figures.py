"""Axes of the report's plots: enough ticks to read values, and no axis so short that noise fills the plot."""

import re

from mlca.experiments.studies.figures import draw_curves, draw_growth


def marks(svg):
    """Return the numbers beside the vertical axis."""
    told = re.findall(r'id="ytick_\d+">.*?<text[^>]*>([^<]+)</text>', svg, re.DOTALL)
    return [float(text) for text in told]


def test_axis_of_similar_times_is_readable():
    shown = marks(draw_growth({"MLCA": {1000: 0.03, 2000: 0.07, 4000: 0.29}}, "rows"))
    assert shown == [0.05, 0.1, 0.2]


def test_axis_of_similar_curves_is_not_stretched():
    shown = marks(draw_curves({"MLCA": [0.41, 0.43, 0.42]}, [1, 2, 3], "exact_match", "epochs"))
    assert max(shown) - min(shown) > 0.1

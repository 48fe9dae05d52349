"""Helpers that inspect rendered plots: pixels and text boxes."""

from io import BytesIO
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.text import Text

DPI = 80


def pixels(figure):
    """Render a figure as PNG, and return its pixels: height x width x 3, from 0 to 1."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    assert file.getvalue().startswith(b"\x89PNG")
    file.seek(0)
    return plt.imread(file)[..., :3]


def boxes(figure):
    """Return the drawn texts as pairs of text and box; boxes are in pixels at the current dpi."""
    figure.canvas.draw()
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - 1e-9 <= tick.get_loc() <= high + 1e-9 or not ax.axison:
                    hidden |= {id(tick.label1), id(tick.label2)}
        if not ax.axison:
            hidden |= {id(ax.xaxis.label), id(ax.yaxis.label)}
    return [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def assert_well_drawn(figure, *, apart=True):
    """Assert that the size is right, something is drawn, and texts fit and do not overlap."""
    image = pixels(figure)
    width, height = np.round(figure.get_size_inches() * DPI)
    assert abs(image.shape[1] - width) <= 1 and abs(image.shape[0] - height) <= 1
    ink = np.mean(image.min(axis=2) < 0.9)
    assert 0.005 < ink < 0.95, f"{ink:.1%} of the picture is not white"
    edges = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    assert edges.min() > 0.9, "something runs into the edge of the picture"

    drawn = boxes(figure)
    assert drawn
    frame = figure.bbox
    for text, box in drawn:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= frame.x1 + 1 and box.y1 <= frame.y1 + 1
        assert inside, f"{text!r} leaves the frame: {box} in {frame}"
    if apart:
        for (one, a), (other, b) in combinations(drawn, 2):
            across = min(a.x1, b.x1) - max(a.x0, b.x0)
            along = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert across < 1 or along < 1, f"{one!r} and {other!r} overlap by {across:.1f} x {along:.1f} pixels"


def assert_told_apart_in_grey(colours):
    """Assert that neighbouring colours of a list have different lightness."""
    from matplotlib.colors import to_rgb

    lightness = [np.dot([0.2126, 0.7152, 0.0722], to_rgb(colour)) for colour in colours]
    assert np.abs(np.diff(lightness)).min() > 0.1

"""The recipe: what a model file remembers of the tables that it was learned from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mlca.tables.layout import Layout, layout_from_json

# A growth note is taken when the rows have become more by this factor.
_NEXT_NOTE = 1.25


class Growth(NamedTuple):
    """How large a model was after some rows."""

    rows: int
    nodes: int
    labels: int


@dataclass(frozen=True)
class Recipe:
    """How to read tables for a model, and how the model has grown.

    Attributes
    ----------
    layout : TableLayout or XcLayout
        What the columns mean.
    growth : tuple of Growth
        Notes at growing distances, the last when learning ended.
    """

    layout: Layout
    growth: tuple[Growth, ...] = ()

    def grown(self, now: Growth, *, final: bool = False) -> Recipe:
        """Return the recipe with a note of how large the model is now, if one is due."""
        last = self.growth[-1].rows if self.growth else 0
        due = now.rows >= _NEXT_NOTE * max(last, 1) or (final and now.rows > last)
        return replace(self, growth=(*self.growth, now)) if due else self

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as JSON has it."""
        return {**self.layout.to_json(), "growth": [list(note) for note in self.growth]}


def recipe_from_json(plain: Any, n_features: int) -> Recipe:
    """Read a recipe that may have been tampered with.

    Parameters
    ----------
    plain : object
        What `Recipe.to_json` gave.
    n_features : int
        The number of columns that the model learned.

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        If it is no recipe, or not of a model with that many columns.
    """
    try:
        recipe = Recipe(layout_from_json(plain), tuple(_growth(note) for note in plain["growth"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the recipe is damaged ({error})") from None
    if recipe.layout.n_features != n_features:
        raise ValueError(f"the recipe gives {recipe.layout.n_features} columns, the model has {n_features}")
    return recipe


def _growth(note: Any) -> Growth:
    if len(note) != 3 or any(type(count) is not int or count < 0 for count in note):
        raise ValueError(f"{note!r} is no note of growth")
    return Growth(*note)

"""The recipe that a model carries: how its tables are read, kept among the extras of its file."""

from __future__ import annotations

from typing import Any

from mlca.model import LearnedModel, extras_of, set_extra
from mlca.tables.recipe import Recipe, recipe_from_json

_NAME = "recipe"


def recipe_of(model: LearnedModel) -> Recipe | None:
    """Return how a model's tables are read; None if it was not trained on tables.

    Raises
    ------
    ValueError
        If the model comes from a file whose recipe is damaged, or is of another model.
    """
    plain = extras_of(model).get(_NAME)
    return None if plain is None else recipe_from_json(plain, model.n_features_in_)


def has_recipe(model: LearnedModel) -> bool:
    """Whether a model knows by itself what its columns are."""
    return _NAME in extras_of(model)


def meaning_of_columns(model: LearnedModel) -> dict[str, Any] | None:
    """Return what the columns of a model's tables mean, as JSON has it; None if it was not trained on tables."""
    recipe = recipe_of(model)
    return None if recipe is None else recipe.layout.to_json()


def set_recipe(model: LearnedModel, recipe: Recipe) -> None:
    """Let a model remember how its tables are read."""
    set_extra(model, _NAME, recipe.to_json())

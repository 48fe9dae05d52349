"""The recipe in a model file: loaded unchanged, and rejected if it was modified."""

import json

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.cli.tablefiles import load_with_recipe
from mlca.tables.kinds import Boolean, Categorical, Date, Ignored, Numeric, OneHot
from mlca.tables.layout import LabelLayout, TableLayout, XcLayout
from mlca.tables.recipe import Growth, Recipe, recipe_from_json
from mlca.tables.table_learner import recipe_of, set_recipe
from tests.storage.archives import pack, unpack

LAYOUT = TableLayout(
    (Numeric("size", 1.5), Ignored("note", "text"), OneHot("colour", ("blue", "red"))),
    LabelLayout("separated", ("tags",), "|"),
)
CODED = TableLayout(
    (Numeric("size"), Categorical("colour", ("blue", "red")), Boolean("new"), Date("day", 1.0, 2.0, ()))
)
RECIPE = Recipe.by_layout(LAYOUT, (Growth(100, 20, 3), Growth(200, 30, 4)))


@pytest.mark.parametrize(
    "layout", [LAYOUT, XcLayout(3, 1), TableLayout(LAYOUT.columns, LabelLayout("flags", ("a", "b")))]
)
def test_recipe_survives_a_json_round_trip(layout):
    recipe = Recipe.by_layout(layout, RECIPE.growth)
    again = recipe_from_json(json.loads(json.dumps(recipe.to_json())), 3)
    assert (again.layout, again.growth) == (layout, RECIPE.growth)


def test_empty_recipes_can_be_compared():
    recipe = Recipe()
    assert recipe != Recipe() and recipe in {recipe}


def test_missing_values_and_codes_can_be_decoded():
    recipe = Recipe.by_layout(CODED)
    again = recipe_from_json(json.loads(json.dumps(recipe.to_json())), 4)
    assert again.layout == CODED and again.categorical_features_ == [1]


def test_columns_of_older_files_keep_their_encoding():
    columns = [
        {"name": "size", "kind": "numeric", "fill": 1.5},
        {"name": "new", "kind": "boolean", "fill": 0.25},
        {"name": "colour", "kind": "categorical", "values": ["blue", "red"]},
        {"name": "day", "kind": "date", "centre": 1.0, "spread": 2.0, "cycles": ["week"]},
    ]
    plain = {"layout": "table", "columns": columns, "labels": None, "sparse": False, "growth": []}
    recipe = recipe_from_json(plain, 7)
    assert recipe.layout.columns[2] == OneHot("colour", ("blue", "red")) and recipe.categorical_features_ == []
    frame = pd.DataFrame({"size": [None, "2"], "new": [None, "yes"], "colour": ["green", "red"], "day": None})
    np.testing.assert_array_equal(recipe.transform(frame), [[1.5, 0.25, 0, 0, 0, 0, 0], [2, 1, 0, 1, 0, 0, 0]])
    assert recipe.get_feature_names_out().tolist()[2:4] == ["colour = blue", "colour = red"]
    model = MLCA().fit(recipe.transform(frame), [["a"], ["b"]])
    set_recipe(model, recipe)
    model.partial_fit(frame, [["a"], ["b"]])  # from here on, the category "green" is known
    assert model.prototypes_.shape[1] == 8 and recipe_of(model).layout.late == ((2, 1),)
    assert recipe_of(model).transform(frame)[0].tolist() == [1.5, 0.25, 0, 0, 0, 0, 0, 1]


def test_growth_is_recorded_at_growing_distances():
    recipe = Recipe.by_layout(LAYOUT)
    for rows in range(1000, 20_000, 1000):
        recipe = recipe.grown(Growth(rows, rows // 2, 1))
    recipe = recipe.grown(Growth(20_000, 9000, 1), final=True).grown(Growth(20_000, 9000, 1), final=True)
    assert [note.rows for note in recipe.growth] == [
        1000,
        2000,
        3000,
        4000,
        5000,
        7000,
        9000,
        12000,
        15000,
        19000,
        20000,
    ]


def changed(path, value):
    """Return the recipe's JSON with one value replaced."""
    plain = json.loads(json.dumps(RECIPE.to_json()))
    inner = plain
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return plain


HOSTILE = {
    "no object": ([], "damaged"),
    "a number": (7, "damaged"),
    "no layout": ({}, "'layout'"),
    "unknown layout": (changed(["layout"], "sheet"), "layout 'sheet' is unknown"),
    "unknown kind": (changed(["columns", 0, "kind"], "tensor"), "kind 'tensor'"),
    "name of no kind": (changed(["columns", 0, "name"], 7), "7 is not a string"),
    "filling": (changed(["columns", 0, "fill"], "inf"), "not finite"),
    "huge filling": (changed(["columns", 0, "fill"], 10**400), "damaged"),
    "no categories": (changed(["columns", 2, "values"], []), "values of column 'colour'"),
    "categories twice": (changed(["columns", 2, "values"], ["a", "a"]), "values of column 'colour'"),
    "categories of no kind": (changed(["columns", 2, "values"], "ab"), "'ab' is not a list"),
    "columns twice": (changed(["columns", 1, "name"], "size"), "two columns have the same name"),
    "label among columns": (changed(["labels", "columns"], ["size"]), "two columns have the same name"),
    "more late than there": (changed(["late"], [[0, 2]]), "added late to a column exceed its number of features"),
    "nothing late": (changed(["late"], [[0, 0]]), 'is not a valid entry in "late"'),
    "late beyond the last": (changed(["late"], [[2, 1]]), 'is not a valid entry in "late"'),
    "unknown form": (changed(["labels", "form"], "tree"), "'tree' is unknown"),
    "empty separator": (changed(["labels", "separator"], ""), "label separator is empty"),
    "no label column": (changed(["labels", "columns"], []), "in 0 columns"),
    "two label columns": (changed(["labels", "columns"], ["a", "b"]), "in 2 columns"),
    "growth": (changed(["growth", 0], [1, 2]), "must hold three counts: of rows, nodes and labels"),
    "negative growth": (changed(["growth", 0, 1], -1), "must hold three counts: of rows, nodes and labels"),
    "growth of no kind": (changed(["growth"], 5), "damaged"),
    "other width": (changed(["columns", 2, "values"], ["a", "b", "c"]), "has 4 features, but the model has 3"),
    "xc numbering": ({"layout": "xc", "n_features": 3, "first": 2, "growth": []}, "numbering"),
    "xc width": ({"layout": "xc", "n_features": "3", "first": 0, "growth": []}, "numbering"),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_hostile_recipe_is_rejected_with_file_and_fault(tmp_path, fault):
    plain, message = HOSTILE[fault]
    path = tmp_path / "m.mlca"
    MLCA().fit([[1.0, 0, 1], [2.0, 1, 0]], [{"a"}, {"b"}]).save(path)
    header, arrays = unpack(path)
    pack(path, header | {"extras": {"recipe": plain}}, arrays)
    for loading in (load, load_with_recipe):
        with pytest.raises(ValueError, match=message) as error:
            loading(str(path))
        assert str(error.value).count(str(path)) == 1


def test_recipe_is_stored_with_the_model(tmp_path):
    model = MLCA().fit([[1.0, 0, 1], [2.0, 1, 0]], [{"a"}, {"b"}])
    assert recipe_of(model) is None
    set_recipe(model, RECIPE)
    model.save(tmp_path / "m.mlca")
    assert recipe_of(load(tmp_path / "m.mlca")).to_json() == RECIPE.to_json()

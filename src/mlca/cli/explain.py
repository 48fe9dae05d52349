"""Show why a row gets its labels: the nodes that vote, what they stand for, every number up to the probabilities."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_model_argument,
    load_with_recipe,
    opened,
    positive,
    tell_differences,
)
from mlca.showing import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mlca.explanation import Explanation
    from mlca.tables.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.add_argument(
        "--row", type=positive, required=True, metavar="N", help="the row, counted from 1 as `predict` does"
    )


def run(args: argparse.Namespace) -> int:
    """Explain and print; return the exit code."""
    model, recipe = load_with_recipe(args.model)
    row = _find_row(recipe, args)
    explanation = model.explain(row)
    if args.json:
        print(json.dumps(_facts(args.row, explanation)))
        return 0
    predicted = ", ".join(sorted(map(shown, explanation.predicted))) or "no label"
    print(f"Row {args.row} of {shown(args.data)}: {predicted}\n\n{explanation}")
    return 0


def _find_row(recipe: Recipe, args: argparse.Namespace) -> NDArray[Any]:
    from mlca.tables.telling import dense_row

    with opened(args) as file:
        tell_differences(file, recipe, labels=False)
        last = 0
        for batch in file.batches(recipe.layout, Faults(args), labels=False):
            if args.row in batch.numbers:
                return dense_row(batch.X, batch.numbers.index(args.row))
            last = batch.numbers[-1]
            if args.row < last:
                raise ValueError(f"{args.data}: row {args.row} is one of those that cannot be read")
    raise ValueError(f"{args.data}: there is no row {args.row}; the last that can be read is {last}")


def _facts(row: int, explanation: Explanation) -> dict[str, Any]:
    from dataclasses import fields

    named = ("labels", "predicted", "agreement", "values")
    values = {field.name: getattr(explanation, field.name) for field in fields(explanation) if field.name not in named}
    columns = dict(explanation.values)
    n_shown = len(next(iter(columns.values()), ())) - 1
    names = ["row", *map(str, explanation.nodes[: max(0, n_shown)].tolist())]
    nearest = {name: {column: shown[i] for column, shown in columns.items()} for i, name in enumerate(names)}
    return {
        "row": row,
        "predicted": sorted(map(str, explanation.predicted)),
        "labels": list(explanation.labels),
        **{name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()},
        "agreement": dict(explanation.agreement),
        "values": nearest,
    }

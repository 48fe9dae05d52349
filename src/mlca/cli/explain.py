"""Show why a row gets its labels: the nodes that vote, what they stand for, and every number up to the posterior."""

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

    from mlca.classifier import MLCA
    from mlca.explanation import Explanation
    from mlca.tables.recipe import Recipe

_SHOWN_NODES = 5
_SHOWN_COLUMNS = 12
_WIDEST_CELL = 16


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
    columns, values = _values(model, recipe, row, explanation)
    if args.json:
        print(json.dumps(_facts(args.row, explanation, columns, values)))
        return 0
    predicted = ", ".join(sorted(map(shown, explanation.predicted))) or "no label"
    print(f"Row {args.row} of {shown(args.data)}: {predicted}\n\n{explanation}\n")
    print("\n".join(_values_in_words(explanation, columns, values)))
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


def _values(
    model: MLCA, recipe: Recipe, row: NDArray[Any], explanation: Explanation
) -> tuple[list[str], list[list[str]]]:
    """Return the most telling columns of the row, and what the row and the nearest nodes have there."""
    from mlca.tables.telling import TellingColumns, dense_row

    weights = model.weights_
    telling = TellingColumns(recipe.layout, weights)
    places = telling.of(row, _SHOWN_COLUMNS)
    rows = [row, *(dense_row(weights, int(node)) for node in explanation.nodes[:_SHOWN_NODES])]
    return [telling.name(place) for place in places], [[telling.in_words(x, place) for place in places] for x in rows]


def _values_in_words(explanation: Explanation, columns: list[str], values: list[list[str]]) -> list[str]:
    titles = ["the row", *(f"node {node}" for node in explanation.nodes[:_SHOWN_NODES])]
    columns = list(map(shown, columns))
    width = max(map(len, columns))
    lines = ["The row beside the nearest nodes, where it is least ordinary:"]
    for name, cells in [("column", titles), *zip(columns, zip(*values, strict=True), strict=True)]:
        lines.append(f"{name:<{width}}  " + "  ".join(f"{_cut(cell):<{_WIDEST_CELL}}" for cell in cells).rstrip())
    return lines


def _cut(text: str) -> str:
    text = shown(text)
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"


def _facts(row: int, explanation: Explanation, columns: list[str], values: list[list[str]]) -> dict[str, Any]:
    from dataclasses import asdict

    numbers = {name: value for name, value in asdict(explanation).items() if name != "labels"}
    arrays = {name: value.tolist() for name, value in numbers.items()}
    names = ["row", *map(str, explanation.nodes[:_SHOWN_NODES].tolist())]
    nearest = {name: dict(zip(columns, own, strict=True)) for name, own in zip(names, values, strict=True)}
    return {
        "row": row,
        "predicted": sorted(map(str, explanation.predicted)),
        "labels": list(explanation.labels),
        **arrays,
        "values": nearest,
    }

"""Explain a prediction: voting nodes, their labels, and steps from votes to probabilities."""

from __future__ import annotations

import argparse
import json
import sys
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_model_argument,
    load_with_recipe,
    opened,
    positive,
    report_differences,
)
from mlca.messages import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mlca.tables.first_rows import CellsByColumn
    from mlca.tables.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.add_argument(
        "--row",
        type=positive,
        required=True,
        metavar="N",
        help="number of the row, as in the output of `predict`, from 1",
    )


def run(args: argparse.Namespace) -> int:
    """Explain the prediction of a row and print it; return the exit code."""
    from mlca import frames

    model, recipe = load_with_recipe(args.model)
    explanation = frames.explain(model, *_find_row(recipe, args))
    if args.json:
        print(json.dumps({"row": args.row, **explanation.to_dict()}))
        return 0
    predicted = ", ".join(sorted(map(shown, explanation.predicted))) or "no label"
    print(f"Row {args.row} of {shown(args.data)}: {predicted}\n\n{_folded(str(explanation))}")
    return 0


def _folded(text: str) -> str:
    """Wrap sentences to the width of the terminal, but not tables or redirected output."""
    if not sys.stdout.isatty():
        return text
    width = get_terminal_size().columns
    return "\n".join(
        line if "  " in line else fill(line, width, subsequent_indent="  ", break_on_hyphens=False)
        for line in text.split("\n")
    )


def _find_row(recipe: Recipe, args: argparse.Namespace) -> tuple[NDArray[Any], CellsByColumn]:
    from mlca.tables.informative import dense_row

    with opened(args) as file:
        report_differences(file, recipe, labels=False)
        last = 0
        for batch in file.batches(recipe.layout, Faults(args), labels=False):
            if args.row in batch.numbers:
                found = batch.where([number == args.row for number in batch.numbers])
                return dense_row(found.X, 0), found.cells
            last = batch.numbers[-1]
            if args.row < last:
                raise ValueError(f"{args.data}: row {args.row} cannot be read")
    raise ValueError(f"{args.data}: there is no row {args.row}; the last readable row is {last}")

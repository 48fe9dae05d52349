"""Predict the labels of new rows.

The result has a row for every row of the file: its number, its labels, most likely first, and their
probabilities. By default these are the labels more likely than not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mlca.cli.predictions import KINDS, Prediction, writing
from mlca.cli.progress import Progress
from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_model_argument,
    load_with_recipe,
    oddities,
    oddities_in_words,
    opened,
    positive,
    tell_differences,
)

if TYPE_CHECKING:
    from mlca.tables.layout import Layout

_SEPARATORS = "|;,\t"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="-",
        type=_output,
        help=f"{', '.join(KINDS)}, or - for standard output (default)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--top", type=positive, metavar="K", help="the K most likely labels")
    which.add_argument(
        "--threshold", type=float, metavar="P", default=0.5, help="labels more likely than P (default 0.5)"
    )


def run(args: argparse.Namespace) -> int:
    """Predict and write; return the exit code."""
    model, recipe = load_with_recipe(args.model)
    names = [str(name) for name in model.classes_.tolist()]
    try:
        with opened(args) as file:
            differences = tell_differences(file, recipe, labels=False)
            separator = _separator(recipe.layout, names)
            with writing(args.out, separator, as_json=args.json) as writer, Progress() as progress:
                for batch in file.batches(recipe.layout, Faults(args), labels=False):
                    probabilities = model.predict_proba(batch.X)
                    writer.write(list(_chosen(batch.numbers, names, probabilities, args)))
                    progress.advance(len(batch.numbers), file.fraction(), model.n_nodes_)
                sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if args.json and args.out != "-":
        print(json.dumps({"rows": progress.rows, "out": args.out, "differences": differences, **oddities(file)}))
    elif not args.json:
        print("\n".join([f"Predicted {progress.rows:,} rows", *oddities_in_words(file)]), file=sys.stderr)
    return 0


def _chosen(numbers: list[int], names: list[str], probabilities: Any, args: argparse.Namespace) -> Iterator[Prediction]:
    """Yield the predictions of a batch."""
    import numpy as np

    order = np.argsort(-probabilities, axis=1, kind="stable")[:, : args.top]
    for number, places, own in zip(numbers, order, probabilities, strict=True):
        if args.top is None:
            places = places[own[places] > args.threshold]
        yield Prediction(number, [names[place] for place in places], own[places].tolist())


def _separator(layout: Layout, names: list[str]) -> str:
    """Return the separator of the training file, or one that no label has."""
    from mlca.tables.layout import TableLayout

    if isinstance(layout, TableLayout) and layout.labels.separator is not None:
        return layout.labels.separator
    return next((mark for mark in _SEPARATORS if not any(mark in name for name in names)), _SEPARATORS[0])


def _output(word: str) -> str:
    if word != "-" and PurePath(word).suffix not in KINDS:
        raise argparse.ArgumentTypeError(f"{word!r} ends in none of {', '.join(KINDS)}, and is not -")
    return word

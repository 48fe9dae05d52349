"""Evaluate a model on rows whose labels are known.

A label that the model has never learned counts as missed. With --prequential, each row is predicted and then learned,
in memory only: the model file does not change.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mlca.cli.batch_learning import as_learned, growing_batches, take_names
from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_label_arguments,
    add_model_argument,
    load_to_learn,
    oddities,
    oddities_in_words,
    opened,
    reject_overwriting,
    report_differences,
    with_labels,
)
from mlca.messages import shown, sparkline
from mlca.optional import needing
from mlca.progress import Progress, has_terminal

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.metrics import Evaluation, Prequential, Record
    from mlca.tables.batches import TableFile
    from mlca.tables.recipe import Recipe

# Default number of rows per window of the curve, and number of points per window.
_WINDOW = 1000
_POINTS = 5
_TABLE_LINES = 20
_PICTURES = (".png", ".svg", ".pdf")
_CURVES = {"exact_match": "exact match", "example_f1": "F1 by example", "hamming_loss": "Hamming loss"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    add_data_arguments(parser)
    add_label_arguments(parser)
    parser.add_argument("--prequential", action="store_true", help="test-then-train evaluation with a curve")
    parser.add_argument(
        "--picture", metavar="FILE", help="file for a plot of the --prequential curve: .png, .svg or .pdf"
    )
    parser.add_argument(
        "--curve-window",
        type=int,
        default=_WINDOW,
        metavar="ROWS",
        help=f"number of rows that each point of the --prequential curve covers (default: {_WINDOW})",
    )
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Evaluate the model and print the result; return the exit code."""
    if args.picture and not args.prequential:
        args.usage_error("--picture needs --prequential, whose curve it draws; add --prequential")
    if args.picture and PurePath(args.picture).suffix not in _PICTURES:
        args.usage_error(f"--picture must end in one of {', '.join(_PICTURES)}, not {args.picture}")
    if args.curve_window < _POINTS:
        args.usage_error(f"--curve-window must be at least {_POINTS} rows, not {args.curve_window}")
    if args.picture:
        _require_drawing(args)
    model, recipe = load_to_learn(args)
    with opened(args) as file:
        recipe = with_labels(recipe, file, args)
        report_differences(file, recipe, labels=True, learning=args.prequential)
        if args.prequential:
            return _run_prequential(model, recipe, file, args)
        measures, unknown = measure(model, recipe, file, Faults(args))
    if args.json:
        facts = {"measures": nan_as_null(measures.as_dict()), "unknown_labels": unknown, **oddities(file)}
        print(json.dumps(facts))
    else:
        remarks = oddities_in_words(file)
        if unknown:
            remarks.append(f"labels that the model does not know, counted as missed: {', '.join(map(shown, unknown))}")
        print("\n".join([str(measures), *remarks]))
    return 0


def measure(model: MLCA, recipe: Recipe, file: TableFile, faults: Faults) -> tuple[Evaluation, list[str]]:
    """Predict the rows of a file; return the measures, and the labels unknown to the model."""
    import numpy as np

    from mlca.metrics import evaluate
    from mlca.targets import LabelSet, read_targets

    probabilities, chosen, truth = [], [], []
    with Progress() as progress:
        for batch in file.batches(recipe.layout, faults):
            answers = model.predict_details(batch.X)
            probabilities.append(answers.probabilities)
            chosen.append(answers.chosen(model.objective))
            truth += batch.labels
            progress.advance(len(batch.numbers), file.fraction(), model.n_nodes_)
    if not truth:
        raise ValueError(f"{file.source.name}: there are no valid rows to evaluate")
    known = tuple(str(name) for name in model.classes_.tolist())
    labels, rows = read_targets(truth, LabelSet(known))
    unknown = [str(name) for name in labels.names[len(known) :]]
    scores, predicted = (np.pad(np.vstack(parts), ((0, 0), (0, len(unknown)))) for parts in (probabilities, chosen))
    return evaluate(rows.to_csr(), scores, Y_pred=predicted), unknown


def _run_prequential(model: MLCA, recipe: Recipe, file: TableFile, args: argparse.Namespace) -> int:
    from mlca.metrics import prequential

    take_names(model)
    with _live_curve() as show:
        steps = _steps(model, recipe, file, Faults(args))
        result = prequential(model, steps, every=args.curve_window // _POINTS, window=args.curve_window, on_record=show)
    if not result.records:
        raise ValueError(f"{file.source.name}: there are no valid rows to evaluate")
    if args.picture:
        _draw(result, args.picture)
    if args.json:
        records = [nan_as_null(record.as_dict()) for record in result.records]
        alarms = [asdict(alarm) for alarm in result.alarms]
        print(json.dumps({"records": records, "window": result.window, "alarms": alarms, **oddities(file)}))
    else:
        curves = _curves_in_words(list(result.records), result.window)
        print("\n".join([str(_thinned(result)), "", *curves, *oddities_in_words(file)]))
    return 0


def _thinned(result: Prequential) -> Prequential:
    """Return the result with at most 20 records, evenly spaced, including the last."""
    step = -(-len(result.records) // _TABLE_LINES)
    return replace(result, records=result.records[::-step][::-1])


def _steps(model: MLCA, recipe: Recipe, file: TableFile, faults: Faults) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the rows of a file one by one, and add new columns to the model."""
    from mlca.frames import widen_model

    for batch in growing_batches(model, file, recipe.layout, faults):
        widen_model(model, batch.layout)
        labels = as_learned(model, batch)
        for row in range(len(batch.numbers)):
            yield batch.X[row : row + 1], labels[row : row + 1]


@contextmanager
def _live_curve() -> Iterator[Callable[[Record], None] | None]:
    """Yield a function that shows the growing curve on a terminal; None without a terminal."""
    if not has_terminal():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    records: list[Record] = []
    with Live(console=Console(stderr=True), transient=True) as live:

        def show(record: Record) -> None:
            records.append(record)
            live.update("\n".join(_curves_in_words(records, None)))

        yield show


def _curves_in_words(records: list[Record], window: int | None) -> list[str]:
    """Return lines of text with a sparkline per measure, scaled from 0 to 1."""
    last = records[-1]
    lines = [
        f"{last.row:,} rows, {last.n_nodes or 0:,} nodes, {last.n_labels:,} labels, {last.rows_per_second:,.0f} rows/s"
    ]
    if window is not None:
        lines[0] = (
            f"measures over the last {window:,} rows, from 0 to 1; one block per {window // _POINTS} or more rows:"
        )
    for name, title in _CURVES.items():
        values = [getattr(record.windowed, name) for record in records]
        lines.append(f"{title:<13} {sparkline(values)} {values[-1]:.3f}")
    return lines


def _require_drawing(args: argparse.Namespace) -> None:
    """Check --picture before the evaluation, so that an error does not lose the results."""
    from mlca.replacing import check_replaceable

    with needing("--picture", "plots"):
        import matplotlib
    matplotlib.use("agg")
    check_replaceable(args.picture)
    reject_overwriting(args.picture, args.data, args.model, option="--picture")


def _draw(result: Prequential, picture: str) -> None:
    from mlca.plots import plot_stream
    from mlca.replacing import replacing

    figure = plot_stream(result).get_figure(root=True)
    if figure is not None:
        with replacing(picture) as file:
            figure.savefig(file, format=PurePath(picture).suffix[1:])
    print(f"Drew {shown(picture)}", file=sys.stderr)


def nan_as_null(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with None instead of NaN, which JSON lacks."""
    return {name: None if isinstance(x, float) and math.isnan(x) else x for name, x in values.items()}

"""Predict the labels of new rows.

The output has one row per row of the file: its number, its labels with the most likely first, their probabilities, and
its novelty, from 0 (usual) to 1 (unlike any learned row). By default, labels with a probability above 0.5 are
predicted; if there are none, the most likely label, unless "no label" is more likely. Change this with `--top`,
`--threshold` or `--objective`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mlca.cli.predictions import KINDS, Prediction, require_free_name, writing
from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_model_argument,
    as_float,
    load_with_recipe,
    oddities,
    oddities_in_words,
    opened,
    positive,
    reject_overwriting,
    report_differences,
)
from mlca.messages import shown
from mlca.options import OBJECTIVES, decision_for
from mlca.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mlca.learner.core import Answers
    from mlca.tables.batches import Batch, TableFile
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
        help=f"output file: {', '.join(KINDS)}, or - (default: -, standard output)",
    )
    parser.add_argument(
        "--id", metavar="COLUMN", help="row-ID column, copied to the output (default: that of `train --id`)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--top", type=positive, metavar="K", help="number of labels per row: the K most likely")
    which.add_argument(
        "--threshold",
        type=_threshold,
        action="append",
        metavar="[LABEL=]P",
        help="probability above which a label is predicted; LABEL=P, which may be repeated, sets it for one label "
        "(default: the objective decides)",
    )
    which.add_argument(
        "--objective",
        choices=OBJECTIVES,
        metavar="MEASURE",
        help=f"measure that predictions optimise: {', '.join(OBJECTIVES)} (default: that of the model)",
    )


def run(args: argparse.Namespace) -> int:
    """Predict the rows of the file and write the predictions; return the exit code."""
    from mlca.learner.core import Answers
    from mlca.tables.recipe import Recipe
    from mlca.validation import check_objective

    reject_overwriting(args.out, args.data, args.model)
    model, recipe = load_with_recipe(args.model)
    names = [str(name) for name in model.classes_.tolist()]
    objective = args.objective or model.objective
    check_objective(objective, decision_for(model.decision, model.similarity))
    choose = partial(Answers.chosen, objective=objective, threshold=_cuts(args.threshold, names))
    with opened(args) as file:
        layout = _with_id(recipe.layout, args.id)
        differences = report_differences(file, Recipe.by_layout(layout), labels=False)
        separator = _separator(recipe.layout, names)
        identity = _carried(layout, file, args)
        with writing(args.out, separator, identity, as_json=args.json) as writer, Progress() as progress:
            for batch in file.batches(layout, Faults(args), labels=False):
                writer.write(list(_predictions(batch, names, model.predict_details(batch.X), choose, args.top)))
                progress.advance(len(batch.numbers), file.fraction(), model.n_nodes_)
    if args.json and args.out != "-":
        print(json.dumps({"rows": progress.rows, "out": args.out, "differences": differences, **oddities(file)}))
    elif not args.json:
        print("\n".join([f"Predicted {progress.rows:,} rows", *oddities_in_words(file)]), file=sys.stderr)
    return 0


def _with_id(layout: Layout, column: str | None) -> Layout:
    """Return the layout with the user's ID column, which is copied to the output."""
    from mlca.tables.layout import TableLayout

    if column is None:
        return layout
    if not isinstance(layout, TableLayout) or column in [known.name for known in layout.learned]:
        raise ValueError(
            f"--id {column}: the model learned this column, or has no columns; an ID column is copied, not learned"
        )
    return replace(layout, id=column)


def _carried(layout: Layout, file: TableFile, args: argparse.Namespace) -> str | None:
    """Return the ID column of the output, or None; raise ValueError if --id is not a column."""
    from mlca.tables.columns import names_of
    from mlca.tables.layout import TableLayout

    identity = layout.id if isinstance(layout, TableLayout) else None
    require_free_name(identity)
    if identity is None or identity in file.source.columns:
        return identity
    if args.id is not None:
        names_of([identity], file.source.columns, file.source.name)
    print(
        shown(f"{file.source.name}: there is no ID column {identity!r}; rows are identified by number only"),
        file=sys.stderr,
    )
    return None


def _cuts(given: list[tuple[str | None, float]] | None, names: list[str]) -> Any:
    """Return a threshold per label; a threshold without a label applies to all others."""
    from mlca.validation import read_threshold

    if not given:
        return None
    of_others = [p for label, p in given if label is None] or [0.5]
    return read_threshold(
        dict.fromkeys(names, of_others[-1]) | {label: p for label, p in given if label is not None}, names
    )


def _predictions(
    batch: Batch, names: list[str], answers: Answers, choose: Callable[[Answers], NDArray[np.bool_]], top: int | None
) -> Iterator[Prediction]:
    """Yield a prediction for each row of a batch."""
    import numpy as np

    probabilities, chosen = answers.probabilities, choose(answers)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]
    ids = batch.ids or [""] * len(batch.numbers)
    novelty = [None] * len(batch.numbers) if answers.novelty is None else answers.novelty.tolist()
    rows = zip(batch.numbers, ids, order, probabilities, chosen, novelty, strict=True)
    for number, identity, places, likely, fits, new in rows:
        if top is None:
            places = places[fits[places]]
        yield Prediction(number, [names[place] for place in places], likely[places].tolist(), identity, new)


def _separator(layout: Layout, names: list[str]) -> str:
    """Return the label separator of the training file, or one that no label contains."""
    from mlca.tables.layout import TableLayout

    labels = layout.labels if isinstance(layout, TableLayout) else None
    if labels is not None and labels.separator is not None:
        return labels.separator
    return next((mark for mark in _SEPARATORS if not any(mark in name for name in names)), _SEPARATORS[0])


def _threshold(word: str) -> tuple[str | None, float]:
    label, equals, number = word.rpartition("=")
    probability = as_float(number)
    if not 0 <= probability <= 1:
        raise argparse.ArgumentTypeError(f"{word!r} is neither a number from 0 to 1 nor LABEL=NUMBER")
    return (label if equals else None), probability


def _output(word: str) -> str:
    if word != "-" and PurePath(word).suffix not in KINDS:
        raise argparse.ArgumentTypeError(f"{word!r} must end in one of {', '.join(KINDS)}, or be -")
    return word

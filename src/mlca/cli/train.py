"""Train a model from a table: CSV, TSV, JSON lines, Parquet, ARFF or XC text, of any size.

The first 1000 rows decide the kind of each column: number, boolean, date, category, free text, or ID, which is left
out. The choice is printed, can be overridden, and is stored in the model file for later files. Later rows may have
new categories. Missing values are counted and reported. Ctrl-C saves the rows learned so far.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mlca.cli.batch_learning import learn_and_save
from mlca.cli.evaluate import measure, nan_as_null
from mlca.cli.model_options import add_column_kinds, add_model_parameters, model_from_options
from mlca.cli.predictions import require_free_name
from mlca.cli.repeated import Gathered
from mlca.cli.tablefiles import Faults, add_data_arguments, as_float, opened, reject_overwriting
from mlca.limits import TEXT_FEATURES
from mlca.messages import shown

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.cli.tuning import Tuning
    from mlca.metrics import Evaluation
    from mlca.tables.batches import TableFile
    from mlca.tables.kinds import Column
    from mlca.tables.layout import LabelLayout, Layout
    from mlca.tables.recipe import Recipe

# Largest number of columns listed one by one; the remaining columns are counted by kind.
_SHOWN_COLUMNS = 20

# A hint is printed if the spreads of numeric columns differ by more than this factor.
_UNEVEN = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data_arguments(parser)
    parser.add_argument(
        "--out", metavar="MODEL", required=True, help="model file to write; an existing file is replaced"
    )
    columns = parser.add_argument_group(
        "columns", "comma-separated names, or one per option; patterns such as tag_* are supported"
    )
    columns.add_argument(
        "--labels",
        action=Gathered,
        metavar="COLUMNS",
        help="one column of labels, one column of 0 and 1 per label, or the XML file of a Mulan dataset",
    )
    columns.add_argument("--separator", metavar="TEXT", help="separator between labels (default: detected, | ; or ,)")
    columns.add_argument("--numeric", action=Gathered, metavar="COLUMNS", help="numeric columns")
    columns.add_argument("--categorical", action=Gathered, metavar="COLUMNS", help="categorical columns")
    columns.add_argument("--text", action=Gathered, metavar="COLUMNS", help="columns of free text")
    columns.add_argument("--ignore", action=Gathered, metavar="COLUMNS", help="columns to leave out")
    add_column_kinds(columns)
    columns.add_argument(
        "--id",
        metavar="COLUMN",
        help="row-ID column: not learned, copied by `predict`, listed by `explain` (default: none)",
    )
    columns.add_argument(
        "--decimal", choices=(".", ","), metavar="CHAR", help="decimal separator, . or , (default: detected)"
    )
    parser.add_argument(
        "--holdout", type=_share, metavar="SHARE", help="share of rows that are held out for evaluation, such as 0.2"
    )
    parser.add_argument(
        "--tune",
        action="store_true",
        help="choose vigilance and attributes by test-then-train on the first 1000 rows; with --published, "
        "vigilance only",
    )
    add_model_parameters(parser, recency=False)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Train a model and save it; return the exit code."""
    from mlca.replacing import check_replaceable
    from mlca.tables.recipe import Recipe
    from mlca.tables.table_learner import recipe_of

    if args.tune and (args.vigilance is not None or args.attributes is not None):
        args.usage_error("--tune chooses --vigilance and --attributes itself; leave these out, or leave out --tune")
    check_replaceable(args.out)
    reject_overwriting(args.out, args.data)
    require_free_name(args.id)
    _require_two_readings(args)
    model, settings, kept_apart = (
        model_from_options(args),
        _column_settings(args),
        partial(is_kept_apart, share=args.holdout or 0.0),
    )
    with opened(args, lambda number: not kept_apart(number)) as file:
        layout = file.decide_layout(args.labels, args.separator, settings, args.id)
        tuning = _tune(model, layout, args, kept_apart) if args.tune else None
        hints = [] if model.attributes == "individual" else _hints(file, layout)
        if not args.json:
            tuned = [] if tuning is None else tuning.in_words()
            print("\n".join([*choices_in_words(file, layout), *tuned, *hints]), flush=True)
        recipe = Recipe.by_layout(layout)
        learned = learn_and_save(
            model,
            recipe,
            file,
            Faults(args),
            args.out,
            partial(_require_rows_apart, args, file, kept_apart),
            settings=settings,
        )
    kept = recipe_of(model)
    measures = _measure(model, kept, args, kept_apart) if args.holdout and kept is not None else None
    if args.json:
        extra: dict[str, Any] = {"recipe": layout.to_json()}
        if tuning is not None:
            extra["tuning"] = [trial.facts() for trial in tuning.trials]
        if measures is not None:
            extra["holdout"] = nan_as_null(measures.as_dict())
        print(json.dumps({**learned.facts(model, args.out), **extra}))
    else:
        on_the_rest = [] if measures is None else [f"On the {args.holdout:.0%} of the rows held out:", str(measures)]
        print("\n".join([*learned.in_words(model, args.out), *on_the_rest]))
    return 130 if learned.interrupted else 0


def _require_two_readings(args: argparse.Namespace) -> None:
    """Raise ValueError if the file must be read twice but can be read only once."""
    from mlca.tables.byte_streams import STANDARD_INPUT, is_read_once

    for option, wanted in (("--holdout", args.holdout), ("--tune", args.tune)):
        if wanted and is_read_once(args.data):
            named = "standard input" if args.data == STANDARD_INPUT else f"{args.data}, a pipe,"
            raise ValueError(
                f"{option} reads the file twice, and {named} can be read only once; save it to a file first"
            )


def is_kept_apart(number: int, share: float) -> bool:
    """Return whether a row is held out, by a hash of its number: the same in every pass."""
    return zlib.crc32(number.to_bytes(8, "big")) < share * 2**32


def _require_rows_apart(args: argparse.Namespace, file: TableFile, kept_apart: Callable[[int], bool]) -> None:
    """Raise ValueError if no row is held out, before anything is saved."""
    if args.holdout and not any(map(kept_apart, range(1, file.n_read + 1))):
        raise ValueError(f"--holdout {args.holdout:g} holds out none of the {file.n_read:,} rows; use a larger share")


def _tune(model: MLCA, layout: Layout, args: argparse.Namespace, kept_apart: Callable[[int], bool]) -> Tuning:
    """Tune parameters on the first rows and set the best values in the model."""
    from itertools import islice

    from mlca.cli.tuning import tune
    from mlca.tables.batches import BATCH_ROWS
    from mlca.tables.columns import FIRST_ROWS

    with opened(args, lambda number: not kept_apart(number)) as file:
        batches = list(islice(file.batches(layout, Faults(args)), -(-FIRST_ROWS // BATCH_ROWS)))
    if not batches:
        raise ValueError(f"{args.data}: no rows left for tuning")
    tuning = tune(model, batches, None if args.published is None else (model.attributes,))
    model.set_params(vigilance=tuning.best.vigilance, attributes=tuning.best.attributes)
    return tuning


def _measure(
    model: MLCA, recipe: Recipe, args: argparse.Namespace, kept_apart: Callable[[int], bool]
) -> Evaluation | None:
    """Evaluate the model on the held-out rows."""
    with opened(args, kept_apart) as file:
        return measure(model, recipe, file, Faults(args))[0]


def _share(word: str) -> float:
    share = as_float(word)
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a share between 0 and 1")
    return share


def _column_settings(args: argparse.Namespace) -> Any:
    from mlca.tables.columns import ColumnSettings

    def names(text: str | None) -> tuple[str, ...]:
        return tuple(word.strip() for word in text.split(",")) if text else ()

    given = ColumnSettings.of_kinds(dict(args.column))
    return ColumnSettings(
        numeric=(*names(args.numeric), *given.numeric),
        categorical=(*names(args.categorical), *given.categorical),
        text=(*names(args.text), *given.text),
        ignore=(*names(args.ignore), *given.ignore),
        vector=given.vector,
        decimal=args.decimal,
        text_features=args.text_features or TEXT_FEATURES,
    )


def choices_in_words(file: TableFile, layout: Layout) -> list[str]:
    """Return lines of text that list the labels, and the kind of each column."""
    from mlca.tables.layout import XcLayout

    if isinstance(layout, XcLayout):
        return [f"{shown(file.source.name)}: {layout.n_features:,} features, numbered from {layout.first}"]
    width = max(len(shown(column.name)) for column in layout.columns[:_SHOWN_COLUMNS])
    lines = [shown(f"{file.source.name}: labels from {_labels_in_words(file, layout.labels)}")]
    lines += [
        f"  {shown(column.name):<{width}}  {column.kind:<11}  {shown(_about(column))}"
        for column in layout.columns[:_SHOWN_COLUMNS]
    ]
    rest = [column.kind for column in layout.columns[_SHOWN_COLUMNS:]]
    if rest:
        kinds = ", ".join(f"{rest.count(kind):,} {kind}" for kind in dict.fromkeys(rest))
        lines.append(f"  and {len(rest):,} more: {kinds}")
    if layout.id is not None:
        lines.append(f"  {shown(layout.id):<{width}}  {'id':<11}  not learned, copied by `predict`")
    return lines


def _about(column: Column) -> str:
    """Return a description of how a column is encoded."""
    from mlca.tables.kinds import Boolean, Categorical, Date, Numeric, OneHot, Text, Vector

    match column:
        case Numeric():
            how = "scaled" if (column.centre, column.spread) != (0.0, 1.0) else "unchanged"
            return f"{how}{', with decimal commas' if column.comma else ''}"
        case Boolean():
            return "1 and 0"
        case Categorical() | OneHot():
            n = len(column.values)
            return f"{n} values: {', '.join(column.values[:6])}" + (" ..." if n > 6 else "")
        case Date():
            return "time" + "".join(f", position in the {cycle}" for cycle in column.cycles)
        case Text():
            return f"words and pairs of words, hashed to {column.width:,} features"
        case Vector():
            return f"{column.width:,} numbers"
        case _:
            return column.reason


def _labels_in_words(file: TableFile, labels: LabelLayout | None) -> str:
    assert labels is not None  # a file opened for training has labels
    if labels.form == "flags":
        how = f"the {len(labels.among(file.source.columns))} columns of 0 and 1 {', '.join(labels.columns[:6])}"
        how += " ..." if len(labels.columns) > 6 else ""
    elif labels.form == "lists":
        how = f"the lists of column {labels.columns[0]!r}"
    elif labels.separator is None:
        how = f"column {labels.columns[0]!r}, one per cell (no | ; or , found; set another separator with --separator)"
    else:
        how = f"column {labels.columns[0]!r}, with {labels.separator!r} between them"
    return how


def _hints(file: TableFile, layout: Layout) -> list[str]:
    """Return a hint if columns with very different spreads share a bandwidth."""
    from mlca.tables.kinds import Numeric
    from mlca.tables.layout import TableLayout

    if not isinstance(layout, TableLayout):
        return []
    spreads = file.spreads([column for column in layout.columns if isinstance(column, Numeric)])
    if not spreads or max(spreads.values()) < _UNEVEN * min(spreads.values()):
        return []
    wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
    return [
        f"Hint: {wide!r} has {spreads[wide] / spreads[narrow]:,.0f} times the spread of {narrow!r}, which therefore "
        "hardly affects the nodes; rescale, or use one bandwidth per column: --attributes individual"
    ]

"""Learn a model from a table: CSV, TSV, JSON lines, Parquet, ARFF or XC text, of any size.

The first rows decide which columns are numbers and which are categories; the choice is shown and can be
overridden. The model file keeps it, so that later files are read alike. A missing number becomes the median
of the first rows; a category becomes a column of 0 and 1 for each of its values, all 0 where it is missing or
was not among the first rows; both are reported. Ctrl-C saves what was learned.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlca.cli.learning import learn_and_save
from mlca.cli.tablefiles import Faults, add_data_arguments, opened

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.tables.batches import TableFile
    from mlca.tables.layout import Layout

# Columns that are shown one by one; of more, the kinds are counted.
_SHOWN_COLUMNS = 20

# Spreads of numeric columns that differ by more than this factor deserve a hint.
_UNEVEN = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data_arguments(parser)
    parser.add_argument("--out", metavar="MODEL", required=True, help="where the model goes; an old file is replaced")
    columns = parser.add_argument_group("columns", "names with commas between them; patterns such as tag_* are welcome")
    columns.add_argument(
        "--labels",
        metavar="COLUMNS",
        help="one column of labels, or one column of 0 and 1 a label, or Mulan's XML file",
    )
    columns.add_argument("--separator", metavar="TEXT", help="what stands between labels (default: | ; or , if found)")
    columns.add_argument("--numeric", metavar="COLUMNS", help="columns of numbers")
    columns.add_argument("--categorical", metavar="COLUMNS", help="columns of categories")
    columns.add_argument("--ignore", metavar="COLUMNS", help="columns that are not learned")
    add_model_parameters(parser)


def add_model_parameters(parser: argparse.ArgumentParser) -> None:
    """Declare the parameters of a new model."""
    model = parser.add_argument_group("model", "see the documentation of mlca.MLCA")
    model.add_argument("--vigilance", type=float, metavar="V", help="0 keeps every row, 0.3 compresses (default 0.01)")
    model.add_argument("--neighbors", type=int, metavar="N", help="nodes that vote (default 10)")
    model.add_argument("--window", type=int, metavar="N", help="latest rows that bandwidths come from (default 50)")
    model.add_argument("--smoothing", type=float, metavar="S", help="of probabilities (default 1)")
    model.add_argument(
        "--attributes",
        choices=("common", "individual", "clustered"),
        help="one bandwidth for all columns, one a column, or one a group of columns (default common)",
    )
    model.add_argument("--rule", choices=("published", "released", "text"), help="how nodes move (default published)")
    model.add_argument("--vote", choices=("counts", "frequencies"), help="how nodes vote (default counts)")
    model.add_argument("--seed", type=int, metavar="N", help="for --attributes clustered (default 0)")
    model.add_argument("--jobs", type=int, metavar="N", help="threads; -1 is one a core (default 1)")


_PARAMETERS = {
    "vigilance": "vigilance",
    "neighbors": "n_neighbors",
    "window": "window",
    "smoothing": "smoothing",
    "attributes": "attributes",
    "rule": "rule",
    "vote": "vote",
    "seed": "random_state",
    "jobs": "n_jobs",
}


def run(args: argparse.Namespace) -> int:
    """Train and save; return the exit code."""
    from mlca.tables.recipe import Recipe

    if not Path(args.out).absolute().parent.is_dir():
        raise ValueError(f"{args.out}: there is no such folder")
    model = _new_model(args)
    with opened(args) as file:
        layout = file.decide_layout(args.labels, args.separator, _wishes(args))
        hints = [] if model.attributes == "individual" else _hints(file, layout)
        if not args.json:
            print("\n".join([*_choices_in_words(file, layout), *hints]), flush=True)
        learned = learn_and_save(model, Recipe(layout), file, Faults(args), args.out)
    if args.json:
        print(json.dumps({**learned.facts(model, args.out), "recipe": layout.to_json()}))
    else:
        print("\n".join(learned.in_words(model, args.out)))
    return 130 if learned.interrupted else 0


def chosen_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the model that were given, by MLCA's names."""
    return {name: getattr(args, word) for word, name in _PARAMETERS.items() if getattr(args, word) is not None}


def _new_model(args: argparse.Namespace) -> MLCA:
    from mlca.classifier import MLCA

    model = MLCA(**chosen_parameters(args))
    model._check_parameters()
    return model


def _wishes(args: argparse.Namespace) -> Any:
    from mlca.tables.columns import Wishes

    def names(text: str | None) -> tuple[str, ...]:
        return tuple(word.strip() for word in text.split(",")) if text else ()

    return Wishes(names(args.numeric), names(args.categorical), names(args.ignore))


def _choices_in_words(file: TableFile, layout: Layout) -> list[str]:
    """Return what was decided about the columns."""
    from mlca.tables.layout import Categorical, Numeric, XcLayout

    if isinstance(layout, XcLayout):
        return [f"{file.source.name}: {layout.n_features:,} attributes, numbered from {layout.first}"]
    labels = layout.labels
    if labels.form == "flags":
        how = f"the {len(labels.among(file.source.columns))} columns of 0 and 1 {', '.join(labels.columns[:6])}"
        how += " ..." if len(labels.columns) > 6 else ""
    elif labels.form == "lists":
        how = f"the lists of column {labels.columns[0]!r}"
    elif labels.separator is None:
        how = f"column {labels.columns[0]!r}, one a cell (no | ; or , found: use --separator if there is another)"
    else:
        how = f"column {labels.columns[0]!r}, with {labels.separator!r} between them"
    lines = [f"{file.source.name}: labels from {how}"]
    width = max(len(column.name) for column in layout.columns[:_SHOWN_COLUMNS])
    for column in layout.columns[:_SHOWN_COLUMNS]:
        match column:
            case Numeric():
                about = f"missing becomes {column.fill:.6g}"
            case Categorical():
                about = f"{column.width} values: {', '.join(column.values[:6])}" + (" ..." if column.width > 6 else "")
            case _:
                about = column.reason
        lines.append(f"  {column.name:<{width}}  {column.kind:<11}  {about}")
    rest = [column.kind for column in layout.columns[_SHOWN_COLUMNS:]]
    if rest:
        kinds = ", ".join(f"{rest.count(kind):,} {kind}" for kind in dict.fromkeys(rest))
        lines.append(f"  and {len(rest):,} more: {kinds}")
    return lines


def _hints(file: TableFile, layout: Layout) -> list[str]:
    """Return a hint if columns of very different spread are to share a bandwidth."""
    from mlca.tables.layout import Numeric, TableLayout

    if not isinstance(layout, TableLayout):
        return []
    spreads = file.spreads([column for column in layout.columns if isinstance(column, Numeric)])
    if not spreads or max(spreads.values()) < _UNEVEN * min(spreads.values()):
        return []
    wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
    return [
        f"Hint: {wide!r} spreads {spreads[wide] / spreads[narrow]:,.0f} times as wide as {narrow!r}, so the latter "
        "hardly counts; rescale, or give each column its own bandwidth: --attributes individual"
    ]

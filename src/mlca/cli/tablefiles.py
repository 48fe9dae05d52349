"""Options and functions shared by the commands that read data files."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlca.cli.repeated import Gathered
from mlca.messages import shown

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.tables.batches import TableFile
    from mlca.tables.recipe import Recipe

FORMATS = ("csv", "tsv", "jsonl", "parquet", "arff", "xc")

# Largest number of skipped rows that are reported one by one; additional rows are only counted.
_NAMED_FAULTS = 10


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument for the model file."""
    parser.add_argument("model", metavar="MODEL", help="model file")


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the data file and the options for reading it."""
    parser.add_argument("data", metavar="FILE", help="data file, plain or gzipped; - is standard input")
    parser.add_argument("--format", choices=FORMATS, help="file format (default: by suffix or first bytes)")
    parser.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="handling of rows that cannot be read (default: stop, without writing a file)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")


def add_label_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the label columns and the separator of labels."""
    parser.add_argument(
        "--labels", action=Gathered, metavar="COLUMNS", help="label columns, for a model trained in Python"
    )
    parser.add_argument("--separator", metavar="TEXT", help="separator between labels (default: detected, | ; or ,)")


def positive(word: str) -> int:
    """Parse a positive integer, for argparse."""
    if not (word.isdecimal() and int(word) > 0):
        raise argparse.ArgumentTypeError(f"{word!r} is not a number above 0")
    return int(word)


def as_float(word: str) -> float:
    """Convert text to a number; return NaN, which range checks reject, for other text."""
    try:
        return float(word)
    except ValueError:
        return math.nan


@contextmanager
def opened(args: argparse.Namespace, wanted: Callable[[int], bool] = lambda number: True) -> Iterator[TableFile]:
    """Open the data file and examine its first rows; `wanted` selects rows by number."""
    from mlca.tables.batches import TableFile
    from mlca.tables.byte_streams import ByteStream
    from mlca.tables.formats import open_source

    with ByteStream(args.data) as stream:
        yield TableFile(open_source(stream, args.format), wanted)


def load_with_recipe_if_any(path: str) -> tuple[MLCA, Recipe | None]:
    """Load a model, and its recipe if it was trained on a table."""
    from mlca.classifier import load
    from mlca.tables.table_learner import recipe_for

    model = load(path)
    return model, recipe_for(model)


def load_with_recipe(path: str) -> tuple[MLCA, Recipe]:
    """Load a model with its recipe; raise ValueError if it has none."""
    from mlca.tables.table_learner import set_recipe

    model, recipe = load_with_recipe_if_any(path)
    if recipe is None:
        raise ValueError(
            f"{path}: the model has no column names, because it was trained in Python on rows without names; "
            "train it on a DataFrame, or use it from Python"
        )
    # From here on the model receives rows without names, encoded by the recipe.
    model.__dict__.pop("feature_names_in_", None)
    set_recipe(model, recipe)
    return model, recipe


def load_to_learn(args: argparse.Namespace) -> tuple[MLCA, Recipe]:
    """Load a model and its recipe; raise ValueError if no label columns are known."""
    from mlca.tables.layout import TableLayout

    model, recipe = load_with_recipe(args.model)
    if isinstance(recipe.layout, TableLayout) and recipe.layout.labels is None and args.labels is None:
        raise ValueError(f"{args.model}: trained in Python without label columns; name them, for example --labels tags")
    return model, recipe


def with_labels(recipe: Recipe, file: TableFile, args: argparse.Namespace) -> Recipe:
    """Return the recipe with the label columns of the user's options, else of the model."""
    from dataclasses import replace

    from mlca.tables.kinds import Ignored
    from mlca.tables.label_columns import SEPARATORS, decide_labels
    from mlca.tables.layout import TableLayout
    from mlca.tables.recipe import Recipe

    layout = recipe.layout
    if not isinstance(layout, TableLayout):
        return recipe
    if layout.labels is not None and args.labels is None:
        labels = layout.labels
        given = labels.form == "separated" and args.separator is not None
        if (labels.form == "lists" or given) and labels.columns[0] in file.source.columns:
            # The labels were lists, or the user passed --separator. From this file on, they may also be text with a
            # separator between names, either the user's or the one inferred from the file.
            found = decide_labels(file.source, file.first, labels.columns[0], args.separator)
            if found.form == "separated":
                labels = replace(found, separator=found.separator or SEPARATORS[0])
        return Recipe.by_layout(replace(layout, labels=labels), recipe.growth)
    labels = decide_labels(file.source, file.first, args.labels, args.separator)
    label_columns = set(labels.among(file.source.columns))
    learned = sorted(label_columns & {column.name for column in layout.learned} | label_columns & {layout.id})
    if learned:
        raise ValueError(
            f"{args.model}: the model learned from {', '.join(map(repr, learned))}, or copies it as an ID, so it "
            "cannot hold the labels; name another column in --labels"
        )
    # The previous label column must not become a feature: it would reveal the labels.
    before = () if layout.labels is None else layout.labels.among(file.source.columns)
    set_aside = [Ignored(name, "held the labels before") for name in before if name not in label_columns]
    others = [column for column in layout.columns if column.name not in {*label_columns, *before}]
    return Recipe.by_layout(replace(layout, labels=labels, columns=(*others, *set_aside)), recipe.growth)


def reject_overwriting(out: str, *read: str, option: str = "--out") -> None:
    """Raise ValueError if the output file is an input file, even under another name."""
    for path in read:
        if out != "-" and Path(out).exists() and Path(path).exists() and Path(out).samefile(path):
            raise ValueError(f"{option} {out}: this is {path}, an input that would be overwritten; name another file")


def report_differences(file: TableFile, recipe: Recipe, *, labels: bool, learning: bool = False) -> list[str]:
    """Compare a file with the recipe; print and return the acceptable differences."""
    from mlca.tables.differences import compare

    notes = compare(file, recipe.layout, labels=labels, learning=learning)
    for note in notes:
        print(shown(f"{file.source.name}: {note}"), file=sys.stderr)
    return notes


class Faults:
    """Handles unreadable rows: stops at the first one, or reports and skips each of them."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._stop = args.on_error == "stop"
        self._count = 0

    def __call__(self, sentence: str) -> None:
        """Stop at a faulty row, or report and skip it, depending on --on-error."""
        if self._stop:
            raise ValueError(f"{sentence}\nCorrect the row, or leave such rows out: --on-error skip")
        self._count += 1
        if self._count <= _NAMED_FAULTS:
            print(f"skipped {shown(sentence)}", file=sys.stderr)
        elif self._count == _NAMED_FAULTS + 1:
            print("additional skipped rows are only counted", file=sys.stderr)


def oddities(file: TableFile) -> dict[str, Any]:
    """Return the numbers of skipped rows, and of missing and unknown cells by column."""
    return {"skipped": file.n_faulty, "missing": dict(file.missing), "unseen": dict(file.unseen)}


def oddities_in_words(file: TableFile) -> list[str]:
    """Return lines of text about skipped rows, missing values and unknown values."""
    lines = []
    if file.n_faulty:
        lines.append(f"{file.n_faulty:,} rows could not be read and were skipped")
    if unread := getattr(file.source, "unread", None):
        named = ", ".join(map(shown, sorted(unread)))
        lines.append(f"names that appear only after the first 1000 objects, ignored: {named}")
    if file.missing:
        named = ", ".join(f"{shown(name)} {count:,}" for name, count in file.missing.most_common(8))
        lines.append(f"missing values, left out of comparisons: {named}")
    if file.unseen:
        named = ", ".join(f"{shown(value)} {count:,}" for value, count in file.unseen.most_common(8))
        lines.append(f"unknown values, treated as different from all known values: {named}")
    return lines

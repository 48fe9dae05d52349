"""Let a model go on learning from more rows; new labels are welcome.

The file is checked against the columns that the model was trained on. The model file is replaced when all
is learned, whole or not at all. Ctrl-C saves what was learned.
"""

from __future__ import annotations

import argparse
import json

from mlca.cli.learning import learn_and_save
from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_model_argument,
    load_with_recipe,
    opened,
    tell_differences,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.add_argument("--backup", action="store_true", help="keep the old model as MODEL.bak")


def run(args: argparse.Namespace) -> int:
    """Learn and replace the file; return the exit code."""
    model, recipe = load_with_recipe(args.model)
    with opened(args) as file:
        differences = tell_differences(file, recipe, labels=True)
        learned = learn_and_save(model, recipe, file, Faults(args), args.model, backup=args.backup)
    if args.json:
        print(json.dumps({**learned.facts(model, args.model), "differences": differences}))
    else:
        print("\n".join(learned.in_words(model, args.model)))
    return 130 if learned.interrupted else 0

"""Continue training a model with more rows.

New labels, categories and columns are supported. The columns of the file are compared with those of the model. The
model file is replaced atomically at the end. Concurrent updates of one model take turns. Ctrl-C saves the rows learned
so far.
"""

from __future__ import annotations

import argparse
import json
import shutil
import stat
from functools import partial
from pathlib import Path

from mlca.cli.batch_learning import learn_and_save
from mlca.cli.locking import ModelLock, locked
from mlca.cli.tablefiles import (
    Faults,
    add_data_arguments,
    add_label_arguments,
    add_model_argument,
    as_float,
    load_to_learn,
    opened,
    report_differences,
    with_labels,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    add_data_arguments(parser)
    add_label_arguments(parser)
    parser.add_argument("--backup", action="store_true", help="keep a copy of the old model as MODEL.bak")
    parser.add_argument(
        "--wait", type=_seconds, metavar="SECONDS", default=60.0, help="longest wait for another update (default: 60)"
    )


def run(args: argparse.Namespace) -> int:
    """Learn the rows and replace the model file; return the exit code."""
    with locked(args.model, args.wait) as lock:
        model, recipe = load_to_learn(args)
        with opened(args) as file:
            recipe = with_labels(recipe, file, args)
            differences = report_differences(file, recipe, labels=True, learning=True)
            prepare = partial(_prepare, args, lock)
            learned = learn_and_save(model, recipe, file, Faults(args), args.model, before_saving=prepare)
    if args.json:
        print(json.dumps({**learned.facts(model, args.model), "differences": differences}))
    else:
        print("\n".join(learned.in_words(model, args.model)))
    return 130 if learned.interrupted else 0


def _prepare(args: argparse.Namespace, lock: ModelLock) -> None:
    """Check the lock and write the backup, if requested, before the model is replaced."""
    from mlca.replacing import replacing

    lock.check()
    if args.backup:
        mode = stat.S_IMODE(Path(args.model).stat().st_mode)
        with Path(args.model).open("rb") as old, replacing(f"{args.model}.bak", mode) as copy:
            shutil.copyfileobj(old, copy)


def _seconds(word: str) -> float:
    seconds = as_float(word)
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of seconds")
    return seconds

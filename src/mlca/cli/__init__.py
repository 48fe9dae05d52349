"""The command line, with one module per command.

`main` parses the arguments, calls the command's module and returns its exit code. A command's module has
`configure(parser)`, which declares its options, and `run(args)`, which does the work and returns the exit code. Modules
import heavy packages inside `run`, so that `--help` does not wait for NumPy.

Shared modules: `tablefiles` opens data files and reports rows that cannot be read, `model_options` declares the
hyperparameters as options, `batch_learning` learns from a file and shows progress, `locking` serialises updates of a
model, `tuning` chooses hyperparameters, `predictions` writes results, and `repeated` rejects unknown and repeated
options.

Exit codes: 0 success, 1 failure while working (a bad file, a missing dataset), 2 wrong usage (an unknown option, or a
value that an option does not accept), 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mlca import __version__
from mlca.cli.repeated import OncePerOption
from mlca.messages import shown_lines

COMMANDS = {
    "train": "train a model from a table",
    "update": "continue training a model",
    "predict": "predict the labels of new rows",
    "evaluate": "evaluate a model on labelled rows",
    "inspect": "show the contents of a model",
    "explain": "explain the prediction of a row",
    "serve": "run an HTTP service that learns and predicts",
    "send": "send a table to a service",
    "datasets": "list, describe and fetch benchmark datasets",
    "reproduce": "run the paper's experiments and additional ones",
    "bench": "measure speed on this machine",
    "completion": "print a shell completion script",
}


def build_parser() -> argparse.ArgumentParser:
    """Declare every command with its options."""
    parser = OncePerOption(prog="mlca", description="Continual multi-label classification.")
    parser.add_argument("--version", action="version", version=f"mlca {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        module = import_module(f"mlca.cli.{name}")
        command = commands.add_parser(name, help=purpose, description=module.__doc__)
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.stderr is None:  # closed with 2>&-: discard messages, and occupy its descriptor
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    command = "mlca"
    try:
        args = build_parser().parse_args(words)
        command = f"mlca {args.command}"
        if sys.stdout is None:
            raise ValueError(f"standard output is closed; redirect it, for example: > {os.devnull}")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # unencodable characters become escapes
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ImportError) as error:
        print(f"{command}: {shown_lines(_in_words(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return 130


def _in_words(error: Exception) -> str:
    """Return the message of an error; for a file error, begin with the file's name."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        return f"standard output: {error.strerror}; free some space, or write elsewhere"
    if not isinstance(error, OSError) or error.filename is None or error.strerror is None:
        return str(error)
    remedy = "; check the name and the current folder" if isinstance(error, FileNotFoundError) else ""
    return f"{os.fsdecode(error.filename)}: {error.strerror}{remedy}"

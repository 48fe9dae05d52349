"""The command line: one module a command.

`main` reads the words, hands them to the command's module and returns its exit code. A command's
module offers `configure(parser)`, which declares its options, and `run(args)`, which does the work
and returns the exit code. Modules import what is heavy inside `run`, never at the top: `--help`
answers before NumPy could have been loaded.

What several commands share stands beside them: `tablefiles` opens a user's files and tells of rows that cannot be read,
`parameters` are those of a new model as options, `learning` goes through a file while a bar of `progress` moves,
`locking` lets updates of one model take turns, `tuning` chooses by the first rows, `predictions` writes what comes out,
`sparkline` draws a curve in one line, `repeated` says what becomes of an option that is given twice.

Exit codes: 0 done, 1 the work failed (a bad file, a missing dataset), 2 the words were wrong,
130 interrupted.
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
from mlca.showing import shown_lines

COMMANDS = {
    "train": "learn a model from a table of your own",
    "update": "let a model go on learning",
    "predict": "write the labels of new rows",
    "evaluate": "measure a model on rows whose labels are known",
    "inspect": "show what a model knows",
    "explain": "show why a row gets its labels",
    "serve": "serve a model that keeps learning, over HTTP",
    "send": "send a table to a service, as a stream",
    "datasets": "list, describe and fetch the field's datasets",
    "reproduce": "run the paper's experiments again, and those beyond it",
    "bench": "measure speed, in units of this machine's own limits",
    "completion": "print a script that completes commands in a shell",
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
    if sys.stderr is None:  # closed, as by 2>&-: what is told goes nowhere, and no file gets its place
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    command = "mlca"
    try:
        args = build_parser().parse_args(words)
        command = f"mlca {args.command}"
        if sys.stdout is None:
            raise ValueError(f"standard output is closed; send it somewhere, such as > {os.devnull}")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # what it cannot write is shown as an escape, as in files
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ImportError) as error:
        print(f"{command}: {shown_lines(_in_words(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return 130


def _in_words(error: Exception) -> str:
    """Return what went wrong: of a file its name first, rather than the system's number of the error."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        return f"standard output: {error.strerror}; make room, or send it elsewhere"  # files are named
    if not isinstance(error, OSError) or error.filename is None or error.strerror is None:
        return str(error)
    remedy = "; check the name, and the folder that it is sought from" if isinstance(error, FileNotFoundError) else ""
    return f"{os.fsdecode(error.filename)}: {error.strerror}{remedy}"

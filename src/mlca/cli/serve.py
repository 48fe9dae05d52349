"""Run an HTTP service that learns and predicts, with a web page that shows its state.

Every acknowledged row is on disk. After a crash, the restored model is the same, bit for bit. `mlca serve token`
creates a token; without tokens, only requests from this machine are accepted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mlca.cli.model_options import add_column_kinds, add_model_parameters, valid_parameters
from mlca.cli.repeated import Gathered
from mlca.optional import needing

_MOST_PORT = 2**16 - 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tasks = parser.add_subparsers(dest="task", metavar="[token]")
    token = tasks.add_parser(
        "token",
        help="create a token and print it",
        description="Create a token and print it. It cannot be shown again.",
    )
    token.add_argument("--tokens", metavar="FILE", required=True, help="file that stores the hash of the token")
    token.add_argument("--name", required=True, help="name of the token's owner, shown in the service's log")
    token.add_argument(
        "--scopes",
        action=Gathered,
        default="predict",
        help="comma-separated permissions: predict, learn, admin (default: predict)",
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the log and snapshots")
    parser.add_argument("--model", metavar="MODEL", help="model to start from, if the log is new")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="port; 0 selects a free port (default: 8000)")
    parser.add_argument(
        "--log",
        metavar="URL",
        help="postgresql:// address of a log that several services share (default: SQLite in --data)",
    )
    parser.add_argument(
        "--tokens", metavar="FILE", help="file with the accepted tokens; create it with mlca serve token"
    )
    parser.add_argument(
        "--accept-log",
        action="store_true",
        help="continue with a log that is damaged, truncated or older than the snapshots; missing rows are lost, and "
        "snapshots that contradict it are moved to the folder set-aside",
    )
    add_column_kinds(parser.add_argument_group("columns", "for rows sent as objects, if the log is new"))
    add_model_parameters(parser, recency=True)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, or create a token; return the exit code."""
    if args.task == "token":
        return _make_token(args)
    if args.data is None:
        args.usage_error("--data is required: the folder of the log and snapshots")
    with needing("mlca serve", "serve"):
        from mlca.serve.server import run as serve
        from mlca.serve.startup import ServiceSettings

    parameters = valid_parameters(args)
    n_jobs = parameters.pop("n_jobs", None)
    if args.column:
        parameters["columns"] = dict(args.column)
    if args.text_features is not None:
        parameters["text_features"] = args.text_features
    settings = ServiceSettings(
        Path(args.data),
        args.log,
        None if args.model is None else Path(args.model),
        parameters,
        n_jobs,
        args.accept_log,
    )
    serve(settings, args.host, args.port, None if args.tokens is None else Path(args.tokens))
    return 0


def _port(word: str) -> int:
    if word.isdecimal() and int(word) <= _MOST_PORT:
        return int(word)
    raise argparse.ArgumentTypeError(f"{word!r} is not a port: a whole number from 0 (any free port) to {_MOST_PORT}")


def _make_token(args: argparse.Namespace) -> int:
    from mlca.serve.tokens import SCOPES, add_token

    scopes = [word.strip() for word in args.scopes.split(",")]
    unknown = [word for word in scopes if word not in SCOPES]
    if unknown:
        args.usage_error(f"--scopes must be among {', '.join(SCOPES)}, not {unknown[0]!r}")
    print(add_token(Path(args.tokens), args.name, scopes))
    return 0

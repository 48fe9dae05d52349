"""Serve a model that keeps learning: rows and labels in, predictions out, over HTTP, and a page to watch it.

Every row that is acknowledged is on the disk. After a crash the model is the same to the last bit. `mlca serve token`
makes a token; without tokens only this machine can ask.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mlca.cli.model_options import add_column_kinds, add_model_parameters, chosen_parameters
from mlca.cli.repeated import Gathered
from mlca.optional import needing


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tasks = parser.add_subparsers(dest="task", metavar="[token]")
    token = tasks.add_parser("token", help="make a token and print it", description="Make a token and print it, once.")
    token.add_argument("--tokens", metavar="FILE", required=True, help="the file that gets its hash")
    token.add_argument("--name", required=True, help="whose it is; stands in the service's log")
    token.add_argument(
        "--scopes",
        action=Gathered,
        default="predict",
        help="what it is good for: predict, learn, admin, with commas (default predict)",
    )
    parser.add_argument("--data", metavar="DIR", help="the folder of log and snapshots")
    parser.add_argument("--model", metavar="MODEL", help="a model to go on from, when the log is new")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="the port; 0 takes a free one (default 8000)")
    parser.add_argument("--log", metavar="URL", help="postgresql://..., a log that several services share")
    parser.add_argument("--tokens", metavar="FILE", help="who may do what; see mlca serve token")
    parser.add_argument(
        "--accept-log",
        action="store_true",
        help="continue with a log that is damaged, cut or older than the snapshots; rows that it lacks are lost, and "
        "snapshots that contradict it are moved to the folder set-aside",
    )
    add_column_kinds(parser.add_argument_group("columns", "of rows that are objects, when the log is new"))
    add_model_parameters(parser, recency=True)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, or make a token; return the exit code."""
    if args.task == "token":
        return _make_token(args)
    if args.data is None:
        raise ValueError("say where log and snapshots go: --data DIR")
    with needing("mlca serve", "serve"):
        from mlca.serve.server import run as serve
        from mlca.serve.startup import ServiceSettings

    parameters = chosen_parameters(args)
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


def _make_token(args: argparse.Namespace) -> int:
    from mlca.serve.tokens import SCOPES, add_token

    scopes = [word.strip() for word in args.scopes.split(",")]
    unknown = [word for word in scopes if word not in SCOPES]
    if unknown:
        raise ValueError(f"--scopes: {unknown[0]!r} is none of {', '.join(SCOPES)}")
    print(add_token(Path(args.tokens), args.name, scopes))
    return 0

"""The hyperparameters of a new model as options of `train` and `serve`."""

from __future__ import annotations

import argparse
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

from mlca.cli.tablefiles import as_float, positive
from mlca.limits import TEXT_FEATURES
from mlca.options import (
    ATTRIBUTES,
    COLUMN_KINDS,
    DECISIONS,
    DRIFTS,
    OBJECTIVES,
    PUBLISHED,
    RULES,
    SEARCHES,
    SIMILARITIES,
    VOTES,
    without_effect,
)

if TYPE_CHECKING:
    from mlca.classifier import MLCA

_PARAMETERS = {
    "vigilance": "vigilance",
    "similarity": "similarity",
    "decision": "decision",
    "objective": "objective",
    "recency": "recency",
    "drift": "drift",
    "max_nodes": "max_nodes",
    "search": "search",
    "neighbors": "n_neighbors",
    "window": "window",
    "smoothing": "smoothing",
    "attributes": "attributes",
    "rule": "rule",
    "vote": "vote",
    "seed": "random_state",
    "jobs": "n_jobs",
}


def add_model_parameters(parser: argparse.ArgumentParser, recency: bool) -> None:
    """Declare the hyperparameters of a new model; `recency` is the default of --recency."""
    model = parser.add_argument_group("hyperparameters", "described in the documentation of mlca.MLCA")
    model.add_argument(
        "--vigilance",
        type=_vigilance,
        metavar="V",
        help="largest distance at which a row joins a node: 0 to 1, or auto (default: 0.01)",
    )
    model.add_argument(
        "--recency",
        action=argparse.BooleanOptionalAction,
        help=f"use of the last rows' labels in predictions, for streams (default: {'yes' if recency else 'no'})",
    )
    model.add_argument("--drift", choices=DRIFTS, help="handling of concept drift (default: off)")
    model.add_argument("--objective", choices=OBJECTIVES, help="measure that predictions optimise (default: exact)")
    model.add_argument("--max-nodes", type=int, metavar="N", help="largest number of nodes (default: no limit)")
    model.add_argument(
        "--search",
        choices=SEARCHES,
        help="search for the nearest nodes: exact, or cells, faster above 16,384 nodes (default: auto, same as cells)",
    )
    model.add_argument("--jobs", type=int, metavar="N", help="number of threads; -1 uses all cores (default: 1)")
    paper = parser.add_argument_group("reproducing the paper")
    paper.add_argument(
        "--published",
        choices=tuple(PUBLISHED),
        help="algorithm of the paper; sets --similarity correntropy, --decision bayes and --attributes",
    )
    paper.add_argument("--similarity", choices=SIMILARITIES, help="distance that selects voters (default: learned)")
    paper.add_argument(
        "--decision", choices=DECISIONS, help="rule that turns votes into probabilities (default: mixed)"
    )
    paper.add_argument(
        "--window", type=int, metavar="N", help="number of recent rows that set the bandwidth (default: 50)"
    )
    paper.add_argument(
        "--attributes", choices=ATTRIBUTES, help="sharing of bandwidths among features (default: common)"
    )
    paper.add_argument("--rule", choices=RULES, help="rule by which nodes move (default: published)")
    paper.add_argument(
        "--neighbors", type=int, metavar="N", help="number of voters with --decision bayes (default: 10)"
    )
    paper.add_argument(
        "--smoothing", type=float, metavar="S", help="Laplace smoothing with --decision bayes (default: 1)"
    )
    paper.add_argument("--vote", choices=VOTES, help="form of the votes with --decision bayes (default: counts)")
    paper.add_argument("--seed", type=int, metavar="N", help="seed of --attributes clustered (default: 0)")


def add_column_kinds(group: argparse._ArgumentGroup) -> None:
    """Declare the options that set the kinds of columns."""
    group.add_argument(
        "--column",
        action="append",
        type=_column_kind,
        metavar="NAME=KIND",
        default=[],
        help=f"kind of a column ({', '.join(COLUMN_KINDS)}; default: decided by the first 1000 rows)",
    )
    group.add_argument(
        "--text-features",
        type=positive,
        metavar="N",
        help=f"number of features per text column (default: {TEXT_FEATURES})",
    )


def _column_kind(word: str) -> tuple[str, str]:
    name, _, kind = word.rpartition("=")
    if not name or kind not in COLUMN_KINDS:
        raise argparse.ArgumentTypeError(f"{word!r} is not NAME=KIND; kinds are {', '.join(COLUMN_KINDS)}")
    return name, kind


def chosen_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given hyperparameters by their names in MLCA; with --published, all of them."""
    given = {name: getattr(args, word) for word, name in _PARAMETERS.items() if getattr(args, word) is not None}
    if args.published is None:
        return given
    from mlca.classifier import MLCA

    return dict(MLCA.published(args.published, **given).get_params())


def model_from_options(args: argparse.Namespace) -> MLCA:
    """Return a model with the chosen hyperparameters, or exit with a usage error."""
    from mlca.classifier import MLCA

    chosen = valid_parameters(args)
    for name in without_effect(chosen):
        args.usage_error(
            f"{_option(name)} has no effect without --decision bayes or --published; add one of these, or leave it out"
        )
    return MLCA(**chosen)


def valid_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given hyperparameters; report values that MLCA rejects as usage errors."""
    from mlca.classifier import MLCA

    try:
        chosen = chosen_parameters(args)
        MLCA(**chosen)._check_parameters()
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        args.usage_error(f"{_option(name)} {rest}")
    return chosen


def _option(name: str) -> str:
    """Return the option that sets a hyperparameter."""
    words = {name: word for word, name in _PARAMETERS.items()}
    return f"--{words[name].replace('_', '-')}" if name in words else name


def _vigilance(word: str) -> float | Literal["auto"]:
    if word == "auto":
        return "auto"
    vigilance = as_float(word)
    if isnan(vigilance):
        raise argparse.ArgumentTypeError(f"{word!r} is neither a number nor 'auto'")
    return vigilance

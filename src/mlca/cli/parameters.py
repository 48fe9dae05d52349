"""The parameters of a new model as options: what `train` and `serve` share."""

from __future__ import annotations

import argparse
from math import isnan
from typing import Any, Literal

from mlca.cli.tablefiles import as_float
from mlca.options import ATTRIBUTES, DECISIONS, DRIFTS, PUBLISHED, RULES, SIMILARITIES, VOTES, without_effect

_PARAMETERS = {
    "vigilance": "vigilance",
    "similarity": "similarity",
    "decision": "decision",
    "recency": "recency",
    "drift": "drift",
    "max_nodes": "max_nodes",
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
    """Declare the parameters of a new model; whether recent labels speak where nobody says so differs by command."""
    model = parser.add_argument_group("model", "how it learns and decides; see the documentation of mlca.MLCA")
    model.add_argument(
        "--vigilance",
        type=_vigilance,
        metavar="V",
        help="0 keeps every row, 0.3 compresses, auto asks the first rows how close they lie (default 0.01)",
    )
    model.add_argument(
        "--similarity",
        choices=SIMILARITIES,
        help="which nodes are near and vote: by columns weighed by what they tell of labels, or the paper's "
        "(default learned)",
    )
    model.add_argument(
        "--decision",
        choices=DECISIONS,
        help="how votes become probabilities: by how often such votes came true, or the paper's (default calibrated)",
    )
    model.add_argument(
        "--recency",
        action=argparse.BooleanOptionalAction,
        help="let the labels of the last rows speak for the next, as far as that proves right "
        f"(default {'yes' if recency else 'no'})",
    )
    model.add_argument(
        "--drift", choices=DRIFTS, help="follow: let parts of the past that hold no longer be silent (default off)"
    )
    model.add_argument("--max-nodes", type=int, metavar="N", help="the most nodes to keep (default: no limit)")
    model.add_argument("--jobs", type=int, metavar="N", help="threads; -1 is one a core (default 1)")
    paper = parser.add_argument_group("the paper's algorithm", "and what governs it")
    paper.add_argument(
        "--published",
        choices=tuple(PUBLISHED),
        help="learn as in the paper; short for --similarity correntropy --decision bayes and its --attributes",
    )
    paper.add_argument("--window", type=int, metavar="N", help="latest rows that bandwidths come from (default 50)")
    paper.add_argument(
        "--attributes",
        choices=ATTRIBUTES,
        help="one bandwidth for all columns, one a column, or one a group of columns (default common)",
    )
    paper.add_argument("--rule", choices=RULES, help="how nodes move (default published)")
    paper.add_argument("--neighbors", type=int, metavar="N", help="nodes that vote, with bayes (default 10)")
    paper.add_argument("--smoothing", type=float, metavar="S", help="of probabilities, with bayes (default 1)")
    paper.add_argument("--vote", choices=VOTES, help="how nodes vote, with bayes (default counts)")
    paper.add_argument("--seed", type=int, metavar="N", help="for --attributes clustered (default 0)")


def chosen_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given, by MLCA's names; all of them where the paper's algorithm is asked for."""
    given = {name: getattr(args, word) for word, name in _PARAMETERS.items() if getattr(args, word) is not None}
    if args.published is None:
        return given
    from mlca.classifier import MLCA

    return dict(MLCA.published(args.published, **given).get_params())


def refuse_idle_parameters(args: argparse.Namespace, chosen: dict[str, Any]) -> None:
    """Refuse options that would change nothing beside the others, as wrong words."""
    words = {name: f"--{word}" for word, name in _PARAMETERS.items()}
    for name in without_effect(chosen):
        args.refuse(f"{words[name]} changes nothing without --decision bayes or --published; add one, or leave it out")


def _vigilance(word: str) -> float | Literal["auto"]:
    if word == "auto":
        return "auto"
    vigilance = as_float(word)
    if isnan(vigilance):
        raise argparse.ArgumentTypeError(f"{word!r} is neither a number nor auto")
    return vigilance

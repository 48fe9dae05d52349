"""What the parameters of MLCA may be, and that learning goes on with those that it began with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np

from mlca.categories import check_categories
from mlca.learner.parameters import Parameters
from mlca.limits import MOST_JOBS, MOST_NEIGHBORS, MOST_NODES, MOST_SEED, MOST_WINDOW
from mlca.options import CHOICES, without_effect
from mlca.validation import check_choice, check_flag, check_real, check_whole
from mlca.warning import warn

# Which columns are categories is told in many ways and compared by itself.
_COMPARED = tuple(field.name for field in fields(Parameters) if field.name not in ("seed", "categorical_features"))
_compared_values = attrgetter(*_COMPARED)


def check_parameters(asked: Mapping[str, Any]) -> None:
    """Raise ValueError on a parameter that cannot be, and warn of those that change nothing."""
    vigilance = asked["vigilance"]
    if not isinstance(vigilance, str) or vigilance != "auto":
        check_real("vigilance", vigilance, at_least=0, below=1)
    check_whole("n_neighbors", asked["n_neighbors"], at_least=2, at_most=MOST_NEIGHBORS)
    check_whole("window", asked["window"], at_least=2, at_most=MOST_WINDOW)
    check_real("smoothing", asked["smoothing"], above=0)
    for name, words in CHOICES.items():
        check_choice(name, asked[name], words)
    check_flag("recency", asked["recency"])
    if asked["max_nodes"] is not None:
        check_whole("max_nodes", asked["max_nodes"], at_least=2, at_most=MOST_NODES)
    if asked["decision"] != "calibrated" and (asked["recency"] or asked["drift"] != "off"):
        raise ValueError('recency and drift="follow" mix calibrated probabilities: they need decision="calibrated"')
    check_categories(asked["categorical_features"])
    check_whole("epochs", asked["epochs"], at_least=1)
    if asked["n_jobs"] is not None:
        check_n_jobs(asked["n_jobs"])
    if isinstance(asked["random_state"], int | np.integer):
        check_whole("random_state", asked["random_state"], at_least=0, at_most=MOST_SEED)
    _warn_of_idle_ones(asked)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError if this is no number of threads. Whoever asks a model may have set it after learning."""
    check_whole("n_jobs", n_jobs, at_least=-MOST_JOBS, at_most=MOST_JOBS)
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, or -1 for one a core, not 0")


def require_same_parameters(asked: Any, learned: Parameters) -> None:
    """Raise ValueError if an object asks for other parameters than learning began with, which were checked then."""
    if _compared_values(asked) == _compared_values(learned):
        return
    for name in _COMPARED:
        before, now = getattr(learned, name), getattr(asked, name)
        if name == "vigilance" and before is None:
            before = "auto"
        if isinstance(before, float) and not isinstance(now, int) and isinstance(now, Real):
            now = float(now)  # as when learning began: a third, say, was rounded
        if now != before:
            raise ValueError(
                f"{name} was {before!r} when learning began and is {now!r} "
                "now; a model goes on with the parameters that it has: set it back, or call fit to start afresh"
            )


def _warn_of_idle_ones(asked: Mapping[str, Any]) -> None:
    for name in without_effect(asked):
        if asked[name] != getattr(Parameters, name):
            warn(
                f'{name}={asked[name]!r} has no effect unless decision="bayes": choose that, or leave it at its default'
            )

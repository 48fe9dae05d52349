"""The words of the options, each list in one place, for types, checks, the command line and the learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

Attributes: TypeAlias = Literal["common", "individual", "clustered"]
Rule: TypeAlias = Literal["published", "released", "text"]
Vote: TypeAlias = Literal["counts", "frequencies"]
Similarity: TypeAlias = Literal["learned", "correntropy"]
Decision: TypeAlias = Literal["calibrated", "bayes"]
Drift: TypeAlias = Literal["off", "follow"]

ATTRIBUTES: tuple[Attributes, ...] = get_args(Attributes)
RULES: tuple[Rule, ...] = get_args(Rule)
VOTES: tuple[Vote, ...] = get_args(Vote)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
DECISIONS: tuple[Decision, ...] = get_args(Decision)
DRIFTS: tuple[Drift, ...] = get_args(Drift)

# By the parameter that takes them.
CHOICES: dict[str, tuple[str, ...]] = {
    "similarity": SIMILARITIES,
    "decision": DECISIONS,
    "drift": DRIFTS,
    "attributes": ATTRIBUTES,
    "rule": RULES,
    "vote": VOTES,
}

# What the paper's decision alone asks for.
_OF_BAYES = ("n_neighbors", "smoothing", "vote")

# The paper's algorithms, by the way that they treat attributes.
PUBLISHED: dict[str, Attributes] = {"MLCA": "common", "MLCA-I": "individual", "MLCA-C": "clustered"}


def without_effect(given: Mapping[str, Any]) -> list[str]:
    """Return the names of those parameters that change nothing beside the others that are given."""
    return [] if given.get("decision") == "bayes" else [name for name in _OF_BAYES if name in given]

"""Allowed values of the options, shared by types, checks, command line and learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

Attributes: TypeAlias = Literal["common", "individual", "clustered"]
Rule: TypeAlias = Literal["published", "released", "text"]
Vote: TypeAlias = Literal["counts", "frequencies"]
Similarity: TypeAlias = Literal["learned", "correntropy"]
Decision: TypeAlias = Literal["mixed", "calibrated", "bayes"]
Objective: TypeAlias = Literal["exact", "f1", "hamming"]
Drift: TypeAlias = Literal["off", "follow"]
Search: TypeAlias = Literal["auto", "exact", "cells"]

ATTRIBUTES: tuple[Attributes, ...] = get_args(Attributes)
RULES: tuple[Rule, ...] = get_args(Rule)
VOTES: tuple[Vote, ...] = get_args(Vote)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
DECISIONS: tuple[Decision, ...] = get_args(Decision)
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
DRIFTS: tuple[Drift, ...] = get_args(Drift)
SEARCHES: tuple[Search, ...] = get_args(Search)

# The kinds of columns of a frame.
COLUMN_KINDS = ("number", "category", "text", "vector", "ignore")

# The allowed values, by parameter.
CHOICES: dict[str, tuple[str, ...]] = {
    "similarity": SIMILARITIES,
    "decision": DECISIONS,
    "objective": OBJECTIVES,
    "drift": DRIFTS,
    "search": SEARCHES,
    "attributes": ATTRIBUTES,
    "rule": RULES,
    "vote": VOTES,
}

# Parameters that only the paper's decision uses.
_OF_BAYES = ("n_neighbors", "smoothing", "vote")

# The value of `attributes` for each algorithm of the paper.
PUBLISHED: dict[str, Attributes] = {"MLCA": "common", "MLCA-I": "individual", "MLCA-C": "clustered"}


class CellLimits(NamedTuple):
    """Limits of the search by cells: the node count that enables it, and nodes per search."""

    above: int = 16_384  # up to this number of nodes, all are searched
    least: int = 8_192  # a search visits at least this many nodes
    per_root: int = 48  # and at least this many times the square root of the number of nodes

    def for_voters(self, n_neighbors: int) -> CellLimits:
        """Return these limits, raised so that a search visits at least `n_neighbors` nodes."""
        return self._replace(least=max(self.least, n_neighbors))


# Tests pass smaller numbers to create cells in short streams.
CELL_LIMITS = CellLimits()


def decision_for(decision: Decision, similarity: str) -> Decision:
    """Return the decision in use: "mixed" means "calibrated" without a learned similarity."""
    return "calibrated" if decision == "mixed" and similarity == "correntropy" else decision


def search_for(search: Search, similarity: str, drift: str) -> Search:
    """Return the search in use: "auto" and "cells" mean "exact" where cells are unsupported."""
    return "exact" if search == "exact" or similarity == "correntropy" or drift == "follow" else "cells"


def without_effect(given: Mapping[str, Any]) -> list[str]:
    """Return the names of given parameters that have no effect in combination with the others."""
    return [] if given.get("decision") == "bayes" else [name for name in _OF_BAYES if name in given]

"""The words of the options, each list in one place, for types, checks, the command line and the learner."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Attributes: TypeAlias = Literal["common", "individual", "clustered"]
Rule: TypeAlias = Literal["published", "released", "text"]
Vote: TypeAlias = Literal["counts", "frequencies"]

ATTRIBUTES: tuple[Attributes, ...] = get_args(Attributes)
RULES: tuple[Rule, ...] = get_args(Rule)
VOTES: tuple[Vote, ...] = get_args(Vote)

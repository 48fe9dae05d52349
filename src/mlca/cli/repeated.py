"""A parser for command lines that rejects repeated and unknown options.

argparse alone keeps the last of two values without a message: with `--labels a --labels b`, column a would be learned
as a feature. It also reports an unknown option with the usage line of `mlca` instead of that of the command.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any


class OncePerOption(argparse.ArgumentParser):
    """A parser that rejects a repeated option, unless the option has a custom action."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.register("action", None, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Reject unknown arguments with the command's usage line; suggest a similar option."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            nearest = get_close_matches(word, self._option_string_actions, n=1) if word.startswith("-") else []
            kind = "option" if word.startswith("-") else "argument"
            self.error(f"unknown {kind} {word}" + (f"; did you mean {nearest[0]}?" if nearest else ""))
        return parsed, unknown


def _is_first(action: argparse.Action, namespace: argparse.Namespace) -> bool:
    """Return whether an option is given for the first time, and record it."""
    given: set[str] = vars(namespace).setdefault("given", set())
    first = action.dest not in given
    given.add(action.dest)
    return first


class _Once(argparse.Action):
    """Stores the value of an option, and rejects the option if it is repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if not _is_first(self, namespace):
            raise argparse.ArgumentError(self, "given twice, but takes one value; leave one out")
        setattr(namespace, self.dest, values)


class Gathered(argparse.Action):
    """Joins the values of a repeated option with commas."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Append a value to those of earlier uses of the option."""
        before = [] if _is_first(self, namespace) else [getattr(namespace, self.dest)]
        setattr(namespace, self.dest, ",".join([*before, str(values)]))

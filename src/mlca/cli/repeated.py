"""Options that are given more than once: names are gathered, and a second value where there is one place is refused.

argparse by itself keeps the last value and says nothing: of `--labels a --labels b` the labels a would be learned from.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class OncePerOption(argparse.ArgumentParser):
    """A parser whose options take one value each, unless their action says otherwise; so do its commands."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.register("action", None, _Once)


def _is_first(action: argparse.Action, namespace: argparse.Namespace) -> bool:
    """Whether an argument had no value yet; a default is none."""
    given: set[str] = vars(namespace).setdefault("given", set())
    first = action.dest not in given
    given.add(action.dest)
    return first


class _Once(argparse.Action):
    """Keeps a value, and refuses a second."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if not _is_first(self, namespace):
            raise argparse.ArgumentError(self, "given twice, and there is room for one value; leave one out")
        setattr(namespace, self.dest, values)


class Gathered(argparse.Action):
    """Keeps names with commas between them, those of every time that the option is given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Add names to those that were given before."""
        before = [] if _is_first(self, namespace) else [getattr(namespace, self.dest)]
        setattr(namespace, self.dest, ",".join([*before, str(values)]))

"""How far a long command is: a bar on a terminal, a line every now and then elsewhere."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import Any, Self

# Seconds between two lines where there is no terminal, or no rich.
PAUSE = 10.0


def has_terminal() -> bool:
    """Whether a live display would be seen, and rich is there to draw it."""
    if not sys.stderr.isatty():
        return False
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


class Progress:
    """Rows done, rows a second, nodes, and the time left where the size of the file is known."""

    def __init__(self) -> None:
        self.rows = 0
        self._began = self._told = perf_counter()
        self._bar = _bar() if has_terminal() else None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=None, facts="reading the first rows")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return perf_counter() - self._began

    def advance(self, rows: int, fraction: float | None, nodes: int | None = None) -> None:
        """Tell that some more rows are done, and what part of the file that makes."""
        self.rows += rows
        facts = f"{self.rows:,} rows, {self.rows / max(self.seconds, 1e-9):,.0f} rows/s"
        facts += "" if nodes is None else f", {nodes:,} nodes"
        if self._bar is not None:
            self._bar.update(self._task, total=None if fraction is None else 1.0, completed=fraction or 0, facts=facts)
        elif perf_counter() - self._told > PAUSE:
            self._told = perf_counter()
            print(facts + _time_left(self.seconds, fraction), file=sys.stderr, flush=True)


def _time_left(seconds: float, fraction: float | None) -> str:
    if not fraction:
        return ""
    left = round(seconds * (1 - fraction) / fraction)
    return f", {left // 60}:{left % 60:02} left"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.fields[facts]}"), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)

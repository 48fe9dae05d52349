"""Progress reports on standard error: a bar on a terminal, otherwise regular lines."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import Any, Self

# Seconds between two lines of output, without a terminal or without rich.
PAUSE = 10.0


def has_terminal() -> bool:
    """Return whether a bar can be shown: on a terminal, with rich installed."""
    if not sys.stderr.isatty():
        return False
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


class Progress:
    """Shows rows learned, rows per second, nodes and, if the total is known, the time left."""

    def __init__(self) -> None:
        self.rows = 0
        self._began = self._reported_at = perf_counter()
        self._clock = GrowingCost()
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
        """The seconds since the start."""
        return perf_counter() - self._began

    def advance(self, rows: int, fraction: float | None, nodes: int | None = None) -> None:
        """Report newly learned rows, and the fraction of all rows learned (None if unknown)."""
        self.rows += rows
        self._clock.note(fraction, self.seconds)
        left = self._clock.left(fraction, self.seconds)
        facts = f"{self.rows:,} rows, {self.rows / max(self.seconds, 1e-9):,.0f} rows/s"
        facts += "" if nodes is None else f", {nodes:,} nodes"
        facts += "" if left is None else f", {left // 60}:{left % 60:02} left"
        if self._bar is not None:
            self._bar.update(self._task, total=None if fraction is None else 1.0, completed=fraction or 0, facts=facts)
        elif perf_counter() - self._reported_at > PAUSE:
            self._reported_at = perf_counter()
            print(facts, file=sys.stderr, flush=True)


class GrowingCost:
    """Estimates the remaining time when the cost of a row grows with the number of nodes.

    The number of nodes grows with the rows, so the time for a fraction f of the rows is about a f + b f^2. The
    coefficients a and b are fitted to the times so far by least squares; neither may be negative.
    """

    def __init__(self) -> None:
        self._sums = [0.0] * 5

    def note(self, fraction: float | None, seconds: float) -> None:
        """Record the seconds that a fraction of the rows has taken."""
        if fraction:
            f, t = fraction, seconds
            for i, term in enumerate((f * f, f**3, f**4, f * t, f * f * t)):
                self._sums[i] += term

    def left(self, fraction: float | None, seconds: float) -> int | None:
        """Return the estimated remaining seconds; None if unknown."""
        if not fraction:
            return None
        ff, fff, ffff, ft, fft = self._sums
        determinant = ff * ffff - fff * fff
        a, b = ft / ff, 0.0
        if determinant > 1e-12 * ff * ffff:
            b = max(0.0, (ff * fft - fff * ft) / determinant)
            a = (ft - b * fff) / ff
            if a < 0:
                a, b = 0.0, fft / ffff
        return max(0, round(a * (1 - fraction) + b * (1 - fraction**2)))


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.fields[facts]}"))
    return Progress(*columns, console=Console(stderr=True), transient=True)

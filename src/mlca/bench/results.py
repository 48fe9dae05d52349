"""Results of benchmarks, printed as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Line:
    """The measurement of one workload.

    Attributes
    ----------
    work, who : str
        The task, and the program that was measured.
    rows : int
        The number of rows.
    seconds : float
        The time in seconds.
    pairs : float or None
        The number of feature pairs (features times nodes times rows) that were compared; None if not applicable.
    note : str
        A remark.
    memory : int or None
        The largest growth of the process's memory, in bytes, if it was measured.
    """

    work: str
    who: str
    rows: int
    seconds: float
    pairs: float | None = None
    note: str = ""
    memory: int | None = None


@dataclass(frozen=True)
class Target:
    """A target for a benchmark result, and the measured value."""

    name: str
    wanted: float
    found: float
    unit: str
    at_most: bool = False

    @property
    def reached(self) -> bool:
        """Whether the measured value meets the target."""
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted


def targets_in_words(targets: Sequence[Target]) -> Iterator[str]:
    """Yield the lines of a table that compares targets with measured values."""
    yield f"{'target':<64} {'wanted':>10} {'found':>12}"
    for target in targets:
        sign = "<=" if target.at_most else ">="
        mark = "" if target.reached else "  MISSED"
        yield f"{target.name:<64} {sign} {target.wanted:>7,.4g} {target.found:>12,.4g} {target.unit}{mark}"


@dataclass(frozen=True)
class Results:
    """All measurements and targets, and the probe's speed in kernel terms per second."""

    exp64: float
    lines: tuple[Line, ...]
    targets: tuple[Target, ...]

    def __str__(self) -> str:
        out = [
            f"exp64 {self.exp64 / 1e9:.2f} billion per second (one thread, data in cache)",
            "",
            f"{'work':<46} {'who':<28} {'rows/s':>11} {'Gpairs/s':>9} {'/exp64':>7}  note",
        ]
        for line in self.lines:
            speed = "" if line.pairs is None else f"{line.pairs / line.seconds / 1e9:.3f}"
            ratio = "" if line.pairs is None else f"{line.pairs / line.seconds / self.exp64:.2f}"
            rate = line.rows / line.seconds
            shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"
            grown = "" if line.memory is None else f"; peak memory {line.memory / 2**20:,.0f} MiB"
            out.append(f"{line.work:<46} {line.who:<28} {shown:>11} {speed:>9} {ratio:>7}  {line.note}{grown}")
        return "\n".join([*out, "", *targets_in_words(self.targets)])

    def to_json(self) -> str:
        """Return all results as a JSON string."""
        return json.dumps(asdict(self), indent=1)

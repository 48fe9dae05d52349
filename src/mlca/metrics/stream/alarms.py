"""Alarms on a stream: a falling measure, a new label, or unusual rows.

A `Watch` receives each tested row and returns alarms. Drift and novelty are detected by ADWIN, the adaptive window of
Bifet and Gavalda, in River's implementation: it keeps the mean of a window that grows as long as the mean is stable,
and reports when the newest part of the window differs. If River is not installed, only new-label alarms are raised.

Rising measures and falling novelty raise no alarm, because a model is expected to improve while it learns.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

AlarmKind = Literal["drift", "new label", "novelty"]

# Labels that first appear within this number of rows raise no alarm.
OPENING_ROWS = 100


@dataclass(frozen=True)
class Alarm:
    """An alarm about drift, a new label or rising novelty in a stream.

    Attributes
    ----------
    row : int
        The row at which the alarm was raised, counted from 0. Drift is detected some rows after it began.
    kind : {"drift", "new label", "novelty"}
        "drift": a measure has fallen; "new label": a label is true for the first time; "novelty": rows have become less
        like those learned.
    label : hashable or None
        The label that the alarm is about; None if it is about whole rows.
    measure : str or None
        The measure that changed: for whole rows ``"exact_match"``, ``"example_f1"`` or ``"novelty"``; for a label
        ``"jaccard"``, the share of hits among the rows where it was true or predicted.
    before, after : float or None
        The mean of the measure before and after: over ADWIN's window before the detection, and over the part that it
        kept.

    Examples
    --------
    >>> print(Alarm(4711, "drift", "storm", "jaccard", 0.81, 0.352))
    row 4711: drift, jaccard of 'storm' fell from 0.810 to 0.352
    >>> print(Alarm(5000, "new label", "hail"))
    row 5000: new label 'hail'
    """

    row: int
    kind: AlarmKind
    label: Hashable | None = None
    measure: str | None = None
    before: float | None = None
    after: float | None = None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            return f"row {self.row}: new label {self.label!r}"
        moved = f"{'fell' if self.after < self.before else 'rose'} from {self.before:.3f} to {self.after:.3f}"
        if self.kind == "novelty":
            return f"row {self.row}: novelty {moved}"
        return f"row {self.row}: drift, {self.measure}{'' if self.label is None else f' of {self.label!r}'} {moved}"


class Watch:
    """Raises alarms about a stream of rows.

    Parameters
    ----------
    known : collection of labels, optional
        Labels that the model already knows, which raise no alarm. If there are none, labels of the first 100 rows raise
        no alarm either.
    """

    def __init__(self, known: Collection[Hashable] | None = None) -> None:
        self._labels: set[Hashable] = set(known or ())
        self._first_row = 0 if known else OPENING_ROWS
        self._means: dict[tuple[str, Hashable | None], Any] = {}

    def labels(self, row: int, true: Sequence[Hashable]) -> Iterator[Alarm]:
        """Process the true labels of a row; yield an alarm for each new label."""
        for label in true:
            if label not in self._labels:
                self._labels.add(label)
                if row >= self._first_row:
                    yield Alarm(row, "new label", label)

    def pair(self, row: int, true: Sequence[Hashable], predicted: Sequence[Hashable]) -> Iterator[Alarm]:
        """Process the true and predicted labels of a row; yield an alarm for each drift."""
        hits, either = set(true) & set(predicted), dict.fromkeys((*true, *predicted))
        values: list[tuple[str, Hashable | None, float]] = [("exact_match", None, float(len(hits) == len(either)))]
        if either:  # rows without true and predicted labels have no F1
            values.append(("example_f1", None, 2 * len(hits) / (len(true) + len(predicted))))
        values += [("jaccard", label, float(label in hits)) for label in either]
        for measure, label, value in values:
            moved = self._move(measure, label, value)
            if moved is not None and moved[1] < moved[0]:
                yield Alarm(row, "drift", label, measure, *moved)

    def novelty(self, row: int, value: float) -> Iterator[Alarm]:
        """Process the novelty of a row, from 0 to 1; yield an alarm if it has risen."""
        moved = self._move("novelty", None, value)
        if moved is not None and moved[1] > moved[0]:
            yield Alarm(row, "novelty", None, "novelty", *moved)

    def _move(self, measure: str, label: Hashable | None, value: float) -> tuple[float, float] | None:
        """Pass a value to ADWIN; return the means before and after a detected change."""
        if (measure, label) not in self._means:
            self._means[measure, label] = _adwin()
        mean = self._means[measure, label]
        if mean is None:
            return None
        before = mean.estimation
        mean.update(value)
        return (before, mean.estimation) if mean.drift_detected else None


def _adwin() -> Any:
    """Return River's ADWIN; None if River is not installed."""
    try:
        from river.drift import ADWIN
    except ImportError:
        return None
    return ADWIN()  # type: ignore[no-untyped-call]

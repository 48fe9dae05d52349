"""Measures of the predictions, and of the service's speed.

`LogMeasures` depends on the log alone: each row that was predicted, kept and later labelled counts once, as a pair of
predicted and true labels. It is updated, saved and rebuilt together with the model, so all services agree on it at the
same position. `Traffic` depends on this process and its clock; alarms cover the time since the process started.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, get_args

from mlca.metrics.stream.alarms import Alarm, AlarmKind, Watch
from mlca.serve.log import LoggedRow

# Number of labelled rows in the recent measures.
RECENT = 500
# Largest number of points of a curve; beyond it, every second point is dropped.
_POINTS = 240
# Number of rows shown on the web page.
_LAST = 30
# Number of alarms shown on the web page.
_ALARMS = 50
# Largest number of novelty values that wait to be checked for alarms.
_UNSEEN = 100_000
# Number of seconds for which rates are shown.
_SECONDS = 120
# Upper bounds of the buckets of the latency histogram, in seconds.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass
class LabelRecord:
    """Counts of a label's rows, hits, misses and false predictions, and its first occurrence."""

    count: int
    first: int
    at: float
    hits: int = 0
    missed: int = 0
    in_vain: int = 0

    @property
    def f1(self) -> float | None:
        """F1 over predicted and labelled rows; None if the label was neither predicted nor true."""
        size = 2 * self.hits + self.missed + self.in_vain
        return 2 * self.hits / size if size else None


class LogMeasures:
    """Exact match and F1 of kept predictions: over all rows, over recent rows, and by label."""

    def __init__(self) -> None:
        self.pairs = self.exact = self.defined = 0
        self.f1 = 0.0
        self.recent: deque[tuple[bool, float | None]] = deque(maxlen=RECENT)
        self.labels: dict[str, LabelRecord] = {}
        self.curve: list[list[float | None]] = []
        self.stride = 1
        self.last: deque[dict[str, Any]] = deque(maxlen=_LAST)

    def add(self, rows: Iterable[LoggedRow]) -> None:
        """Add learned rows to the measures."""
        for row in rows:
            for name in row.labels:
                if name in self.labels and self.labels[name].count:
                    self.labels[name].count += 1
                else:  # a label that was predicted before its first occurrence may have a record
                    self._record(name).count = 1
                    self.labels[name].first, self.labels[name].at = row.position, row.at
            if row.predicted is not None:
                self._add_pair(set(row.predicted), set(row.labels))
            truth, predicted = list(row.labels), None if row.predicted is None else list(row.predicted)
            self.last.append({"id": row.id, "position": row.position, "labels": truth, "predicted": predicted})

    def note(self, position: int, nodes: int) -> None:
        """Add a point to the curve if the last one is at least `stride` positions back."""
        if self.curve and position - (self.curve[-1][0] or 0) < self.stride:
            return
        running, recent = self.running(), self.recently()
        self.curve.append([position, *running, *recent, nodes, len(self.labels)])
        if len(self.curve) > _POINTS:
            self.curve = self.curve[::2]
            self.stride = max(2 * self.stride, position // _POINTS)

    def running(self) -> tuple[float | None, float | None]:
        """Return exact match and F1 over all rows that were predicted and labelled."""
        return _ratio(self.exact, self.pairs), _ratio(self.f1, self.defined)

    def recently(self) -> tuple[float | None, float | None]:
        """Return exact match and F1 over the latest rows that were predicted and labelled."""
        f1 = [value for _, value in self.recent if value is not None]
        return _ratio(sum(exact for exact, _ in self.recent), len(self.recent)), _ratio(sum(f1), len(f1))

    def to_json(self) -> dict[str, Any]:
        """Return all measures as JSON values, for a snapshot."""
        return {
            "pairs": self.pairs,
            "exact": self.exact,
            "defined": self.defined,
            "f1": self.f1,
            "recent": list(self.recent),
            "labels": {name: asdict(record) for name, record in self.labels.items()},
            "curve": self.curve,
            "stride": self.stride,
            "last": list(self.last),
        }

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> LogMeasures:
        """Create measures from the result of `to_json`."""
        measures = cls()
        measures.pairs, measures.exact, measures.defined = plain["pairs"], plain["exact"], plain["defined"]
        measures.f1, measures.curve, measures.stride = plain["f1"], plain["curve"], plain["stride"]
        measures.recent.extend((bool(exact), f1) for exact, f1 in plain["recent"])
        measures.labels = {name: LabelRecord(**record) for name, record in plain["labels"].items()}
        measures.last.extend(plain["last"])
        return measures

    def _add_pair(self, predicted: set[str], true: set[str]) -> None:
        hits = len(predicted & true)
        f1 = _ratio(2 * hits, len(predicted) + len(true))
        self.pairs += 1
        self.exact += predicted == true
        if f1 is not None:  # F1 is undefined if a row has neither predicted nor true labels
            self.f1 += f1
            self.defined += 1
        self.recent.append((predicted == true, f1))
        for name in predicted & true:
            self._record(name).hits += 1
        for name in true - predicted:
            self._record(name).missed += 1
        for name in predicted - true:
            self._record(name).in_vain += 1

    def _record(self, name: str) -> LabelRecord:
        return self.labels.setdefault(name, LabelRecord(0, 0, 0.0))


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


class Traffic:
    """Measures of this process: rows and predictions per second, latencies, alarms."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.learned = self.predicted = self.wrong_tokens = 0
        self._requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._latest: dict[str, deque[float]] = {}
        self._novelty: deque[float] = deque(maxlen=RECENT)
        self._unseen: deque[float] = deque(maxlen=_UNSEEN)
        self._alarms: deque[dict[str, Any]] = deque(maxlen=_ALARMS)
        self._alarm_counts: dict[str, int] = dict.fromkeys(get_args(AlarmKind), 0)
        self._ticks: deque[tuple[int, int]] = deque(maxlen=_SECONDS + 1)

    @property
    def uptime(self) -> float:
        """Seconds since the start of the process."""
        return time.monotonic() - self._began

    def count_learned(self, rows: int) -> None:
        """Count rows that the model has learned."""
        with self._lock:
            self.learned += rows

    def count_predicted(self, rows: int, novelty: Sequence[float]) -> None:
        """Count predicted rows, and store their novelty."""
        with self._lock:
            self.predicted += rows
            self._novelty.extend(novelty)
            self._unseen.extend(novelty)

    def unseen_novelty(self) -> list[float]:
        """Return the novelty of the rows predicted since the last call."""
        with self._lock:
            values = list(self._unseen)
            self._unseen.clear()
        return values

    def count_alarm(self, facts: dict[str, Any]) -> None:
        """Count and store an alarm."""
        with self._lock:
            self._alarms.append(facts)
            self._alarm_counts[facts["kind"]] += 1

    def alarms(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return the latest alarms, newest first, and the number of all alarms by kind."""
        with self._lock:
            return list(self._alarms)[::-1], dict(self._alarm_counts)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a response and its duration."""
        with self._lock:
            self._requests[path, status] = self._requests.get((path, status), 0) + 1
            if status < 400:
                self._buckets.setdefault(path, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
                self._seconds[path] = self._seconds.get(path, 0.0) + seconds
                self._latest.setdefault(path, deque(maxlen=1000)).append(seconds)

    def counts(self) -> tuple[dict[tuple[str, int], int], dict[str, list[int]], dict[str, float]]:
        """Return response counts by path and status, and latency histogram and sum by path."""
        with self._lock:
            return dict(self._requests), {path: list(b) for path, b in self._buckets.items()}, dict(self._seconds)

    def tick(self) -> None:
        """Store the current counts; call this once per second."""
        with self._lock:
            self._ticks.append((self.learned, self.predicted))

    def rates(self) -> tuple[list[int], list[int]]:
        """Return the rows learned and the rows predicted in each of the last 120 seconds."""
        with self._lock:
            ticks = list(self._ticks)
        steps = list(pairwise(ticks))
        return [b[0] - a[0] for a, b in steps], [b[1] - a[1] for a, b in steps]

    def latency(self) -> dict[str, dict[str, float]]:
        """Return the median and 99th-percentile latency of recent requests per path, in ms."""
        with self._lock:
            latest = {path: sorted(seconds) for path, seconds in self._latest.items()}
        return {
            path: {
                "p50": round(1000 * seconds[len(seconds) // 2], 3),
                "p99": round(1000 * seconds[len(seconds) * 99 // 100], 3),
            }
            for path, seconds in latest.items()
        }

    def novelty(self) -> float | None:
        """Return the mean novelty of recently predicted rows; None if it was not computed."""
        with self._lock:
            return sum(self._novelty) / len(self._novelty) if self._novelty else None


def look(watch: Watch, rows: Sequence[LoggedRow]) -> Iterator[dict[str, Any]]:
    """Check learned rows for alarms; yield the event data of each alarm."""
    for row in rows:
        if row.x is None:  # a forgotten row
            continue
        for alarm in watch.labels(row.position, row.labels):
            yield as_facts(alarm)
        if row.predicted is not None:
            for alarm in watch.pair(row.position, row.labels, row.predicted):
                yield as_facts(alarm)


def look_at_novelty(watch: Watch, position: int, novelty: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Check the novelty of predicted rows for alarms; yield the event data of each alarm."""
    for value in novelty:
        for alarm in watch.novelty(position, value):
            yield as_facts(alarm)


def as_facts(alarm: Alarm) -> dict[str, Any]:
    """Return the event data of an alarm, including its text."""
    facts = asdict(alarm)
    return {"position": facts.pop("row"), **facts, "text": str(alarm)}

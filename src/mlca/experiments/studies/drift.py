"""Concept drift: the meaning of labels changes suddenly, gradually or temporarily."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec

import numpy as np

from mlca.datasets.catalogue import CATALOGUE
from mlca.experiments.algorithms import OURS, PUBLISHED, RIVER_LOGISTIC, SLIDING_WINDOW, STREAMING, Configuration
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.streaming import GENERATORS
from mlca.experiments.studies.figures import draw_over_rows, note_over_rows
from mlca.experiments.studies.summaries import mean_of, troubles
from mlca.experiments.tasks import Outcome, Task, in_order

DATASETS = ("emotions", "medical", "enron", "yeast", "scene")
RECENCY, FOLLOW = (next(one for one in STREAMING if one.key == key) for key in ("mlca-recency", "mlca-follow"))
LINES = (PUBLISHED, OURS, *STREAMING, SLIDING_WINDOW)
GENERATED_LINES = (OURS, RECENCY, FOLLOW, SLIDING_WINDOW, RIVER_LOGISTIC)
SHUFFLES = 3
DRAWN_ROWS = 2000  # shorter streams are not drawn: they have too few rows for a curve
# Goals for `drift="follow"`: the largest gap to a model that learned only the new part, the largest loss without a
# change, and the largest time relative to MLCA().
NEAR, COST, TIMES = 0.03, 0.002, 1.6

INTRODUCTION = """
The labels of shuffled datasets ({orders} each) are rotated: every label is replaced by the next one. The change applies
from the middle on (sudden), more and more often around the middle (gradual), or for the middle third of the rows
(recurrent). Streams of {size:,} rows are generated as in MOA. Exact match is over the 1,000 rows after the last change,
test then train; for recurrent changes also over the first 200, which show whether old knowledge returns. A model that
saw only the new part shows what is possible without the past. A sliding window, MLCA() retrained on the last 512 rows,
shows what forgetting gains and loses.
"""


def _dataset_task(line: Configuration, dataset: str, change: str, shuffle: int) -> Task:
    arrangement = "" if change == "none" else change
    parameters = in_order(line.parameters)
    return Task("prequential", line.estimator, parameters, dataset, shuffle, shuffle, arrangement=arrangement)


def _generated_task(line: Configuration, name: str, change: str, scope: Scope) -> Task:
    parameters = in_order(line.parameters)
    return Task("prequential", line.estimator, parameters, name, size=scope.drifting_rows, arrangement=change)


def _shuffles(scope: Scope) -> range:
    return range(min(SHUFFLES, scope.repetitions))


def _datasets(scope: Scope) -> tuple[str, ...]:
    return tuple(name for name in DATASETS if name in (*scope.datasets, *scope.others))


def _generated_lines(scope: Scope) -> tuple[Configuration, ...]:
    """Return the learners for generated streams; River's only if River is installed."""
    return tuple(one for one in scope.wanted(GENERATED_LINES) if one is not RIVER_LOGISTIC or find_spec("river"))


def _of_dataset(line: Configuration, dataset: str, change: str, scope: Scope) -> list[Task]:
    return [_dataset_task(line, dataset, change, shuffle) for shuffle in _shuffles(scope)]


def tasks(scope: Scope) -> list[Task]:
    """Return the tasks on datasets, then the tasks on generated streams."""
    rotated = [
        task
        for dataset in _datasets(scope)
        for line in scope.wanted(LINES)
        for change in ("none", "sudden", "gradual", "recurrent", *(["new part"] if line is OURS else []))
        for task in _of_dataset(line, dataset, change, scope)
    ]
    generated = [
        _generated_task(line, name, change, scope)
        for change in ("sudden", "recurrent", "none", "gradual", "incremental")
        for name in GENERATORS
        for line in _generated_lines(scope)
    ]
    new_parts = [_generated_task(OURS, name, "new part", scope) for name in GENERATORS if OURS in scope.wanted(LINES)]
    return rotated + new_parts + generated


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Tabulate the accuracy after a change, and draw it over the rows."""
    text = INTRODUCTION.format(orders=_orders_in_words(scope, outcomes), size=scope.drifting_rows).strip()
    return Section(
        "drift",
        "Meaning that changes",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(tasks(scope), outcomes)))),
        _verdict(scope, outcomes),
        (_mean_table(scope, outcomes), _dataset_table(scope, outcomes), _generated_table(scope, outcomes)),
        (*_dataset_curves(scope, outcomes), *_generated_curves(scope, outcomes)),
    )


def _orders_in_words(scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    """Return the largest number of shuffled orders of a dataset, such as "3 orders"."""
    done = [
        sum(task in outcomes for task in _of_dataset(OURS, dataset, change, scope))
        for dataset in _datasets(scope)
        for change in ("none", "sudden")
    ]
    most = max(done, default=0)
    return "one order" if most == 1 else f"{most} orders"


# Columns of the tables, each as header, change and measure.
COLUMNS = (
    ("no change, whole stream", "none", "exact_match"),
    ("sudden, after", "sudden", "exact_match@after"),
    ("gradual, after", "gradual", "exact_match@after"),
    ("recurrent, after the return", "recurrent", "exact_match@after"),
    ("recurrent, first 200 rows", "recurrent", "exact_match@first"),
)
# Only generated streams can drift with every row.
GENERATED_COLUMNS = (*COLUMNS, ("incremental, whole stream", "incremental", "exact_match"))
NEW_PART = "MLCA() of the new part only"


def _mean_over_datasets(
    line: Configuration, change: str, name: str, scope: Scope, outcomes: Mapping[Task, Outcome]
) -> float | None:
    found = [mean_of(name, _of_dataset(line, dataset, change, scope), outcomes) for dataset in _datasets(scope)]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known and len(known) == len(found) else None


def _of_generated(line: Configuration, name: str, change: str, scope: Scope) -> list[Task]:
    return [_generated_task(line, name, change, scope)]


def _mean_table(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    rows = [
        (line.title, *(_mean_over_datasets(line, change, name, scope, outcomes) for _, change, name in COLUMNS))
        for line in scope.wanted(LINES)
    ]
    only_new = _mean_over_datasets(OURS, "new part", "exact_match@after", scope, outcomes)
    rows.append((NEW_PART, None, only_new, None, None, None))
    title = f"Exact match, means of {', '.join(_datasets(scope))}"
    return Table(title, ("learner", *(head for head, _, _ in COLUMNS)), tuple(rows))


def _dataset_table(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    rows = _rows(_datasets(scope), scope.wanted(LINES), COLUMNS, partial(_of_dataset, scope=scope), outcomes)
    return Table("Exact match, dataset by dataset", ("dataset", "learner", *(head for head, _, _ in COLUMNS)), rows)


def _generated_table(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    lines, tasks_of = _generated_lines(scope), partial(_of_generated, scope=scope)
    rows = _rows(tuple(GENERATORS), lines, GENERATED_COLUMNS, tasks_of, outcomes)
    columns = ("stream", "learner", *(head for head, _, _ in GENERATED_COLUMNS))
    note = (
        "After: the 1,000 rows after the last change, or after the middle of a gradual one. Missing runs are left out."
    )
    return Table("Exact match, generated streams", columns, rows, note)


def _rows(
    streams: Sequence[str],
    lines: Sequence[Configuration],
    columns: Sequence[tuple[str, str, str]],
    tasks_of: Callable[[Configuration, str, str], list[Task]],
    outcomes: Mapping[Task, Outcome],
) -> tuple[tuple[str | float | None, ...], ...]:
    """Return a row per stream and learner, plus one per stream for a model of the new part."""
    rows: list[tuple[str | float | None, ...]] = []
    for stream in streams:
        for line in lines:
            cells = [mean_of(name, tasks_of(line, stream, change), outcomes) for _, change, name in columns]
            rows.append((stream, line.title, *cells))
        only_new = mean_of("exact_match@after", tasks_of(OURS, stream, "new part"), outcomes)
        rows.append((stream, NEW_PART, *(only_new if change == "sudden" else None for _, change, _ in columns)))
    return tuple(row for row in rows if any(cell is not None for cell in row[2:]))


def _dataset_curves(scope: Scope, outcomes: Mapping[Task, Outcome]) -> list[Figure]:
    found = [
        (f"{dataset}, {change}", {line.title: _dataset_task(line, dataset, change, 0) for line in scope.wanted(LINES)})
        for dataset in _datasets(scope)
        if CATALOGUE[dataset].shape[0] >= DRAWN_ROWS
        for change in ("sudden", "recurrent")
    ]
    return _figures(found, outcomes)


def _generated_curves(scope: Scope, outcomes: Mapping[Task, Outcome]) -> list[Figure]:
    found = [
        (
            f"{name}, {change}",
            {line.title: _generated_task(line, name, change, scope) for line in _generated_lines(scope)},
        )
        for name in GENERATORS
        for change in ("sudden", "recurrent")
    ]
    return _figures(found, outcomes)


def _figures(planned: Sequence[tuple[str, Mapping[str, Task]]], outcomes: Mapping[Task, Outcome]) -> list[Figure]:
    figures = []
    for title, by_line in planned:
        curves = {
            line: outcomes[task].pictures["curve"]
            for line, task in by_line.items()
            if task in outcomes and "curve" in outcomes[task].pictures
        }
        if curves:
            drawn = draw_over_rows(curves, "exact_match")
            figures.append(Figure(f"Exact match over the rows, {title}", drawn, note_over_rows(curves)))
    return figures


def _verdict(scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    """Compare the results of `drift="follow"` with its goals, in sentences."""
    rotated, generated = _verdict_on_datasets(scope, outcomes), _verdict_on_generated(scope, outcomes)
    return " ".join(filter(None, (rotated, generated))) or "Too few results to measure the gain from following."


def _verdict_on_datasets(scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    after = _mean_over_datasets(FOLLOW, "sudden", "exact_match@after", scope, outcomes)
    only_new = _mean_over_datasets(OURS, "new part", "exact_match@after", scope, outcomes)
    if after is None or only_new is None:
        return ""
    sentences = [
        f"After a sudden change {FOLLOW.title} is {_apart(only_new - after)} a model of the new part only "
        f"({after:.3f}, {only_new:.3f}; goal: {NEAR})."
    ]
    costs = {
        dataset: ours - followed
        for dataset in _datasets(scope)
        if (ours := mean_of("exact_match", _of_dataset(OURS, dataset, "none", scope), outcomes)) is not None
        and (followed := mean_of("exact_match", _of_dataset(FOLLOW, dataset, "none", scope), outcomes)) is not None
    }
    worst = max(costs, key=lambda dataset: costs[dataset])
    sentences.append(
        f"Without change it costs {np.mean(list(costs.values())):+.4f} exact match on average, most on {worst} "
        f"({costs[worst]:+.4f}; goal: {COST})."
    )
    speeds = [
        mean_of("rows_per_second", [t for d in _datasets(scope) for t in _of_dataset(line, d, "none", scope)], outcomes)
        for line in (OURS, FOLLOW)
    ]
    if speeds[0] and speeds[1]:
        sentences.append(f"It takes {speeds[0] / speeds[1]:.2f} times the time (goal: {TIMES}).")
    first, window = (
        _mean_over_datasets(line, "recurrent", "exact_match@first", scope, outcomes)
        for line in (FOLLOW, SLIDING_WINDOW)
    )
    if first is not None and window is not None:
        sentences.append(
            f"In the first 200 rows after an old meaning returns it has {first:.3f}, a sliding window {window:.3f}."
        )
    return " ".join(sentences)


def _verdict_on_generated(scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    def found(name: str, line: Configuration, change: str) -> dict[str, float]:
        values = {one: mean_of(name, _of_generated(line, one, change, scope), outcomes) for one in GENERATORS}
        return {one: value for one, value in values.items() if value is not None}

    def compared(
        ours: tuple[str, Configuration, str], theirs: tuple[str, Configuration, str]
    ) -> list[tuple[str, float, float]]:
        """Return the results of two learners by stream; the largest losses of `ours` come first."""
        left, right = found(*ours), found(*theirs)
        both = [(one, left[one], right[one]) for one in left if one in right]
        return sorted(both, key=lambda known: known[1] - known[2])

    sentences = []
    after, first = "exact_match@after", "exact_match@first"
    gaps = compared((after, FOLLOW, "sudden"), (after, OURS, "new part"))
    if gaps:
        listed = ", ".join(
            f"{_apart(new - followed)} it on {one} ({followed:.3f}, {new:.3f})" for one, followed, new in gaps
        )
        sentences.append(
            f"After a sudden change of generated streams, compared with a model of the new part: {listed}."
        )
    costs = compared(("exact_match", FOLLOW, "none"), ("exact_match", OURS, "none"))
    if costs:
        listed = ", ".join(f"{unfollowed - followed:+.4f} on {one}" for one, followed, unfollowed in costs)
        sentences.append(f"On generated streams without change, following costs {listed}.")
    returns = compared((first, FOLLOW, "recurrent"), (first, SLIDING_WINDOW, "recurrent"))
    if returns:
        listed = ", ".join(f"{followed:.3f} and {window:.3f} on {one}" for one, followed, window in returns)
        first_rows = "In the first 200 rows after an old meaning returns"
        sentences.append(f"{first_rows}, compared with a sliding window: {listed}.")
    return " ".join(sentences)


def _apart(gap: float) -> str:
    return f"{abs(gap):.3f} {'below' if gap > 0 else 'above'}"

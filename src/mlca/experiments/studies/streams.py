"""Streams: test-then-train results of MLCA, 17 published classifiers, River and a control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import numpy as np

from mlca.experiments.algorithms import LAST_LABELS, OURS, PUBLISHED, RIVER, RIVER_LOGISTIC, STREAMING, Configuration
from mlca.experiments.paper_tables import read_paper
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import NUMERIC, Scope
from mlca.experiments.stream_tables import read_published
from mlca.experiments.streaming import STREAM_MEASURES
from mlca.experiments.studies.figures import draw_critical_difference, draw_over_rows, note_over_rows
from mlca.experiments.studies.summaries import can_rank, mean_of, rank, troubles
from mlca.experiments.tasks import Outcome, Task, in_order
from mlca.metrics import MEASURES

LINES = (LAST_LABELS, PUBLISHED, OURS, *STREAMING, *RIVER)
SLOW = frozenset({"river-tree", "river-forest"})
# Each dataset is run in the order of its file, and shuffled with each of these seeds.
SHUFFLES = (0,)
# A file's order is informative if repeating the previous labels gains more micro F1 than this over shuffled rows.
INFORMATIVE_GAIN = 0.05
# Streams in ascending order of the slowest learner's time.
SHORT_FIRST = (
    *("flags", "virusgo", "emotions", "birds", "yeast", "scene", "medical", "enron", "langlog"),
    *("bibtex", "tmc2007-500", "mediamill"),
)

INTRODUCTION = """
Every row is predicted and then learned, one row per call, in one pass, in the order of the file and shuffled. The first
line is a control: it only repeats the labels of the previous row. Where the control is good, the file is sorted, and a
learner that uses the order does well there too. The order of a file counts as informative where the control's micro F1
is more than {informative} above its own on shuffled rows.

The 17 published classifiers are those of Esteban and others (2024), in the order of the file. Figures follow their
conventions: a row or label without true and predicted labels has F1 0. River's learners were run here, one model per
label, with River's defaults: logistic regression on features standardised where rows are dense, and nearest neighbours
among the last 1000 rows. N/A: not finished within the time limit, or not run. Rows per second are by CPU time of
predicting and learning. Memory is the size of the pickled model.
"""


def lines_of(scope: Scope) -> tuple[Configuration, ...]:
    """Return the learners that a run covers; River's learners only if River is installed."""
    return tuple(
        one
        for one in scope.wanted(LINES)
        if (scope.patient or one.key not in SLOW) and (one.family != "river" or find_spec("river") is not None)
    )


def datasets_of(scope: Scope) -> tuple[str, ...]:
    """Return the published streams whose data are available, short streams first."""
    return tuple(name for name in SHORT_FIRST if name in (*scope.datasets, *scope.others))


def stream_task(line: Configuration, dataset: str, shuffle: int | None) -> Task:
    """Return the task that runs a learner on a stream; `shuffle` is a seed, or None."""
    parameters = dict(line.parameters)
    if line is RIVER_LOGISTIC:
        parameters["standardised"] = dataset in NUMERIC
    return Task("prequential", line.estimator, in_order(parameters), dataset, repetition=shuffle)


def tasks(scope: Scope) -> list[Task]:
    """Return one task per dataset, learner and order."""
    return [
        stream_task(line, dataset, shuffle)
        for dataset in datasets_of(scope)
        for shuffle in (None, *SHUFFLES)
        for line in lines_of(scope)
    ]


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Compare MLCA with the published learners, River's and the control, by each measure."""
    informative = _informative(scope, outcomes)
    tables = [
        _rank_table("all streams", datasets_of(scope), scope, outcomes),
        _rank_table(
            "streams with uninformative order",
            [name for name in datasets_of(scope) if name not in informative],
            scope,
            outcomes,
        ),
        *(_measure_table(name, scope, outcomes) for name in STREAM_MEASURES),
        *(_shuffled_table(name, scope, outcomes) for name in ("micro_f1", "exact_match")),
        _expected(scope, outcomes),
        _plain_table("Rows per second, order of the file", "rows_per_second", 1, scope, outcomes),
        _plain_table("Megabytes of the model at the end, order of the file", "model_bytes", 1e-6, scope, outcomes),
    ]
    text = INTRODUCTION.format(informative=INFORMATIVE_GAIN).strip()
    return Section(
        "streams",
        "Streams",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(tasks(scope), outcomes)))),
        _verdict(informative, scope, outcomes),
        tuple(tables),
        (*_rank_figure(scope, outcomes), *_curves(scope, outcomes)),
    )


def _value(
    name: str, line: Configuration, dataset: str, shuffle: int | None, outcomes: Mapping[Task, Outcome]
) -> float | None:
    return mean_of(name, [stream_task(line, dataset, shuffle)], outcomes)


def _informative(scope: Scope, outcomes: Mapping[Task, Outcome]) -> tuple[str, ...]:
    """Return the datasets whose order in the file helps to predict the labels."""
    informative = []
    for dataset in datasets_of(scope):
        as_filed = _value("micro_f1", LAST_LABELS, dataset, None, outcomes)
        shuffled = _value("micro_f1", LAST_LABELS, dataset, SHUFFLES[0], outcomes)
        if as_filed is not None and shuffled is not None and as_filed - shuffled > INFORMATIVE_GAIN:
            informative.append(dataset)
    return tuple(informative)


def _published(name: str, dataset: str) -> dict[str, float]:
    """Return a measure's published values on a stream; unfinished runs get the worst value."""
    worst = 1.0 if MEASURES[name].better == "lower" else 0.0
    return {title: worst if value is None else value for title, value in read_published(name)[dataset].items()}


def _ranks_beside(
    name: str, line: Configuration, datasets: Sequence[str], outcomes: Mapping[Task, Outcome]
) -> dict[str, float] | None:
    """Rank `line` among the published learners, over the datasets that it finished."""
    rows, titles = [], (*next(iter(read_published(name).values())), line.title)
    for dataset in datasets:
        value = _value(name, line, dataset, None, outcomes)
        if value is not None:
            rows.append([*_published(name, dataset).values(), value])
    results = np.array(rows, dtype=np.float64).reshape(len(rows), len(titles))
    if not can_rank(results):
        return None
    _, nemenyi = rank(results, name, titles)
    return dict(zip(titles, nemenyi.ranks.average().tolist(), strict=True))


def _rank_table(title: str, datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    """List the average rank that each learner has among the published learners."""
    rows: list[tuple[str | float | int | None, ...]] = []
    for line in lines_of(scope):
        n_done = sum(_value("micro_f1", line, dataset, None, outcomes) is not None for dataset in datasets)
        ranks = [_ranks_beside(name, line, datasets, outcomes) for name in STREAM_MEASURES]
        rows.append((line.title, *(None if one is None else one[line.title] for one in ranks), n_done))
    beside = [_ranks_beside(name, OURS, datasets, outcomes) for name in STREAM_MEASURES]
    if all(one is not None for one in beside):
        micro = beside[0] or {}
        best = sorted((one for one in micro if one != OURS.title), key=lambda one: micro[one])[:3]
        rows += [
            (f"{one} (published)", *(None if ranks is None else ranks[one] for ranks in beside), None) for one in best
        ]
    columns = ("learner", *(MEASURES[name].label for name in STREAM_MEASURES), "streams")
    note = (
        "Each learner is ranked as an 18th beside the 17 published, over the streams that it finished; 1 is best. "
        f"The best three published are ranked beside MLCA(). Streams: {', '.join(datasets) or 'none'}."
    )
    return Table(f"Average ranks, {title}", columns, tuple(rows), note)


def _measure_table(name: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    """Tabulate a measure for all learners and the best published ones, in file order."""
    datasets = datasets_of(scope)
    rows: list[tuple[str | float | int | None, ...]] = [
        (line.title, *(_value(name, line, dataset, None, outcomes) for dataset in datasets)) for line in lines_of(scope)
    ]
    best = max if MEASURES[name].better == "higher" else min
    published = {dataset: _published(name, dataset) for dataset in datasets}
    rows.append(("best of the 17 published", *(best(published[dataset].values()) for dataset in datasets)))
    rows += [
        (f"{title} (published)", *(read_published(name)[dataset][title] for dataset in datasets))
        for title in ("MLHAT", "KNN", "HAT", "ARF")
    ]
    measure = MEASURES[name]
    title = f"{measure.label}, order of the file ({measure.better} is better)"
    return Table(title, ("learner", *datasets), tuple(rows))


def _shuffled_table(name: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    rows = tuple(
        (line.title, *(_value(name, line, dataset, SHUFFLES[0], outcomes) for dataset in datasets_of(scope)))
        for line in lines_of(scope)
    )
    return Table(f"{MEASURES[name].label}, shuffled", ("learner", *datasets_of(scope)), rows)


def _plain_table(title: str, name: str, unit: float, scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    def cell(line: Configuration, dataset: str) -> float | None:
        value = _value(name, line, dataset, None, outcomes)
        return None if value is None else value * unit

    rows = tuple((line.title, *(cell(line, dataset) for dataset in datasets_of(scope))) for line in lines_of(scope))
    return Table(title, ("learner", *datasets_of(scope)), rows)


def _expected(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    """Compare micro F1 with the simulated results."""
    recency = STREAMING[0]
    rows = []
    for row in read_paper("simulated_streams"):
        if row["dataset"] in datasets_of(scope):
            cells: list[float | None] = []
            for line, head in ((OURS, "plain"), (recency, "recency")):
                found = _value("micro_f1", line, row["dataset"], None, outcomes)
                cells += [float(row[head]), found, None if found is None else found - float(row[head])]
            rows.append((row["dataset"], *cells))
    columns = ["dataset"]
    for title in (OURS.title, recency.title):
        columns += [f"{title}, expected", f"{title}, measured", f"{title}, difference"]
    note = "Expected: a plain Python version of the rule without its background score, in the order of the file."
    return Table("Micro F1 compared with the simulation", tuple(columns), tuple(rows), note)


def _rank_figure(scope: Scope, outcomes: Mapping[Task, Outcome]) -> list[Figure]:
    """Draw average ranks by micro F1 over the streams that all learners finished."""
    lines = [line for line in lines_of(scope) if line.family != "river"]
    rows = []
    for dataset in datasets_of(scope):
        ours = [_value("micro_f1", line, dataset, None, outcomes) for line in lines]
        rows.append([*_published("micro_f1", dataset).values(), *(np.nan if one is None else one for one in ours)])
    titles = [*next(iter(read_published("micro_f1").values())), *(line.title for line in lines)]
    results = np.array(rows, dtype=np.float64).reshape(len(rows), len(titles))
    if not lines or not can_rank(results):
        return []
    friedman, nemenyi = rank(results, "micro_f1", titles)
    return [Figure("Average ranks by micro F1, order of the file", draw_critical_difference(nemenyi), str(friedman))]


def _curves(scope: Scope, outcomes: Mapping[Task, Outcome]) -> list[Figure]:
    """Draw micro F1 over the rows of each stream."""
    figures = []
    for dataset in datasets_of(scope):
        curves = {}
        for line in lines_of(scope):
            outcome = outcomes.get(stream_task(line, dataset, None))
            if outcome is not None and "curve" in outcome.pictures:
                curves[line.title] = outcome.pictures["curve"]
        if curves:
            title = f"Micro F1 over the rows of {dataset}, order of the file"
            figures.append(Figure(title, draw_over_rows(curves, "micro_f1"), note_over_rows(curves)))
    return figures


def _verdict(informative: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    """Summarise the results of the control, then the results of MLCA."""
    sentences = []
    beaten = [
        dataset
        for dataset in datasets_of(scope)
        if (_value("micro_f1", LAST_LABELS, dataset, None, outcomes) or 0)
        > max(_published("micro_f1", dataset).values())
    ]
    if beaten:
        sentences.append(
            f"Repeating the labels of the previous row beats all 17 published ones on {', '.join(beaten)}."
        )
    if informative:
        sentences.append(f"The order of the file is informative in {', '.join(informative)}.")
    behind = [
        dataset
        for dataset in datasets_of(scope)
        if (value := _value("micro_f1", OURS, dataset, None, outcomes)) is not None
        and value < max(_published("micro_f1", dataset).values())
    ]
    if behind:
        sentences.append(f"By micro F1, MLCA() is behind the best published classifier on {', '.join(behind)}.")
    for line in (OURS, *STREAMING):
        ranks = _ranks_beside("micro_f1", line, datasets_of(scope), outcomes)
        if ranks is not None:
            sentences.append(f"{line.title} has rank {ranks[line.title]:.2f} of 18 by micro F1.")
    return " ".join(sentences) or "Too few results to compare the learners."

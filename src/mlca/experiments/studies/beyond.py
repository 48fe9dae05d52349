"""Beyond the paper: MLCA() compared with the published algorithm and other learners.

The tasks cover all datasets. `section` reports the small datasets, which the paper cross-validates; `large_section`
reports all larger datasets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mlca.experiments.algorithms import (
    BATCH_RIVALS,
    CONFIGURATIONS,
    FREQUENCIES,
    HALVES,
    NODES_ONLY,
    OURS,
    PUBLISHED,
    Configuration,
)
from mlca.experiments.paper_tables import read_paper
from mlca.experiments.report import Figure, Section, Table
from mlca.experiments.scope import Scope
from mlca.experiments.studies.figures import draw_critical_difference
from mlca.experiments.studies.summaries import can_rank, mean_of, pooled, rank, troubles, worst_of
from mlca.experiments.tasks import Outcome, Task
from mlca.metrics.registry import PAPER_MEASURES

PEERS = ("mcic", "muenl", "mlodm-scaled", "glocal-scaled", "mlsaknn", "mlknn")
LINES = (
    *(OURS, NODES_ONLY, *HALVES, PUBLISHED, FREQUENCIES),
    *(one for one in CONFIGURATIONS if one.key in PEERS),
    *BATCH_RIVALS,
)
MLKNN = next(one for one in LINES if one.key == "mlknn")
SLOW = frozenset({"boosting", "boosting-fallback", "mlsaknn", "mlodm-scaled"})
CALIBRATION = {"brier_score": "Brier score", "calibration_error": "Expected calibration error"}
# Folds are run in rounds that end at these folds, so that all algorithms have early results.
ROUNDS = (3, 10, 20)
# Means that differ by less than this count as equal.
TIE = 5e-4

INTRODUCTION = """
Compared are MLCA() with its defaults; MLCA(decision="calibrated"), the default of 0.2, which has neither linear models
nor a mixer; each half of that with the paper's other half; and the published algorithm, also with votes by frequencies.
The paper's six peers have the paper's tuned parameters, mlODM and GLOCAL on scaled features. Batch learners of
scikit-learn see all training rows at once: logistic regression and gradient boosting per label, and a random forest of
200 trees. Each batch learner is also shown with the last step of MLCA's decision: a row without a likely label gets the
most likely one, unless "no label" is more likely. A win of MLCA() that disappears with this step is due to the
fallback. Everything else is each package's default.

Small datasets: up to {repetitions} of the 20 folds of 2 x 10-fold cross-validation. A mean is over the folds that the
algorithm has; their number is given. Ranks, wins and losses are over the folds that both, or all, have. N/A is a fit
that took longer than the time limit, failed, or was not run. Calibration is measured over all pairs of row and label:
the Brier score, and the expected calibration error in ten bins.
"""

SECONDS = {"fit_seconds": "Seconds of learning", "predict_seconds": "Seconds of predicting"}

LARGE_INTRODUCTION = """
The same algorithms on datasets with more rows, features or labels. Each has its official split and one fit; enron,
whose copy has no split, has up to {folds} folds. The peers that were run have the parameters that the paper chose for
langlog. N/A is a fit that took longer than the time limit, failed, or was not run. A forest keeps every label's share
in every leaf: by their numbers, that is 13 GB on mediamill and 42 GB on delicious. Seconds are wall-clock time.
"""


def lines_of(scope: Scope) -> tuple[Configuration, ...]:
    """Return the configurations that a run with this scope compares."""
    return tuple(one for one in scope.wanted(LINES) if scope.patient or one.key not in SLOW)


def tasks(scope: Scope) -> list[Task]:
    """Return a task per dataset, configuration and fold, in rounds; large datasets last."""
    small = [
        task
        for begin, end in zip((0, *ROUNDS), ROUNDS, strict=False)
        for dataset in scope.small_datasets
        for line in lines_of(scope)
        for task in scope.fold_tasks(line, dataset)[begin:end]
    ]
    large = [
        task
        for dataset in large_datasets(scope)
        for line in lines_of(scope)
        for task in scope.fold_tasks(line, dataset)[: ROUNDS[0]]
    ]
    return small + large


def section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Report results on the small datasets: ranks, MLCA()'s wins and losses, all measures."""
    lines = lines_of(scope)
    figures = []
    tables = [_means(lines, scope, outcomes)]
    ranked = _run_everywhere(lines, scope, outcomes)
    results, measures = _results(ranked, scope, outcomes)
    ranks = None
    if can_rank(results):
        friedman, nemenyi = rank(results, measures, [line.title for line in ranked])
        ranks = nemenyi.ranks.average()
        tables.append(_rank_table(ranked, results, measures))
        figures.append(
            Figure(
                "Average ranks, small datasets, six measures",
                draw_critical_difference(nemenyi),
                pooled(friedman, nemenyi, len(PAPER_MEASURES)),
            )
        )
    tables += [
        _differences(lines, scope, outcomes),
        wins_and_losses(lines, scope.small_datasets, scope, outcomes),
        losses("batch learners", _batch(lines), scope.small_datasets, scope, outcomes),
        _expected(scope, outcomes),
    ]
    tables += measure_tables(lines, scope.small_datasets, scope, outcomes)
    planned = [task for task in tasks(scope) if task.dataset in scope.small_datasets]
    text = INTRODUCTION.format(repetitions=scope.repetitions).strip()
    return Section(
        "beyond",
        "Beyond the paper",
        "\n\n".join(filter(None, (text, scope.complaint(), troubles(planned, outcomes)))),
        _verdict(lines, ranked, ranks, scope, outcomes),
        tuple(tables),
        tuple(figures),
    )


def _batch(lines: Sequence[Configuration]) -> list[Configuration]:
    return [line for line in lines if line.family == "batch"]


def large_datasets(scope: Scope) -> tuple[str, ...]:
    """Return all datasets in scope except the paper's small ones, fastest first."""
    return (*scope.others, *(name for name in scope.datasets if name not in scope.small_datasets))


def _folds(line: Configuration, dataset: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> dict[int, Outcome]:
    """Return the outcomes of a configuration on a dataset, by the index of the fold."""
    planned = enumerate(scope.fold_tasks(line, dataset))
    return {number: outcomes[task] for number, task in planned if task in outcomes}


def _run_everywhere(
    lines: Sequence[Configuration], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> list[Configuration]:
    """Return configurations that were run on every small dataset for which they are tuned."""
    return [
        line
        for line in lines
        if all(
            scope.parameters(line, dataset) is None or _folds(line, dataset, scope, outcomes)
            for dataset in scope.small_datasets
        )
    ]


def _shared_means(
    name: str, lines: Sequence[Configuration], dataset: str, scope: Scope, outcomes: Mapping[Task, Outcome]
) -> list[float]:
    """Return the mean of each configuration over the folds that all of them finished.

    The mean is NaN if no fold was run with all configurations. Folds that some of them did not finish, perhaps on a
    busy machine, are left out, because a worst value would dominate the mean. If there is no fold that all of them
    finished, missing results count as the worst value. A configuration that the paper could not tune gets the worst
    value.
    """
    found = [_folds(line, dataset, scope, outcomes) for line in lines]
    tuned = [scope.parameters(line, dataset) is not None for line in lines]
    of_tuned = [folds for folds, known in zip(found, tuned, strict=True) if known]
    run = set.intersection(*map(set, of_tuned)) if of_tuned else set()
    finished = {i for i in run if all(name in folds[i].values for folds in of_tuned)}
    shared, worst = finished or run, worst_of(name)
    return [
        np.nan if not shared else float(np.mean([folds[i].values.get(name, worst) for i in shared])) if known else worst
        for folds, known in zip(found, tuned, strict=True)
    ]


def _results(
    lines: Sequence[Configuration], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> tuple[NDArray[np.float64], list[str]]:
    """Return mean results, one row per dataset and measure, and the measure of each row."""
    pairs = [(dataset, measure.name) for dataset in scope.small_datasets for measure in PAPER_MEASURES]
    rows = [_shared_means(name, lines, dataset, scope, outcomes) for dataset, name in pairs]
    return np.array(rows, dtype=np.float64).reshape(len(pairs), len(lines)), [name for _, name in pairs]


def _rank_table(lines: Sequence[Configuration], results: NDArray[np.float64], measures: Sequence[str]) -> Table:
    """List average ranks over all measures and for each measure, best first."""

    def average(names: Sequence[str]) -> list[float] | None:
        kept = [name in names for name in measures]
        if not can_rank(results[kept]):
            return None
        better = [name for name in measures if name in names]
        _, nemenyi = rank(results[kept], better, [line.title for line in lines])
        found: list[float] = nemenyi.ranks.average().tolist()
        return found

    each = [average([measure.name]) for measure in PAPER_MEASURES]
    overall = average(measures) or [np.nan] * len(lines)
    rows = [
        (line.title, overall[i], *(None if column is None else column[i] for column in each))
        for i, line in enumerate(lines)
    ]
    columns = ("algorithm", "all measures", *(measure.label for measure in PAPER_MEASURES))
    note = (
        "Over the small datasets and the folds that all algorithms here have; 1 is best. An algorithm that was not run "
        "on one of the datasets is not ranked."
    )
    order = sorted(range(len(lines)), key=lambda i: overall[i])
    return Table("Average ranks", columns, tuple(rows[i] for i in order), note)


def _means(lines: Sequence[Configuration], scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    """Average each measure over the small datasets, if the configuration ran on all."""
    names = [*(measure.name for measure in PAPER_MEASURES), *CALIBRATION]

    def mean(line: Configuration, name: str) -> float | None:
        found = [mean_of(name, scope.fold_tasks(line, dataset), outcomes) for dataset in scope.small_datasets]
        known = [value for value in found if value is not None]
        return float(np.mean(known)) if known and len(known) == len(found) else None

    def n_folds(line: Configuration) -> str:
        counts = [len(_folds(line, dataset, scope, outcomes)) for dataset in scope.small_datasets]
        return (
            "" if not counts else f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        )

    rows = tuple((line.title, *(mean(line, name) for name in names), n_folds(line)) for line in lines)
    heads = (*(measure.label for measure in PAPER_MEASURES), *CALIBRATION.values())
    note = "N/A: the algorithm lacks a dataset, so its mean would not be comparable."
    return Table("Means over the small datasets", ("algorithm", *heads, "folds"), rows, note)


def _differences(lines: Sequence[Configuration], scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    """Compare the means of MLCA() and each rival over the folds that both finished."""

    def difference(rival: Configuration, name: str) -> float | None:
        pairs = [_shared_means(name, (OURS, rival), dataset, scope, outcomes) for dataset in scope.small_datasets]
        gaps = [ours - theirs for ours, theirs in pairs]
        return float(np.mean(gaps)) if gaps and not np.isnan(gaps).any() else None

    rivals = [line for line in lines if line is not OURS]
    rows = tuple((rival.title, *(difference(rival, measure.name) for measure in PAPER_MEASURES)) for rival in rivals)
    note = (
        "Over the small datasets and the folds that both have. Above 0 MLCA() is better in the first three, below 0 in "
        "the others."
    )
    heads = (measure.label for measure in PAPER_MEASURES)
    return Table("MLCA() minus the other, on the same folds", ("algorithm", *heads), rows, note)


def duels(rival: Configuration, dataset: str, scope: Scope, outcomes: Mapping[Task, Outcome]) -> dict[str, float]:
    """Return how much better MLCA() is than a rival on a dataset, by each of the six measures."""
    better = {}
    for measure in PAPER_MEASURES:
        ours, theirs = _shared_means(measure.name, (OURS, rival), dataset, scope, outcomes)
        sign = 1 if measure.better == "higher" else -1
        if not np.isnan(ours):
            better[measure.name] = sign * (ours - theirs)
    return better


def wins_and_losses(
    lines: Sequence[Configuration], datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> Table:
    """Count the losses and wins of MLCA() against each rival, by dataset and measure."""
    rows = []
    for rival in lines:
        if rival is OURS:
            continue
        gains = [gain for dataset in datasets for gain in duels(rival, dataset, scope, outcomes).values()]
        lost, won = sum(gain < -TIE for gain in gains), sum(gain > TIE for gain in gains)
        if gains:
            rows.append((rival.title, lost, won, len(gains) - won - lost))
    note = "Six measures per dataset. A difference of means below 0.0005 is a tie. A fit that never finished is a loss."
    return Table("Losses and wins of MLCA()", ("against", "MLCA() loses", "MLCA() wins", "ties"), tuple(rows), note)


def _expected(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Table:
    """Compare MLCA() with the simulated results."""
    rows = []
    for row in read_paper("simulated"):
        if row["dataset"] in scope.small_datasets:
            cells: list[float | None] = []
            for name in ("exact_match", "example_f1", "macro_auc"):
                found = mean_of(name, scope.fold_tasks(OURS, row["dataset"]), outcomes)
                expected = float(row[name])
                cells += [expected, found, None if found is None else found - expected]
            rows.append((row["dataset"], *cells))
    columns = ["dataset"]
    for label in ("exact match", "F1", "AUC"):
        columns += [f"{label}, expected", f"{label}, measured", f"{label}, difference"]
    note = "Expected: a plain Python version of the rule without its background score, on 5 folds."
    return Table("MLCA() compared with the simulation", tuple(columns), tuple(rows), note)


def measure_tables(
    lines: Sequence[Configuration], datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> list[Table]:
    """Tabulate each measure, including calibration, by configuration and dataset."""
    measures = [(measure.name, f"{measure.label} ({measure.better} is better)") for measure in PAPER_MEASURES]
    measures += [(name, f"{label} (lower is better)") for name, label in CALIBRATION.items()]
    return [value_table(name, title, lines, datasets, scope, outcomes) for name, title in measures]


def value_table(
    name: str,
    title: str,
    lines: Sequence[Configuration],
    datasets: Sequence[str],
    scope: Scope,
    outcomes: Mapping[Task, Outcome],
) -> Table:
    """Tabulate a measure by configuration and dataset; a note lists datasets without results."""
    found = {
        dataset: [mean_of(name, scope.fold_tasks(line, dataset), outcomes) for line in lines] for dataset in datasets
    }
    empty = [dataset for dataset, values in found.items() if all(value is None for value in values)]
    shown = {dataset: values for dataset, values in found.items() if dataset not in empty}
    rows = tuple((line.title, *(values[i] for values in shown.values())) for i, line in enumerate(lines))
    note = f"Nothing was run on {', '.join(empty)}." if empty else ""
    return Table(title, ("algorithm", *shown), rows, note)


def _verdict(
    lines: Sequence[Configuration],
    ranked: Sequence[Configuration],
    ranks: NDArray[np.float64] | None,
    scope: Scope,
    outcomes: Mapping[Task, Outcome],
) -> str:
    """Summarise the losses of MLCA(), then its average rank."""
    sentences = [lost_to("batch learners", _batch(lines), scope.small_datasets, scope, outcomes)]
    sentences.append(won_by_fallback(lines, scope.small_datasets, scope, outcomes))
    sentences.append(calibrated(scope.small_datasets, scope, outcomes))
    if ranks is not None and OURS in ranked:
        place = ranked.index(OURS)
        order = sorted(range(len(ranked)), key=lambda i: ranks[i])
        next_best = order[1] if order[0] == place else order[0]
        sentences.append(
            f"Its average rank is {ranks[place]:.2f} of {len(ranked)} (place {order.index(place) + 1}; "
            f"{ranked[next_best].title} has {ranks[next_best]:.2f})."
        )
    return " ".join(filter(None, sentences)) or "Too few results to compare the algorithms."


def calibrated(datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> str:
    """Return a sentence that compares the calibration error of MLCA() with ML-kNN's."""
    errors = {
        dataset: [mean_of("calibration_error", scope.fold_tasks(line, dataset), outcomes) for line in (OURS, MLKNN)]
        for dataset in datasets
    }
    known = {dataset: (ours, theirs) for dataset, (ours, theirs) in errors.items() if ours and theirs}
    if not known:
        return ""
    worse = [f"{dataset} ({ours:.3f}, {theirs:.3f})" for dataset, (ours, theirs) in known.items() if ours > theirs]
    sentence = f"Its calibration error is at most ML-kNN's on {len(known) - len(worse)} of {len(known)} datasets"
    return f"{sentence}, not on {', '.join(worse)}." if worse else f"{sentence}."


def lost_to(
    kind: str, rivals: Sequence[Configuration], datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> str:
    """Return a sentence on how many comparisons MLCA() loses, and to which rival most."""
    counts = {}
    for rival in rivals:
        gains = [gain for dataset in datasets for gain in duels(rival, dataset, scope, outcomes).values()]
        if gains:
            counts[rival.title] = (sum(gain < -TIE for gain in gains), len(gains))
    if not counts:
        return ""
    lost, compared = (sum(column) for column in zip(*counts.values(), strict=True))
    worst = max(counts, key=lambda title: counts[title][0])
    most = f", most to {worst} ({counts[worst][0]} of {counts[worst][1]})" if lost else ""
    return f"MLCA() loses {lost} of {compared} comparisons with {kind}{most}."


def losses(
    kind: str, rivals: Sequence[Configuration], datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> Table:
    """Tabulate, by rival and measure, the datasets on which MLCA() is worse."""
    rows = []
    for rival in rivals:
        gains = {dataset: duels(rival, dataset, scope, outcomes) for dataset in datasets}
        where = [
            ", ".join(dataset for dataset, found in gains.items() if found.get(measure.name, 0.0) < -TIE)
            for measure in PAPER_MEASURES
        ]
        if any(where):
            rows.append((rival.title, *(names or "–" for names in where)))
    columns = ("against", *(measure.label for measure in PAPER_MEASURES))
    note = f"The table lists {kind} to which MLCA() loses at least one comparison."
    return Table("Where MLCA() loses", columns, tuple(rows), note)


def won_by_fallback(
    lines: Sequence[Configuration], datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]
) -> str:
    """Return sentences on wins over batch learners that disappear if these use our fallback."""
    sentences = []
    for other in (line for line in lines if "fallback" in line.parameters):
        original = next((line for line in lines if line.estimator == other.estimator and line is not other), None)
        if original is None:
            continue
        wins, kept = (
            {
                (dataset, name)
                for dataset in datasets
                for name, gain in duels(rival, dataset, scope, outcomes).items()
                if gain > TIE and duels(other, dataset, scope, outcomes)
            }
            for rival in (original, other)
        )
        if wins:
            sentences.append(
                f"{len(wins - kept)} of {len(wins)} wins against {original.title} are due to the fallback."
            )
    return " ".join(sentences)


def large_section(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Section:
    """Report the larger datasets: wins and losses of MLCA(), all measures, and times."""
    datasets = large_datasets(scope)
    planned = [task for task in tasks(scope) if task.dataset in datasets]
    lines = [line for line in lines_of(scope) if _was_run(line, datasets, scope, outcomes)]
    rivals = sorted(
        (line for line in lines if line is not OURS),
        key=lambda rival: -_n_losses(rival, datasets, scope, outcomes),
    )
    sentences = [lost_to("other learners", rivals, datasets, scope, outcomes)]
    sentences.append(won_by_fallback(lines, datasets, scope, outcomes))
    sentences.append(calibrated(datasets, scope, outcomes))
    tables: list[Table] = [
        wins_and_losses(lines, datasets, scope, outcomes),
        losses("other learners", rivals, datasets, scope, outcomes),
        *measure_tables(lines, datasets, scope, outcomes),
        *(value_table(name, title, lines, datasets, scope, outcomes) for name, title in SECONDS.items()),
    ]
    text = LARGE_INTRODUCTION.format(folds=ROUNDS[0]).strip()
    return Section(
        "large",
        "Larger datasets",
        "\n\n".join(filter(None, (text, troubles(planned, outcomes)))),
        " ".join(filter(None, sentences)) or "Nothing was run on a larger dataset.",
        tuple(tables),
        (),
    )


def _was_run(line: Configuration, datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> bool:
    return any(task in outcomes for dataset in datasets for task in scope.fold_tasks(line, dataset))


def _n_losses(rival: Configuration, datasets: Sequence[str], scope: Scope, outcomes: Mapping[Task, Outcome]) -> int:
    """Return the number of comparisons in which MLCA() is worse than a rival."""
    return sum(gain < -TIE for dataset in datasets for gain in duels(rival, dataset, scope, outcomes).values())

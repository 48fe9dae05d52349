"""The further studies with invented outcomes, whose correct evaluation is known."""

from dataclasses import replace

import numpy as np
import pytest

from mlca.experiments.algorithms import BESIDES, LAST_LABELS, OURS, RIVER_LOGISTIC, STREAMING, choose
from mlca.experiments.paper_tables import read_paper
from mlca.experiments.scope import Scope, scope_of
from mlca.experiments.stream_tables import read_published
from mlca.experiments.streaming import STREAM_MEASURES
from mlca.experiments.studies import beyond, budget, drift, streams
from mlca.experiments.tasks import Outcome, in_order
from mlca.metrics import MEASURES
from mlca.statistics import critical_difference

SMALL = ("flags", "birds", "virusgo")


def goodness(measures, good):
    return {name: good if MEASURES[name].better == "higher" else 1 - good for name in measures}


def is_ours(task):
    return task.algorithm == "MLCA" and task.parameters == ()


def outcomes_of(tasks, values):
    return {task: Outcome(task, "done", values(task), {}) for task in tasks}


def table(section, title):
    return next(one for one in section.tables if one.title == title)


def cells(found, row):
    return next(line for line in found.rows if line[0] == row)[1:]


def compared(ours, forest, rest=0.5, **scope):
    scope = Scope(datasets=SMALL, repetitions=3, **scope)

    def values(task):
        good = ours(task) if is_ours(task) else forest(task) if task.algorithm == "RandomForest" else rest
        error = 0.3 if task.algorithm == "MLkNN" and task.dataset == "birds" else 0.1 + is_ours(task) / 10
        return goodness([measure.name for measure in beyond.PAPER_MEASURES], good) | {"calibration_error": error}

    return scope, outcomes_of(beyond.tasks(scope), values)


def test_losses_are_reported_first():
    scope, found = compared(lambda task: 0.8, lambda task: 0.9 if task.dataset == "birds" else 0.7)
    section = beyond.section(scope, found)
    assert section.verdict.index("most to random forest (6 of 18)") < section.verdict.index("average rank")
    forest, with_fallback = table(section, "Where MLCA() loses").rows
    assert forest == ("random forest", *["birds"] * 6)
    assert with_fallback[0] == "forest, our fallback"
    rows = {row[0]: row[1:] for row in table(section, "Losses and wins of MLCA()").rows}
    assert rows["random forest"] == (6, 12, 0)
    assert rows["logistic regression"] == (0, 18, 0)
    assert table(section, "Average ranks").rows[0][0] == "MLCA()"
    assert "at most ML-kNN's on 1 of 3 datasets, not on flags (0.200, 0.100), virusgo" in section.verdict
    (ranks,) = section.figures
    assert "as in the paper: 18 cases of 3 datasets" in ranks.note
    assert f"would be {critical_difference(len(beyond.LINES), 3):.2f} instead of" in ranks.note
    assert f"{len(beyond.LINES)} algorithms on 18 cases" in ranks.note


def test_incomplete_algorithms_are_not_ranked():
    scope, found = compared(lambda task: 0.8, lambda task: 0.7)
    found = {task: one for task, one in found.items() if (task.algorithm, task.dataset) != ("MLkNN", "birds")}
    section = beyond.section(scope, found)
    titles = {row[0] for row in table(section, "Average ranks").rows}
    assert "ML-kNN" not in titles
    assert len(titles) == len(beyond.LINES) - 1
    found = {task: one for task, one in found.items() if task.dataset != "birds"}
    exact_match = table(beyond.section(scope, found), "Exact match (higher is better)")
    assert exact_match.columns == ("algorithm", "flags", "virusgo")
    assert exact_match.note == "Nothing was run on birds."


def test_wins_and_losses_use_common_folds_only():
    # MLCA() is better on the fold that the forest does not have, and worse on the two that it has.
    scope, found = compared(lambda task: 1.0 if task.fold == 2 else 0.4, lambda task: 0.6)
    found = {task: one for task, one in found.items() if task.algorithm != "RandomForest" or task.fold != 2}
    section = beyond.section(scope, found)
    rows = {row[0]: row[1:] for row in table(section, "Losses and wins of MLCA()").rows}
    assert rows["random forest"] == (18, 0, 0)
    means = table(section, "Means over the small datasets")
    assert cells(means, "MLCA()")[0] == pytest.approx(0.6)
    assert cells(means, "MLCA()")[-1] == "3"
    assert cells(means, "random forest")[-1] == "2"


def test_timeouts_count_as_worst_and_have_no_mean():
    scope, found = compared(lambda task: 0.2, lambda task: 0.9)
    found = {
        task: Outcome(task, "too long", {}, {}, "", 5.0) if task.algorithm == "RandomForest" else one
        for task, one in found.items()
    }
    section = beyond.section(scope, found)
    rows = {row[0]: row[1:] for row in table(section, "Losses and wins of MLCA()").rows}
    assert rows["random forest"] == (0, 18, 0)
    assert cells(table(section, "Means over the small datasets"), "random forest")[0] is None


def test_single_timeout_is_left_out_of_comparisons():
    scope, found = compared(lambda task: 0.8, lambda task: 0.9)
    found = {
        task: Outcome(task, "too long", {}, {}, "", 5.0) if (task.algorithm, task.fold) == ("RandomForest", 1) else one
        for task, one in found.items()
    }
    section = beyond.section(scope, found)
    assert cells(table(section, "Losses and wins of MLCA()"), "random forest") == (18, 0, 0)
    differences = table(section, "MLCA() minus the other, on the same folds")
    assert cells(differences, "random forest")[0] == pytest.approx(-0.1)


def test_a_few_folds_of_everything_come_first_and_large_datasets_last():
    scope = Scope(datasets=(*SMALL, "bibtex"), others=("enron", "tmc2007-500"))
    planned = beyond.tasks(scope)
    assert len(planned) == len(set(planned))
    numbers = [task.seed for task in planned if task.dataset in SMALL]
    assert numbers == sorted(numbers, key=lambda number: (number >= 3) + (number >= 10))
    assert max(numbers) == 19
    assert {task.dataset for task in planned[-40:]} <= {"enron", "tmc2007-500", "bibtex"}
    assert {task.fold for task in planned if task.dataset == "enron"} == {0, 1, 2}
    assert {task.fold for task in planned if task.dataset == "tmc2007-500"} == {None}


def test_larger_datasets_have_their_own_section():
    scope, found = compared(lambda task: 0.8, lambda task: 0.9 if task.dataset == "enron" else 0.7, others=("enron",))
    small, larger = beyond.section(scope, found), beyond.large_section(scope, found)
    assert "enron" not in table(small, "Exact match (higher is better)").columns
    assert "enron" not in small.verdict
    assert table(larger, "Exact match (higher is better)").columns == ("algorithm", "enron")
    assert cells(table(larger, "Exact match (higher is better)"), "random forest") == (pytest.approx(0.9),)
    assert cells(table(larger, "Losses and wins of MLCA()"), "random forest") == (6, 0, 0)
    assert cells(table(larger, "Where MLCA() loses"), "random forest") == ("enron",) * 6
    assert larger.verdict.startswith("MLCA() loses ")
    assert "comparisons with other learners, most to random forest (6 of 6)." in larger.verdict
    unrun = {task: one for task, one in found.items() if task.algorithm != "MLkNN"}
    titles = [row[0] for row in table(beyond.large_section(scope, unrun), "Exact match (higher is better)").rows]
    assert "ML-kNN" not in titles
    assert "random forest" in titles


def test_expectations_are_compared_in_a_table():
    row = read_paper("simulated")[0]
    scope = Scope(datasets=("flags",), repetitions=1)
    found = outcomes_of(beyond.tasks(scope), lambda task: {"exact_match": float(row["exact_match"]) + 0.01})
    assert cells(table(beyond.section(scope, found), "MLCA() compared with the simulation"), "flags")[:3] == (
        pytest.approx((0.233, 0.243, 0.01))
    )


def test_algorithms_are_selected_by_name():
    assert choose(["river"], BESIDES)[0] is RIVER_LOGISTIC
    scope = scope_of(datasets=[], algorithms=["mlca-new", "forest"])
    assert [line.key for line in beyond.lines_of(scope)] == ["mlca-new", "forest"]
    assert scope.configurations == ()
    assert "boosting" not in {line.key for line in beyond.lines_of(scope_of(quick=True, datasets=[]))}


def streamed(micro):
    scope = Scope(datasets=("flags", "emotions", "yeast", "scene"))

    def values(task):
        return goodness(STREAM_MEASURES, micro(task)) | {"rows_per_second": 100.0, "model_bytes": 1e6}

    return scope, outcomes_of(streams.tasks(scope), values)


def by_order(task):
    """Repeating the last labels is good only on scene in file order; MLCA() is better than all published learners."""
    if task.algorithm == "LastLabels":
        return 0.99 if task.dataset == "scene" and task.repetition is None else 0.2
    return 0.98 if is_ours(task) else 0.1


def test_repeating_the_last_labels_is_shown_as_baseline():
    scope, found = streamed(by_order)
    section = streams.section(scope, found)
    assert section.verdict.startswith("Repeating the labels of the previous row beats all 17 published ones on scene.")
    assert "The order of the file is informative in scene." in section.verdict
    for one in section.tables[:7]:
        assert one.rows[0][0] == LAST_LABELS.title
    little = table(section, "Average ranks, streams with uninformative order")
    assert "Streams: flags, emotions, yeast." in little.note
    assert cells(little, "MLCA()") == (1.0, 1.0, 1.0, 1.0, 1.0, 3)


def test_curve_has_the_number_of_rows_per_point():
    scope, found = streamed(by_order)
    task = streams.stream_task(LAST_LABELS, "scene", None)
    curve = {
        "row": [1200, 2400],
        "rows_a_point": 1200,
        "changes": [],
        "micro_f1": [0.4, 0.5],
        "exact_match": [0.1, 0.2],
    }
    found[task] = replace(found[task], pictures={"curve": curve})
    figures = {figure.title: figure for figure in streams.section(scope, found).figures}
    drawn = figures["Micro F1 over the rows of scene, order of the file"]
    assert drawn.note == "Each point is over the 1,200 rows up to it."


def test_learner_is_ranked_over_the_datasets_that_it_finished():
    scope, found = streamed(by_order)
    slow = streams.stream_task(RIVER_LOGISTIC, "yeast", None)
    found[slow] = Outcome(slow, "too long", {}, {}, "", 5.0)
    section = streams.section(scope, found)
    ranks = table(section, "Average ranks, all streams")
    assert cells(ranks, RIVER_LOGISTIC.title)[-1] == 3
    published = read_published("micro_f1")
    place = [1 + sum(value > 0.1 for value in published[name].values()) for name in ("flags", "emotions", "scene")]
    assert cells(ranks, RIVER_LOGISTIC.title)[0] == pytest.approx(np.mean(place))
    assert cells(table(section, "Micro F1, order of the file (higher is better)"), "MLHAT (published)") == tuple(
        published[name]["MLHAT"] for name in ("flags", "emotions", "yeast", "scene")
    )


def test_drift_results_are_compared_with_their_goals():
    scope = Scope(datasets=("emotions", "yeast"), repetitions=2)
    follow = in_order(drift.FOLLOW.parameters)

    def values(task):
        right = 0.5 if task.arrangement == "new part" else 0.48 if task.parameters == follow else 0.1
        cost = 0.001 if task.parameters == follow else 0.0
        speed = 100.0 if task.parameters == follow else 150.0
        first = 0.3 if task.algorithm == "SlidingWindow" else 0.4
        return {
            "exact_match": 0.6 - cost,
            "exact_match@after": right,
            "exact_match@first": first,
            "rows_per_second": speed,
        }

    section = drift.section(scope, outcomes_of(drift.tasks(scope), values))
    assert "is 0.020 below a model of the new part only (0.480, 0.500; goal: 0.03)" in section.verdict
    assert "costs +0.0010 exact match on average" in section.verdict
    assert "takes 1.50 times the time" in section.verdict
    assert "it has 0.400, a sliding window 0.300" in section.verdict


def test_losses_on_generated_streams_come_first():
    scope = Scope(datasets=(), repetitions=1)
    follow = in_order(drift.FOLLOW.parameters)

    def values(task):
        gap = {"hyperplane": 0.01, "RBF": -0.02, "tree": 0.2}[task.dataset] if task.parameters == follow else 0.0
        return {"exact_match": 0.6 - gap / 10, "exact_match@after": 0.5 - gap, "exact_match@first": 0.4 - gap}

    section = drift.section(scope, outcomes_of(drift.tasks(scope), values))
    first = "0.200 below it on tree (0.300, 0.500), 0.010 below it on hyperplane (0.490, 0.500), 0.020 above it on RBF"
    assert first in section.verdict
    assert "costs +0.0200 on tree, +0.0010 on hyperplane, -0.0020 on RBF" in section.verdict
    assert "0.200 and 0.400 on tree, 0.390 and 0.400 on hyperplane, 0.420 and 0.400 on RBF" in section.verdict
    new_part = next(row for row in table(section, "Exact match, generated streams").rows if row[1] == drift.NEW_PART)
    assert new_part == ("hyperplane", drift.NEW_PART, None, 0.5, None, None, None, None)


def test_budget_counts_training_rows_and_shows_the_loss():
    scope = Scope(datasets=("emotions", "scene"), repetitions=1)
    planned = budget.tasks(scope)
    nodes = {dict(task.parameters).get("max_nodes") for task in planned if task.dataset == "emotions"}
    assert nodes == {53, 133, 266, None}
    assert {task.arrangement for task in planned} == {"", "sorted"}

    def values(task):
        part = dict(task.parameters).get("max_nodes", 10_000)
        return {"exact_match": 0.5 if part > 2_000 else 0.4 if task.arrangement == "" else 0.2}

    section = budget.section(scope, outcomes_of(planned, values))
    assert "25 % shuffled: 0.100" in section.verdict
    assert "10 % sorted by label set: 0.300" in section.verdict
    assert len(section.figures) == 2


def test_unrequested_orders_are_not_planned():
    scope = scope_of(datasets=[], algorithms=["forest"])
    assert streams.tasks(scope) == drift.tasks(scope) == budget.tasks(scope) == []
    assert STREAMING[0] not in streams.lines_of(scope)
    assert OURS in streams.lines_of(scope_of(datasets=[]))


def test_wins_due_to_the_fallback_are_counted():
    scope, found = compared(lambda task: 0.8, lambda task: 0.9 if "fallback" in dict(task.parameters) else 0.7)
    verdict = beyond.section(scope, found).verdict
    assert "18 of 18 wins against random forest are due to the fallback." in verdict
    assert "0 of 18 wins against logistic regression are due to the fallback." in verdict

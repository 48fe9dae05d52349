"""River's interface of the measures: equal to `mlca.metrics` over whole streams, also with late labels."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import datasets, evaluate, metrics, utils

from mlca import metrics as ours
from mlca.river import ExactMatch, ExampleF1, HammingLoss, Jaccard, MacroF1, MicroF1, MLCAClassifier

PAIRS = {
    ExactMatch: ours.exact_match,
    ExampleF1: ours.example_f1,
    HammingLoss: ours.hamming_loss,
    Jaccard: ours.jaccard,
    MacroF1: ours.macro_f1,
    MicroF1: ours.micro_f1,
}
NAMES = "abcd"
each_metric = pytest.mark.parametrize("kind", PAIRS, ids=lambda kind: kind.__name__)
FEW = settings(max_examples=40, deadline=None)
answers = st.dictionaries(st.sampled_from(NAMES), st.booleans())
rows = st.lists(st.tuples(answers, answers), max_size=12)


def matrices(stream):
    """Return the indicator matrices of a stream, with one column per label that it names."""
    named = sorted({label for pair in stream for answer in pair for label in answer})
    return (np.array([[int(pair[i].get(label, False)) for label in named] for pair in stream]) for i in (0, 1))


def expected(kind, stream):
    if not any(answer for pair in stream for answer in pair):
        empty = kind is ExactMatch and stream
        return 1.0 if empty else math.nan
    return PAIRS[kind](*matrices(stream))


def value(kind, stream):
    metric = kind()
    for true, predicted in stream:
        metric.update(true, predicted)
    return metric.get()


@each_metric
@FEW
@given(stream=rows)
def test_metric_equals_the_measure_of_the_whole_stream(kind, stream):
    assert value(kind, stream) == pytest.approx(expected(kind, stream), nan_ok=True)


@each_metric
@FEW
@given(stream=rows, more=rows)
def test_reverted_row_has_no_effect(kind, stream, more):
    metric = kind()
    for true, predicted in more + stream:
        metric.update(true, predicted)
    for true, predicted in more:
        metric.revert(true, predicted)
    if kind is HammingLoss:  # known labels stay known
        named = {label for pair in more + stream for answer in pair for label in answer}
        wrong = sum(true.get(a, False) != predicted.get(a, False) for true, predicted in stream for a in NAMES)
        reference = wrong / (len(named) * len(stream)) if named and stream else math.nan
    else:
        reference = expected(kind, stream)
    assert metric.get() == pytest.approx(reference, nan_ok=True, abs=1e-12)


@each_metric
@FEW
@given(stream=rows)
def test_weight_of_two_equals_two_rows(kind, stream):
    metric = kind()
    for true, predicted in stream:
        metric.update(true, predicted, w=2.0)
    assert metric.get() == pytest.approx(value(kind, [row for row in stream for _ in (0, 1)]), nan_ok=True)


@each_metric
def test_late_label_counts_as_missed_where_river_raises(kind):
    late = [({"calm": True}, {"calm": True}), ({"calm": True, "storm": True}, {"calm": True})]
    rivers = metrics.multioutput.MicroAverage(metrics.F1())
    rivers.update(*late[0])
    with pytest.raises(KeyError):
        rivers.update(*late[1])
    good, bad = value(kind, late[:1]), value(kind, late)
    assert bad > good if kind is HammingLoss else bad < good


@each_metric
def test_metric_works_with_rivers_validation_copies_and_comparison(kind):
    rows = [
        ({"x": i % 7, "y": i % 3}, {"a": i % 7 > 3} if i < 60 else {"a": i % 7 > 3, "b": i % 3 == 0})
        for i in range(150)
    ]
    model, metric = MLCAClassifier(), kind()
    assert metric.works_with(model) and metric.requires_labels
    assert evaluate.progressive_val_score(rows, MLCAClassifier(), metric) is metric
    stream = []
    for x, y in rows:
        predicted = model.predict_one(x)
        if predicted:
            stream.append((y, predicted))
        model.learn_one(x, y)
    assert metric.get() == pytest.approx(PAIRS[kind](*matrices(stream)))
    assert repr(metric).startswith(f"{kind.__name__}: ")
    assert math.isnan(metric.clone().get())
    assert pickle.loads(pickle.dumps(metric)).get() == copy.deepcopy(metric).get() == metric.get()
    better = kind()
    better.update({"a": True}, {"a": True})
    assert better.is_better_than(metric)


@each_metric
@pytest.mark.filterwarnings("ignore:Passing an instance")
def test_metric_works_in_rolling_windows_and_in_metric_collections(kind):
    rolling, together = utils.Rolling(kind(), window_size=3), metrics.base.Metrics([kind(), ExactMatch()])
    stream = [({"a": i % 2 == 0, "b": True}, {"a": True, "b": i % 3 == 0}) for i in range(10)]
    for true, predicted in stream:
        rolling.update(true, predicted)
        together.update(true, predicted)
    assert rolling.get() == pytest.approx(value(kind, stream[-3:]))
    assert together.get()[0] == pytest.approx(value(kind, stream))


def test_metric_equals_rivers_own_if_all_labels_are_known_from_the_start():
    stream = []
    model = MLCAClassifier()
    for x, y in datasets.Yeast().take(300):
        predicted = model.predict_one(x)
        if predicted:
            stream.append((y, predicted))
        model.learn_one(x, y)
    exact, micro = metrics.multioutput.ExactMatch(), metrics.multioutput.MicroAverage(metrics.F1())
    for true, predicted in stream:
        exact.update(true, predicted)
        micro.update(true, predicted)
    assert value(ExactMatch, stream) == pytest.approx(exact.get())
    assert value(MicroF1, stream) == pytest.approx(micro.get())


def test_labels_that_are_not_dicts_are_rejected():
    with pytest.raises(ValueError, match=r"labels must be a dict .*; got a list"):
        MicroF1().update({"a": True}, ["a"])

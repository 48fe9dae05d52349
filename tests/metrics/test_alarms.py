"""Alarms: raised soon after a change with its details, and silent without one."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca import MLCA
from mlca.datasets import random_rbf, rotate_labels
from mlca.metrics import Alarm, prequential
from mlca.metrics.stream.alarms import OPENING_ROWS, Watch
from mlca.river import MLCAClassifier


class Oracle:
    """Predicts the true labels of a row, whose index is its first value; from `wrong_from` on, one label is wrong."""

    def __init__(self, Y, wrong_from=10**9, label=0):
        self.Y, self.wrong_from, self.label = Y, wrong_from, label
        self.learned = 0

    def partial_fit(self, X, Y):
        self.learned += len(X)

    def predict(self, X):
        rows = X[:, 0].astype(int)
        answer = self.Y[rows].copy()
        answer[rows >= self.wrong_from, self.label] ^= 1
        return answer


class Wary(Oracle):
    """Also returns the novelty of rows, like MLCA: their second value."""

    def novelty(self, X):
        return X[:, 1]


def made(n=2000, q=3, seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, q)) < 0.5).astype(np.uint8)
    Y[:1] = 1
    return np.column_stack([np.arange(n), rng.random(n)]), Y


def batches(X, Y, size=50):
    return [(X[i : i + size], Y[i : i + size]) for i in range(0, len(X), size)]


def test_stable_stream_raises_no_alarm():
    X, Y = made()
    assert prequential(Wary(Y), batches(X, Y)).alarms == ()


def test_drift_alarm_has_label_measure_and_row():
    X, Y = made()
    alarms = prequential(Oracle(Y, wrong_from=1000, label=1), batches(X, Y)).alarms
    assert {(alarm.label, alarm.measure) for alarm in alarms} == {
        (None, "exact_match"),
        (None, "example_f1"),
        (1, "jaccard"),
    }
    assert all(alarm.kind == "drift" and 1000 <= alarm.row < 1200 for alarm in alarms)
    assert all(alarm.after < alarm.before for alarm in alarms)


def test_improvement_raises_no_alarm():
    X, Y = made()
    backwards = Y.copy()
    backwards[:1000] ^= 1

    class Learner(Oracle):
        def predict(self, X):
            return backwards[X[:, 0].astype(int)]

    assert prequential(Learner(Y), batches(X, Y)).alarms == ()


@pytest.mark.parametrize("size", [1, 7, 50])
def test_alarms_do_not_depend_on_batches(size):
    X, Y = made(1600)
    X[800:, 1] = 0.5 + X[800:, 1] / 2
    one = prequential(Wary(Y, 900, 2), batches(X[:50], Y[:50]) + batches(X[50:], Y[50:], size)).alarms
    assert one == prequential(Wary(Y, 900, 2), batches(X, Y)).alarms
    assert {alarm.kind for alarm in one} == {"drift", "novelty"}


def test_novelty_alarm_is_raised_only_when_novelty_rises():
    X, Y = made()
    X[1000:, 1] = 0.6 + 0.4 * X[1000:, 1]
    (alarm,) = prequential(Wary(Y), batches(X, Y)).alarms
    assert (alarm.kind, alarm.label, alarm.measure) == ("novelty", None, "novelty")
    assert 1000 <= alarm.row < 1200 and alarm.after > alarm.before
    X[:, 1] = X[::-1, 1]
    assert prequential(Wary(Y), batches(X, Y)).alarms == ()
    assert prequential(Oracle(Y), batches(X, Y)).alarms == ()  # the model cannot compute novelty


def test_labels_are_new_after_the_first_rows():
    X, Y = made(400)
    names = [["a", "b"] if row[0] else ["b"] for row in Y]
    names[OPENING_ROWS - 1] = ["early", "b"]
    names[OPENING_ROWS] = ["late", "b"]
    names[300] = ["late", "later", "b", "latest"]
    stream = batches(X, names)
    alarms = prequential(MLCA(), stream).alarms
    assert [(alarm.row, alarm.label) for alarm in alarms if alarm.kind == "new label"] == [
        (OPENING_ROWS, "late"),
        (300, "later"),
        (300, "latest"),
    ]
    known = MLCA().fit(X, [["b", "late"]] * len(X))
    alarms = prequential(known, stream).alarms
    assert {alarm.label for alarm in alarms if alarm.kind == "new label"} == {"a", "early", "later", "latest"}


def test_drift_and_new_labels_in_river_streams_raise_alarms():
    places = np.random.default_rng(0).normal(size=1200).tolist()
    rows = [({"x": x}, {"a": x > 0, "b": True}) for x in places[:600]]
    rows += [({"x": x}, {"a": x <= 0, "b": True, "c": x == places[640]}) for x in places[600:]]
    alarms = prequential(MLCAClassifier(), rows).alarms
    assert [alarm.label for alarm in alarms if alarm.kind == "new label"] == ["c"]
    drifted = [alarm for alarm in alarms if alarm.kind == "drift"]
    assert {alarm.label for alarm in drifted} >= {None, "a"} and "b" not in {alarm.label for alarm in drifted}
    assert all(alarm.row >= 600 for alarm in drifted)


def test_learner_on_a_drifting_stream_raises_alarms():
    X, Y = (np.concatenate(part) for part in zip(*random_rbf(3000, change="none"), strict=True))
    quiet = prequential(MLCA(), batches(X, Y)).alarms
    assert quiet == ()
    alarms = prequential(MLCA(), batches(X, rotate_labels(Y))).alarms
    assert {alarm.kind for alarm in alarms} == {"drift"}
    assert 1500 <= min(alarm.row for alarm in alarms) < 1650
    assert {alarm.label for alarm in alarms} > {None}


def test_without_river_only_new_label_alarms_are_raised(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.drift", None)
    X, Y = made()
    Y[:1000, 2] = 0
    alarms = prequential(Wary(Y, wrong_from=1000), batches(X, Y)).alarms
    assert [(alarm.kind, alarm.label) for alarm in alarms] == [("new label", 2)]


def test_alarms_can_be_disabled():
    X, Y = made()
    assert prequential(Oracle(Y, wrong_from=1000), batches(X, Y), alarms=False).alarms == ()


def test_alarms_are_printed_below_the_records():
    X, Y = made()
    result = prequential(Oracle(Y, wrong_from=1000, label=1), batches(X, Y))
    assert f"row {result.alarms[0].row}: drift, " in str(result)
    many = Alarm(5, "new label", "x\ny")
    text = str(type(result)(result.records, {}, 10, (many,) * 30))
    assert text.endswith("row 5: new label 'x\\ny'\nand 18 more alarms")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_false_alarms_are_rare(seed):
    """ADWIN's bound is one false alarm in 500 tests; the actual rate is far lower."""
    rng = np.random.default_rng(seed)
    watch = Watch()
    raised = []
    for row in range(400):
        true, predicted = (np.flatnonzero(rng.random(4) < 0.5).tolist() for _ in range(2))
        raised += [*watch.pair(row, true, predicted), *watch.novelty(row, rng.random())]
    assert len(raised) <= 2

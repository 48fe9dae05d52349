"""Threads that read while others learn: each result is that of the model after some whole row."""

import copy
import hashlib
import os
import pickle
import signal
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mlca import MLCA, load
from mlca.learner.checking import capture
from mlca.learner.core import Learner
from tests.learner.attacks import KINDS, MODES, stream
from tests.learner.model_comparison import assert_exactly_same

N, WINDOW = 160, 30


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def digest(model):
    arrays = capture(model._learner)
    return hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).digest()


class Answers:
    """The results of a model after each number of rows, for every read that a thread may do."""

    def __init__(self, make, X, y, probes):
        self.probes, self.states, self.names = probes, {}, []
        self.probabilities, self.explanations = defaultdict(set), set()
        model = make()
        for n in range(X.shape[0]):
            model.partial_fit(X[n : n + 1], y[n : n + 1])
            self.states[digest(model)] = n + 1
            self.names.append(tuple(model.classes_.tolist()))
            for j, row in enumerate(model.predict_proba(probes)):
                # A reader first reads the number of labels, which later rows may increase, so every prefix is valid.
                for n_labels in range(len(row) + 1):
                    self.probabilities[j].add(row[:n_labels].tobytes())
            self.explanations.add(self.told(model.explain(probes[0])))

    @staticmethod
    def told(explanation):
        parts = (explanation.nodes, explanation.counts, explanation.label_counts, explanation.posterior)
        return (explanation.labels, *(part.tobytes() for part in parts))


class Readers:
    """Threads that read one model repeatedly, until they are stopped."""

    def __init__(self, model, answers, folder):
        self.model, self.answers, self.probes, self.folder = model, answers, answers.probes, folder
        self.stopped, self.failures, self.n_asked = threading.Event(), [], defaultdict(int)
        questions = [self.predict, self.judge, self.explain, self.save, self.read, self.pickle]
        self.threads = [threading.Thread(target=self.run, args=(ask,)) for ask in questions]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)
        if self.failures:
            raise self.failures[0]

    def run(self, ask):
        try:
            while not self.stopped.is_set() and not self.failures:
                ask()
                self.n_asked[ask.__name__] += 1
        except BaseException as failure:
            self.failures.append(failure)

    def predict(self):
        for j, row in enumerate(self.model.predict_proba(self.probes)):
            assert row.tobytes() in self.answers.probabilities[j]

    def judge(self):
        names = {name for row in self.model.predict_labels(self.probes) for name in row}
        assert names <= set(self.model.classes_.tolist())
        assert 0 <= self.model.score(self.probes, [names] * len(self.probes)) <= 1

    def explain(self):
        assert self.answers.told(self.model.explain(self.probes[0])) in self.answers.explanations

    def save(self):
        self.model.save(self.folder / "model.mlca")
        self.check_copy(load(self.folder / "model.mlca"))

    def pickle(self):
        self.check_copy(pickle.loads(pickle.dumps(self.model)))

    def check_copy(self, copy):
        n = self.answers.states[digest(copy)]
        assert copy.n_seen_ == n
        assert tuple(copy.classes_.tolist()) == self.answers.names[n - 1]

    def read(self):
        before = self.model.n_seen_
        assert self.model.counts_.sum() >= before
        assert tuple(self.model.classes_.tolist()) in self.answers.names
        assert self.model.prototypes_.shape[0] <= self.model.n_nodes_ <= N
        assert self.model.label_counts_.shape[1] <= len(self.model.classes_)
        assert self.model.n_seen_ >= before


def read_while_learning(make, X, y, kind, answers, seconds, folder):
    """Learn the rows in portions, repeatedly for some seconds, while threads read."""
    rng, asked, whole = np.random.default_rng(2), 0, make().partial_fit(X, y)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        model = make(n_jobs=2).partial_fit(X[:1], y[:1])
        with kind(model, answers, folder) as readers:
            low = 1
            while low < len(y):
                high = min(len(y), low + int(rng.choice([1, 7, 100])))
                model.partial_fit(X[low:high], y[low:high])
                low = high
        asked += sum(readers.n_asked.values())
        assert_exactly_same(model, whole)
    assert asked > 0


# Five seconds in total, together with the rules of test_rule_attacks.py.
@pytest.mark.races
@pytest.mark.parametrize("seconds", [0.5, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_every_prediction_is_of_the_model_after_some_whole_row(attributes, kind, seconds, tmp_path):
    X, y = stream(N, 300, kind)
    probes = np.random.default_rng(1).normal(0, 1, (3, 300))

    def make(n_jobs=None):
        return MLCA(attributes=attributes, vigilance=0.05, window=WINDOW, n_jobs=n_jobs)

    read_while_learning(make, X, y, Readers, Answers(make, X, y, probes), seconds, tmp_path)


@pytest.mark.races
def test_predicted_class_has_a_name_while_classes_are_added(tmp_path):
    """A predicted class always has a name."""
    X, classes = np.random.default_rng(3).normal(0, 1, (150, 4)), np.arange(150)

    def ask():
        while not learned.is_set():
            told.update(model.predict(X[-5:]).tolist())
            assert 0 <= model.score(X[:5], classes[:5]) <= 1

    model, learned, told = MLCA(vigilance=0.0).partial_fit(X[:1], classes[:1]), threading.Event(), set()
    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        for i in range(1, 150):
            model.partial_fit(X[i : i + 1], classes[i : i + 1])
        learned.set()
        for future in asking:
            future.result(60)
    assert told <= set(range(150))


@pytest.mark.races
@pytest.mark.parametrize("kind", KINDS)
def test_learning_threads_take_turns(kind):
    X, _ = stream(N, 40, kind)
    model = MLCA(vigilance=0.05, window=WINDOW)

    def teach(name):
        for low in range(0, N, 8):
            model.partial_fit(X[low : low + 8], [{name, f"{name} {low // 80}"}] * 8)

    threads = [threading.Thread(target=teach, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert model.n_seen_ == model.counts_.sum() == 3 * N
    counted = dict(zip(model.classes_.tolist(), model.label_counts_.sum(axis=0).tolist(), strict=True))
    expected = dict.fromkeys("abc", N) | {f"{name} {part}": 80 for name in "abc" for part in range(N // 80)}
    assert counted == expected


@pytest.mark.races
def test_refitted_model_predicts_as_the_old_one_or_the_new_one():
    X, y = stream(80, 20)
    probes = X[:2]
    models = [MLCA(vigilance=vigilance).fit(X, y) for vigilance in (0.01, 0.6)]
    allowed = {model.predict_proba(probes).tobytes() for model in models}
    fresh = [MLCA(vigilance=vigilance) for vigilance in (0.01, 0.6)]
    for model in fresh:
        for n in range(1, 81):
            for row in model.partial_fit(X[n - 1 : n], y[n - 1 : n]).predict_proba(probes):
                allowed.add(row.tobytes())
    for model in models:
        allowed.update(row.tobytes() for row in model.predict_proba(probes))
    model = MLCA(vigilance=0.01).fit(X, y)
    stopped, failures = threading.Event(), []

    def ask():
        while not stopped.is_set():
            try:
                rows = model.predict_proba(probes)
            except ValueError as failure:  # nothing is learned yet
                assert "not fitted" in str(failure)
                continue
            failures.extend(row for row in rows if not any(known.startswith(row.tobytes()) for known in allowed))

    thread = threading.Thread(target=ask)
    thread.start()
    for vigilance in [0.6, 0.01] * 10:
        model.set_params(vigilance=vigilance).fit(X, y)
    stopped.set()
    thread.join(60)
    assert not failures


@pytest.mark.races
@pytest.mark.parametrize("decision", ["calibrated", "bayes"])
def test_label_added_while_a_row_is_explained_has_its_name(decision, monkeypatch):
    X, _ = stream(30, 4)
    model = MLCA(window=5, decision=decision).fit(X, [["early"]] * 30)
    explain = Learner.explain

    def meanwhile(learner, x):
        model.partial_fit(X[:1], [["late"]])  # as another thread might
        return explain(learner, x)

    monkeypatch.setattr(Learner, "explain", meanwhile)
    assert model.explain(X[0]).labels == ("early", "late")


@pytest.mark.races
@pytest.mark.parametrize("ask", [MLCA.predict, MLCA.predict_labels])
def test_label_added_during_a_prediction_with_thresholds_is_left_out(ask, monkeypatch):
    """An earlier version compared its threshold with the probabilities of earlier labels."""
    X, _ = stream(30, 4)
    model, answers = MLCA(window=5).fit(X, [["early"]] * 30), Learner.answers

    def meanwhile(learner, *question):
        found = answers(learner, *question)
        model.partial_fit(X[:1], [["late"]])  # as another thread might
        return found

    monkeypatch.setattr(Learner, "answers", meanwhile)
    assert len(ask(model, X[:2], threshold={"early": 0.3})) == 2
    assert model.n_seen_ == 31


def asked_beside(questions, act):
    """Call functions in separate threads during some work; return the exceptions."""
    over, failures = threading.Event(), []

    def ask(question):
        while not over.is_set():
            try:
                question()
            except Exception as failure:
                failures.append(failure)

    threads = [threading.Thread(target=ask, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    try:
        act()
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    return failures


@pytest.mark.races
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [10, 100], ids=["learned", "waiting"])
def test_first_missing_value_is_learned_beside_readers(window, kind, tmp_path):
    X, y = stream(90, 12, kind)
    gap = (X[:1] if kind == "dense" else X[:1].toarray()).copy()
    gap[0, 3] = np.nan
    base = MLCA(window=window).partial_fit(X, y)
    after = copy.deepcopy(base).partial_fit(gap, y[:1])
    known = {model.predict_proba(X[:3]).tobytes() for model in (base, after)}
    shapes = {model.prototypes_.shape for model in (base, after)}
    current = [base]

    def predict():
        assert current[0].predict_proba(X[:3]).tobytes() in known

    def learn_a_copy():
        assert copy.deepcopy(current[0]).partial_fit(X[:2], y[:2]).n_seen_ > 91

    def save():
        path = tmp_path / f"{threading.get_ident()}.mlca"
        current[0].save(path)
        assert load(path).predict_proba(X[:3]).tobytes() in known

    def read():
        assert current[0].prototypes_.shape in shapes
        assert current[0].explain(X[:1]).labels

    def learn_first_missing_values():
        for _ in range(25):
            current[0] = copy.deepcopy(base)
            current[0].partial_fit(gap, y[:1])
            time.sleep(0.002)

    assert asked_beside([predict, learn_a_copy, save, read], learn_first_missing_values) == []
    assert_exactly_same(current[0], after)


@pytest.mark.races
def test_rows_with_missing_values_are_predicted_beside_new_labels():
    X, y = stream(90, 12)
    gaps = X[:2].copy()
    gaps[0, 3] = np.nan
    model = MLCA(window=10).partial_fit(X, y)

    def predict():
        before = len(model.classes_)
        assert model.predict_proba(gaps).shape[1] >= before

    def announce():
        for k in range(150):
            model.partial_fit(X[k % 90 : k % 90 + 1], [["new"]], classes=[f"new {k}"])

    assert asked_beside([predict, predict], announce) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("kind", KINDS)
def test_forked_model_predicts_and_learns_as_the_original(kind, tmp_path):
    """The parent's threads do not exist in the child."""
    X, y = stream(N, 12, kind)
    model = MLCA(window=WINDOW, n_jobs=2).fit(X, y)
    model.predict_proba(X)
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(30)
            model.partial_fit(X, y).save(tmp_path / "child.mlca")
            np.save(tmp_path / "child.npy", model.predict_proba(X))
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    model.partial_fit(X, y)
    assert_exactly_same(load(tmp_path / "child.mlca"), model)
    np.testing.assert_array_equal(np.load(tmp_path / "child.npy"), model.predict_proba(X))

"""Failures, interrupts and threads under the decisions beyond the paper.

In all cases a model is that of its learned rows. A similarity that could not be computed when it was due is computed by
the next reader, or before the next row is learned.
"""

import copy
import pickle
import threading
from collections import defaultdict

import numpy as np
import pytest

from mlca import MLCA, load
from mlca.learner.core import Answers as LearnerAnswers
from mlca.merging import merge
from tests.learner.algorithm_options import VARIANTS
from tests.learner.attacks import EVERY, KINDS, SOME, WholeRows, stream
from tests.learner.model_comparison import assert_exactly_same
from tests.learner.test_failures import (
    assert_failures_while_threads_look_ahead,
    assert_looking_ahead_allocates,
    failing,
    nothing_fails_later,  # noqa: F401
)
from tests.learner.test_interrupts import (
    alarm_interrupts,  # noqa: F401
    assert_interrupts_leave_whole_rows,
    interrupted,
)
from tests.learner.test_threads import Answers, Readers, digest, read_while_learning, switch_often  # noqa: F401


def maker(rule, attributes="common", **chosen):
    return lambda: MLCA(attributes=attributes, **VARIANTS[rule] | {"vigilance": 0.05, "window": 20} | chosen)


def similarity_is_due(model):
    """Return whether a failure came between a row and the recomputation of the similarity."""
    return model.n_seen_ >= model.window and model._learner.settled() is not model._learner


# ------------------------------------------------------------------ memory that runs out


@pytest.mark.parametrize("step", [97, pytest.param(11, marks=SOME), pytest.param(1, marks=EVERY)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", VARIANTS)
def test_learning_continues_after_any_failed_allocation(rule, kind, step):
    X, y = stream(80, 5, kind)
    make = maker(rule, vigilance="auto" if rule == "recency" else 0.05)

    def attempt():
        model = make()
        return model, lambda: model.partial_fit(X, y)

    whole_rows, due = WholeRows(make, X, y), 0
    for model in failing(attempt, step):
        due += hasattr(model, "labels_") and similarity_is_due(model)
        whole_rows.check(model)
    assert due > 0 or VARIANTS[rule]["similarity"] == "correntropy"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["calibrated", "all", "learned bayes"])
def test_similarity_that_failed_is_computed_for_the_next_reader(rule, kind):
    X, y = stream(62, 6, kind)
    make = maker(rule)
    before = make().fit(X[:61], y[:61])
    clean = make().fit(X, y)

    def attempt():
        model = pickle.loads(pickle.dumps(before))
        return model, lambda: model.partial_fit(X[61:], y[61:])

    due = [model for model in failing(attempt) if model.n_seen_ == 62]
    assert due and all(map(similarity_is_due, due))
    for model in (due[0], due[-1]):
        np.testing.assert_array_equal(model.predict_proba(X), clean.predict_proba(X))
        np.testing.assert_array_equal(model.explain(X[:1]).posterior, clean.explain(X[:1]).posterior)
        np.testing.assert_array_equal(merge([model, before]).predict_proba(X), merge([clean, before]).predict_proba(X))
        twin = copy.deepcopy(model)
        questions = [lambda twin=twin: twin.predict_proba(X), lambda twin=twin: pickle.dumps(twin)]
        for question in questions:  # computing it for readers may fail as well
            assert sum(1 for _ in failing(lambda question=question: (None, question), step=7)) > 0
        assert_exactly_same(twin, clean)
        assert_exactly_same(
            model.partial_fit(X[:9], y[:9]), pickle.loads(pickle.dumps(clean)).partial_fit(X[:9], y[:9])
        )


STEP = 23


@pytest.mark.races
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["all", "correntropy all"])
def test_learning_continues_after_failures_in_threads(rule, kind):
    assert_failures_while_threads_look_ahead(maker(rule), kind, STEP)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["correntropy all", pytest.param("all", marks=pytest.mark.slow)])
def test_looking_ahead_allocates_its_own_memory(rule, kind):
    assert_looking_ahead_allocates(maker(rule), kind, STEP)


@pytest.mark.parametrize("rule", ["all", "learned bayes"])
def test_failed_predictions_change_nothing(rule):
    X, y = stream(70, 6)
    model, other, expected = (maker(rule, n_jobs=2)().fit(X, y) for _ in range(3))
    questions = [
        lambda: model.predict_proba(X),
        lambda: model.explain(X[:1]),
        lambda: model.novelty(X),
        lambda: pickle.dumps(model),
        lambda: copy.deepcopy(model),
        lambda: merge([model, other]),
    ]
    for question in questions[:2] + questions[3:] if rule == "learned bayes" else questions:
        assert sum(1 for _ in failing(lambda question=question: (None, question), step=7)) > 0
    assert_exactly_same(model, expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


# ------------------------------------------------------------------ interrupts


@pytest.mark.races
@pytest.mark.parametrize("n_interrupts", [1, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["calibrated", "all", "learned bayes"])
def test_an_interrupted_model_is_that_of_whole_rows(rule, kind, n_jobs, n_interrupts, tmp_path):
    X, y = stream(200, 300, kind)
    assert_interrupts_leave_whole_rows(maker(rule, n_jobs=n_jobs), X, y, n_interrupts, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_for_a_vigilance_can_be_interrupted(kind):
    X, y = stream(705, 100, kind)
    make = maker("calibrated", vigilance="auto", window=700)
    model = make().partial_fit(X[:699], y[:699])
    assert interrupted(lambda: model.partial_fit(X[699:], y[699:]), 0.005)
    assert model.n_seen_ == 699
    assert interrupted(lambda: model.predict(X[:2]), 0.005)
    model.partial_fit(X[699:], y[699:])
    assert_exactly_same(model, make().partial_fit(X, y))


# ------------------------------------------------------------------ threads


class AllAnswers(Answers):
    """The predictions of a model after each number of rows, including novelty and labels chosen for F1."""

    def __init__(self, make, X, y, probes):
        super().__init__(make, X, y, probes)
        self.novelties, self.chosen = defaultdict(set), defaultdict(set)
        model = make()
        for n in range(X.shape[0]):
            for j, value in enumerate(model.partial_fit(X[n : n + 1], y[n : n + 1]).novelty(probes).tolist()):
                self.novelties[j].add(value)
            learner = model._learner.settled()
            for n_labels in range(learner.n_labels + 1):  # see `Answers`
                found = LearnerAnswers._make(learner._compiled.predict(probes, n_labels, 1, True, False))
                for j, row in enumerate(found.chosen("f1")):
                    self.chosen[j].add(row.tobytes())


class MoreReaders(Readers):
    """Readers that also read novelty and labels, and make copies."""

    def __init__(self, model, answers, folder):
        super().__init__(model, answers, folder)
        questions = [self.novelty, self.choose, self.copy]
        self.threads += [threading.Thread(target=self.run, args=(ask,)) for ask in questions]

    def novelty(self):
        for j, value in enumerate(self.model.novelty(self.probes).tolist()):
            assert value in self.answers.novelties[j]

    def choose(self):
        for j, row in enumerate(self.model.predict_details(self.probes).chosen("f1")):
            assert row.tobytes() in self.answers.chosen[j]

    def copy(self):
        self.check_copy(copy.deepcopy(self.model))


@pytest.mark.races
@pytest.mark.parametrize("seconds", [0.35, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["mixed drift", "mixed cells", "calibrated", "all", "correntropy all"])
def test_every_prediction_is_of_the_model_after_some_whole_row(rule, kind, seconds, tmp_path):
    n, d = 130, 60
    X, y = stream(n, d, kind)
    probes = np.random.default_rng(1).normal(0, 1, (3, d))

    def make(n_jobs=None):
        return maker(rule, n_jobs=n_jobs)()

    read_while_learning(make, X, y, MoreReaders, AllAnswers(make, X, y, probes), seconds, tmp_path)


@pytest.mark.races
@pytest.mark.parametrize("kind", KINDS)
def test_large_model_is_copied_while_its_similarity_is_computed(kind, tmp_path):
    """Recomputing the similarity of this many entries takes long, but copies do not wait for it and hold whole rows."""
    X, y = stream(294, 1600 if kind == "sparse" else 800, kind)
    before = maker("calibrated")().fit(X[:288], y[:288])  # the similarity is due after row 291
    states, model = set(), pickle.loads(pickle.dumps(before))
    for n in range(288, 294):
        states |= {digest(model)}
        model.partial_fit(X[n : n + 1], y[n : n + 1])
    states |= {digest(model)}
    for _ in range(3):
        model = pickle.loads(pickle.dumps(before))
        learning = threading.Thread(target=model.partial_fit, args=(X[288:], y[288:]))
        learning.start()
        while learning.is_alive():
            assert digest(pickle.loads(pickle.dumps(model))) in states
            model.save(tmp_path / "model.mlca")
            assert digest(load(tmp_path / "model.mlca")) in states
        learning.join()
        assert digest(model) in states

"""Operations on a model of arrays, compared with the plain reference bit for bit."""

import copy
import pickle
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mlca import MLCA, load, merge, reference
from tests.learner.algorithm_options import any_options
from tests.learner.model_comparison import assert_exactly_same
from tests.learner.reference_comparison import FORMS, assert_same_state
from tests.lives import FEW_AND_MANY, run_lives

WIDTH = 4
LABELS = ("a", "b", "c", "d", "e")
# Few values, so that rows repeat and distances tie; the last one is rare.
VALUES = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e6])
ROWS = st.lists(
    st.tuples(
        st.lists(VALUES, min_size=WIDTH, max_size=WIDTH),
        st.sets(st.sampled_from(LABELS), max_size=3),
        st.sampled_from([None] * 9 + list(range(WIDTH))),  # the feature that is missing
    ),
    min_size=1,
    max_size=12,
)
FORM = st.sampled_from(sorted(FORMS))
JOBS = st.sampled_from([None, 2])


def learn_in_process(path, X, y):
    """Load a model, continue its training and save it; called in another process."""
    load(path).partial_fit(X, y).save(path)


class Life(RuleBasedStateMachine):
    """A model, and a plain reference model that learned the same rows one by one."""

    def __init__(self, processes):
        super().__init__()
        self.processes = processes
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "model.mlca"
        self.rows, self.n_rows = [], 0

    @initialize(options=any_options(), categories=st.sampled_from([None, None, [0]]), rows=ROWS)
    def begin(self, options, categories, rows):
        self.options = options | {"categorical_features": categories}
        self.model, self.plain = MLCA(**self.options), reference.MLCA(**self.options)
        self.learn(rows, "dense", None)

    def taken(self, drawn, form="dense"):
        """Train the plain model on drawn rows; return them with their labels in the requested form."""
        X = np.array([x for x, _, _ in drawn])
        for x, (_, _, missing) in zip(X, drawn, strict=True):
            if missing is not None:
                x[missing] = np.nan
        if self.options["categorical_features"]:
            X[:, 0] = np.abs(X[:, 0]) // 1 % 5
        y = [sorted(labels) for _, labels, _ in drawn]
        for x, labels in zip(X, y, strict=True):
            self.plain.partial_fit(x[None, :], [labels])
        self.rows = [*self.rows, *X][-3:]
        self.n_rows += len(X)
        return FORMS[form](X), y

    # ---- learning

    @rule(rows=ROWS, form=FORM, n_jobs=JOBS)
    def learn(self, rows, form, n_jobs):
        self.model.set_params(n_jobs=n_jobs).partial_fit(*self.taken(rows, form))

    @rule(rows=ROWS, form=FORM)
    def learn_one_by_one(self, rows, form):
        X, y = self.taken(rows, form)
        for n in range(len(y)):
            self.model.partial_fit(X[n : n + 1], y[n : n + 1])

    @rule(rows=ROWS, n_jobs=JOBS)
    def learn_beside_readers(self, rows, n_jobs):
        X, y = self.taken(rows)
        model, asked, over = self.model.set_params(n_jobs=n_jobs), np.array(self.rows), threading.Event()
        questions = [
            lambda: model.predict_proba(asked),
            lambda: model.explain(asked[:1]),
            lambda: pickle.dumps(model),
            lambda: copy.deepcopy(model).partial_fit(X, y),
        ]

        def ask(question):
            while not over.is_set():
                question()

        with ThreadPoolExecutor(len(questions)) as threads:
            asking = [threads.submit(ask, question) for question in questions]
            try:
                for n in range(len(y)):
                    model.partial_fit(X[n : n + 1], y[n : n + 1])
            finally:
                over.set()
            for answers in asking:
                answers.result(60)

    @rule(rows=ROWS)
    def learn_in_another_process(self, rows):
        self.model.save(self.file)
        self.processes.apply(learn_in_process, (self.file, *self.taken(rows)))
        self.model = load(self.file)

    @rule(rows=ROWS)
    def learn_rows_of_which_one_is_rejected(self, rows):
        X = np.array([x for x, _, _ in rows])
        X[-1, -1] = np.inf
        with pytest.raises(ValueError, match="inf"):
            self.model.partial_fit(X, [["never"]] * len(X))

    # ---- restarts

    @rule()
    def save_and_load(self):
        self.model.save(self.file)
        self.model = load(self.file)

    @rule()
    def pickle_and_unpickle(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @rule()
    def copy_and_let_the_original_learn(self):
        original, self.model = self.model, copy.deepcopy(self.model)
        original.partial_fit(np.array(self.rows), [["elsewhere"]] * len(self.rows))

    # ---- merging

    @precondition(lambda self: self.options["vigilance"] != "auto" and len(self.model.classes_) > 0)
    @rule(rows=ROWS, how=st.sampled_from(["replay", "append"]))
    def merge_with_another_model(self, rows, how):
        """No model trained row by row equals a merged one, so the plain model becomes a copy."""
        counted = self.label_counts()
        others, counted_by_others = [], []
        for low in range(0, len(rows), 6):
            X, y = self.taken(rows[low : low + 6])
            others.append(MLCA(**self.options).partial_fit(X, y))
            counted_by_others += [name for labels in y for name in labels]
        self.model = merge([self.model, *others], how=how)
        for name in counted_by_others:
            counted[name] = counted.get(name, 0) + 1
        if self.options.get("max_nodes") is None:
            assert self.label_counts() == counted
        self.plain = copy.deepcopy(self.model)

    def label_counts(self):
        counts = np.asarray(self.model.label_counts_.sum(axis=0)).ravel().tolist()
        return {name: count for name, count in zip(self.model.classes_.tolist(), counts, strict=True) if count}

    # ---- invariants

    @rule(form=FORM, n_jobs=JOBS)
    def predict(self, form, n_jobs):
        assert self.model.n_seen_ == self.n_rows
        assert self.model.classes_.tolist() == self.plain.classes_.tolist()
        asked = np.array([*self.rows, [0.25] * WIDTH, [1e9] * WIDTH, [np.nan] * WIDTH])
        rows, model = FORMS[form](asked), self.model.set_params(n_jobs=n_jobs)
        np.testing.assert_array_equal(model.predict_proba(rows), self.plain.predict_proba(asked))
        np.testing.assert_array_equal(model.predict(rows), self.plain.predict(asked))
        if self.options["decision"] != "bayes":
            np.testing.assert_array_equal(model.novelty(rows), self.plain.novelty(asked))

    def teardown(self):
        if self.n_rows:
            self.predict("dense", None)
            if isinstance(self.plain, MLCA):
                assert_exactly_same(self.model, self.plain)
            elif len(self.model.classes_) > 0:
                assert_same_state(self.model._learner.settled(), self.plain.settled())
        self.folder.cleanup()


@pytest.mark.parametrize("thorough", FEW_AND_MANY)
def test_array_model_after_any_operations_equals_one_fitted_on_its_rows(thorough):
    with get_context("forkserver").Pool(1) as processes:
        run_lives(lambda: Life(processes), 12, 400, 12, thorough)


def test_copy_of_bounded_mixed_model_learns_as_the_original():
    rng = np.random.default_rng(1)
    X = rng.choice([0, 0, 1, -1, 0.5, 2, 3, 1e6], (90, 4))
    X[rng.random(X.shape) < 0.08] = np.nan
    y = [[name for name in LABELS if rng.random() < 0.3] for _ in X]
    model = MLCA(vigilance=0.1, window=2, attributes="individual", max_nodes=20)
    model.partial_fit(X[:55], y[:55])
    twin = copy.deepcopy(model)
    assert_exactly_same(model.partial_fit(X[55:56], y[55:56]), twin.partial_fit(X[55:56], y[55:56]))

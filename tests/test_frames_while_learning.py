"""Frames with new columns while other threads read, and interrupted calls: the model always matches its recipe."""

import signal
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.learner.core import Learner
from tests.learner.model_comparison import assert_exactly_same

ROWS = 40


def frame_of(n_columns, seed=0):
    rng = np.random.default_rng(seed)
    numbers = {f"n{k}": rng.normal(size=ROWS) for k in range(n_columns)}
    return pd.DataFrame({"tree": rng.choice(["ash", "beech", "cedar"], ROWS), **numbers})


def labels_of(frame):
    return [{tree} for tree in frame["tree"]]


@pytest.fixture
def quick_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.races
@pytest.mark.parametrize("first_rows", [ROWS, 10**6])  # the model is widened, or retrained
def test_readers_find_a_model_with_its_own_recipe(first_rows, quick_turns, monkeypatch, tmp_path):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", first_rows)
    first, asked, wrong = frame_of(2), frame_of(40, 1), []
    model = MLCA().partial_fit(first, labels_of(first))
    done, deadline = threading.Event(), time.monotonic() + 60

    def ask(number):
        file = tmp_path / f"{number}.mlca"
        try:
            while not done.is_set() and time.monotonic() < deadline:
                model.predict_proba(asked[:2])
                model.save(file)
                load(file).predict_proba(asked[:2])
                model.explain(asked.iloc[0])
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=ask, args=[number]) for number in range(2)]
    for reader in readers:
        reader.start()
    for n_columns in range(3, 25):
        frame = frame_of(n_columns, n_columns)
        model.partial_fit(frame, labels_of(frame))
    done.set()
    for reader in readers:
        reader.join(60)
    assert wrong == [] and model.n_seen_ == 23 * ROWS


def test_labels_added_while_a_row_is_explained_have_their_names(monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", ROWS)
    frame = frame_of(2)
    model, explain = MLCA(window=10).partial_fit(frame, [["early"]] * ROWS), Learner.explain

    def meanwhile(learner, x):
        for name in ("late", "later"):  # as another thread might
            model.partial_fit(frame[:1].assign(tree=name), [[name]])
        return explain(learner, x)

    monkeypatch.setattr(Learner, "explain", meanwhile)
    assert model.explain(frame.iloc[0]).labels == ("early", "late", "later")


def test_rejected_frame_leaves_the_model_without_its_columns(monkeypatch):
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", ROWS)
    notes = [f"the {tree} was seen by the gate on day {day}" for day, tree in enumerate(frame_of(0)["tree"])]
    table = frame_of(2).assign(note=notes, n1=np.arange(ROWS) * 1e-9)  # numbers beside text are scaled
    for known in (table, table[: ROWS // 2]):  # a settled recipe, and one that is not settled
        model = MLCA().partial_fit(known, labels_of(known))
        before, width = model.predict_proba(known), model.n_features_in_
        wider = pd.concat([table, table[-1:].assign(n1=1e149)]).assign(extra=1.0)
        for learn in (model.partial_fit, model.fit):
            with pytest.raises(ValueError, match="beyond 1e"):
                learn(wider, labels_of(wider))
            assert model.n_features_in_ == width and model.n_seen_ == len(known)
            np.testing.assert_array_equal(model.predict_proba(known), before)


def test_fit_keeps_the_given_generator():
    generator, frame = np.random.RandomState(0), frame_of(2)
    model = MLCA(random_state=generator).fit(frame, labels_of(frame))
    assert model.random_state is generator


class TestInterrupts:
    @pytest.fixture(autouse=True)
    def alarm_interrupts(self):
        before = signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

    def test_interrupted_fit_keeps_the_learned_rows(self):
        frame = pd.concat([frame_of(30, seed) for seed in range(300)], ignore_index=True)
        start = time.process_time()
        whole = MLCA().fit(frame, labels_of(frame))
        duration = time.process_time() - start
        model, part = MLCA(), 0.6
        while not 0 < getattr(model, "n_seen_", 0) < len(frame):  # interrupt earlier each time
            signal.setitimer(signal.ITIMER_PROF, part * duration)
            with pytest.raises(KeyboardInterrupt):
                model.fit(frame, labels_of(frame))
                signal.raise_signal(signal.SIGINT)  # the interrupt came after the end
            part *= 0.9
            assert part > 0.01, "learning ends, or has not begun, whenever it is interrupted"
        rest = frame[model.n_seen_ :]
        model.partial_fit(rest, labels_of(rest))
        np.testing.assert_array_equal(model.predict_proba(frame[:50]), whole.predict_proba(frame[:50]))

    def test_new_start_keeps_the_held_frames(self, monkeypatch):
        known, wider = frame_of(2), frame_of(3, 1)
        model = MLCA().partial_fit(known, labels_of(known))
        before, learn = model.predict_proba(known), MLCA._learn

        def learn_and_be_interrupted(self, rows, targets):
            learn(self, rows[:5], targets.between(0, 5))
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(MLCA, "_learn", learn_and_be_interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(wider, labels_of(wider))
        assert model.n_seen_ == ROWS
        np.testing.assert_array_equal(model.predict_proba(known), before)

    @pytest.mark.parametrize("n_learned", [0, 7, 20, 23])
    def test_interrupted_frame_is_decided_on_later_as_if_whole(self, n_learned, monkeypatch):
        """Columns are settled by the first 100 rows, whether or not an interrupt came before."""
        monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 100)
        frames = [frame_of(2, seed).assign(day=pd.Timestamp(2024, 1 + 3 * seed, 1)) for seed in range(3)]
        frame = pd.concat(frames, ignore_index=True)
        y = labels_of(frame)
        straight = MLCA().partial_fit(frame, y)
        model, learn = MLCA().partial_fit(frame[:ROWS], y[:ROWS]), MLCA._learn

        def learn_and_be_interrupted(self, rows, targets):
            if self.n_seen_ >= ROWS:  # but not while earlier rows are learned again
                learn(self, rows[:n_learned], targets.between(0, n_learned))
                signal.raise_signal(signal.SIGINT)
            learn(self, rows, targets)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(MLCA, "_learn", learn_and_be_interrupted)
            model.partial_fit(frame[ROWS : ROWS + 23], y[ROWS : ROWS + 23])
        rest = slice(model.n_seen_, None)
        model.partial_fit(frame[rest], y[rest])
        assert model.n_seen_ == len(frame)
        assert_exactly_same(model, straight)

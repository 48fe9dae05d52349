"""Ctrl-C at random moments, as a real signal: the model is that of the learned rows, and can continue.

Moments are measured in processor time of this process, so that a busy machine does not move them.
"""

import copy
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA
from tests.learner.attacks import KINDS, MODES, WholeRows, assert_saves_and_pickles, stream
from tests.learner.model_comparison import assert_exactly_same

D = 300


def interrupted(call, after):
    """Call a function and interrupt it after some seconds of work; return whether that was before its end."""
    ended = False
    try:
        signal.setitimer(signal.ITIMER_PROF, after)
        try:
            call()
            ended = True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except KeyboardInterrupt:  # the interrupt may come after the end
        return not ended
    return False


@pytest.fixture(autouse=True)
def alarm_interrupts():
    """Let SIGALRM raise KeyboardInterrupt, like SIGINT, wherever the main thread is."""
    before = signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    yield
    signal.signal(signal.SIGPROF, before)


def assert_interrupts_leave_whole_rows(make, X, y, n_interrupts, folder):
    """Interrupt learning at random moments, repeatedly, and assert that each model is that of whole rows."""
    start = time.process_time()
    make().partial_fit(X, y)
    duration = time.process_time() - start
    whole_rows, rng = WholeRows(make, X, y), np.random.default_rng(n_interrupts)
    hits = attempts = 0
    while hits < n_interrupts:
        attempts += 1
        assert attempts < 20 * n_interrupts, "learning ends before it is interrupted"
        model = make()
        learn = model.fit if hits % 2 else model.partial_fit
        if not interrupted(lambda learn=learn: learn(X, y), rng.uniform(0.05, 0.9) * duration):
            continue
        hits += 1
        if hits == 1 and hasattr(model, "labels_"):
            assert_saves_and_pickles(model, folder)
        whole_rows.check(model)


@pytest.mark.parametrize("n_interrupts", [2, pytest.param(124 // 12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_interrupted_model_is_that_of_whole_rows(attributes, kind, n_jobs, n_interrupts, tmp_path):
    X, y = stream(600 if kind == "dense" else 250, D, kind)

    def make():
        return MLCA(attributes=attributes, vigilance=0.05, n_jobs=n_jobs)

    assert_interrupts_leave_whole_rows(make, X, y, n_interrupts, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", MODES)
def test_the_first_window_can_be_interrupted(attributes, kind):
    """The window is learned when its last row arrives, so an interrupt rejects that row."""
    X, y = stream(900, 100, kind)

    def make():
        return MLCA(attributes=attributes, vigilance=0.05, window=890)

    model = make().partial_fit(X[:880], y[:880])
    assert interrupted(lambda: model.partial_fit(X[880:], y[880:]), 0.01)
    assert model.n_seen_ == 889
    assert interrupted(lambda: model.predict(X[:2]), 0.01)
    assert model.n_seen_ == 889
    model.partial_fit(X[889:], y[889:])
    assert_exactly_same(model, make().partial_fit(X, y))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_predicting_can_be_interrupted(n_jobs):
    X, y = stream(1500, D)
    model = MLCA(n_jobs=n_jobs).fit(X, y)
    rows = np.tile(X, (20, 1))
    assert interrupted(lambda: model.predict_proba(rows), 0.05)
    np.testing.assert_array_equal(model.predict_proba(X[:9]), MLCA().fit(X, y).predict_proba(X[:9]))


def test_other_threads_continue_when_the_main_one_is_interrupted():
    X, y = stream(400, D)
    model = MLCA(n_jobs=2)
    learning = threading.Thread(target=model.partial_fit, args=(X, y))
    learning.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        learning.join(60)
    learning.join(60)
    assert_exactly_same(model, MLCA().partial_fit(X, y))


def test_table_that_adds_a_column_can_be_interrupted():
    """The columns that the model knows are those that it has learned, so it can predict and continue."""
    X, y = stream(2500, 40)
    frame = pd.DataFrame(X).add_prefix("x").assign(word=["red", "blue"] * 1250)
    model = MLCA().fit(frame[:500], y[:500])
    wider = frame[500:].assign(late=1.0)
    start = time.process_time()
    copy.copy(model).partial_fit(wider, y[500:])
    duration = time.process_time() - start
    for share in np.linspace(0.9, 0.3, 40):
        part = copy.copy(model)
        if interrupted(lambda part=part: part.partial_fit(wider, y[500:]), share * duration):
            n_seen = part.n_seen_
            if 500 < n_seen < 2500:  # neither before the first row nor after the last one
                break
    assert 500 < n_seen < 2500
    assert part.predict(wider[:3]).shape == part.predict(wider.iloc[-3:]).shape
    assert part.partial_fit(wider[:10], y[:10]).n_seen_ == n_seen + 10

"""The compiled learner beyond the paper equals the plain one bit for bit: all that it knows, and all that it says."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlca.learner.core import Learner
from mlca.learner.parameters import SCREEN_FROM, Parameters
from tests.learner.rules import (
    FORMS,
    ROWS,
    RULES,
    USUAL,
    assert_knows_the_same,
    assert_says_the_same,
    plain_learner,
    rule_parameters,
    rule_streams,
    rules,
    stream_of,
)
from tests.learner.states import learned

# The plain learner takes nearly all the time; on sanitized kernels the shorter of these streams are enough.
LONG = [pytest.mark.slow, pytest.mark.plain]


def queries_of(X, n):
    """Return rows that were learned, some that are new, one without any attribute, and one far from everything."""
    far = np.where(np.arange(X.shape[1]) % 2, -1e100, 1e100)
    return np.concatenate([X[:n], X[:n] + 0.25, X[-n:] * 0.5, np.zeros((1, X.shape[1])), far[None, :]])


def assert_equals_plain(X, Y, chosen, form="dense", screen_from=SCREEN_FROM, n_jobs=1, n_queries=2):
    plain = plain_learner(X, Y, chosen)
    learner = learned(chosen, FORMS[form](X), Y, screen_from, n_jobs).settled()
    assert_knows_the_same(learner, plain)
    assert_says_the_same(learner, plain, queries_of(X, n_queries), FORMS[form], n_jobs)
    return learner


@settings(max_examples=60, deadline=None)
@given(
    rule_streams(), rule_parameters(), rules(), st.sampled_from(sorted(FORMS)), st.sampled_from([1, SCREEN_FROM, 10**9])
)
def test_any_stream_under_any_rule(stream, chosen, rule, form, screen_from):
    assert_equals_plain(*stream, chosen | rule, form, screen_from)


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        pytest.param(rule, rows, marks=LONG if (i + j) % 3 else [])
        for (i, rule), (j, rows) in product(enumerate(RULES), enumerate(ROWS))
    ],
)
def test_every_rule_on_rows_of_every_kind(rule, rows):
    """Long enough for the similarity to be computed anew 54 times, and most times from other knots than before."""
    place = 3 * sorted(RULES).index(rule) + ROWS.index(rows)
    X, Y = stream_of(rows, 125, 5, 4, seed=place)
    chosen = USUAL | RULES[rule] | {"attributes": ("common", "individual", "clustered")[place % 3]}
    chosen["vigilance"] = (0.01, 0.3, None)[place // 3 % 3]
    assert_equals_plain(X, Y, chosen, "dense" if place % 2 else "sparse", n_queries=3)


@pytest.mark.parametrize(
    ("attributes", "form", "rule", "shape"),
    [("common", "dense", "correntropy all", (90, 160))]
    + [
        pytest.param(attributes, form, rule, (130, 300), marks=LONG)
        for attributes, form, rule in product(("common", "individual", "clustered"), FORMS, RULES)
    ],
)
def test_two_threads_on_wide_rows(attributes, form, rule, shape):
    """Enough rows, and wide enough, for threads to look ahead together; two rows join a node, which ends a block.

    A learned similarity is computed anew so often at first that it takes more rows, of which the plain learner takes
    minutes; meanwhile test_rule_guarantees.py compares two threads with one.
    """
    X, Y = stream_of("real", *shape, 4, seed=5, repeated=0.0)
    X[[60, 71]] = X[[3, 40]]
    chosen = USUAL | RULES[rule] | {"attributes": attributes, "vigilance": 0.05}
    assert_equals_plain(X, Y, chosen, form, n_jobs=2, n_queries=1)


@pytest.mark.parametrize("rule", RULES)
def test_labels_that_come_late_or_are_announced(rule):
    X, Y = stream_of("grid", 100, 4, 4, seed=8)
    chosen = USUAL | RULES[rule]
    plain = plain_learner(X, Y, chosen)
    for announced in (False, True):
        learner = Learner(Parameters(**chosen), 4, sparse_nodes=False)
        for low in range(0, 100, 7):
            part = Y[low : low + 7]
            indptr = np.concatenate([[0], part.sum(axis=1).cumsum()])
            known = 4 if announced else int(np.flatnonzero(Y[: low + 7].any(axis=0)).max(initial=-1)) + 1
            learner.learn(X[low : low + 7], indptr, np.nonzero(part)[1].astype(np.int32), known)
        assert_knows_the_same(learner, plain)
        assert_says_the_same(learner, plain, queries_of(X, 2))


@pytest.mark.parametrize(
    ("form", "rule"),
    [("dense", "calibrated"), pytest.param("sparse", "correntropy all", marks=LONG)]
    + [pytest.param(form, "all", marks=LONG) for form in FORMS],
)
def test_more_nodes_are_equally_near_than_may_vote(form, rule):
    """Each row has an attribute of its own and one that all share; labels take turns, so attributes weigh the same."""
    n = 120  # 100 may vote; the similarity is computed anew after row 120, and then knows every attribute
    X = np.column_stack([np.eye(n), np.ones(n)])
    Y = np.column_stack([np.arange(n) % 2, 1 - np.arange(n) % 2])
    learner = assert_equals_plain(X, Y, USUAL | RULES[rule] | {"vigilance": 0.0}, form, n_queries=1)
    voters = learner.explain(np.eye(n + 1)[n])
    assert voters["nodes"].tolist() == list(range(100))
    assert len(set(voters["distances"].tolist())) == 1


@pytest.mark.parametrize("rule", ["drift", pytest.param("correntropy all", marks=LONG)])
def test_more_nodes_than_those_whose_counts_fade(rule):
    X, Y = stream_of("real", 560, 2, 2, seed=4, repeated=0.02)
    learner = assert_equals_plain(X, Y, USUAL | RULES[rule] | {"vigilance": 0.001}, n_queries=2)
    assert learner.n_nodes > 512


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("rule", ["all", "correntropy all"])
def test_more_segments_than_are_kept(rule):
    """The meaning of labels changes twice, so that segments are trusted differently when two have to become one."""
    X, Y = stream_of("real", 1250, 2, 3, seed=4, repeated=0.03)
    Y[400:800] = Y[400:800, [1, 2, 0]]
    learner = assert_equals_plain(X, Y, USUAL | RULES[rule] | {"vigilance": 0.001}, n_queries=3)
    parts = learner.state()["drift.parts"]
    assert len(parts) == 16 and parts.sum() > 17 and parts.max() > 1

"""Warnings show the user's own line."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mlca import MLCA
from mlca.peers import MLkNN
from mlca.tables import Recipe

X = np.random.default_rng(0).normal(size=(30, 2))
JOINED = ["sea,sun", "sun"] * 15
TAGS = [["sea"], ["sun"]] * 15
FRAME = pd.DataFrame({"size": X[:, 0], "word": ["x", "y"] * 15, "ticket": [f"T{i}" for i in range(30)]})


def line_of(call):
    """Return file and line of a function."""
    return inspect.getsourcefile(call), inspect.getsourcelines(call)[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: MLCA().fit(X, JOINED),
        lambda: MLCA().partial_fit(X, JOINED),
        lambda: MLkNN(k=3).fit(X, JOINED),
        lambda: make_pipeline(MLCA()).fit(X, JOINED),
        lambda: MLCA().fit(FRAME, TAGS),
        lambda: MLCA().partial_fit(FRAME, TAGS),
        lambda: Recipe().fit(FRAME),
        lambda: Recipe().fit_transform(FRAME),
        lambda: make_pipeline(Recipe(), MLCA()).fit(FRAME, TAGS),
        lambda: MLCA(vote="frequencies").fit(X, TAGS),
        lambda: MLCA(n_neighbors=5).fit(FRAME.drop(columns="ticket"), TAGS),
        lambda: GridSearchCV(MLCA(), {"smoothing": [2.0]}, cv=2).fit(X, np.eye(2)[[0, 1] * 15]),
    ],
)
def test_warning_shows_the_line_of_the_user(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught and {(warning.filename, warning.lineno) for warning in caught} == {line_of(call)}


@pytest.mark.parametrize(("name", "value"), [("vote", "frequencies"), ("n_neighbors", 5), ("smoothing", 2.0)])
def test_parameters_without_effect_raise_a_warning(name, value):
    with pytest.warns(UserWarning, match=f'{name}={value!r} has no effect unless decision="bayes"') as caught:
        idle = MLCA(**{name: value}).fit(X, TAGS).partial_fit(X, TAGS)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = MLCA().fit(X, TAGS).partial_fit(X, TAGS)
        MLCA(decision="bayes", **{name: value}).fit(X, TAGS)
        MLCA.published(**{name: value}).fit(X, TAGS)
    np.testing.assert_array_equal(idle.predict_proba(X), plain.predict_proba(X))

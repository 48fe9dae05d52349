"""Explanations: their order, their sums, and all output formats."""

import json
from itertools import pairwise

import numpy as np
import pytest

from mlca import MLCA
from mlca.tables.table_learner import recipe_of
from mlca.tables.vocabulary import Vocabulary
from tests.tables.tickets import tickets

FRAME, TOPICS = tickets(260, 5)
DECISIONS = [{}, {"recency": True}, {"decision": "calibrated"}, {"decision": "calibrated", "drift": "follow"}]
PAPER = {"decision": "bayes", "similarity": "correntropy"}


def descends(numbers):
    return all(a >= b for a, b in pairwise(numbers))


@pytest.mark.parametrize("parameters", [*DECISIONS, PAPER])
@pytest.mark.parametrize("seed", range(3))
def test_explanation_is_sorted_as_documented(parameters, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    model = MLCA(**parameters).fit(X, (X + rng.normal(size=X.shape)) > 0.3)
    for row in rng.normal(size=(5, 3)):
        told = model.explain(row)
        assert descends((-told.distances).tolist()) and descends(told.weights.tolist())
        assert descends([share for _, share in told.agreement])
        assert descends(told.posterior[told.order].tolist())
        frame = told.to_frame()
        assert descends(frame["probability"].tolist())
        for label in told.labels:
            assert descends([abs(added) for _, added in told.reasons(label)])


def test_reasons_add_up_to_the_logit():
    model = MLCA(recency=True).fit(FRAME, TOPICS)
    told = model.explain(FRAME.iloc[[8]])
    for place, label in enumerate(told.labels, start=1):
        assert sum(added for _, added in told.reasons(label)) == pytest.approx(told.logits[place])
        assert 1 / (1 + np.exp(-told.logits[place])) == pytest.approx(told.posterior[place - 1])


def test_default_is_the_most_likely_label_or_none():
    model = MLCA().fit(FRAME, TOPICS)
    told = model.explain(FRAME.iloc[[8]])
    likeliest = next(told.labels[place] for place in told.order if told.labels[place] in told.predicted)
    assert told.reasons() == told.reasons(likeliest)
    X = np.random.default_rng(0).normal(size=(90, 2))
    empty = MLCA().fit(X, [set() if x < 1 else {"a"} for x in X[:, 0]]).explain([-1.0, 0.0])
    assert not empty.predicted and "Evidence for no label: " in str(empty)
    assert sum(added for _, added in empty.reasons()) == pytest.approx(empty.logits[0])
    assert {name.split(" ")[0] for name, _ in empty.linear_none} >= {"x0", "x1"}
    assert "<b>no label</b>" in empty._repr_html_()
    with pytest.raises(ValueError, match="not a label of the model"):
        empty.reasons("b")


@pytest.mark.parametrize("parameters", [{}, PAPER])
def test_all_forms_have_the_same_content(parameters):
    X = np.random.default_rng(0).normal(size=(90, 2))
    model = MLCA(**parameters).fit(X, [{"<b>"} if x < 0 else {"a"} for x in X[:, 0]])
    told = model.explain([-1.0, 0.5])
    plain = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert plain["posterior"] == told.posterior.tolist() and plain["predicted"] == ["<b>"]
    assert plain["linear"] == {label: dict(terms) for label, terms in told.linear.items()}
    frame = told.to_frame()
    shown = frame[frame["label"] == "<b>"]
    assert list(zip(shown["reason"], shown["contribution"], strict=True)) == list(told.reasons("<b>"))
    html = told._repr_html_()
    assert "&lt;b&gt;" in html and "<td><b>" not in html and html.count("<table>") == html.count("</table>") == 2


def test_ranges_of_numbers_are_named():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2300, 2)) * [1, 100]
    model = MLCA(vigilance=0.2).fit(X, X > 0)
    told = model.explain([0.1, 20.0])
    named = [name for name, _ in told.linear[model.classes_[1]] if name.startswith("x1 from ")]
    low, high = (float(word) for word in named[0].removeprefix("x1 from ").split(" to "))
    assert len(named) == 1 and low <= 20.0 <= high


def test_models_without_vocabulary_name_no_words():
    model = MLCA().fit(FRAME, TOPICS)
    recipe_of(model).words = Vocabulary()
    told = dict(model.explain(FRAME.iloc[[8]]).values)
    assert "words and pairs" not in told["text"][0] and "words and pairs" in told["text"][1]

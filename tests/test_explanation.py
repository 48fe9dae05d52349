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
        explained = model.explain(row)
        assert descends((-explained.distances).tolist()) and descends(explained.weights.tolist())
        assert descends([share for _, share in explained.agreement])
        assert descends(explained.posterior[explained.order].tolist())
        frame = explained.to_frame()
        assert descends(frame["probability"].tolist())
        for label in explained.labels:
            assert descends([abs(added) for _, added in explained.reasons(label)])


def test_reasons_add_up_to_the_logit():
    model = MLCA(recency=True).fit(FRAME, TOPICS)
    explained = model.explain(FRAME.iloc[[8]])
    for place, label in enumerate(explained.labels, start=1):
        assert sum(added for _, added in explained.reasons(label)) == pytest.approx(explained.logits[place])
        assert 1 / (1 + np.exp(-explained.logits[place])) == pytest.approx(explained.posterior[place - 1])


def test_default_is_the_most_likely_label_or_none():
    model = MLCA().fit(FRAME, TOPICS)
    explained = model.explain(FRAME.iloc[[8]])
    likeliest = next(
        explained.labels[place] for place in explained.order if explained.labels[place] in explained.predicted
    )
    assert explained.reasons() == explained.reasons(likeliest)
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
    explained = model.explain([-1.0, 0.5])
    plain = json.loads(json.dumps(explained.to_dict(), allow_nan=False))
    assert plain["posterior"] == explained.posterior.tolist() and plain["predicted"] == ["<b>"]
    assert plain["linear"] == {label: dict(terms) for label, terms in explained.linear.items()}
    frame = explained.to_frame()
    shown = frame[frame["label"] == "<b>"]
    assert list(zip(shown["reason"], shown["contribution"], strict=True)) == list(explained.reasons("<b>"))
    html = explained._repr_html_()
    assert "&lt;b&gt;" in html and "<td><b>" not in html and html.count("<table>") == html.count("</table>") == 2


def test_ranges_of_numbers_are_named():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2300, 2)) * [1, 100]
    model = MLCA(vigilance=0.2).fit(X, X > 0)
    explained = model.explain([0.1, 20.0])
    named = [name for name, _ in explained.linear[model.classes_[1]] if name.startswith("x1 from ")]
    low, high = (float(word) for word in named[0].removeprefix("x1 from ").split(" to "))
    assert len(named) == 1 and low <= 20.0 <= high


def test_models_without_vocabulary_name_no_words():
    model = MLCA().fit(FRAME, TOPICS)
    recipe_of(model).words = Vocabulary()
    explained = dict(model.explain(FRAME.iloc[[8]]).values)
    assert "words and pairs" not in explained["text"][0] and "words and pairs" in explained["text"][1]

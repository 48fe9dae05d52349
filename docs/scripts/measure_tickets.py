"""Measure exact match on generated tickets: MLCA(), and TF-IDF with logistic regression.

tests/tables/tickets.py generates the tickets, each with one to three topics. For each topic of a ticket, one of seven
sentences (in three languages, with devices and numbers) is drawn. Neutral sentences are added, and 5 % of the cells are
missing. Run from the root of the repository: python -m docs.scripts.measure_tickets
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from mlca import MLCA
from tests.tables.tickets import tickets


def reference(train, test):
    """Return exact match of TF-IDF with one logistic regression per label."""
    (frame, topics), (new, truth) = train, test
    binarizer = MultiLabelBinarizer().fit(topics)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(frame["text"].fillna(""))
    model = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    model.fit(words.transform(frame["text"].fillna("")), binarizer.transform(topics))
    predicted = model.predict(words.transform(new["text"].fillna("")))
    return float(np.mean((predicted == binarizer.transform(truth)).all(axis=1)))


def ours(train, test, **parameters):
    """Return exact match of MLCA, which learns the unchanged frame in one pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLCA(**parameters).fit(*train)
    return model.score(*test)


def main() -> None:
    """Train and score both methods, and print exact match."""
    train, test = tickets(3000, 1), tickets(1000, 2)
    text_only = tuple((frame[["text"]], topics) for frame, topics in (train, test))
    print(f"TF-IDF and logistic regression, text alone  {reference(train, test):.3f}")
    published = {"similarity": "correntropy", "decision": "bayes"}
    for name, parameters in {"MLCA()": {}, "the paper's MLCA": published}.items():
        print(f"{name:<26} all columns      {ours(train, test, **parameters):.3f}")
        print(f"{name:<26} text alone       {ours(*text_only, **parameters):.3f}")


if __name__ == "__main__":
    main()

"""MLCA for River: rows and labels are dicts, in which new names may appear at any time.

A row {feature: value} becomes an array with one column per feature, in the order in which features first appeared; a
feature that the row does not mention is 0. Labels {label: bool} become columns in the same way. The learner is that of
`mlca.MLCA`, so a stream whose first row names all features gives exactly the model of `partial_fit`. A later feature
starts as a column of zeros; `mlca.learner.widening` describes when the result is exact. From the first non-numeric
value on, or with `columns`, rows are learned as table rows (`mlca.river_tables`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.base import turn_of
from mlca.classifier import MLCA
from mlca.explanation import Explanation
from mlca.learner.core import Answers, Learner
from mlca.learner.widening import widened_by_row
from mlca.limits import TEXT_FEATURES
from mlca.optional import needing
from mlca.options import Attributes, Decision, Drift, Objective, Rule, Search, Similarity, Vote
from mlca.river_rows import (
    any_row,
    check_frame,
    checked_row,
    require_columns,
    require_row,
    rows_of_frame,
    sparse_row,
    usual_row,
)
from mlca.river_tables import RiverTable, frame_holds_more_than_numbers, holds_more_than_numbers, without_unknown_words
from mlca.tables.feature_names import FeatureNames
from mlca.tables.kinds import Numeric
from mlca.tables.layout import TableLayout
from mlca.targets import LabelSet
from mlca.targets.names import check_truth
from mlca.validation import check_whole, read_threshold

with needing("mlca.river", "river"):
    import pandas as pd
    from river import base

    from mlca.river_metrics import ExactMatch, ExampleF1, HammingLoss, Jaccard, MacroF1, MicroF1

__all__ = ["ExactMatch", "ExampleF1", "HammingLoss", "Jaccard", "MLCAClassifier", "MacroF1", "MicroF1"]


class MLCAClassifier(base.MultiLabelClassifier):
    """Multi-label classifier for River that accepts new labels and features at any time.

    Features may appear, disappear or change their order; a feature that a row does not mention is 0. None and NaN are
    missing values, which are left out of comparisons. Labels may appear late. From the first row with text, a date or a
    list on, rows are learned like those of frames (see `mlca.tables.TableLearner`): features may be categories, text,
    dates or vectors. Their kinds are inferred from the first 1000 rows or set by `columns`. A non-numeric feature is
    missing in rows that do not mention it. Numbers are not scaled: put a scaler before the classifier if their units
    differ. Each row with a new feature rebuilds the model's arrays: if most rows contain new words, put
    `river.preprocessing.FeatureHasher` before the classifier.

    Parameters
    ----------
    vigilance
        The largest distance at which a row joins a node, in [0, 1), or "auto". Small values keep nearly every row.
    n_neighbors
        The number of nodes that vote, with `decision="bayes"`.
    window
        The number of recent rows from which a new node's bandwidth is estimated.
    smoothing
        Laplace smoothing of all probabilities, with `decision="bayes"`.
    similarity
        The distance that selects voters: "learned" or "correntropy"; see `mlca.MLCA`.
    decision
        How votes become probabilities: "mixed", "calibrated" or "bayes"; see `mlca.MLCA`.
    objective
        What `predict_one` optimises: "exact" sets, "f1" or "hamming"; see `mlca.MLCA`.
    recency
        Whether to use the labels of the last rows, weighted by how useful they prove. Default: True unless
        `decision="bayes"`.
    drift
        "follow" handles concept drift: parts of the past that no longer hold lose their votes.
    max_nodes
        The largest number of nodes; None keeps all.
    search
        The nodes that are searched for voters: "exact", "cells" or "auto"; see `mlca.MLCA`.
    attributes
        How features share bandwidths: "common" (MLCA), "individual" (MLCA-I) or "clustered" (MLCA-C); see `mlca.MLCA`.
    rule
        How nodes move: "published", "released" or "text"; see `mlca.MLCA`.
    vote
        With `decision="bayes"`, whether neighbours vote with their label "counts" or label "frequencies".
    columns
        The kinds of features by name, as in `mlca.MLCA`, such as {"notes": "text"}; default: inferred.
    text_features
        The number of features for the words of each column of text.
    seed
        The seed of the order in which `attributes="clustered"` groups features; unused otherwise.

    Examples
    --------
    >>> from mlca.river import MLCAClassifier
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | MLCAClassifier()
    >>> evaluate.progressive_val_score(datasets.Yeast().take(500), model, metrics.multioutput.ExactMatch())
    ExactMatch: 11.82%

    Late labels and features need no preparation:

    >>> model = MLCAClassifier()
    >>> for i in range(30):
    ...     model.learn_one({"wind": i % 3}, {"calm": True})
    >>> for i in range(30):
    ...     model.learn_one({"wind": 20 + i % 3, "rain": 5 + i % 2}, {"storm": True})
    >>> model.predict_one({"rain": 5, "wind": 21})
    {'calm': False, 'storm': True}
    """

    def __init__(
        self,
        vigilance: float | Literal["auto"] = 0.01,
        n_neighbors: int = 10,
        window: int = 50,
        smoothing: float = 1.0,
        similarity: Similarity = "learned",
        decision: Decision = "mixed",
        objective: Objective = "exact",
        recency: bool | None = None,
        drift: Drift = "off",
        max_nodes: int | None = None,
        search: Search = "auto",
        attributes: Attributes = "common",
        rule: Rule = "published",
        vote: Vote = "counts",
        columns: Mapping[str, str] | None = None,
        text_features: int = TEXT_FEATURES,
        seed: int = 0,
    ) -> None:
        self.vigilance = vigilance
        self.n_neighbors = n_neighbors
        self.window = window
        self.smoothing = smoothing
        self.similarity = similarity
        self.decision = decision
        self.objective = objective
        self.recency = recency
        self.drift = drift
        self.max_nodes = max_nodes
        self.search = search
        self.attributes = attributes
        self.rule = rule
        self.vote = vote
        self.columns = columns
        self.text_features = text_features
        self.seed = seed
        model = self._plain_model()
        model._check_parameters()
        # A learner needs at least one feature, so there is a placeholder column, which the first feature will use.
        self._learner = Learner(model._draw_parameters(), n_features=1, sparse_nodes=False)
        self._features: dict[Hashable, int] = {}
        self._labels: dict[Hashable, int] = {}
        self._table: RiverTable | None = None

    def __getstate__(self) -> Any:
        """Return the state for copies and pickles, without the lock."""
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self._learner.settled().n_nodes

    def learn_one(self, x: Mapping[Hashable, Any], y: Mapping[Hashable, bool]) -> None:
        """Learn one row.

        Parameters
        ----------
        x
            The features. New ones are supported; those not mentioned are 0.
        y
            A dict that maps labels to True or False. Labels not mentioned are false.
        """
        with turn_of(self):
            row = None if self._table or self.columns else usual_row(x, self._features)
            by_table = row is None and bool(self._table or self.columns or holds_more_than_numbers(x))
            if row is None and not by_table:
                x = checked_row(x)
            if not isinstance(y, Mapping):
                raise ValueError(f"y is a {type(y).__name__}; pass labels as a dict {{label: bool}}")
            check_truth(y, self._labels)
            if by_table:
                require_row(x)
                self._learn_table(x, [[label for label, true in y.items() if true]], y)
                return
            if row is None:
                self._add_features(x)
                row = self._row(x)
            labels = self._labels
            for label in y:
                if label not in labels:
                    labels[label] = len(labels)
            numbers = sorted([labels[label] for label, true in y.items() if true])
            ends = np.array([0, len(numbers)], dtype=np.int64)
            self._learner.learn(row, ends, np.array(numbers, dtype=np.int32), n_labels=len(labels))

    def learn_many(self, X: pd.DataFrame, y: pd.DataFrame) -> None:
        """Learn several rows, with the same result as one call of `learn_one` per row.

        Parameters
        ----------
        X
            The features, one column each. New ones are supported; missing columns are 0.
        y
            The labels, one boolean column each. Labels without a column are false.
        """
        with turn_of(self):
            by_table = bool(self._table or self.columns or frame_holds_more_than_numbers(X))
            if by_table:
                require_columns(X, "X")
            else:
                check_frame(X)
            require_columns(y, "y")
            if len(X) != len(y):
                raise ValueError(f"X has {len(X)} rows but y has {len(y)}; each row needs its labels")
            if not y.isin((False, True)).all(axis=None):
                raise ValueError("y has values other than True and False; pass one boolean column per label")
            check_truth(dict.fromkeys(y.columns, True), self._labels)
            if by_table:
                truths = y.to_numpy(dtype=np.bool_)
                self._learn_table(X, [list(y.columns[true]) for true in truths], y.columns)
                return
            self._add_features(dict.fromkeys(X.columns))
            for label in y.columns:
                self._labels.setdefault(label, len(self._labels))
            truth = np.zeros((len(y), len(self._labels)), dtype=np.bool_)
            truth[:, [self._labels[label] for label in y.columns]] = y.to_numpy(dtype=np.bool_)
            ends = np.concatenate(([0], np.cumsum(truth.sum(axis=1))))
            numbers = np.nonzero(truth)[1].astype(np.int32)
            self._learner.learn(self._rows(X), ends.astype(np.int64), numbers, n_labels=len(self._labels))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probability of each known label for each row, with the index of X."""
        self._check_frame(X)
        if not self._labels:
            return pd.DataFrame(index=X.index)
        probabilities = self._learner.settled().answers(self._rows(X)).probabilities
        return pd.DataFrame(probabilities, index=X.index, columns=list(self._labels))

    def predict_many(self, X: pd.DataFrame, threshold: float | Mapping[Hashable, float] | None = None) -> pd.DataFrame:
        """Predict the known labels of each row as boolean columns, with the index of X.

        Parameters
        ----------
        X
            The features, one column each.
        threshold
            As in `predict_one`.
        """
        self._check_frame(X)
        cuts = self._cuts(threshold)
        if not self._labels:
            return pd.DataFrame(index=X.index)
        chosen = self._learner.settled().answers(self._rows(X)).chosen(self.objective, cuts)
        return pd.DataFrame(chosen, index=X.index, columns=list(self._labels))

    def explain_one(self, x: Mapping[Hashable, Any]) -> Explanation:
        """Explain the prediction of one row.

        Parameters
        ----------
        x
            The features. Unknown ones are ignored.

        Returns
        -------
        Explanation
            The nodes that voted, and each step from their label counts to the probabilities.
        """
        if not self._learner.n_seen:
            raise ValueError("nothing is learned yet; call learn_one before explain_one")
        if self._table:
            require_row(x)
            return self._table.explain(x)
        features = [str(feature) for feature in self._features] or ["nothing"]
        learner = self._learner.settled()
        row = self._known_row(x)
        row = (row.toarray() if sparse.issparse(row) else row)[0]
        return Explanation.of(
            learner,
            learner.explain(row),
            tuple(self._labels),
            FeatureNames(TableLayout(tuple(map(Numeric, features)))),
            row,
            objective=self.objective,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which `mlca.load` and the command line can also read.

        Parameters
        ----------
        path
            The file; an existing one is replaced. Feature names must be strings, and labels strings or whole numbers.
        """
        if self._table:
            self._table.model.save(path)
            self._table.settle()
            return
        odd = [feature for feature in self._features if not isinstance(feature, str)]
        if odd:
            raise ValueError(f"the feature name {odd[0]!r} is not a string and cannot be saved; rename the feature")
        if not self._features or not self._learner.n_seen:
            raise ValueError("nothing is learned yet; call learn_one before save")
        self._named_model().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a model that `save` wrote, or that `mlca.MLCA.save` wrote for named columns.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        MLCAClassifier
            The model, which continues training exactly as the original would.
        """
        from mlca.classifier import load

        model = load(path)
        if not hasattr(model, "feature_names_in_") or model.labels_.single:
            raise ValueError(f"{path} is not a model with named columns and label sets; load it with mlca.load")
        parameters = {name: value for name, value in model.get_params().items() if name in cls._shared_parameters()}
        if parameters["recency"] == (model.decision != "bayes"):
            parameters["recency"] = None  # the default
        loaded = cls(**parameters, seed=model._learner.parameters.seed)
        loaded._learner = model._learner
        loaded._table = RiverTable(model) if model._reads_tables else None
        loaded._features = {name: column for column, name in enumerate(model.feature_names_in_.tolist())}
        loaded._labels = {name: column for column, name in enumerate(model.labels_.names)}
        return loaded

    def _named_model(self) -> MLCA:
        """Return a model with named columns that shares the learner."""
        model = self._plain_model()
        model._learner = self._learner
        model.labels_ = LabelSet(tuple(self._labels))
        model.n_features_in_ = self._learner.n_features
        model.feature_names_in_ = np.array([str(feature) for feature in self._features], dtype=object)
        return model

    @classmethod
    def _shared_parameters(cls) -> set[str]:
        return set(inspect.signature(cls).parameters) - {"seed"}

    def _plain_model(self) -> MLCA:
        parameters = {name: getattr(self, name) for name in self._shared_parameters()}
        if self.recency is None:
            parameters["recency"] = self.decision != "bayes"
        return MLCA(**parameters, random_state=self.seed)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[Hashable, dict[bool, float]]:
        """Return the probability of each known label.

        Parameters
        ----------
        x
            The features. Unknown ones are ignored, because they are 0 in every node.

        Returns
        -------
        dict
            For each label, the probabilities of False and True. Empty until a label has been learned.
        """
        probabilities = self._answers(x).probabilities[0].tolist() if self._labels else []
        return {label: {False: 1.0 - p, True: p} for label, p in zip(self._labels, probabilities, strict=True)}

    def predict_one(
        self, x: Mapping[Hashable, Any], threshold: float | Mapping[Hashable, float] | None = None, **kwargs: Any
    ) -> dict[Hashable, bool]:
        """Predict for each known label whether the row has it.

        Parameters
        ----------
        x
            The features.
        threshold
            The probability above which a label is predicted, for all labels or by label (0.5 for others). The row may
            then have no label. None: labels are chosen for the `objective`.

        Returns
        -------
        dict
            True or False for each label. Empty until a label has been learned.
        """
        cuts = self._cuts(threshold)
        decisions = self._answers(x).chosen(self.objective, cuts)[0].tolist() if self._labels else []
        return dict(zip(self._labels, decisions, strict=True))

    def predict_top_one(self, x: Mapping[Hashable, Any], k: int) -> list[tuple[Hashable, float]]:
        """Return the k most likely labels with their probabilities, most likely first.

        Parameters
        ----------
        x
            The features.
        k
            The number of labels to return; fewer if the model knows fewer.

        Returns
        -------
        list of (label, float)
            Labels of equal probability are in the order in which they first appeared.
        """
        check_whole("k", k, at_least=1)
        probabilities = self._answers(x).probabilities[0].tolist() if self._labels else []
        return sorted(zip(self._labels, probabilities, strict=True), key=lambda pair: -pair[1])[:k]

    def novelty_one(self, x: Mapping[Hashable, Any]) -> float:
        """Return how unusual a row is, from 0 to 1; see `mlca.MLCA.novelty`.

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        float
            The share of learned rows that, on arrival, were nearer to their nearest node than x; 1.0 before training.

        Raises
        ------
        AttributeError
            With `decision="bayes"`, which does not record the distances of rows to their nearest node.
        """
        if self.decision == "bayes":
            raise AttributeError('decision="bayes" does not record the distances of rows, which novelty needs')
        if not self._learner.n_seen:
            return 1.0
        return float(self._learner.settled().novelty(self._known_row(x))[0])

    def _answers(self, x: Mapping[Hashable, Any]) -> Answers:
        return self._learner.settled().answers(self._known_row(x))

    def _cuts(self, threshold: float | Mapping[Hashable, float] | None) -> float | NDArray[np.float64] | None:
        return None if threshold is None else read_threshold(threshold, list(self._labels))

    def _learn_table(self, x: Any, y: list[list[Hashable]], labels: Iterable[Hashable]) -> None:
        """Learn rows by column name: with `columns`, or from the first non-numeric row on."""
        table = self._table
        if table is None:
            table = RiverTable(self._named_model() if self._learner.n_seen and self._features else self._plain_model())
        table.learn(x, y, [*self._labels, *(label for label in labels if label not in self._labels)])
        self._table, self._learner = table, table.learner
        self._labels = {label: place for place, label in enumerate(table.model.labels_.names)}

    def _check_frame(self, X: Any) -> None:
        if self._table:
            require_columns(X, "X")
        else:
            check_frame(without_unknown_words(X, self._features))

    def _known_row(self, x: Mapping[Hashable, Any]) -> Any:
        if self._table:
            require_row(x)
            return self._table.encode(x)
        row = usual_row(x, self._features)
        if row is None:
            row = self._row(checked_row(without_unknown_words(x, self._features)))
        return row

    def _row(self, x: Mapping[Hashable, Any]) -> Any:
        """Return a checked row as an array that is dense or sparse, like the nodes."""
        as_row = sparse_row if self._learner.sparse_nodes else any_row
        return as_row(x, self._features, self._learner.n_features)

    def _rows(self, X: pd.DataFrame) -> Any:
        if self._table:
            return self._table.encode(X)
        return rows_of_frame(X, self._features, self._learner.n_features)

    def _add_features(self, x: Mapping[Hashable, Any]) -> None:
        """Add a column for each new feature of a row."""
        if x.keys() <= self._features.keys():
            return
        for feature in x:
            self._features.setdefault(feature, len(self._features))
        n_features = len(self._features)
        if n_features > self._learner.n_features:
            self._learner = widened_by_row(self._learner, n_features, len(x))

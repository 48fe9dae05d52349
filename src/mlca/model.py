"""A classifier around a learner: what it has learned, for whoever feeds, asks, keeps or joins it.

`LearnedModel` is what the rooms beside the classifier (`frames`, `recipes`, `storage`) know of it; `mlca.classifier`
has the parameters and the way in. A model may carry extras, JSON values that belong to others: its file keeps them
without asking what they mean.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse

from mlca.base import Rows, StreamClassifier, is_plain, require_as_many
from mlca.kernels import native
from mlca.learner.core import Answers, Learner, n_labels_of
from mlca.limits import LARGEST_VALUE, MOST_FEATURES
from mlca.parameter_checks import check_n_jobs
from mlca.targets import LabelRows, LabelSet


class LearnedModel(StreamClassifier):
    """A stream classifier whose knowledge is a learner and names for its labels."""

    epochs: int
    n_jobs: int | None
    random_state: Any
    _learner: Learner
    _labels: LabelSet

    @property
    def labels_(self) -> LabelSet:
        """The labels that are known: those of the rows learned so far, and those that were announced."""
        fitted = self.__dict__
        learner: Learner | None = fitted.get("_learner")
        if learner is None or learner.n_seen == 0:
            raise AttributeError("this model has learned nothing yet")
        n_labels = learner.n_labels
        labels: LabelSet = fitted["_labels"]  # asked for last: it has names for all labels that the learner knows
        return labels.first(n_labels)

    @labels_.setter
    def labels_(self, labels: LabelSet) -> None:
        self._labels = labels

    @property
    def _has_classes(self) -> bool:
        return self._labels.single

    @property
    def n_nodes_(self) -> int:
        """The number of nodes."""
        return self._settled_learner().n_nodes

    @property
    def n_seen_(self) -> int:
        """The number of rows learned."""
        self._check_fitted()
        return self._learner.n_seen

    @property
    def weights_(self) -> Any:
        """The nodes, one row each."""
        learner = self._settled_learner()
        state = learner.state("weights")
        if not learner.sparse_nodes:
            return _read_only(state["weights"])
        return _csr(state, "weights", learner.n_features)

    @property
    def counts_(self) -> NDArray[np.int64]:
        """The number of rows that each node stands for."""
        return _read_only(self._settled_learner().state("counts")["counts"])

    @property
    def label_counts_(self) -> Any:
        """How many of each node's rows had each label."""
        state = self._settled_learner().state("label_counts")
        return _csr(state, "label_counts", n_labels_of(state))

    @property
    def bandwidths_(self) -> NDArray[np.float64]:
        """The bandwidths of the nodes."""
        learner = self._settled_learner()
        bandwidths = _read_only(learner.state("bandwidths")["bandwidths"])
        return bandwidths[:, 0] if learner.parameters.attributes == "common" else bandwidths

    @property
    def vigilance_(self) -> float:
        """How far a row may be from the nearest node before it becomes one: as it was given, or found."""
        vigilance = self._settled_learner().parameters.vigilance
        assert vigilance is not None
        return vigilance

    @property
    def attribute_weights_(self) -> NDArray[np.float64]:
        """How much each attribute weighs in the learned similarity; they add up to 1."""
        learner = self._settled_learner()
        if learner.parameters.similarity != "learned":
            raise AttributeError('only similarity="learned" weighs attributes')
        weights = learner.state("none")["similarity.weights"].astype(np.float64)
        return _read_only(weights / weights.sum())

    @property
    def nearest_distances_(self) -> NDArray[np.int64]:
        """How many rows were how far from the nearest node before they were learned: by bins from 0 to 1."""
        learner = self._settled_learner()
        if learner.parameters.decision != "calibrated":
            raise AttributeError('only decision="calibrated" notes how near rows have been')
        return _read_only(learner.state("none")["decision.novelty"])

    @property
    def segments_(self) -> tuple[tuple[int, float], ...]:
        """With ``drift="follow"`` the segments of the past, oldest first: the node each begins with, and its trust."""
        return self._settled_learner().segments()

    @property
    def background_(self) -> sparse.csr_array:
        """What speaks for each label: its strongest attributes, by the learned similarity's linear scores.

        Row k, column j: by how many deviations the score of label k rises, from the smallest value of attribute j that
        nodes have to the largest; of a category, with the value that says most. Empty before there are twenty nodes.
        """
        learner = self._settled_learner()
        if learner.parameters.similarity != "learned":
            raise AttributeError('only similarity="learned" has linear scores')
        state = learner.state("none")
        n_knots = int(state["similarity.tally"][1])
        span = 2.0**18 * n_knots if n_knots else 2.0**22  # of ranks, in the units of src/kernels/ranks.hpp
        shape = (n_labels_of(state) + 1, learner.n_features)
        starts, deviations = state["background.indptr"], state["background.deviations"]
        rows = np.repeat(np.arange(len(deviations)), np.diff(starts)) if len(starts) else np.empty(0, np.int64)
        varies = deviations[rows] > 0
        scores = state["background.data"][varies] * span / deviations[rows[varies]]
        # Behind the attributes stand the values of those that are categories.
        owners = np.concatenate([np.arange(learner.n_features), state["similarity.trait_attributes"]])
        columns, rows = owners[state["background.indices"][varies]], rows[varies]
        strongest = np.lexsort((-np.abs(scores), columns, rows))
        places = np.stack([rows, columns])[:, strongest]
        first = np.append(True, np.any(places[:, 1:] != places[:, :-1], axis=0))[: len(scores)]
        found = sparse.coo_array((scores[strongest][first], tuple(places[:, first])), shape=shape)
        return found.tocsr()[1:]  # the first is that of having no label

    def novelty(self, X: Any) -> NDArray[np.float64]:
        """Tell how unlike everything learned each row is.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            From 0 to 1: the share of the rows learned so far that were nearer to their nearest node, before they
            were learned, than the row is to its own.

        Raises
        ------
        AttributeError
            With `decision="bayes"`, which does not note how near rows have been.
        """
        model = self._frozen()
        model._check_fitted()
        if model._learner.parameters.decision != "calibrated":
            raise AttributeError('novelty needs decision="calibrated", which notes how near rows have been')
        return model._settled_learner().novelty(model._read_known_rows(X), model._n_threads())

    def __getstate__(self) -> Any:
        """Return what copies and pickles are made of: a learner of their own, and names for all its labels."""
        state = dict(super().__getstate__())
        if "_learner" in state:
            state["_learner"] = state["_learner"].copy()
            state["_labels"] = self._labels
        return state

    def _learn_all(self, rows: Rows, targets: LabelRows) -> None:
        for name in ("extras_", "_held"):  # the recipe that an earlier model was trained by, and frames that it held
            self.__dict__.pop(name, None)
        for _ in range(self.epochs):
            self._learn(rows, targets)

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        self._learner.learn(rows, targets.indptr, targets.indices, targets.n_before, self._n_threads())

    def judge(self, X: Any) -> Answers:
        """Return probabilities, the labels that they choose and how new rows are, at the cost of one prediction.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        Answers
            Columns are in the order of `classes_`; `chosen()` are the labels, `novelty` is None with Bayes' rule.
        """
        model = self._frozen()
        rows, learner = model._read_known_rows(X), model._learner.settled()
        return learner.answers(rows, model._n_threads(), novelty=learner.parameters.decision == "calibrated")

    def _answers(self, rows: Rows) -> Answers:
        return self._learner.settled().answers(rows, self._n_threads())

    def _read_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        # Single rows come by the thousand: where one look tells that nothing is to be done, that is all.
        if is_plain(X) and X.shape[1] <= MOST_FEATURES and native.all_within(X, LARGEST_VALUE):
            require_as_many(X, targets)
            return X
        rows = super()._read_rows(X, targets)
        if rows.shape[1] > MOST_FEATURES:
            raise ValueError(f"X has {rows.shape[1]} features; sums stay exact up to {MOST_FEATURES}: select some")
        return rows

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        return self._answers(rows).probabilities

    def _chosen(self, rows: Rows) -> NDArray[np.bool_]:
        return self._answers(rows).chosen()

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        check_n_jobs(self.n_jobs)
        return int(effective_n_jobs(self.n_jobs))

    def _check_fitted(self) -> None:
        learner: Learner | None = self.__dict__.get("_learner")
        if learner is None or learner.n_seen == 0:  # another thread may have just begun to fit
            super()._check_fitted()

    def _settled_learner(self) -> Learner:
        self._check_fitted()
        return self._learner.settled()


def extras_of(model: LearnedModel) -> dict[str, Any]:
    """Return what a model carries beside its own, by name: plain JSON that its file keeps and `fit` forgets."""
    return dict(vars(model).get("extras_", {}))


def set_extra(model: LearnedModel, name: str, value: Any) -> None:
    """Let a model carry a JSON value; `save` keeps it and `load` brings it back, neither asking what it means."""
    plain = json.loads(json.dumps(value, allow_nan=False))
    model.__dict__["extras_"] = extras_of(model) | {name: plain}


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Let nobody believe that writing into a copy would change the model."""
    array.flags.writeable = False
    return array


def _csr(state: dict[str, NDArray[Any]], name: str, n_columns: int) -> sparse.csr_array:
    indptr, indices, data = (_read_only(state[f"{name}.{part}"]) for part in ("indptr", "indices", "data"))
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))

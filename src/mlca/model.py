"""The classifier around a learner: fitted attributes, prediction and state.

`frames` and `storage` use `LearnedModel`; `mlca.classifier` adds parameters and the public interface. A model may have
*extras*: JSON values that other modules attach, and that model files store without interpreting them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array, vstack

from mlca.base import Rows, StreamClassifier
from mlca.kernels import native
from mlca.learner.core import Answers, Learner, n_labels_of
from mlca.learner.row_ids import RowIds, row_ids_from_json
from mlca.limits import MOST_FEATURES
from mlca.messages import warn
from mlca.options import Objective
from mlca.targets import LabelRows, LabelSet
from mlca.validation import check_flag, check_n_jobs, check_objective, check_real, check_whole, read_threshold

_PROBABILITIES_AT_ONCE = 1 << 22  # number of probabilities per part of a sparse result
REPORTED_ROWS = 200  # number of rows between two progress reports; it does not change the model

# Names of extras: the column recipe (`mlca.tables.recipe`), and the IDs of the rows that nodes represent.
RECIPE, ROW_IDS = "recipe", "row_ids"


class LearnedModel(StreamClassifier):
    """A stream classifier that consists of a learner and label names."""

    _most_features = MOST_FEATURES

    objective: Objective
    columns: Mapping[str, str] | None
    text_features: int
    epochs: int
    n_jobs: int | None
    random_state: Any
    _learner: Learner
    _labels: LabelSet

    @property
    def labels_(self) -> LabelSet:
        """The known labels: those of the rows learned so far, and those listed in `classes`."""
        fitted = self.__dict__
        learner: Learner | None = fitted.get("_learner")
        if learner is None or learner.n_seen == 0:
            raise AttributeError("this model has learned nothing yet; call fit or partial_fit first")
        n_labels = learner.n_labels
        labels: LabelSet = fitted["_labels"]  # read last, so that it names all labels of the learner
        return labels if n_labels == len(labels.names) else labels.first(n_labels)

    @labels_.setter
    def labels_(self, labels: LabelSet) -> None:
        self._labels = labels

    @property
    def n_nodes_(self) -> int:
        """The number of nodes."""
        return self._settled_learner().n_nodes

    @property
    def n_seen_(self) -> int:
        """The number of rows learned."""
        return self._fitted()._learner.n_seen

    @property
    def prototypes_(self) -> Any:
        """The positions of the nodes, one row per node."""
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
        """The number of rows with each label, per node."""
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
        """The largest distance at which a row joins a node, as given or as estimated by "auto"."""
        vigilance = self._settled_learner().vigilance
        assert vigilance is not None
        return vigilance

    @property
    def feature_weights_(self) -> NDArray[np.float64]:
        """The weight of each feature in the learned similarity; the weights add up to 1."""
        learner = self._settled_learner()
        if learner.parameters.similarity != "learned":
            raise AttributeError('feature weights exist only with similarity="learned"')
        weights = learner.state("none")["similarity.weights"].astype(np.float64)
        return _read_only(weights / weights.sum())

    @property
    def weights_(self) -> Any:
        """Deprecated since 0.3; use `prototypes_`."""
        _warn_renamed("weights_", "prototypes_")
        return self.prototypes_

    @property
    def attribute_weights_(self) -> NDArray[np.float64]:
        """Deprecated since 0.3; use `feature_weights_`."""
        _warn_renamed("attribute_weights_", "feature_weights_")
        return self.feature_weights_

    @property
    def background_(self) -> sparse.csr_array:
        """Deprecated since 0.3; use `background_coef_`."""
        _warn_renamed("background_", "background_coef_")
        return self.background_coef_

    @property
    def nearest_distances_(self) -> NDArray[np.int64]:
        """Histogram over [0, 1] of learned rows' distances to the nearest node on arrival."""
        learner = self._settled_learner()
        if learner.parameters.decision == "bayes":
            raise AttributeError('decision="bayes" does not record the distances of rows')
        return _read_only(learner.state("none")["decision.novelty"])

    @property
    def segments_(self) -> tuple[tuple[int, float], ...]:
        """With ``drift="follow"``, the first node and trust of each run of nodes, oldest first."""
        return self._settled_learner().segments()

    @property
    def background_coef_(self) -> sparse.csr_array:
        """The coefficients of the background score, for the strongest features of each label.

        Entry (k, j) is the increase of label k's score, in standard deviations, from the smallest to the largest value
        of feature j among the nodes; if j is categorical, for its strongest category. Empty with fewer than 20 nodes.
        """
        learner = self._settled_learner()
        if learner.parameters.similarity != "learned":
            raise AttributeError('background coefficients exist only with similarity="learned"')
        state = learner.state("none")
        n_knots = int(state["similarity.tally"][1])
        span = float(native.RANKS_PER_KNOT * n_knots if n_knots else native.RANK_OF_BINARY_ONE)
        shape = (n_labels_of(state) + 1, learner.n_features)
        starts, deviations = state["background.indptr"], state["background.deviations"]
        rows = np.repeat(np.arange(len(deviations)), np.diff(starts)) if len(starts) else np.empty(0, np.int64)
        varies = deviations[rows] > 0
        scores = state["background.data"][varies] * span / deviations[rows[varies]]
        # Categories are numbered after the features.
        owners = np.concatenate([np.arange(learner.n_features), state["similarity.trait_attributes"]])
        columns, rows = owners[state["background.indices"][varies]], rows[varies]
        strongest = np.lexsort((-np.abs(scores), columns, rows))
        places = np.stack([rows, columns])[:, strongest]
        first = np.append(True, np.any(places[:, 1:] != places[:, :-1], axis=0))[: len(scores)]
        found = sparse.coo_array((scores[strongest][first], tuple(places[:, first])), shape=shape)
        return found.tocsr()[1:]  # row 0 is "no label"

    def novelty(self, X: Any) -> NDArray[np.float64]:
        """Return how unusual each row is, compared with the rows learned so far.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            From 0 to 1: the share of learned rows that, on arrival, were nearer to their nearest node than this row is.

        Raises
        ------
        AttributeError
            With `decision="bayes"`, which does not record distances.

        Examples
        --------
        >>> import numpy as np
        >>> from mlca import MLCA
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> MLCA().fit(X, X > 0).novelty([[0.0, 0.0], [50.0, 50.0]]).round(1).tolist()
        [0.6, 1.0]
        """
        model = self._fitted()
        if model._learner.parameters.decision == "bayes":
            raise AttributeError('novelty is not available with decision="bayes", which does not record distances')
        return model._settled_learner().novelty(model._read_known_rows(X), model._n_threads())

    def __getstate__(self) -> Any:
        """Return the state for copies and pickles, with a copy of the learner."""
        state = dict(super().__getstate__())
        state.pop("_report", None)
        if "_learner" in state:
            state["_learner"] = state["_learner"].copy()
            state["_labels"] = self._labels
        if "extras_" in state:
            extras = state["extras_"].items()
            state["extras_"] = {name: value.copy() if hasattr(value, "copy") else value for name, value in extras}
        return state

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the non-default parameters and the learned columns."""
        plain: str = super().__repr__(N_CHAR_MAX)
        recipe = extra_of(self, RECIPE)
        return f"{plain}\n{recipe.in_short()}" if hasattr(recipe, "in_short") else plain

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram as HTML, followed by a table of the columns."""
        diagram: str = super()._repr_html_inner()
        recipe = extra_of(self, RECIPE)
        return diagram + recipe.kinds_as_html() if hasattr(recipe, "kinds_as_html") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def _check_features(self, X: Any, rows: Rows) -> None:
        if not self._reads_tables:
            super()._check_features(X, rows)
        elif rows.shape[1] != self._learner.n_features:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model encodes its columns as {self._learner.n_features} "
                "features; pass a DataFrame with the columns of the training data"
            )

    def _rows_of_known_frame(self, X: Any) -> Rows | None:
        return None if self._reads_tables else super()._rows_of_known_frame(X)

    @property
    def _reads_tables(self) -> bool:
        """Whether the model was trained on tables, whose columns a recipe encodes."""
        return RECIPE in self.__dict__.get("extras_", ())

    def _learn_all(self, rows: Rows, targets: LabelRows) -> None:
        for name in ("extras_", "_held"):  # left by an earlier `fit` on frames
            self.__dict__.pop(name, None)
        for _ in range(self.epochs):
            self._learn(rows, targets)

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        reporting: tuple[int, Callable[[int, int], None]] | None = self.__dict__.get("_report")
        for part, labels in ((rows, targets),) if reporting is None else _parts_to_report(rows, targets):
            known = row_ids_of(self) if ROW_IDS in self.__dict__.get("extras_", ()) and self._learner.n_seen else None
            if labels.ids is None and (known is None or not known.waits):
                self._learner.learn(part, labels.indptr, labels.indices, labels.n_before, self._n_threads())
            else:
                if known is None:
                    set_extra(self, ROW_IDS, known := RowIds())
                ids = labels.ids or (None,) * labels.n_rows
                known.learn(self._learner, part, labels.indptr, labels.indices, labels.n_before, ids)
            if reporting is not None:
                _, report = reporting
                report(self._learner.n_seen, self._learner.n_nodes)

    def predict_details(self, X: Any) -> Answers:
        """Return probabilities, chosen labels and novelty at the cost of one prediction.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        Answers
            Columns are in the order of `classes_`; `chosen()` gives the labels. `novelty` is None with Bayes' rule.

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA().fit([[0.0], [0.1], [1.0]], [{"low"}, {"low"}, {"high"}])
        >>> details = model.predict_details([[0.0], [1.0]])
        >>> details.probabilities.round(2).tolist(), details.chosen(model.objective).tolist()
        ([[0.9, 0.08], [0.11, 0.93]], [[True, False], [False, True]])
        """
        model = self._fitted()
        rows, learner = model._read_known_rows(X), model._learner.settled()
        novelty = learner.parameters.decision != "bayes"
        return learner.answers(rows, model._n_threads(), novelty)

    def judge(self, X: Any) -> Answers:
        """Return the result of `predict_details`; deprecated since 0.3."""
        _warn_renamed("judge", "predict_details")
        return self.predict_details(X)

    def predict(self, X: Any, threshold: float | Mapping[Hashable, float] | None = None) -> NDArray[Any]:
        """Return the predicted labels of each row, in the form of the training labels.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.
        threshold : float, dict of label to float, or None, default=None
            The probability above which a label is predicted, for all labels or by name (0.5 for others). Rows may
            then have no label. None: labels are chosen for the `objective`.

        Returns
        -------
        ndarray
            An indicator matrix (n_samples, n_labels) of 0 and 1; if y was 1-D, one class per row.

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA().fit([[0.0], [0.1], [1.0]], [{"low"}, {"low"}, {"high"}])
        >>> model.predict([[0.0]], threshold={"high": 0.01}).tolist()
        [[1, 1]]
        """
        model = self._fitted()
        single = model.labels_.single
        rows, learner = model._read_known_rows(X), model._learner.settled()
        check_objective(model.objective, learner.parameters.decision)  # `objective` may have changed since training
        answers = learner.answers(rows, model._n_threads())
        if single and threshold is None:
            # Names are read last, because another thread may have added labels.
            classes: NDArray[Any] = model.classes_[np.argmax(answers.probabilities, axis=1)]
            return classes
        if single:
            raise ValueError(
                "threshold is for label sets; this model was trained with a 1-D y and predicts the most likely class"
            )
        # Another thread may have learned new labels since the prediction; their names are left out.
        names = model._labels.names[: answers.probabilities.shape[1]]
        cuts = None if threshold is None else read_threshold(threshold, names)
        return answers.chosen(model.objective, cuts).astype(np.int64)

    def predict_labels(self, X: Any, threshold: float | Mapping[Hashable, float] | None = None) -> list[set[Hashable]]:
        """Return the names of the predicted labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.
        threshold : float, dict of label to float, or None, default=None
            As in `predict`.

        Returns
        -------
        list of set
            One set per row; if y was 1-D, it has one class.

        Examples
        --------
        >>> from mlca import MLCA
        >>> MLCA().fit([[0.0], [0.1], [1.0]], [{"low"}, {"low"}, {"high"}]).predict_labels([[0.05], [0.9]])
        [{'low'}, {'high'}]
        """
        if threshold is None:
            return super().predict_labels(X)
        model = self._fitted()
        return model.labels_.name_rows(model.predict(X, threshold))

    def predict_top(self, X: Any, k: int) -> list[list[tuple[Hashable, float]]]:
        """Return the k most likely labels of each row with their probabilities, in order.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.
        k : int >= 1
            The number of labels per row; fewer if the model knows fewer.

        Returns
        -------
        list of list of (label, float)
            Probabilities as in `predict_proba`. Labels of equal probability are in the order of `classes_`.

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA().fit([[0.0], [0.1], [1.0]], [{"low"}, {"low"}, {"high"}])
        >>> [label for label, _ in model.predict_top([[1.0]], k=2)[0]]
        ['high', 'low']
        """
        check_whole("k", k, at_least=1)
        model = self._fitted()
        probabilities = model.predict_proba(X)
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
        values = np.take_along_axis(probabilities, order, axis=1)
        names = model._labels.names
        return [
            [(names[j], p) for j, p in zip(columns, of_row, strict=True)]
            for columns, of_row in zip(order.tolist(), values.tolist(), strict=True)
        ]

    def predict_proba(self, X: Any, sparse: bool = False, least: float = 0.01) -> Any:
        """Return the probability of each label for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.
        sparse : bool, default=False
            Whether to return a sparse matrix of the probabilities of at least `least`, for models with many labels.
        least : float, default=0.01
            The smallest probability that a sparse result contains.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_labels)
            Column j belongs to `classes_[j]`. If y was 1-D, each row sums to 1.

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA().fit([[0.0], [0.1], [1.0]], [{"low"}, {"low"}, {"high"}])
        >>> model.predict_proba([[0.0]]).round(2).tolist()
        [[0.9, 0.08]]
        """
        model = self._fitted()
        check_flag("sparse", sparse)
        rows, learner = model._read_known_rows(X), model._learner.settled()
        if not sparse:
            return model._normalised(learner.answers(rows, model._n_threads()).probabilities)
        check_real("least", least, at_least=0, at_most=1)
        parts, n_labels = [], learner.n_labels
        step = max(1, _PROBABILITIES_AT_ONCE // max(1, n_labels))
        for first in range(0, max(1, rows.shape[0]), step):
            p = model._normalised(learner.answers(rows[first : first + step], model._n_threads()).probabilities)
            parts.append(csr_array(np.where(p[:, :n_labels] >= least, p[:, :n_labels], 0.0)))
        return vstack(parts, format="csr")

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        return self._learner.settled().answers(rows, self._n_threads()).probabilities

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        check_n_jobs(self.n_jobs)
        return int(effective_n_jobs(self.n_jobs))

    def _settled_learner(self) -> Learner:
        return self._fitted()._learner.settled()


def _parts_to_report(rows: Rows, targets: LabelRows) -> Iterator[tuple[Rows, LabelRows]]:
    """Yield rows and their labels in parts; progress is reported after each part."""
    for start in range(0, targets.n_rows, REPORTED_ROWS):
        stop = min(start + REPORTED_ROWS, targets.n_rows)
        yield rows[start:stop], targets.between(start, stop)


def extras_of(model: LearnedModel) -> dict[str, Any]:
    """Return the extras of a model by name, as JSON; files store them, and `fit` removes them."""
    extras = vars(model).get("extras_", {})
    return {name: value.to_json() if hasattr(value, "to_json") else value for name, value in extras.items()}


def extra_of(model: LearnedModel, name: str) -> Any:
    """Return an extra of a model (plain JSON after `load`), or None if it is not set."""
    return vars(model).get("extras_", {}).get(name)


def row_ids_of(model: LearnedModel) -> RowIds | None:
    """Return the IDs of the rows that nodes represent; None if the user passed no IDs."""
    kept = extra_of(model, ROW_IDS)
    if kept is None or isinstance(kept, RowIds):
        return kept
    ids = row_ids_from_json(kept)
    set_extra(model, ROW_IDS, ids)
    return ids


def set_extra(model: LearnedModel, name: str, value: Any) -> None:
    """Attach a JSON value, or an object with `to_json`, to a model; model files store it."""
    kept = value if hasattr(value, "to_json") else json.loads(json.dumps(value, allow_nan=False))
    model.__dict__["extras_"] = {**vars(model).get("extras_", {}), name: kept}


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as read-only, because writing to this copy would not change the model."""
    array.flags.writeable = False
    return array


def _csr(state: dict[str, NDArray[Any]], name: str, n_columns: int) -> sparse.csr_array:
    indptr, indices, data = (_read_only(state[f"{name}.{part}"]) for part in ("indptr", "indices", "data"))
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _warn_renamed(old: str, new: str) -> None:
    warn(f"{old} was renamed to {new}; the old name will be removed in 0.4", FutureWarning)

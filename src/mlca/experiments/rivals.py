"""Rivals of MLCA: learners from other packages, and simple controls for streams.

scikit-learn's batch learners see all training rows at once. They cannot continue training or add labels; MLCA is
compared with them in ``mlca reproduce beyond``. River's learners learn row by row. For streams, there are two controls:
repeating the labels of the previous row, and a model that is refitted on the last rows. River is imported only when one
of its learners is created.

Parameters that are not set here keep the defaults of their package, just as MLCA() runs with its defaults.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import Tags

__all__ = [
    "BoostingPerLabel",
    "LastLabels",
    "LogisticPerLabel",
    "RandomForest",
    "RiverAdaptiveForest",
    "RiverAdaptiveTree",
    "RiverLogistic",
    "RiverNeighbours",
    "SlidingWindow",
]

MORE_LIKELY_THAN_NOT = 0.5
MOST_STEPS = 1000  # iterations of logistic regression's solver; its default of 100 is too low for several datasets


class _BatchRival(BaseEstimator):
    """A batch learner, which predicts each label whose probability is above 0.5.

    Parameters
    ----------
    fallback : bool, default=False
        Whether a row whose labels all have probabilities of at most 0.5 gets the most likely label, unless "none" (no
        label at all) is more likely. This is the last step of MLCA's decision, with a margin of 1, so that the gain
        from this step alone can be measured. It requires learning "none" as an additional label.
    random_state : int, default=0
        Seed of the learner, if it uses one.
    """

    def __init__(self, fallback: bool = False, random_state: int = 0) -> None:
        self.fallback = fallback
        self.random_state = random_state

    def fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Learn all training rows."""
        self._n_labels = Y.shape[1]
        self._learn(X, np.column_stack((Y, ~Y.any(axis=1))) if self.fallback else np.asarray(Y))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each label."""
        return self._probabilities(X)[:, : self._n_labels]

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Return the predicted labels as an indicator matrix."""
        found = self._probabilities(X)
        if self.fallback:
            return with_fallback(found[:, :-1], found[:, -1])
        return (found > MORE_LIKELY_THAN_NOT).astype(np.uint8)

    @abstractmethod
    def _learn(self, X: Any, targets: NDArray[np.uint8]) -> None:
        """Learn one column per label, and a column for "none" if the fallback needs it."""

    @abstractmethod
    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each learned column, including "none" if it was learned."""

    def __sklearn_tags__(self) -> Tags:
        """Return tags that declare support for sparse rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RandomForest(_BatchRival):
    """One random forest for all labels.

    Parameters
    ----------
    n_estimators : int, default=200
        The number of trees.
    fallback, random_state : bool and int
        As for the other batch learners in this module.
    """

    def __init__(self, n_estimators: int = 200, fallback: bool = False, random_state: int = 0) -> None:
        super().__init__(fallback, random_state)
        self.n_estimators = n_estimators

    def _learn(self, X: Any, targets: NDArray[np.uint8]) -> None:
        self._forest = RandomForestClassifier(self.n_estimators, random_state=self.random_state).fit(X, targets)

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        found = self._forest.predict_proba(X)
        found, classes = (
            (found, self._forest.classes_) if isinstance(found, list) else ([found], [self._forest.classes_])
        )
        # For a label that all or none of the training rows have, the forest returns one class and one column.
        columns = [
            chances[:, 1] if len(known) == 2 else np.full(len(chances), float(known[0]))
            for chances, known in zip(found, classes, strict=True)
        ]
        return np.column_stack(columns)


def with_fallback(probabilities: NDArray[np.float64], none: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the labels above 0.5; if there are none, the likeliest if it exceeds "none".

    Examples
    --------
    >>> with_fallback(np.array([[0.7, 0.6], [0.3, 0.4], [0.3, 0.4]]), np.array([0.1, 0.2, 0.6])).tolist()
    [[1, 1], [0, 1], [0, 0]]
    """
    predicted = (probabilities > MORE_LIKELY_THAN_NOT).astype(np.uint8)
    best = probabilities.argmax(axis=1)
    rows = np.flatnonzero(~predicted.any(axis=1) & (probabilities.max(axis=1) > none))
    predicted[rows, best[rows]] = 1
    return predicted


class _PerLabel(_BatchRival):
    """One model per label; a label that all or no training rows have gets probability 1 or 0."""

    @abstractmethod
    def _new_model(self, X: Any) -> Any: ...

    def _learn(self, X: Any, targets: NDArray[np.uint8]) -> None:
        self._models = [
            float(column[0]) if (column == column[0]).all() else self._new_model(X).fit(X, column)
            for column in targets.T
        ]

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        columns = [
            np.full(X.shape[0], model) if isinstance(model, float) else model.predict_proba(X)[:, 1]
            for model in self._models
        ]
        return np.column_stack(columns)


class LogisticPerLabel(_PerLabel):
    """Logistic regression per label; standardises dense features, max-scales sparse features."""

    def _new_model(self, X: Any) -> Any:
        scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
        return make_pipeline(scaler, LogisticRegression(max_iter=MOST_STEPS))


class BoostingPerLabel(_PerLabel):
    """Histogram gradient boosting per label, with early stopping above 10,000 rows."""

    def _new_model(self, X: Any) -> Any:
        return HistGradientBoostingClassifier(random_state=self.random_state)

    def __sklearn_tags__(self) -> Tags:
        """Return tags that declare that rows must be dense."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


KEPT_ROWS = 1000  # size of the window in which River's learner searches for neighbours


class _RiverRival:
    """A River learner; with `needs_zeros`, rows must contain their zeros, as trees require."""

    needs_zeros = False

    def __init__(self, model: Any) -> None:
        self._model = model

    def learn_one(self, x: Mapping[Hashable, float], y: Mapping[Hashable, bool]) -> None:
        """Learn one row."""
        self._model.learn_one(x, y)

    def predict_one(self, x: Mapping[Hashable, float]) -> dict[Hashable, bool]:
        """Return, for each label, whether it is predicted for the row."""
        return {label: bool(has) for label, has in self._model.predict_one(x).items()}


class RiverLogistic(_RiverRival):
    """Logistic regression per label.

    Parameters
    ----------
    standardised : bool
        Whether features are standardised online; for dense rows only, because River's scaler does not see the zeros of
        sparse ones.
    """

    def __init__(self, standardised: bool = True) -> None:
        from river.linear_model import LogisticRegression
        from river.multioutput import PerOutputClassifier
        from river.preprocessing import StandardScaler

        model = PerOutputClassifier(LogisticRegression())
        super().__init__(StandardScaler() | model if standardised else model)


class RiverAdaptiveTree(_RiverRival):
    """A Hoeffding adaptive tree per label."""

    needs_zeros = True

    def __init__(self, random_state: int = 0) -> None:
        from river.multioutput import PerOutputClassifier
        from river.tree import HoeffdingAdaptiveTreeClassifier

        super().__init__(PerOutputClassifier(HoeffdingAdaptiveTreeClassifier(seed=random_state)))


class RiverAdaptiveForest(_RiverRival):
    """An adaptive random forest per label."""

    needs_zeros = True

    def __init__(self, random_state: int = 0) -> None:
        from river.forest import ARFClassifier
        from river.multioutput import PerOutputClassifier

        super().__init__(PerOutputClassifier(ARFClassifier(seed=random_state)))


class RiverNeighbours:
    """Nearest-neighbour votes for each label among recent rows, by River's `KNNClassifier`.

    One classifier per label would search the same rows repeatedly. Here a single classifier has label sets as its
    classes; a label's share of the votes is the sum of the shares of the sets that contain it.
    """

    needs_zeros = False

    def __init__(self) -> None:
        from river.neighbors import KNNClassifier, LazySearch

        self._model: Any = KNNClassifier(engine=LazySearch(window_size=KEPT_ROWS))
        self._labels: tuple[Hashable, ...] = ()

    def learn_one(self, x: Mapping[Hashable, float], y: Mapping[Hashable, bool]) -> None:
        """Store one row."""
        self._labels = tuple(y)
        self._model.learn_one(x, tuple(label for label, has in y.items() if has))

    def predict_one(self, x: Mapping[Hashable, float]) -> dict[Hashable, bool]:
        """Return, for each label, whether more than half of the votes are for it."""
        shares = dict.fromkeys(self._labels, 0.0)
        for labels, share in self._model.predict_proba_one(x).items():
            for label in labels if share else ():
                shares[label] += share
        return {label: share > MORE_LIKELY_THAN_NOT for label, share in shares.items()}


class LastLabels(BaseEstimator):
    """A control for ordered streams that repeats the labels of the previous row."""

    def partial_fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Store the labels of the last row."""
        self._labels = np.array(Y[-1])
        return self

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Return the stored labels for every row."""
        return np.tile(self._labels, (X.shape[0], 1))

    def __sklearn_tags__(self) -> Tags:
        """Return tags that declare support for sparse rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SlidingWindow(BaseEstimator):
    """A control that retrains MLCA() on the last rows, and so forgets older concepts.

    Parameters
    ----------
    kept : int, default=512
        The number of rows kept.
    every : int, default=64
        The number of rows after which the model is retrained; in between, it learns row by row.
    """

    def __init__(self, kept: int = 512, every: int = 64) -> None:
        self.kept = kept
        self.every = every
        self._rows: deque[tuple[Any, NDArray[np.uint8]]] = deque(maxlen=kept)
        self._n_learned = 0
        self._model: Any = None

    def partial_fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Learn one row, drop the oldest row from a full window, and retrain if it is due."""
        from mlca.classifier import MLCA

        self._rows.append((X, Y))
        self._n_learned += 1
        if self._model is not None and self._n_learned % self.every:
            self._model.partial_fit(X, Y)
            return self
        rows, labels = zip(*self._rows, strict=True)
        stacked = sparse.vstack(rows, format="csr") if sparse.issparse(X) else np.vstack(rows)
        self._model = MLCA().fit(stacked, np.vstack(labels))
        return self

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Return the labels predicted by the current model."""
        return np.asarray(self._model.predict(X))

    def __sklearn_tags__(self) -> Tags:
        """Return tags that declare support for sparse rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

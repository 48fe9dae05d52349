"""Batch learners of scikit-learn on indicator matrices: a forest of all labels, and one model a label."""

from __future__ import annotations

from abc import abstractmethod
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

MORE_LIKELY_THAN_NOT = 0.5
MOST_STEPS = 1000  # of the solver of logistic regression, whose own limit of 100 is too low for several datasets


class _BatchRival(BaseEstimator):
    """A learner whose labels are those that are more likely than not."""

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Return the predicted labels as an indicator matrix."""
        return (self.predict_proba(X) > MORE_LIKELY_THAN_NOT).astype(np.uint8)

    @abstractmethod
    def predict_proba(self, X: Any) -> NDArray[np.float64]: ...

    def __sklearn_tags__(self) -> Tags:
        """Tell that sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RandomForest(_BatchRival):
    """A random forest of all labels at once.

    Parameters
    ----------
    n_estimators : int, default=200
        How many trees.
    fallback : bool, default=False
        Whether a row without a likely label gets its best one, unless "none" is likelier: the last step of MLCA's
        own decision, to tell what it is worth from what the rest is worth. "None" is then learned as one more label.
    random_state : int, default=0
        Seed of the trees.
    """

    def __init__(self, n_estimators: int = 200, fallback: bool = False, random_state: int = 0) -> None:
        self.n_estimators = n_estimators
        self.fallback = fallback
        self.random_state = random_state

    def fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Learn all rows."""
        targets = np.column_stack((Y, ~Y.any(axis=1))) if self.fallback else Y
        self._n_labels = Y.shape[1]
        self._forest = RandomForestClassifier(self.n_estimators, random_state=self.random_state).fit(X, targets)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each label."""
        return self._all_probabilities(X)[:, : self._n_labels]

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Return the predicted labels, with the fallback where it is wanted."""
        if not self.fallback:
            return super().predict(X)
        probabilities = self._all_probabilities(X)
        return with_fallback(probabilities[:, :-1], probabilities[:, -1])

    def _all_probabilities(self, X: Any) -> NDArray[np.float64]:
        found = self._forest.predict_proba(X)
        found, classes = (
            (found, self._forest.classes_) if isinstance(found, list) else ([found], [self._forest.classes_])
        )
        # A label that all or none of the training rows have is a single class, and a single column.
        columns = [
            chances[:, 1] if len(known) == 2 else np.full(len(chances), float(known[0]))
            for chances, known in zip(found, classes, strict=True)
        ]
        return np.column_stack(columns)


def with_fallback(probabilities: NDArray[np.float64], none: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return labels above one half; where there is none, the best one if it is likelier than "none".

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
    """One model a label; a label that all or none of the training rows have keeps that share."""

    @abstractmethod
    def _new_model(self, X: Any) -> Any: ...

    def fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Learn all rows, label by label."""
        self._models = [
            float(column[0]) if (column == column[0]).all() else self._new_model(X).fit(X, column)
            for column in np.asarray(Y).T
        ]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each label."""
        columns = [
            np.full(X.shape[0], model) if isinstance(model, float) else model.predict_proba(X)[:, 1]
            for model in self._models
        ]
        return np.column_stack(columns)


class LogisticPerLabel(_PerLabel):
    """Logistic regression a label, on standardised attributes; sparse ones are divided by their largest value."""

    def _new_model(self, X: Any) -> Any:
        scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
        return make_pipeline(scaler, LogisticRegression(max_iter=MOST_STEPS))


class BoostingPerLabel(_PerLabel):
    """Gradient boosting of histograms a label.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the rows that early stopping holds back, where there are more than 10,000.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def _new_model(self, X: Any) -> Any:
        return HistGradientBoostingClassifier(random_state=self.random_state)

    def __sklearn_tags__(self) -> Tags:
        """Tell that rows must be dense."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

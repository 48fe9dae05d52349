"""Learners of streams: River's, a model a label, and the controls."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from mlca.experiments.rivals.batch import MORE_LIKELY_THAN_NOT

KEPT_ROWS = 1000  # of River's nearest neighbours


class _RiverRival:
    """A learner with River's face. Trees have to be told of zeros: an attribute that is not there is not split on."""

    needs_zeros = False

    def __init__(self, model: Any) -> None:
        self._model = model

    def learn_one(self, x: Mapping[Hashable, float], y: Mapping[Hashable, bool]) -> None:
        """Learn one row."""
        self._model.learn_one(x, y)

    def predict_one(self, x: Mapping[Hashable, float]) -> dict[Hashable, bool]:
        """Return whether the row has each label."""
        return {label: bool(has) for label, has in self._model.predict_one(x).items()}


class RiverLogistic(_RiverRival):
    """Logistic regression a label.

    Parameters
    ----------
    standardised : bool
        Whether attributes are standardised as they come; right for dense rows only, since River's scaler does not
        see the zeros of sparse ones.
    """

    def __init__(self, standardised: bool = True) -> None:
        from river.linear_model import LogisticRegression
        from river.multioutput import PerOutputClassifier
        from river.preprocessing import StandardScaler

        model = PerOutputClassifier(LogisticRegression())
        super().__init__(StandardScaler() | model if standardised else model)


class RiverAdaptiveTree(_RiverRival):
    """A Hoeffding adaptive tree a label."""

    needs_zeros = True

    def __init__(self, random_state: int = 0) -> None:
        from river.multioutput import PerOutputClassifier
        from river.tree import HoeffdingAdaptiveTreeClassifier

        super().__init__(PerOutputClassifier(HoeffdingAdaptiveTreeClassifier(seed=random_state)))


class RiverAdaptiveForest(_RiverRival):
    """An adaptive random forest a label."""

    needs_zeros = True

    def __init__(self, random_state: int = 0) -> None:
        from river.forest import ARFClassifier
        from river.multioutput import PerOutputClassifier

        super().__init__(PerOutputClassifier(ARFClassifier(seed=random_state)))


class RiverNeighbours:
    """Nearest neighbours a label among the last rows, by River's `KNNClassifier`.

    A classifier a label would search the same rows again and again. Here one of them has the label sets for its
    classes: a label's share of the votes is that of the sets it belongs to.
    """

    needs_zeros = False

    def __init__(self) -> None:
        from river.neighbors import KNNClassifier, LazySearch

        self._model: Any = KNNClassifier(engine=LazySearch(window_size=KEPT_ROWS))
        self._labels: tuple[Hashable, ...] = ()

    def learn_one(self, x: Mapping[Hashable, float], y: Mapping[Hashable, bool]) -> None:
        """Keep one row."""
        self._labels = tuple(y)
        self._model.learn_one(x, tuple(label for label, has in y.items() if has))

    def predict_one(self, x: Mapping[Hashable, float]) -> dict[Hashable, bool]:
        """Return whether the row has each label, by the votes of the nearest."""
        shares = dict.fromkeys(self._labels, 0.0)
        for labels, share in self._model.predict_proba_one(x).items():
            for label in labels if share else ():
                shares[label] += share
        return {label: share > MORE_LIKELY_THAN_NOT for label, share in shares.items()}


class LastLabels(BaseEstimator):
    """The control of every ordered stream: the labels of the row before, whatever the row is."""

    def partial_fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Remember the labels of the last row."""
        self._labels = np.array(Y[-1])
        return self

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Return them for every row."""
        return np.tile(self._labels, (X.shape[0], 1))

    def __sklearn_tags__(self) -> Tags:
        """Tell that sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SlidingWindow(BaseEstimator):
    """MLCA() made anew of the last rows: what forgetting gains after a change, and loses when the past comes back.

    Parameters
    ----------
    kept : int, default=512
        How many rows it knows.
    every : int, default=64
        After how many rows it is made anew; in between it learns them.
    """

    def __init__(self, kept: int = 512, every: int = 64) -> None:
        self.kept = kept
        self.every = every
        self._rows: deque[tuple[Any, NDArray[np.uint8]]] = deque(maxlen=kept)
        self._n_learned = 0
        self._model: Any = None

    def partial_fit(self, X: Any, Y: NDArray[np.uint8]) -> Self:
        """Learn one row, and forget one where there are too many."""
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
        """Return the labels that the present model predicts."""
        return np.asarray(self._model.predict(X))

    def __sklearn_tags__(self) -> Tags:
        """Tell that sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

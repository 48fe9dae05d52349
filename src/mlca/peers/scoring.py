"""Classifiers that learn real scores, one per label, rather than probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from mlca.base import MultiLabelClassifier, Rows

BLOCK_CELLS = 2**22  # rows are scored in blocks whose matrix has about this many cells

LEAST = float(np.finfo(np.float64).tiny)
MOST = 1.0 - float(np.finfo(np.float64).epsneg)


class ScoreClassifier(MultiLabelClassifier):
    """A classifier that assigns to a row the labels whose score is above a threshold.

    A subclass implements `_scores`, and `_margins` if its threshold is not zero. The logistic function of a margin is
    used as a probability (softmax if each row has exactly one label). It is not calibrated: its order within a label
    and its side of 0.5 are meaningful, its value is not.
    """

    @abstractmethod
    def _scores(self, rows: Rows) -> NDArray[np.float64]: ...

    def _margins(self, rows: Rows) -> NDArray[np.float64]:
        """Return the difference between each score and the threshold of its row."""
        return self._scores(rows)

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        margins = self._margins(rows)
        likely = softmax(margins, axis=1) if self.labels_.single else expit(margins)
        # Without this limit, large scores would round to probabilities of exactly 0 or 1.
        inside: NDArray[np.float64] = np.clip(likely, LEAST, MOST)
        return inside

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each label for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Column j belongs to `classes_[j]`. If y was 1-D with two classes, one number per row, as in scikit-learn:
            the second class's score minus the first's.
        """
        scores = self._scores(self._fitted()._read_known_rows(X))
        if self.labels_.single and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

"""Label probabilities: prior, likelihoods and posterior from what was counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.learner.kernels.learn import Model
from mlca.learner.kernels.votes import VOTED, VOTED_ALONE, label_posteriors


class LabelProbabilities(NamedTuple):
    """Priors of labels; likelihoods (with, without) and posteriors by bin: `posteriors[bin, label]`."""

    priors: NDArray[np.float64]
    likelihoods: NDArray[np.float64]
    posteriors: NDArray[np.float64]


def label_probabilities(model: Model, n_labels: int, smoothing: float) -> LabelProbabilities:
    """Work out every label's probabilities for every bin that it may fall in."""
    n_bins = model.with_.shape[1]
    result = LabelProbabilities(np.empty(n_labels), np.empty((2, n_bins, n_labels)), np.empty((n_bins, n_labels)))
    label_posteriors(model.label_totals, model.with_, model.without, model.tally, smoothing, *result)
    return result


def counters(model: Model, n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return with[i, j] and without[i, j] in full: stored deviations plus what is implied for every label."""
    without = model.without[:n_labels].copy()
    without[:, 0] += model.tally[VOTED]
    without[:, -1] += model.tally[VOTED_ALONE]
    return model.with_[:n_labels].copy(), without

"""Everything that a fitted model holds, in one comparable form."""

import numpy as np

from mlca.learner.labels import counters


def state(model):
    """Return the model's state as plain arrays, sparse nodes unfolded."""
    learner = model._learner.settled()
    with_label, without_label = counters(learner.model, learner.n_labels)
    weights = model.weights_
    return {
        "weights": weights.toarray() if hasattr(weights, "toarray") else np.array(weights),
        "counts": np.array(model.counts_),
        "label_counts": model.label_counts_.toarray(),
        "bandwidths": np.array(model.bandwidths_),
        "with": with_label,
        "without": without_label,
        "n": model.n_seen_,
        "centres": learner.groups.centres.copy(),
    }


def assert_same_state(first, second):
    first, second = state(first), state(second)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)

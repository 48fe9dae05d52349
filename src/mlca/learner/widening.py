"""Attributes that appear late: a learner that knows d attributes becomes one that knows more.

An attribute that nobody has mentioned was 0 in every instance so far. So the instances in the window and the nodes
get zeros there, and each node the bandwidth of a constant attribute where nodes have one an attribute. While the
first window fills nothing has been learned yet, and the result is the learner that had known the attribute from
the start. Later it is not, because the number of attributes enters Silverman's rule: nodes keep the bandwidths
that they were made with, new ones are estimated over all attributes, and the vigilance test counts all of them.
In a learned similarity they have next to no weight until it is computed anew.
"""

from __future__ import annotations

import numpy as np

from mlca.learner.core import Learner, n_labels_of
from mlca.learner.mixed import Arrays
from mlca.learner.parameters import Parameters

# The deviation of an attribute that is constant in the window.
SMALLEST_DEVIATION = 1e-6


def widened(learner: Learner, n_features: int) -> Learner:
    """Return a learner with more attributes, the new ones on the right; the old learner must not be used again.

    Parameters
    ----------
    learner : Learner
        One with dense nodes.
    n_features : int
        The number of attributes that are known now.

    Returns
    -------
    Learner
        The learner that goes on.
    """
    state = learner.state()
    added = n_features - learner.n_features
    for name in ("weights", "recent"):
        state[name] = np.pad(state[name], ((0, 0), (0, added)))
    if learner.parameters.attributes != "common":
        new = np.full((len(state["bandwidths"]), added), constant_bandwidth(learner.parameters, n_features))
        state["bandwidths"] = np.concatenate([state["bandwidths"], new], axis=1)
    widen_similarity(state, added)
    return Learner.from_state(learner.asked_for, n_features, n_labels_of(state), False, state)


def widen_similarity(state: Arrays, added: int) -> None:
    """Let a learned similarity know more attributes: until it is computed anew they have next to no weight."""
    if "similarity.weights" not in state or len(state["similarity.weights"]) == 0:
        return
    state["similarity.weights"] = np.concatenate([state["similarity.weights"], np.ones(added, np.int64)])
    starts = state["similarity.knot_starts"]
    if len(starts):  # an attribute without knots is zero in all nodes
        state["similarity.knot_starts"] = np.concatenate([starts, np.full(added, starts[-1])])


def constant_bandwidth(parameters: Parameters, n_features: int) -> float:
    """Return the bandwidth of an attribute that is constant in a full window."""
    exponent = 1.0 / (4.0 + n_features)
    silverman = (4.0 / (2.0 + n_features)) ** exponent
    return float(silverman * SMALLEST_DEVIATION * float(parameters.window) ** -exponent)

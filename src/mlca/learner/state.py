"""A learner's state in canonical form: plain arrays without spare room, checked before they are believed."""

from __future__ import annotations

import numpy as np

from mlca.learner.checking import State, check_state, state_schema
from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters


def capture(learner: Learner) -> State:
    """Return everything that a learner knows."""
    state = learner.state()
    kinds = state_schema(learner.asked_for, learner.sparse_nodes)
    return {name: np.ascontiguousarray(array, kinds[name][0]) for name, array in state.items()}


def restore(parameters: Parameters, n_features: int, n_labels: int, sparse_nodes: bool, state: State) -> Learner:
    """Return a learner that goes on exactly as the captured one would.

    Raises
    ------
    ValueError
        If the arrays contradict each other or could not have come from a learner. Compiled code does
        not check its indices, so nothing unchecked may reach it.
    """
    check_state(parameters, n_features, n_labels, sparse_nodes, state)
    arrays = dict(state)
    arrays["label_counts.data"] = state["label_counts.data"].astype(np.int64)
    return Learner.from_state(parameters, n_features, n_labels, sparse_nodes, arrays)

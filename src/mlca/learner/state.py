"""A learner's state in canonical form: plain arrays without spare room, checked before they are believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.learner.checking import check_state
from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters

State = dict[str, NDArray[Any]]

# name: (dtype, number of dimensions). CSR matrices are three arrays each.
_CSR = {"indptr": ("<i8", 1), "indices": ("<i4", 1), "data": ("<f8", 1)}
_COMMON_ARRAYS = {
    "tally": ("<i8", 1),
    "counts": ("<i8", 1),
    "bandwidths": ("<f8", 2),
    **{f"label_counts.{part}": kind for part, kind in _CSR.items()},
    "with": ("<i8", 2),
    "without": ("<i8", 2),
    "waiting.indptr": ("<i8", 1),
    "waiting.indices": ("<i4", 1),
    "group_centres": ("<f8", 1),
    "group_counts": ("<i8", 1),
    "group_bandwidths": ("<f8", 1),
}
_DENSE_ARRAYS = {"weights": ("<f8", 2), "recent": ("<f8", 2)}
_SPARSE_ARRAYS = {f"{name}.{part}": kind for name in ("weights", "recent") for part, kind in _CSR.items()}


def state_schema(sparse_nodes: bool) -> dict[str, tuple[str, int]]:
    """Return the name, dtype and number of dimensions of every array of a state."""
    return {**_COMMON_ARRAYS, **(_SPARSE_ARRAYS if sparse_nodes else _DENSE_ARRAYS)}


def capture(learner: Learner) -> State:
    """Return everything that a learner knows."""
    state = learner.state()
    kinds = state_schema(learner.sparse_nodes)
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

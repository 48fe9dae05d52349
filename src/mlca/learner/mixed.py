"""A state with categories or gaps, between its users and the compiled learner for mixed rows (docs/mixed.md).

Users have NaN in a gap, and rows dense or sparse as theirs were. The compiled learner has all rows sparse, with
`MISSING` in a gap: it is compiled for finite numbers, and no value that may come in is so large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.kernels import native
from mlca.learner.parameters import Parameters

Arrays = dict[str, NDArray[Any]]

MISSING: float = native.MISSING
_ROWS = ("weights", "recent")


def is_mixed(parameters: Parameters, state: Arrays) -> bool:
    """Whether a state as users see it has categories or gaps."""
    rows = (state[name] if name in state else state[f"{name}.data"] for name in _ROWS)
    return bool(parameters.categorical_features) or any(bool(np.isnan(values).any()) for values in rows)


def without_nan(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with MISSING in the place of NaN."""
    return np.where(np.isnan(values), MISSING, values)


def as_mixed(state: Arrays, sparse_nodes: bool) -> Arrays:
    """Return a state as the compiled learner for mixed rows has it; `sparse_nodes` tells how its rows are."""
    result = dict(state)
    for name in _ROWS:
        if not sparse_nodes:
            thin = sparse.csr_array(result.pop(name))
            result[f"{name}.indptr"] = thin.indptr.astype(np.int64)
            result[f"{name}.indices"] = thin.indices.astype(np.int32)
            result[f"{name}.data"] = thin.data
        result[f"{name}.data"] = without_nan(result[f"{name}.data"])
    return result


def as_shown(state: Arrays, sparse_nodes: bool, n_features: int, names: tuple[str, ...] = _ROWS) -> Arrays:
    """Return a state of the compiled learner for mixed rows as users see it; `names` are its rows."""
    result = dict(state)
    for name in (name for name in names if f"{name}.data" in state):
        data = np.where(result[f"{name}.data"] == MISSING, np.nan, result[f"{name}.data"])
        result[f"{name}.data"] = data
        if not sparse_nodes:
            indptr, indices, data = (result.pop(f"{name}.{part}") for part in ("indptr", "indices", "data"))
            result[name] = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features)).toarray()
    return result

"""The canonical state of a learner: capturing, checking and restoring it.

A state is a dict of plain arrays without spare capacity (see `state_schema`). Compiled code does not check its indices,
and a file may contain anything. So all arrays are checked for consistency here before `restore` builds a learner from
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters
from mlca.limits import LARGEST_VALUE, MOST_FEATURES, MOST_ROWS, MOST_ROWS_OF_OUR_RULE
from mlca.options import CELL_LIMITS, CellLimits

if TYPE_CHECKING:
    from mlca.learner.parameters import Parameters

State = dict[str, NDArray[Any]]

# The dtype and number of dimensions of each array, by name. A CSR matrix is three arrays.
_CSR = {"indptr": ("<i8", 1), "indices": ("<i4", 1), "data": ("<f8", 1)}
_COMMON_ARRAYS = {
    "tally": ("<i8", 1),
    "counts": ("<i8", 1),
    "bandwidths": ("<f8", 2),
    **{f"label_counts.{part}": kind for part, kind in _CSR.items()},
    "waiting.indptr": ("<i8", 1),
    "waiting.indices": ("<i4", 1),
    "group_centres": ("<f8", 1),
    "group_counts": ("<i8", 1),
    "group_bandwidths": ("<f8", 1),
}
_BAYES_ARRAYS = {"with": ("<i8", 2), "without": ("<i8", 2)}
_BEYOND_ARRAYS = {"unlabelled": ("<i8", 1)}
_SIMILARITY_ARRAYS = {
    "similarity.tally": ("<i8", 1),
    "similarity.weights": ("<i8", 1),
    "similarity.knots": ("<f8", 1),
    "similarity.knot_starts": ("<i8", 1),
    "similarity.knot_counts": ("|u1", 1),
    "background.indptr": ("<i8", 1),
    "background.indices": ("<i4", 1),
    "background.data": ("<i4", 1),
    "background.means": ("<i8", 1),
    "similarity.trait_attributes": ("<i4", 1),
    "similarity.trait_values": ("<f8", 1),
    "background.centres": ("<i8", 1),
    "background.deviations": ("<f8", 1),
}
_CELL_ARRAYS = {"cells.centres": ("<i2", 2), "cells.nodes": ("<i4", 1)}
_DECISION_ARRAYS = {
    "decision.totals": ("<i8", 1),
    "decision.arrived": ("<i4", 1),
    "decision.shares": ("<i8", 3),
    "decision.shares_with": ("<i8", 3),
    "decision.novelty": ("<i8", 1),
}
_MIXED_ARRAYS = {
    "similarity.middles": ("<f8", 1),
    "mixer.weights": ("<f8", 1),
    "mixer.curvature": ("<f8", 2),
    "mixer.hits": ("<i8", 1),
    "mixer.f1": ("<i8", 1),
    "linear.features": ("<i4", 1),
    "linear.kinds": ("|u1", 1),
    "linear.values": ("<f8", 1),
    "linear.weights": ("<f4", 2),
    "linear.squares": ("<f4", 2),
}
_RECENCY_ARRAYS = {"recency.rows": ("<f8", 1), "recency.counts": ("<f8", 2)}
# Since version 6 of the model file.
PERSISTENCE_ARRAYS = {"persistence.rows": ("<i8", 1), "persistence.counts": ("<i8", 2), "persistence.last": ("<i4", 1)}
_DRIFT_ARRAYS = {
    "drift.first": ("<i8", 1),
    "drift.parts": ("<i8", 1),
    "drift.trust": ("<f8", 1),
    "fading.counts": ("<f8", 1),
    **{f"fading.{part}": kind for part, kind in _CSR.items()},
}
_TRUST_ARRAYS = {name: _DRIFT_ARRAYS[name] for name in ("drift.first", "drift.parts", "drift.trust")}
_TRUST_ARRAYS |= {"drift.births": ("<i8", 1)}
# Arrays that must be finite: compiled code compares their numbers, and comparisons with NaN are always false.
_BEYOND_FLOATS = {"vigilance", "decision.experts"} | {
    name
    for arrays in (_SIMILARITY_ARRAYS, _MIXED_ARRAYS, _RECENCY_ARRAYS, _DRIFT_ARRAYS)
    for name, (kind, _) in arrays.items()
    if kind in ("<f8", "<f4")
}
_RESERVOIR_ARRAYS = {"reservoir.tally": ("<i8", 1), "reservoir.births": ("<i8", 1), "reservoir.totals": ("<i8", 1)}
_DENSE_ARRAYS = {"weights": ("<f8", 2), "recent": ("<f8", 2)}
_SPARSE_ARRAYS = {f"{name}.{part}": kind for name in ("weights", "recent") for part, kind in _CSR.items()}

# Number of rows learned before the first step of the linear models.
FIRST_STEP = 50

# A weight is a mean of values; rounding may make it slightly larger than the largest of them.
_LARGEST_MEAN = LARGEST_VALUE * (1 + 1e-9)

# The standard deviation of values up to 1e150 is at most 1.5e150, and Silverman's factor at most 1.06. Squares below
# 1e-323 underflow to 0, so a non-zero deviation is above 1e-162 divided by the square root of the window's length.
_SMALLEST_BANDWIDTH, _LARGEST_BANDWIDTH = 1e-170, 2 * LARGEST_VALUE


class _Tally(NamedTuple):
    """Numbers of nodes, learned rows, and counter updates with several voters and with one."""

    nodes: int
    learned: int
    voted: int
    voted_alone: int


def state_schema(parameters: Parameters, sparse_nodes: bool) -> dict[str, tuple[str, int]]:
    """Return the name, dtype and number of dimensions of every array of a state."""
    calibrated, learned = parameters.decision != "bayes", parameters.similarity == "learned"
    mixed, follows = parameters.decision == "mixed", parameters.drift == "follow"
    return {
        **_COMMON_ARRAYS,
        **(_SPARSE_ARRAYS if sparse_nodes else _DENSE_ARRAYS),
        **({"vigilance": ("<f8", 1)} if parameters.vigilance is None else {}),
        **(_DECISION_ARRAYS if calibrated else _BAYES_ARRAYS),
        **(_RESERVOIR_ARRAYS if parameters.max_nodes else {}),
        **(_BEYOND_ARRAYS if calibrated or learned else {}),
        **(_SIMILARITY_ARRAYS if learned else {}),
        **(_CELL_ARRAYS if parameters.search == "cells" else {}),
        **(_MIXED_ARRAYS if mixed else {}),
        **({"decision.experts": ("<f8", 1)} if not mixed and (parameters.recency or follows) else {}),
        **(_RECENCY_ARRAYS if parameters.recency else {}),
        **(PERSISTENCE_ARRAYS if parameters.recency and mixed else {}),
        **({} if not follows else _TRUST_ARRAYS if mixed else _DRIFT_ARRAYS),
    }


def check_state(parameters: Parameters, n_features: int, n_labels: int, sparse_nodes: bool, state: State) -> None:
    """Raise ValueError, naming the array, if a state could not have come from a learner.

    Parameters
    ----------
    parameters : Parameters
        The settings of the learner, already checked.
    n_features, n_labels : int
        The numbers of features and labels.
    sparse_nodes : bool
        Whether nodes are stored sparse.
    state : dict of ndarray
        Arrays with the names, dtypes and numbers of dimensions of `state_schema`.
    """
    if not 1 <= n_features <= MOST_FEATURES:
        raise ValueError(f"{n_features} features; a model has 1 to {MOST_FEATURES}")
    bayes = parameters.decision == "bayes"
    tally = _check_tally(state, bayes, _most_rows(parameters))
    width = 1 if parameters.attributes == "common" else n_features
    _check_shape(state, "counts", (tally.nodes,))
    _check_shape(state, "bandwidths", (tally.nodes, width))
    _check_bandwidths(state, "bandwidths")
    _require((state["counts"] >= 1).all(), "counts", "must be at least 1 for each node")
    # With `max_nodes`, rows are no longer counted at a node if they were dropped or their node was replaced, in this
    # model or in a model merged into it.
    complete = parameters.max_nodes is None or _has_all_nodes(state, tally, parameters.max_nodes)
    represented = _total(state, "counts")
    fits = represented == tally.learned if complete else represented <= tally.learned
    expected = f"{tally.learned}" if complete else f"at most {tally.learned}"
    _require(fits, "counts", f"must add up to {expected}, the number of learned rows; found {represented}")
    n_waiting = _check_waiting(state, parameters.window, tally, n_labels)
    _check_rows(state, "weights", (tally.nodes, n_features), sparse_nodes, _LARGEST_MEAN)
    n_recent = parameters.window if tally.learned else n_waiting
    _check_rows(state, "recent", (n_recent, n_features), sparse_nodes, LARGEST_VALUE)
    _check_label_counts(state, tally, n_labels)
    if parameters.max_nodes is not None:
        _check_reservoir(state, tally, n_labels, complete)
    if bayes:
        _check_counters(state, tally, n_labels, parameters.n_neighbors)
    else:
        _check_shape(state, "decision.totals", (n_labels + 1,))
    for name in _BEYOND_FLOATS & state.keys():
        _require(np.isfinite(state[name]).all(), name, "holds numbers that are not finite")
    if parameters.vigilance is None:
        _check_shape(state, "vigilance", (1,))
        found = 0.01 <= state["vigilance"][0] < 1 if tally.learned else state["vigilance"][0] == -1
        _require(found, "vigilance", "must be from 0.01 to below 1, and -1 before the first window is full")
    if "unlabelled" in state:
        _check_unlabelled(state, tally)
    if parameters.similarity == "learned":
        _check_similarity(state, tally)
    if parameters.search == "cells":
        n_cells = len(state["cells.centres"])
        _check_shape(state, "cells.centres", (n_cells, n_features))
        _check_shape(state, "cells.nodes", (tally.nodes if n_cells else 0,))
        in_cells = (state["cells.nodes"] >= 0) & (state["cells.nodes"] < n_cells)
        _require(in_cells.all(), "cells.nodes", f"must hold the index of one of {n_cells} cells for each node")
    if parameters.decision == "mixed":
        _check_mixture(state, tally)
    most = n_features * tally.learned if parameters.attributes == "clustered" else 0
    rows = (state[name] if name in state else state[f"{name}.data"] for name in ("weights", "recent"))
    incomplete = bool(parameters.categorical_features) or any(bool(np.isnan(values).any()) for values in rows)
    _check_groups(state, most, incomplete)
    numbered = all(0 <= i < n_features for i in parameters.categorical_features)
    _require(numbered, "categorical_features", f"must be from 0 to {n_features - 1}")


def require_countable(n_rows: int, parameters: Parameters) -> None:
    """Raise ValueError if a model would have more rows than `check_state` accepts."""
    most = _most_rows(parameters)
    if n_rows >= most:
        raise ValueError(f"the model would have {n_rows:,} rows, more than can be counted exactly ({most - 1:,})")


def _most_rows(parameters: Parameters) -> int:
    published = parameters.decision == "bayes" and parameters.similarity == "correntropy"
    return MOST_ROWS if published else MOST_ROWS_OF_OUR_RULE


def check_one_label_each(state: State) -> None:
    """Raise ValueError unless every row of a checked state has exactly one label."""
    _require((np.diff(state["waiting.indptr"]) == 1).all(), "waiting", "must have exactly one class per row")
    owners = np.repeat(np.arange(len(state["counts"])), np.diff(state["label_counts.indptr"]))
    totals = np.bincount(owners, weights=state["label_counts.data"], minlength=len(state["counts"]))
    _require((totals == state["counts"]).all(), "label_counts", "must give exactly one class to each row")


def _check_tally(state: State, bayes: bool, most_rows: int) -> _Tally:
    numbers = state["tally"]
    _require(len(numbers) == 4 and (numbers >= 0).all(), "tally", "must hold four counts of at least 0")
    tally = _Tally(*map(int, numbers))
    _require(tally.learned < most_rows, "tally", "has more rows than can be counted exactly")
    updates = max(tally.learned - 1, 0)  # the first row changes no counter
    _require((tally.nodes > 0) == (tally.learned > 0), "tally", "must have nodes if and only if rows were learned")
    if not bayes:
        _require(tally.voted == tally.voted_alone == 0, "tally", "records votes, which only Bayes' rule uses")
        return tally
    found = tally.voted + tally.voted_alone
    _require(found == updates, "tally", f"must record {updates} counter updates; found {found}")
    # The creation of each node but the first updates the counters with several voters.
    _require(tally.voted >= tally.nodes - 1, "tally", "must record a vote for each node but the first")
    _require(tally.voted == 0 or tally.nodes > 1, "tally", "records votes among several nodes, but has one node")
    return tally


def _check_waiting(state: State, window: int, tally: _Tally, n_labels: int) -> int:
    """Check the rows that wait for the first window; return their number."""
    indptr = state["waiting.indptr"]
    _check_lists(indptr, state["waiting.indices"], "waiting", n_labels)
    n_waiting = len(indptr) - 1
    most = window - 1 if tally.learned == 0 else 0
    _require(n_waiting <= most, "waiting", f"must have at most {most} rows; found {n_waiting}")
    too_few = f"counts {tally.learned} learned rows, fewer than the first window of {window}"
    _require(tally.learned == 0 or tally.learned >= window, "tally", too_few)
    return n_waiting


def _check_label_counts(state: State, tally: _Tally, n_labels: int) -> None:
    _check_csr(state, "label_counts", tally.nodes, n_labels)
    indptr, counted = state["label_counts.indptr"], state["label_counts.data"]
    most = np.repeat(state["counts"], np.diff(indptr))
    in_range = (counted >= 1) & (counted <= most)
    _require(in_range.all(), "label_counts", "must be from 1 to the number of the node's rows")
    _require((counted == np.floor(counted)).all(), "label_counts", "must hold whole numbers")


def _has_all_nodes(state: State, tally: _Tally, max_nodes: int) -> bool:
    """Check the numbers of nodes and candidates; return whether every candidate is a node."""
    _require(tally.nodes <= max_nodes, "tally", f"has {tally.nodes} nodes, more than max_nodes={max_nodes}")
    _check_shape(state, "reservoir.tally", (2,))
    candidates, made = map(int, state["reservoir.tally"])
    ascending = tally.nodes <= made <= candidates <= tally.learned
    _require(ascending, "reservoir.tally", "must be between the numbers of nodes and of learned rows")
    return candidates == tally.nodes


def _check_reservoir(state: State, tally: _Tally, n_labels: int, complete: bool) -> None:
    """Check the label totals, which equal the nodes' label counts until a row is dropped."""
    _check_shape(state, "reservoir.births", (tally.nodes,))
    _check_shape(state, "reservoir.totals", (n_labels,))
    totals, at_nodes = state["reservoir.totals"], _label_totals(state, n_labels)
    in_range = (totals >= at_nodes) & (totals <= tally.learned)
    _require(in_range.all(), "reservoir.totals", "must be from the nodes' label counts to the number of learned rows")
    if complete:
        _require((totals == at_nodes).all(), "reservoir.totals", "must equal the nodes' label counts")


def _label_totals(state: State, n_labels: int) -> NDArray[np.float64]:
    totals = np.bincount(state["label_counts.indices"], weights=state["label_counts.data"], minlength=n_labels)
    return totals.astype(np.float64)


def _check_unlabelled(state: State, tally: _Tally) -> None:
    """Check each node's number of rows without a label; its other rows have at least one."""
    _check_shape(state, "unlabelled", (tally.nodes,))
    labelled = state["counts"] - state["unlabelled"]
    in_range = (state["unlabelled"] >= 0) & (labelled >= 0)
    _require(in_range.all(), "unlabelled", "must be from 0 to the number of the node's rows")
    indptr, counted = state["label_counts.indptr"], state["label_counts.data"]
    owners = np.repeat(np.arange(tally.nodes), np.diff(indptr))
    _require((counted <= labelled[owners]).all(), "unlabelled", "counts rows that have a label")
    totals = np.bincount(owners, weights=counted, minlength=tally.nodes)
    _require((totals >= labelled).all(), "unlabelled", "must count all rows without a label")


def _check_similarity(state: State, tally: _Tally) -> None:
    """Check whether there is a similarity and when the next is due; kernels check the rest."""
    _check_shape(state, "similarity.tally", (5,))
    due, known = int(state["similarity.tally"][0]), int(state["similarity.tally"][4])
    _require(known == (tally.nodes > 0), "similarity.tally", "must have a similarity if and only if there are nodes")
    _require(set(state["similarity.tally"][2:4].tolist()) <= {0, 1}, "similarity.tally", "must have 0 or 1 as flags")
    for name in _SIMILARITY_ARRAYS.keys() - {"similarity.tally"}:
        _require(known or state[name].size == 0, name, "must be empty while there are no nodes")
    latest = tally.learned + max(1, tally.learned // 4)
    _require(tally.learned < due <= latest, "similarity.tally", f"must schedule the next similarity by row {latest}")


def _check_mixture(state: State, tally: _Tally) -> None:
    """Check the shapes of the linear models; compiled code checks the values of the weights."""
    n_features, n_models = len(state["linear.features"]), len(state["decision.arrived"]) + 2
    for name in ("linear.kinds", "linear.values"):
        _check_shape(state, name, (n_features,))
    for name in ("linear.weights", "linear.squares"):
        _check_shape(state, name, (n_features, n_models))
    trained = tally.learned >= FIRST_STEP
    _require(n_features == 0 or trained, "linear.features", f"must be empty before row {FIRST_STEP}")
    empty = state["similarity.middles"].size == 0
    _require(tally.nodes > 0 or empty, "similarity.middles", "must be empty while there are no nodes")


def _check_counters(state: State, tally: _Tally, n_labels: int, n_neighbors: int) -> None:
    """Check the bin counts: every update counts each label once, as present or absent."""
    updates = tally.voted + tally.voted_alone
    for name in ("with", "without"):
        _check_shape(state, name, (n_labels, n_neighbors + 1))
        _require((state[name] >= 0).all(), name, "holds a negative count")
        rough = state[name].sum(axis=1, dtype=np.float64)  # an int64 sum could wrap around
        _require((rough <= 2.0 * MOST_ROWS).all(), name, "counts more than the learned rows")
    in_bins = state["with"] + state["without"]
    _require((in_bins.sum(axis=1) == updates).all(), "with", f"and 'without' must add up to {updates} for each label")
    _require((in_bins[:, -1] >= tally.voted_alone).all(), "with", "and 'without' must count the votes of a single node")
    # A row has at most as many voters as there are nodes; with `max_nodes`, a node being replaced also votes.
    most = tally.nodes + ("reservoir.totals" in state)
    unused = in_bins[:, most + 1 : n_neighbors]
    _require(not unused.any(), "with", "and 'without' count votes of more nodes than exist")
    totals = state["reservoir.totals"] if "reservoir.totals" in state else _label_totals(state, n_labels)
    uncounted = totals - state["with"].sum(axis=1)
    _require(((uncounted == 0) | (uncounted == 1)).all(), "with", "must equal the labels' counts but for the first row")


def _check_groups(state: State, most: int, incomplete: bool) -> None:
    """Check the centres of MLCA-C's groups, and the number of means that each has learned.

    Other variants have no centres. MLCA-C may have none if rows have categories or missing values.
    """
    n = len(state["group_centres"])
    fits = (n > 0) == (most > 0) or (incomplete and n == 0)
    _require(fits, "group_centres", 'must exist if attributes="clustered", and only then')
    for name in ("group_counts", "group_bandwidths"):
        _check_shape(state, name, (n,))
    _check_values(state, "group_centres", _LARGEST_MEAN)
    _check_bandwidths(state, "group_bandwidths")
    _require((state["group_counts"] >= 1).all(), "group_counts", "must be at least 1 for each centre")
    _require(_total(state, "group_counts") <= most, "group_counts", "counts more than the learned rows")


def _check_bandwidths(state: State, name: str) -> None:
    lowest, highest = _range(state[name], _SMALLEST_BANDWIDTH)
    fits = lowest >= _SMALLEST_BANDWIDTH and highest <= _LARGEST_BANDWIDTH
    _require(fits, name, f"holds values outside {_SMALLEST_BANDWIDTH:g} to {_LARGEST_BANDWIDTH:g}")


def _check_rows(state: State, name: str, shape: tuple[int, int], sparse_rows: bool, largest: float) -> None:
    if sparse_rows:
        _check_csr(state, name, *shape)
        name += ".data"
        _require((state[name] != 0).all(), name, "stores zeros")
    else:
        _check_shape(state, name, shape)
    _check_values_or_missing(state, name, largest)


def _check_values(state: State, name: str, largest: float) -> None:
    lowest, highest = _range(state[name], 0.0)
    fits = -largest <= lowest and highest <= largest
    _require(fits, name, f"holds values that are not finite or beyond {largest:g}")


def _check_values_or_missing(state: State, name: str, largest: float) -> None:
    """Check that the values of rows are missing or within bounds."""
    values = state[name]
    lowest, highest = np.fmin.reduce(values, axis=None, initial=0.0), np.fmax.reduce(values, axis=None, initial=0.0)
    _require(-largest <= lowest and highest <= largest, name, f"holds values beyond {largest:g}")


def _range(values: NDArray[np.float64], within: float) -> tuple[float, float]:
    """Return the smallest and largest value (`within` if empty, NaN if any value is NaN)."""
    return float(values.min(initial=within)), float(values.max(initial=within))


def _check_csr(state: State, name: str, n_rows: int, n_columns: int) -> None:
    indptr, indices, data = (state[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    _require(len(indptr) == n_rows + 1, name, f"has {len(indptr) - 1} rows instead of {n_rows}")
    _require(len(indices) == len(data), name, "has indices and data of different lengths")
    _check_lists(indptr, indices, name, n_columns)


def _check_lists(indptr: NDArray[np.int64], indices: NDArray[np.int32], name: str, n_columns: int) -> None:
    """Check the row bounds of a CSR matrix, and that column indices ascend in each row."""
    fits = len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(indices) and (indptr[1:] >= indptr[:-1]).all()
    _require(fits, name, "has row bounds that do not ascend from 0 to the number of entries")
    _require(((indices >= 0) & (indices < n_columns)).all(), name, "has an index out of range")
    first = np.zeros(len(indices) + 1, np.bool_)
    first[indptr[:-1]] = True
    _require((first[1:-1] | (indices[1:] > indices[:-1])).all(), name, "has indices out of order")


def _check_shape(state: State, name: str, shape: tuple[int, ...]) -> None:
    _require(state[name].shape == shape, name, f"has shape {state[name].shape} instead of {shape}")


def _total(state: State, name: str) -> int:
    """Return the sum of counts; raise ValueError if it is too large to be exact."""
    _require(state[name].sum(dtype=np.float64) <= 2.0 * MOST_ROWS, name, "counts more than the learned rows")
    return int(state[name].sum())


def _require(condition: Any, name: str, fault: str) -> None:
    if not condition:
        raise ValueError(f"array {name!r} {fault}; the model is damaged: restore it from a backup")


def capture(learner: Learner) -> State:
    """Return the full state of a learner as contiguous arrays with the schema's dtypes."""
    state = learner.state()
    kinds = state_schema(learner.parameters, learner.sparse_nodes)
    return {name: np.ascontiguousarray(array, kinds[name][0]) for name, array in state.items()}


def restore(
    parameters: Parameters,
    n_features: int,
    n_labels: int,
    sparse_nodes: bool,
    state: State,
    cell_limits: CellLimits = CELL_LIMITS,
) -> Learner:
    """Return a learner that resumes training exactly like the captured one.

    Raises
    ------
    ValueError
        If the arrays are inconsistent or could not have come from a learner. Compiled code does not check its indices,
        so it must not receive unchecked arrays.
    """
    check_state(parameters, n_features, n_labels, sparse_nodes, state)
    arrays = dict(state)
    arrays["label_counts.data"] = state["label_counts.data"].astype(np.int64)
    return Learner.from_state(parameters, n_features, n_labels, sparse_nodes, arrays, cell_limits=cell_limits)

"""Interface of the compiled modules, the same for all processor levels; `mlca.kernels` loads one of them.

The sources are in src/kernels. Arrays must be C-contiguous and of exactly the declared type. Shapes and indices are
checked before a loop runs; loops release the interpreter lock.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

sources: str
"""Hash of the C++ sources from which the module was compiled."""

def processor_has(level: str) -> bool: ...
def all_within(rows: NDArray[np.float64], limit: float) -> bool:
    """Return whether all magnitudes are at most `limit` (0 or more) and no value is missing."""

def fill_row(x: dict[Any, Any], names: dict[Any, Any], row: NDArray[np.float64], limit: float) -> bool:
    """Copy the values of `x` into `row`, of shape (1, n); return whether all were copied.

    `x` must have the keys of `names` in the same order, and its values must be plain numbers within `limit`.
    """

# For `mlca bench`

def sum_exactly(x: NDArray[np.float64], nodes: NDArray[np.float64], r: float, repeats: int) -> int: ...

# The learner

_Answers: TypeAlias = tuple[
    NDArray[np.float64],
    NDArray[np.float64] | None,
    NDArray[np.int32] | None,
    NDArray[np.float64] | None,
    NDArray[np.float64] | None,
]

RANKS_PER_KNOT: int
"""Difference in rank between two adjacent knots of a feature."""

def constant_bandwidth(n_rows: int, n_features: int) -> float:
    """Return the bandwidth of a feature that is constant in a window."""

RANK_OF_BINARY_ONE: int
"""Rank of the value 1 if all values of all nodes are 0 or 1; the value 0 then has rank 0."""
HALF_LIVES: tuple[float, ...]
"""Half-lives of the counts of recent labels, in rows."""

_Rows: TypeAlias = NDArray[np.float64] | tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]
"""A dense array, or `indptr`, `indices` and `data` of a CSR matrix; NaN where a value is missing."""

class Learner:
    """The compiled learner.

    `settings` come from `mlca.learner.parameters`; `sparse` selects whether rows are stored and returned in sparse
    form; `rounds` maps the index of a round of feature grouping to the order of the features in it.
    """

    def __init__(self, settings: dict[str, Any], sparse: bool, rounds: Callable[[int], NDArray[np.int64]]) -> None: ...
    def restore(self, n_labels: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a state from its arrays; the learner must be new."""

    @property
    def n_labels(self) -> int: ...
    @property
    def n_seen(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def waits(self) -> bool: ...
    @property
    def vigilance(self) -> float: ...
    def learn(
        self, rows: _Rows, bounds: NDArray[np.int64], labels: NDArray[np.int32], n_labels: int, n_jobs: int
    ) -> None: ...
    def predict(self, rows: _Rows, n_labels: int, n_jobs: int, probabilities: bool, novelty: bool) -> _Answers:
        """Return the fields of `mlca.learner.core.Answers`; a field not requested or not available is None."""

    def explain(self, row: NDArray[np.float64]) -> dict[str, Any]: ...
    def state(self, of_nodes: str = "all") -> dict[str, NDArray[Any]]: ...
    def settled(self) -> Learner: ...
    def copy(self) -> Learner: ...
    def absorb(self, other: Learner, columns: NDArray[np.int32], n_labels: int, append: bool) -> None: ...

# Compared methods: ML-kNN

def nearest_dense(
    rough: NDArray[np.float64],
    margin: NDArray[np.float64],
    queries: NDArray[np.float64],
    rows: NDArray[np.float64],
    k: int,
    left_out: int,
) -> NDArray[np.int64]: ...
@overload
def nearest_sparse(
    rough: NDArray[np.float64],
    margin: NDArray[np.float64],
    query_bounds: NDArray[np.int32],
    query_columns: NDArray[np.int32],
    query_values: NDArray[np.float64],
    row_bounds: NDArray[np.int32],
    row_columns: NDArray[np.int32],
    row_values: NDArray[np.float64],
    k: int,
    left_out: int,
) -> NDArray[np.int64]: ...
@overload
def nearest_sparse(
    rough: NDArray[np.float64],
    margin: NDArray[np.float64],
    query_bounds: NDArray[np.int64],
    query_columns: NDArray[np.int64],
    query_values: NDArray[np.float64],
    row_bounds: NDArray[np.int64],
    row_columns: NDArray[np.int64],
    row_values: NDArray[np.float64],
    k: int,
    left_out: int,
) -> NDArray[np.int64]: ...
def count_labels(
    neighbours: NDArray[np.int64], bounds: NDArray[np.int64], labels: NDArray[np.int32], n_labels: int
) -> NDArray[np.int64]: ...

# MLSA-kNN

def scaled_distances(
    x: NDArray[np.float64],
    rows: NDArray[np.float64],
    slots: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def count_votes(
    by_distance: NDArray[np.int64],
    k: NDArray[np.int64],
    slots: NDArray[np.int64],
    mask_slots: NDArray[np.int64],
    indicator: NDArray[np.uint8],
    masks: NDArray[np.uint8],
) -> NDArray[np.float64]: ...
def judge_voters(
    by_distance: NDArray[np.int64],
    k: NDArray[np.int64],
    truth: NDArray[np.uint8],
    errors: NDArray[np.int64],
    slots: NDArray[np.int64],
    mask_slots: NDArray[np.int64],
    indicator: NDArray[np.uint8],
    masks: NDArray[np.uint8],
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]: ...
def test_rows(
    start: int,
    first: int,
    size: int,
    k: NDArray[np.int64],
    from_scratch: bool,
    distances: NDArray[np.float64],
    slots: NDArray[np.int64],
    mask_slots: NDArray[np.int64],
    indicator: NDArray[np.uint8],
    masks: NDArray[np.uint8],
) -> NDArray[np.int64]: ...

# MCIC

def distances_to_centers(
    x: NDArray[np.float64],
    clusters: NDArray[np.int64],
    drift: NDArray[np.float64],
    sums: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def radius_with(
    x: NDArray[np.float64],
    fading: float,
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
    weight: float,
) -> float: ...

# MuENL

def ranking_loss(
    label: int,
    label_scores: NDArray[np.float64],
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    importance: NDArray[np.float64],
    lambda1: float,
) -> float: ...
def ranking_pull(
    label: int,
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    importance: NDArray[np.float64],
    share: float,
) -> NDArray[np.float64]: ...
def farthest(points: NDArray[np.float64], centre: NDArray[np.float64]) -> float: ...
def two_means(
    points: NDArray[np.float64], start: int, other_start: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], bool]: ...
def add_votes(
    rows: NDArray[np.float64],
    scores: NDArray[np.float64],
    child: NDArray[np.int64],
    columns: NDArray[np.int64],
    means: NDArray[np.float64],
    centres: NDArray[np.float64],
    radii: NDArray[np.float64],
    ratio: float,
    votes: NDArray[np.float64],
) -> None: ...

# mlODM

def visit_rows(
    order: NDArray[np.int64],
    kernel: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    costs: NDArray[np.float64],
    starts: NDArray[np.int64],
    theta: float,
    mu: float,
    tol: float,
    weights: NDArray[np.float64],
    dual: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> float: ...
def objectives(
    relevant: NDArray[np.bool_],
    costs: NDArray[np.float64],
    starts: NDArray[np.int64],
    theta: float,
    mu: float,
    weights: NDArray[np.float64],
    dual: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> tuple[float, float]: ...

# Internal parts of the learner, exposed to the tests

class _BitmapCounts:
    def enter(self, features: NDArray[np.int32]) -> None: ...
    def withdraw(self) -> None: ...
    def count(self, features: NDArray[np.int32], n_nodes: int) -> NDArray[np.int32]: ...

class probes:  # noqa: N801 - this is a submodule
    UNIT: float
    SCALE: float
    POWER_COEFFICIENTS: list[float]
    NEAR_COEFFICIENTS: list[float]
    NEAR_ERROR: float
    LONGEST_COUNTED: int
    TILE: int
    FIT_ERROR: float
    ROOT_FIT_ERROR: float
    BitmapCounts: type[_BitmapCounts]
    @staticmethod
    def fail_allocation(after: int) -> None: ...
    @staticmethod
    def power_of_half(w: float) -> float: ...
    @staticmethod
    def kernel(difference: float, r: float) -> float: ...
    @staticmethod
    def dissimilarity(difference: float, r: float) -> int: ...
    @staticmethod
    def group_root(total: int, size: int) -> int: ...
    @staticmethod
    def common_sum(x: NDArray[np.float64], y: NDArray[np.float64], r: float) -> int: ...
    @staticmethod
    def individual_sum(x: NDArray[np.float64], y: NDArray[np.float64], r: NDArray[np.float64]) -> int: ...
    @staticmethod
    def median(values: NDArray[np.float64]) -> float: ...
    @staticmethod
    def partition(values: NDArray[np.float64], target: int) -> None: ...
    @staticmethod
    def running_medians(values: NDArray[np.float64]) -> NDArray[np.float64]: ...
    @staticmethod
    def window_around(position: int, filled: int, size: int) -> tuple[int, int]: ...
    @staticmethod
    def common_bandwidths_dense(
        rows: NDArray[np.float64], size: int, positions: NDArray[np.int64]
    ) -> NDArray[np.float64]: ...
    @staticmethod
    def common_bandwidths_sparse(
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float64],
        d: int,
        size: int,
        positions: NDArray[np.int64],
    ) -> NDArray[np.float64]: ...
    @staticmethod
    def bandwidths_dense(rows: NDArray[np.float64], size: int, position: int) -> NDArray[np.float64]: ...
    @staticmethod
    def bandwidths_sparse(
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float64],
        d: int,
        size: int,
        position: int,
    ) -> NDArray[np.float64]: ...
    @staticmethod
    def rough_kernel_at(difference: float, r: float) -> float: ...
    @staticmethod
    def rough_root_kernel_at(difference: float, r: float) -> float: ...
    @staticmethod
    def rough_error(fit_error: float, largest_scaled: float, n_added: int) -> float: ...
    @staticmethod
    def rough_root_sums(
        x: NDArray[np.float32], tile: NDArray[np.float32], factors: NDArray[np.float32]
    ) -> NDArray[np.float32]: ...

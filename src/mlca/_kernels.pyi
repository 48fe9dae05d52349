"""What the compiled modules of all levels offer; `mlca.kernels` chooses one. The sources are in src/kernels.

Arrays must be C-contiguous and of exactly the type that stands here. Shapes and indices are checked before a loop
runs; it runs without the interpreter's lock.
"""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

sources: str
"""A hash of the C++ sources that the module was made of."""

def processor_has(level: str) -> bool: ...

# The learner

class Settings:
    def __init__(
        self,
        *,
        attributes: str,
        rule: str,
        vote: str,
        n_features: int,
        n_neighbors: int,
        window: int,
        vigilance: float,
        smoothing: float,
        screen_from: int,
    ) -> None: ...

class Learner:
    def __init__(self, settings: Settings, sparse: bool, rounds: object) -> None: ...
    @staticmethod
    def restore(
        settings: Settings, sparse: bool, rounds: object, n_labels: int, state: dict[str, NDArray[Any]], /
    ) -> Learner: ...
    def learn_dense(
        self,
        rows: NDArray[np.float64],
        bounds: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_labels: int,
        n_jobs: int,
        /,
    ) -> None: ...
    def learn_sparse(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float64],
        bounds: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_labels: int,
        n_jobs: int,
        /,
    ) -> None: ...
    def predict_dense(self, rows: NDArray[np.float64], n_labels: int, n_jobs: int, /) -> NDArray[np.float64]: ...
    def predict_sparse(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float64],
        n_labels: int,
        n_jobs: int,
        /,
    ) -> NDArray[np.float64]: ...
    def explain_dense(self, row: NDArray[np.float64], /) -> dict[str, NDArray[Any]]: ...
    def explain_sparse(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float64], /
    ) -> dict[str, NDArray[Any]]: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def settled(self) -> Learner: ...
    def copy(self) -> Learner: ...
    def absorb(self, other: Learner, columns: NDArray[np.int32], n_labels: int, /) -> None: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_seen(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def waits(self) -> bool: ...

def fail_allocation(after: int, /) -> None: ...

# The benchmark's probes

def sum_exactly(x: NDArray[np.float64], nodes: NDArray[np.float64], r: float, repeats: int) -> int: ...
def sum_roughly(x: NDArray[np.float32], tile: NDArray[np.float32], r: float, repeats: int) -> NDArray[np.float32]: ...

# The peers: ML-kNN

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
    anew: bool,
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
    own: NDArray[np.float64],
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

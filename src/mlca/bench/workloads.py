"""The workloads of the benchmarks: learning and predicting on data of typical shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca import MLCA
from mlca.bench.baselines import PlainNumPy, brute_force, river_models, river_rows
from mlca.bench.probes import PeakMemory, best_time, single_time
from mlca.bench.results import Line
from mlca.bench.samples import Sample, generated
from mlca.datasets import random_rbf
from mlca.options import Decision, Search

NUMPY_ROWS = 3000
SINGLE_ROWS = 200
TENTHS = 10
_NO_LABELS = np.empty(0, np.int32)

# The name of the default model; all other names of algorithms are those of the paper's variants.
RULE = "MLCA()"
# The default decision, and the decision with which it is compared.
DECISIONS: dict[str, Decision] = {RULE: "mixed", 'MLCA(decision="calibrated")': "calibrated"}


def model_of(algorithm: str = "MLCA", **parameters: Any) -> MLCA:
    """Return a model with default parameters, or one of the paper's algorithms."""
    return MLCA(**parameters) if algorithm == RULE else MLCA.published(algorithm, **parameters)


def learning(data: Sample, algorithm: str = "MLCA", n_jobs: int = 1, repeats: int = 7, **parameters: Any) -> Line:
    """Measure how fast a model learns a dataset from scratch, in the best of several runs."""
    model = model_of(algorithm, n_jobs=n_jobs, **parameters)
    model.fit(data.X[:200], data.Y[:200])
    work = partial(model.fit, data.X, data.Y)
    with PeakMemory() as memory:
        seconds = single_time(work)
    for _ in range(repeats - 1):  # without measuring memory, which slows a run down
        seconds = min(seconds, single_time(work))
    n, d = data.X.shape
    pairs, note = _pairs(model, data) * d, f"{model.n_nodes_:,} nodes"
    return Line(_title("learn", data), _who(algorithm, n_jobs), n, seconds, pairs, note, memory.growth)


def predicting(data: Sample, algorithm: str = "MLCA", n_jobs: int = 1, n_rows: int = 3000, **parameters: Any) -> Line:
    """Measure how fast a model predicts the first rows of a dataset that it has learned."""
    model = model_of(algorithm, n_jobs=n_jobs, **parameters).fit(data.X, data.Y)
    rows = data.X[:n_rows]
    seconds = best_time(lambda: model.predict_proba(rows), 3)
    pairs = float(rows.shape[0]) * model.n_nodes_ * rows.shape[1]
    return Line(_title("predict", data), _who(algorithm, n_jobs), rows.shape[0], seconds, pairs)


def one_at_a_time(data: Sample, n_known: int = 1000) -> list[Line]:
    """Measure how fast single rows are learned and predicted, as in a service."""
    X, Y = data.X, data.Y.toarray()
    parts = [(X[i : i + 1], Y[i : i + 1]) for i in range(len(X))]
    n = 500

    more, their = X[n_known : n_known + n], Y[n_known : n_known + n]

    def known() -> MLCA:
        return model_of().fit(X[:n_known], Y[:n_known])

    def learn_singly(model: MLCA) -> None:
        for x, y in parts[n_known : n_known + n]:
            model.partial_fit(x, y)

    def learn_together(model: MLCA) -> None:
        model.partial_fit(more, their)

    single, loop = (min(single_time(partial(way, known())) for _ in range(3)) for way in (learn_singly, learn_together))
    model = known()
    predict = best_time(lambda: [model.predict(x) for x, _ in parts[:n]], 3)
    d = X.shape[1]
    nodes = float(n_known + n / 2)
    note = f"from {n_known:,} nodes on"
    return [
        Line(f"partial_fit, one row per call, {data.name}", "mlca", n, single, n * nodes * d, note),
        Line(f"the same rows in one call, {data.name}", "mlca, compiled loop", n, loop, n * nodes * d, note),
        Line(
            f"predict, one row per call, {data.name}",
            "mlca",
            n,
            predict,
            float(n) * n_known * d,
            f"{1e6 * predict / n:.0f} microseconds per row",
        ),
    ]


def predict_then_learn(data: Sample, n_known: int = 2000) -> Line:
    """Measure how fast the default model predicts and then learns each row, one per call."""
    X, Y = data.X, data.Y.toarray()
    rows = [(X[i : i + 1], Y[i : i + 1]) for i in range(n_known, len(X))]

    def work(model: MLCA) -> None:
        for x, y in rows:
            model.predict(x)
            model.partial_fit(x, y)

    seconds = min(single_time(partial(work, model_of(RULE).fit(X[:n_known], Y[:n_known]))) for _ in range(3))
    nodes = float(n_known + len(rows) / 2)
    title, note = f"test then train, one row per call, {data.name}", f"from {n_known:,} nodes on"
    return Line(title, "MLCA()", len(rows), seconds, 2 * len(rows) * nodes * X.shape[1], note)


def decisions(data: Sample, n_rows: int = 3000, repeats: int = 3) -> Iterator[tuple[Line, Line]]:
    """Compare the speed of the default decision and of the calibrated one.

    Yields pairs of measurements. Times are CPU times, the smallest of several alternating runs; wall-clock time would
    include the load of other processes.
    """
    models = [MLCA(decision=decision).fit(data.X[:200], data.Y[:200]) for decision in DECISIONS.values()]
    learn = [partial(model.fit, data.X, data.Y) for model in models]
    predict = [partial(model.predict, data.X[:n_rows]) for model in models]
    for verb, works, n in (("learn", learn, data.X.shape[0]), ("predict", predict, min(n_rows, data.X.shape[0]))):
        yield _by_turns(_title(verb, data), works, n, repeats)


def decisions_row_by_row(data: Sample, n_known: int = 2000) -> tuple[Line, Line]:
    """Compare the CPU time of the default decision and of the calibrated one on single rows."""
    X, Y = data.X, data.Y.toarray()
    rows = [(X[i : i + 1], Y[i : i + 1]) for i in range(n_known, len(X))]

    def work(known: MLCA) -> None:
        model = deepcopy(known)
        for x, y in rows:
            model.predict(x)
            model.partial_fit(x, y)

    works = [partial(work, MLCA(decision=one).fit(X[:n_known], Y[:n_known])) for one in DECISIONS.values()]
    return _by_turns(f"test then train, one row per call, {data.name}", works, len(rows), 5)


def _by_turns(title: str, works: Sequence[Callable[[], Any]], n_rows: int, repeats: int) -> tuple[Line, Line]:
    """Run two workloads alternately; return the smallest CPU time of each as a measurement."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for seconds, work in zip(taken, works, strict=True):
            started = process_time()
            work()
            seconds.append(process_time() - started)
    ours, calibrated = (
        Line(title, f"{who}, CPU time", n_rows, min(seconds)) for who, seconds in zip(DECISIONS, taken, strict=True)
    )
    return ours, calibrated


def plain_numpy(data: Sample, **parameters: Any) -> Line:
    """Measure plain NumPy on the first rows; extrapolate to all rows, as time grows with n^2."""
    X, Y = data.X[:NUMPY_ROWS], data.Y[:NUMPY_ROWS].toarray()
    rival = PlainNumPy(**parameters)
    rival.fit(X[:100], Y[:100])
    seconds = single_time(lambda: rival.fit(X, Y))
    n, part = data.X.shape[0], len(X)
    whole = seconds * (n / part) ** 2
    pairs = rival.n_nodes / 2 * part * X.shape[1] * (n / part) ** 2
    note = "" if part == n else f"extrapolated from {part:,} rows"
    return Line(_title("learn", data), "plain NumPy", n, whole, pairs, note)


def neighbours(data: Sample, metric: str, n_jobs: int = 1, n_rows: int = 3000) -> Line:
    """Measure scikit-learn's search for nearest rows, for comparison with prediction."""
    search = brute_force(metric, data.X, n_jobs)
    rows = data.X[:n_rows]
    seconds = best_time(lambda: search.kneighbors(rows, return_distance=False), 2)
    pairs = float(len(rows)) * data.X.shape[0] * data.X.shape[1]
    return Line(_title("predict", data), f"scikit-learn {metric}, {n_jobs} job", len(rows), seconds, pairs)


def river_stream(data: Sample, n_known: int = 500, n_rows: int = 200) -> list[Line]:
    """Measure how fast River's models and `mlca.river` learn and predict row by row."""
    rows = river_rows(data.X[: n_known + n_rows], data.Y[: n_known + n_rows].toarray())
    lines = []
    for who, model in river_models().items():
        for x, y in rows[:n_known]:
            model.learn_one(x, y)

        def learn(model: Any = model) -> None:
            for x, y in rows[n_known:]:
                model.learn_one(x, y)

        def predict(model: Any = model) -> None:
            for x, _ in rows[n_known:]:
                model.predict_one(x)

        for verb, work in (("learn_one", learn), ("predict_one", predict)):
            lines.append(Line(f"{verb}, {data.name}, after {n_known} rows", who, n_rows, single_time(work)))
    return lines


def growth_with_rows(n_features: int = 100) -> tuple[Line, float, float]:
    """Measure learning 1,000 to 8,000 rows, and the growth exponents of time and memory."""
    sizes, seconds, held = [1000, 2000, 4000, 8000], [], []
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (sizes[-1], n_features))
    Y = (rng.random((sizes[-1], 5)) < 0.3).astype(np.uint8)
    for n in sizes:
        model = model_of()
        seconds.append(best_time(partial(model.fit, X[:n], Y[:n]), 2))
        held.append(float(model.prototypes_.nbytes))
    time_exponent, memory_exponent = (
        float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) for values in (seconds, held)
    )
    n = sizes[-1]
    note = f"time grows as n^{time_exponent:.2f}, nodes' memory as n^{memory_exponent:.2f}"
    line = Line("learn, n doubled three times", "mlca", n, seconds[-1], n * n / 2 * n_features, note)
    return line, time_exponent, memory_exponent


def eurlex() -> Line:
    """Measure learning generated sparse rows that have the shape of EURLex-4K."""
    data = generated("eurlex-4k")
    model = model_of()
    model.fit(data.X[:200], data.Y[:200])
    with PeakMemory() as memory:
        seconds = single_time(lambda: model.fit(data.X, data.Y))
    pairs, note = float(model.n_nodes_) / 2 * data.X.nnz, f"{model.n_nodes_:,} nodes; pairs are non-zeros"
    return Line(_title("learn", data), "mlca, 1 thread", data.X.shape[0], seconds, pairs, note, memory.growth)


def million(n: int = 1_000_000, n_features: int = 32) -> tuple[Line, float]:
    """Measure learning a million rows, and the ratio of peak memory to the size of the data."""
    X, Y = clusters(n, n_features)
    model = model_of(n_jobs=2)
    with PeakMemory() as memory:
        seconds = single_time(lambda: model.fit(X, Y))
    pairs, note = float(n) * model.n_nodes_ / 2 * n_features, f"{model.n_nodes_:,} nodes"
    line = Line(f"learn ({n:,} x {n_features}, generated)", "mlca, 2 threads", n, seconds, pairs, note, memory.growth)
    return line, (memory.growth or 0) / X.nbytes


def learned_similarity(n: int = 1_000_000, n_features: int = 32, search: Search = "exact") -> tuple[Line, float]:
    """Measure learning a million rows, and the share of the time for similarity updates.

    The default model recomputes the similarity whenever the stream has grown by a quarter. The time of an update is the
    time of the row that causes it, minus the time of the next row.
    """
    X, Y = clusters(n, n_features)
    model, seconds, recomputing, start = model_of(RULE, n_jobs=2, search=search), 0.0, 0.0, 0
    for due in _recomputations(n):
        bounds = (start, due - 1, due, min(due + 1, n))
        parts = [partial(model.partial_fit, X[a:b], Y[a:b]) for a, b in pairwise(bounds) if a < b]
        taken = [single_time(part) for part in parts]
        seconds += sum(taken)
        if len(taken) == 3:
            recomputing += max(0.0, taken[1] - taken[2])
        start = bounds[-1]
    if start < n:
        seconds += single_time(partial(model.partial_fit, X[start:], Y[start:]))
    pairs, share = float(n) * model.n_nodes_ / 2 * n_features, recomputing / seconds
    note = f"{model.n_nodes_:,} nodes; {share:.2%} of the time recomputes the similarity"
    who = f"MLCA(search={search!r}), 2 threads"
    return Line(f"learn ({n:,} x {n_features}, generated)", who, n, seconds, pairs, note), share


class AtNodes(NamedTuple):
    """The cost of a model with a given number of nodes, in seconds of processor time."""

    n_nodes: int
    learning: float  # per row
    predicting: float  # per row, one row per call
    rebuilding: float  # of similarity and cells, for which learning has to wait


def at_nodes(n: int, search: Search, n_features: int = 32, block: int = 10_000, n_rows: int = 2000) -> AtNodes:
    """Return the cost of a model with about n nodes, appended from models of blocks of rows."""
    X, Y = clusters(n + n_rows, n_features)
    n_labels, block = Y.shape[1], min(block, n)
    model = model_of(RULE, search=search).fit(X[:block], Y[:block])
    for low in range(block, n, block):
        rows = slice(low, min(low + block, n))
        part = model_of(RULE, search=search).fit(X[rows], Y[rows])
        model._learner.absorb(part._learner, np.arange(n_labels, dtype=np.int32), n_labels, append=True)
    # Appending nodes leaves the similarity outdated; a call without rows recomputes it.
    rebuilding = _processor_time(lambda: model._learner.learn(X[:0], np.zeros(1, np.int64), _NO_LABELS, n_labels))
    n_nodes, X, Y = model.n_nodes_, X[n:], Y[n:]
    singly = X[:SINGLE_ROWS]
    predicting = _processor_time(lambda: [model.predict(x[None, :]) for x in singly]) / len(singly)
    return AtNodes(n_nodes, _processor_time(lambda: model.partial_fit(X, Y)) / n_rows, predicting, rebuilding)


def _processor_time(work: Callable[[], Any]) -> float:
    started = process_time()
    work()
    return process_time() - started


@dataclass(frozen=True)
class Tenth:
    """Results for a tenth of a long stream: rows per second of CPU time, and peak memory."""

    number: int
    rows_per_second: float
    peak: int | None

    def __str__(self) -> str:
        memory = "" if self.peak is None else f", at most {self.peak / 2**20:,.0f} MiB"
        return f"tenth {self.number}: {self.rows_per_second:,.0f} rows/s{memory}"


def bounded(n: int, max_nodes: int, chunk: int) -> Iterator[Tenth]:
    """Learn a drifting generated stream with bounded memory; yield the result of each tenth.

    Rates are based on processor time, because wall-clock time would vary with other processes.
    """
    model = model_of(RULE, max_nodes=max_nodes)
    stream = random_rbf(n, chunk=chunk)
    for number in range(1, TENTHS + 1):
        seconds, n_rows = 0.0, 0
        with PeakMemory() as memory:
            for X, Y in islice(stream, n // chunk // TENTHS):
                started = process_time()
                model.partial_fit(X, Y)
                seconds += process_time() - started
                n_rows += len(X)
        yield Tenth(number, n_rows / seconds, memory.peak)


def _recomputations(n: int, first: int = 50) -> list[int]:
    """Return the row counts at which the learned similarity is recomputed."""
    rows = [first]
    while rows[-1] + rows[-1] // 4 <= n:
        rows.append(rows[-1] + rows[-1] // 4)
    return rows


def clusters(n: int, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return rows around 100 random centres, each with the labels of its centre."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 1, (100, n_features))
    cluster = rng.integers(len(centres), size=n)
    X = centres[cluster] + 0.5 * rng.normal(0, 1, (n, n_features))
    return X, (rng.random((100, 10)) < 0.2)[cluster]


def dense_path(data: Sample) -> Line:
    """Measure how fast a sparse dataset is learned when it is stored as dense rows."""
    dense = Sample(data.name + ", as dense rows", data.X.toarray(), data.Y, data.real)
    return learning(dense, repeats=1)


def _pairs(model: MLCA, data: Sample) -> float:
    """Return how many pairs of row and node are compared while a dataset is learned."""
    n = data.X.shape[0]
    if model.n_nodes_ > 0.9 * n:
        return float(n) * model.n_nodes_ / 2
    again, steps = MLCA(**model.get_params()), np.linspace(0, n, 51).astype(int)
    total = 0.0
    for low, high in pairwise(steps):
        before = again.n_nodes_ if low else 0
        again.partial_fit(data.X[low:high], data.Y[low:high])
        total += (before + again.n_nodes_) / 2 * (high - low)
    return total


def _title(verb: str, data: Sample) -> str:
    made = "" if data.real else ", generated"
    return f"{verb} {data.name} ({data.X.shape[0]:,} x {data.X.shape[1]:,}{made})"


def _who(algorithm: str, n_jobs: int) -> str:
    name = algorithm if algorithm == RULE else algorithm.lower()
    return f"{name}, {n_jobs} thread{'s' if n_jobs > 1 else ''}"

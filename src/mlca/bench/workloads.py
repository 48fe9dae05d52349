"""What is measured: learning and predicting on the shapes that matter."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from mlca import MLCA
from mlca.bench.clock import PeakMemory, best_time, single_time
from mlca.bench.data import Sample, generated
from mlca.bench.results import Line
from mlca.bench.rivals import PlainNumPy, brute_force, river_models, river_rows

NUMPY_ROWS = 3000


def learning(data: Sample, n_jobs: int = 1, repeats: int = 7, who: str = "mlca", **parameters: Any) -> Line:
    """Learn a dataset from scratch."""
    model = MLCA(n_jobs=n_jobs, **parameters)
    model.fit(data.X[:200], data.Y[:200])
    work = partial(model.fit, data.X, data.Y)
    with PeakMemory() as memory:
        seconds = single_time(work)
    for _ in range(repeats - 1):  # without anybody who looks at the memory in between
        seconds = min(seconds, single_time(work))
    n, d = data.X.shape
    pairs, note = _pairs(model, data) * d, f"{model.n_nodes_:,} nodes"
    return Line(_title("learn", data), _who(who, n_jobs, parameters), n, seconds, pairs, note, memory.growth)


def predicting(data: Sample, n_jobs: int = 1, who: str = "mlca", n_rows: int = 3000, **parameters: Any) -> Line:
    """Predict rows of a dataset with a model that has learned all of it."""
    model = MLCA(n_jobs=n_jobs, **parameters).fit(data.X, data.Y)
    rows = data.X[:n_rows]
    seconds = best_time(lambda: model.predict_proba(rows), 3)
    pairs = float(rows.shape[0]) * model.n_nodes_ * rows.shape[1]
    return Line(_title("predict", data), _who(who, n_jobs, parameters), rows.shape[0], seconds, pairs)


def one_at_a_time(data: Sample, n_known: int = 1000) -> list[Line]:
    """Learn and predict single rows, as a service does."""
    X, Y = data.X, data.Y.toarray()
    parts = [(X[i : i + 1], Y[i : i + 1]) for i in range(len(X))]
    n = 500

    more, their = X[n_known : n_known + n], Y[n_known : n_known + n]

    def known() -> MLCA:
        return MLCA().fit(X[:n_known], Y[:n_known])

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
        Line(f"partial_fit, one row a call, {data.name}", "mlca", n, single, n * nodes * d, note),
        Line(f"the same rows in one call, {data.name}", "mlca, compiled loop", n, loop, n * nodes * d, note),
        Line(
            f"predict, one row a call, {data.name}",
            "mlca",
            n,
            predict,
            float(n) * n_known * d,
            f"{1e6 * predict / n:.0f} microseconds a row",
        ),
    ]


def plain_numpy(data: Sample, **parameters: Any) -> Line:
    """Learn the first rows with NumPy; the time for all rows follows from its growth with n^2."""
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
    """Search the nearest rows with scikit-learn: what prediction would be without our kernels."""
    search = brute_force(metric, data.X, n_jobs)
    rows = data.X[:n_rows]
    seconds = best_time(lambda: search.kneighbors(rows, return_distance=False), 2)
    pairs = float(len(rows)) * data.X.shape[0] * data.X.shape[1]
    return Line(_title("predict", data), f"scikit-learn {metric}, {n_jobs} job", len(rows), seconds, pairs)


def river_stream(data: Sample, n_known: int = 500, n_rows: int = 200) -> list[Line]:
    """Learn rows one by one with River's multi-label models and with ours in their form."""
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


def growth(n_features: int = 100) -> tuple[Line, float, float]:
    """Learn 1,000, 2,000, 4,000 and 8,000 rows; return the last line and the exponents of time and memory."""
    sizes, seconds, held = [1000, 2000, 4000, 8000], [], []
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (sizes[-1], n_features))
    Y = (rng.random((sizes[-1], 5)) < 0.3).astype(np.uint8)
    for n in sizes:
        model = MLCA()
        seconds.append(best_time(partial(model.fit, X[:n], Y[:n]), 2))
        held.append(float(model.weights_.nbytes))
    time_exponent, memory_exponent = (
        float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) for values in (seconds, held)
    )
    n = sizes[-1]
    note = f"time grows as n^{time_exponent:.2f}, nodes' memory as n^{memory_exponent:.2f}"
    line = Line("learn, n doubled three times", "mlca", n, seconds[-1], n * n / 2 * n_features, note)
    return line, time_exponent, memory_exponent


def eurlex() -> Line:
    """Learn generated rows of EURLex-4K's shape; pairs are those of the nodes' non-zeros."""
    data = generated("eurlex-4k")
    model = MLCA()
    model.fit(data.X[:200], data.Y[:200])
    with PeakMemory() as memory:
        seconds = single_time(lambda: model.fit(data.X, data.Y))
    pairs, note = float(model.n_nodes_) / 2 * data.X.nnz, f"{model.n_nodes_:,} nodes; pairs are non-zeros"
    return Line(_title("learn", data), "mlca, 1 thread", data.X.shape[0], seconds, pairs, note, memory.growth)


def million(n: int = 1_000_000, n_features: int = 32) -> tuple[Line, float]:
    """Learn a million generated rows with two threads; return the line, and the peak memory in units of the data's."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 1, (100, n_features))
    cluster = rng.integers(len(centres), size=n)
    X = centres[cluster] + 0.5 * rng.normal(0, 1, (n, n_features))
    Y = (rng.random((100, 10)) < 0.2)[cluster]
    model = MLCA(n_jobs=2)
    with PeakMemory() as memory:
        seconds = single_time(lambda: model.fit(X, Y))
    pairs, note = float(n) * model.n_nodes_ / 2 * n_features, f"{model.n_nodes_:,} nodes"
    line = Line(f"learn ({n:,} x {n_features}, generated)", "mlca, 2 threads", n, seconds, pairs, note, memory.growth)
    return line, (memory.growth or 0) / X.nbytes


def dense_path(data: Sample) -> Line:
    """Learn a sparse dataset as a dense one."""
    dense = Sample(data.name + ", as dense rows", data.X.toarray(), data.Y, data.real)
    return learning(dense, repeats=1)


def _pairs(model: MLCA, data: Sample) -> float:
    """Return how many nodes all rows together were compared with."""
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


def _who(who: str, n_jobs: int, parameters: dict[str, Any]) -> str:
    variant = {"individual": "-I", "clustered": "-C"}.get(parameters.get("attributes", ""), "")
    return f"{who}{variant}, {n_jobs} thread{'s' if n_jobs > 1 else ''}"

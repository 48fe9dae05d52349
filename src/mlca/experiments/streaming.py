"""Runs a dataset as a stream: each row is predicted and then learned, one row per call.

Measures and their conventions are those of the published results of online classifiers (`stream_tables`). A row with
neither true nor predicted labels has F1 0, and so has a label that is neither true nor predicted in any row. All labels
of the dataset count from the first row on. The prediction for the first row is empty, because the model has not learned
any label yet.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags

from mlca.datasets import random_rbf, random_tree, rotating_hyperplane
from mlca.experiments.arrangements import JUDGED_ROWS, Arranged, after_change, arrange, changes_of
from mlca.experiments.splits import whole
from mlca.experiments.tasks import Task
from mlca.metrics.stream.adapters import adapter_of
from mlca.metrics.stream.prequential import pickled_size

STREAM_MEASURES = ("micro_f1", "macro_f1", "example_f1", "exact_match", "hamming_loss")

# Bounds on the number of points of a curve, and the rows per point: with fewer rows, noise would look like drift.
FEWEST_POINTS, MOST_POINTS = 5, 40
POINT_ROWS = 100

GENERATORS: dict[str, Any] = {"hyperplane": rotating_hyperplane, "RBF": random_rbf, "tree": random_tree}


def stream_of(task: Task) -> Arranged:
    """Return the rows of a dataset in the order of the stream, or a generated stream.

    Parameters
    ----------
    task : Task
        The task. `repetition` is the seed that shuffles the rows, or None for the order of the file; `arrangement` is
        the change that is then applied to the rows, or the kind of drift of a generated stream.
    """
    if task.dataset in GENERATORS:
        return _generated(task)
    X, Y, split = whole(task.dataset)
    if task.repetition is not None:
        order = np.random.RandomState(task.repetition).permutation(len(Y))
    elif split is not None:
        order = np.concatenate(split)  # the published streams begin with the training file
    else:
        order = np.arange(len(Y))
    return arrange(X[order], Y[order], task.arrangement, seed=task.seed)


def _generated(task: Task) -> Arranged:
    if task.size is None:
        raise ValueError(f"{task}: a generated stream needs a size")
    new_part = task.arrangement == "new part"
    change = "sudden" if new_part else task.arrangement
    chunks = GENERATORS[task.dataset](task.size, change=change, random_state=task.seed)
    X, Y = (np.concatenate(part) for part in zip(*chunks, strict=True))
    if new_part:
        half = task.size // 2
        return Arranged(X[half:], Y[half:], {"after": slice(0, JUDGED_ROWS)})
    return Arranged(X, Y, after_change(task.size, change), changes_of(task.size, change))


def wants_dense(model: Any) -> bool:
    """Return whether a model needs dense rows, with explicit zeros."""
    if hasattr(model, "needs_zeros"):
        return bool(model.needs_zeros)
    return not get_tags(model).input_tags.sparse


def test_then_train(model: Any, stream: Arranged, clock: Callable[[bool], None]) -> tuple[NDArray[np.uint8], float]:
    """Predict and then learn each row of a stream.

    Returns
    -------
    tuple of ndarray and float
        The predicted labels, and the processor time of the model in seconds; wall-clock time would include other
        processes.
    """
    adapter = adapter_of(model)
    predicted = np.zeros_like(stream.Y)
    labels, seconds = None, 0.0
    clock(True)
    for i in range(len(predicted)):
        batch = adapter.read(stream.X[i : i + 1], stream.Y[i : i + 1], labels)
        labels = batch.labels
        started = process_time()
        answer = adapter.predict(batch) if i else None
        adapter.learn(batch)
        seconds += process_time() - started
        if answer is not None:
            predicted[i] = adapter.as_labels(answer, batch).toarray()[0]
    clock(False)
    return predicted, seconds


def measured(task: Task, model: Any, clock: Callable[[bool], None]) -> tuple[dict[str, float], dict[str, Any]]:
    """Run a test-then-train task; return its measures and its learning curve."""
    stream = stream_of(task)
    if sparse.issparse(stream.X) and wants_dense(model):
        stream = Arranged(stream.X.toarray(), stream.Y, stream.parts, stream.changes)
    predicted, seconds = test_then_train(model, stream, clock)
    values = stream_measures(stream.Y, predicted)
    for part, rows in stream.parts.items():
        values |= {f"{name}@{part}": value for name, value in stream_measures(stream.Y[rows], predicted[rows]).items()}
    values |= {"rows": float(len(predicted)), "rows_per_second": len(predicted) / seconds}
    size = pickled_size(model)
    if size is not None:
        values["model_bytes"] = float(size)
    return values, {"curve": _curve(stream, predicted)}


def _curve(stream: Arranged, predicted: NDArray[np.uint8]) -> dict[str, Any]:
    """Return measures over the rows before each point of a curve; the ranges may overlap."""
    n_rows = len(predicted)
    n_points = min(max(n_rows // POINT_ROWS, FEWEST_POINTS), MOST_POINTS)
    width = min(max(n_rows // n_points, POINT_ROWS), n_rows)
    ends = np.unique(np.linspace(width, n_rows, n_points).astype(int))
    points = [stream_measures(stream.Y[end - width : end], predicted[end - width : end]) for end in ends]
    drawn = {name: [round(one[name], 4) for one in points] for name in ("micro_f1", "exact_match")}
    return {"row": ends.tolist(), "rows_a_point": width, "changes": list(stream.changes), **drawn}


def stream_measures(true: NDArray[np.uint8], predicted: NDArray[np.uint8]) -> dict[str, float]:
    """Return the five measures of the published results, by their conventions.

    Examples
    --------
    >>> found = stream_measures(np.array([[1, 0], [0, 0]]), np.array([[1, 0], [0, 0]]))
    >>> {name: float(value) for name, value in found.items()}
    {'micro_f1': 1.0, 'macro_f1': 0.5, 'example_f1': 0.5, 'exact_match': 1.0, 'hamming_loss': 0.0}
    """
    hits = (true & predicted).astype(np.int64)
    sizes = true.astype(np.int64) + predicted

    def f1(axis: int | None) -> Any:
        n_hits, n_sizes = hits.sum(axis=axis), sizes.sum(axis=axis)
        return 2 * n_hits / np.maximum(n_sizes, 1)

    return {
        "micro_f1": float(f1(None)),
        "macro_f1": float(np.mean(f1(0))),
        "example_f1": float(np.mean(f1(1))),
        "exact_match": float((true == predicted).all(axis=1).mean()),
        "hamming_loss": float((true != predicted).mean()),
    }

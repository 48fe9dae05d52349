"""Runs an experiment's task in the current process, and measures the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags

from mlca.datasets import three_discs
from mlca.datasets.synthetic import CENTRES, RADIUS
from mlca.experiments import rivals
from mlca.experiments.algorithms import make
from mlca.experiments.arrangements import arrange
from mlca.experiments.splits import split_of
from mlca.experiments.streaming import measured
from mlca.experiments.tasks import Task
from mlca.metrics import brier_score, calibration_error, evaluate
from mlca.metrics.registry import PAPER_MEASURES
from mlca.metrics.sets import exact_match

N_DISCS = len(CENTRES)
GROWTH_ATTRIBUTES = 20
_WARM_UP_ROWS = 60

_warm: set[tuple[Any, ...]] = set()


@dataclass
class Findings:
    """The results of a task so far."""

    values: dict[str, float] = field(default_factory=dict)
    pictures: dict[str, Any] = field(default_factory=dict)


def do(task: Task, clock: Callable[[bool], None]) -> Findings:
    """Run a task of any kind and return its measures.

    Parameters
    ----------
    task : Task
        The task.
    clock : callable
        Called with True when a fit begins and with False when it ends.

    Returns
    -------
    Findings
        The measures, and data for plots.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as warnings about labels without training rows
        return WORKS[task.work](task, clock)


def _stream(task: Task, clock: Callable[[bool], None]) -> Findings:
    """Learn the discs stage by stage; after each, measure on all rows presented so far."""
    found = Findings()
    model = make(task.algorithm, dict(task.parameters), task.seed)
    stages = three_discs(task.size or 0, condition=task.dataset, random_state=task.seed)  # type: ignore[arg-type]
    for number, stage in enumerate(stages, start=1):
        clock(True)
        model.partial_fit(_in_unit_square(stage.X) if task.scaled else stage.X, stage.Y)
        clock(False)
        X_test = _in_unit_square(stage.X_test) if task.scaled else stage.X_test
        predicted = _three_columns(model.predict(X_test))
        true = _three_columns(stage.Y_test)
        found.values[f"exact_match@{number}"] = exact_match(true, predicted)
        found.values[f"hamming_loss@{number}"] = float((true != predicted).mean())
        found.values[f"nodes@{number}"] = _n_nodes(model)
        if task.seed == 0:
            found.pictures[str(number)] = _nodes_to_draw(model)
    return found


def _in_unit_square(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the points of the discs uniformly, so that they lie within [0, 1]."""
    lowest, highest = CENTRES.min() - RADIUS, CENTRES.max() + RADIUS
    shrunk: NDArray[np.float64] = (X - lowest) / (highest - lowest)
    return shrunk


def _three_columns(Y: Any) -> NDArray[np.uint8]:
    """Add zero columns for labels not seen yet: the paper always averages over three labels."""
    known = np.asarray(Y, dtype=np.uint8)
    return np.pad(known, ((0, 0), (0, N_DISCS - known.shape[1])))


def _n_nodes(model: Any) -> float:
    """Return the number of nodes or, for MCIC, its mature clusters, as only these predict."""
    return float(model.n_nodes_ if hasattr(model, "n_nodes_") else getattr(model, "n_mature_", np.nan))


def _nodes_to_draw(model: Any) -> dict[str, Any]:
    weights = model.prototypes_ if hasattr(model, "prototypes_") else _centres(model)
    labels = [np.flatnonzero(row).tolist() for row in np.asarray(model.predict(weights))]
    return {"weights": np.round(weights, 3).tolist(), "labels": labels}


def _centres(model: Any) -> NDArray[np.float64]:
    """Return the centres of MCIC's mature clusters; MCIC has no public attribute for them."""
    clusters = model._clusters
    centres: NDArray[np.float64] = clusters.sums[model._mature] / clusters.weights[model._mature, None]
    return centres


def _fold(task: Task, clock: Callable[[bool], None]) -> Findings:
    """Learn the training rows of a fold in one or more epochs; measure on the test rows."""
    found = Findings()
    parameters = dict(task.parameters)
    model = make(task.algorithm, parameters, task.seed)
    dense = not get_tags(model).input_tags.sparse
    split = split_of(task.dataset, task.repetition, task.fold, scaled=task.scaled, dense=dense)
    learned = arrange(split.X, split.Y, task.arrangement)
    _warm_up(task.algorithm, parameters, split.X, split.Y)
    learning = 0.0
    for epoch in range(1, task.epochs + 1):
        started = perf_counter()
        clock(True)
        # One pass per epoch, so that each can be measured; `fit(epochs=n)` gives the same model as n passes.
        model.fit(learned.X, learned.Y) if epoch == 1 else model.partial_fit(learned.X, learned.Y)
        clock(False)
        learning += perf_counter() - started
        stage = f"@{epoch}" if task.epochs > 1 else ""
        found.values |= {f"{name}{stage}": value for name, value in _judge(model, split.X_test, split.Y_test).items()}
        found.values[f"fit_seconds{stage}"] = learning
        found.values[f"nodes{stage}"] = _n_nodes(model)
    if task.on_training:
        found.values["training_exact_match"] = exact_match(split.Y, model.predict(split.X))
    return found


def _judge(model: Any, X: Any, Y: NDArray[np.uint8]) -> Mapping[str, float]:
    """Measure the model's decisions, rankings and probabilities."""
    started = perf_counter()
    predicted = model.predict(X)
    seconds = perf_counter() - started
    probabilities = model.predict_proba(X)
    scores = model.decision_function(X) if hasattr(model, "decision_function") else probabilities
    measured = evaluate(Y, scores, Y_pred=predicted).as_dict()
    return {name: measured[name] for name in (*(measure.name for measure in PAPER_MEASURES), "micro_auc")} | {
        "brier_score": brier_score(Y, probabilities),
        "calibration_error": calibration_error(Y, probabilities),
        "predict_seconds": seconds,
    }


def _warm_up(algorithm: str, parameters: Mapping[str, Any], X: Any, Y: NDArray[np.uint8]) -> None:
    """Fit a few rows before timing, once per process and kind of model, to load the code."""
    kind = (algorithm, *(parameters.get(name) for name in ("published", "vote")), sparse.issparse(X))
    if kind in _warm or algorithm in rivals.__all__:
        return
    with suppress(ValueError):  # errors on a few rows do not matter
        rows = slice(0, _WARM_UP_ROWS)
        make(algorithm, parameters, seed=0).fit(X[rows], Y[rows]).predict(X[rows])
    _warm.add(kind)


def _growth(task: Task, clock: Callable[[bool], None]) -> Findings:
    """Measure the time to learn `size` rows with a constant number of nodes.

    With vigilance 0 each distinct row becomes a node, and a row that equals a node adds none.
    """
    if task.size is None or task.nodes is None:
        raise ValueError(f"{task}: a growth task needs a size and a number of nodes")
    rng = np.random.default_rng(task.seed)
    nodes = rng.random((task.nodes, GROWTH_ATTRIBUTES))
    rows = nodes[rng.integers(task.nodes, size=task.size)]
    labels = np.ones((max(task.nodes, task.size), 1), dtype=np.uint8)
    parameters = dict(task.parameters)
    _warm_up(task.algorithm, parameters, nodes, labels[: task.nodes])
    model = make(task.algorithm, parameters, task.seed).fit(nodes, labels[: task.nodes])
    started = perf_counter()
    clock(True)
    model.partial_fit(rows, labels[: task.size])
    clock(False)
    return Findings({"fit_seconds": perf_counter() - started, "nodes": _n_nodes(model)})


def _prequential(task: Task, clock: Callable[[bool], None]) -> Findings:
    """Measure a model that predicts every row of a stream before learning it."""
    model = make(task.algorithm, dict(task.parameters), task.seed)
    return Findings(*measured(task, model, clock))


WORKS = {"stream": _stream, "fold": _fold, "growth": _growth, "prequential": _prequential}

"""Prediction of the rows of many requests in one call, in the event loop or in a thread.

Most of the cost of a call does not depend on its number of rows, so one call serves sixteen clients with one row each
several times as fast as sixteen calls. Calls of less than a millisecond run in the event loop, since handing them to a
thread and back would take longer. The thread runs larger calls, calls that must wait for the model, and calls with rows
of tables, which are encoded in Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mlca.learner.core import Answers
from mlca.options import Objective
from mlca.serve.live_model import Facts, LiveModel
from mlca.serve.request_errors import RequestError
from mlca.serve.request_rows import RowsOfX
from mlca.serve.worker_threads import BatchWorker

# Number of rows from which no more requests join a call, and largest number of waiting rows.
_TOGETHER = 200
_WAITING = 20_000
# Largest number of node values compared in the event loop, which takes about a millisecond.
_AT_ONCE = 2**21
# Cost of sorting and naming one label, in comparisons of node values.
_LABEL = 128


@dataclass(frozen=True)
class PredictedRows:
    """The predictions for the rows of a request.

    Attributes
    ----------
    facts : Facts
        The status of the model that predicted the rows.
    labels : list of lists of str
        The predicted labels of each row.
    best : list of dict
        The most likely labels of each row with their probabilities, most likely first.
    novelty : list
        The novelty of each row; None if the model does not compute it.
    """

    facts: Facts
    labels: list[list[str]] = field(default_factory=list)
    best: list[dict[str, float]] = field(default_factory=list)
    novelty: list[float | None] = field(default_factory=list)

    @classmethod
    def of_nothing(cls, facts: Facts, n_rows: int) -> PredictedRows:
        """Return empty predictions, for a model that has not learned any rows."""
        return cls(facts, [[] for _ in range(n_rows)], [{} for _ in range(n_rows)], [None] * n_rows)


@dataclass(frozen=True)
class Choice:
    """How a request chooses labels: by an objective (default: the model's) or a threshold.

    Attributes
    ----------
    top : int
        The number of most likely labels to list with their probabilities.
    objective : Objective or None
        The objective, if it differs from the model's.
    threshold : float, dict of label to float, or None
        The probability above which labels are predicted; 0.5 for labels without one.
    """

    top: int = 5
    objective: Objective | None = None
    threshold: float | dict[str, float] | None = None

    def labels(self, answers: Answers, facts: Facts) -> NDArray[np.bool_]:
        """Return a boolean matrix of the labels predicted for each row."""
        cuts: float | NDArray[np.float64] | None
        if isinstance(self.threshold, dict):  # the model's labels may have changed since the request was read
            cuts = np.array([self.threshold.get(name, 0.5) for name in facts.labels])
        else:
            cuts = self.threshold
        return answers.chosen(self.objective or facts.objective, cuts)


@dataclass(frozen=True)
class _Job:
    x: RowsOfX
    choice: Choice
    future: asyncio.Future[PredictedRows]


class Predictor:
    """Predicts the rows of simultaneous requests in one call.

    Parameters
    ----------
    live : callable
        Returns the model in use, or None before the first one is loaded.
    """

    def __init__(self, live: Callable[[], LiveModel | None]) -> None:
        self._live = live
        self._jobs = BatchWorker("mlca-predictor", self._judge, _TOGETHER, lambda job: len(job.x))
        self.start, self.stop = self._jobs.start, self._jobs.stop
        self._gathered: list[_Job] = []
        self._waiting = 0

    async def predict(self, x: RowsOfX, choice: Choice) -> PredictedRows:
        """Predict rows in one call with other requests; choose labels by this request's `choice`."""
        if self._waiting + len(x) > _WAITING:
            raise RequestError(429, "too many rows are waiting to be predicted", "send fewer at a time", retry_after=1)
        loop = asyncio.get_running_loop()
        job = _Job(x, choice, loop.create_future())
        if not self._gathered:  # requests that arrive before the callback runs join its call
            loop.call_soon(self._take_turn)
        self._gathered.append(job)
        self._waiting += len(x)
        try:
            return await job.future
        finally:
            self._waiting -= len(x)

    def _take_turn(self) -> None:
        jobs, self._gathered = self._gathered, []
        live = self._live()
        assert live is not None  # routes wait until a model is loaded
        if not isinstance(jobs[0].x, list):
            n_rows = sum(len(job.x) for job in jobs)
            compared = (live.facts.width or 0) * live.facts.nodes + _LABEL * len(live.facts.labels)
            if n_rows * compared <= _AT_ONCE:
                try:
                    found = live.try_predict(_together(jobs))
                except Exception as error:
                    _deliver(jobs, error)
                    return
                if found is not None:
                    _deliver(jobs, _by_request(*found, jobs))
                    return
        for job in jobs:
            self._jobs.put(job)

    def _judge(self, jobs: list[_Job]) -> None:
        outcome: list[PredictedRows] | Exception
        try:
            live = self._live()
            assert live is not None
            outcome = _by_request(*live.predict(_together(jobs)), jobs)
        except Exception as error:
            outcome = error
        jobs[0].future.get_loop().call_soon_threadsafe(partial(_deliver, jobs, outcome))


def _together(jobs: list[_Job]) -> RowsOfX:
    if len(jobs) == 1:
        return jobs[0].x
    tables = [job.x for job in jobs if isinstance(job.x, list)]
    if tables:
        return [cells for part in tables for cells in part]
    return np.vstack([job.x for job in jobs if not isinstance(job.x, list)])


def _by_request(facts: Facts, answers: Answers, jobs: list[_Job]) -> list[PredictedRows]:
    """Convert a joint prediction to label names, and divide its rows among the requests."""
    names, n_rows = facts.labels, len(answers.probabilities)
    labels: list[list[str]] = [[] for _ in range(n_rows)]
    for row, column in zip(*(places.tolist() for places in np.nonzero(_chosen(facts, answers, jobs))), strict=True):
        labels[row].append(names[column])
    order = np.argsort(-answers.probabilities, axis=1, kind="stable")[:, : max(job.choice.top for job in jobs)]
    chosen = answers.probabilities[np.arange(n_rows)[:, None], order].tolist()
    likeliest = [[names[column] for column in columns] for columns in order.tolist()]
    novelty = [None] * n_rows if answers.novelty is None else answers.novelty.tolist()
    predicted, start = [], 0
    for job in jobs:
        end, top = start + len(job.x), job.choice.top
        best = [
            dict(zip(columns[:top], values[:top], strict=True))
            for columns, values in zip(likeliest[start:end], chosen[start:end], strict=True)
        ]
        predicted.append(PredictedRows(facts, labels[start:end], best, novelty[start:end]))
        start = end
    return predicted


def _chosen(facts: Facts, answers: Answers, jobs: list[_Job]) -> NDArray[np.bool_]:
    """Choose labels by each request's objective or threshold, else by the model's objective."""
    chosen, start = Choice().labels(answers, facts), 0
    for job in jobs:
        end = start + len(job.x)
        if job.choice.objective is not None or job.choice.threshold is not None:
            chosen[start:end] = job.choice.labels(answers.between(start, end), facts)
        start = end
    return chosen


def _deliver(jobs: list[_Job], outcome: list[PredictedRows] | Exception) -> None:
    for number, job in enumerate(jobs):
        if job.future.done():  # its client has disconnected
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome[number])

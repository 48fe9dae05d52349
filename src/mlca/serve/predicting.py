"""Judging rows: those of many requests in one call, between two turns of the event loop or in a thread.

A call costs a lot beside a row: sixteen clients with a row each are served several times as fast by one call. What
takes a fraction of a millisecond is done where it is asked for, since handing it to a thread and back would take
longer; the thread has what is large, what must wait for the model, and tables, whose cells are read in Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from mlca.serve.gathering import Gatherer
from mlca.serve.live import Facts, Judgement, LiveModel
from mlca.serve.refusals import RefusalError
from mlca.serve.rows import RowsOfX

# Rows that one call judges, and that may wait.
_TOGETHER = 200
_WAITING = 20_000
# Numbers of nodes that are compared at most while the event loop waits: a millisecond's worth or two.
_AT_ONCE = 2**21
# Numbers that could be compared while a label is sorted in and named.
_LABEL = 128


@dataclass(frozen=True)
class Verdict:
    """What the model says of the rows of a request, as the answer has it.

    Attributes
    ----------
    facts : Facts
        The model that spoke.
    labels : list of lists of str
        The labels of each row.
    best : list of dict
        Its most likely labels with their probabilities, the likeliest first.
    novelty : list
        How new it is to the model; None where the model tells none.
    """

    facts: Facts
    labels: list[list[str]] = field(default_factory=list)
    best: list[dict[str, float]] = field(default_factory=list)
    novelty: list[float | None] = field(default_factory=list)

    @classmethod
    def of_nothing(cls, facts: Facts, n_rows: int) -> Verdict:
        """Return what a model says that has learned nothing."""
        return cls(facts, [[] for _ in range(n_rows)], [{} for _ in range(n_rows)], [None] * n_rows)


@dataclass(frozen=True)
class _Job:
    x: RowsOfX
    top: int
    future: asyncio.Future[Verdict]


class Predictor:
    """Judges rows.

    Parameters
    ----------
    live : callable
        Returns the model in use; None before there is one.
    """

    def __init__(self, live: Callable[[], LiveModel | None]) -> None:
        self._live = live
        self._jobs = Gatherer("mlca-predictor", self._judge, _TOGETHER, lambda job: len(job.x))
        self.start, self.stop = self._jobs.start, self._jobs.stop
        self._gathered: list[_Job] = []
        self._waiting = 0

    async def judge(self, x: RowsOfX, top: int) -> Verdict:
        """Judge rows together with those of others; tell of each row so many likely labels."""
        if self._waiting + len(x) > _WAITING:
            raise RefusalError(429, "too many rows wait to be predicted", "send fewer at a time", retry_after=1)
        loop = asyncio.get_running_loop()
        job = _Job(x, top, loop.create_future())
        if not self._gathered:  # what else has come by then is judged along with it
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
        assert live is not None  # nobody asks before there is a model
        if not isinstance(jobs[0].x, list):
            n_rows = sum(len(job.x) for job in jobs)
            compared = (live.facts.width or 0) * live.facts.nodes + _LABEL * len(live.facts.labels)
            if n_rows * compared <= _AT_ONCE:
                try:
                    judgement = live.try_predict(_together(jobs))
                except Exception as error:
                    _deliver(jobs, error)
                    return
                if judgement is not None:
                    _deliver(jobs, _verdicts(judgement, jobs))
                    return
        for job in jobs:
            self._jobs.put(job)

    def _judge(self, jobs: list[_Job]) -> None:
        outcome: list[Verdict] | Exception
        try:
            live = self._live()
            assert live is not None
            outcome = _verdicts(live.predict(_together(jobs)), jobs)
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


def _verdicts(judgement: Judgement, jobs: list[_Job]) -> list[Verdict]:
    """Put into words what was judged together, and hand to each job its own."""
    names, n_rows = judgement.facts.labels, len(judgement.probabilities)
    labels: list[list[str]] = [[] for _ in range(n_rows)]
    for row, column in zip(*(places.tolist() for places in np.nonzero(judgement.decided)), strict=True):
        labels[row].append(names[column])
    order = np.argsort(-judgement.probabilities, axis=1, kind="stable")[:, : max(job.top for job in jobs)]
    chosen = judgement.probabilities[np.arange(n_rows)[:, None], order].tolist()
    likeliest = [[names[column] for column in columns] for columns in order.tolist()]
    novelty = [None] * n_rows if judgement.novelty is None else judgement.novelty.tolist()
    verdicts, start = [], 0
    for job in jobs:
        end, top = start + len(job.x), job.top
        best = [
            dict(zip(columns[:top], values[:top], strict=True))
            for columns, values in zip(likeliest[start:end], chosen[start:end], strict=True)
        ]
        verdicts.append(Verdict(judgement.facts, labels[start:end], best, novelty[start:end]))
        start = end
    return verdicts


def _deliver(jobs: list[_Job], outcome: list[Verdict] | Exception) -> None:
    for number, job in enumerate(jobs):
        if job.future.done():  # its client has gone
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome[number])

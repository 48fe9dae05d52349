"""One thread that asks the model: rows of requests that wait while it computes are judged together by the next call.

A call costs a lot beside a row: sixteen clients with a row each are served several times as fast by one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from mlca.serve.gathering import Gatherer
from mlca.serve.live import Judgement, LiveModel
from mlca.serve.refusals import RefusalError
from mlca.serve.rows import RowsOfX

# Rows that one call judges, and that may wait.
_TOGETHER = 200
_WAITING = 20_000


@dataclass(frozen=True)
class _Job:
    x: RowsOfX
    future: asyncio.Future[Judgement]
    loop: asyncio.AbstractEventLoop


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
        self._waiting = 0

    async def judge(self, x: RowsOfX) -> Judgement:
        """Judge rows together with those of others."""
        if self._waiting + len(x) > _WAITING:
            raise RefusalError(429, "too many rows wait to be predicted", "send fewer at a time", retry_after=1)
        loop = asyncio.get_running_loop()
        job = _Job(x, loop.create_future(), loop)
        self._waiting += len(x)
        try:
            self._jobs.put(job)
            return await job.future
        finally:
            self._waiting -= len(x)

    def _judge(self, jobs: list[_Job]) -> None:
        outcome: Judgement | Exception
        try:
            live = self._live()
            assert live is not None  # nobody asks before there is a model
            outcome = live.predict(_together([job.x for job in jobs]))
        except Exception as error:
            outcome = error
        jobs[0].loop.call_soon_threadsafe(partial(_deliver, jobs, outcome))


def _together(parts: list[RowsOfX]) -> RowsOfX:
    if len(parts) == 1:
        return parts[0]
    tables = [part for part in parts if isinstance(part, list)]
    if tables:
        return [cells for part in tables for cells in part]
    return np.vstack([part for part in parts if not isinstance(part, list)])


def _deliver(jobs: list[_Job], outcome: Judgement | Exception) -> None:
    start = 0
    for job in jobs:
        end = start + len(job.x)
        if job.future.done():  # its client has gone
            pass
        elif isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            novelty = None if outcome.novelty is None else outcome.novelty[start:end]
            part = Judgement(outcome.facts, outcome.probabilities[start:end], outcome.decided[start:end], novelty)
            job.future.set_result(part)
        start = end

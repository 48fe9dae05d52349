"""Incremental measures: sums over the whole stream, and a ring buffer for the window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlca.metrics.inputs import Scores, Truth
from mlca.metrics.ranking import LabelRanks
from mlca.metrics.registry import mean_defined
from mlca.metrics.sets import SetComparison
from mlca.metrics.stream.records import StreamMeasures


class Tally:
    """The measures over the rows predicted so far.

    Each row contributes one value per measure, NaN if the measure leaves the row out. Micro F1 is a ratio of two sums,
    which are accumulated in the same way.
    """

    COLUMNS = (
        "exact_match",
        "example_f1",
        "jaccard",
        "hamming_loss",
        "hits",
        "sizes",
        "ranking_loss",
        "coverage",
        "average_precision",
        "one_error",
    )

    def __init__(self, window: int) -> None:
        self._sums = np.zeros(len(self.COLUMNS))
        self._defined = np.zeros(len(self.COLUMNS), dtype=np.int64)
        self._ring = np.full((window, len(self.COLUMNS)), np.nan)
        self._n_rows = 0

    def add(self, true: Truth, predicted: Truth, scores: Scores | None) -> None:
        """Add the measures of more rows."""
        values = _measure_rows(true, predicted, scores)
        self._sums += np.nansum(values, axis=0)
        self._defined += np.count_nonzero(~np.isnan(values), axis=0)
        self._n_rows += len(values)
        window = len(self._ring)
        kept = values[-window:]
        self._ring[np.arange(self._n_rows - len(kept), self._n_rows) % window] = kept

    def running(self) -> StreamMeasures:
        """Return the measures over all rows."""
        means = np.full(len(self.COLUMNS), np.nan)
        np.divide(self._sums, self._defined, out=means, where=self._defined > 0)
        return _as_measures(means)

    def windowed(self) -> StreamMeasures:
        """Return the measures over the latest rows."""
        return _as_measures(np.array([mean_defined(column) for column in self._ring.T]))


def _measure_rows(true: Truth, predicted: Truth, scores: Scores | None) -> NDArray[np.float64]:
    rows = SetComparison.of_matrices(true, predicted).rows
    columns = [
        rows.wrong() == 0,
        rows.f1(),
        rows.jaccard(),
        rows.wrong() / true.shape[1] if true.shape[1] else np.full(true.shape[0], np.nan),
        rows.hits,
        rows.true + rows.predicted,
    ]
    if scores is None:
        columns += [np.full(true.shape[0], np.nan)] * 4
    else:
        ranks = LabelRanks.of_matrices(true, scores)
        columns += [
            ranks.ranking_losses(),
            ranks.coverages(),
            ranks.average_precisions(),
            ranks.one_errors(),
        ]
    return np.column_stack(columns).astype(np.float64, copy=False)


def _as_measures(means: NDArray[np.float64]) -> StreamMeasures:
    by_name = dict(zip(Tally.COLUMNS, means.tolist(), strict=True))
    hits, sizes = by_name.pop("hits"), by_name.pop("sizes")
    return StreamMeasures(micro_f1=2 * hits / sizes if sizes else float("nan"), **by_name)

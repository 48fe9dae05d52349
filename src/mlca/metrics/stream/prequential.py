"""The test-then-train loop, which predicts each item of a stream and then learns it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.metrics.inputs import Truth
from mlca.metrics.stream.adapters import Adapter, StreamBatch, adapter_of
from mlca.metrics.stream.alarms import Alarm, Watch
from mlca.metrics.stream.records import Prequential, Record
from mlca.metrics.stream.tally import Tally
from mlca.targets import LabelSet
from mlca.validation import check_whole


def prequential(
    model: Any,
    stream: Iterable[tuple[Any, Any]],
    *,
    every: int = 1000,
    window: int = 1000,
    scores: bool = False,
    alarms: bool = True,
    on_record: Callable[[Record], object] | None = None,
) -> Prequential:
    """Predict each item of a stream, then learn it, and record measures.

    The label set may grow through a wider indicator matrix, a new label name or a new dict key. A label counts from the
    first item that contains it. The model cannot predict it for that item, so it counts as missed, with score 0. An
    empty model learns the first item without predicting it.

    Parameters
    ----------
    model : object
        A classifier of this package, another classifier with `partial_fit(X, Y)` and `predict(X)` for indicator
        matrices (and `classes_`, if labels are given by name), or a multi-label model of River.
    stream : iterable of (X, Y) pairs
        Batches, or single rows: arrays with indicator matrices or label names; for River's models also dicts
        {feature: value} with {label: bool}. All items must have the same form. Batches without rows are skipped.
    every : int, default 1000
        The number of rows between two records. A record is taken after the item that completes them, and at the end of
        the stream.
    window : int, default 1000
        The number of rows over which the windowed measures are computed.
    scores : bool, default False
        Whether to also call `predict_proba` and compute the ranking measures, which costs a second prediction. Label
        sets always come from `predict`, because algorithms choose labels by different rules.
    alarms : bool, default True
        Whether to raise alarms about drift, new labels and rising novelty. Drift and novelty alarms need River; novelty
        alarms also need a model with `novelty(X)`, and cost one nearest-node search per row.
    on_record : callable, optional
        Called with each `Record` as it is taken.

    Returns
    -------
    Prequential
        The records, where each label first appeared, and the alarms.

    Notes
    -----
    The reported memory is the size of the model's pickled state, which is the same on every machine and covers compiled
    and pure Python models. The memory of the process would also include the stream, the libraries and the allocator.
    Models made of many small Python objects take several times their pickled size in memory.

    Speeds count only the time that the model takes to predict and learn, not the time for reading the stream and for
    measures, alarms and records.

    Examples
    --------
    >>> from river import linear_model, multioutput
    >>> from river.datasets import synth
    >>> model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
    >>> result = prequential(model, synth.Logical(n_tiles=100, seed=1), every=200, window=100)
    >>> [(r.row, round(r.running.hamming_loss, 3)) for r in result.records]
    [(200, 0.358), (400, 0.36)]
    >>> result.labels_appeared
    {'OR': 0, 'AND': 0, 'XOR': 1}
    """
    check_whole("every", every, at_least=1)
    check_whole("window", window, at_least=1)
    appeared: dict[Hashable, int] = {}
    records: list[Record] = []
    raised: list[Alarm] | None = [] if alarms else None
    for record in _test_then_train(model, stream, every, Tally(window), scores, appeared, raised):
        records.append(record)
        if on_record is not None:
            on_record(record)
    return Prequential(tuple(records), appeared, window, tuple(raised or ()))


def _test_then_train(
    model: Any,
    stream: Iterable[tuple[Any, Any]],
    every: int,
    tally: Tally,
    scores: bool,
    appeared: dict[Hashable, int],
    raised: list[Alarm] | None,
) -> Iterator[Record]:
    """Run the stream; yield its records, and fill `appeared` and `raised`."""
    adapter = adapter_of(model)
    labels = adapter.known
    known = () if labels is None else labels.names
    watch = Watch(known)
    clock = _Stopwatch()
    n_rows = recorded = 0
    for number, item in enumerate(stream):
        place = f"item {number} of the stream, after {n_rows} rows"
        try:
            X, Y = _as_pair(item)
            if _has_no_rows(X, Y):
                continue
            batch = adapter.read(X, Y, labels)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from error
        predicted = novelty = None
        try:
            if labels is not None:
                with clock:
                    sets = adapter.predict(batch)
                    chances = adapter.predict_scores(batch) if scores else None
                predicted = adapter.as_labels(sets, batch)
                tally.add(batch.truth(), predicted, adapter.as_scores(chances, batch) if scores else None)
                novelty = None if raised is None else adapter.novelty(batch)
            with clock:
                adapter.learn(batch)
        except ValueError as error:
            error.add_note(f"This happened at {place}, which have been learned.")
            raise
        labels = batch.labels
        _note_first_rows(appeared, len(known), batch, n_rows)
        if raised is not None:
            raised += _look(watch, n_rows, batch, predicted, novelty)
        n_rows += batch.targets.n_rows
        if n_rows // every > recorded // every:
            yield _record(model, adapter, tally, labels, n_rows, (n_rows - recorded) / clock.restart())
            recorded = n_rows
    if labels is not None and n_rows > recorded:
        yield _record(model, adapter, tally, labels, n_rows, (n_rows - recorded) / clock.restart())


def _look(
    watch: Watch, first_row: int, batch: StreamBatch, predicted: Truth | None, novelty: NDArray[np.float64] | None
) -> Iterator[Alarm]:
    """Yield the alarms that the rows of a batch raise; the first batch may lack predictions."""
    answers = None if predicted is None else _names_by_row(predicted, batch)
    for i, true in enumerate(_names_by_row(batch.truth(), batch)):
        yield from watch.labels(first_row + i, true)
        if answers is not None:
            yield from watch.pair(first_row + i, true, answers[i])
        if novelty is not None:
            yield from watch.novelty(first_row + i, float(novelty[i]))


def _names_by_row(matrix: Truth, batch: StreamBatch) -> list[list[Hashable]]:
    names = [batch.labels.names[column] for column in matrix.indices.tolist()]
    return [names[start:stop] for start, stop in pairwise(matrix.indptr.tolist())]


def _record(
    model: Any, adapter: Adapter, tally: Tally, labels: LabelSet, n_rows: int, rows_per_second: float
) -> Record:
    return Record(
        row=n_rows,
        running=tally.running(),
        windowed=tally.windowed(),
        n_labels=len(labels.names),
        n_nodes=adapter.n_nodes(),
        rows_per_second=rows_per_second,
        model_bytes=pickled_size(model),
        segments=getattr(model, "segments_", ()),
    )


class _Stopwatch:
    """Measures the seconds spent inside `with` blocks since the last restart."""

    def __init__(self) -> None:
        self._seconds = self._begin = 0.0

    def __enter__(self) -> None:
        self._begin = perf_counter()

    def __exit__(self, *error: object) -> None:
        self._seconds += perf_counter() - self._begin

    def restart(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def pickled_size(model: Any) -> int | None:
    """Return the size of a model's pickle, or None if the model cannot be pickled."""
    sink = _ByteCounter()
    try:
        pickle.Pickler(sink, protocol=5, buffer_callback=sink.add_buffer).dump(model)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return sink.n_bytes


class _ByteCounter:
    """A file that counts the bytes written and discards them; arrays are counted in place."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def write(self, data: bytes) -> int:
        size = memoryview(data).nbytes
        self.n_bytes += size
        return size

    def add_buffer(self, buffer: pickle.PickleBuffer) -> None:
        self.n_bytes += buffer.raw().nbytes


def _note_first_rows(appeared: dict[Hashable, int], n_known: int, batch: StreamBatch, first_row: int) -> None:
    """Record, for each label, the first row where it is true.

    Labels that the model knew before the stream have the first columns and are not recorded.
    """
    columns, cells = np.unique(batch.targets.indices, return_index=True)
    for cell, column in sorted(zip(cells.tolist(), columns.tolist(), strict=True)):
        row = int(np.searchsorted(batch.targets.indptr, cell, side="right")) - 1
        if column >= n_known:
            appeared.setdefault(batch.labels.names[column], first_row + row)


def _has_no_rows(X: Any, Y: Any) -> bool:
    """Return whether a batch has no rows, as in a period without data."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return len(shape) == 2 and shape[0] == 0 and (Y.shape[0] if hasattr(Y, "shape") else len(Y)) == 0


def _as_pair(item: Any) -> tuple[Any, Any]:
    try:
        X, Y = item
    except (TypeError, ValueError):
        raise ValueError(
            f"an item must be a pair of rows and their labels; got {type(item).__name__}; to pass a table row by row, "
            "use zip(X, Y)"
        ) from None
    return X, Y

"""Learning and prediction on Dask collections.

Prediction works on independent blocks: a copy of the model is sent to the worker that holds the block. The result is
lazy, but its type and columns are known. `partial_fit` learns a stream: blocks are loaded into this process one after
another, in order, with at most one in memory. `fit` trains a model per block on the block's worker, and combines the
models in a tree whose shape depends only on the number of blocks.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator
from contextlib import nullcontext
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from mlca.base import MultiLabelClassifier, StreamClassifier
from mlca.classifier import MLCA
from mlca.merging import merge
from mlca.optional import needing
from mlca.progress import Progress
from mlca.targets.text import labels_from, list_in_text

with needing("mlca.dask", "dask"):
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    from dask.base import compute, get_scheduler
    from dask.callbacks import Callback
    from dask.delayed import delayed
    from distributed import Client, as_completed

__all__ = ["fit", "merge", "partial_fit", "predict", "predict_proba"]

Model = TypeVar("Model", bound=StreamClassifier)

# Number of models appended by one task. A larger number means fewer levels and more memory per worker.
FAN_IN = 8
# Seconds between two checks for finished blocks.
POLL = 0.05


def predict_proba(model: MultiLabelClassifier, X: Any) -> Any:
    """Return the probability of each label for each row, lazily.

    Parameters
    ----------
    model : classifier
        A fitted classifier of this package. Training it after this call does not change the result.
    X : dask Array or dask DataFrame of shape (n_samples, n_features)
        The rows, in blocks.

    Returns
    -------
    dask Array or dask DataFrame of shape (n_samples, n_labels)
        The probabilities (float64), in the blocks of X. A DataFrame has the labels as columns, and the index of X.

    Examples
    --------
    >>> import dask.array as da
    >>> import mlca.dask
    >>> from mlca import MLCA
    >>> model = MLCA().fit([[0.0], [1.0]], [{"low"}, {"high"}])
    >>> mlca.dask.predict_proba(model, da.zeros((100, 1), chunks=(40, 1)))
    dask.array<_predict_block, shape=(100, 2), dtype=float64, chunksize=(40, 2), chunktype=numpy.ndarray>
    """
    return _by_blocks(model._fitted(), "predict_proba", X, single=False)


def predict(model: MultiLabelClassifier, X: Any) -> Any:
    """Return the predicted labels of each row, lazily.

    Parameters
    ----------
    model : classifier
        A fitted classifier of this package. Training it after this call does not change the result.
    X : dask Array or dask DataFrame of shape (n_samples, n_features)
        The rows, in blocks.

    Returns
    -------
    dask Array, DataFrame or Series
        An indicator matrix of 0 and 1 (int64) with one column per label or, if y was 1-D, one class per row. The result
        has the blocks of X; a DataFrame or Series also has the index of X.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import mlca.dask
    >>> from mlca import MLCA
    >>> rows = pd.DataFrame({"height": [1.0, 1.1, 8.0, 8.1]}, index=["a", "b", "c", "d"])
    >>> model = MLCA().fit(rows, [{"low"}, {"low"}, {"high"}, {"high"}])
    >>> mlca.dask.predict(model, dd.from_pandas(rows, npartitions=2)).compute()
       low  high
    a    1     0
    b    1     0
    c    0     1
    d    0     1
    """
    fitted = model._fitted()
    return _by_blocks(fitted, "predict", X, single=fitted.labels_.single)


def fit(model: MLCA, X: Any, y: Any, timeout: float = 3600.0) -> MLCA:
    """Train one model per block on the workers, and combine the models.

    The models are combined by `merge(..., how="append")` in a tree. The result depends only on the blocks and their
    order; the number of workers and the schedule do not change a single bit. Dask repeats the work of a worker that
    dies.

    Parameters
    ----------
    model : MLCA
        A model with the parameters to use; `vigilance` must be a number. It is not changed. `verbose=True` shows
        progress in this process.
    X : dask Array or dask DataFrame of shape (n_samples, n_features)
        The rows, in blocks. Blocks of fewer rows than `window` are learned in sequence when models are combined.
    y : dask Array, DataFrame, Series or Bag
        The labels of the rows, as in `partial_fit`.
    timeout : float, default=3600
        On a cluster, the longest time in seconds without a finished block.

    Returns
    -------
    MLCA
        A new model. It predicts, continues training and is saved like any other.

    Raises
    ------
    ValueError
        If the blocks of X and y do not match, a block is invalid, or the models of the blocks cannot be merged.
    TimeoutError
        If the workers of a cluster finish no block within `timeout` seconds.

    Examples
    --------
    >>> import dask.array as da
    >>> import mlca.dask
    >>> from mlca import MLCA
    >>> X = da.random.default_rng(0).normal(size=(300, 4), chunks=(100, 4))
    >>> mlca.dask.fit(MLCA(), X, (X > 0).astype(int)).n_seen_
    300
    """
    if not isinstance(model, MLCA):
        raise TypeError(f"model must be an MLCA, because only such models can be merged; got a {type(model).__name__}")
    if model.vigilance == "auto":
        raise ValueError("with vigilance='auto', each block would estimate a different vigilance; set it to a number")
    template = delayed(clone(model).set_params(verbose=False), pure=False)
    learn, count, append = (delayed(task, pure=False) for task in (_learned_block, _Count.of, _appended))
    blocks = enumerate(_paired_blocks(X, y))
    models = [learn(template, rows, targets, number) for number, (rows, targets) in blocks]
    counts = [count(part) for part in models]
    while len(models) > 1:
        models = [append(models[low : low + FAN_IN]) for low in range(0, len(models), FAN_IN)]
    client = getattr(get_scheduler(), "__self__", None)  # type: ignore[no-untyped-call]
    with Progress() if model.verbose is True else nullcontext() as progress:
        seen = _Seen(progress, len(counts))
        if isinstance(client, Client):
            whole = _computed_by_workers(client, models[0], counts, seen, timeout)
        else:
            with Callback(posttask=lambda key, result, *_: seen.note(result)):  # type: ignore[no-untyped-call]
                whole = compute(models[0], *counts)[0]  # type: ignore[no-untyped-call]
    if whole is None:
        raise ValueError("X has no rows; pass at least one")
    fitted: MLCA = whole.set_params(verbose=model.verbose)
    return fitted


def partial_fit(model: Model, X: Any, Y: Any, classes: Iterable[Hashable] | None = None) -> Model:
    """Learn the blocks in order, with the same result as one `partial_fit` per block.

    Parameters
    ----------
    model : classifier
        The model to train. It stays in this process, and the blocks are loaded here.
    X : dask Array or dask DataFrame of shape (n_samples, n_features)
        The rows, in blocks.
    Y : dask Array, DataFrame, Series or Bag
        The labels in any form that `partial_fit` takes, in the same blocks. An array is divided into the blocks of X if
        the lengths of both are known. Label lists in a Series, which Dask converts to strings, are parsed back into
        lists.
    classes : iterable of hashable, optional
        Labels to expect, as in `MLCA.partial_fit`.

    Returns
    -------
    classifier
        The same model, trained.

    Raises
    ------
    ValueError
        If the blocks of X and Y do not match, or a block is invalid. The blocks before it stay learned.

    Examples
    --------
    >>> import dask.array as da
    >>> import mlca.dask
    >>> from mlca import MLCA
    >>> X = da.random.default_rng(0).normal(size=(300, 4), chunks=(100, 4))
    >>> mlca.dask.partial_fit(MLCA(), X, (X > 0).astype(int)).n_seen_
    300
    """
    for number, (rows, targets) in enumerate(_paired_blocks(X, Y)):
        x, y = compute(rows, targets)  # type: ignore[no-untyped-call]
        if len(y) == 0 and x.shape[0] == 0:
            continue
        try:
            model.partial_fit(x, _with_lists(y), classes)
        except ValueError as error:
            error.add_note(f"This was block {number} of X and Y; the blocks before it are learned.")
            raise
    return model


class _Count(NamedTuple):
    """The numbers of rows and nodes of a finished block's model."""

    rows: int
    nodes: int

    @classmethod
    def of(cls, part: MLCA | None) -> _Count:
        return cls(0, 0) if part is None else cls(part.n_seen_, part.n_nodes_)


class _Seen:
    """Reports progress over blocks, which may finish in any order."""

    def __init__(self, progress: Progress | None, n_blocks: int) -> None:
        self._progress, self._n_blocks = progress, n_blocks
        self._done = self._nodes = 0

    def note(self, result: Any) -> None:
        if self._progress is None or not isinstance(result, _Count):
            return
        self._done += 1
        self._nodes += result.nodes
        self._progress.advance(result.rows, self._done / self._n_blocks, self._nodes)


def _computed_by_workers(client: Any, whole: Any, counts: list[Any], seen: _Seen, timeout: float) -> Any:
    """Compute a model on a cluster; raise TimeoutError if no block finishes in time."""
    futures = client.compute([whole, *counts])
    finished: Any = as_completed(futures)  # type: ignore[no-untyped-call]
    deadline = monotonic() + timeout
    while not finished.is_empty():
        batch = finished.next_batch(block=False)
        for future in batch:
            if future is not futures[0]:
                seen.note(future.result(timeout=timeout))
        if batch:
            deadline = monotonic() + timeout
        elif monotonic() > deadline:
            raise TimeoutError(
                f"no block was finished within {timeout:g} s; {finished.count()} tasks are left, and the cluster has "
                f"{len(client.nthreads())} workers"
            )
        else:
            sleep(POLL)
    return futures[0].result(timeout=timeout)


def _learned_block(template: MLCA, rows: Any, targets: Any, number: int) -> MLCA | None:
    if len(targets) == 0 and rows.shape[0] == 0:
        return None
    try:
        model: MLCA = clone(template)
        return model.fit(rows, _with_lists(targets))
    except ValueError as error:
        error.add_note(f"This was block {number} of X and y.")
        raise


def _appended(parts: list[MLCA | None]) -> MLCA | None:
    learned = [part for part in parts if part is not None]
    return merge(learned, how="append") if learned else None


def _with_lists(y: Any) -> Any:
    """Return the labels of a block, with lists restored if Dask converted them to strings."""
    if not isinstance(y, pd.Series):
        return y
    cells = y.dropna()
    all_lists = all(isinstance(cell, str) and list_in_text(cell) is not None for cell in cells)
    return labels_from(y) if len(cells) and all_lists else y


def _by_blocks(model: MultiLabelClassifier, method: str, X: Any, single: bool) -> Any:
    # The model is copied, because it may continue training before the result is computed. As a separate task, the copy
    # is sent only once to each worker.
    frozen = delayed(copy.deepcopy(model), pure=False)
    if _is_array(X):
        meta = _empty_answer(model, method, single)
        chunks = (X.chunks[0],) if single else (X.chunks[0], (len(model.classes_),))
        whole_rows = X.rechunk({1: X.shape[1]})
        return whole_rows.map_blocks(
            _predict_block, frozen, method, meta, drop_axis=[1] if single else [], chunks=chunks, meta=meta
        )
    if _is_frame(X):
        meta = _framed(_empty_answer(model, method, single), X._meta.index, model)
        return X.map_partitions(_predict_frame, frozen, method, meta, meta=meta)
    raise TypeError(f"X is a {type(X).__name__}; mlca.dask takes dask arrays and dask DataFrames")


def _empty_answer(model: MultiLabelClassifier, method: str, single: bool) -> Any:
    """Return the result for a block without rows: an empty array of the right width and type."""
    if single:
        return np.empty(0, model.classes_.dtype)
    return np.empty((0, len(model.classes_)), np.float64 if method == "predict_proba" else np.int64)


def _predict_block(rows: Any, model: MultiLabelClassifier, method: str, empty: Any) -> Any:
    return getattr(model, method)(rows) if rows.shape[0] > 0 else empty


def _predict_frame(rows: pd.DataFrame, model: MultiLabelClassifier, method: str, empty: Any) -> Any:
    return _framed(getattr(model, method)(rows), rows.index, model) if len(rows) > 0 else empty


def _framed(answer: Any, index: pd.Index, model: MultiLabelClassifier) -> Any:
    if answer.ndim == 1:
        return pd.Series(answer, index=index)
    return pd.DataFrame(answer, index=index, columns=list(model.labels_.names))


def _paired_blocks(X: Any, Y: Any) -> Iterator[tuple[Any, Any]]:
    """Return the blocks of X, each with its labels, as delayed objects in order."""
    if _is_array(X) and _is_array(Y) and X.shape[0] == Y.shape[0]:
        Y = Y.rechunk({0: X.chunks[0]})
    rows, targets = _blocks(X), _blocks(Y)
    if len(rows) != len(targets):
        raise ValueError(
            f"X has {len(rows)} blocks and Y {len(targets)}; divide both into the same blocks: use repartition, or "
            "compute_chunk_sizes and rechunk"
        )
    return zip(rows, targets, strict=True)


def _blocks(collection: Any) -> list[Any]:
    if _is_array(collection):
        if collection.ndim == 2:
            collection = collection.rechunk({1: collection.shape[1]})
        return list(collection.to_delayed().ravel())
    if hasattr(collection, "to_delayed"):
        return list(collection.to_delayed())
    raise TypeError(f"a {type(collection).__name__} is not a Dask collection; call the partial_fit of the model")


def _is_array(collection: Any) -> bool:
    return isinstance(collection, da.Array)


def _is_frame(collection: Any) -> bool:
    return isinstance(collection, dd.DataFrame)

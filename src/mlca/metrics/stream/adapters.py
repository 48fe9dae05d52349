"""A common interface to models that learn arrays and to models that learn dicts.

An adapter reads an item of the stream into a `StreamBatch`, in the input format of its model, and converts the model's
predictions to matrices with one column per label known so far. Only learning and predicting are timed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlca.metrics.inputs import Scores, Truth, label_matrix, score_matrix
from mlca.targets import LabelRows, LabelSet, read_targets


@dataclass(frozen=True)
class StreamBatch:
    """Rows of a stream in the input format of the model, with their labels."""

    X: Any
    Y: Any
    labels: LabelSet
    targets: LabelRows

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of labels known so far."""
        return self.targets.n_rows, self.targets.n_labels

    def truth(self) -> Truth:
        """Return the true labels as a matrix."""
        return self.targets.to_csr().astype(np.bool_)


class Adapter(Protocol):
    """The interface that the test-then-train loop needs."""

    known: LabelSet | None
    """The labels that the model knows before the stream begins; None if the model is empty."""

    def read(self, X: Any, Y: Any, known: LabelSet | None) -> StreamBatch:
        """Read one item of the stream."""

    def learn(self, batch: StreamBatch) -> None:
        """Learn the rows of a batch."""

    def predict(self, batch: StreamBatch) -> Any:
        """Predict the label set of each row."""

    def predict_scores(self, batch: StreamBatch) -> Any:
        """Predict the score of each label for each row."""

    def novelty(self, batch: StreamBatch) -> NDArray[np.float64] | None:
        """Return the novelty of the rows, from 0 to 1; None if the model cannot compute it."""

    def n_nodes(self) -> int | None:
        """Return the number of nodes; None if the model has no nodes."""

    def as_labels(self, answer: Any, batch: StreamBatch) -> Truth:
        """Return predicted label sets as a matrix with one column per label of the batch."""

    def as_scores(self, answer: Any, batch: StreamBatch) -> Scores:
        """Return predicted scores as an array with one column per label of the batch."""


def adapter_of(model: Any) -> Adapter:
    """Return the adapter for a model."""
    if hasattr(model, "partial_fit"):
        return ArrayAdapter(model)
    if hasattr(model, "learn_one"):
        return RiverAdapter(model)
    raise TypeError(
        f"{type(model).__name__} has neither partial_fit nor learn_one: prequential needs a model that "
        "learns incrementally"
    )


class ArrayAdapter:
    """Adapter for array models with scikit-learn's interface, such as those of mlca."""

    def __init__(self, model: Any) -> None:
        self._model = model
        labels = getattr(model, "labels_", None)
        self.known = labels if isinstance(labels, LabelSet) else None

    def read(self, X: Any, Y: Any, known: LabelSet | None) -> StreamBatch:
        """Read a batch of rows, or one row, which becomes a batch of one."""
        if isinstance(X, Mapping):
            raise ValueError(
                f"the row is a dict, but {type(self._model).__name__} learns arrays: "
                "use mlca.river.MLCAClassifier, or a stream of arrays"
            )
        X, Y = _as_batch(X, Y)
        labels, targets = read_targets(Y, known)
        _require_as_many_rows(X, targets)
        return StreamBatch(X, Y, labels, targets)

    def learn(self, batch: StreamBatch) -> None:
        """Learn the rows of a batch."""
        self._model.partial_fit(batch.X, batch.Y)

    def predict(self, batch: StreamBatch) -> Any:
        """Predict the label set of each row."""
        return self._model.predict(batch.X)

    def predict_scores(self, batch: StreamBatch) -> Any:
        """Predict the score of each label for each row."""
        return self._model.predict_proba(batch.X)

    def novelty(self, batch: StreamBatch) -> NDArray[np.float64] | None:
        """Return the novelty of the rows; None if the model cannot compute it."""
        try:
            return np.asarray(self._model.novelty(batch.X), dtype=np.float64)
        except AttributeError:  # the method does not exist, or MLCA's decision does not support it
            return None

    def n_nodes(self) -> int | None:
        """Return the number of nodes; None if the model has no nodes."""
        return getattr(self._model, "n_nodes_", None)

    def as_labels(self, answer: Any, batch: StreamBatch) -> Truth:
        """Return predicted label sets as a matrix with one column per label of the batch."""
        if batch.labels.single:
            answer = np.equal.outer(np.asarray(answer), batch.labels.to_array())
            return label_matrix(answer, "the model's prediction")
        predicted = label_matrix(answer, "the model's prediction")
        columns = self._columns(predicted.shape[1], batch.labels)
        moved = sp.csr_array((predicted.data, columns[predicted.indices], predicted.indptr), shape=batch.shape)
        moved.sort_indices()
        return moved

    def as_scores(self, answer: Any, batch: StreamBatch) -> Scores:
        """Return scores, one column per label of the batch; labels without a score get 0."""
        known = score_matrix(answer, "the model's probabilities")
        scores = np.zeros(batch.shape)
        scores[:, self._columns(known.shape[1], batch.labels)] = known
        return scores

    def _columns(self, width: int, labels: LabelSet) -> NDArray[np.intp]:
        """Return the column index in the stream of each of the model's columns."""
        names = range(width) if labels.numbered else np.asarray(self._model.classes_).tolist()
        return np.array(list(_columns_by_name(names, labels).values()), dtype=np.intp)


class RiverAdapter:
    """Adapter for multi-label models with River's interface, which use dicts."""

    known: LabelSet | None = None

    def __init__(self, model: Any) -> None:
        self._model = model

    def read(self, X: Any, Y: Any, known: LabelSet | None) -> StreamBatch:
        """Read a row of dicts unchanged; turn arrays into dicts with numbered or named features."""
        if isinstance(X, Mapping):
            if not isinstance(Y, Mapping):
                raise ValueError(
                    f"the row is a dict, but its labels are a {type(Y).__name__}: pass a dict {{label: bool}}"
                )
            labels, targets = read_targets([tuple(name for name, true in Y.items() if true)], known, classes=Y)
            return StreamBatch([X], [Y], labels, targets)
        X, Y = _as_batch(X, Y)
        labels, targets = read_targets(Y, known)
        _require_as_many_rows(X, targets)
        return StreamBatch(list(_dict_rows(X)), list(_dict_labels(targets, labels)), labels, targets)

    def learn(self, batch: StreamBatch) -> None:
        """Learn the rows one by one."""
        for x, y in zip(batch.X, batch.Y, strict=True):
            self._model.learn_one(x, y)

    def predict(self, batch: StreamBatch) -> Any:
        """Predict the label set of each row."""
        return [self._model.predict_one(x) for x in batch.X]

    def predict_scores(self, batch: StreamBatch) -> Any:
        """Predict the score of each label for each row."""
        return [self._model.predict_proba_one(x) for x in batch.X]

    def novelty(self, batch: StreamBatch) -> NDArray[np.float64] | None:
        """Return the novelty of the rows; None if the model cannot compute it."""
        try:
            return np.array([self._model.novelty_one(x) for x in batch.X], dtype=np.float64)
        except AttributeError:  # the method does not exist, or MLCA's decision does not support it
            return None

    def n_nodes(self) -> int | None:
        """Return the model's `n_nodes`, which River's trees also have; None if it has none."""
        return getattr(self._model, "n_nodes", None)

    def as_labels(self, answer: Any, batch: StreamBatch) -> Truth:
        """Return predicted label sets as a matrix with one column per label of the batch."""
        return label_matrix(_table(answer, batch.labels).astype(np.bool_), "the model's prediction")

    def as_scores(self, answer: Any, batch: StreamBatch) -> Scores:
        """Return probabilities, one column per label of the batch; unpredicted labels get 0."""
        of_true = [{name: chances.get(True, 0.0) for name, chances in row.items()} for row in answer]
        return score_matrix(_table(of_true, batch.labels), "the model's probabilities")


def _as_batch(X: Any, Y: Any) -> tuple[Any, Any]:
    """Convert a single row with its labels to a batch of one; return a batch unchanged."""
    if sp.issparse(X) or hasattr(X, "columns"):
        return X, Y
    rows = np.asarray(X)
    if rows.ndim == 2:
        return X, Y
    if sp.issparse(Y):
        return rows[np.newaxis], Y
    if hasattr(Y, "__array__"):
        return rows[np.newaxis], np.asarray(Y)[np.newaxis]
    # An empty list would be read as an indicator matrix without columns; an empty tuple is a row without labels.
    return rows[np.newaxis], [() if Y == [] else Y]


def _require_as_many_rows(X: Any, targets: LabelRows) -> None:
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != targets.n_rows:
        raise ValueError(f"X has {n_rows} rows, but Y has {targets.n_rows}: each row needs its labels")


def _dict_rows(X: Any) -> Iterator[dict[Hashable, float]]:
    """Yield each row as {feature: value}; for a sparse matrix, only non-zero values."""
    if sp.issparse(X):
        matrix = sp.csr_array(X)
        for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            cells = slice(start, stop)
            yield dict(zip(matrix.indices[cells].tolist(), matrix.data[cells].tolist(), strict=True))
        return
    names = list(getattr(X, "columns", range(np.shape(X)[1])))
    for row in np.asarray(X).tolist():
        yield dict(zip(names, row, strict=True))


def _dict_labels(targets: LabelRows, labels: LabelSet) -> Iterator[dict[Hashable, bool]]:
    """Yield each row's labels as {name: bool}, for all labels known so far."""
    for row in targets.to_dense().astype(np.bool_).tolist():
        yield dict(zip(labels.names, row, strict=True))


def _table(rows: Sequence[Mapping[Hashable, Any]], labels: LabelSet) -> NDArray[np.float64]:
    """Return {label: value} rows as a table; labels that a row does not contain get 0."""
    table = np.zeros((len(rows), len(labels.names)))
    columns = _columns_by_name((name for row in rows for name in row), labels)
    for i, row in enumerate(rows):
        for name, value in row.items():
            table[i, columns[name]] = value
    return table


def _columns_by_name(names: Iterable[Hashable], labels: LabelSet) -> dict[Hashable, int]:
    """Return the column index in the stream of each label of a model, in the model's order."""
    number = {name: column for column, name in enumerate(labels.names)}
    try:
        return {name: number[name] for name in names}
    except KeyError as unknown:
        raise ValueError(
            f"the model predicts the label {unknown}, which is not in the stream: "
            "start with an empty model, or include all of its labels in the first item"
        ) from None

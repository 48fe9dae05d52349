"""The common interface of all classifiers: scikit-learn's, with a growing label set.

`MultiLabelClassifier` checks its input, passes checked rows and `LabelRows` to the subclass, and returns predictions in
the form of the training labels: an indicator matrix, or classes if y was 1-D. `StreamClassifier` adds `partial_fit`. A
subclass implements four methods, which receive only checked input:

    _check_parameters   raise ValueError on an invalid parameter
    _begin              start a new model for rows with `n_features` columns
    _learn              learn rows
    _probabilities      return the probabilities of labels for rows, one column per label

All input is checked before the model changes, so a call that rejects its input leaves the model unchanged.
"""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, Self, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from mlca.kernels import native
from mlca.limits import LARGEST_VALUE
from mlca.targets import LabelRows, LabelSet, exact_share, read_targets

Rows: TypeAlias = Union[NDArray[np.float64], sparse.csr_array]  # noqa: UP007 - SciPy has no types


class MultiLabelClassifier(ClassifierMixin, BaseEstimator):
    """A multi-label classifier that `fit` trains on all rows at once."""

    _accepts_sparse = True
    _allows_missing = False  # whether NaN is accepted as a missing value
    _most_features = sys.maxsize

    labels_: LabelSet
    n_features_in_: int

    @abstractmethod
    def _check_parameters(self) -> None: ...

    @abstractmethod
    def _begin(self, n_features: int, sparse_rows: bool) -> None: ...

    @abstractmethod
    def _learn(self, rows: Rows, targets: LabelRows) -> None: ...

    def _learn_all(self, rows: Rows, targets: LabelRows) -> None:
        """Learn the rows passed to `fit`; subclasses may pass over them several times."""
        self._learn(rows, targets)

    @abstractmethod
    def _probabilities(self, rows: Rows) -> NDArray[np.float64]: ...

    def _decide(self, probabilities: NDArray[np.float64], rows: Rows) -> NDArray[np.bool_]:
        """Choose the labels of each row: those more likely than not."""
        return probabilities > 0.5

    def _chosen(self, rows: Rows) -> NDArray[np.bool_]:
        """Return the labels predicted for checked rows."""
        return self._decide(self._probabilities(rows), rows)

    @property
    def classes_(self) -> NDArray[Any]:
        """The names of the labels, in the order of their columns."""
        return self.labels_.to_array()

    def fit(self, X: Any, y: Any) -> Self:
        """Train a new model on rows, in the given order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : indicator matrix, iterables of label names, or 1-D array
            The labels of the rows.

        Returns
        -------
        self
        """
        with turn_of(self):
            self._check_parameters()
            labels, targets = read_targets(y)
            rows = self._read_rows(X, targets)
            self._start_afresh(X, rows, labels)
            self._learn_all(rows, targets)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each label for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Column j belongs to `classes_[j]`. If y was 1-D, each row sums to 1.
        """
        model = self._fitted()
        return model._normalised(model._probabilities(model._read_known_rows(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels of each row, in the form of the training labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray
            An indicator matrix (n_samples, n_labels) of 0 and 1; if y was 1-D, one class per row.
        """
        model = self._fitted()
        rows = model._read_known_rows(X)
        if model.labels_.single:
            likeliest = np.argmax(model._probabilities(rows), axis=1)
            # Names are read last, because another thread may have added labels.
            classes: NDArray[Any] = model.classes_[likeliest]
            return classes
        return model._chosen(rows).astype(np.int64)

    def predict_labels(self, X: Any) -> list[set[Hashable]]:
        """Return the names of the predicted labels of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        list of set
            One set per row; if y was 1-D, it has one class.
        """
        model = self._fitted()
        predicted = model.predict(X)
        if model.labels_.single:
            return [{name} for name in predicted.tolist()]
        return model.labels_.name_rows(predicted)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the subset accuracy: the share of rows whose label sets are predicted exactly.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows.
        y : indicator matrix, iterables of label names, or 1-D array
            The true labels, in any form that `fit` takes. A row with a label unknown to the model counts as wrong.
        sample_weight : array-like of shape (n_samples,), optional
            The weight of each row.

        Returns
        -------
        float

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA().fit([[0.0], [0.1], [1.0]], [{"low"}, {"low"}, {"high"}])
        >>> model.score([[0.05], [0.9]], [{"low"}, {"high", "loud"}])
        0.5
        """
        model = self._fitted()
        predicted = model.predict(X)
        return exact_share(y, model.labels_, predicted, sample_weight)

    def _start_afresh(self, X: Any, rows: Rows, labels: LabelSet, **known: Any) -> None:
        """Replace the model by an empty one atomically, so that interrupts are safe.

        Additional keywords are passed to `_begin`.
        """
        fresh = self._apart()
        validate_data(fresh, X, reset=True, skip_check_array=True)
        fresh._begin(rows.shape[1], sparse.issparse(rows), **known)
        fresh.labels_ = labels
        self.__dict__ = fresh.__dict__

    def _fitted(self) -> Self:
        """Return a view of the current state that a `fit` in another thread cannot replace.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        """
        fitted = object.__new__(type(self))
        fitted.__dict__ = self.__dict__
        if not hasattr(fitted, "labels_"):  # scikit-learn's check is slow, so it is called only to raise its error
            check_is_fitted(fitted, "labels_")
        return fitted

    def __getstate__(self) -> Any:
        """Return the state for copies and pickles, without the lock."""
        state = dict(super().__getstate__())
        state.pop("_turn", None)
        return state

    def _apart(self) -> Self:
        """Return a shallow copy to modify; assign its `__dict__` back to apply all changes."""
        apart = object.__new__(type(self))
        apart.__dict__ = dict(self.__dict__)
        return apart

    def _normalised(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self.labels_.single:
            return probabilities
        totals = probabilities.sum(axis=1, keepdims=True)
        # If all probabilities of a row are 0, its classes are equally likely.
        shares = np.full(probabilities.shape, 1 / max(1, probabilities.shape[1]))
        np.divide(probabilities, totals, out=shares, where=totals > 0)
        return shares

    def _read_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        """Return checked rows; `targets`, if given, must have one entry per row."""
        # Fast path for streams: a float64 array is only checked for values out of range. Slices of a Fortran-ordered
        # array, such as `frame.to_numpy()` returns, are copied.
        is_float_matrix = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size
        rows: Rows = X if not is_float_matrix or X.flags.c_contiguous else np.ascontiguousarray(X)
        if not (is_float_matrix and native.all_within(rows, LARGEST_VALUE)) and not self._is_ready(X):
            rows = self._converted(X)
        if targets is not None and targets.n_rows != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows but y has {targets.n_rows}; each row needs its labels")
        if rows.shape[1] > (most := self._most_features):
            raise ValueError(f"X has {rows.shape[1]} features, more than the limit of {most}; select some of them")
        return rows

    def _is_ready(self, X: Any) -> bool:
        """Return whether X is a valid sparse matrix that needs no conversion."""
        ready = type(X) is sparse.csr_array and self._accepts_sparse and X.dtype == np.float64 and all(X.shape)
        if not (ready and X.has_canonical_format and X.data.all()):
            return False
        present = np.nan_to_num(X.data, nan=1.0) if self._allows_missing else X.data
        return bool(native.all_within(present[np.newaxis], LARGEST_VALUE))

    def _converted(self, X: Any) -> Rows:
        """Return finite float64 rows, C-contiguous or CSR; NaN only if it is allowed."""
        checked = self._checked(X)
        rows = _canonical(checked) if sparse.issparse(checked) else checked
        values: NDArray[np.float64] = np.asarray(rows.data if sparse.issparse(rows) else rows)
        if values.size and np.nanmax(np.abs(values), initial=0.0) > LARGEST_VALUE:
            place = place_beyond(LARGEST_VALUE, rows, X)
            raise ValueError(f"{place}, beyond {LARGEST_VALUE:g}, where squares overflow; rescale the column")
        return rows

    def _checked(self, X: Any) -> Any:
        if isinstance(X, Iterator):
            raise ValueError(
                f"X is a {type(X).__name__}, which can be read only once; pass np.array(list(X)), or pass the rows to "
                "partial_fit in batches"
            )
        _reject_texts(X)
        check = partial(
            check_array,
            without_mask(X),
            accept_sparse="csr" if self._accepts_sparse else False,
            dtype=np.float64,
            order="C",
            estimator=self,
            input_name="X",
        )
        try:
            with np.errstate(invalid="ignore"):  # scikit-learn sums X, where huge values of both signs give inf - inf
                return check(ensure_all_finite=self._finite)
        except (ValueError, OverflowError) as error:
            _reject_cells(X)
            if "infinity" not in str(error):
                raise
            place = place_beyond(np.finfo(np.float64).max, check(ensure_all_finite=False), X)
            remedy = "write NaN for a missing value" if self._allows_missing else "correct it"
            raise ValueError(f"{str(error).rstrip('.')}: {place}; {remedy}, or leave the row out") from None

    @property
    def _finite(self) -> bool | Literal["allow-nan"]:
        return "allow-nan" if self._allows_missing else True

    def _read_known_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        """Return checked rows, which must have the columns of the fitted model."""
        if type(X) is not np.ndarray:
            known = self._rows_of_known_frame(X)
            if known is not None and (targets is None or targets.n_rows == len(known)):
                return known
            X = self._known_columns(X)
        rows = self._read_rows(X, targets)
        # For an array without names, scikit-learn checks the width only.
        if type(X) is not np.ndarray or X.shape[1] != self.n_features_in_ or "feature_names_in_" in self.__dict__:
            self._check_features(X, rows)
        return rows

    def _check_features(self, X: Any, rows: Rows) -> None:
        """Raise ValueError unless X, read as `rows`, has the features of the fitted model."""
        validate_data(self, X, reset=False, skip_check_array=True)

    def _rows_of_known_frame(self, X: Any) -> Rows | None:
        """Return the rows of a numeric frame with the model's columns; None for other input."""
        names = self.__dict__.get("feature_names_in_")
        if names is None or not (hasattr(X, "iloc") and hasattr(X, "columns")) or X.columns.tolist() != names.tolist():
            return None
        values = X.to_numpy()
        if values.dtype.kind not in "biuf" or not values.size:
            return None
        rows = np.ascontiguousarray(values, dtype=np.float64)
        present = np.nan_to_num(rows) if self._allows_missing else rows
        return rows if native.all_within(present, LARGEST_VALUE) else None

    def _known_columns(self, X: Any) -> Any:
        """Return the columns of X that the fitted model knows, in the model's order."""
        return X

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of what this classifier supports."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.allow_nan = self._allows_missing
        return tags


class StreamClassifier(MultiLabelClassifier):
    """A multi-label classifier with `partial_fit`, whose label set may grow."""

    def _check_continuation(self) -> None:
        """Raise ValueError if parameters are invalid or changed since training began."""
        self._check_parameters()

    def partial_fit(self, X: Any, y: Any, classes: Iterable[Hashable] | None = None) -> Self:
        """Continue training with more rows, in the given order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : indicator matrix, iterables of label names, or 1-D array
            The labels of the rows. A wider indicator matrix than before, or a new name, adds labels.
        classes : iterable of hashable, optional
            Labels to expect, in the order of their columns. Needed only to fix that order or to name matrix columns.

        Returns
        -------
        self
        """
        with turn_of(self):
            known = getattr(self, "labels_", None)
            if known is None:
                self._check_parameters()
                labels, targets = read_targets(y, None, classes)
                rows = self._read_rows(X, targets)
                self._start_afresh(X, rows, labels)
            else:
                self._check_continuation()
                labels, targets = read_targets(y, known, classes)
                rows = self._read_known_rows(X, targets)
                if labels is not known:
                    self.labels_ = labels
            self._learn(rows, targets)
        return self


def turn_of(model: BaseEstimator) -> Any:
    """Return the lock that a thread holds while it changes a model."""
    turn = model.__dict__.get("_turn")
    return model.__dict__.setdefault("_turn", threading.RLock()) if turn is None else turn


def place_beyond(bound: float, rows: Any, X: Any) -> str:
    """Describe the first value beyond a bound: row, column (by name if possible), value."""
    if sparse.issparse(rows):
        first = int(np.argmax(np.abs(rows.data) > bound))
        row, column = int(np.searchsorted(rows.indptr, first, side="right")) - 1, int(rows.indices[first])
        value = rows.data[first]
    else:
        row, column = divmod(int(np.argmax(np.abs(rows) > bound)), rows.shape[1])
        value = rows[row, column]
    name = repr(X.columns[column]) if hasattr(X, "columns") else column
    return f"row {row}, column {name} of X holds {value:g}"


def _reject_texts(X: Any) -> None:
    """Raise ValueError if X is a string or a 1-D collection of strings."""
    texts, written = ([X], "[X]") if isinstance(X, str) else (X, "X")
    if isinstance(texts, list | tuple) or (len(getattr(X, "shape", ())) == 1 and not sparse.issparse(X)):
        first = next(iter(texts), None)
        if isinstance(first, str) and not _is_number(first):
            raise ValueError(
                f"X must have rows and columns; got the string {str(first)[:40]!r} ({type(X).__name__}); pass a "
                f'DataFrame with a named column to MLCA: pandas.DataFrame({{"text": {written}}})'
            )


def _reject_cells(X: Any) -> None:
    """Raise ValueError with the position of the first string or overflowing integer, if any."""
    if not isinstance(X, list | tuple | np.ndarray):
        return
    for row, cells in enumerate(X):
        for column, cell in enumerate(cells if isinstance(cells, list | tuple | np.ndarray) else ()):
            if isinstance(cell, str) and not _is_number(cell):
                raise ValueError(
                    f"could not convert string to float: row {row}, column {column} of X holds {str(cell)[:40]!r}; "
                    "encode strings as numbers, or pass a DataFrame to MLCA, whose columns may hold strings"
                )
            if isinstance(cell, int) and abs(cell) > sys.float_info.max:
                raise ValueError(
                    f"row {row}, column {column} of X holds a whole number of {cell.bit_length()} bits, more than a "
                    "float can hold; correct it, or leave the row out"
                )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def without_mask(X: Any) -> Any:
    """Return X with masked cells as NaN; reject dates, which NumPy would turn into numbers."""
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError("X is an array of dates or times; put it into a DataFrame column, which MLCA reads as dates")
    return np.ma.filled(X.astype(np.float64), np.nan) if isinstance(X, np.ma.MaskedArray) else X


def _canonical(matrix: Any) -> sparse.csr_array:
    """Return canonical CSR rows, with sorted columns and no zeros; never changes `matrix`."""
    rows = sparse.csr_array(matrix)
    if not (rows.has_canonical_format and rows.data.all()):
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows

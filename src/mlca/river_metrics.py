"""Multi-label metrics for River that support labels which appear late.

River's own metrics look up a prediction for every true label and raise KeyError if a label is new. The metrics of this
module compare label sets: a label that the prediction does not mention counts as not predicted. Undefined
values are left out, as in `mlca.metrics`. Over a whole stream, the results equal those of `mlca.metrics` for matrices
with a column for every label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Set
from typing import Any

from mlca.optional import needing

with needing("mlca.river_metrics", "river"):
    from river.metrics.multioutput.base import MultiOutputClassificationMetric

Answer = Mapping[Hashable, bool]


class LabelSetMetric(MultiOutputClassificationMetric):
    """Base class of metrics over pairs of label sets; `update` adds one, `revert` removes one."""

    def __init__(self) -> None:
        # River's constructor would create a confusion matrix, which raises KeyError on new labels.
        pass

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add the true and the predicted labels of a row.

        Parameters
        ----------
        y_true
            The true labels as a dict. Labels not mentioned are false.
        y_pred
            The predicted labels as a dict. Labels not mentioned are false.
        w
            The weight of the row.
        """
        self._note(y_true, y_pred)
        self._count(_true_labels(y_true), _true_labels(y_pred), w)

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Remove a row that `update` added.

        Parameters
        ----------
        y_true
            The true labels.
        y_pred
            The predicted labels.
        w
            The weight with which the row was added.
        """
        self._count(_true_labels(y_true), _true_labels(y_pred), -w)

    def _note(self, y_true: Answer, y_pred: Answer) -> None:
        """Record the labels that a row mentions; only Hamming loss needs their number."""

    def _count(self, true: Set[Hashable], predicted: Set[Hashable], w: float) -> None:
        raise NotImplementedError


class _RowMean(LabelSetMetric):
    """Base class of metrics that are a mean over rows; rows without a value are left out."""

    def __init__(self) -> None:
        super().__init__()
        self._sum = self._weight = 0.0

    def get(self) -> float:
        """Return the mean; NaN if no row has a value."""
        return self._sum / self._weight if self._weight else float("nan")

    def _count(self, true: Set[Hashable], predicted: Set[Hashable], w: float) -> None:
        value = self._value(true, predicted)
        if value is not None:
            self._sum += w * value
            self._weight += w

    def _value(self, true: Set[Hashable], predicted: Set[Hashable]) -> float | None:
        raise NotImplementedError


class ExactMatch(_RowMean):
    """Share of rows whose label set is predicted exactly; see `mlca.metrics.exact_match`.

    Examples
    --------
    >>> from mlca.river import ExactMatch
    >>> metric = ExactMatch()
    >>> metric.update({"calm": True}, {"calm": True})
    >>> metric.update({"calm": False, "storm": True}, {"calm": False})  # a storm was never seen before
    >>> metric
    ExactMatch: 50.00%
    """

    def _value(self, true: Set[Hashable], predicted: Set[Hashable]) -> float:
        return float(true == predicted)


class ExampleF1(_RowMean):
    """F1 of each row's label set, averaged over the rows; see `mlca.metrics.example_f1`.

    Examples
    --------
    >>> from mlca.river import ExampleF1
    >>> metric = ExampleF1()
    >>> metric.update({"calm": True, "wet": True}, {"calm": True})
    >>> metric
    ExampleF1: 66.67%
    """

    def _value(self, true: Set[Hashable], predicted: Set[Hashable]) -> float | None:
        size = len(true) + len(predicted)
        return 2 * len(true & predicted) / size if size else None


class Jaccard(_RowMean):
    """Mean intersection over union of the label sets; see `mlca.metrics.jaccard`.

    Examples
    --------
    >>> from mlca.river import Jaccard
    >>> metric = Jaccard()
    >>> metric.update({"calm": True, "wet": True}, {"calm": True})
    >>> metric
    Jaccard: 50.00%
    """

    def _value(self, true: Set[Hashable], predicted: Set[Hashable]) -> float | None:
        union = len(true | predicted)
        return len(true & predicted) / union if union else None


class HammingLoss(LabelSetMetric):
    """Share of (row, label) cells that are wrong; see `mlca.metrics.hamming_loss`.

    The cells are all rows times all labels named so far. A late label counts as correctly absent in earlier rows,
    unless it was predicted for them.

    Examples
    --------
    >>> from mlca.river import HammingLoss
    >>> metric = HammingLoss()
    >>> metric.update({"calm": True}, {"calm": True})
    >>> metric.update({"calm": False, "storm": True}, {"calm": False})
    >>> metric
    HammingLoss: 25.00%
    """

    def __init__(self) -> None:
        super().__init__()
        self._labels: set[Hashable] = set()
        self._wrong = self._rows = 0.0

    @property
    def bigger_is_better(self) -> bool:
        """Whether larger values are better; False, because this is a loss."""
        return False

    def get(self) -> float:
        """Return the share of wrong cells; NaN if there are no cells."""
        cells = self._rows * len(self._labels)
        return self._wrong / cells if cells else float("nan")

    def _note(self, y_true: Answer, y_pred: Answer) -> None:
        self._labels.update(y_true, y_pred)

    def _count(self, true: Set[Hashable], predicted: Set[Hashable], w: float) -> None:
        self._wrong += w * len(true ^ predicted)
        self._rows += w


class MicroF1(LabelSetMetric):
    """F1 over all (row, label) cells pooled; see `mlca.metrics.micro_f1`.

    Examples
    --------
    >>> from mlca.river import MicroF1
    >>> metric = MicroF1()
    >>> metric.update({"calm": True}, {"calm": True})
    >>> metric.update({"calm": False, "storm": True}, {"calm": False})
    >>> metric
    MicroF1: 66.67%
    """

    def __init__(self) -> None:
        super().__init__()
        self._hits = self._sizes = 0.0

    def get(self) -> float:
        """Return the F1; NaN while no label is true or predicted."""
        return 2 * self._hits / self._sizes if self._sizes else float("nan")

    def _count(self, true: Set[Hashable], predicted: Set[Hashable], w: float) -> None:
        self._hits += w * len(true & predicted)
        self._sizes += w * (len(true) + len(predicted))


class MacroF1(LabelSetMetric):
    """Mean F1 of the labels that were true or predicted; see `mlca.metrics.macro_f1`.

    Examples
    --------
    >>> from mlca.river import MacroF1
    >>> metric = MacroF1()
    >>> metric.update({"calm": True}, {"calm": True})
    >>> metric.update({"calm": False, "storm": True}, {"calm": False})
    >>> metric
    MacroF1: 50.00%
    """

    def __init__(self) -> None:
        super().__init__()
        self._hits: defaultdict[Hashable, float] = defaultdict(float)
        self._sizes: defaultdict[Hashable, float] = defaultdict(float)

    def get(self) -> float:
        """Return the mean F1 of the labels; NaN if there are no labels."""
        values = [2 * self._hits[label] / size for label, size in self._sizes.items() if size]
        return sum(values) / len(values) if values else float("nan")

    def _count(self, true: Set[Hashable], predicted: Set[Hashable], w: float) -> None:
        for label in true & predicted:
            self._hits[label] += w
        for label in true:
            self._sizes[label] += w
        for label in predicted:
            self._sizes[label] += w


def _true_labels(answer: Any) -> Set[Hashable]:
    if not isinstance(answer, Mapping):
        raise ValueError(f"labels must be a dict {{label: bool}}; got a {type(answer).__name__}")
    return {label for label, true in answer.items() if true}

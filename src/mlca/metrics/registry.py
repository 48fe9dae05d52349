"""The properties of each measure: name, label and direction; and means of defined values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Better: TypeAlias = Literal["higher", "lower"]


@dataclass(frozen=True)
class Measure:
    """A measure with the properties that tables and plots need.

    Examples
    --------
    >>> MEASURES["hamming_loss"].better
    'lower'
    >>> [measure.label for measure in PAPER_MEASURES]
    ['Exact match', 'F1 by example', 'Macro AUC', 'Hamming loss', 'Ranking loss', 'Coverage']
    """

    name: str
    label: str
    better: Better
    paper: bool = False


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("exact_match", "Exact match", "higher", paper=True),
        Measure("example_f1", "F1 by example", "higher", paper=True),
        Measure("macro_auc", "Macro AUC", "higher", paper=True),
        Measure("hamming_loss", "Hamming loss", "lower", paper=True),
        Measure("ranking_loss", "Ranking loss", "lower", paper=True),
        Measure("coverage", "Coverage", "lower", paper=True),
        Measure("micro_auc", "Micro AUC", "higher"),
        Measure("micro_f1", "Micro F1", "higher"),
        Measure("macro_f1", "Macro F1", "higher"),
        Measure("jaccard", "Jaccard by example", "higher"),
        Measure("average_precision", "Average precision", "higher"),
        Measure("one_error", "One-error", "lower"),
        Measure("precision_at_1", "Precision@1", "higher"),
        Measure("precision_at_3", "Precision@3", "higher"),
        Measure("precision_at_5", "Precision@5", "higher"),
        Measure("ndcg_at_1", "nDCG@1", "higher"),
        Measure("ndcg_at_3", "nDCG@3", "higher"),
        Measure("ndcg_at_5", "nDCG@5", "higher"),
    )
}

# The measures of the paper's comparison, in its order.
PAPER_MEASURES: tuple[Measure, ...] = tuple(measure for measure in MEASURES.values() if measure.paper)


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Divide element by element; NaN where the denominator is 0."""
    quotient = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def mean_defined(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")

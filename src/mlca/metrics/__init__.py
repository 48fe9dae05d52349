"""Measures of multi-label predictions.

Inputs are predicted label sets, and scores that order the labels. `inputs` turns them into a boolean CSR matrix and a
float array, or reports what is wrong and where. `sets` counts hits, true and predicted labels by row and by label;
`ranking` finds the rank of each true label in its row, and `auc` in its column. Each measure is then simple arithmetic
on these counts and ranks. It is NaN for rows or labels where it is undefined, and is averaged over the others.
`calibration` compares probabilities with outcomes. `evaluate` computes all measures at once except calibration;
`registry` stores each measure's name and direction (whether higher or lower is better). `stream` evaluates a model
while it learns.
"""

from mlca.metrics.auc import macro_auc, micro_auc
from mlca.metrics.calibration import brier_score, calibration_error
from mlca.metrics.evaluation import Evaluation, evaluate, scorer
from mlca.metrics.ranking import (
    average_precision,
    coverage,
    ndcg_at_k,
    one_error,
    precision_at_k,
    ranking_loss,
)
from mlca.metrics.registry import MEASURES, Better, Measure
from mlca.metrics.sets import exact_match, example_f1, hamming_loss, jaccard, macro_f1, micro_f1
from mlca.metrics.stream import Alarm, Prequential, Record, StreamMeasures, prequential

__all__ = [
    "MEASURES",
    "Alarm",
    "Better",
    "Evaluation",
    "Measure",
    "Prequential",
    "Record",
    "StreamMeasures",
    "average_precision",
    "brier_score",
    "calibration_error",
    "coverage",
    "evaluate",
    "exact_match",
    "example_f1",
    "hamming_loss",
    "jaccard",
    "macro_auc",
    "macro_f1",
    "micro_auc",
    "micro_f1",
    "ndcg_at_k",
    "one_error",
    "precision_at_k",
    "prequential",
    "ranking_loss",
    "scorer",
]

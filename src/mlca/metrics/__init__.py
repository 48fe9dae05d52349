"""How good a prediction is.

Two kinds of things come in: predicted label sets, and scores that put the labels in an order.
`inputs` turns them into a boolean CSR matrix and a float array, or says what is wrong and where.
`sets` counts hits, true and predicted labels by row and by label; `ranking` finds where each true
label stands in its row; `auc` where it stands in its column. Each measure is then a line of
arithmetic on those counts, NaN where a row or a label says nothing, and `averages` takes the mean of
the rest. `calibration` holds probabilities against what happened. `evaluate` does all but that in one
go; `registry` knows each measure's direction, for the tables, ranks and plots downstream. `stream`
measures a model that learns on the way.
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

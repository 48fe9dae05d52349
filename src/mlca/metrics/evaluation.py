"""Computes all measures at once, and so reads each table and computes shared counts once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlca.metrics.auc import macro_auc_of_matrices, micro_auc_of_matrices
from mlca.metrics.inputs import (
    LabelMatrix,
    Scores,
    Truth,
    label_matrix,
    predicted_labels,
    require_same_shape,
    score_matrix,
    true_and_scores,
)
from mlca.metrics.ranking import LabelRanks
from mlca.metrics.registry import MEASURES, mean_defined
from mlca.metrics.sets import SetComparison
from mlca.targets import LabelSet, read_truth
from mlca.validation import check_choice


@dataclass(frozen=True)
class Evaluation:
    """All measures of a set of predictions; NaN where a measure is undefined.

    The fields have the names in `mlca.metrics.MEASURES`, with the paper's six first. `print` shows them as a table,
    and `as_dict` returns them by name.
    """

    exact_match: float
    example_f1: float
    macro_auc: float
    hamming_loss: float
    ranking_loss: float
    coverage: float
    micro_auc: float
    micro_f1: float
    macro_f1: float
    jaccard: float
    average_precision: float
    one_error: float
    precision_at_1: float
    precision_at_3: float
    precision_at_5: float
    ndcg_at_1: float
    ndcg_at_3: float
    ndcg_at_5: float

    def as_dict(self) -> dict[str, float]:
        """Return the measures by name."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{'measure':<20} {'value':>7}  better"]
        for name, value in self.as_dict().items():
            measure = MEASURES[name]
            lines.append(f"{measure.label:<20} {value:>7.4f}  {measure.better}")
        return "\n".join(lines)


def evaluate(
    Y_true: Any,
    proba: ArrayLike | None = None,
    *,
    Y_pred: LabelMatrix | None = None,
    threshold: float | Sequence[float] | None = None,
    model: Any = None,
    X: Any = None,
) -> Evaluation:
    """Compute all measures for the predictions of a model, or for given probabilities.

    Pass `model` and `X` to measure the model's own predictions, or `proba` with the predicted labels (`Y_pred`) or a
    `threshold`. Columns of DataFrames are matched by name.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1. With `model`: labels in any form that `fit` takes; labels unknown to the model count
        as missed.
    proba : array-like of shape (n, q), optional
        Probabilities, or any scores: the higher, the more likely the label.
    Y_pred : array-like or sparse of shape (n, q), optional
        The predicted labels. Default: those whose probability is above `threshold`.
    threshold : float or sequence of float, default 0.5
        A label is predicted where its probability is greater; one number for all labels, or one per label.
    model : classifier, optional
        A fitted classifier of this package, or a pipeline that ends with one.
    X : array-like, sparse matrix or DataFrame, optional
        With `model`: the rows to predict.

    Returns
    -------
    Evaluation
        The measures, which print as a table; `as_dict()` returns them by name.

    Examples
    --------
    >>> print(evaluate([[1, 0, 1], [0, 1, 0]], [[0.9, 0.2, 0.8], [0.6, 0.3, 0.1]]))
    measure                value  better
    Exact match           0.5000  higher
    F1 by example         0.5000  higher
    Macro AUC             1.0000  higher
    Hamming loss          0.3333  lower
    Ranking loss          0.2500  lower
    Coverage              0.5000  lower
    Micro AUC             0.8889  higher
    Micro F1              0.6667  higher
    Macro F1              0.5556  higher
    Jaccard by example    0.5000  higher
    Average precision     0.7500  higher
    One-error             0.5000  lower
    Precision@1           0.5000  higher
    Precision@3           0.5000  higher
    Precision@5           0.3000  higher
    nDCG@1                0.5000  higher
    nDCG@3                0.8155  higher
    nDCG@5                0.8155  higher

    A model chooses labels by its own rule, not necessarily by a threshold of 0.5:

    >>> from mlca import MLCA
    >>> model = MLCA().fit([[0.0], [1.0]], [{"low"}, {"high"}])
    >>> evaluate([{"low"}, {"high"}], model=model, X=[[0.1], [0.9]]).exact_match
    1.0
    """
    if model is not None:
        for name, value in (("proba", proba), ("Y_pred", Y_pred), ("threshold", threshold)):
            if value is not None:
                raise ValueError(
                    f"{name} cannot be combined with a model, which predicts X itself; leave out {name}, or model and X"
                )
        return _measures(*_predicted_by(model, X, Y_true))
    if X is not None:
        raise ValueError("X was passed without a model: add model=..., or pass probabilities as proba instead of X")
    if proba is None:
        raise ValueError("nothing to measure: pass probabilities as proba, or a model and the rows X that it predicts")
    if Y_pred is not None and threshold is not None:
        raise ValueError("threshold chooses labels from proba, but Y_pred already holds labels; pass one of the two")
    true, scores = true_and_scores(Y_true, proba, "proba")
    if Y_pred is None:
        least = 0.5 if threshold is None else threshold
        _check_threshold(least, scores.shape[1])
        return _measures(true, scores, sp.csr_array(scores > least))
    predicted = predicted_labels(Y_true, Y_pred)
    require_same_shape(true, predicted, "Y_pred")
    return _measures(true, scores, predicted)


def _check_threshold(threshold: float | Sequence[float], n_labels: int) -> None:
    """Raise ValueError unless a threshold is one number, or one per label."""
    limits = np.asarray(threshold, dtype=np.float64)
    if limits.shape not in ((), (n_labels,)) or np.isnan(limits).any():
        found = "NaN" if np.isnan(limits).any() else f"an array of shape {limits.shape}"
        raise ValueError(
            f"threshold must be one number, or one for each of the {n_labels} labels; got {found}; "
            "to evaluate predicted labels, pass them as Y_pred"
        )


@dataclass(frozen=True)
class Scorer:
    """A scorer for scikit-learn: ``scorer(model, X, y)`` is higher for better models."""

    measure: str

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        """Return the measure for the model's predictions, negated if lower values are better."""
        value = evaluate(y, model=model, X=X).as_dict()[self.measure]
        return value if MEASURES[self.measure].better == "higher" else -value


def scorer(measure: str) -> Scorer:
    """Return a scorer for scikit-learn functions such as `cross_val_score`.

    Parameters
    ----------
    measure : str
        The name of a measure in `mlca.metrics.MEASURES`. Losses are negated, because scikit-learn maximises scores.

    Returns
    -------
    callable
        Takes a fitted model, rows and their labels in any form that `fit` takes.

    Examples
    --------
    >>> from mlca import MLCA
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> X, tags = [[0.0], [9.0]] * 6, [["calm"], ["storm", "wet"]] * 6
    >>> cross_val_score(MLCA(), X, tags, cv=KFold(2), scoring=scorer("micro_f1")).tolist()
    [1.0, 1.0]
    """
    check_choice("measure", measure, tuple(MEASURES))
    return Scorer(measure)


def _predicted_by(model: Any, X: Any, Y_true: Any) -> tuple[Truth, Scores, Truth]:
    """Return true labels, probabilities and predicted labels with the same columns."""
    if X is None:
        raise ValueError("a model needs the rows X that it predicts: evaluate(Y_true, model=model, X=X)")
    predicted, names = np.asarray(model.predict(X)), tuple(np.asarray(model.classes_).tolist())
    single = predicted.ndim == 1
    _, truth = read_truth(Y_true, LabelSet(names, single=single))
    if truth.n_rows != len(predicted):
        raise ValueError(f"X has {len(predicted)} rows but Y_true has {truth.n_rows}; each row needs its labels")
    if single:
        predicted = np.equal.outer(predicted, np.asarray(model.classes_))
    unknown = ((0, 0), (0, truth.n_labels - len(names)))
    scores = np.pad(score_matrix(model.predict_proba(X), "the model's probabilities"), unknown)
    chosen = np.pad(predicted, unknown)
    return truth.to_csr().astype(np.bool_), scores, label_matrix(chosen, "the model's prediction")


def _measures(true: Truth, scores: Scores, predicted: Truth) -> Evaluation:
    sets = SetComparison.of_matrices(true, predicted)
    ranks = LabelRanks.of_matrices(true, scores)
    return Evaluation(
        exact_match=sets.exact_match(),
        example_f1=sets.example_f1(),
        macro_auc=macro_auc_of_matrices(true, scores),
        hamming_loss=sets.hamming_loss(),
        ranking_loss=mean_defined(ranks.ranking_losses()),
        coverage=mean_defined(ranks.coverages()),
        micro_auc=micro_auc_of_matrices(true, scores),
        micro_f1=sets.micro_f1(),
        macro_f1=sets.macro_f1(),
        jaccard=sets.jaccard(),
        average_precision=mean_defined(ranks.average_precisions()),
        one_error=mean_defined(ranks.one_errors()),
        precision_at_1=mean_defined(ranks.precisions(1)),
        precision_at_3=mean_defined(ranks.precisions(3)),
        precision_at_5=mean_defined(ranks.precisions(5)),
        ndcg_at_1=mean_defined(ranks.ndcgs(1)),
        ndcg_at_3=mean_defined(ranks.ndcgs(3)),
        ndcg_at_5=mean_defined(ranks.ndcgs(5)),
    )

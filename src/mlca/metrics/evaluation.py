"""All measures at once: every table is read once, and what measures share is computed once."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlca.metrics.auc import macro_auc_of_matrices, micro_auc_of_matrices
from mlca.metrics.averages import mean_defined
from mlca.metrics.inputs import LabelMatrix, predicted_labels, require_same_shape, true_and_scores
from mlca.metrics.ranking import LabelRanks
from mlca.metrics.registry import MEASURES
from mlca.metrics.sets import SetComparison


@dataclass(frozen=True)
class Evaluation:
    """Every measure of one prediction; NaN where a measure is undefined.

    The fields carry the names of `mlca.metrics.MEASURES`, the paper's six first. `print` shows them
    as a table, `as_dict` gives them by name.
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
    Y_true: LabelMatrix,
    proba: ArrayLike,
    threshold: float = 0.5,
    *,
    Y_pred: LabelMatrix | None = None,
) -> Evaluation:
    """Compute every measure of a prediction.

    Columns of DataFrames are matched by name.

    Parameters
    ----------
    Y_true : array-like or sparse of shape (n, q)
        Indicator matrix, 0 and 1.
    proba : array-like of shape (n, q)
        Probabilities, or any scores: the higher, the more likely the label.
    threshold : float, default 0.5
        A label is predicted where its probability is greater.
    Y_pred : array-like or sparse of shape (n, q), optional
        The predicted labels, for algorithms that decide by another rule; then `threshold` plays no part.

    Returns
    -------
    Evaluation
        Prints as a table; `as_dict()` gives the values by name.

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
    """
    true, scores = true_and_scores(Y_true, proba, "proba")
    predicted = sp.csr_array(scores > threshold) if Y_pred is None else predicted_labels(Y_true, Y_pred)
    require_same_shape(true, predicted, "Y_pred")

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

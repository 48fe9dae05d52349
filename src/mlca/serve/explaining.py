"""An explanation as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mlca.explanation import Explanation


def explanation_to_json(explanation: Explanation, top: int) -> dict[str, Any]:
    """Return the nodes that voted, and the most likely labels with how they came about.

    Parameters
    ----------
    explanation : Explanation
        What `MLCA.explain` returned.
    top : int
        The number of labels beside those predicted.
    """
    names = explanation.labels
    order = np.argsort(-explanation.posterior, kind="stable")
    predicted = [name for name in names if name in explanation.predicted]
    return {
        "labels": predicted,
        "nodes": [
            {
                "node": int(node),
                "distance": float(distance),
                "rows": int(count),
                "labels": {str(names[j]): float(own[j]) for j in np.flatnonzero(own)},
            }
            for node, distance, count, own in zip(
                explanation.nodes, explanation.distances, explanation.counts, explanation.label_counts, strict=True
            )
        ],
        "probabilities": [
            {
                "label": str(names[j]),
                "probability": float(explanation.posterior[j]),
                "prior": float(explanation.prior[j]),
                "votes": float(explanation.votes[j]),
            }
            for j in order[: max(top, len(predicted))]
        ],
    }

"""An explanation as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlca.serve.rows import Columns, RowsOfX
from mlca.serve.tablerows import NamedCells
from mlca.tables.cells import as_text, is_missing

if TYPE_CHECKING:
    from mlca.explanation import Explanation

# Characters of a text that are shown.
_LONGEST_SHOWN = 200


def explanation_to_json(explanation: Explanation, top: int, columns: Columns, x: RowsOfX) -> dict[str, Any]:
    """Return the nodes that voted, and the most likely labels with how they came about.

    Parameters
    ----------
    explanation : Explanation
        What `MLCA.explain` returned.
    top : int
        The number of labels beside those predicted.
    columns : Columns
        What rows consist of. The model of a table knows its columns, that of numbers calls them x0, x1, ...
    x : ndarray or list of dict
        The row, as the only one.
    """
    names = explanation.labels
    called = {f"x{place}": name for place, name in enumerate(columns.names or ())}
    calibrated = explanation.none is not None
    order = np.argsort(-explanation.posterior, kind="stable")
    predicted = [name for name in names if name in explanation.predicted]
    return {
        "labels": predicted,
        "nodes": [
            {
                "node": int(node),
                "distance": float(distance),
                "rows": int(count),
                "weight": float(weight) if calibrated else None,
                "labels": {str(names[j]): float(label_counts[j]) for j in np.flatnonzero(label_counts)},
            }
            for node, distance, count, weight, label_counts in zip(
                explanation.nodes,
                explanation.distances,
                explanation.counts,
                explanation.weights if calibrated else explanation.distances,
                explanation.label_counts,
                strict=True,
            )
        ],
        "probabilities": [
            {
                "label": str(names[j]),
                "probability": float(explanation.posterior[j]),
                "prior": float(explanation.prior[j]),
                "votes": float(explanation.votes[j]),
                "calibrated": float(explanation.calibrated[j + 1]) if calibrated else None,
                "background": _background(explanation, int(j)),
            }
            for j in order[: max(top, len(predicted))]
        ],
        "none": explanation.none,
        "novelty": explanation.novelty,
        "far": explanation.far,
        "experts": dict(zip(explanation.experts, explanation.expert_weights.tolist(), strict=True)),
        "segments": explanation.trust.tolist(),
        "agreement": {called.get(name, name): share for name, share in explanation.agreement},
        "values": _values(explanation, x[0]) if isinstance(x, list) else [],
    }


def _values(explanation: Explanation, cells: NamedCells) -> list[dict[str, Any]]:
    """Return what the cells of a table's row say, and beside them what the nearest nodes say."""
    return [
        {"column": name, "row": words[0] if is_missing(cells.get(name)) else _shortly(cells[name]), "nodes": words[1:]}
        for name, words in explanation.values
    ]


def _shortly(cell: Any) -> str:
    text = as_text(cell)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} …"


def _background(explanation: Explanation, label: int) -> float | None:
    """Return what the linear score says of a label; it has an entry for having none before those of labels."""
    shift = len(explanation.background) - len(explanation.labels)
    return None if shift < 0 else float(explanation.background[label + shift])

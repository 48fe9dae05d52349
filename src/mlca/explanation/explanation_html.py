"""An explanation as HTML for notebooks: labels with their reasons, then the voters."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from mlca.messages import shown

if TYPE_CHECKING:
    from mlca.explanation.explained_row import Explanation

_SHOWN_LABELS = 10
_SHOWN_REASONS = 5
_SHOWN_VOTERS = 5
_SHOWN_IDS = 5


def explanation_as_html(explanation: Explanation) -> str:
    """Return an explanation as HTML tables, as notebooks show it."""
    predicted = ", ".join(
        shown(explanation.labels[place])
        for place in explanation.order
        if explanation.labels[place] in explanation.predicted
    )
    n_shown = max(_SHOWN_LABELS, len(explanation.predicted))
    labels = [
        _label_cells(explanation, shown(explanation.labels[place]), explanation.labels[place])
        for place in explanation.order[:n_shown]
    ]
    if explanation.none is not None and not explanation.predicted:
        labels.insert(0, _label_cells(explanation, "(no label)", None))
    return (
        f"<p>Predicted: <b>{escape(predicted) or 'no label'}</b></p>"
        + _table(("label", "probability", "evidence for", "evidence against"), labels)
        + "<p>Nearest nodes</p>"
        + _table(
            ("node", "distance", "rows", "labels", *(["row ids"] if explanation.rows else [])),
            _voter_cells(explanation),
        )
    )


def _label_cells(explanation: Explanation, name: str, label: object) -> tuple[str, ...]:
    reasons = explanation.reasons(label)
    p = explanation.none if label is None else explanation.posterior[explanation.labels.index(label)]
    listed = [
        ", ".join(f"{shown(what)} {added:+.2f}" for what, added in chosen[:_SHOWN_REASONS])
        for chosen in ([r for r in reasons if r[1] > 0], [r for r in reasons if r[1] < 0])
    ]
    return name, f"{p:.3f}", *listed


def _voter_cells(explanation: Explanation) -> Iterable[tuple[str, ...]]:
    for i, node in enumerate(explanation.nodes[:_SHOWN_VOTERS].tolist()):
        counts = explanation.label_counts[i]
        labels = [
            f"{shown(explanation.labels[j])} {counts[j]}" for j in counts.argsort(kind="stable")[::-1] if counts[j]
        ]
        ids = [", ".join(map(shown, explanation.rows[i][:_SHOWN_IDS]))] if explanation.rows else []
        yield (
            str(node),
            f"{explanation.distances[i]:.4f}",
            str(explanation.counts[i]),
            ", ".join(labels) or "none",
            *ids,
        )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"

"""An explanation as HTML for notebooks: labels with their reasons, then the nodes that voted."""

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


def explanation_as_html(told: Explanation) -> str:
    """Return an explanation as HTML tables."""
    predicted = ", ".join(shown(told.labels[place]) for place in told.order if told.labels[place] in told.predicted)
    n_shown = max(_SHOWN_LABELS, len(told.predicted))
    labels = [_label_cells(told, shown(told.labels[place]), told.labels[place]) for place in told.order[:n_shown]]
    if told.none is not None and not told.predicted:
        labels.insert(0, _label_cells(told, "(no label)", None))
    return (
        f"<p>Predicted: <b>{escape(predicted) or 'no label'}</b></p>"
        + _table(("label", "probability", "evidence for", "evidence against"), labels)
        + "<p>Nearest nodes</p>"
        + _table(("node", "distance", "rows", "labels", *(["row ids"] if told.rows else [])), _voter_cells(told))
    )


def _label_cells(told: Explanation, name: str, label: object) -> tuple[str, ...]:
    reasons = told.reasons(label)
    p = told.none if label is None else told.posterior[told.labels.index(label)]
    listed = [
        ", ".join(f"{shown(what)} {added:+.2f}" for what, added in chosen[:_SHOWN_REASONS])
        for chosen in ([r for r in reasons if r[1] > 0], [r for r in reasons if r[1] < 0])
    ]
    return name, f"{p:.3f}", *listed


def _voter_cells(told: Explanation) -> Iterable[tuple[str, ...]]:
    for i, node in enumerate(told.nodes[:_SHOWN_VOTERS].tolist()):
        counts = told.label_counts[i]
        labels = [f"{shown(told.labels[j])} {counts[j]}" for j in counts.argsort(kind="stable")[::-1] if counts[j]]
        ids = [", ".join(map(shown, told.rows[i][:_SHOWN_IDS]))] if told.rows else []
        yield str(node), f"{told.distances[i]:.4f}", str(told.counts[i]), ", ".join(labels) or "none", *ids


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"

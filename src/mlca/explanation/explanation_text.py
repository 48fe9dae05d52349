"""An explanation as text: voters, labels, evidence, and the row beside its voters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlca.messages import shown

if TYPE_CHECKING:
    from mlca.explanation.explained_row import Explanation

_WIDEST_CELL = 16
_SHOWN_VOTERS = 10
_SHOWN_REASONS = 8
_SHOWN_IDS = 3
_SHOWN_LABELS = 30
_WIDEST_NAME = 40
# Number of mixer inputs that do not depend on recency: nodes, linear model, prior and a constant.
_PLAIN_INPUTS = 4


def explanation_as_text(explanation: Explanation) -> str:
    """Return an explanation as plain text, as `print` shows it."""
    calibrated = explanation.none is not None
    names = [_cut(shown(name), _WIDEST_NAME) if str(name).strip() else repr(name) for name in explanation.labels]
    lines = [*_voters_in_words(explanation, names, calibrated), ""]
    lines += _calibration_in_words(explanation, names) if calibrated else _bayes_in_words(explanation, names)
    return "\n".join([*lines, *_similarity_in_words(explanation), *_values_in_words(explanation)])


def _voters_in_words(explanation: Explanation, names: list[str], calibrated: bool) -> Iterator[str]:
    yield "node         distance   rows  " + ("weight  " if calibrated else "") + "labels"
    for i in range(min(len(explanation.nodes), _SHOWN_VOTERS)):
        counted = [f"{names[j]} {explanation.label_counts[i, j]}" for j in np.flatnonzero(explanation.label_counts[i])]
        counted += [f"none {explanation.unlabelled[i]}"] if explanation.unlabelled[i] and counted else []
        weight = f"{explanation.weights[i]:6.3f}  " if calibrated else ""
        line = f"{explanation.nodes[i]:<9} {explanation.distances[i]:11.6f} {explanation.counts[i]:6}  {weight}"
        yield line + (", ".join(counted) or "none") + _rows_in_words(explanation, i)
    if len(explanation.nodes) > _SHOWN_VOTERS:
        yield f"... and {len(explanation.nodes) - _SHOWN_VOTERS} more at larger distances"
    if explanation.n_compared < explanation.n_nodes:
        yield f"The row was compared with {explanation.n_compared:,} of the {explanation.n_nodes:,} nodes."
    if explanation.n_represented < explanation.n_seen:
        yield f"All nodes together stand for {explanation.n_represented:,} of the {explanation.n_seen:,} rows learned."


def _rows_in_words(explanation: Explanation, voter: int) -> str:
    ids = explanation.rows[voter] if explanation.rows else ()
    more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    return f"; rows: {', '.join(shown(one) for one in ids[:_SHOWN_IDS])}{more}" if ids else ""


def _bayes_in_words(explanation: Explanation, names: list[str]) -> Iterator[str]:
    likeliest = _likeliest(explanation, explanation.posterior)
    width = max((len(names[i]) for i in likeliest), default=5)
    yield f"{'label':<{width}}  votes    bin  prior   with    without  posterior"
    for i in likeliest:
        yield (
            f"{names[i]:<{width}}  {explanation.votes[i]:<7.4g} {explanation.bins[i]:4}  {explanation.prior[i]:.4f}  "
            f"{explanation.likelihood_with[i]:.4f}  {explanation.likelihood_without[i]:.4f}   "
            f"{explanation.posterior[i]:.4f}"
        )
    yield from _rest(names, likeliest)


def _calibration_in_words(explanation: Explanation, names: list[str]) -> Iterator[str]:
    names = ["(no label)", *names]
    p = np.concatenate(([explanation.none or 0.0], explanation.posterior))
    likeliest = _likeliest(explanation, p)
    width = max(len(names[i]) for i in likeliest)
    mixed = len(explanation.experts) > 1
    if explanation.far:
        yield "No node has anything in common with the row, so labels get their overall frequencies."
    yield f"{'label':<{width}}  share    observed  background  {'nodes   ' if mixed else ''}probability"
    for i in likeliest:
        background = f"{explanation.background[i]:10.4f}" if len(explanation.background) else f"{'-':>10}"
        nodes = f"{explanation.opinions[i, 0]:.4f}  " if mixed else ""
        votes = f"{explanation.shares[i]:.4f}  {explanation.calibrated[i]:9.4f}"
        yield f"{names[i]:<{width}}  {votes}  {background}  {nodes}{p[i]:.4f}"
    yield from _rest(names, likeliest)
    if mixed:
        trusted = (
            f"{name} {weight:.3f}" for name, weight in zip(explanation.experts, explanation.expert_weights, strict=True)
        )
        yield "Weights of the experts: " + ", ".join(trusted)
    yield from _mixture_in_words(explanation, names, likeliest, p, width)
    if len(explanation.trust) > 1:
        yield "Trust in the segments of the past, oldest first: " + ", ".join(f"{one:.2f}" for one in explanation.trust)
    if explanation.novelty is not None:
        nearer = f"{explanation.novelty:.0%} of the learned rows were nearer to the nodes that existed before them."
        yield f"Novelty {explanation.novelty:.3f}: {nearer}"


def _mixture_in_words(
    explanation: Explanation, names: list[str], likeliest: list[int], p: NDArray[np.float64], width: int
) -> Iterator[str]:
    if not explanation.inputs:
        return
    yield ""
    recent = len(explanation.inputs) > _PLAIN_INPUTS
    yield f"{'label':<{width}}    nodes   linear    prior  constant  {'  recent  ' if recent else ''}   logit"
    for i in likeliest:
        first_inputs = explanation.contributions[i, :_PLAIN_INPUTS]
        added = f"{explanation.contributions[i, _PLAIN_INPUTS:].sum():+8.3f}  " if recent else ""
        nodes, linear, prior, constant = (f"{one:+7.3f}" for one in first_inputs)
        yield f"{names[i]:<{width}}  {nodes}  {linear}  {prior}   {constant}  {added}{explanation.logits[i]:+8.3f}"
    weights = zip(explanation.inputs, explanation.input_weights.tolist(), strict=True)
    yield "Weights of the inputs: " + ", ".join(f"{name} {weight:.3f}" for name, weight in weights)
    predicted = [
        explanation.labels[place] for place in explanation.order if explanation.labels[place] in explanation.predicted
    ]
    for label in predicted or [None]:
        for_it = [reason for reason in explanation.reasons(label) if reason[1] > 0]
        against = [reason for reason in explanation.reasons(label) if reason[1] < 0]
        what = "no label" if label is None else shown(label)
        yield f"Evidence for {what}: {_listed(for_it)}; against: {_listed(against)}"


def _likeliest(explanation: Explanation, p: NDArray[np.float64]) -> list[int]:
    """Return the indices of the labels to show, most likely first, with all predicted labels."""
    order: list[int] = np.argsort(-p, kind="stable").tolist()
    return order[: max(_SHOWN_LABELS, len(explanation.predicted) + 1)]


def _similarity_in_words(explanation: Explanation) -> Iterator[str]:
    if explanation.agreement:
        named = (f"{shown(name)} {share:.1%}" for name, share in explanation.agreement[:_SHOWN_REASONS])
        yield ""
        yield "Features in which row and voters agree most: " + ", ".join(named)


def _values_in_words(explanation: Explanation) -> list[str]:
    if not explanation.values:
        return []
    n_shown = len(explanation.values[0][1]) - 1
    titles = ("the row", *(f"node {node}" for node in explanation.nodes[:n_shown]))
    width = max(len("column"), *(len(shown(name)) for name, _ in explanation.values))
    lines = ["", "Row and nearest nodes, most unusual features first:"]
    for name, cells in (("column", titles), *explanation.values):
        padded = "  ".join(f"{_cut(shown(cell), _WIDEST_CELL):<{_WIDEST_CELL}}" for cell in cells)
        lines.append(f"{shown(name):<{width}}  {padded}".rstrip())
    return lines


def _listed(reasons: list[tuple[str, float]]) -> str:
    return (
        ", ".join(f"{_cut(shown(name), _WIDEST_NAME)} {added:+.3f}" for name, added in reasons[:_SHOWN_REASONS])
        or "nothing"
    )


def _rest(names: list[str], shown_ones: list[int]) -> Iterator[str]:
    if len(shown_ones) < len(names):
        yield f"... and {len(names) - len(shown_ones):,} more, less likely"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"

"""Why a row was given its labels: the nodes that voted, and every number up to the probabilities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca.learner.core import Answers, Learner
from mlca.showing import shown

_WIDEST_CELL = 16
_SHOWN_VOTERS = 10
_SHOWN_ATTRIBUTES = 8
_SHOWN_LABELS = 30
_WIDEST_NAME = 40

# Probabilities as `predict_proba` has them: nothing is certain.
_POSSIBLE = (5e-324, float(np.nextafter(1.0, 0.0)))


def _nothing() -> NDArray[Any]:
    return np.empty(0)


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How the labels of one row are predicted.

    With `decision="bayes"` the nearest nodes vote (`votes`); the votes put each label into a bin (`bins`); bin and
    prior give the posterior:

        posterior = likelihood_with * prior / (likelihood_with * prior + likelihood_without * (1 - prior))

    With `decision="calibrated"` the voters' label shares are averaged with their weights (`shares`); how often such a
    share came true is `calibrated`; the mean of both, nine parts of it to one part of the linear `background`, is what
    expert 0 says (`opinions`); where there are several experts, their opinions are mixed by `expert_weights`. A row
    that has nothing in common with any node (`far`) gets the labels' frequencies.

    Attributes
    ----------
    n_seen, n_represented : int
        How many rows were learned, and how many of them the nodes stand for: with `max_nodes` not all.
    labels : tuple
        The names of the labels; every array with one entry a label is in this order.
    predicted : frozenset
        The labels that are predicted.
    posterior : ndarray of shape (n_labels,)
        The probability of each label.
    nodes : ndarray of shape (n_voters,)
        The numbers of the nodes that voted, nearest first: rows of `MLCA.weights_`.
    distances : ndarray of shape (n_voters,)
        How near each is: 0 is equal, 1 is as far as can be.
    counts, unlabelled : ndarray of shape (n_voters,)
        How many rows each stands for, and how many of those had no label.
    label_counts : ndarray of shape (n_voters, n_labels)
        How many of those had each label.
    votes, prior : ndarray of shape (n_labels,)
        Each label's votes, or share of them, and its probability before the vote.
    bins, likelihood_with, likelihood_without : ndarray of shape (n_labels,)
        Of Bayes' rule: the bin of each label's votes; the probability of that bin if the row has the label, and if not.
    weights : ndarray of shape (n_voters,)
        Of calibration: how much each node's vote weighs.
    shares, calibrated, frequencies : ndarray of shape (n_labels + 1,)
        Of calibration, first for having no label, then for each label: the share of the votes, how often such a share
        came true, and the share of all rows.
    opinions : ndarray of shape (n_labels + 1, n_experts)
        What each expert says.
    experts : tuple of str
        Who they are.
    expert_weights : ndarray of shape (n_experts,)
        How much each is trusted.
    trust : ndarray
        With `drift="follow"`: how much each segment of the past is trusted, oldest first.
    none : float or None
        The probability of having no label; None with Bayes' rule.
    novelty : float or None
        How unlike everything learned the row is, from 0 to 1; None with Bayes' rule.
    far : bool
        Whether no node has anything in common with the row.
    background : ndarray
        Under the learned similarity, once there is enough to learn from: what a linear score says, of the same entries
        as `shares`; with Bayes' rule one entry a label.
    agreement : tuple of (str, float)
        Under the learned similarity: the attributes in which the voters are most like the row, and how much of the
        similarity's weight they agree in.
    values : tuple of (str, tuple of str)
        The columns in which the row is least ordinary: the name of each, what the row has there, and what the nearest
        nodes have.
    """

    n_seen: int
    n_represented: int
    labels: tuple[Hashable, ...]
    predicted: frozenset[Hashable]
    posterior: NDArray[np.float64]
    nodes: NDArray[np.int64]
    distances: NDArray[np.float64]
    counts: NDArray[np.int64]
    unlabelled: NDArray[np.int64]
    label_counts: NDArray[np.int64]
    votes: NDArray[np.float64]
    prior: NDArray[np.float64]
    bins: NDArray[np.int64] = field(default_factory=_nothing)
    likelihood_with: NDArray[np.float64] = field(default_factory=_nothing)
    likelihood_without: NDArray[np.float64] = field(default_factory=_nothing)
    weights: NDArray[np.float64] = field(default_factory=_nothing)
    shares: NDArray[np.float64] = field(default_factory=_nothing)
    calibrated: NDArray[np.float64] = field(default_factory=_nothing)
    frequencies: NDArray[np.float64] = field(default_factory=_nothing)
    opinions: NDArray[np.float64] = field(default_factory=_nothing)
    experts: tuple[str, ...] = ()
    expert_weights: NDArray[np.float64] = field(default_factory=_nothing)
    trust: NDArray[np.float64] = field(default_factory=_nothing)
    none: float | None = None
    novelty: float | None = None
    far: bool = False
    background: NDArray[np.float64] = field(default_factory=_nothing)
    agreement: tuple[tuple[str, float], ...] = ()
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        learner: Learner,
        numbers: dict[str, Any],
        names: tuple[Hashable, ...],
        name_of_attribute: Callable[[int], str],
    ) -> Explanation:
        """Tell what a settled learner's `explain` says of a row; there may be names of labels that it did not know."""
        numbers = {name: value for name, value in numbers.items() if name not in ("voters", "ordinary")}
        agreeing, agreement = numbers.pop("agreeing").tolist(), numbers.pop("agreement").tolist()
        p, fallback = numbers.pop("probabilities"), numbers.pop("fallback")
        if learner.parameters.decision == "calibrated":
            none, posterior = float(p[0]), np.clip(p[1:], *_POSSIBLE)
            numbers |= {"votes": numbers["shares"][1:], "prior": numbers["frequencies"][1:], "posterior": posterior}
            experts = experts_of(learner.parameters.recency, learner.parameters.drift)
            if len(experts) == 1:
                numbers["expert_weights"] = np.ones(1)
            numbers |= {"none": none, "experts": experts}
            answers = Answers(posterior[None, :], np.array([none]), np.array([fallback]), None)
        else:
            numbers |= {"novelty": None, "none": None}
            answers = Answers(numbers["posterior"][None, :], None, None, None)
        labels = names[: len(numbers["posterior"])]
        predicted = frozenset(name for name, chosen in zip(labels, answers.chosen()[0], strict=True) if chosen)
        named: dict[str, float] = {}  # of a column that is several attributes, what they say together
        for place, share in zip(agreeing, agreement, strict=True):
            name = name_of_attribute(place)
            named[name] = named.get(name, 0.0) + share
        # Without a bound every row has its node, and they need not be counted.
        bounded = learner.parameters.max_nodes is not None
        numbers["n_seen"] = learner.n_seen
        numbers["n_represented"] = int(learner.state("counts")["counts"].sum()) if bounded else learner.n_seen
        return cls(labels=labels, predicted=predicted, agreement=tuple(named.items()), **numbers)

    def __str__(self) -> str:
        calibrated = self.none is not None
        names = [_cut(shown(name), _WIDEST_NAME) if str(name).strip() else repr(name) for name in self.labels]
        lines = [*self._voters_in_words(names, calibrated), ""]
        lines += self._calibration_in_words(names) if calibrated else self._bayes_in_words(names)
        return "\n".join([*lines, *self._similarity_in_words(), *self._values_in_words()])

    def _voters_in_words(self, names: list[str], calibrated: bool) -> Iterator[str]:
        yield "node         distance   rows  " + ("weight  " if calibrated else "") + "labels"
        for i in range(min(len(self.nodes), _SHOWN_VOTERS)):
            counted = [f"{names[j]} {self.label_counts[i, j]}" for j in np.flatnonzero(self.label_counts[i])]
            counted += [f"none {self.unlabelled[i]}"] if self.unlabelled[i] and counted else []
            weight = f"{self.weights[i]:6.3f}  " if calibrated else ""
            line = f"{self.nodes[i]:<9} {self.distances[i]:11.6f} {self.counts[i]:6}  {weight}"
            yield line + (", ".join(counted) or "none")
        if len(self.nodes) > _SHOWN_VOTERS:
            yield f"... and {len(self.nodes) - _SHOWN_VOTERS} more, farther away"
        if self.n_represented < self.n_seen:
            yield f"All nodes together stand for {self.n_represented:,} of the {self.n_seen:,} rows learned."

    def _bayes_in_words(self, names: list[str]) -> Iterator[str]:
        likeliest = self._likeliest(self.posterior)
        width = max((len(names[i]) for i in likeliest), default=5)
        yield f"{'label':<{width}}  votes    bin  prior   with    without  posterior"
        for i in likeliest:
            yield (
                f"{names[i]:<{width}}  {self.votes[i]:<7.4g} {self.bins[i]:4}  {self.prior[i]:.4f}  "
                f"{self.likelihood_with[i]:.4f}  {self.likelihood_without[i]:.4f}   {self.posterior[i]:.4f}"
            )
        yield from _rest(names, likeliest)

    def _calibration_in_words(self, names: list[str]) -> Iterator[str]:
        names = ["(no label)", *names]
        p = np.concatenate(([self.none or 0.0], self.posterior))
        likeliest = self._likeliest(p)
        width = max(len(names[i]) for i in likeliest)
        mixed = len(self.experts) > 1
        if self.far:
            yield "No node has anything in common with the row: labels get their frequencies."
        yield f"{'label':<{width}}  share   came true  background  {'nodes   ' if mixed else ''}probability"
        for i in likeliest:
            background = f"{self.background[i]:10.4f}" if len(self.background) else f"{'-':>10}"
            nodes = f"{self.opinions[i, 0]:.4f}  " if mixed else ""
            votes = f"{self.shares[i]:.4f}  {self.calibrated[i]:9.4f}"
            yield f"{names[i]:<{width}}  {votes}  {background}  {nodes}{p[i]:.4f}"
        yield from _rest(names, likeliest)
        if mixed:
            trusted = (f"{who} {weight:.3f}" for who, weight in zip(self.experts, self.expert_weights, strict=True))
            yield "Experts and how far they are trusted: " + ", ".join(trusted)
        if len(self.trust) > 1:
            yield "Segments of the past, oldest first, and how far: " + ", ".join(f"{one:.2f}" for one in self.trust)
        if self.novelty is not None:
            nearer = f"{self.novelty:.0%} were nearer to what was known before them."
            yield f"Novelty {self.novelty:.3f}: of the rows learned, {nearer}"

    def _likeliest(self, p: NDArray[np.float64]) -> list[int]:
        """Return the entries to show, the likeliest first: all that are predicted, and others up to a number."""
        order: list[int] = np.argsort(-p, kind="stable").tolist()
        return order[: max(_SHOWN_LABELS, len(self.predicted) + 1)]

    def _similarity_in_words(self) -> Iterator[str]:
        if self.agreement:
            named = (f"{shown(name)} {share:.1%}" for name, share in self.agreement[:_SHOWN_ATTRIBUTES])
            yield ""
            yield "The voters are like the row above all in: " + ", ".join(named)

    def _values_in_words(self) -> list[str]:
        if not self.values:
            return []
        n_shown = len(self.values[0][1]) - 1
        titles = ("the row", *(f"node {node}" for node in self.nodes[:n_shown]))
        width = max(len("column"), *(len(shown(name)) for name, _ in self.values))
        lines = ["", "The row beside the nearest nodes, where it is least ordinary:"]
        for name, cells in (("column", titles), *self.values):
            padded = "  ".join(f"{_cut(shown(cell), _WIDEST_CELL):<{_WIDEST_CELL}}" for cell in cells)
            lines.append(f"{shown(name):<{width}}  {padded}".rstrip())
        return lines


def experts_of(recency: bool, drift: str) -> tuple[str, ...]:
    """Return who is asked where the decision is calibrated, in the order of their opinions."""
    recent = tuple(f"recent labels, half-life {rows}" for rows in (1, 4, 16, 64)) if recency else ()
    followed = ("trusted segments", "latest nodes, fading") if drift == "follow" else ()
    return ("all nodes", *recent, *followed)


def _rest(names: list[str], shown_ones: list[int]) -> Iterator[str]:
    if len(shown_ones) < len(names):
        yield f"... and {len(names) - len(shown_ones):,} more, less likely"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"

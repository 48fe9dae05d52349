"""The explanation of one row: its voters, and the steps from votes to probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlca.explanation.explanation_html import explanation_as_html
from mlca.explanation.explanation_text import explanation_as_text
from mlca.kernels import native
from mlca.learner.core import Answers, Learner
from mlca.messages import shown
from mlca.optional import needing
from mlca.options import Objective

# The kind of a term for a missing value, as in src/kernels/decision/linear_features.hpp. Kind 0 stands for the value of
# a numeric feature, kinds 1 to 8 for the cell that contains the value, and kinds above 9 for a category.
_MISSING = 9

# Name of the constant term of a linear model.
BIAS = "bias"

# Bounds of probabilities, as in `predict_proba`: never exactly 0 or 1.
_POSSIBLE = (5e-324, float(np.nextafter(1.0, 0.0)))


def _nothing() -> NDArray[Any]:
    return np.empty(0)


class FeatureNaming(Protocol):
    """Interface of objects that name features and their terms in the linear models."""

    def name(self, feature: int) -> str:
        """Return the name of a feature, such as "size"."""

    def missing(self, feature: int) -> str:
        """Return the name of a feature's term for a missing value, such as "size missing"."""

    def category(self, feature: int, code: float) -> str:
        """Return the name of a feature's term for a category, such as "section = net"."""

    def number(self, feature: int, value: float) -> str:
        """Return the name of a numeric feature's term, with the value, such as "size = 2"."""

    def range(self, feature: int, low: float, high: float) -> str:
        """Return the name of a feature's term for a range, such as "size from 1 to 2"."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How the labels of one row are predicted.

    With `decision="bayes"`, the nearest nodes vote (`votes`), and the votes put each label into a bin (`bins`). Bin and
    prior give the posterior:

        posterior = likelihood_with * prior / (likelihood_with * prior + likelihood_without * (1 - prior))

    With `decision="mixed"`, the logit of a label is the sum of its `contributions`: of the nodes' votes, the label's
    linear model, its prior, a constant, and recent labels if they are used. The probability is the logistic function of
    this sum. `linear` lists the terms of the linear model's contribution. Before the 52nd row, and for a row that has
    nothing in common with any node, there are no contributions.

    With `decision="calibrated"`, each label's share of the weighted votes (`shares`) is compared with how often labels
    with that share were true (`calibrated`). The probability of expert 0 (`opinions`) is 0.9 times the mean of both
    plus 0.1 times the linear `background`. If there are several experts, the probability is their mean, weighted by
    `expert_weights`. If the row has nothing in common with any node (`far`), it is the label's frequency.

    Attributes
    ----------
    n_seen, n_represented : int
        The number of learned rows, and how many of them the nodes represent (fewer with `max_nodes`).
    n_nodes, n_compared : int
        The number of nodes, and how many of them the row was compared with (fewer with `search="cells"`).
    labels : tuple
        The names of the labels; arrays with one entry per label are in this order.
    predicted : frozenset
        The predicted labels.
    posterior : ndarray of shape (n_labels,)
        The probability of each label, as `predict_proba` returns it. If y was 1-D, probabilities are divided by their
        sum.
    contributions : ndarray of shape (n_labels + 1, n_inputs)
        With `decision="mixed"`, first for "no label", then for each label: what each input adds to the logit.
    inputs, input_weights : tuple of str, ndarray of shape (n_inputs,)
        The names of the inputs and their learned weights, which all labels share.
    logits : ndarray of shape (n_labels + 1,)
        The sums of the contributions.
    linear : mapping of label to tuple of (str, float)
        The terms of each label's linear model, largest first: the feature with its value, and what it adds to the
        logit. Together with a multiple of the prior's logit, they add up to the linear model's contribution.
    linear_none : tuple of (str, float)
        The terms of the linear model for "no label".
    nodes : ndarray of shape (n_voters,)
        The indices of the nodes that voted, as rows of `MLCA.prototypes_`, nearest first.
    distances : ndarray of shape (n_voters,)
        The distance of each of these nodes from the row: 0 means equal, 1 is the maximum.
    counts, unlabelled : ndarray of shape (n_voters,)
        The number of rows that each of these nodes represents, and how many of them have no label.
    label_counts : ndarray of shape (n_voters, n_labels)
        The number of rows with each label, per voting node.
    votes, prior : ndarray of shape (n_labels,)
        The votes of each label (with calibration, its share of the votes), and its probability before the vote.
    bins, likelihood_with, likelihood_without : ndarray of shape (n_labels,)
        With Bayes' rule: the bin of each label's votes, and the probability of that bin with and without the label.
    weights : ndarray of shape (n_voters,)
        With calibration: the weight of each node's vote.
    shares, calibrated, frequencies : ndarray of shape (n_labels + 1,)
        With calibration, first for "no label", then for each label: share of the votes, how often labels with that
        share were true, and share of all rows.
    opinions : ndarray of shape (n_labels + 1, n_experts)
        With calibration, first for "no label", then for each label: the probability that each expert gives it.
    experts : tuple of str
        The names of the experts.
    expert_weights : ndarray of shape (n_experts,)
        The weight of each expert.
    trust : ndarray
        With `drift="follow"`: the trust (0 to 1) in each run of consecutive nodes, oldest first.
    none : float or None
        The probability of "no label"; None with Bayes' rule.
    novelty : float or None
        How unusual the row is, from 0 to 1; None with Bayes' rule.
    far : bool
        Whether no node has anything in common with the row.
    background : ndarray
        With the learned similarity, from 20 nodes on: the probability from a linear score and the label's frequency,
        first for "no label" (except with Bayes' rule), then for each label.
    agreement : tuple of (str, float)
        With the learned similarity: the features in which the voters agree most with the row, and their shares of the
        similarity's weight.
    rows : tuple of tuple of (str or int)
        If IDs were passed to `fit` or `partial_fit`: for each node that voted, the IDs of its rows, at most 100.
    values : tuple of (str, tuple of str)
        The most unusual columns of the row: their names, the row's values, and those of the nearest nodes.

    Notes
    -----
    An explanation prints as text, and notebooks show it as tables. `mlca.plots.plot_contributions` draws the reasons.
    """

    n_seen: int
    n_represented: int
    n_nodes: int
    n_compared: int
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
    contributions: NDArray[np.float64] = field(default_factory=_nothing)
    inputs: tuple[str, ...] = ()
    input_weights: NDArray[np.float64] = field(default_factory=_nothing)
    logits: NDArray[np.float64] = field(default_factory=_nothing)
    linear: Mapping[Hashable, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    linear_none: tuple[tuple[str, float], ...] = ()
    agreement: tuple[tuple[str, float], ...] = ()
    rows: tuple[tuple[str | int, ...], ...] = ()
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        learner: Learner,
        numbers: dict[str, Any],
        names: tuple[Hashable, ...],
        features: FeatureNaming,
        row: NDArray[np.float64],
        single: bool = False,
        objective: Objective = "exact",
    ) -> Explanation:
        """Build an explanation from the result of `Learner.explain`; extra `names` are ignored."""
        numbers = {name: value for name, value in numbers.items() if name not in ("voters", "ordinary")}
        agreeing, agreement = numbers.pop("agreeing").tolist(), numbers.pop("agreement").tolist()
        p, fallback, threshold = (numbers.pop(name) for name in ("probabilities", "fallback", "threshold"))
        if learner.parameters.decision != "bayes":
            none, posterior = float(p[0]), np.clip(p[1:], *_POSSIBLE)
            numbers |= {"votes": numbers["shares"][1:], "prior": numbers["frequencies"][1:], "posterior": posterior}
            mixed = learner.parameters.decision == "mixed"
            experts = ("all nodes",) if mixed else experts_of(learner.parameters.recency, learner.parameters.drift)
            if len(experts) == 1:
                numbers["expert_weights"] = np.ones(1)
            numbers |= {"none": none, "experts": experts}
            none_of_row, fallback_of_row, threshold_of_row = (
                np.array([value]) for value in (none, fallback, threshold)
            )
            answers = Answers(posterior[None, :], none_of_row, fallback_of_row, threshold_of_row, None)
        else:
            numbers |= {"novelty": None, "none": None}
            answers = Answers(numbers["posterior"][None, :], None, None, None, None)
        labels = names[: len(numbers["posterior"])]
        if single:
            predicted = frozenset([labels[int(np.argmax(numbers["posterior"]))]])
            numbers["posterior"] = numbers["posterior"] / numbers["posterior"].sum()
        else:
            chosen = answers.chosen(objective)[0]
            predicted = frozenset(name for name, is_chosen in zip(labels, chosen, strict=True) if is_chosen)
        numbers |= _mixture(learner, numbers, labels, features, row)
        named = tuple((features.name(place), share) for place, share in zip(agreeing, agreement, strict=True))
        # Counts are summed only with `max_nodes`: otherwise the nodes represent every row.
        bounded = learner.parameters.max_nodes is not None
        numbers |= {"n_seen": learner.n_seen, "n_nodes": learner.n_nodes}
        numbers["n_represented"] = int(learner.state("counts")["counts"].sum()) if bounded else learner.n_seen
        return cls(labels=labels, predicted=predicted, agreement=named, **numbers)

    @property
    def order(self) -> list[int]:
        """The indices of the labels in `labels`, most likely label first."""
        likeliest: list[int] = np.argsort(-self.posterior, kind="stable").tolist()
        return likeliest

    def reasons(self, label: Hashable | None = None) -> tuple[tuple[str, float], ...]:
        """Return the reasons for a label (positive) and against it (negative), largest first.

        Parameters
        ----------
        label : hashable, optional
            A label. Default: the most likely predicted label, or "no label" if none is predicted.

        Returns
        -------
        tuple of (str, float)
            With `decision="mixed"`, what each reason adds to the logit: words, categories, ranges, missing values, the
            nearest nodes, recent labels, and the label's baseline, which is the same for all rows. The reasons add up
            to the logit. Otherwise, each node's share of the label's votes.

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA.published(vigilance=0.1).fit([[0.0], [1.0], [3.0]], [{"low"}, {"low"}, {"high"}])
        >>> model.explain([0.1]).reasons("low")
        (('node 0', 0.5), ('node 1', 0.5))
        """
        slot = self._slot(label)
        return self._added(slot) if self.inputs else self._voted(slot)

    def _slot(self, label: Hashable | None) -> int:
        """Return the index of a label in arrays that begin with "no label"."""
        if label is not None:
            if label not in self.labels:
                raise ValueError(f"{shown(label)} is not a label of the model; choose one of `labels`")
            return 1 + self.labels.index(label)
        predicted = [place for place in self.order if self.labels[place] in self.predicted]
        return 1 + predicted[0] if predicted else 0

    def _added(self, slot: int) -> tuple[tuple[str, float], ...]:
        terms = self.linear_none if slot == 0 else self.linear[self.labels[slot - 1]]
        named = [(name, added) for name, added in terms if name != BIAS]
        nodes, linear, prior, constant, *recent = self.contributions[slot].tolist()
        # The baseline is the same for all rows: prior, constant, and the bias and prior share of the linear model.
        baseline = prior + constant + linear - sum(added for _, added in named)
        recent_named = zip(self.inputs[4:], recent, strict=True)
        return _by_size([("nearest nodes", nodes), ("baseline of the label", baseline), *recent_named, *named])

    def _voted(self, slot: int) -> tuple[tuple[str, float], ...]:
        counts = self.unlabelled if slot == 0 else self.label_counts[:, slot - 1]
        # With Bayes' rule nodes vote with their label counts, otherwise with weighted shares.
        votes = self.weights * counts / np.maximum(self.counts, 1) if len(self.weights) else counts
        shares = votes / max(float(votes.sum()), 1e-300)
        return _by_size(
            (f"node {node}", share) for node, share in zip(self.nodes, shares.tolist(), strict=True) if share
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON values, with labels in the order of `labels`."""
        named = ("labels", "predicted", "agreement", "values", "linear", "linear_none")
        others = {name: value for name, value in vars(self).items() if name not in named}
        columns = dict(self.values)
        n_shown = len(next(iter(columns.values()), ())) - 1
        beside = ["row", *map(str, self.nodes[: max(0, n_shown)].tolist())]
        return {
            "predicted": sorted(map(str, self.predicted)),
            "labels": list(self.labels),
            **{name: value.tolist() if hasattr(value, "tolist") else value for name, value in others.items()},
            "linear": {str(label): dict(terms) for label, terms in self.linear.items()},
            "linear_none": dict(self.linear_none),
            "agreement": dict(self.agreement),
            "values": {name: {column: cells[i] for column, cells in columns.items()} for i, name in enumerate(beside)},
        }

    def to_frame(self) -> Any:
        """Return the reasons for each label as a DataFrame, sorted by probability, then by size.

        Returns
        -------
        DataFrame
            Columns: `label` (None stands for "no label"), `probability`, `predicted`, and the `reason` and
            `contribution` that `reasons` returns.

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA.published(vigilance=0.1).fit([[0.0], [1.0], [3.0]], [{"low"}, {"low"}, {"high"}])
        >>> model.explain([0.1]).to_frame().round(2)
          label  probability  predicted  reason  contribution
        0  high         0.57       True  node 2           1.0
        1   low         0.43      False  node 0           0.5
        2   low         0.43      False  node 1           0.5
        """
        with needing("Explanation.to_frame", "frames"):
            import pandas as pd

        likely: list[tuple[Hashable, float, bool, int]] = [
            (self.labels[place], float(self.posterior[place]), self.labels[place] in self.predicted, place + 1)
            for place in self.order
        ]
        if self.none is not None:
            likely.append((None, self.none, not self.predicted, 0))
        likely.sort(key=lambda entry: -entry[1])
        rows = [
            (label, p, is_predicted, reason, contribution)
            for label, p, is_predicted, slot in likely
            for reason, contribution in (self._added(slot) if self.inputs else self._voted(slot))
        ]
        return pd.DataFrame(rows, columns=["label", "probability", "predicted", "reason", "contribution"])

    def __str__(self) -> str:
        return explanation_as_text(self)

    def _repr_html_(self) -> str:
        return explanation_as_html(self)


def _by_size(reasons: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(reasons, key=lambda reason: -abs(reason[1])))


def experts_of(recency: bool, drift: str) -> tuple[str, ...]:
    """Return the expert names of the calibrated decision, in the order of `opinions`."""
    recent = tuple(f"recent labels, half-life {rows:g}" for rows in native.HALF_LIVES) if recency else ()
    followed = ("trusted segments", "latest nodes, fading") if drift == "follow" else ()
    return ("all nodes", *recent, *followed)


def inputs_of(recency: bool) -> tuple[str, ...]:
    """Return the names of the mixer's inputs, in the order of `contributions`."""
    inputs = ("nodes", "linear model", "prior", "constant")
    recent = (f"recent labels, half-life {rows:g}" for rows in native.HALF_LIVES[1:])
    return (*inputs, "labels of the last row", *recent) if recency else inputs


def _mixture(
    learner: Learner,
    numbers: dict[str, Any],
    labels: tuple[Hashable, ...],
    features: FeatureNaming,
    row: NDArray[np.float64],
) -> dict[str, Any]:
    """Return what each input and linear term adds to the logits, from the raw `numbers`."""
    weights, inputs, terms = numbers.pop("mixer_weights"), numbers.pop("inputs"), numbers.pop("terms")
    columns = [numbers.pop(f"term_{name}").tolist() for name in ("features", "kinds")]
    if not len(weights):
        return {}
    contributions = weights * inputs
    logits = contributions[:, 0].copy()
    for column in contributions.T[1:]:  # added in the same order as in the kernels
        logits += column
    scores = np.clip(terms.sum(axis=0), -8.0, 8.0) - inputs[:, 2]
    # A label's score is shrunk towards its prior if few rows had it.
    scale = np.divide(inputs[:, 1], scores, out=np.zeros(len(scores)), where=scores != 0) * weights[1]
    cells = {place for place, kind in zip(*columns, strict=True) if 0 < kind < _MISSING}
    edges = learner.cell_edges() if cells else np.empty((0, 0))
    named: dict[str, list[int]] = {}  # the sine and cosine of a date's cycle share a name
    for term, (feature, kind) in enumerate(zip(*columns, strict=True)):
        named.setdefault(_name_of_term(feature, kind, features, row, edges), []).append(term)
    by_label = _TermsByLabel(labels, terms, scale, named)
    return {
        "contributions": contributions,
        "inputs": inputs_of(learner.parameters.recency),
        "input_weights": weights,
        "logits": logits,
        "linear": by_label,
        "linear_none": by_label.of_slot(0),
    }


class _TermsByLabel(Mapping[Hashable, tuple[tuple[str, float], ...]]):
    """The terms of each label's linear model, computed on access."""

    def __init__(
        self,
        labels: tuple[Hashable, ...],
        terms: NDArray[np.float64],
        scale: NDArray[np.float64],
        named: dict[str, list[int]],
    ) -> None:
        self._slots = {label: slot for slot, label in enumerate(labels, start=1)}
        self._terms, self._scale, self._named = terms, scale, named

    def of_slot(self, slot: int) -> tuple[tuple[str, float], ...]:
        """Return names and sizes of a slot's non-zero terms, largest first; slot 0 is "no label"."""
        terms, scale = self._terms[:, slot], self._scale[slot]
        added = ((name, float(terms[places].sum() * scale)) for name, places in self._named.items())
        return _by_size((name, term) for name, term in added if term != 0.0)

    def __getitem__(self, label: Hashable) -> tuple[tuple[str, float], ...]:
        return self.of_slot(self._slots[label])

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)


def _name_of_term(
    feature: int, kind: int, features: FeatureNaming, row: NDArray[np.float64], edges: NDArray[np.float64]
) -> str:
    if feature >= 0 and kind == 0:
        return features.number(feature, float(row[feature]))
    return name_of_weight(feature, kind, float(row[feature]), features, edges)


def name_of_weight(feature: int, kind: int, value: float, features: FeatureNaming, edges: NDArray[np.float64]) -> str:
    """Return the name of a linear model's weight; `value` is needed for categories only."""
    if feature < 0:
        return BIAS
    if kind == _MISSING:
        return features.missing(feature)
    if kind > _MISSING:
        return features.category(feature, value)
    if kind > 0:
        return features.range(feature, *edges[feature, kind - 1 : kind + 1].tolist())
    return features.name(feature)

"""Why a row was given its labels: the nodes that voted, and every number up to the posterior."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from mlca.learner.core import Neighbours
from mlca.showing import shown

_WIDEST_CELL = 16


@dataclass(frozen=True, kw_only=True)
class Explanation(Neighbours):
    """How the labels of one row are predicted.

    The nearest nodes vote (`votes`); the votes put each label into a bin (`bins`); bin and prior
    give the posterior:

        posterior = likelihood_with * prior / (likelihood_with * prior + likelihood_without * (1 - prior))

    Attributes
    ----------
    labels : tuple
        The names of the labels; every array with one entry a label is in this order.
    nodes : ndarray of shape (n_neighbors,)
        The numbers of the nodes that voted, nearest first: rows of `MLCA.weights_`.
    distances : ndarray of shape (n_neighbors,)
        How near each is: 0 is equal, 1 is as far as can be.
    counts : ndarray of shape (n_neighbors,)
        How many rows each stands for.
    label_counts : ndarray of shape (n_neighbors, n_labels)
        How many of those had each label.
    votes, bins : ndarray of shape (n_labels,)
        Each label's votes and the bin that they fall in.
    prior, likelihood_with, likelihood_without, posterior : ndarray of shape (n_labels,)
        The probabilities of each label: before the vote; of its bin if the row has the label, and if not;
        after the vote.
    values : tuple of (str, tuple of str)
        The columns in which the row is least ordinary: the name of each, what the row has there, and what the nearest
        nodes have.
    """

    labels: tuple[Hashable, ...]
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, neighbours: Neighbours, names: tuple[Hashable, ...]) -> Explanation:
        """Tell what a learner says of one row; there may be names of labels that it does not know yet."""
        return cls(labels=names[: len(neighbours.prior)], **vars(neighbours))

    @property
    def predicted(self) -> set[Hashable]:
        """The labels more likely than not."""
        return {name for name, p in zip(self.labels, self.posterior, strict=True) if p > 0.5}

    def __str__(self) -> str:
        names = [shown(name) for name in self.labels]
        lines = ["node         distance   rows  labels"]
        for node, distance, count, own in zip(self.nodes, self.distances, self.counts, self.label_counts, strict=True):
            named = ", ".join(f"{names[i]} {own[i]}" for i in np.flatnonzero(own)) or "none"
            lines.append(f"{node:<9} {distance:11.6f} {count:6}  {named}")
        width = max(map(len, names), default=5)
        lines += ["", f"{'label':<{width}}  votes    bin  prior   with    without  posterior"]
        for i in np.argsort(-self.posterior, kind="stable"):
            lines.append(
                f"{names[i]:<{width}}  {self.votes[i]:<7.4g} {self.bins[i]:4}  {self.prior[i]:.4f}  "
                f"{self.likelihood_with[i]:.4f}  {self.likelihood_without[i]:.4f}   {self.posterior[i]:.4f}"
            )
        return "\n".join([*lines, *self._values_in_words()])

    def _values_in_words(self) -> list[str]:
        if not self.values:
            return []
        n_shown = len(self.values[0][1]) - 1
        titles = ("the row", *(f"node {node}" for node in self.nodes[:n_shown]))
        width = max(len("column"), *(len(shown(name)) for name, _ in self.values))
        lines = ["", "The row beside the nearest nodes, where it is least ordinary:"]
        for name, cells in (("column", titles), *self.values):
            padded = "  ".join(f"{_cut(shown(cell)):<{_WIDEST_CELL}}" for cell in cells)
            lines.append(f"{shown(name):<{width}}  {padded}".rstrip())
        return lines


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"

"""The mixed decision: calibrated votes and a linear model per label, mixed by weights that are learned online.

The calibrated decision gives each label a probability p0. A logistic regression per label gives a score. Both, with the
label's frequency, and on request its recent frequency, are inputs of one more logistic regression: the mixer, whose
weights all labels share. It is trained by Newton steps, so it needs no learning rate.

Sums over features and labels are of whole numbers:

===================  =====  ==========================================================================================
number               unit   bound
===================  =====  ==========================================================================================
term of a score      2^-24  |f| <= 2^10 and |W| <= 2^6; at most 2^22 + 64 + 1 terms, so 2^62.1 in all
gradient, curvature  2^-36  |z| <= 17.3, so 17.3^2 / 4 < 2^6.3 each; at most 2^20 + 1 labels, so 2^62.3 in all
example F1           2^-20  1 per row, n <= 2^40 rows
===================  =====  ==========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from mlca.reference.arithmetic import Floats, clipped, exp_of_minus, ln, splitmix64, sum_in_order
from mlca.reference.decision import (
    HALF_LIVES,
    PERSISTENT_FROM,
    BySlot,
    Calibrated,
    Persistence,
    Recency,
    Segments,
    background,
    frequency,
    shares_of,
)
from mlca.reference.paper import NONE, Distances, Memory, Node
from mlca.reference.similarity import WIDTH, LearnedSimilarity

# The key of a weight: (feature, kind) or (feature, kind, value).
Key: TypeAlias = tuple[Any, ...]

BIAS: Key = ()
UNSEEN = -1  # the slot of the model that is trained as if its label never occurred
FIRST_ROWS = 50  # rows learned before the first step of the linear models; mixing begins after one more
LARGEST_FEATURE, LARGEST_WEIGHT = 1024.0, 64.0
RATE = 0.1
REHEARSED = 4  # number of nodes that the linear models learn again after each row
CELLS_FROM, MOST_CELLED, FEATURE_CELLS = 2000, 64, 8  # rows, numeric features, and cells per feature
MANY, LEAST_GRADIENT = 200_000, 0.002  # above this number of features times labels, small gradients are skipped
RARE = 20.0  # rows that a label needs for its linear model to count half
MARGINS = (1.0, 1.25, 1.5, 2.0, 3.0, math.inf)  # how much likelier than "no label" the fallback must be
THRESHOLDS = tuple((6 + i) / 40.0 for i in range(19))  # 0.15 to 0.6
PER_F1 = 2**20
DRIFT_SPEED = 0.03


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), of z between -30 and 30."""
    small = exp_of_minus(np.minimum(np.abs(z), 30.0))
    result: Floats = np.where(z >= 0.0, 1.0, small) / (1.0 + small)
    return result


def logit(p: float, least: float) -> float:
    """Return ln(p / (1 - p)), of a probability between `least` and 1 - `least`."""
    p = clipped(p, least)
    return ln(p / (1.0 - p))


def limited(value: float, most: float) -> float:
    """Return a number between -most and most."""
    return min(max(value, -most), most)


# ------------------------------------------------------------------ linear models


def linear_features(similarity: LearnedSimilarity, x: Floats, rows: int) -> dict[Key, float]:
    """Return the non-zero features of a row, in the form of the linear models after `rows` rows."""
    found: dict[Key, float] = {}
    n_numeric, one = len(x) - len(similarity.nominal), similarity.one
    for j, value in enumerate(x.tolist()):
        if value != value:
            found[j, "missing"] = 1.0
        elif j in similarity.nominal:
            found[j, "category", value + 0.0] = 1.0
        elif similarity.binary:
            found[j, "number"] = limited(value, LARGEST_FEATURE)
        elif similarity.sparse:
            found[j, "number"] = limited(similarity.ranks[j](value) / one, LARGEST_FEATURE)
        else:
            rank = similarity.ranks[j].from_lowest(value)
            centred = (rank - similarity.middles[j]) * (1.0 / (WIDTH * one))
            found[j, "number"] = limited(centred, LARGEST_FEATURE)
            if rows >= CELLS_FROM and n_numeric <= MOST_CELLED:
                found[j, "cell", FEATURE_CELLS * min(max(rank, 0), one - 1) // one] = 0.5
    return {key: f for key, f in found.items() if f != 0.0}


class LinearModels:
    """A logistic regression per label, one for "no label" and one for labels that no row has had.

    All take the same steps (AdaGrad with weight decay). So a new label starts as a copy of the model for unseen labels,
    which is the model that it would have had from the start. Weights W and sums of squared gradients G are float32.
    """

    def __init__(self) -> None:
        self.rows = {UNSEEN: 0, NONE: 1}  # slot -> row of W and G
        self.columns: dict[Key, int] = {BIAS: 0}
        self.W, self.G = np.zeros((2, 1), np.float32), np.ones((2, 1), np.float32)

    def admit(self, slots: Collection[int]) -> None:
        """Add labels as copies of the model for unseen labels."""
        for slot in slots:
            if slot not in self.rows:
                self.rows[slot] = len(self.rows)
                self.W, self.G = (np.vstack([weights, weights[self.rows[UNSEEN]]]) for weights in (self.W, self.G))

    def scores(self, features: Mapping[Key, float]) -> Floats:
        """Return the score of each model; features that are new have weight 0."""
        columns, f = self._known(features)
        terms = np.rint((f * self.W[:, columns].astype(np.float64)) * 2.0**24).astype(np.int64)
        result: Floats = terms.sum(axis=1) * 2.0**-24
        return result

    def step(self, features: Mapping[Key, float], targets: Mapping[int, float], n: int, skips: bool) -> None:
        """Take a step towards the targets (slot -> 0 to 1) after n rows; `skips` leaves out small gradients."""
        new = [key for key in features if key not in self.columns]
        self.columns |= {key: len(self.columns) + i for i, key in enumerate(new)}
        room = ((0, 0), (0, len(new)))
        self.W, self.G = np.pad(self.W, room), np.pad(self.G, room, constant_values=1.0)
        y = np.array([targets.get(slot, 0.0) for slot in self.rows])
        gradient = (sigmoid(self.scores(features)) - y).astype(np.float32)
        learning = np.flatnonzero(np.abs(gradient) >= LEAST_GRADIENT) if skips else np.arange(len(y))
        columns, f = self._known(features)
        place = np.ix_(learning, columns)
        W, G = self.W[place], self.G[place]
        decay = np.where(columns == 0, 0.0, 1.0 / n).astype(np.float32)  # the bias does not decay
        h = gradient[learning, None] * f.astype(np.float32) + decay * W
        G += h * h
        self.W[place] = np.clip(W - RATE * h / np.sqrt(G), -LARGEST_WEIGHT, LARGEST_WEIGHT)
        self.G[place] = G

    def _known(self, features: Mapping[Key, float]) -> tuple[Any, Floats]:
        with_bias = {BIAS: 1.0, **features}
        known = [key for key in with_bias if key in self.columns]
        return np.array([self.columns[key] for key in known]), np.array([with_bias[key] for key in known])


# ------------------------------------------------------------------ the mixer


def newton_step(H: Floats, g: Sequence[float]) -> list[float]:
    """Return the solution v of H v = g, by Cholesky's root of H; every sum is taken in the order of the inputs."""
    n, v = len(g), list(g)
    root = np.zeros((n, n)).tolist()
    for j in range(n):
        for i in range(j, n):
            rest = float(H[i, j])
            for k in range(j):
                rest -= root[i][k] * root[j][k]
            root[i][j] = math.sqrt(max(rest, 1.0)) if i == j else rest / root[j][j]
    for i in range(n):
        for k in range(i):
            v[i] -= root[i][k] * v[k]
        v[i] /= root[i][i]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            v[i] -= root[k][i] * v[k]
        v[i] /= root[i][i]
    return v


class Mixer:
    """p = sigmoid(w . z), z the inputs of a label; w is learned by Newton's method on the log loss."""

    def __init__(self, n_recent: int) -> None:
        self.w = [0.9, 0.2, 0.1, 0.0] + [0.0] * n_recent
        self.H = np.diag(
            [30.0] * 4 + [200.0] * n_recent
        )  # prior curvature; larger for recency, which gets weight slowly

    def mix(self, inputs: Mapping[int, list[float]]) -> BySlot:
        """Return slot -> probability."""
        sums = [sum_in_order(w * z for w, z in zip(self.w, of_slot, strict=True)) for of_slot in inputs.values()]
        return dict(zip(inputs, sigmoid(np.array(sums)).tolist(), strict=True))

    def learn(self, inputs: Mapping[int, list[float]], p: BySlot, own: Collection[int]) -> None:
        """Take a step for the labels of earlier rows."""
        Z, P = np.array(list(inputs.values())), np.array([[p[slot]] for slot in inputs])
        slopes = (P - np.array([[float(slot in own)] for slot in inputs])) * Z
        bends = (P * (1.0 - P) * Z)[:, :, None] * Z[:, None, :]
        g, H = (np.rint(terms * 2.0**36).astype(np.int64).sum(axis=0) * 2.0**-36 for terms in (slopes, bends))
        upper = np.triu(self.H + H)
        self.H = upper + np.triu(upper, 1).T
        steps = zip(self.w, newton_step(self.H, g.tolist()), strict=True)
        self.w = [limited(w - step, 1000.0) for w, step in steps]


# ------------------------------------------------------------------ the decision


def chosen(p: BySlot, arrived: Sequence[int], threshold: float, margin: float) -> set[int]:
    """Return the labels above a threshold; if there are none, the most likely, if it exceeds "no label" enough."""
    likely = {slot for slot in arrived if p[slot] > threshold}
    if likely or not arrived:
        return likely
    best = max(arrived, key=lambda slot: p[slot])  # ties: the label that arrived first
    return {best} if p[best] > (margin * p[NONE] if p[NONE] > 0.0 else 0.0) else set()


class Mixed(Calibrated):
    """Calibrated votes, linear models and the mixer, with the best margin and threshold so far."""

    def __init__(self, recency: bool, drift: bool, objective: str) -> None:
        super().__init__(recency=False, drift=False)  # both are handled in this class
        self.objective = objective
        self.linear = LinearModels()
        self.recent = Recency() if recency else None
        self.persistence = Persistence()
        self.mixer = Mixer(len(HALF_LIVES) if recency else 0)
        self.trust = Segments(DRIFT_SPEED, math.inf) if drift else None
        self.hits = [0] * len(MARGINS)  # number of rows that each margin would have predicted exactly
        self.f1 = [0] * len(THRESHOLDS)  # total example F1 that each threshold would have reached

    def votes(self, found: Distances, memory: Memory) -> list[tuple[BySlot, bool]]:
        """Return the shares of the votes; with `drift="follow"`, those of trusted nodes."""
        return [shares_of(found, memory, self._trusted(memory))]

    def _trusted(self, memory: Memory) -> list[int]:
        everything = list(range(len(memory.nodes)))
        return self.trust.trusted(memory) or everything if self.trust else everything

    def counted(self, memory: Memory) -> list[Node]:
        """Return the nodes that the similarity is computed from and that are rehearsed."""
        return [memory.nodes[k] for k in self._trusted(memory)]

    # ---- probabilities

    def mixed(
        self,
        x: Floats,
        votes: Sequence[tuple[BySlot, bool]],
        memory: Memory,
        similarity: LearnedSimilarity | None,
        slots: Sequence[int],
    ) -> tuple[BySlot, dict[int, list[float]]]:
        """Return slot -> probability, and the inputs of the mixer; without inputs if the row is not mixed."""
        of_background = background(similarity, x, memory, slots)
        opinions = self.opinions(votes, memory, of_background, slots)
        p0 = {slot: said[0] for slot, said in opinions.items()}
        (_, far) = votes[0]
        if similarity is None or far or memory.n <= FIRST_ROWS:
            return p0, {}
        scores = self.linear.scores(linear_features(similarity, x, memory.n)).tolist()
        inputs = {slot: self._inputs(slot, p0[slot], scores[self.linear.rows[slot]], memory) for slot in slots}
        return self.mixer.mix(inputs), inputs

    def _inputs(self, slot: int, p0: float, score: float, memory: Memory) -> list[float]:
        n, share = memory.totals.get(slot, 0), frequency(memory, slot)
        prior = logit(share, 1e-4)
        inputs = [logit(p0, 1e-3), n / (n + RARE) * (limited(score, 8.0) - prior), prior, 1.0]
        if self.recent:
            counts = self.recent.counts.get(slot, [0.0] * len(HALF_LIVES))
            recent = [(c + 0.5 * share) / (rows + 0.5) for c, rows in zip(counts, self.recent.rows, strict=True)]
            if self.persistence.rows >= PERSISTENT_FROM:
                recent[0] = self.persistence.share(slot, share)
            inputs += [limited(logit(p, 1e-6) - prior, 8.0) for p in recent]
        return inputs

    def probabilities(
        self, x: Floats, found: Distances, memory: Memory, similarity: LearnedSimilarity | None
    ) -> BySlot:
        """Return slot -> probability of "no label" and of every label that some row has had."""
        return self.mixed(x, self.votes(found, memory), memory, similarity, [*{NONE: 0, **memory.totals}])[0]

    def choose(self, p: BySlot, arrived: Sequence[int]) -> set[int]:
        """Return the labels that are predicted, for the objective."""
        if self.objective == "hamming":
            return {slot for slot in arrived if p[slot] > 0.5}
        return chosen(p, arrived, self.threshold() if self.objective == "f1" else 0.5, self.margin())

    def margin(self) -> float:
        """Return the margin that has been right most often; of several, the smallest."""
        return MARGINS[self.hits.index(max(self.hits))]

    def threshold(self) -> float:
        """Return the threshold with the best F1 so far; of several, the nearest to 0.5, then the smaller."""
        best = min(range(len(THRESHOLDS)), key=lambda i: (-self.f1[i], abs(i - THRESHOLDS.index(0.5)), i))
        return THRESHOLDS[best]

    # ---- one row

    def learn(
        self, x: Floats, own: Collection[int], found: Distances, memory: Memory, similarity: LearnedSimilarity | None
    ) -> None:
        """Update the decision by the prediction for a row, before the row is learned."""
        p, inputs = self.mixed(x, self.votes(found, memory), memory, similarity, [*{NONE: 0, **memory.totals}])
        if inputs:
            self._count(p, [slot for slot in memory.totals if slot != NONE], set(own) - {NONE})
            self.mixer.learn({slot: z for slot, z in inputs.items() if slot in memory.totals}, p, own)
        super().learn(x, own, found, memory, similarity)
        if self.recent:
            self.recent.learn(own)
            self.persistence.learn(own)
        if self.trust:
            self.trust.learn(found, own, memory)

    def _count(self, p: BySlot, arrived: Sequence[int], truth: set[int]) -> None:
        margin = self.margin()
        for i, threshold in enumerate(THRESHOLDS):
            labels = chosen(p, arrived, threshold, margin)
            together = len(labels) + len(truth)
            self.f1[i] += round((2.0 * len(labels & truth) / together if together else 1.0) * PER_F1)
        self.hits = [hits + (chosen(p, arrived, 0.5, t) == truth) for hits, t in zip(self.hits, MARGINS, strict=True)]

    def learn_node(
        self,
        x: Floats,
        own: Collection[int],
        node: Node | None,
        is_new: bool,
        memory: Memory,
        similarity: LearnedSimilarity | None,
    ) -> None:
        """Take the steps of the linear models: one on the row, then some on nodes, so that rare labels are not lost."""
        if self.trust and node and is_new:
            self.trust.add_node(node)
        self.linear.admit(memory.totals)
        if similarity is None or memory.n < FIRST_ROWS:
            return
        n, features = memory.n, linear_features(similarity, x, memory.n)
        many = len(features) * (len(self.linear.rows) - 1) > MANY
        self.linear.step(features, dict.fromkeys(own, 1.0), n, many)
        nodes = self.counted(memory)
        for q in range(1 if many else REHEARSED):
            old = nodes[splitmix64(8 * n + q) % len(nodes)]
            shares = {slot: rows / old.alpha for slot, rows in old.beta.items()}
            self.linear.step(linear_features(similarity, old.y, n), shares, n, many)

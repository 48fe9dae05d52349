"""The default decision: calibrated votes and linear models, mixed by learned weights.

The votes give each label a probability p0. A logistic regression per label gives a score. Another logistic regression,
the mixer, combines both with the label's frequency and, with `recency`, its recent frequency. All labels share the
weights of the mixer. It is trained by Newton steps, so it needs no learning rate.

Sums over features and labels are sums of whole numbers: terms of a score in units of 2^-24, gradients and curvatures in
units of 2^-36.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from mlca.reference.arithmetic import Floats, limited, logit, sigmoid, splitmix64
from mlca.reference.decision import BySlot, Calibration, LocatedRow, Novelty, Votes, background, chosen, votes_of
from mlca.reference.experts import HALF_LIVES, Persistence, Recency, Segments
from mlca.reference.paper import NONE, Memory, Node
from mlca.reference.similarity import WIDTH, LearnedSimilarity

# The key of a weight: (feature, kind) or (feature, kind, value).
Key: TypeAlias = tuple[Any, ...]

BIAS: Key = ()
UNSEEN = -1  # slot of the linear model for labels that have not occurred yet
FIRST_ROWS = 50  # rows learned before the first step of the linear models; mixing begins after one more
LARGEST_FEATURE, LARGEST_WEIGHT = 1024.0, 64.0
RATE = 0.1
REHEARSED = 4  # number of nodes that the linear models learn again after each row
CELLS_FROM, MOST_CELLED, FEATURE_CELLS = 2000, 64, 8  # cells: fewest rows, most features, cells per feature
MANY, LEAST_GRADIENT = 200_000, 0.002  # with more features times labels than MANY, smaller gradients are skipped
RARE = 20.0  # number of rows with a label at which its linear model has half of its full weight
MARGINS = (1.0, 1.25, 1.5, 2.0, 3.0, math.inf)  # how much likelier than "no label" the fallback must be
THRESHOLDS = tuple((6 + i) / 40.0 for i in range(19))  # candidates for objective="f1": 0.15 to 0.6
PER_F1 = 2**20
PERSISTENT_FROM = 256  # recency: number of rows from which persistence replaces the shortest half-life
DRIFT_SPEED = 0.03


class Mixed:
    """The default decision: `predict` a row; to learn it, call `learn`, then `learn_node`."""

    def __init__(self, memory: Memory, recency: bool, drift: bool) -> None:
        self.memory, self.calibration, self.novelty = memory, Calibration(), Novelty()
        self.linear = LinearModels()
        self.mixer = Mixer(len(HALF_LIVES) if recency else 0)
        self.hits = [0] * len(MARGINS)  # number of rows that each margin would have predicted exactly
        self.f1 = [0] * len(THRESHOLDS)  # total example F1 that each threshold would have reached
        self.recency, self.persistence = (Recency() if recency else None), Persistence()
        self.segments = Segments(DRIFT_SPEED, math.inf) if drift else None

    def predict(self, row: LocatedRow) -> tuple[Votes, BySlot, dict[int, list[float]]]:
        """Return votes, probabilities, and the mixer's inputs (empty while the mixer is unused).

        The slots are "no label" and all labels seen so far.
        """
        memory, slots = self.memory, [*{NONE: 0, **self.memory.totals}]
        # The nearest nodes give each label a share of the votes, which becomes the probability p0.
        votes = votes_of(row.found, memory, self.trusted())
        p0 = self.calibration.probabilities(votes, background(row, memory, slots), slots)
        if row.similarity is None or votes.far or memory.n <= FIRST_ROWS:
            return votes, p0, {}
        # The mixer adds the weighted logits of p0, of the label's linear model and of its frequency.
        scores = self.linear.scores(linear_features(row.similarity, row.x, memory.n)).tolist()
        inputs = {slot: self._inputs(slot, p0[slot], scores[self.linear.rows[slot]]) for slot in slots}
        return votes, self.mixer.mix(inputs), inputs

    def learn(self, row: LocatedRow, own: Collection[int]) -> None:
        """Update mixer, calibration and counts by a row's labels, before its node changes."""
        votes, p, inputs = self.predict(row)
        if inputs:
            self._count(p, set(own) - {NONE})
            of_earlier = {slot: z for slot, z in inputs.items() if slot in self.memory.totals}
            self.mixer.learn(of_earlier, p, own)
        self.calibration.learn(votes.shares, own)
        if row.found.keys:
            self.novelty.learn(row.found.least())
        if self.recency:
            self.recency.learn(own)
            self.persistence.learn(own)
        if self.segments:
            self.segments.learn(row.found, own, self.memory)

    def learn_node(self, row: LocatedRow, own: Collection[int], node: Node | None) -> None:
        """Train the linear models on the row, then on some nodes to rehearse rare labels."""
        if self.segments and node and node.is_new:
            self.segments.add_node(node)
        self.linear.admit(self.memory.totals)
        n = self.memory.n
        if row.similarity is None or n < FIRST_ROWS:
            return
        features = linear_features(row.similarity, row.x, n)
        many = len(features) * (len(self.linear.rows) - 1) > MANY
        self.linear.step(features, dict.fromkeys(own, 1.0), n, many)
        nodes = [self.memory.nodes[k] for k in self.trusted()]
        for q in range(1 if many else REHEARSED):
            old = nodes[splitmix64(8 * n + q) % len(nodes)]
            shares = {slot: rows / old.alpha for slot, rows in old.beta.items()}
            self.linear.step(linear_features(row.similarity, old.y, n), shares, n, many)

    def trusted(self) -> list[int]:
        """Return the nodes that the model uses: all or, with drift, those of trusted segments."""
        every = list(range(len(self.memory.nodes)))
        return (self.segments.trusted(self.memory) or every) if self.segments else every

    def _inputs(self, slot: int, p0: float, score: float) -> list[float]:
        """Return the mixer's inputs: logits of votes, linear model and frequency, 1, recency."""
        n, share = self.memory.totals.get(slot, 0), self.memory.frequency(slot)
        prior = logit(share, 1e-4)
        inputs = [logit(p0, 1e-3), n / (n + RARE) * (limited(score, -8.0, 8.0) - prior), prior, 1.0]
        if self.recency:
            recent = self.recency.shares(slot, share)
            if self.persistence.rows >= PERSISTENT_FROM:
                recent[0] = self.persistence.share(slot, share)
            inputs += [limited(logit(p, 1e-6) - prior, -8.0, 8.0) for p in recent]
        return inputs

    def margin(self) -> float:
        """Return the margin that would have been right most often; ties go to the smallest."""
        return MARGINS[self.hits.index(max(self.hits))]

    def threshold(self) -> float:
        """Return the threshold with the best F1 so far; ties go to the one nearest to 0.5."""
        best = min(range(len(THRESHOLDS)), key=lambda i: (-self.f1[i], abs(i - THRESHOLDS.index(0.5)), i))
        return THRESHOLDS[best]

    def _count(self, p: BySlot, truth: set[int]) -> None:
        """Record for each margin and threshold how well it would have predicted the row."""
        arrived, margin = self.memory.arrived, self.margin()
        for i, threshold in enumerate(THRESHOLDS):
            labels = chosen(p, arrived, threshold, margin)
            together = len(labels) + len(truth)
            self.f1[i] += round((2.0 * len(labels & truth) / together if together else 1.0) * PER_F1)
        self.hits = [hits + (chosen(p, arrived, 0.5, t) == truth) for hits, t in zip(self.hits, MARGINS, strict=True)]


def linear_features(similarity: LearnedSimilarity, x: Floats, rows: int) -> dict[Key, float]:
    """Return the non-zero inputs of the linear models for a row, after `rows` learned rows."""
    nominal, one, cells = similarity.nominal, similarity.one, None
    if similarity.binary:
        numbers: Any = x
    elif similarity.sparse:
        numbers = similarity.ranks(x) / one
    else:
        ranks = similarity.ranks.from_lowest(np.where(np.isnan(x), 0.0, x))
        numbers = (ranks - similarity.middles) * (1.0 / (WIDTH * one))
        if rows >= CELLS_FROM and int((~nominal).sum()) <= MOST_CELLED:
            cells = (FEATURE_CELLS * np.clip(ranks, 0, one - 1) // one).tolist()
    found: dict[Key, float] = {}
    for j, number in enumerate(np.clip(numbers, -LARGEST_FEATURE, LARGEST_FEATURE).tolist()):
        if np.isnan(x[j]):
            found[j, "missing"] = 1.0
        elif nominal[j]:
            found[j, "category", float(x[j]) + 0.0] = 1.0
        else:
            found[j, "number"] = number
            if cells:
                found[j, "cell", cells[j]] = 0.5
    return {key: f for key, f in found.items() if f != 0.0}


class LinearModels:
    """Logistic regressions: one per label, one for "no label", and one for all unseen labels.

    All are trained on the same rows (AdaGrad with weight decay), and unseen labels are absent from all rows. So the
    model of a new label starts as a copy of the one for unseen labels.
    """

    def __init__(self) -> None:
        self.rows = {UNSEEN: 0, NONE: 1}  # the row of W and G for each slot
        self.columns: dict[Key, int] = {BIAS: 0}
        self.W = np.zeros((2, 1), np.float32)  # weights
        self.G = np.ones((2, 1), np.float32)  # sums of squared gradients

    def admit(self, slots: Collection[int]) -> None:
        """Add labels as copies of the model for unseen labels."""
        for slot in slots:
            if slot not in self.rows:
                self.rows[slot] = len(self.rows)
                self.W, self.G = (np.vstack([weights, weights[self.rows[UNSEEN]]]) for weights in (self.W, self.G))

    def scores(self, features: Mapping[Key, float]) -> Floats:
        """Return the score of each model; new features have weight 0."""
        columns, f = self._known(features)
        terms = np.rint((f * self.W[:, columns].astype(np.float64)) * 2.0**24).astype(np.int64)
        result: Floats = terms.sum(axis=1) * 2.0**-24
        return result

    def step(self, features: Mapping[Key, float], targets: Mapping[int, float], n: int, skips: bool) -> None:
        """Take a step towards targets from 0 to 1; `skips` leaves out slots with small gradients.

        For features f and the gradient g of a score: h = g f + W / n,  G <- G + h^2,  W <- W - 0.1 h / sqrt(G),  all in
        float32.
        """
        new = [key for key in features if key not in self.columns]
        self.columns |= {key: len(self.columns) + i for i, key in enumerate(new)}
        room = ((0, 0), (0, len(new)))
        self.W, self.G = np.pad(self.W, room), np.pad(self.G, room, constant_values=1.0)
        y = np.array([targets.get(slot, 0.0) for slot in self.rows])
        g = (sigmoid(self.scores(features)) - y).astype(np.float32)
        learning = np.flatnonzero(np.abs(g) >= LEAST_GRADIENT) if skips else np.arange(len(y))
        columns, f = self._known(features)
        place = np.ix_(learning, columns)
        W, G = self.W[place], self.G[place]
        decay = np.where(columns == 0, 0.0, 1.0 / n).astype(np.float32)  # the bias does not decay
        h = g[learning, None] * f.astype(np.float32) + decay * W
        G += h * h
        self.W[place] = np.clip(W - RATE * h / np.sqrt(G), -LARGEST_WEIGHT, LARGEST_WEIGHT)
        self.G[place] = G

    def _known(self, features: Mapping[Key, float]) -> tuple[Any, Floats]:
        with_bias = {BIAS: 1.0, **features}
        known = [key for key in with_bias if key in self.columns]
        return np.array([self.columns[key] for key in known]), np.array([with_bias[key] for key in known])


def newton_step(H: Floats, g: Floats) -> list[float]:
    """Solve H v = g by Cholesky decomposition, with sums in the order of the inputs."""
    n, root, v = len(g), np.zeros_like(H), [float(value) for value in g]
    for j in range(n):
        rest = H[j:, j].copy()
        for k in range(j):
            rest -= root[j:, k] * root[j, k]
        root[j, j] = math.sqrt(max(rest[0], 1.0))
        root[j + 1 :, j] = rest[1:] / root[j, j]
    for lower, order in ((root, range(n)), (root.T, range(n - 1, -1, -1))):  # root u = g, then its transpose v = u
        for i in order:
            for k in range(n):
                if k != i:
                    v[i] -= float(lower[i, k]) * v[k]
            v[i] /= float(lower[i, i])
    return v


class Mixer:
    """The model p = sigmoid(w . z) of a label's inputs z; Newton steps learn a shared w."""

    def __init__(self, n_recent: int) -> None:
        self.w = np.array([0.9, 0.2, 0.1, 0.0] + [0.0] * n_recent)
        self.H = np.diag([30.0] * 4 + [200.0] * n_recent)  # larger for recency, so that its weights change slowly

    def mix(self, inputs: Mapping[int, list[float]]) -> BySlot:
        """Return the probability of each slot."""
        z = np.array(list(inputs.values()))
        return dict(zip(inputs, sigmoid(np.cumsum(self.w * z, axis=1)[:, -1]).tolist(), strict=True))

    def learn(self, inputs: Mapping[int, list[float]], p: BySlot, own: Collection[int]) -> None:
        """Take a step on a row: H <- H + sum of p (1 - p) z z^T, w <- w - H^-1 (sum of (p - y) z)."""
        z, P = np.array(list(inputs.values())), np.array([[p[slot]] for slot in inputs])
        slopes = (P - np.array([[float(slot in own)] for slot in inputs])) * z
        bends = (P * (1.0 - P) * z)[:, :, None] * z[:, None, :]
        g, H = (np.rint(terms * 2.0**36).astype(np.int64).sum(axis=0) * 2.0**-36 for terms in (slopes, bends))
        upper = np.triu(self.H + H)  # below the diagonal, products were rounded in another order
        self.H = upper + np.triu(upper, 1).T
        self.w = np.clip(self.w - newton_step(self.H, g), -1000.0, 1000.0)

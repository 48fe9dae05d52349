"""MLCA with the calibrated decision, recency and the learned similarity, in plain Python: spec/beyond.md made exact.

Units and bounds of all sums are at the head of `learned.py`.
"""

import math

from tests.learner.elementary import clipped, exp_of_minus, ln, odds, shifted
from tests.learner.learned import NONE, Similarity, due_after
from tests.learner.reference import Reference, common_bandwidth, deviations_bandwidths, power_of_half

CELLS = 10
PER_COUNT = 2**20
PER_NAT = 2**32
HALF_LIVES = (1, 4, 16, 64)


# ------------------------------------------------------------------ from nodes to shares


class Ruler:
    """How whole numbers that nodes are compared by become distances; `tied` to a key are keys up to a relative 5e-7."""

    def __init__(self, unit, far, squared):
        self.unit, self.far, self.squared = unit, far, squared

    def distance(self, key):
        return math.sqrt(key / self.unit) if self.squared else key / self.unit

    def tied(self, key):
        return key + key // (10**6 if self.squared else 2 * 10**6)


def ruler_of(model, x):
    """Return the ruler of correntropy: distances are the similarities that an explanation shows."""
    parts = len(x)
    if model.attributes == "clustered":
        parts = max(len(model.groups_of(x)), 1)
    return Ruler(parts * 2.0**40, parts * 2**40, squared=model.attributes == "common")


def voters_of(near, counts, ruler):
    """Return the (node, weight) of those who vote, nearest first; `near` are all (key, node), in order."""
    k = rows = 0
    while k < min(len(near), 100) and (k < 10 or rows < 50):
        rows += counts[near[k][1]]
        k += 1
    if k == 0:
        return []
    last = ruler.tied(near[k - 1][0])
    while k < min(len(near), 100) and near[k][0] <= last:
        k += 1
    nearest, end, extra = near[0][0], near[-1][0], 0.001
    if k < len(near):
        end, extra = near[k][0], 0.0
    if end <= ruler.tied(nearest):
        return [(node, 1.0) for _, node in near[:k]]
    d1, e = ruler.distance(nearest), ruler.distance(end)
    quotients = [((e - ruler.distance(key)) / (e - d1), node) for key, node in near[:k]]
    return [(node, q * q + extra) for q, node in quotients]


def shares_of(voters, counts, labels):
    """Return slot -> share of the votes."""
    shares, together = {}, 0.0
    for node, weight in voters:
        together += weight
        for slot, rows in labels[node].items():
            shares[slot] = shares.get(slot, 0.0) + weight * rows / counts[node]
    return {slot: min(share / together, 1.0) for slot, share in shares.items()}


# ------------------------------------------------------------------ from shares to probabilities


class Calibration:
    """How often a share came true. A label without an entry has all rows in cell 0, so late labels need no storage."""

    def __init__(self):
        self.rows = 0
        self.cells = {}  # slot -> [missing from cell 0, rows in cells 1..10], [rows with the label in cells 0..10]

    @staticmethod
    def place(share):
        x = share * CELLS
        cell = min(int(x), CELLS - 1)
        return cell, x - cell

    def probability(self, slot, share):
        cell, f = self.place(share)
        total, present = self.cells.get(slot, ([0] * (CELLS + 1),) * 2)
        come_true = []
        for i in (cell, cell + 1):
            rows = total[i] + (self.rows * PER_COUNT if i == 0 else 0)
            come_true.append((present[i] / PER_COUNT + 0.3 * i) / (rows / PER_COUNT + 3.0))
        return 0.5 * share + 0.5 * ((1.0 - f) * come_true[0] + f * come_true[1])

    def learn(self, shares, own):
        self.rows += 1
        for slot in {**shares, **dict.fromkeys(own)}:
            total, present = self.cells.setdefault(slot, ([0] * (CELLS + 1), [0] * (CELLS + 1)))
            cell, f = self.place(shares.get(slot, 0.0))
            upper = round(f * PER_COUNT)
            total[0] -= PER_COUNT
            for i, part in ((cell, PER_COUNT - upper), (cell + 1, upper)):
                total[i] += part
                present[i] += part if slot in own else 0


def chosen(p, arrived):
    """Return the slots predicted: the likely ones; if none is, the best unless "none" is as likely."""
    likely = {slot for slot in arrived if p[slot] > 0.5}
    if likely or not arrived:
        return likely
    best = max(arrived, key=lambda slot: p[slot])  # of equals, the label that came first
    return {best} if p[best] > p[NONE] else set()


class Pool:
    """Experts whose opinions are mixed; those that were right weigh more."""

    def __init__(self, experts):
        self.log_weights = [ln(0.9)] + [ln(0.1 / (experts - 1))] * (experts - 1)

    def weights(self):
        top, n = max(self.log_weights), len(self.log_weights)
        raw = [exp_of_minus(top - v) for v in self.log_weights]
        together = 0.0
        for v in raw:
            together += v
        return [0.999 * v / together + 0.001 / n for v in raw]

    def mix(self, opinions):
        total = 0.0
        for weight, p in zip(self.weights(), opinions, strict=True):
            total += weight * p
        return total

    def learn(self, opinions, own):
        """`opinions` are slot -> what each expert said."""
        weights, losses = self.weights(), [0] * len(self.log_weights)
        for slot, said in opinions.items():
            for e, p in enumerate(said):
                p = clipped(p, 1e-3)
                losses[e] += round(ln(p if slot in own else 1.0 - p) * PER_NAT)
        self.log_weights = [ln(u) + 0.5 * (loss / PER_NAT) for u, loss in zip(weights, losses, strict=True)]


class Recency:
    """Counts that halve every h rows, and what they make of a probability."""

    def __init__(self):
        self.rows = [0.0] * len(HALF_LIVES)
        self.counts = {}  # slot -> rows with the label

    def opinions(self, slot, p, prior):
        result = [p]
        for count, rows in zip(self.counts.get(slot, [0.0] * len(HALF_LIVES)), self.rows, strict=True):
            o = odds(p) * odds((count + 0.5 * prior) / (rows + 0.5)) / odds(prior)
            result.append(o / (1.0 + o))
        return result

    def learn(self, own):
        decay = [power_of_half(1.0 / h) for h in HALF_LIVES]
        self.rows = [v * a + 1.0 for v, a in zip(self.rows, decay, strict=True)]
        for slot in {**self.counts, **dict.fromkeys(own)}:
            old = self.counts.get(slot, [0.0] * len(HALF_LIVES))
            faded = [v * a for v, a in zip(old, decay, strict=True)]
            faded = [v if v >= 1e-30 else 0.0 for v in faded]  # numbers that never vanish would be slow
            self.counts[slot] = [v + (slot in own) for v in faded]


class Novelty:
    """How far rows were from their nearest node before they were learned, in 64 bins."""

    def __init__(self):
        self.rows = [0] * 64

    def learn(self, distance):
        self.rows[min(int(64 * distance), 63)] += 1

    def of(self, distance):
        """Return the share of rows that were nearer; rows of the same bin are spread evenly in it."""
        if sum(self.rows) == 0:
            return 1.0 if distance > 0 else 0.0
        x = 64 * distance
        place = min(int(x), 63)
        return (sum(self.rows[:place]) + (x - place) * self.rows[place]) / sum(self.rows)


def auto_vigilance(rows, **options):
    """Return max(.01, .3 times the mean similarity of the rows of the first window to their nearest among them).

    Rows are compared as nodes of that window would be when predicting; groups of attributes are those of vigilance .01.
    """
    model = Reference(**options | {"vigilance": 0.01})
    model.X = [[float(v) for v in x] for x in rows]
    if len(rows) < 2:
        return 0.01
    estimate = common_bandwidth if model.attributes == "common" else deviations_bandwidths
    bandwidths = estimate(model.X, model.nominal)
    if model.attributes == "clustered":
        model.group_round()
    model.y, model.bandwidth, together = model.X, [bandwidths] * len(rows), 0.0
    for i, x in enumerate(model.X):
        sums = model.similarities(x, predicting=True)[0]
        together += ruler_of(model, x).distance(min(sums[:i] + sums[i + 1 :]))
    return max(0.01, 0.3 * (together / len(rows)))


# ------------------------------------------------------------------ the learner


class Beyond(Reference):
    """MLCA with the rule of beyond.md; nodes are made by `Reference`."""

    def __init__(self, similarity="learned", decision="calibrated", recency=False, **options):
        super().__init__(**options)
        self.similarity, self.decision = similarity, decision
        self.none = []  # of each node, rows without labels
        self.totals = {}  # slot -> rows with the label, in the order of arrival
        self.rows, self.due, self.learned = 0, 1, None
        self.calibrations = [Calibration()]
        self.novelties = Novelty()
        self.recency = Recency() if recency else None
        self.pool = Pool(1 + len(HALF_LIVES)) if recency else None

    # ---- who is near

    def slots(self, k):
        own = {i + 1: c for i, c in enumerate(self.beta[k]) if c}
        return {NONE: self.none[k], **own} if self.none[k] else own

    def similarities(self, x, predicting=False):
        """Nodes are made by correntropy in any case; a learned similarity decides who votes."""
        if predicting and self.similarity == "learned":
            return self.keys(x, predicting)[0], None
        return super().similarities(x, predicting)

    def keys(self, x, predicting):
        """Return what the voters are found by, and the ruler that goes with it."""
        if self.similarity == "learned":
            ranks = self.learned.row(x) if self.y else []
            return [self.learned.key(x, ranks, k, y) for k, y in enumerate(self.y)], self.learned_ruler()
        return super().similarities(x, predicting)[0] if self.y else [], ruler_of(self, x)

    def learned_ruler(self):
        return Ruler(1e7, self.learned.far if self.learned else 10**7, squared=True)

    def near(self, keys, nodes=None):
        return sorted((keys[k], k) for k in (range(len(keys)) if nodes is None else nodes))

    # ---- what is said of a row

    def shares(self, near, ruler, counts=None, labels=None):
        """Return slot -> share, and whether even the nearest node has nothing in common with the row."""
        if near and near[0][0] >= ruler.far:
            return {slot: total / self.rows for slot, total in self.totals.items()}, True
        slots = {node: self.slots(node) for _, node in near[:100]}
        return shares_of(voters_of(near, self.alpha, ruler), counts or self.alpha, labels or slots), False

    def prior(self, slot):
        return (self.totals.get(slot, 0) + 1) / (self.rows + 2)

    def probability(self, x, slot, shares, far, expert=0):
        if far:
            return shares.get(slot, 0.0)
        return self.blended(x, slot, self.calibrations[expert].probability(slot, shares.get(slot, 0.0)))

    def blended(self, x, slot, p):
        if self.similarity != "learned" or self.learned is None or self.learned.background is None:
            return p
        background, z = self.learned.background.get(slot), 0.0
        if background is not None:
            z = background.score(self.learned.row(x)) / background.deviation
        return 0.9 * p + 0.1 * shifted(odds(self.prior(slot)), z)

    def opinions(self, x, keys, ruler, slots):
        """Return the shares that calibrations learn from, and slot -> what each expert says."""
        shares, far = self.shares(self.near(keys), ruler)
        return [shares], {slot: self.recent(slot, self.probability(x, slot, shares, far)) for slot in slots}

    def recent(self, slot, p):
        return self.recency.opinions(slot, p, self.prior(slot)) if self.recency else [p]

    def probabilities(self, x):
        """Return slot -> probability of "none" and of every label that has come."""
        x = [float(v) for v in x]
        if self.decision == "bayes":
            return dict(enumerate(self.predict_bayes(x), start=1))
        keys, ruler = self.keys(x, predicting=True)
        _, said = self.opinions(x, keys, ruler, {NONE: 0, **self.totals})
        return {slot: self.pool.mix(p) if self.pool else p[0] for slot, p in said.items()}

    def proba_of(self, p):
        return [p.get(i + 1, 0.0) for i in range(self.q)]

    def predict_proba(self, x):
        return self.proba_of(self.probabilities(x))

    def predicted_of(self, p):
        predicted = (
            chosen(p, [slot for slot in self.totals if slot != NONE]) if NONE in p else {s for s in p if p[s] > 0.5}
        )
        return [int(i + 1 in predicted) for i in range(self.q)]

    def predict_bayes(self, x):
        return [self.blended(x, i + 1, p) for i, p in enumerate(super().predict_proba(x))]

    def novelty(self, x):
        keys, ruler = self.keys([float(v) for v in x], predicting=True)
        return self.novelties.of(ruler.distance(min(keys)))

    # ---- one row

    def begin(self, X, q):
        self.X, self.q = [[float(v) for v in row] for row in X], q
        self.with_ = [[0] * (self.Ny + 1) for _ in range(q)]
        self.without = [[0] * (self.Ny + 1) for _ in range(q)]

    def learn(self, x, labels):
        self.n += 1
        if self.attributes == "clustered" and (self.n == 1 or self.n % self.window == 0):
            self.group_round()
        own = [i + 1 for i, v in enumerate(labels) if v] or [NONE]
        keys, ruler = self.keys(x, predicting=False)
        if self.decision == "calibrated":
            self.note(x, own, keys, ruler)
        for slot in own:
            self.totals[slot] = self.totals.get(slot, 0) + 1
        self.place(x, labels, own, keys)
        self.rows += 1
        if self.similarity == "learned" and self.rows >= self.due:
            self.learned = Similarity(self.y, self.alpha, [self.slots(k) for k in range(len(self.y))], self.nominal)
            self.due = due_after(self.rows)

    def note(self, x, own, keys, ruler):
        """Learn from what would have been said of the row."""
        shares, said = self.opinions(x, keys, ruler, {**self.totals, **dict.fromkeys(own), NONE: 0})
        if self.pool:
            self.pool.learn(said, own)
        for calibration, of_expert in zip(self.calibrations, shares, strict=True):
            calibration.learn(of_expert, own)
        if self.recency:
            self.recency.learn(own)
        if keys:
            self.novelties.learn(ruler.distance(min(keys)))

    def place(self, x, labels, own, keys):
        """Make or move a node, and count for Bayes; return the node that stands for the row."""
        if not self.y:
            self.add_node(x, labels)
            self.none.append(int(own == [NONE]))
            return 0
        sums, threshold = self.similarities(x)
        near = [k for _, k in self.near(sums)]
        voters = [k for _, k in self.near(keys)]
        if sums[near[0]] > threshold:
            self.add_node(x, labels)
            self.none.append(0)
            node = len(self.y) - 1
            voters = [node, *voters]
        else:
            node = near[0]
            self.move(x, labels, near[: self.Ny], len(near) > 1 and sums[near[1]] <= threshold)
        self.none[node] += own == [NONE]
        for i, place in enumerate(self.bins(voters[: self.Ny])):
            (self.with_ if labels[i] else self.without)[i][place] += 1
        return node

"""MLCA, MLCA-I and MLCA-C in plain Python, slow and readable beside the specification.

Missing values (NaN) and nominal attributes enter as docs/mixed.md says.

The compiled learner must equal it bit for bit. It shares nothing with it but the exponential
(`power_of_half` on one number): near k = 1 the root would turn another exponential's last bit into 1e-8.
"""

import math

import numpy as np

from mlca.kernels import native

SCALE, power_of_half = native.probes.SCALE, native.probes.power_of_half


def units(term):
    """Round to a whole multiple of 2^-40 by adding and subtracting 1.5 * 2^12."""
    return int(((term + 1.5 * 2.0**12) - 1.5 * 2.0**12) * 2.0**40)


def kernel(difference, bandwidth):
    z = difference * (SCALE / bandwidth)
    return power_of_half(z * z)


def rounded(numerator, denominator):
    """Return the whole number next to a quotient of whole numbers, the larger of two."""
    return (2 * numerator + denominator) // (2 * denominator)


def is_missing(value):
    return value != value


def present(column):
    return [value for value in column if not is_missing(value)]


def silverman(deviation, m, d):
    return (4.0 / (2.0 + d)) ** (1.0 / (4.0 + d)) * deviation * m ** (-1.0 / (4.0 + d))


def deviations_bandwidths(window, nominal=()):
    """Return each attribute's bandwidth from the values that are there; a nominal one has that of a constant."""
    d, result = len(window[0]), []
    for i, column in enumerate(map(present, zip(*window, strict=True))):
        m, deviation = len(column), 1e-6
        if i not in nominal and m > 1 and max(column) > min(column):
            mean, squares = _sum(column) / m, 0.0
            for value in column:
                squares += (value - mean) * (value - mean)
            deviation = math.sqrt(squares / (m - 1)) if squares / (m - 1) > 0 else deviation
        result.append(silverman(deviation, max(m, 1), d))
    return result


def common_bandwidth(window, nominal=()):
    """Return the median over the attributes that are numbers and have a value in the window."""
    columns = enumerate(zip(*window, strict=True))
    telling = [i for i, column in columns if i not in nominal and present(column)]
    if not telling:
        return silverman(1e-6, len(window), len(window[0]))
    bandwidths = deviations_bandwidths(window, nominal)
    return float(np.median([bandwidths[i] for i in telling]))


def in_full(total, compared, parts):
    """Return what a sum over some of the parts would be over all of them; without any, the most unlike there is."""
    return rounded(total * parts, compared) if compared else parts * 2**40


class Reference:
    similarity, decision = "correntropy", "bayes"

    def __init__(
        self, vigilance, n_neighbors, window, smoothing, attributes, rule, vote, seed=0, nominal=(), **published
    ):
        assert all(value == getattr(self, name) for name, value in published.items()), "the rule beyond is in Beyond"
        self.nominal = frozenset(nominal)
        self.V, self.Ny, self.window, self.s, self.seed = vigilance, n_neighbors, window, smoothing, seed
        self.attributes, self.rule, self.vote = attributes, rule, vote
        self.y, self.alpha, self.beta, self.bandwidth = [], [], [], []
        self.centres = []  # of attribute groups: [centre, count, bandwidth]
        self.n = 0

    def fit(self, X, Y):
        self.X, self.q = [[float(v) for v in row] for row in X], len(Y[0])
        self.with_ = [[0] * (self.Ny + 1) for _ in range(self.q)]
        self.without = [[0] * (self.Ny + 1) for _ in range(self.q)]
        for x, labels in zip(self.X, Y, strict=True):
            self.learn(x, [int(v) for v in labels])
        return self

    def current_window(self):
        if self.n <= self.window:
            return self.X[: self.window]
        return self.X[self.n - self.window : self.n]

    def learn(self, x, labels):
        self.n += 1
        if self.attributes == "clustered" and (self.n == 1 or self.n % self.window == 0):
            self.group_round()
        if not self.y:
            return self.add_node(x, labels)
        sums, threshold = self.similarities(x)
        near = sorted(range(len(self.y)), key=lambda k: (sums[k], k))
        if sums[near[0]] > threshold:
            self.add_node(x, labels)
            near = [len(self.y) - 1, *near][: self.Ny]
        else:
            near = near[: self.Ny]
            self.move(x, labels, near, len(near) > 1 and sums[near[1]] <= threshold)
        for i, place in enumerate(self.bins(near)):
            (self.with_ if labels[i] else self.without)[i][place] += 1

    def add_node(self, x, labels):
        estimate = common_bandwidth if self.attributes == "common" else deviations_bandwidths
        self.bandwidth.append(estimate(self.current_window(), self.nominal))
        self.y.append(list(x))
        self.alpha.append(1)
        self.beta.append(list(labels))

    def move(self, x, labels, near, second_fits):
        k1 = near[0]
        self.beta[k1] = [b + v for b, v in zip(self.beta[k1], labels, strict=True)]
        self.alpha[k1] += self.rule == "released"
        self.towards(k1, x, self.alpha[k1])
        self.alpha[k1] += self.rule != "released"
        if second_fits and self.rule == "text":
            for k in near[1:]:
                self.towards(k, self.y[k1], self.Ny * self.alpha[k])
        elif second_fits:
            share = 10 if self.rule == "released" else self.Ny
            self.towards(near[1], x, share * self.alpha[near[1]])

    def towards(self, k, target, step):
        self.y[k] = [self.moved(i, y, t, step) for i, (y, t) in enumerate(zip(self.y[k], target, strict=True))]

    def moved(self, i, y, target, step):
        """A gap takes what comes; a category changes if it is moved more than half of the way."""
        if is_missing(target) or is_missing(y):
            return y if is_missing(target) else target
        if i in self.nominal:
            return target if step < 2 else y
        return y + (target - y) / step

    def similarities(self, x, predicting=False):
        d, K = len(x), len(self.y)
        if self.attributes == "common":
            s = float(np.median(self.bandwidth)) if predicting else _sum(self.bandwidth) / K
            sums = [self.sum_of(x, y, range(d), lambda a, b, i: units(1 - kernel(a - b, s))) for y in self.y]
            return [in_full(total, compared, d) for total, compared in sums], round(self.V * self.V * d * 2.0**40)
        if self.attributes == "individual":
            sums = [
                self.sum_of(x, y, range(d), lambda a, b, i, s=s: units(math.sqrt(1 - kernel(a - b, s[i]))))
                for y, s in zip(self.y, self.bandwidth, strict=True)
            ]
            return [in_full(total, compared, d) for total, compared in sums], self.V * d * 2.0**40
        members = self.groups_of(x)
        columns = [_sum(column) for column in zip(*self.bandwidth, strict=True)]
        s = {g: _sum(columns[i] for i in group) / (K * len(group)) for g, group in members.items()}
        parts = max(len(members), 1)
        return [in_full(*self.grouped_sum(x, y, members, s), parts) for y in self.y], self.V * parts * 2.0**40

    def sum_of(self, x, y, attributes, term):
        """Return the sum of terms over the attributes that both have, and their number."""
        total = compared = 0
        for i in attributes:
            if is_missing(x[i]) or is_missing(y[i]):
                continue
            compared += 1
            total += (x[i] != y[i]) * 2**40 if i in self.nominal else term(x[i], y[i], i)
        return total, compared

    def groups_of(self, x):
        """Return group -> the attributes that x has; nominal attributes are a group of their own."""
        members = {}
        for i, value in enumerate(x):
            if is_missing(value):
                continue
            distances = [abs(value - c) for c, _, _ in self.centres] or [0.0]
            group = -1 if i in self.nominal else distances.index(min(distances))
            members.setdefault(group, []).append(i)
        return members

    def grouped_sum(self, x, y, members, s):
        total = compared = 0
        for g, group in members.items():
            in_group, size = self.sum_of(x, y, group, lambda a, b, i, g=g: units(1 - kernel(a - b, s[g])))
            if size:
                total += units(math.sqrt(in_group * 2.0**-40 / size))
                compared += 1
        return total, compared

    def group_round(self):
        columns = [present(column) for column in zip(*self.current_window(), strict=True)]
        order = np.random.default_rng([self.seed, self.n // self.window]).permutation(len(columns))
        values = [_sum(columns[i]) / len(columns[i]) for i in order if columns[i] and i not in self.nominal]
        d = len(values)
        for i, value in enumerate(values):
            sums = []
            if self.centres:
                s = _sum(c[2] for c in self.centres) / len(self.centres)
                sums = [units(1 - kernel(value - c[0], s)) for c in self.centres]
            if not sums or min(sums) > round(self.V * self.V * 2.0**40):
                first = max(0, min(i - self.window + 1, d - self.window))
                own = [[v] for v in values[first : first + self.window]]
                self.centres.append([value, 1, deviations_bandwidths(own)[0]])
            else:
                winner = self.centres[sums.index(min(sums))]
                winner[0] += (value - winner[0]) / winner[1]
                winner[1] += 1

    def bins(self, near):
        N = len(near)
        if N == 1:
            return [self.Ny] * self.q
        if self.vote == "frequencies":
            g = [_sum(self.beta[k][i] / self.alpha[k] for k in near) for i in range(self.q)]
            return [math.floor(share + 0.5) for share in g]
        g = [sum(self.beta[k][i] for k in near) for i in range(self.q)]
        return [math.floor(N * share / max(g) + 0.5) if max(g) else 0 for share in g]

    def label_total(self, label):
        return sum(beta[label] for beta in self.beta)

    def predict_proba(self, x):
        sums, _ = self.similarities([float(v) for v in x], predicting=True)
        near = sorted(range(len(self.y)), key=lambda k: (sums[k], k))[: self.Ny]
        N, result = len(near), []
        for i, j in enumerate(self.bins(near)):
            prior = (self.s + self.label_total(i)) / (2 * self.s + self.n)
            yes = (self.s + self.with_[i][j]) / (self.s * (N + 1) + sum(self.with_[i])) if j <= N else 0
            no = (self.s + self.without[i][j]) / (self.s * (N + 1) + sum(self.without[i])) if j <= N else 0
            yes, no = yes * prior, no * (1 - prior)
            result.append(yes / (yes + no) if yes + no > 0 else prior)
        return result


def _sum(values):
    total = 0.0
    for value in values:
        total += value
    return total

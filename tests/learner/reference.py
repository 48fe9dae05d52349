"""MLCA, MLCA-I and MLCA-C in plain Python, slow and readable beside the specification.

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


def deviations_bandwidths(window):
    m, d = len(window), len(window[0])
    result = []
    for column in zip(*window, strict=True):
        deviation = 1e-6
        if m > 1 and max(column) > min(column):
            total = 0.0
            for value in column:
                total += value
            mean, squares = total / m, 0.0
            for value in column:
                squares += (value - mean) * (value - mean)
            deviation = math.sqrt(squares / (m - 1)) if squares / (m - 1) > 0 else deviation
        result.append((4.0 / (2.0 + d)) ** (1.0 / (4.0 + d)) * deviation * m ** (-1.0 / (4.0 + d)))
    return result


class Reference:
    similarity, decision = "correntropy", "bayes"

    def __init__(self, vigilance, n_neighbors, window, smoothing, attributes, rule, vote, seed=0, **published):
        assert all(value == getattr(self, name) for name, value in published.items()), "the rule beyond is in Beyond"
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
        bandwidths = deviations_bandwidths(self.current_window())
        self.bandwidth.append(float(np.median(bandwidths)) if self.attributes == "common" else bandwidths)
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
        self.y[k] = [y + (t - y) / step for y, t in zip(self.y[k], target, strict=True)]

    def similarities(self, x, predicting=False):
        d, K = len(x), len(self.y)
        if self.attributes == "common":
            s = float(np.median(self.bandwidth)) if predicting else _sum(self.bandwidth) / K
            sums = [sum(units(1 - kernel(a - b, s)) for a, b in zip(x, y, strict=True)) for y in self.y]
            return sums, round(self.V * self.V * d * 2.0**40)
        if self.attributes == "individual":
            sums = [
                sum(units(math.sqrt(1 - kernel(a - b, t))) for a, b, t in zip(x, y, s, strict=True))
                for y, s in zip(self.y, self.bandwidth, strict=True)
            ]
            return sums, self.V * d * 2.0**40
        members = {}
        for i, value in enumerate(x):
            distances = [abs(value - c) for c, _, _ in self.centres]
            members.setdefault(distances.index(min(distances)), []).append(i)
        columns = [_sum(column) for column in zip(*self.bandwidth, strict=True)]
        s = {g: _sum(columns[i] for i in group) / (K * len(group)) for g, group in members.items()}
        sums = []
        for y in self.y:
            total = 0
            for g, group in members.items():
                in_group = sum(units(1 - kernel(x[i] - y[i], s[g])) for i in group)
                total += units(math.sqrt(in_group * 2.0**-40 / len(group)))
            sums.append(total)
        return sums, self.V * len(members) * 2.0**40

    def group_round(self):
        columns = list(zip(*self.current_window(), strict=True))
        means = [_sum(column) / len(column) for column in columns]
        d = len(means)
        order = np.random.default_rng([self.seed, self.n // self.window]).permutation(d)
        values = [means[i] for i in order]
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

    def predict_proba(self, x):
        sums, _ = self.similarities([float(v) for v in x], predicting=True)
        near = sorted(range(len(self.y)), key=lambda k: (sums[k], k))[: self.Ny]
        N, result = len(near), []
        for i, j in enumerate(self.bins(near)):
            prior = (self.s + sum(beta[i] for beta in self.beta)) / (2 * self.s + self.n)
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

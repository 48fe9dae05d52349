"""Merging in plain Python, slow and readable: what the compiled replay must equal bit for bit."""

from tests.learner.reference import Reference, _sum, kernel, units


class Merged(Reference):
    """A plain learner that other plain learners are replayed into; labels and attributes are the same in all."""

    def replay(self, other):
        for x, count, labels, bandwidth in zip(other.y, other.alpha, other.beta, other.bandwidth, strict=True):
            self.replay_node(x, count, labels, bandwidth)
        for centre, count, bandwidth in other.centres:
            self.replay_centre(centre, count, bandwidth)
        self.n += other.n
        return self

    def replay_node(self, x, count, labels, bandwidth):
        sums, threshold = self.similarities(x)
        near = sorted(range(len(self.y)), key=lambda k: (sums[k], k))
        if sums[near[0]] > threshold:
            self.y.append(list(x))
            self.alpha.append(count)
            self.beta.append(list(labels))
            self.bandwidth.append(bandwidth)
            near = [len(self.y) - 1, *near][: self.Ny]
        else:
            near = near[: self.Ny]
            self.join(x, count, labels, near, len(near) > 1 and sums[near[1]] <= threshold)
        for i, place in enumerate(self.bins(near)):
            self.with_[i][place] += labels[i]
            self.without[i][place] += count - labels[i]

    def join(self, x, count, labels, near, second_fits):
        k1 = near[0]
        self.beta[k1] = [b + v for b, v in zip(self.beta[k1], labels, strict=True)]
        slowing = self.alpha[k1] + (self.rule == "released")
        self.towards(k1, x, (slowing + count - 1) / count)
        self.alpha[k1] += count
        if second_fits and self.rule == "text":
            for k in near[1:]:
                self.towards(k, self.y[k1], (self.Ny * self.alpha[k] + count - 1) / count)
        elif second_fits:
            share = 10 if self.rule == "released" else self.Ny
            self.towards(near[1], x, (share * self.alpha[near[1]] + count - 1) / count)

    def replay_centre(self, value, count, bandwidth):
        s = _sum(c[2] for c in self.centres) / len(self.centres)
        sums = [units(1 - kernel(value - c[0], s)) for c in self.centres]
        if min(sums) > round(self.V * self.V * 2.0**40):
            self.centres.append([value, count, bandwidth])
        else:
            winner = self.centres[sums.index(min(sums))]
            winner[0] += (value - winner[0]) / ((winner[1] + count - 1) / count)
            winner[1] += count

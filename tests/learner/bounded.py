"""Bounded memory, in plain Python: a reservoir of nodes (spec/beyond.md), on top of the plain learners."""

from tests.learner.beyond import Beyond
from tests.learner.drift import LAST, SEGMENT, Drift

WORD = 2**64 - 1


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


class Bounded(Beyond):
    """The s-th row that would be a node replaces node r = splitmix64(rows) mod s, oldest first, if there is one."""

    def __init__(self, max_nodes, **options):
        super().__init__(**options)
        self.max_nodes, self.candidates, self.made, self.births = max_nodes, 0, 0, []

    def place(self, x, labels, own, keys):
        is_node = not self.y
        if self.y:
            sums, threshold = self.similarities(x)
            is_node = min(sums) > threshold
        if not is_node:
            return Beyond.place(self, x, labels, own, keys)
        self.candidates += 1
        drawn = None
        if len(self.y) == self.max_nodes:
            drawn = splitmix64(self.rows) % self.candidates
            if drawn >= self.max_nodes:
                self.pass_by(labels, keys)
                return None
        node = Beyond.place(self, x, labels, own, keys)
        self.births.append(self.made)
        self.made += 1
        if drawn is not None:
            for of_nodes in (self.y, self.alpha, self.beta, self.bandwidth, self.none, self.births):
                del of_nodes[drawn]
            node -= 1
        return node

    def pass_by(self, labels, keys):
        """Only the counters learn."""
        voters = [k for _, k in self.near(keys)]
        for i, place in enumerate(self.bins(voters[: self.Ny])):
            (self.with_ if labels[i] else self.without)[i][place] += 1

    def label_total(self, label):
        return self.totals.get(label + 1, 0)


class BoundedDrift(Bounded, Drift):
    """Segments are of nodes in the order of their making, whatever became of others since."""

    def spans(self):
        firsts = [first for first, _, _ in self.segments]
        ends = [*firsts[1:], self.made][: len(firsts)]
        return [
            [k for k, born in enumerate(self.births) if first <= born < end]
            for first, end in zip(firsts, ends, strict=True)
        ]

    def latest(self):
        return [k for k, born in enumerate(self.births) if born >= self.made - LAST]

    def place(self, x, labels, own, keys):
        before, births = self.made, list(self.births)
        node = Bounded.place(self, x, labels, own, keys)
        if self.made > before:
            if len(self.births) == len(births):  # one was given up
                gone = next(i for i, born in enumerate(births) if i >= len(self.births) - 1 or self.births[i] != born)
                del self.fading[gone]
            self.fading.append([0.0, {}])
            if before % SEGMENT == 0:
                self.open_segment(before)
        if node is not None:
            self.fade(node, own)
        return node

"""Meaning that changes, in plain Python: experts that let only some nodes vote (spec/beyond.md)."""

from itertools import pairwise

from tests.learner.beyond import HALF_LIVES, Beyond, Calibration, Pool

SEGMENT = 64
MOST_SEGMENTS = 16
LAST = 512


class Drift(Beyond):
    """Expert 0: all nodes. 1: those of trusted segments of the past. 2: the last 512, with label counts that fade."""

    def __init__(self, recency=False, **options):
        super().__init__(recency=recency, **options)
        self.calibrations = [Calibration(), Calibration(), Calibration()]
        self.pool = Pool(3 + (len(HALF_LIVES) if recency else 0))  # expert 0, its recency experts, experts 1 and 2
        self.segments = []  # [first node, how many segments it was made of, trust]
        self.fading = []  # of each node: [count, slot -> rows]

    def spans(self):
        firsts = [first for first, _, _ in self.segments]
        return [range(first, end) for first, end in pairwise([*firsts, len(self.y)])]

    def latest(self):
        return range(max(0, len(self.y) - LAST), len(self.y))

    def opinions(self, x, keys, ruler, slots):
        most = max((trust for _, _, trust in self.segments), default=0.0)
        trusted = [
            k
            for span, (_, _, trust) in zip(self.spans(), self.segments, strict=True)
            for k in span
            if trust >= 0.7 * most
        ]
        last = self.latest()
        said = [self.shares(self.near(keys), ruler), self.shares(self.near(keys, trusted), ruler)]
        counts, labels = [count for count, _ in self.fading], [rows for _, rows in self.fading]
        said.append(self.shares(self.near(keys, last), ruler, counts, labels))
        pool = {}
        for slot in slots:
            first, *others = (self.probability(x, slot, *of_expert, e) for e, of_expert in enumerate(said))
            pool[slot] = [*self.recent(slot, first), *others]
        return [shares for shares, _ in said], pool

    def note(self, x, own, keys, ruler):
        super().note(x, own, keys, ruler)
        for span, segment in zip(self.spans(), self.segments, strict=True):
            if not span:
                continue
            nearest = min(span, key=lambda k: (keys[k], k))
            rows, count = self.slots(nearest), self.alpha[nearest]
            both = sum(rows.get(slot, 0) for slot in own) / count
            overlap = both / (sum(rows.values()) / count + len(own) - both)
            segment[2] += 0.1 * (overlap - segment[2])

    def place(self, x, labels, own, keys):
        before = len(self.y)
        node = super().place(x, labels, own, keys)
        if len(self.y) > before:
            self.fading.append([0.0, {}])
            if before % SEGMENT == 0:
                self.open_segment(before)
        self.fade(node, own)
        return node

    def fade(self, node, own):
        count, rows = self.fading[node]
        rows = {slot: 0.8 * r for slot, r in rows.items()}
        self.fading[node] = [0.8 * count + 1.0, {**rows, **{slot: rows.get(slot, 0.0) + 1.0 for slot in own}}]

    def open_segment(self, first):
        self.segments.append([first, 1, self.segments[-1][2] if self.segments else 0.5])
        if len(self.segments) <= MOST_SEGMENTS:
            return
        trusts = [trust for _, _, trust in self.segments]
        i = min(range(MOST_SEGMENTS - 1), key=lambda i: abs(trusts[i] - trusts[i + 1]))  # of equals the oldest pair
        (_, size, trust), (_, other_size, other_trust) = self.segments[i], self.segments.pop(i + 1)
        self.segments[i][1:] = size + other_size, (size * trust + other_size * other_trust) / (size + other_size)

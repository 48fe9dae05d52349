from __future__ import annotations

import pickle
from math import floor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mlca.peers import MLSAkNN

FIGURES = Path(__file__).parent / "data"


class PlainMLSAkNN:
    """The authors' program in plain Python: lists whose entries are assigned without copying share masks."""

    def __init__(
        self,
        m_max,
        k_adj_max,
        m_min,
        penalty=1,
        reduction=0.5,
        metric="subset accuracy",
        reference=True,
    ):
        self.m_max, self.k_adj_max, self.m_min = m_max, k_adj_max, m_min
        self.penalty, self.reduction, self.metric = penalty, reduction, metric
        self.reference = reference
        self.window, self.errors, self.tests = [], [], {}
        self.D = np.zeros((m_max, m_max))

    def step(self, x, y):
        if not self.window:
            self.q = len(y)
            self.low, self.high = np.zeros(len(x)), np.zeros(len(x))
            self.masks = [np.ones(self.q, dtype=int) for _ in range(self.m_max)]
            self.k = [3] * self.q
            self.history = [[[] for _ in range(self.q)] for _ in range(4)]
        votes = self.feedback(x, y)
        self.learn(x, y)
        return votes

    def distance(self, a, b):
        scales = self.high > self.low
        span = (self.high - self.low)[scales]
        difference = (a - self.low)[scales] / span - (b - self.low)[scales] / span
        return np.sqrt(sum(difference**2))

    def feedback(self, x, y):
        distances = [self.distance(x, row) for row, _ in self.window]
        order = sorted(range(len(distances)), key=lambda i: (distances[i], -i))
        votes = np.zeros(self.q)
        for j in range(self.q):
            ones = total = 0
            modify = True
            reached = set()
            for i in order:
                label = self.window[i][1][j]
                if self.masks[i][j]:
                    ones += label
                    total += 1
                    if modify and label != y[j]:
                        self.masks[i][j] = 0
                        self.errors[i] += 1
                    if total in (1, 3, 5, 7):
                        self.remember(total, j, (ones / total >= 0.5) == y[j])
                        reached.add(total)
                        if total == self.k[j]:
                            votes[j], modify = ones / total, False
                        if total == 7:
                            break
                elif modify and label == y[j]:
                    self.masks[i][j] = 1
            for k in {1, 3, 5, 7} - reached:
                self.remember(k, j, y[j] == 0)
        for j in range(self.q):
            means = [np.mean(self.history[index][j]) for index in range(4)]
            self.k[j] = (1, 3, 5, 7)[int(np.argmax(means))]
        return votes

    def remember(self, k, j, right):
        history = self.history[k // 2][j]
        history.append(bool(right))
        del history[: -self.k_adj_max]

    def learn(self, x, y):
        position = len(self.window)
        self.window.append((x, y))
        self.errors.append(0)
        self.low, self.high = np.minimum(self.low, x), np.maximum(self.high, x)
        self.masks[position][:] = 1
        self.D[position, :position] = [self.distance(x, row) for row, _ in self.window[:-1]]
        for i in reversed(range(len(self.window))):
            if self.errors[i] > self.penalty * self.q:
                self.delete(i)
        size = self.best_size()
        self.move_up(0, len(self.window) - size)
        if size == self.m_max:
            self.delete(0)

    def delete(self, i):
        self.move_up(i, 1)
        if not self.reference:
            tests = {}
            for start, test in self.tests.items():
                rows = [start + offset for offset in range(len(test))]
                tests[start - 1 if start > i else start] = [
                    right for row, right in zip(rows, test, strict=True) if row != i
                ]
            self.tests = tests

    def move_up(self, i, count):
        n = len(self.window)
        if self.reference:
            self.D[i : n - count, i : n - count] = self.D[i + count : n, i + count : n].copy()
        else:
            left = np.delete(np.arange(n), np.s_[i : i + count])
            self.D[: n - count, : n - count] = self.D[np.ix_(left, left)]
        for position in range(i, n - count):
            moved = self.masks[position + count]
            self.masks[position] = moved if self.reference else moved.copy()
        del self.window[i : i + count], self.errors[i : i + count]

    def best_size(self):
        n = len(self.window)
        if n < 2 * self.m_min:
            return n
        sizes = [n]
        while sizes[-1] >= 2 * self.m_min:
            sizes.append(floor(self.reduction * sizes[-1]))
        self.tests = {start: test for start, test in self.tests.items() if n - start in sizes}
        scores = []
        for size in sizes:
            start = n - size
            from_scratch = start not in self.tests
            test = self.tests.setdefault(start, [])
            test += [self.n_right(start, i, from_scratch) for i in range(start + len(test), n)]
            # Hamming scores are not divided by q, so that equal ones stay equal.
            right = np.array(test) == self.q if self.metric == "subset accuracy" else test
            scores.append(np.mean(right))
        best = int(np.argmax(scores))
        for _ in range(best):
            del self.tests[min(self.tests)]
            first = min(self.tests)
            self.tests = {start - first: test for start, test in self.tests.items()}
        return sizes[best]

    def n_right(self, start, i, from_scratch):
        n_right = 0
        for j in range(self.q):
            k = min(self.k[j], i - start) if from_scratch else self.k[j]
            voters = [p for p in range(start, i) if self.masks[p][j]]
            nearest = sorted(voters, key=lambda p: (self.D[i, p], p))[:k]
            nearest += [0] * (k - len(nearest))
            ones = sum(self.window[p][1][j] for p in nearest)
            n_right += (k > 0 and ones / k >= 0.5) == self.window[i][1][j]
        return n_right


def drifting_stream(n, q=3, seed=0, decimals=2):
    """Rows on a coarse or fine grid, whose labels are inverted every 60 rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).round(decimals) - 0.3
    Y = np.array([X @ rng.normal(size=3) > 0 for _ in range(q)]).T ^ (np.arange(n) // 60 % 2 == 1)[:, None]
    noise = rng.random((n, q)) < 0.1
    return X, (Y ^ noise).astype(int)


def learn_row_by_row(model, X, Y):
    """Yield each row's votes before it is learned."""
    for i in range(len(X)):
        yield model.predict_proba(X[i : i + 1])[0] if i else np.zeros(Y.shape[1])
        model.partial_fit(X[i : i + 1], Y[i : i + 1])


def read_figures(name):
    votes, sizes, ks = [], [], []
    for line in (FIGURES / name).read_text().splitlines():
        vote, rest = line.split("|")
        size, k = rest.strip().split(" ", 1)
        votes.append([float(v) for v in vote.split()])
        sizes.append(int(size))
        ks.append([int(v) for v in k.strip("[]").split(",")])
    return np.array(votes), sizes, ks


@pytest.mark.data
@pytest.mark.parametrize(
    ("m_max", "k_adj_max", "exact_match", "hamming_loss"),
    [(1000, 100, 0.1939, 0.2546), (200, 20, 0.1720, 0.2636)],
)
def test_votes_on_emotions_equal_those_of_the_authors_program(dataset, m_max, k_adj_max, exact_match, hamming_loss):
    emotions = dataset("emotions").scaled()
    order = np.random.RandomState(1).permutation(len(emotions.X))
    X, Y = emotions.X[order], emotions.Y[order]
    expected, sizes, ks = read_figures(f"mlsaknn_java_emotions_w{m_max}_k{k_adj_max}_m50.txt")
    model = MLSAkNN(m_max, k_adj_max)
    votes = []
    for i in range(len(X)):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        votes.append(model.feedback_votes_)
        assert (model.window_size_, model.k_.tolist()) == (sizes[i], ks[i])
    assert_allclose(votes, expected, atol=1e-9, rtol=0)
    wrong = (np.array(votes) >= 0.5) != Y
    assert 1 - wrong.any(axis=1).mean() == pytest.approx(exact_match, abs=5e-5)
    assert wrong.mean() == pytest.approx(hamming_loss, abs=5e-5)
    if m_max == 1000:
        assert (min(sizes[100:]), max(sizes[100:])) == (50, 92)


@pytest.mark.data
def test_exact_match_on_emotions_with_separate_memories_is_as_expected(dataset):
    emotions = dataset("emotions").scaled()
    order = np.random.RandomState(1).permutation(len(emotions.X))
    X, Y = emotions.X[order], emotions.Y[order]
    model = MLSAkNN(1000, 100, reference=False)
    votes = np.array(list(learn_row_by_row(model, X, Y)))
    assert ((votes >= 0.5) == Y).all(axis=1).mean() == pytest.approx(0.0540, abs=5e-5)


@pytest.mark.parametrize("metric", ["subset accuracy", "hamming score"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"m_max": 40, "k_adj_max": 10, "m_min": 10},
        {"m_max": 30, "k_adj_max": 5, "m_min": 40, "penalty": 0.7},
        {"m_max": 60, "k_adj_max": 20, "m_min": 8, "penalty": np.inf, "reduction": 0.7},
        {"m_max": 25, "k_adj_max": 50, "m_min": 5, "penalty": 2, "reduction": 0.3},
    ],
)
@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize("decimals", [0, 2], ids=["ties", "no ties"])
def test_votes_equal_a_plain_implementation(parameters, metric, reference, decimals):
    X, Y = drifting_stream(130, decimals=decimals)
    model = MLSAkNN(metric=metric, reference=reference, **parameters)
    plain = PlainMLSAkNN(metric=metric, reference=reference, **parameters)
    for i in range(len(X)):
        expected = plain.step(X[i], Y[i])
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        assert_array_equal(model.feedback_votes_, expected)
        assert (model.window_size_, model.k_.tolist()) == (len(plain.window), plain.k)


def test_first_row_gets_votes_of_0_and_is_then_predicted_itself():
    model = MLSAkNN().partial_fit([[1.0, 2.0]], np.array([[1, 0, 1]]))
    assert_array_equal(model.feedback_votes_, [0, 0, 0])
    assert_array_equal(model.k_, [1, 1, 1])
    assert_array_equal(model.predict_proba([[9.0, 9.0]]), [[1, 0, 1]])


@pytest.mark.parametrize("reference", [True, False])
def test_window_is_never_longer_than_allowed(reference):
    X, Y = drifting_stream(200)
    model = MLSAkNN(m_max=50, m_min=12, penalty=np.inf, reference=reference)
    sizes = []
    for i in range(len(X)):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        sizes.append(model.window_size_)
    assert max(sizes) == 49
    assert min(sizes[12:]) >= 12  # only shrinking removes rows
    assert min(np.diff(sizes)) < 0


def test_without_punishment_no_row_is_deleted():
    X, Y = drifting_stream(150)
    assert MLSAkNN(m_min=80, penalty=np.inf).fit(X, Y).window_size_ == 150
    assert MLSAkNN(m_min=80).fit(X, Y).window_size_ < 150


def test_predict_changes_nothing():
    X, Y = drifting_stream(100)
    model = MLSAkNN(m_max=60, m_min=10).fit(X, Y)
    before = pickle.dumps(model)
    first = model.predict_proba(X)
    assert_array_equal(model.predict_proba(X), first)
    assert pickle.dumps(model) == before


def test_constant_columns_do_not_change_votes():
    X, Y = drifting_stream(120)
    padded = np.insert(X, [0, 2], [[0.0, 0.0]], axis=1)
    votes = list(learn_row_by_row(MLSAkNN(m_max=60, m_min=10), X, Y))
    assert_array_equal(list(learn_row_by_row(MLSAkNN(m_max=60, m_min=10), padded, Y)), votes)


def test_feedback_votes_equal_predictions_with_separate_memories():
    X, Y = drifting_stream(200)
    model = MLSAkNN(m_max=40, m_min=10, reference=False).fit(X[:1], Y[:1])
    for x, y in zip(X[1:, None], Y[1:, None], strict=True):
        honest = model.predict_proba(x)[0]
        assert_array_equal(model.partial_fit(x, y).feedback_votes_, honest)


def test_batches_give_the_same_probabilities_as_single_rows():
    X, Y = drifting_stream(150)
    whole = MLSAkNN(m_max=50, m_min=10).fit(X, Y)
    parts = MLSAkNN(m_max=50, m_min=10)
    for part in np.array_split(np.arange(150), 7):
        parts.partial_fit(X[part], Y[part])
    assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


def test_new_label_does_not_change_the_votes_on_others():
    X, Y = drifting_stream(90, q=4)
    Y[:50, 3] = 0
    without = MLSAkNN(penalty=np.inf).fit(X, Y[:, :3])
    grown = MLSAkNN(penalty=np.inf).partial_fit(X[:50], Y[:50, :3]).partial_fit(X[50:], Y[50:])
    assert_array_equal(grown.predict_proba(X)[:, :3], without.predict_proba(X))
    assert grown.predict_proba(X)[:, 3].max() > 0


def test_three_neighbours_vote_on_a_new_label():
    X, Y = drifting_stream(20)
    model = MLSAkNN().fit(X, Y).partial_fit(X[:1], np.array([[0, 0, 0, 1]]))
    assert (model._window.masks[:, 3] == 0).sum() == 3


def test_new_label_counts_as_right_in_all_earlier_tests():
    X, Y = drifting_stream(90)
    model = MLSAkNN(m_min=10).fit(X, Y)
    before = {start: test.copy() for start, test in model._tests.items()}
    model.partial_fit(X[:1], np.append(Y[:1], [[0, 0]], axis=1))
    kept = [start for start in before if start in model._tests and len(model._tests[start]) > len(before[start])]
    assert kept
    for start in kept:
        assert_array_equal(model._tests[start][: len(before[start])], before[start] + 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"m_max": 1}, "m_max must be at least 2"),
        ({"k_adj_max": 0}, "k_adj_max must be at least 1"),
        ({"m_min": 0}, "m_min must be at least 1"),
        ({"penalty": -1}, "penalty must be at least 0"),
        ({"penalty": np.nan}, "penalty must be a finite number"),
        ({"reduction": 1.0}, "reduction must be above 0 and below 1"),
        ({"metric": "accuracy"}, "metric must be one of 'subset accuracy', 'hamming score'"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        MLSAkNN(**parameters).fit([[0.0]], np.array([[1]]))

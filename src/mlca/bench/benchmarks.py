"""Runs all workloads in one process: the learner, the paper's six peers and River."""

from __future__ import annotations

import sys
from typing import Any

from sklearn.neighbors import KNeighborsClassifier

from mlca.bench import workloads
from mlca.bench.probes import best_time, exp64, single_time
from mlca.bench.results import Line, Results, Target
from mlca.bench.samples import Sample, sample
from mlca.bench.workloads import RULE
from mlca.options import Search
from mlca.peers import GLOCAL, MCIC, MLODM, MLkNN, MLSAkNN, MuENL


class Bench:
    """Collects measurements and targets; prints each measurement to standard error."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.targets: list[Target] = []
        self.exp64 = exp64()

    def add(self, line: Line) -> Line:
        """Add a measurement and print it to standard error."""
        self.lines.append(line)
        print(f"{line.work}: {line.who}, {line.rows / line.seconds:,.0f} rows/s", file=sys.stderr, flush=True)
        return line

    def aim(self, name: str, wanted: float, found: float, unit: str, at_most: bool = False) -> None:
        """Add a target and the measured value."""
        self.targets.append(Target(name, wanted, found, unit, at_most))

    def ratio(self, line: Line) -> float:
        """Return the feature pairs per second of a measurement, divided by the probe's speed."""
        assert line.pairs is not None
        return line.pairs / line.seconds / self.exp64

    def results(self) -> Results:
        """Return all measurements and targets so far."""
        return Results(self.exp64, tuple(self.lines), tuple(self.targets))


def run_benchmarks() -> Results:
    """Run all benchmarks of the learner, which takes a few minutes."""
    bench = Bench()
    for name in ("scene", "yeast"):
        _dense(bench, name)
    _dense(bench, "mediamill", repeats=1, n_rows=1000)
    _discs(bench)
    _variants(bench)
    _sparse(bench)
    _decisions(bench)
    _single_rows(bench)
    _river(bench)
    _growth(bench)
    _peers(bench)
    return bench.results()


# Targets for learning each dataset, in units of exp64.
LEARNING = {"scene": 12.0, "yeast": 10.0, "mediamill": 18.0}
# Largest time of the default model, relative to the paper's algorithm on the same data.
RULE_COST = {"scene": 2.2, "yeast": 2.2, "mediamill": 2.2, "bibtex": 6.0}
# Largest time of the default decision, relative to the calibrated decision; MIXED_ROW_COST is for single rows.
MIXED_COST = {"scene": 1.5, "yeast": 1.5, "mediamill": 1.5, "bibtex": 2.0, "delicious": 2.0, "eurlex-4k": 3.0}
MIXED_ROW_COST = 1.3


def _dense(bench: Bench, name: str, repeats: int = 7, n_rows: int = 3000) -> None:
    data = sample(name)
    one, two = (bench.add(workloads.learning(data, n_jobs=n_jobs, repeats=repeats)) for n_jobs in (1, 2))
    bench.aim(f"learning {name}, one thread", LEARNING[name], bench.ratio(one), "of exp64")
    _rule_cost(bench, "learning", name, bench.add(workloads.learning(data, RULE, repeats=repeats)), one)
    bench.aim(f"learning {name}, two threads", 1.7, one.seconds / two.seconds, "times one thread")
    theirs = bench.add(workloads.plain_numpy(data, vigilance=0.01))
    bench.aim(f"learning {name}, two threads", 25, theirs.seconds / two.seconds, "times plain NumPy")
    if two.memory is not None and name == "mediamill":
        share = two.memory / data.X.nbytes
        bench.aim(f"learning {name}, peak memory", 3, share, "times the data's", at_most=True)
    one, two = (bench.add(workloads.predicting(data, n_jobs=n_jobs, n_rows=n_rows)) for n_jobs in (1, 2))
    bench.aim(f"predicting {name}, one thread", 25, bench.ratio(one), "of exp64")
    _rule_cost(bench, "predicting", name, bench.add(workloads.predicting(data, RULE, n_rows=n_rows)), one)
    bench.aim(f"predicting {name}, two threads", 1.7, one.seconds / two.seconds, "times one thread")
    bench.add(workloads.neighbours(data, "manhattan", n_rows=n_rows))
    euclid = bench.add(workloads.neighbours(data, "euclidean", n_rows=n_rows))
    speed = (one.rows / one.seconds) / (euclid.rows / euclid.seconds)
    bench.aim(f"predicting {name}, one thread", 0.8, speed, "of scikit-learn euclidean")


def _rule_cost(bench: Bench, verb: str, name: str, rule: Line, published: Line) -> None:
    times = rule.seconds / published.seconds
    bench.aim(f"{verb} {name} with MLCA()", RULE_COST[name], times, "times the published", at_most=True)


def _discs(bench: Bench) -> None:
    discs = sample("three discs")
    for verb, work, wanted in (
        ("learning", workloads.learning, 450_000),
        ("predicting", workloads.predicting, 1_000_000),
    ):
        one, two = (bench.add(work(discs, n_jobs=n_jobs, vigilance=0.1)) for n_jobs in (1, 2))
        bench.aim(f"{verb} three discs, vigilance 0.1", wanted, one.rows / one.seconds, "rows/s")
        bench.aim(f"{verb} three discs, two threads", 1.0, one.seconds / two.seconds, "times one thread")


def _variants(bench: Bench) -> None:
    for algorithm, wanted in (("MLCA-I", 2.0), ("MLCA-C", 4.0)):
        line = bench.add(workloads.learning(sample("yeast"), algorithm))
        bench.aim(f"learning yeast, {algorithm}", wanted, bench.ratio(line), "of exp64")
        bench.add(workloads.learning(sample("yeast"), algorithm, n_jobs=2))


def _sparse(bench: Bench) -> None:
    for name in ("bibtex", "delicious"):
        data = sample(name)
        one, two = (bench.add(workloads.learning(data, n_jobs=n_jobs, repeats=2)) for n_jobs in (1, 2))
        bench.aim(f"learning {name}, two threads", 1.0, one.seconds / two.seconds, "times one thread")
        if name == "bibtex":
            dense = bench.add(workloads.dense_path(data))
            bench.aim("learning bibtex, sparse", 1.0, dense.seconds / one.seconds, "times our dense path")
            _rule_cost(bench, "learning", name, bench.add(workloads.learning(data, RULE, repeats=2)), one)
        one, _ = (bench.add(workloads.predicting(data, n_jobs=n_jobs)) for n_jobs in (1, 2))
        if name == "bibtex":
            _rule_cost(bench, "predicting", name, bench.add(workloads.predicting(data, RULE)), one)
    eurlex = bench.add(workloads.eurlex())
    bench.aim("learning EURLex-4K's shape", 6.0, bench.ratio(eurlex), "of exp64")
    if eurlex.memory is not None:
        bench.aim("learning EURLex-4K's shape, peak memory", 2.0, eurlex.memory / 1e9, "GB", at_most=True)


def _decisions(bench: Bench) -> None:
    """Compare decision="mixed" with "calibrated"."""
    for name, wanted in MIXED_COST.items():
        repeats = 1 if name == "eurlex-4k" else 3
        pairs = workloads.decisions(sample(name), repeats=repeats)
        for verb, (ours, calibrated) in zip(("learning", "predicting"), pairs, strict=True):
            _mixed_cost(bench, f"{verb} {name}", wanted, ours, calibrated)
    _mixed_cost(bench, "one row per call, yeast", MIXED_ROW_COST, *workloads.decisions_row_by_row(sample("yeast")))


def _mixed_cost(bench: Bench, name: str, wanted: float, ours: Line, calibrated: Line) -> None:
    times = bench.add(ours).seconds / bench.add(calibrated).seconds
    bench.aim(f'{name} with decision="mixed"', wanted, times, 'times "calibrated"', at_most=True)


def _single_rows(bench: Bench) -> None:
    learn, _, predict = (bench.add(line) for line in workloads.one_at_a_time(sample("yeast")))
    bench.aim("partial_fit of one row, yeast, 1,000 nodes", 25_000, learn.rows / learn.seconds, "rows/s")
    bench.aim(
        "predict of one row, yeast, 1,000 nodes",
        25,
        1e6 * predict.seconds / predict.rows,
        "microseconds",
        at_most=True,
    )
    both = bench.add(workloads.predict_then_learn(sample("yeast")))
    bench.aim("test then train with MLCA(), yeast, 2,000 nodes", 5_000, both.rows / both.seconds, "rows/s")


def _river(bench: Bench) -> None:
    for line in workloads.river_stream(sample("yeast")):
        bench.add(line)
        if line.who == "mlca.river":
            verb = line.work.split(",")[0]
            bench.aim(f"{verb} in River's form, yeast, 600 nodes", 25_000, line.rows / line.seconds, "rows/s")


def run_long() -> Results:
    """Measure learning ten million rows with few nodes, and a million with unlimited nodes."""
    bench = Bench()
    _bounded(bench)
    line, share = workloads.million()
    bench.add(line)
    bench.aim("a million rows of 32 attributes, two threads", 15, line.seconds / 60, "minutes", at_most=True)
    bench.aim("a million rows of 32 attributes, peak memory", 3, share, "times the data's", at_most=True)
    line, share = workloads.learned_similarity()
    bench.add(line)
    bench.aim("recomputing the similarity, a million rows", 3, 100 * share, "% of the time", at_most=True)
    _cells(bench)
    line, _ = workloads.learned_similarity(search="cells")
    bench.add(line)
    bench.aim("a million rows with cells, two threads", 1, line.seconds / 60, "minutes", at_most=True)
    return bench.results()


def _cells(bench: Bench, few: int = 250_000, many: int = 1_000_000, n_rows: int = 2000) -> None:
    """Measure learning, prediction and similarity updates of models with many nodes."""
    searches: tuple[Search, ...] = ("exact", "cells")
    learning = []
    for n in (few, many):
        for search in searches:
            found = workloads.at_nodes(n, search, n_rows=n_rows)
            who = f"MLCA(search={search!r}), CPU time"
            bench.add(Line(f"learn at {found.n_nodes:,} nodes x 32, generated", who, 1, found.learning))
            bench.add(Line(f"predict a single row at {found.n_nodes:,} nodes x 32", who, 1, found.predicting))
        learning.append(found.learning)
    name = f"with cells at {many:,} nodes"
    bench.aim(f"learning {name}", 2, learning[1] / learning[0], f"times that at {few:,}", at_most=True)
    bench.aim(f"predicting a single row {name}", 1, 1e3 * found.predicting, "milliseconds", at_most=True)
    bench.aim(f"recomputing the similarity {name}", 2, found.rebuilding, "s", at_most=True)


def _bounded(bench: Bench, n: int = 10_000_000, max_nodes: int = 1000, chunk: int = 10_000) -> None:
    tenths = []
    for tenth in workloads.bounded(n, max_nodes, chunk):
        print(tenth, file=sys.stderr, flush=True)
        tenths.append(tenth)
    rates = [tenth.rows_per_second for tenth in tenths]
    seconds = sum(n / len(rates) / rate for rate in rates)
    note = f"{max_nodes:,} nodes; rows/s tenth by tenth: " + ", ".join(f"{rate:,.0f}" for rate in rates)
    bench.add(Line(f"learn a stream of {n:,} x 10, generated", "MLCA(max_nodes), 1 thread", n, seconds, None, note))
    bench.aim(f"{n:,} rows, the slowest tenth", 0.8, min(rates) / rates[0], "of the first tenth's rate")
    peaks = [tenth.peak for tenth in tenths if tenth.peak is not None]
    if peaks:
        bench.aim(f"{n:,} rows, peak memory of the last tenth", 1.05, peaks[-1] / peaks[0], "of the first tenth", True)


def _growth(bench: Bench) -> None:
    line, time_exponent, memory_exponent = workloads.growth_with_rows()
    bench.add(line)
    bench.aim("growth of learning time with n (n K d: 2)", 2.1, time_exponent, "exponent", at_most=True)
    bench.aim("growth of the nodes' memory with n (K d: 1)", 1.05, memory_exponent, "exponent", at_most=True)


def _peers(bench: Bench) -> None:
    """Measure each peer on the dataset for which it has a target."""
    yeast, emotions, scene = sample("yeast"), sample("emotions"), sample("scene")
    theirs = bench.add(_whole(KNeighborsClassifier(10), yeast, repeats=5))
    ours = bench.add(_whole(MLkNN(10), yeast, repeats=5))
    bench.aim("ML-kNN fit and predict, yeast", 4, ours.seconds / theirs.seconds, "times scikit-learn", at_most=True)
    for model, wanted in ((MLSAkNN(200, 20), 300), (MCIC(), 2000)):
        line = bench.add(_prequential(model, emotions))
        bench.aim(f"{type(model).__name__}, emotions, row by row", wanted, line.rows / line.seconds, "rows/s")
    for model, data, wanted, n_rows in (
        (MLODM(), scene, 60, 2166),
        (GLOCAL(), yeast, 60, None),
        (MuENL(), yeast, 120, None),
        (MLODM(), sample("langlog"), 600, None),
    ):
        line = bench.add(_whole(model, data, repeats=1, n_rows=n_rows))
        bench.aim(f"{line.who}, {data.name}, fit and predict", wanted, line.seconds, "s", at_most=True)


def _whole(model: Any, data: Sample, repeats: int, n_rows: int | None = None) -> Line:
    """Measure fitting a dataset and predicting its rows."""
    X, Y = data.X[:n_rows], data.Y[:n_rows].toarray()
    X = X.toarray() if hasattr(X, "toarray") else X

    def work() -> None:
        model.fit(X, Y).predict(X)

    model.fit(X[:200], Y[:200]).predict(X[:10])
    seconds = best_time(work, repeats) if repeats > 1 else single_time(work)
    return Line(f"fit and predict {data.name} ({len(X):,} rows)", type(model).__name__, len(X), seconds)


def _prequential(model: Any, data: Sample) -> Line:
    """Measure a model that predicts and then learns each row of a dataset."""
    X, Y = data.X, data.Y.toarray()
    model.partial_fit(X[:1], Y[:1]).predict(X[:1])

    def work() -> None:
        for i in range(1, len(X)):
            model.predict(X[i : i + 1])
            model.partial_fit(X[i : i + 1], Y[i : i + 1])

    seconds = single_time(work)
    return Line(f"test then train {data.name}", type(model).__name__, len(X) - 1, seconds)

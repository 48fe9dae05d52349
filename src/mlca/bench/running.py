"""All workloads, one after the other, in one process."""

from __future__ import annotations

import sys

from mlca.bench import peers, workloads
from mlca.bench.data import sample
from mlca.bench.probes import exp32, exp64
from mlca.bench.results import Line, Results, Target


class Bench:
    """Collects lines and targets while it measures, and says on standard error where it is."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.targets: list[Target] = []
        self.exp64, self.exp32 = exp64(), exp32()

    def add(self, line: Line) -> Line:
        """Keep a line and show it."""
        self.lines.append(line)
        print(f"{line.work}: {line.who}, {line.rows / line.seconds:,.0f} rows/s", file=sys.stderr, flush=True)
        return line

    def aim(self, name: str, wanted: float, found: float, unit: str, at_most: bool = False) -> None:
        """Keep a target and what came out."""
        self.targets.append(Target(name, wanted, found, unit, at_most))

    def ratio(self, line: Line) -> float:
        """Return a line's pairs a second in units of exp64."""
        assert line.pairs is not None
        return line.pairs / line.seconds / self.exp64

    def results(self) -> Results:
        """Return everything measured so far."""
        return Results(self.exp64, self.exp32, tuple(self.lines), tuple(self.targets))


def run_benchmarks() -> Results:
    """Measure everything; takes a few minutes."""
    bench = Bench()
    for name in ("scene", "yeast"):
        _small_dense(bench, name)
    _mediamill(bench)
    _discs(bench)
    _variants(bench)
    _sparse(bench)
    _single_rows(bench)
    _river(bench)
    _growth(bench)
    peers.measure(bench)
    return bench.results()


def _small_dense(bench: Bench, name: str) -> None:
    data = sample(name)
    with workloads.no_screening():
        exact = bench.add(workloads.learning(data, who="mlca, not screened"))
    one = bench.add(workloads.learning(data))
    two = bench.add(workloads.learning(data, n_jobs=2))
    bench.aim(f"learning {name}, one thread, not screened", 0.8, bench.ratio(exact), "of exp64")
    bench.aim(f"learning {name}, one thread, screened", 1.6, bench.ratio(one), "of exp64")
    bench.aim(f"learning {name}, two threads", 1.7, one.seconds / two.seconds, "times one thread")
    bench.add(workloads.plain_numpy(data, vigilance=0.01))
    one, two = bench.add(workloads.predicting(data)), bench.add(workloads.predicting(data, n_jobs=2))
    bench.aim(f"predicting {name}, one thread", 2.0, bench.ratio(one), "of exp64")
    bench.aim(f"predicting {name}, two threads", 3.5, bench.ratio(two), "of exp64")
    for metric in ("manhattan", "euclidean"):
        bench.add(workloads.neighbours(data, metric))


def _mediamill(bench: Bench) -> None:
    data = sample("mediamill")
    bench.add(workloads.learning(data, repeats=1))
    ours = bench.add(workloads.learning(data, n_jobs=2, repeats=1))
    theirs = bench.add(workloads.plain_numpy(data, vigilance=0.01))
    bench.aim("learning mediamill, two threads", 25, theirs.seconds / ours.seconds, "times plain NumPy")
    if ours.memory is not None:
        share = ours.memory / data.X.nbytes
        bench.aim("learning mediamill, peak memory", 3, share, "times the data's", at_most=True)
    for n_jobs in (1, 2):
        bench.add(workloads.predicting(data, n_jobs=n_jobs, n_rows=1000))
    for metric in ("manhattan", "euclidean"):
        bench.add(workloads.neighbours(data, metric, n_rows=1000))


def _discs(bench: Bench) -> None:
    discs = sample("three discs")
    line = bench.add(workloads.learning(discs, vigilance=0.1))
    bench.aim("learning three discs, V .1", 100_000, line.rows / line.seconds, "rows/s")
    bench.add(workloads.learning(discs, n_jobs=2, vigilance=0.1))
    for n_jobs in (1, 2):
        bench.add(workloads.predicting(discs, n_jobs=n_jobs, vigilance=0.1))


def _variants(bench: Bench) -> None:
    for attributes in ("individual", "clustered"):
        line = bench.add(workloads.learning(sample("yeast"), attributes=attributes))
        bench.aim(f"learning yeast, {attributes}", 0.4, bench.ratio(line), "of exp64")
        bench.add(workloads.learning(sample("yeast"), n_jobs=2, attributes=attributes))


def _sparse(bench: Bench) -> None:
    bibtex = sample("bibtex")
    thin = bench.add(workloads.learning(bibtex, repeats=2))
    dense = bench.add(workloads.dense_path(bibtex))
    bench.aim("learning bibtex, sparse", 15, dense.seconds / thin.seconds, "times our dense path")
    bench.add(workloads.learning(bibtex, n_jobs=2, repeats=2))
    delicious = sample("delicious")
    for n_jobs in (1, 2):
        bench.add(workloads.learning(delicious, n_jobs=n_jobs, repeats=1))
    for data in (bibtex, delicious):
        for n_jobs in (1, 2):
            bench.add(workloads.predicting(data, n_jobs=n_jobs))
    eurlex = bench.add(workloads.eurlex())
    if eurlex.memory is not None:
        bench.aim("learning EURLex-4K's shape, peak memory", 2.0, eurlex.memory / 1e9, "GB", at_most=True)


def _single_rows(bench: Bench) -> None:
    learn, _, predict = (bench.add(line) for line in workloads.one_at_a_time(sample("yeast")))
    bench.aim("partial_fit of one row, yeast, 1,000 nodes", 5000, learn.rows / learn.seconds, "rows/s")
    bench.aim(
        "predict of one row, yeast, 1,000 nodes",
        200,
        1e6 * predict.seconds / predict.rows,
        "microseconds",
        at_most=True,
    )


def _river(bench: Bench) -> None:
    for line in workloads.river_stream(sample("yeast")):
        bench.add(line)
        if line.who == "mlca.river":
            bench.aim("learn_one in River's form, yeast, 600 nodes", 5000, line.rows / line.seconds, "rows/s")


def _growth(bench: Bench) -> None:
    line, time_exponent, memory_exponent = workloads.growth()
    bench.add(line)
    bench.aim("growth of learning time with n (n K d: 2)", 2.1, time_exponent, "exponent", at_most=True)
    bench.aim("growth of the nodes' memory with n (K d: 1)", 1.05, memory_exponent, "exponent", at_most=True)

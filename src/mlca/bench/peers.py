"""The paper's six peers, and River, beside scikit-learn on the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.neighbors import KNeighborsClassifier

from mlca.bench.clock import best_time, single_time
from mlca.bench.data import Sample, sample
from mlca.bench.results import Line
from mlca.peers import GLOCAL, MCIC, MLODM, MLkNN, MLSAkNN, MuENL

if TYPE_CHECKING:
    from mlca.bench.running import Bench


def measure_peers(bench: Bench) -> None:
    """Measure each peer on the data that its target names."""
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
    """Fit a dataset and predict it again."""
    X, Y = data.X[:n_rows], data.Y[:n_rows].toarray()
    X = X.toarray() if hasattr(X, "toarray") else X

    def work() -> None:
        model.fit(X, Y).predict(X)

    model.fit(X[:200], Y[:200]).predict(X[:10])
    seconds = best_time(work, repeats) if repeats > 1 else single_time(work)
    return Line(f"fit and predict {data.name} ({len(X):,} rows)", type(model).__name__, len(X), seconds)


def _prequential(model: Any, data: Sample) -> Line:
    """Predict each row, then learn it."""
    X, Y = data.X, data.Y.toarray()
    model.partial_fit(X[:1], Y[:1]).predict(X[:1])

    def work() -> None:
        for i in range(1, len(X)):
            model.predict(X[i : i + 1])
            model.partial_fit(X[i : i + 1], Y[i : i + 1])

    seconds = single_time(work)
    return Line(f"test then train {data.name}", type(model).__name__, len(X) - 1, seconds)

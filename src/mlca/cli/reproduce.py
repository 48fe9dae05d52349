"""Repeat the paper's experiments and compare the results with the paper's figures.

Results are stored in DIR/results.sqlite as they arrive: run the same command again to resume. The report consists of
DIR/report.html, DIR/report.md and one CSV file per table. Missing datasets are listed and left out; `mlca datasets
fetch NAME` downloads them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill

from mlca.optional import needing

EXPERIMENTS = {
    "continual": "MLCA and MCIC on a stream of three discs, in three conditions",
    "nodes": "number of nodes per dataset",
    "grid": "exact match by vigilance V, and the V that ranks best",
    "comparison": "all algorithms on all datasets by six measures",
    "epochs": "exact match over 1 to 10 epochs",
    "timing": "training and prediction time, and its growth",
    "beyond": "MLCA() versus the published algorithm, peers and batch learners",
    "streams": "test then train, compared with 17 published classifiers and River",
    "drift": "labels that change their meaning, and generated streams",
    "budget": "exact match with a bounded number of nodes",
    "all": "everything",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the experiments and options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = fill(" ".join((__doc__ or "").split()), 78)
    parser.epilog = "experiments:\n" + "\n".join(f"  {name:12}{purpose}" for name, purpose in EXPERIMENTS.items())
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", choices=tuple(EXPERIMENTS), help="an experiment from the list below"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a quick run: few folds and seeds, small datasets, short streams"
    )
    parser.add_argument(
        "--datasets", action="extend", metavar="NAME", nargs="+", help="datasets (default: those of the paper)"
    )
    parser.add_argument(
        "--algorithms",
        action="extend",
        metavar="NAME",
        nargs="+",
        help="algorithms, such as mlca-i or mlknn (default: all)",
    )
    parser.add_argument(
        "--seeds",
        metavar="N",
        type=_positive(int),
        help="number of stream seeds, and of cross-validation folds (default: 20)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_positive(int),
        default=1,
        help="number of parallel tasks, one thread each (default: 1)",
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="address of a Dask scheduler (tcp://...) whose workers run the tasks"
    )
    parser.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=_positive(float),
        help="time limit per fit; a fit that exceeds it is N/A and counts as worst",
    )
    parser.add_argument("--tune", action="store_true", help="grid search instead of the paper's tuned parameters")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("reproduction"), help="output folder (default: reproduction)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the experiments, write the report, and return the exit code."""
    with needing("mlca reproduce", "experiments"):
        import matplotlib  # noqa: F401  fails before hours of computing, not when the report is drawn

        from mlca.experiments.reproduction import Machinery, reproduce
        from mlca.experiments.scope import scope_of
        from mlca.experiments.studies import STUDIES

    scope = scope_of(quick=args.quick, datasets=args.datasets, algorithms=args.algorithms, repetitions=args.seeds)
    names = list(STUDIES) if args.experiment == "all" else [args.experiment]
    if any(STUDIES[name].needs_datasets for name in names) and scope.missing:
        print(scope.complaint())
    machinery = Machinery(args.jobs, args.cluster, args.time_limit)
    paths = reproduce(names, scope, args.out, machinery, tune=args.tune)
    print(f"report: {paths[0]}")
    return 0


def _positive(kind: type[int] | type[float]) -> type[int] | type[float]:
    """Return a function that parses a positive number; argparse quotes its name in errors."""

    def read(text: str) -> int | float:
        number = kind(text)
        if not number > 0:
            raise ValueError(text)
        return number

    read.__name__ = f"positive {kind.__name__}"
    return read  # type: ignore[return-value]

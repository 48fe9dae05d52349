"""Run the paper's experiments again and report them beside the paper's figures.

Results go to DIR/results.sqlite as they come: the same command goes on where an earlier one was stopped.
The report is DIR/report.html, DIR/report.md and one CSV file a table. Datasets that are not at hand are
named and left out; `mlca datasets fetch NAME` gets them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mlca.optional import needing

EXPERIMENTS = {
    "continual": "a stream of three discs in three conditions, MLCA and MCIC",
    "nodes": "the table of nodes",
    "grid": "exact match over V, and which V ranks best",
    "comparison": "all algorithms on all datasets by six measures",
    "epochs": "exact match over 1 to 10 epochs",
    "timing": "training and prediction time, and how it grows",
    "beyond": "MLCA() beside the published algorithm, peers and batch learners",
    "streams": "test then train, beside 17 published classifiers, River's and a control",
    "drift": "labels that change their meaning, and generated streams",
    "budget": "exact match with a bounded number of nodes",
    "all": "everything",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare what can be run and how."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "experiments:\n" + "\n".join(f"  {name:12}{purpose}" for name, purpose in EXPERIMENTS.items())
    parser.add_argument("experiment", metavar="EXPERIMENT", choices=tuple(EXPERIMENTS), help="one of those below")
    parser.add_argument("--quick", action="store_true", help="few folds and seeds, small datasets, short streams")
    parser.add_argument(
        "--datasets", action="extend", metavar="NAME", nargs="+", help="only these; default: the paper's"
    )
    parser.add_argument(
        "--algorithms", action="extend", metavar="NAME", nargs="+", help="only these, such as mlca-i or mlknn"
    )
    parser.add_argument(
        "--seeds", metavar="N", type=_positive(int), help="seeds of the stream and folds of 2 x 10-fold; default 20"
    )
    parser.add_argument("--jobs", metavar="N", type=_positive(int), default=1, help="tasks at a time, one thread each")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, tcp://..., whose workers do the tasks")
    parser.add_argument(
        "--time-limit", metavar="SECONDS", type=_positive(float), help="a fit past it is N/A, with the worst values"
    )
    parser.add_argument("--tune", action="store_true", help="search the paper's grids instead of taking its choice")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("reproduction"), help="where to; default: reproduction"
    )


def run(args: argparse.Namespace) -> int:
    """Run the experiments, write the report, and return the exit code."""
    with needing("mlca reproduce", "experiments"):
        import matplotlib  # noqa: F401  hours later, when the report is drawn, nobody wants to hear of it

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
    """Return a reader of numbers above zero, named for argparse's complaints."""

    def read(text: str) -> int | float:
        number = kind(text)
        if not number > 0:
            raise ValueError(text)
        return number

    read.__name__ = f"positive {kind.__name__}"
    return read  # type: ignore[return-value]

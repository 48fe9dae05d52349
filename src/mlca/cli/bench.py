"""Measure speed on this machine, relative to the machine's own limits.

A probe first measures how many exponentials per second the machine can compute and sum. Each workload is reported with
rows per second, feature pairs per second and their ratio to the probe. Plain NumPy, scikit-learn and River do the same
work for comparison. If MLCA_DATA names the folder of the datasets, they are used; otherwise data of the same shapes is
generated. The command takes a few minutes. `mlca bench serve` compares the service with the same learner in process.
"""

from __future__ import annotations

import argparse

from mlca.optional import needing


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what", nargs="?", choices=("learner", "serve"), default="learner", help="what to measure (default: learner)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--long", action="store_true", help="benchmark with millions of rows; takes about an hour")


def run(args: argparse.Namespace) -> int:
    """Run the benchmarks and print the results; return the exit code."""
    if args.what == "serve":
        with needing("mlca bench serve", "serve"):
            import mlca.serve.server  # noqa: F401  fails early: an error in the server process would not be shown
        from mlca.bench.serving import run_service_benchmarks

        service = run_service_benchmarks()
        print(service.to_json() if args.json else service)
        return 0
    from mlca.bench.benchmarks import run_benchmarks, run_long

    results = run_long() if args.long else run_benchmarks()
    print(results.to_json() if args.json else results)
    return 0

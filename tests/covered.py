"""Whether each file that is measured is reached: `python tests/covered.py`, after pytest has measured.

pytest-cov compares the total alone, in which a file that nobody asks disappears. A file below the limit is a fault
unless docs/inside.md names it among what the tests do not reach. A workflow of GitHub shows the table with its run.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

LEAST = 95  # per cent, as for the total in pyproject.toml
INSIDE = Path(__file__).parents[1] / "docs" / "inside.md"


def faults(shares, explained):
    """Return a sentence for each file whose share is too small and that is not explained."""
    return [
        f"{name}: the tests reach {share:.1f} %, fewer than {LEAST} %; ask it more, or say why not in {INSIDE.name}"
        for name, share in sorted(shares.items())
        if share < LEAST and f"`{name}`" not in explained
    ]


def main():
    from coverage import Coverage

    measured = Coverage()
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "coverage.json")
        measured.json_report(outfile=str(path))
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    if "GITHUB_STEP_SUMMARY" in os.environ:
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
            measured.report(file=summary, output_format="markdown", show_missing=False, skip_covered=False)
    # A file is called as the page calls it: learner/core.py.
    shares = {name.rpartition("mlca/")[2]: found["summary"]["percent_covered"] for name, found in files.items()}
    section = INSIDE.read_text(encoding="utf-8").partition("## What the tests do not cover")[2].partition("\n## ")[0]
    return "\n".join(faults(shares, section)) or None


if __name__ == "__main__":
    sys.exit(main())

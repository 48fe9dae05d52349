"""Check the test coverage of each file: run `python tests/covered.py` after pytest.

pytest-cov checks only the total, which hides single files. A file below the limit is a fault unless docs/inside.md
lists it among the exceptions. The GitHub workflow shows the table.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

LEAST = 95  # per cent, as for the total in pyproject.toml
INSIDE = Path(__file__).parents[1] / "docs" / "inside.md"


def faults(shares, explained):
    """Return a message for each file with too little coverage that is not listed as an exception."""
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
    # Shorten file names to the form used on the page, such as learner/core.py.
    shares = {name.rpartition("mlca/")[2]: found["summary"]["percent_covered"] for name, found in files.items()}
    section = INSIDE.read_text(encoding="utf-8").partition("## What the tests do not cover")[2].partition("\n## ")[0]
    return "\n".join(faults(shares, section)) or None


if __name__ == "__main__":
    sys.exit(main())

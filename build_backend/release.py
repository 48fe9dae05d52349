"""Check whether a tag may be published: `python build_backend/release.py v0.2.0 https://example.org/owner/mlca`.

The tag must equal the package's version, and the package's `Source` address must be the repository that publishes it.
So a fork cannot publish by mistake.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def faults(tag: str, repository: str) -> list[str]:
    """Return the reasons why a tag must not be published from a repository."""
    source = (ROOT / "src" / "mlca" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    version = found[1] if found else "?"
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    wrong = []
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, the version {version}; tag v{version}, or change src/mlca/__init__.py")
    if urls.get("Source") != repository:
        stated = urls.get("Source", "nothing")
        wrong.append(f"pyproject.toml has {stated} for Source under [project.urls]; it must be {repository}")
    return wrong


if __name__ == "__main__":
    sys.exit("\n".join(faults(*sys.argv[1:])) or None)

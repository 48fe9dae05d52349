"""Print what an extra of mlca needs, one requirement a line: `python build_backend/requirements.py dev`.

So that packages can be installed while mlca itself is being built. With `--oldest` the lowest version that is allowed
of each, so that a test can show that it is enough.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any


def requirements(project: dict[str, Any], extra: str) -> set[str]:
    """Return the requirements of the package and of an extra, with those of the extras that it is made of."""
    found = set(project["dependencies"])
    for line in project["optional-dependencies"][extra]:
        own = re.fullmatch(r"mlca\[(.*)\]", line)
        found |= set().union(*(requirements(project, name) for name in own[1].split(","))) if own else {line}
    return found


if __name__ == "__main__":
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    found = sorted(requirements(pyproject["project"], sys.argv[1]))
    print(*(line.replace(">=", "==") if "--oldest" in sys.argv[2:] else line for line in found), sep="\n")

"""Print requirements of mlca's extras: `python build_backend/requirements.py frames plots`.

The output has one requirement per line. With it, these packages can be installed while mlca itself is being built. With
`--oldest`, each requirement is pinned to its lowest allowed version, for tests.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any


def requirements(project: dict[str, Any], extras: list[str]) -> set[str]:
    """Return the requirements of the package and of extras, including nested extras."""
    found = set(project["dependencies"])
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"mlca\[(.*)\]", line)
            found |= requirements(project, own[1].split(",")) if own else {line}
    return found


if __name__ == "__main__":
    oldest = "--oldest" in sys.argv[1:]
    extras = [word for word in sys.argv[1:] if word != "--oldest"]
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    found = sorted(requirements(pyproject["project"], extras))
    print(*(line.replace(">=", "==") if oldest else line for line in found), sep="\n")

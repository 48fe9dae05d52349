"""Adapts README.md for a package index, where the repository's files are not available.

Relative addresses of links and images become absolute, using the `Source` address under [project.urls] in
pyproject.toml. If there is none, links become plain text, and images are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://)([^)#]+)(#[^)]*)?\)")


def for_index(text: str, version: str, source: str | None) -> str:
    """Return the text of a page, with links that work without the repository's files."""

    def replace(match: re.Match[str]) -> str:
        picture, title, path, anchor = match[1], match[2], match[3], match[4] or ""
        if source is None:
            return "" if picture else title
        return f"{picture}[{title}]({source}/{'raw' if picture else 'blob'}/v{version}/{path}{anchor})"

    return LINK.sub(replace, text)


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the long description; called by scikit-build-core to write package metadata."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = for_index(text, project["version"], project["urls"].get("Source"))
    return {"readme": {"content-type": "text/markdown", "text": page}}

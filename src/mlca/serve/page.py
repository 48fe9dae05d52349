"""The page: one file that holds all it needs, and asks nobody but its own service.

Markup, style and script lie beside this module and are joined when it is imported. The content security policy
names the hashes of style and script, so that nothing else can run or be loaded, whatever a label is called. Curves
are drawn as SVG by the page's own script: they are a hundred lines, they know the page's colours in light and dark,
and there is no library to bundle, update and trust.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def _read(name: str) -> str:
    return files("mlca.serve").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


_STYLE, _SCRIPT = _read("page.css"), _read("page.js")

HTML = _read("page.html").replace("/* style */", _STYLE).replace("/* script */", _SCRIPT)

POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src {_hash(_STYLE)}",
        f"script-src {_hash(_SCRIPT)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

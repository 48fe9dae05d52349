"""SVG pictures on one page: without their own XML headers, with ids that cannot clash."""

from __future__ import annotations

import re

_TAG = re.compile(r"""<[A-Za-z](?:"[^"]*"|'[^']*'|[^'">])*>""")
_ID = re.compile(r"""(\sid\s*=\s*["'])""")
_LINK = re.compile(r"""(\bhref\s*=\s*["']\s*#|\burl\(\s*["']?#)""")


def inline_svg(svg: str, prefix: str) -> str:
    """Return an SVG picture ready to stand inside an HTML page.

    Parameters
    ----------
    svg : str
        A whole SVG document; anything before its ``<svg>`` element is left out.
    prefix : str
        Put before every id and every link to one: pictures drawn by the same hand use the same ids.

    Returns
    -------
    str

    Examples
    --------
    >>> inline_svg('<?xml version="1.0"?><svg><path id="a"/><use href="#a"/></svg>', "ranks-")
    '<svg><path id="ranks-a"/><use href="#ranks-a"/></svg>'
    """
    start = svg.find("<svg")
    if start < 0:
        raise ValueError("the picture has no <svg> element")
    return _TAG.sub(lambda tag: _prefix_ids(tag[0], prefix), svg[start:])


def _prefix_ids(tag: str, prefix: str) -> str:
    return _LINK.sub(rf"\g<1>{prefix}", _ID.sub(rf"\g<1>{prefix}", tag))

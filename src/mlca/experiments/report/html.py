"""The report as one self-contained HTML file, with inlined SVG figures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from mlca.experiments.report.rounding import Cell, columns_of
from mlca.experiments.report.sections import Figure, NamedSection, Report, Table

WIDE = 9
"""Tables with more columns are printed on a landscape page."""


def html_page(report: Report, sections: Sequence[NamedSection]) -> str:
    """Return the whole report as HTML.

    Parameters
    ----------
    report : Report
        The report.
    sections : sequence of NamedSection
        The sections of the report, with their names for links.

    Returns
    -------
    str
        A self-contained page. Its content security policy forbids requests and all scripts except the page's own,
        including scripts in figures.
    """
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_part("page.html")).substitute(
        policy=f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        title=_text(report.title),
        made=_paragraph(report.made, "made"),
        notice=f'<p class="notice" role="note">{_text(report.notice)}</p>' if report.notice else "",
        style=_part("page.css"),
        contents="\n".join(map(_entry, sections)),
        sections="\n".join(map(_section, sections)),
        facts="\n".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in report.facts),
        script=script,
    )


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    """Escape a text for HTML, including carriage returns, which browsers would replace."""
    return escape(text).replace("\r", "&#13;")


def _entry(named: NamedSection) -> str:
    link = f'<a href="#{named.name}">{_text(named.section.title)}</a>'
    return f"<li>{link}{_paragraph(named.section.verdict)}</li>"


def _section(named: NamedSection) -> str:
    section = named.section
    return "\n".join(
        [
            f'<section id="{named.name}">',
            f"<h2>{_text(section.title)}</h2>",
            *(_paragraph(text) for text in section.paragraphs),
            _paragraph(section.verdict, "verdict"),
            *(_table(name, table) for name, table in named.tables),
            *(_figure(name, figure) for name, figure in named.figures),
            "</section>",
        ]
    )


def _paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph element; an empty string for empty text."""
    if not text.strip():
        return ""
    return f"<p{_classes(kind)}>{_text(text)}</p>"


# Names have no double hyphens, so ids of the form name--suffix are unique.
def _table(name: str, table: Table) -> str:
    columns = columns_of(table)
    kinds = ["number" if column.is_numeric else "" for column in columns]
    heads = [
        f'<th scope="col"{_classes(kind)}>{_text(head)}</th>' for head, kind in zip(table.columns, kinds, strict=True)
    ]
    rows = [_row(cells, kinds) for cells in zip(*(column.cells for column in columns), strict=True)]
    return "\n".join(
        [
            f'<figure id="{name}"{_classes("wide" if len(columns) > WIDE else "")}>',
            f'<figcaption id="{name}--caption">{_text(table.title)}</figcaption>',
            f'<div class="box"><table aria-labelledby="{name}--caption">',
            f"<thead><tr>{''.join(heads)}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody>",
            "</table></div>",
            _paragraph(table.note, "note"),
            "</figure>",
        ]
    )


def _row(cells: Sequence[Cell], kinds: Sequence[str]) -> str:
    contents = [_cell_contents(cell, kind) for cell, kind in zip(cells, kinds, strict=True)]
    others = "".join(f"<td{content}</td>" for content in contents[1:])
    return f'<tr><th scope="row"{contents[0]}</th>{others}</tr>'


def _cell_contents(cell: Cell, kind: str) -> str:
    """Return the attributes and the text of a cell; the caller adds the start of the tag."""
    value = "" if cell.number is None else f' data-value="{_javascript_number(cell.number)}"'
    return f"{_classes(kind, 'missing' if cell.missing else '')}{value}>{_text(cell.text)}"


def _javascript_number(number: float) -> str:
    return repr(number).replace("inf", "Infinity")


def _classes(*names: str) -> str:
    """Return a class attribute for an HTML element, or nothing if all names are empty."""
    given = " ".join(name for name in names if name)
    return f' class="{given}"' if given else ""


def _figure(name: str, figure: Figure) -> str:
    return "\n".join(
        [
            f'<figure id="{name}">',
            f'<figcaption id="{name}--caption">{_text(figure.title)}</figcaption>',
            f'<div class="box picture" role="img" aria-labelledby="{name}--caption">',
            inline_svg(figure.svg, f"{name}--svg-"),
            "</div>",
            _paragraph(figure.note, "note"),
            "</figure>",
        ]
    )


_TAG = re.compile(r"""<[A-Za-z](?:"[^"]*"|'[^']*'|[^'">])*>""")
_ID = re.compile(r"""(\sid\s*=\s*["'])""")
_LINK = re.compile(r"""(\bhref\s*=\s*["']\s*#|\burl\(\s*["']?#)""")


def inline_svg(svg: str, prefix: str) -> str:
    """Return an SVG figure that can be embedded in an HTML page.

    Parameters
    ----------
    svg : str
        A whole SVG document; anything before its ``<svg>`` element is left out.
    prefix : str
        The prefix of every ID and of every link to an ID, because figures drawn by the same program use the same IDs.

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
        raise ValueError("the figure has no <svg> element")
    return _TAG.sub(lambda tag: _prefix_ids(tag[0], prefix), svg[start:])


def _prefix_ids(tag: str, prefix: str) -> str:
    return _LINK.sub(rf"\g<1>{prefix}", _ID.sub(rf"\g<1>{prefix}", tag))

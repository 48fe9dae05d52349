"""The report as Markdown: the same text and tables as in HTML, and links to figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mlca.experiments.report.rounding import columns_of
from mlca.experiments.report.sections import FIGURES, TABLES, Figure, NamedSection, Report, Table


def markdown_page(report: Report, sections: Sequence[NamedSection]) -> str:
    """Return the whole report as Markdown.

    Parameters
    ----------
    report : Report
        The report.
    sections : sequence of NamedSection
        The sections of the report, with their file names.

    Returns
    -------
    str
    """
    notice = f"> **{_inline(report.notice)}**" if report.notice else ""
    blocks = [f"# {_inline(report.title)}", _paragraph(report.made), notice]
    for named in sections:
        blocks += _section(named)
    blocks += ["## How this report was made", _grid(("", ""), ("---", "---"), report.facts)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _section(named: NamedSection) -> Iterator[str]:
    section = named.section
    yield f"## {_inline(section.title)}"
    yield from map(_paragraph, section.paragraphs)
    if section.verdict.strip():
        yield f"> **Verdict:** {_inline(section.verdict)}"
    for name, table in named.tables:
        yield from _table(name, table)
    for name, figure in named.figures:
        yield from _figure(name, figure)


def _table(name: str, table: Table) -> Iterator[str]:
    columns = columns_of(table)
    yield f"### {_inline(table.title)}"
    yield _grid(
        table.columns,
        ["---:" if column.is_numeric else "---" for column in columns],
        [[cell.text for cell in row] for row in zip(*(column.cells for column in columns), strict=True)],
    )
    yield _paragraph(table.note)
    yield f"All digits: [{name}.csv]({TABLES}/{name}.csv)"


def _figure(name: str, figure: Figure) -> Iterator[str]:
    yield f"### {_inline(figure.title)}"
    yield f"![{_inline(figure.title)}]({FIGURES}/{name}.svg)"
    yield _paragraph(figure.note)


def _grid(heads: Sequence[str], rules: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [[_inline(head) for head in heads], rules, *([_inline(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _paragraph(text: str) -> str:
    """Return a text as a Markdown paragraph, with a list marker at its start escaped."""
    return re.sub(r"^([+-]|\d+(?=[.)]))", _escape_list_mark, _inline(text))


def _escape_list_mark(mark: re.Match[str]) -> str:
    return f"{mark[0]}\\" if mark[0].isdigit() else f"\\{mark[0]}"


def _inline(text: str) -> str:
    """Return a text on one line, with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_\[\]<>&|~$#])", r"\\\1", re.sub(r"\s+", " ", text).strip())

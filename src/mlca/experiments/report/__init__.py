"""The report of ``mlca reproduce``: results compared with those of the paper.

An experiment passes a `Section`: sentences, tables of numbers, and figures as SVG. This package only formats them:

1. `sections` defines these parts, and gives every section, table and figure a name, which links and file names use. 2.
`rounding` rounds the numbers of a table column by column, once for all formats. 3. `html` writes the report as one
page, from the template `page.html`, the style `page.css` (light and dark, for phones and for print)
   and the script `page.js`, which sorts tables. `markdown` writes the same content as text.
4. `write_report` writes the files into a folder; CSV files keep all digits. Each file is replaced atomically,
   the report itself last, so that a report that is opened during a run is complete.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from mlca.experiments.report.html import html_page
from mlca.experiments.report.markdown import markdown_page
from mlca.experiments.report.rounding import known_or_not_available
from mlca.experiments.report.sections import FIGURES, TABLES, Figure, Report, Section, Table, name_sections
from mlca.replacing import replacing

__all__ = ["Figure", "Report", "Section", "Table", "write_report"]


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write a report as HTML, Markdown, one CSV file per table and one SVG file per figure.

    Parameters
    ----------
    report : Report
        The report.
    folder : Path
        The output folder; created if missing. Files of an earlier report with the same names are replaced.

    Returns
    -------
    list of Path
        ``report.html``, ``report.md``, then the CSV and SVG files, section by section.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> table = Table("Exact match", ("condition", "paper", "measured"), (("together", 0.972, 0.9713),))
    >>> section = Section("continual", "Continual learning", "20 seeds.", "Agrees with the paper.", (table,), ())
    >>> with TemporaryDirectory() as folder:
    ...     paths = write_report(Report("The paper, reproduced", (section,), ()), Path(folder))
    ...     [path.relative_to(folder).as_posix() for path in paths]
    ['report.html', 'report.md', 'tables/continual-exact-match.csv']
    """
    sections = name_sections(report)
    parts: dict[Path, str] = {}
    for named in sections:
        parts |= {folder / TABLES / f"{name}.csv": _csv(table) for name, table in named.tables}
        parts |= {folder / FIGURES / f"{name}.svg": figure.svg for name, figure in named.figures}
    pages = {
        folder / "report.html": html_page(report, sections),
        folder / "report.md": markdown_page(report, sections),
    }
    for path, text in (parts | pages).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text.encode())
    return [*pages, *parts]


def _csv(table: Table) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([known_or_not_available(value) for value in row] for row in table.rows)
    return file.getvalue()

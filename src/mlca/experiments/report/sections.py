"""The input of the report: sections with text, tables and figures, and their names.

Names are lower-case ASCII, short, and unique within a report.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of the report: named columns, and rows of numbers and names.

    Parameters
    ----------
    title : str
        The table's caption, from which the name of its CSV file is made.
    columns : tuple of str
        The column headers. Numbers in a column whose header contains "difference" are shown with a sign.
    rows : tuple of tuple of str, float, int or None
        One cell per column; the first names the row. ``None`` and NaN are missing and shown as "N/A"; the
        text "not run" marks results that were not computed. Both sort last.
    note : str, default=""
        A sentence below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.title!r} has {len(self.columns)} columns, but a row of {len(row)} cells")


@dataclass(frozen=True)
class Figure:
    """A figure of the report: an SVG image and its caption.

    Parameters
    ----------
    title : str
        The figure's caption, from which the name of its SVG file is made.
    svg : str
        The image as an SVG document; an XML header may precede the ``<svg>`` element.
    note : str, default=""
        A sentence after the caption.
    """

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the report: the text, tables and figures of an experiment.

    Parameters
    ----------
    key : str
        Short name, unique in the report; the section's link and its file names begin with it.
    title : str
        Heading of the section.
    introduction : str
        The description of the experiment; blank lines separate paragraphs.
    verdict : str
        The conclusion, in sentences computed from the numbers.
    tables : tuple of Table
        The section's tables, in order.
    figures : tuple of Figure
        The section's figures, in order.
    """

    key: str
    title: str
    introduction: str
    verdict: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the introduction."""
        return re.split(r"\n\s*\n", self.introduction)


@dataclass(frozen=True)
class Report:
    """A report: its sections, and the conditions of the run.

    Parameters
    ----------
    title : str
        Title of the report.
    sections : tuple of Section
        One section per experiment, in order.
    facts : tuple of tuple of (str, str)
        Names and values shown at the end: versions, machine, date, command.
    notice : str, default=""
        A notice that is shown above all sections.
    """

    title: str
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    notice: str = ""

    @property
    def made(self) -> str:
        """The version, date and command of the run, if known; shown below the title."""
        facts = dict(self.facts)
        version = f"mlca {facts['mlca']}" if "mlca" in facts else ""
        return "; ".join(text for text in (version, facts.get("date", ""), facts.get("command", "")) if text)


TABLES, FIGURES = "tables", "figures"
"""Names of the folders next to the report that hold its CSV and SVG files."""
LONGEST = 80
PAGE_NAMES = frozenset({"contents", "facts"})
"""Link names that the page reserves for its own parts."""


@dataclass(frozen=True)
class NamedSection:
    """A section with unique names for itself, its tables and its figures.

    Parameters
    ----------
    name : str
        Name of the section.
    section : Section
        The section itself.
    tables : tuple of (str, Table)
        The tables of the section with their names.
    figures : tuple of (str, Figure)
        The figures of the section with their names.
    """

    name: str
    section: Section
    tables: tuple[tuple[str, Table], ...]
    figures: tuple[tuple[str, Figure], ...]


def name_sections(report: Report) -> list[NamedSection]:
    """Give every section, table and figure a unique name made from its key or title.

    Examples
    --------
    >>> table = Table("Exact match, V = 0.01", (), ())
    >>> sections = name_sections(Report("", (Section("grid", "", "", "", (table, table), ()),), ()))
    >>> [name for name, _ in sections[0].tables]
    ['grid-exact-match-v-0-01', 'grid-exact-match-v-0-01-2']
    """
    taken = set(PAGE_NAMES)
    section_names = [_free_name(section.key, taken) for section in report.sections]
    return [
        NamedSection(
            name,
            section,
            tuple((_free_name(f"{name} {table.title}", taken), table) for table in section.tables),
            tuple((_free_name(f"{name} {figure.title}", taken), figure) for figure in section.figures),
        )
        for name, section in zip(section_names, report.sections, strict=True)
    ]


def _free_name(text: str, taken: set[str]) -> str:
    """Return an unused name made from a text, and mark it as used."""
    base = _plain(text)
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _plain(text: str) -> str:
    """Return a text in lower-case ASCII without accents; other characters become hyphens."""
    ascii_text = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text)[:LONGEST].strip("-") or "part"

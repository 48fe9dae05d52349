"""Names for files and links: plain, short, and each one only once in a report."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from mlca.experiments.report.sections import Figure, Report, Section, Table

TABLES, FIGURES = "tables", "figures"
"""Folders beside the report for its CSV and SVG files."""
LONGEST = 80
PAGE_NAMES = frozenset({"contents", "facts"})
"""Links that the page itself needs."""


@dataclass(frozen=True)
class NamedSection:
    """A section whose parts have names.

    Parameters
    ----------
    name : str
        Name of the section.
    section : Section
        The section itself.
    tables : tuple of (str, Table)
        Its tables with their names.
    figures : tuple of (str, Figure)
        Its figures with their names.
    """

    name: str
    section: Section
    tables: tuple[tuple[str, Table], ...]
    figures: tuple[tuple[str, Figure], ...]


def name_sections(report: Report) -> list[NamedSection]:
    """Give every section, table and figure a name made from its key or title.

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
    """Make a name that is not taken, and take it."""
    plain = _plain(text)
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name)
    return name


def _plain(text: str) -> str:
    """Keep letters and digits that every file system knows; accents go, the rest becomes hyphens."""
    ascii_text = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text)[:LONGEST].strip("-") or "part"

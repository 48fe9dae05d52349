"""What an experiment hands to the report: tables, figures, and the sentences around them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """One table: named columns and rows of numbers and names.

    Parameters
    ----------
    title : str
        The table's caption; the name of its CSV file is made from it.
    columns : tuple of str
        Heads of the columns. Numbers below a head with the word "difference" carry their sign.
    rows : tuple of tuple of str, float, int or None
        One cell a column, the first naming the row. ``None`` and NaN are missing and shown as "N/A"; the
        text "not run" says that nobody tried. Both sort last.
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
    """One figure: an SVG picture and its caption.

    Parameters
    ----------
    title : str
        The figure's caption; the name of its SVG file is made from it.
    svg : str
        The picture as SVG text; an XML header before the ``<svg>`` element is fine.
    note : str, default=""
        A sentence after the caption.
    """

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """One experiment of the report.

    Parameters
    ----------
    key : str
        Short name, unique in the report: the link of the section and the first part of its files' names.
    title : str
        Heading of the section.
    introduction : str
        What was done; blank lines separate paragraphs.
    verdict : str
        What came out, in a sentence computed from the numbers.
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
        """The introduction, paragraph by paragraph."""
        return re.split(r"\n\s*\n", self.introduction)


@dataclass(frozen=True)
class Report:
    """A whole report.

    Parameters
    ----------
    title : str
        Title of the report.
    sections : tuple of Section
        One section an experiment, in order.
    facts : tuple of tuple of (str, str)
        Names and values shown at the end: versions, machine, date, command.
    notice : str, default=""
        What readers must know before they read anything else; shown above all sections.
    """

    title: str
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    notice: str = ""

    @property
    def made(self) -> str:
        """By what, when and by which command, as far as the facts tell: shown below the title."""
        facts = dict(self.facts)
        version = f"mlca {facts['mlca']}" if "mlca" in facts else ""
        return "; ".join(text for text in (version, facts.get("date", ""), facts.get("command", "")) if text)

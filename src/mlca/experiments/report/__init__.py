"""The report of ``mlca reproduce``."""

from __future__ import annotations

from pathlib import Path

from mlca.experiments.report.sections import Figure, Report, Section, Table

__all__ = ["Figure", "Report", "Section", "Table", "write_report"]


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write ``report.html``, ``report.md``, one CSV a table and one SVG a figure, and return their paths."""
    raise NotImplementedError

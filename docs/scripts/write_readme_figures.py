"""Put figures of docs/beyond.md and docs/streams-proof.md into README.md.

    python docs/scripts/write_readme_figures.py

Run it after `write_proof_pages.py`; `tests/docs/test_site.py` fails while README says something else than the pages.
Only what stands between the comments of a table is written.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

OURS = "MLCA()"
MEASURES = {
    "Exact match": "exact match",
    "F1 by example": "F1 by example",
    "Macro AUC": "macro AUC",
    "Hamming loss": "Hamming loss",
    "Brier score": "Brier score",
    "Expected calibration error": "calibration error",
}
LEARNERS = {
    OURS: "`MLCA()`, one pass",
    "random forest": "random forest, 200 trees, batch",
    "forest, our fallback": "the same forest with the last step of our decision",
    "logistic regression": "logistic regression a label, batch",
    "ML-kNN": "ML-kNN, batch",
    "MLCA V=0.01": "`MLCA.published()`, the paper's, one pass",
}
STREAMS = ("flags", "virusgo", "emotions", "birds", "yeast", "medical", "scene")
STREAM_LEARNERS = {
    "MLCA(recency=True)": "`MLCA(recency=True)`",
    "best of the 17 published": "best of 17 published stream learners, for each stream another",
    "River: logistic regression": "River, logistic regression a label",
    "River: nearest neighbours": "River, nearest neighbours",
    "labels of the row before": "control: the labels of the row before",
}


def main() -> None:
    """Write README anew."""
    README.write_text(with_figures(README.read_text(encoding="utf-8")), encoding="utf-8")


def with_figures(text: str) -> str:
    """Return README with the figures that the pages have."""
    for page, lines in (("beyond", comparison()), ("streams-proof", streams())):
        begin, end = f"<!-- figures of docs/{page}.md -->\n", "<!-- end of figures -->\n"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(["", *lines, "", ""]) + rest[rest.index(end) :]
    return text


def comparison() -> Iterator[str]:
    """Yield the lines of the table of means, with how often MLCA() is ahead of each learner and behind it."""
    means = rows_of("beyond", "Means over the small datasets")
    against = rows_of("beyond", "Losses and wins of MLCA()")
    yield _line("", *MEASURES.values(), "`MLCA()` ahead : behind", "folds")
    yield "|---" * (len(MEASURES) + 3) + "|"
    for name, title in LEARNERS.items():
        figures = (_short(means[name][measure]) for measure in MEASURES)
        score = "" if name == OURS else f"{against[name]['MLCA() wins']} : {against[name]['MLCA() loses']}"
        yield _line(title, *figures, score, means[name]["folds"])


def streams() -> Iterator[str]:
    """Yield the lines of the table of micro F1 on streams, the best of each in bold."""
    rows = rows_of("streams-proof", "Micro F1, order of the file (higher is better)")
    best = {stream: max(float(rows[name][stream]) for name in STREAM_LEARNERS) for stream in STREAMS}
    yield _line("", *STREAMS)
    yield "|---" * (len(STREAMS) + 1) + "|"
    for name, title in STREAM_LEARNERS.items():
        figures = (rows[name][stream] for stream in STREAMS)
        pairs = zip(figures, best.values(), strict=True)
        yield _line(title, *(f"**{_short(cell)}**" if float(cell) == most else _short(cell) for cell, most in pairs))


def rows_of(page: str, title: str) -> dict[str, dict[str, str]]:
    """Return the first table of a page with a title: rows by their first cell, cells by the head of their column."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(rf"^### {re.escape(title)}\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    if table is None:
        raise ValueError(f"docs/{page}.md has no table {title!r}")
    head, _, *lines = (re.split(r" \| ", line.strip("| ")) for line in table[1].splitlines())
    return {cells[0]: dict(zip(head, cells, strict=True)) for cells in lines}


def _short(figure: str) -> str:
    return figure.removeprefix("0")


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


if __name__ == "__main__":
    main()

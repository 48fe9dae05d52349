"""Put figures of docs/beyond.md and docs/streams-proof.md where other pages show them: README.md and docs/choosing.md.

    python docs/scripts/write_figures.py

Run it after `write_proof_pages.py`; `tests/docs/test_site.py` fails while a page says something else than those two.
Only what stands between the comments of a table is written.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]

OURS = "MLCA()"
MEASURES = {
    "Exact match": "exact match",
    "F1 by example": "F1 by example",
    "Macro AUC": "macro AUC",
    "Hamming loss": "Hamming loss",
    "Brier score": "Brier score",
    "Expected calibration error": "calibration error",
}
BATCH = {
    OURS: "`MLCA()`, one pass",
    "random forest": "random forest, 200 trees, batch",
    "forest, our fallback": "the same forest with the last step of our decision",
    "logistic regression": "logistic regression a label, batch",
    "ML-kNN": "ML-kNN, batch",
    "MLCA V=0.01": "`MLCA.published()`, the paper's, one pass",
}
HALVES = {
    OURS: "`MLCA()`",
    'MLCA(similarity="correntropy")': '`MLCA(similarity="correntropy")`',
    'MLCA(decision="bayes")': '`MLCA(decision="bayes")`',
    "MLCA V=0.01": "`MLCA.published()`",
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
    """Write the pages anew."""
    for page in TABLES:
        path = ROOT / page
        path.write_text(with_figures(page, path.read_text(encoding="utf-8")), encoding="utf-8")


def with_figures(page: str, text: str) -> str:
    """Return the text of a page with the figures that the other pages have."""
    for source, table in TABLES[page].items():
        begin, end = f"<!-- figures of docs/{source}.md -->\n", "<!-- end of figures -->\n"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(["", *table(), "", ""]) + rest[rest.index(end) :]
    return text


def comparison(learners: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the table of means, with how often MLCA() is ahead of each learner and behind it."""
    means = rows_of("beyond", "Means over the small datasets")
    against = rows_of("beyond", "Losses and wins of MLCA()")
    yield _line("", *MEASURES.values(), "`MLCA()` ahead : behind", "folds")
    yield "|---" * (len(MEASURES) + 3) + "|"
    for name, title in learners.items():
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


TABLES = {
    "README.md": {"beyond": partial(comparison, BATCH), "streams-proof": streams},
    "docs/choosing.md": {"beyond": partial(comparison, HALVES)},
}

if __name__ == "__main__":
    main()

"""Copy results from research pages and docs/benchmarks.txt to the pages that show them.

    python docs/scripts/write_figures.py

Run it after `write_proof_pages.py` and `mlca bench`; `tests/docs/test_site.py` fails while a copy is out of date. The
table of symbols comes from the docstring of `mlca.learner`. On each page, only the text between the comments "figures
of ..." and "end of figures" is replaced.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]

OURS = "MLCA()"
MEASURES = {
    "Exact match": "exact match",
    "F1 by example": "example F1",
    "Macro AUC": "macro AUC",
    "Hamming loss": "Hamming loss",
    "Brier score": "Brier score",
    "Expected calibration error": "calibration error",
}
BATCH = {
    OURS: "**`MLCA()`**, one pass",
    "random forest": "random forest, 200 trees",
    "forest, our fallback": "the same forest, with our decision step",
    "gradient boosting": "gradient boosting per label",
    "logistic regression": "logistic regression per label",
    "ML-kNN": "ML-kNN",
    "MLCA V=0.01": "`MLCA.published()`, one pass",
}
ONLINE = {
    "MLCA(recency=True)": "`MLCA(recency=True)`",
    'MLCA(drift="follow")': '`MLCA(drift="follow")`',
    OURS: "`MLCA()`",
    "River: logistic regression": "River's logistic regression",
    "MLHAT (published)": "MLHAT, the best published one",
    "MLCA V=0.01": "`MLCA.published()`",
    "labels of the row before": "labels of the previous row",
}
HALVES = {
    OURS: "`MLCA()`",
    'MLCA(decision="calibrated")': '`MLCA(decision="calibrated")`',
    'MLCA(similarity="correntropy")': '`MLCA(similarity="correntropy")`',  # the name in pages of version 0.2
    'MLCA(similarity="correntropy", decision="calibrated")': '`MLCA(similarity="correntropy", decision="calibrated")`',
    'MLCA(decision="bayes")': '`MLCA(decision="bayes")`',
    "MLCA V=0.01": "`MLCA.published()`",
}
ESSAY = "src/mlca/learner/__init__.py"
BENCHED = ("scene (2,407 x 294)", "yeast (2,417 x 103)", "mediamill (30,993 x 120)")
SPARSE = "bibtex (4,880 x 1,836)"
ONE_BY_ONE = "test then train, one row per call, yeast"
RIVER = {"learning": "learn_one, yeast, after 500 rows", "predicting": "predict_one, yeast, after 500 rows"}
RIVERS = ("mlca.river, our rule", "mlca.river", "River, logistic per label")
THREAD = ("MLCA(), 1 thread", "mlca, 1 thread")
BESIDE = {
    "plain NumPy": "plain NumPy",
    "scikit-learn manhattan, 1 job": "scikit-learn, Manhattan",
    "River, logistic per label": "logistic regression, one per label",
}


def main() -> None:
    """Replace the copied results on all pages that show them."""
    for page in FIGURES:
        path = ROOT / page
        path.write_text(with_figures(page, path.read_text(encoding="utf-8")), encoding="utf-8")


def with_figures(page: str, text: str) -> str:
    """Return the text of a page with its copied results replaced by the current ones."""
    for source, lines in FIGURES[page].items():
        begin, end = f"<!-- figures of {source} -->\n", "<!-- end of figures -->\n"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(["", *lines(), "", ""]) + rest[rest.index(end) :]
    return text


def means(learners: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the table of means over the small datasets, for available learners."""
    rows = rows_of("beyond", "Means over the small datasets")
    yield _line("", *MEASURES.values())
    yield "|---" + "|---:" * len(MEASURES) + "|"
    for name in filter(rows.__contains__, learners):
        yield _line(learners[name], *(rows[name][measure] for measure in MEASURES))


def comparison(learners: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the table of means, with wins and losses of MLCA()."""
    against = rows_of("beyond", "Losses and wins of MLCA()")
    head, rule, *lines = means(learners)
    yield f"{head} wins : losses |"
    yield f"{rule}---:|"
    shown = [name for name in learners if name == OURS or name in against]
    for name, line in zip(shown, lines, strict=True):
        yield line + (" |" if name == OURS else f" {against[name]['MLCA() wins']} : {against[name]['MLCA() loses']} |")


def ranks(learners: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the table of average ranks over all streams."""
    rows = rows_of("streams-proof", "Average ranks, all streams")
    measures = ("Micro F1", "Macro F1", "Exact match", "Hamming loss")
    yield _line("average rank of 18", *measures)
    yield "|---" + "|---:" * len(measures) + "|"
    for name in filter(rows.__contains__, learners):
        yield _line(learners[name], *(rows[name][measure] for measure in measures))


def speeds() -> Iterator[str]:
    """Yield the lines of the table of speeds; it has few columns, so that it fits on a phone."""
    rates = rates_of_benchmark()
    yield _line("rows per second", "`MLCA()`", "`MLCA.published()`", "for comparison")
    yield "|---" + "|---:" * 2 + "|---|"
    for data in (*BENCHED, SPARSE):
        yield _speed(f"learning {data}", rates[f"learn {data}"], *THREAD, "plain NumPy")
    for data in (*BENCHED, SPARSE):
        yield _speed(f"predicting {data}", rates[f"predict {data}"], *THREAD, "scikit-learn manhattan, 1 job")
    yield _speed(ONE_BY_ONE, rates[ONE_BY_ONE], OURS)
    for what, work in RIVER.items():
        yield _speed(f"{what} yeast by River's interface", rates[work], *RIVERS)


def symbols() -> Iterator[str]:
    """Yield the lines of the table of the paper's symbols, converted to Markdown."""
    lines = (ROOT / ESSAY).read_text(encoding="utf-8").splitlines()
    first, _, last = (number for number, line in enumerate(lines) if line.startswith("====="))
    starts = [found.start() for found in re.finditer("=+", lines[first])]
    for line in lines[first + 1 : last]:
        cells = [line[begin:end].strip() for begin, end in zip(starts, [*starts[1:], None], strict=True)]
        yield (
            "|---" * len(starts) + "|" if line.startswith("=") else _line(*(cell.replace("|", r"\|") for cell in cells))
        )


def rates_of_benchmark() -> dict[str, dict[str, int]]:
    """Return the rows per second of the benchmark by task, then by program."""
    text = (ROOT / "docs" / "benchmarks.txt").read_text(encoding="utf-8")
    rates: dict[str, dict[str, int]] = {}
    for work, who, rate in re.findall(r"^(\S.*?) {2,}(\S.*?) {2,}([\d,]+)(?= |$)", text, re.MULTILINE):
        rates.setdefault(work, {}).setdefault(who, int(rate.replace(",", "")))
    return rates


def rows_of(page: str, title: str) -> dict[str, dict[str, str]]:
    """Return a table of a page, found by its title: cells by row name and column header."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(rf"^### {re.escape(title)}\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    if table is None:
        raise ValueError(f"docs/{page}.md has no table {title!r}")
    head, _, *lines = (re.split(r" \| ", line.strip("| ")) for line in table[1].splitlines())
    return {cells[0]: dict(zip(head, cells, strict=True)) for cells in lines}


def _speed(title: str, rates: Mapping[str, int], ours: str, published: str = "", beside: str = "") -> str:
    other = f"{BESIDE[beside]} {rates[beside]:,}" if beside in rates else ""
    return _line(title, f"{rates[ours]:,}", f"{rates[published]:,}" if published else "", other)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |".replace("|  ", "| ")


FIGURES = {
    "README.md": {"docs/beyond.md": partial(means, BATCH)},
    "docs/beyond.md": {"docs/beyond.md": partial(means, BATCH)},
    "docs/streams-proof.md": {"docs/streams-proof.md": partial(ranks, ONLINE)},
    "docs/variants.md": {"docs/beyond.md": partial(comparison, HALVES)},
    "docs/benchmarks.md": {"docs/benchmarks.txt": speeds},
    "docs/inside.md": {ESSAY: symbols},
}

if __name__ == "__main__":
    main()

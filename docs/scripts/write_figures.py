"""Put figures of docs/beyond.md, docs/streams-proof.md and docs/benchmarks.txt where other pages show them.

    python docs/scripts/write_figures.py

Run it after `write_proof_pages.py` and `mlca bench`; `tests/docs/test_site.py` fails while a page says something else
than those three. The table of symbols, of the learner's essay, is written in the same way. Only what stands between the
comments around the figures is written.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
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
    "logistic regression": "logistic regression, one per label, batch",
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
    "River: logistic regression": "River, logistic regression, one per label",
    "River: nearest neighbours": "River, nearest neighbours",
    "labels of the row before": "control: the labels of the row before",
}
ESSAY = "src/mlca/learner/__init__.py"
BENCHED = ("scene (2,407 x 294)", "yeast (2,417 x 103)", "mediamill (30,993 x 120)")
SPARSE = "bibtex (4,880 x 1,836)"
ONE_BY_ONE = "test then train, one row a call, yeast"
RIVER = {"learning": "learn_one, yeast, after 500 rows", "predicting": "predict_one, yeast, after 500 rows"}
RIVERS = ("mlca.river, our rule", "mlca.river", "River, logistic a label")
THREAD = ("MLCA(), 1 thread", "mlca, 1 thread")
BESIDE = {
    "plain NumPy": "plain NumPy",
    "scikit-learn manhattan, 1 job": "scikit-learn, Manhattan",
    "River, logistic a label": "logistic regression, one per label",
}


def main() -> None:
    """Write the pages anew."""
    for page in FIGURES:
        path = ROOT / page
        path.write_text(with_figures(page, path.read_text(encoding="utf-8")), encoding="utf-8")


def with_figures(page: str, text: str) -> str:
    """Return the text of a page with the figures that the other pages have."""
    for source, lines in FIGURES[page].items():
        begin, end = f"<!-- figures of {source} -->\n", "<!-- end of figures -->\n"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(["", *lines(), "", ""]) + rest[rest.index(end) :]
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


def speed() -> Iterator[str]:
    """Yield the sentence on the speed of MLCA() beside the paper's rule."""
    rates = rates_of_benchmark()
    learning, predicting = ([rates[f"{verb} {data}"] for data in BENCHED] for verb in ("learn", "predict"))
    ours, published = THREAD
    times = [rate[published] / rate[ours] for rate in learning + predicting]
    yield (
        "Speed on one thread of a virtual machine, against 2,400 to 31,000 nodes of 103 to 294 attributes:"
        f" `MLCA()` learns {_range(rate[ours] for rate in learning)}"
        f" and predicts {_range(rate[ours] for rate in predicting)} rows a second,"
        f" the paper's rule {min(times):.1f} to {max(times):.1f} times as many;"
        f" row by row, test then train, `MLCA()` does {round(rates[ONE_BY_ONE][OURS], -2):,}."
    )


def speeds() -> Iterator[str]:
    """Yield the lines of the table of speeds, which is short enough for a phone."""
    rates = rates_of_benchmark()
    yield _line("rows a second", "`MLCA()`", "the paper's rule", "beside")
    yield "|---" + "|---:" * 2 + "|---|"
    for data in (*BENCHED, SPARSE):
        yield _speed(f"learning {data}", rates[f"learn {data}"], *THREAD, "plain NumPy")
    for data in (*BENCHED, SPARSE):
        yield _speed(f"predicting {data}", rates[f"predict {data}"], *THREAD, "scikit-learn manhattan, 1 job")
    yield _speed(ONE_BY_ONE, rates[ONE_BY_ONE], OURS)
    for what, work in RIVER.items():
        yield _speed(f"{what} yeast by River's interface", rates[work], *RIVERS)


def symbols() -> Iterator[str]:
    """Yield the lines of the table of the paper's symbols, which a narrow page can wrap."""
    lines = (ROOT / ESSAY).read_text(encoding="utf-8").splitlines()
    first, _, last = (number for number, line in enumerate(lines) if line.startswith("====="))
    starts = [found.start() for found in re.finditer("=+", lines[first])]
    for line in lines[first + 1 : last]:
        cells = [line[begin:end].strip() for begin, end in zip(starts, [*starts[1:], None], strict=True)]
        yield (
            "|---" * len(starts) + "|" if line.startswith("=") else _line(*(cell.replace("|", r"\|") for cell in cells))
        )


def rates_of_benchmark() -> dict[str, dict[str, int]]:
    """Return the rows a second of the benchmark by what was done, then by who did it."""
    text = (ROOT / "docs" / "benchmarks.txt").read_text(encoding="utf-8")
    rates: dict[str, dict[str, int]] = {}
    for work, who, rate in re.findall(r"^(\S.*?) {2,}(\S.*?) {2,}([\d,]+)(?= |$)", text, re.MULTILINE):
        rates.setdefault(work, {}).setdefault(who, int(rate.replace(",", "")))
    return rates


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


def _range(rates: Iterable[int]) -> str:
    low, *_, high = sorted(round(rate, -2) for rate in rates)
    return f"{low:,} to {high:,}"


def _speed(title: str, rates: Mapping[str, int], ours: str, published: str = "", beside: str = "") -> str:
    told = f"{BESIDE[beside]} {rates[beside]:,}" if beside in rates else ""
    return _line(title, f"{rates[ours]:,}", f"{rates[published]:,}" if published else "", told)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |".replace("|  ", "| ")


FIGURES = {
    "README.md": {
        "docs/beyond.md": partial(comparison, BATCH),
        "docs/streams-proof.md": streams,
        "docs/benchmarks.txt": speed,
    },
    "docs/choosing.md": {"docs/beyond.md": partial(comparison, HALVES)},
    "docs/benchmarks.md": {"docs/benchmarks.txt": speeds},
    "docs/inside.md": {ESSAY: symbols},
}

if __name__ == "__main__":
    main()

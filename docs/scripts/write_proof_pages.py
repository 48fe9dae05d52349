"""Write the pages on experiments beyond the paper, from stored results.

    mlca reproduce beyond --out reproduction
    mlca reproduce streams --out reproduction     # and drift, budget
    python docs/scripts/write_proof_pages.py reproduction [PAGE | PAGE/SECTION ...]

Nothing is computed here: the results in the folder's store are written to `docs/beyond.md` and `docs/streams-proof.md`,
and the figures to `docs/images`. Each section has its findings, its tables, and then how it was run; a footnote gives
the code version and the dates of the results. `beyond/large` writes one section and keeps the others, so that separate
runs can share a page. The text between the title and the first section is written by hand and kept.
"""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

from mlca.experiments.report import Report, Section, write_report
from mlca.experiments.reproduction import STORE, Machinery, facts
from mlca.experiments.scope import Scope, scope_of
from mlca.experiments.store import Store
from mlca.experiments.studies import STUDIES

DOCS = Path(__file__).parents[1]
PAGES = {
    "beyond": ("Comparison with batch learners", ("beyond",)),
    "streams-proof": ("Streams, order and change", ("streams", "drift", "budget")),
}
AGAIN = "## Run it yourself"
NOT_OF_THE_RESULTS = ("command", "tasks at a time", "threads per task", "time limit", "date")


def main(folder: Path, wanted: list[str], docs: Path = DOCS) -> None:
    """Write the requested pages and sections; by default, all pages."""
    matplotlib.use("agg")
    words = [word.partition("/") for word in wanted or PAGES]
    with Store(folder / STORE) as store:
        for page in dict.fromkeys(page for page, _, _ in words):
            keys = {key for one, _, key in words if one == page}
            write_page(docs / f"{page}.md", *PAGES[page], store, keys if "" not in keys else None)


def write_page(path: Path, title: str, names: tuple[str, ...], store: Store, keys: set[str] | None) -> None:
    """Write a page, or only its sections with the given keys, keeping the other sections."""
    scope = scope_of()
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    blocks = []
    for name in names:
        outcomes = store.get(dict.fromkeys(STUDIES[name].tasks(scope)))
        for make_section in STUDIES[name].sections:
            section = make_section(scope, outcomes)
            if keys is None or section.key in keys:
                section = replace(section, introduction=_without_datasets(section.introduction, scope))
                blocks.append(_in_markdown(section, path.parent / "images", _provenance(section, name, scope, store)))
            else:
                blocks.append(_block(before, section.title))
    commands = "\n".join(f"mlca reproduce {name} --out reproduction" for name in names)
    again = f"{AGAIN}\n\n`--quick` takes some minutes.\n\n```\n{commands}\n```\n"
    text = "\n".join([*filter(None, blocks), again])
    path.write_text(f"# {title}\n{_own_words(before) or chr(10)}{text}", encoding="utf-8")


def _in_markdown(section: Section, images: Path, provenance: str) -> str:
    """Return a section in Markdown: findings, tables, then how it was run; copy its figures."""
    with TemporaryDirectory() as made:
        write_report(Report("", (section,), ()), Path(made))
        text = (Path(made) / "report.md").read_text(encoding="utf-8")
        images.mkdir(exist_ok=True)
        for figure in (Path(made) / "figures").glob("*.svg"):
            shutil.copy(figure, images / figure.name)
    text = re.sub(r"All digits: .*\n\n", "", text).replace("](figures/", "](images/")
    head, tables = re.split(r"(?=^### )", _block(text, section.title) + "\n### ", maxsplit=1, flags=re.MULTILINE)
    title, *paragraphs = head.strip().split("\n\n")
    findings = [one.removeprefix("> **Verdict:** ") for one in paragraphs if one.startswith("> ")]
    how = "\n\n".join(one for one in paragraphs if not one.startswith("> "))
    note = f"[^{section.key}]"
    run = f"### How it was run: {section.title.lower()}\n\n{how}{note}\n\n{note}: {provenance}\n"
    return "\n\n".join(filter(None, [title, *findings, tables.removesuffix("### ").strip(), run]))


def _without_datasets(introduction: str, scope: Scope) -> str:
    """Remove instructions for fetching missing datasets, which are only for a run's report."""
    return introduction.replace(f"{scope.complaint()}\n\n" if scope.missing else "\0", "")


def _provenance(section: Section, name: str, scope: Scope, store: Store) -> str:
    """Return a sentence with the dates, code version and machine of a section's results."""
    tasks = STUDIES[name].tasks(scope)
    if len(STUDIES[name].sections) > 1:  # one section for small datasets, and one for large ones
        tasks = [task for task in tasks if (task.dataset in scope.small_datasets) == (section.key == name)]
    period = store.period(dict.fromkeys(tasks))
    if period is None:
        return "Nothing was run."
    first, last = (f"{moment:%Y-%m-%d %H:%M}" for moment in period)
    origin = ", ".join(f"{fact} {value}" for fact, value in facts(Machinery()) if fact not in NOT_OF_THE_RESULTS)
    return f"Results of {first} to {last} UTC: {origin}; one thread per task."


def _block(page: str, title: str) -> str:
    """Return the section of a page that has the given title; empty if there is none."""
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return found[0].rstrip("\n") + "\n" if found else ""


def _own_words(page: str) -> str:
    """Return the text of a page between its title and its first section."""
    found = re.search(r"\A# [^\n]*\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

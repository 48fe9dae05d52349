"""Write the pages of the experiments beyond the paper, from the results of their runs.

    mlca reproduce beyond --out reproduction
    mlca reproduce streams --out reproduction     # and drift, budget
    python docs/scripts/write_proof_pages.py reproduction [PAGE | PAGE/SECTION ...]

Nothing is computed here: what the folder's store has is put on `docs/beyond.md` and `docs/streams-proof.md`, figures
beside them, with how many folds there are, what did not finish, and of which code and day the results are. A word like
`beyond/large` writes one section and leaves the others of its page as they are, so that runs that were made apart can
stand on one page. What somebody wrote between the commands at the top of a page and its first section stays.
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
    "beyond": ("Beyond the paper: MLCA() beside batch learners", ("beyond",)),
    "streams-proof": ("Streams: order, change and bounded memory", ("streams", "drift", "budget")),
}
NOT_OF_THE_RESULTS = ("command", "tasks at a time", "threads a task", "time limit", "date")


def main(folder: Path, wanted: list[str], docs: Path = DOCS) -> None:
    """Write the pages and sections that are wanted, or all."""
    matplotlib.use("agg")
    words = [word.partition("/") for word in wanted or PAGES]
    with Store(folder / STORE) as store:
        for page in dict.fromkeys(page for page, _, _ in words):
            keys = {key for one, _, key in words if one == page}
            write_page(docs / f"{page}.md", *PAGES[page], store, keys if "" not in keys else None)


def write_page(path: Path, title: str, names: tuple[str, ...], store: Store, keys: set[str] | None) -> None:
    """Write those sections of a page whose keys are given, or all; the others stay as the page has them."""
    scope = scope_of()
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    blocks = []
    for name in names:
        outcomes = store.get(dict.fromkeys(STUDIES[name].tasks(scope)))
        for make_section in STUDIES[name].sections:
            section = make_section(scope, outcomes)
            if keys is None or section.key in keys:
                told = _of_when(section, name, scope, store)
                section = replace(section, introduction=f"{section.introduction}\n\n{told}")
                blocks.append(_in_markdown(section, path.parent / "images"))
            else:
                blocks.append(_block(before, section.title))
    commands = "\n".join(f"mlca reproduce {name} --out reproduction" for name in names)
    again = f"Again, on your own machine (`--quick` takes some minutes):\n\n```\n{commands}\n```\n"
    text = "\n".join(filter(None, blocks))
    path.write_text(f"# {title}\n\n{again}{_own_words(before) or chr(10)}{text}", encoding="utf-8")


def _in_markdown(section: Section, images: Path) -> str:
    """Return a section as the page has it; links to the tables' CSV files, which stay with the run, are left out."""
    with TemporaryDirectory() as made:
        write_report(Report("", (section,), ()), Path(made))
        text = (Path(made) / "report.md").read_text(encoding="utf-8")
        images.mkdir(exist_ok=True)
        for figure in (Path(made) / "figures").glob("*.svg"):
            shutil.copy(figure, images / figure.name)
    text = re.sub(r"All digits: .*\n\n", "", text).replace("](figures/", "](images/")
    # What came out, which begins with what is worse, stands above how it was done.
    text = re.sub(r"(\n## [^\n]*\n)((?:(?!\n## )[\s\S])*?)\n> \*\*Verdict:\*\* ([^\n]*)\n", r"\1\n\3\n\2", text)
    return _block(text, section.title)


def _of_when(section: Section, name: str, scope: Scope, store: Store) -> str:
    """Say of which code, machine and days the results of a section are."""
    tasks = STUDIES[name].tasks(scope)
    if len(STUDIES[name].sections) > 1:  # its sections share the tasks by the size of their datasets
        tasks = [task for task in tasks if (task.dataset in scope.small_datasets) == (section.key == name)]
    period = store.period(dict.fromkeys(tasks))
    if period is None:
        return "Nothing was run."
    first, last = (f"{moment:%Y-%m-%d %H:%M}" for moment in period)
    told = ", ".join(f"{fact} {value}" for fact, value in facts(Machinery()) if fact not in NOT_OF_THE_RESULTS)
    return f"Results of {first} to {last} UTC: {told}; one thread a task."


def _block(page: str, title: str) -> str:
    """Return a section of a page, from its heading to the next one; empty if the page has none of this title."""
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return found[0].rstrip("\n") + "\n" if found else ""


def _own_words(page: str) -> str:
    """Return what a page says between the commands at its top and its first section."""
    found = re.search(r"^```\n.*?^```\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

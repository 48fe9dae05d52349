"""Write the pages of the experiments beyond the paper, from the results of their runs.

    mlca reproduce beyond --out reproduction
    mlca reproduce streams --out reproduction     # and drift, budget
    python docs/scripts/write_proof_pages.py reproduction [PAGE ...]

Nothing is computed here: what the folder's store has is put on `docs/beyond.md` and `docs/streams-proof.md`, or on the
one that is named, figures beside them, with how many folds there are and what did not finish. What somebody wrote
between the commands at the top of a page and its first section stays.
"""

import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

from mlca.experiments.report import Report, write_report
from mlca.experiments.reproduction import STORE, Machinery, facts
from mlca.experiments.scope import scope_of
from mlca.experiments.store import Store
from mlca.experiments.studies import STUDIES

DOCS = Path(__file__).parents[1]
PAGES = {
    "beyond": ("Beyond the paper: MLCA() beside batch learners", ("beyond",)),
    "streams-proof": ("Streams: order, change and bounded memory", ("streams", "drift", "budget")),
}


def main(folder: Path, wanted: list[str]) -> None:
    """Write the pages that are wanted, or all."""
    matplotlib.use("agg")
    scope = scope_of()
    with Store(folder / STORE) as store:
        for page in wanted or PAGES:
            title, names = PAGES[page]
            sections = []
            for name in names:
                outcomes = store.get(dict.fromkeys(STUDIES[name].tasks(scope)))
                sections.append(STUDIES[name].section(scope, outcomes))
            told = [fact for fact in facts(Machinery()) if fact[0] not in ("command", "tasks at a time", "time limit")]
            write_page(page, Report(title, tuple(sections), tuple(told)), names)


def write_page(page: str, report: Report, names: tuple[str, ...]) -> None:
    """Write a page and its figures; links to the tables' CSV files, which stay with the run, are left out."""
    with TemporaryDirectory() as made:
        write_report(report, Path(made))
        text = (Path(made) / "report.md").read_text(encoding="utf-8")
        for figure in (Path(made) / "figures").glob("*.svg"):
            shutil.copy(figure, DOCS / "images" / figure.name)
    text = re.sub(r"All digits: .*\n\n", "", text).replace("](figures/", "](images/")
    # What came out, which begins with what is worse, stands above how it was done.
    text = re.sub(r"(\n## [^\n]*\n)((?:(?!\n## )[\s\S])*?)\n> \*\*Verdict:\*\* ([^\n]*)\n", r"\1\n\3\n\2", text)
    commands = "\n".join(f"mlca reproduce {name} --out reproduction" for name in names)
    head, rest = text.split("\n", 1)
    again = f"Again, on your own machine (`--quick` takes a minute or two):\n\n```\n{commands}\n```\n"
    path = DOCS / f"{page}.md"
    path.write_text(f"{head}\n\n{again}{_own_words(path)}{rest}", encoding="utf-8")


def _own_words(path: Path) -> str:
    """Return what a page says between the commands at its top and its first section."""
    found = re.search(r"^```\n.*?^```\n(.*?)\n## ", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

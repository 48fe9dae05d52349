"""Parse Markdown pages into their fenced blocks, in order."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<fence>```+)[ ]?(?P<kind>\w*)[^\n`]*\n(?P<text>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)
# Commands that need minutes, the network, or a running service.
NOT_HERE = ("mlca bench", "mlca reproduce", "mlca datasets", "mlca serve", "mlca send")


@dataclass
class Block:
    """A fenced block: its language, its text and the line of the file that its text begins on."""

    kind: str
    text: str
    line: int

    def commands(self) -> list[tuple[str, list[str]]]:
        """Return the mlca commands of a console block, each with its expected output, if shown.

        Lines without $ are also commands if they begin with mlca.
        """
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            command = line.removeprefix("$ ").strip()
            if command.startswith("mlca ") or line.startswith("$ "):
                found.append((command, []))
            elif found:
                found[-1][1].append(line)
        return [(said, shown) for said, shown in found if said.startswith("mlca ") and not said.startswith(NOT_HERE)]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def api_reference() -> str:
    """Return the text of all API pages."""
    return "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))


def blocks_of(text: str) -> list[Block]:
    return [
        Block(found["kind"], found["text"], text.count("\n", 0, found.start("text")) + 1)
        for found in FENCE.finditer(text)
    ]


def page_id(page: Path) -> str:
    """Return the path of a page in the repository, which names its tests."""
    return page.relative_to(ROOT).as_posix()

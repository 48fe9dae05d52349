"""Draw the figures of documentation pages into docs/images, with the code on the pages.

The pages are gallery.md, comparing.md and streams.md; an example draws the figure in README.md. Run from the root of
the repository:

    python -m docs.scripts.draw_gallery
"""

import runpy
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("agg")
from PIL import Image

from tests.docs.pages import ROOT, blocks_of

IMAGES = ROOT / "docs" / "images"


def draw_page(page: str) -> None:
    """Run the Python blocks of a page and store its figures."""
    blocks = blocks_of((ROOT / "docs" / page).read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, chdir(folder):
        exec("\n".join(block.text for block in blocks if block.kind == "python"), {"__name__": page})
        keep(Path(folder))


def draw_example(name: str) -> None:
    """Run an example and store its figures."""
    with TemporaryDirectory() as folder, chdir(folder):
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        keep(Path(folder) / "demo")


def keep(folder: Path) -> None:
    """Copy the figures in a folder to docs/images; reduce the colours of PNG files."""
    for picture in folder.glob("*.png"):  # few colours keep the file small
        few = Image.open(picture).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(IMAGES / picture.name, optimize=True)
    for picture in folder.glob("*.svg"):
        (IMAGES / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    for page in ("gallery.md", "comparing.md", "streams.md"):
        draw_page(page)
    draw_example("tickets_stream.py")

"""Run the code of gallery.md, comparing.md and streams.md in docs, and put the pictures that it draws into docs/images.

Run from the root of the repository: python -m docs.scripts.draw_gallery
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("agg")
from PIL import Image

from tests.docs.pages import ROOT, blocks_of

IMAGES = ROOT / "docs" / "images"


def draw(page: str) -> None:
    """Run the Python blocks of a page in a folder of their own, and keep its pictures."""
    blocks = blocks_of((ROOT / "docs" / page).read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        exec("\n".join(block.text for block in blocks if block.kind == "python"), {"__name__": page})
        for picture in Path(folder).glob("*.png"):  # in few colours, so that it stays small
            few = Image.open(picture).convert("RGB").quantize(128, dither=Image.Dither.NONE)
            few.save(IMAGES / picture.name, optimize=True)
        for picture in Path(folder).glob("*.svg"):
            (IMAGES / picture.name).write_bytes(picture.read_bytes())
        os.chdir(ROOT)


if __name__ == "__main__":
    for page in ("gallery.md", "comparing.md", "streams.md"):
        draw(page)

"""The site builds without a warning, and its parts agree with the package."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from docs.scripts import write_figures
from tests.docs.pages import ROOT, page_id, pages

FETCHED = re.compile(r'<(?:script|img|iframe)[^>]*src="https?://|<link rel="stylesheet" href="http')


def test_site_builds_strictly(tmp_path):
    if not (find_spec("mkdocs") and find_spec("material") and find_spec("mkdocstrings")):
        pytest.skip('needs mkdocs-material and mkdocstrings: pip install "mlca[docs]"')
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Pages load nothing from other sites.
    for page in tmp_path.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert not FETCHED.search(html), page.name


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_files_that_a_page_names_exist(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:examples|benchmarks|docs|tests|src)/[\w./-]+\.\w+|[A-Z]+\.(?:md|cff))`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


def test_pictures_are_those_that_pages_show():
    text = "".join(page.read_text(encoding="utf-8") for page in pages())
    assert set(re.findall(r"images/([\w.-]+)", text)) == {picture.name for picture in (ROOT / "docs/images").iterdir()}


@pytest.mark.parametrize("page", write_figures.FIGURES)
def test_pages_have_the_figures_of_the_experiments(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == write_figures.with_figures(page, text), f"{page} has old figures: run docs/scripts/write_figures.py"


def test_titles_of_navigation_and_pages_agree():
    lines = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    titles = dict(reversed(re.split(r": (?=\S+\.md$)", line.strip(" -"))) for line in lines if line.endswith(".md"))
    assert len(titles) > 40
    for path, title in titles.items():
        heading = re.search(r"^# (.+)$", (ROOT / "docs" / path).read_text(encoding="utf-8"), re.MULTILINE)
        assert heading and heading[1] == title.strip('"'), path

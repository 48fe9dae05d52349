"""The HTML report in a real Chromium: wide, on a phone, in dark mode, and in print."""

import io
import re
import socket
from itertools import pairwise

import matplotlib.pyplot as plt
import pytest

from mlca.experiments.report import Figure, Report, Section, Table, write_report
from tests.browser import CONTRASTS
from tests.experiments.report.sample_report import realistic_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the path of a realistic report with four figures."""
    html, *_ = write_report(realistic_report(), tmp_path_factory.mktemp("report"))
    plt.close("all")
    return html


def write_section(folder, tables=(), figures=()):
    section = Section("section", "Section", "Introduction.", "Verdict.", tuple(tables), tuple(figures))
    return write_report(Report("Report", (section,), ()), folder)[0]


def column(page, number):
    return page.locator(f"tbody tr > :nth-child({number})").all_text_contents()


def test_report_has_no_errors_and_loads_nothing(open_page, report):
    page = open_page(report)
    page.wait_for_load_state("networkidle")
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith("data:")] == [report.as_uri()]


def test_every_figure_is_visible(open_page, report):
    page = open_page(report)
    pictures = page.locator(".picture svg")
    assert pictures.count() == 4
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 100
        pixels = plt.imread(io.BytesIO(picture.screenshot()))[..., :3]
        assert (pixels.min(axis=2) < 0.5).mean() > 0.005, "a picture without ink"


def test_ids_are_unique_and_links_find_them(open_page, report):
    page = open_page(report)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(set(ids)) == len(ids) > 100
    links = page.evaluate(
        "[...document.querySelectorAll('a, use')].map((e) => e.getAttribute('href') ?? e.getAttribute('xlink:href'))"
    )
    clips = page.evaluate("[...document.querySelectorAll('[clip-path]')].map((e) => e.getAttribute('clip-path'))")
    targets = {link.removeprefix("#") for link in links} | {clip[5:-1] for clip in clips}
    assert targets <= set(ids)
    assert {"continual", "comparison", "grid", "timing"} < targets
    page.get_by_role("navigation").get_by_text("Exact match over the vigilance V").click()
    assert page.url.endswith("#grid")


def test_pictures_that_share_ids_keep_their_own(open_page, tmp_path):
    pictures = [
        f'<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x"><svg width="40" height="40">'
        f'<defs><rect id="a" width="40" height="40" fill="{colour}"/></defs><use href="#a" data-note=\'id="a"\'/></svg>'
        for colour in ("#ff0000", "#0000ff")
    ]
    page = open_page(write_section(tmp_path, figures=[Figure("Square", svg) for svg in pictures]))
    shots = [plt.imread(io.BytesIO(svg.screenshot())) for svg in page.locator("svg").all()]
    assert [shot[20, 20, :3].round().tolist() for shot in shots] == [[1, 0, 0], [0, 0, 1]]
    assert "DOCTYPE" not in page.locator("main").inner_text()


def test_picture_cannot_load_or_run_anything(open_page, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.setblocking(False)
        svg = (
            '<svg width="40" height="40" onload="window.ran = 1"><script>window.ran = 2</script>'
            f'<image href="http://127.0.0.1:{outside.getsockname()[1]}/x.png" width="9" height="9"/></svg>'
        )
        page = open_page(write_section(tmp_path, figures=[Figure("Bad", svg)]))
        assert page.evaluate("window.ran") is None
        with pytest.raises(BlockingIOError):  # no request was made
            outside.accept()


def test_numbers_sort_as_numbers_and_missing_ones_last(open_page, tmp_path):
    values = (9.5, None, 10.25, -3.0, "not run", float("inf"), 100.0, float("-inf"), 9.5, float("inf"))
    table = Table("T", ("row", "value"), tuple((f"row {i}", value) for i, value in enumerate(values)))
    page = open_page(write_section(tmp_path, [table]))
    head = page.locator("thead th").nth(1)
    names = {"ascending": "7308265914", "descending": "5962083714", "none": "0123456789"}
    assert head.get_attribute("aria-sort") == "none"
    for order in ("ascending", "descending", "none", "ascending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        assert "".join(name[-1] for name in column(page, 1)) == names[order]
    assert column(page, 2) == ["−∞", "−3.0", "9.5", "9.5", "10.2", "100.0", "∞", "∞", "N/A", "not run"]


def test_names_sort_by_keyboard_in_natural_order(open_page, tmp_path):
    rows = (("fold 10", 1), ("Fold 9", 2), ("", 3), ("élan", 4), (7, 5), ("(fold 2)", 6))
    page = open_page(write_section(tmp_path, [Table("T", ("name", "n"), rows)]))
    page.locator("nav a").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert column(page, 1) == ["7", "(fold 2)", "élan", "Fold 9", "fold 10", ""]
    page.keyboard.press("Space")
    assert column(page, 1) == ["fold 10", "Fold 9", "élan", "(fold 2)", "7", ""]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert column(page, 2) == ["1", "2", "3", "4", "5", "6"]
    assert page.locator("thead th").evaluate_all("(heads) => heads.map((head) => head.ariaSort)") == [
        "none",
        "ascending",
    ]


def test_rows_and_columns_are_named_for_screen_readers(open_page, report):
    page = open_page(report)
    table = page.get_by_role("table", name="Friedman test over V")
    assert table.get_by_role("rowheader").all_text_contents() == ["MLCA", "MLCA-I", "MLCA-C"]
    assert table.get_by_role("columnheader").all_text_contents() == ["variant", "statistic", "p"]
    assert page.get_by_role("img", name="Average ranks over all datasets").count() == 1


def test_sorting_moves_only_rows(open_page, report):
    page = open_page(report)
    table = page.locator("#comparison table").first
    places = "(heads) => heads.map((head) => [head.offsetLeft, head.offsetTop, head.offsetWidth, head.offsetHeight])"
    before = table.locator("thead *").evaluate_all(places)
    table.get_by_role("button").nth(3).click()
    assert table.locator("thead *").evaluate_all(places) == before
    values = [float(text) for text in table.locator("tbody td:nth-child(4)").all_text_contents()]
    assert all(a <= b for a, b in pairwise(values))
    others = page.locator("table").nth(3).locator("[aria-sort=none]")
    assert others.count() == page.locator("table").nth(3).locator("thead th").count()


def test_numbers_are_right_aligned(open_page, report):
    page = open_page(report)
    cells = page.locator("#comparison tbody td")
    assert set(cells.evaluate_all("(cells) => cells.map((cell) => getComputedStyle(cell).textAlign)")) == {"right"}
    style = cells.first.evaluate("(cell) => getComputedStyle(cell).fontVariantNumeric")
    assert "tabular-nums" in style


def test_page_never_scrolls_sideways(open_page, report):
    page = open_page(report)
    for width in (360, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("window.scrollTo(1000, 0)")
        assert page.evaluate("window.scrollX") == 0


def test_long_words_widen_neither_page_nor_first_column(open_page, tmp_path):
    word = "supercalifragilistic" * 12
    table = Table(word, (word, "number", word), ((word, 1, word),), word)
    section = Section(word, word, word, word, (table,), ())
    page = open_page(write_report(Report(word, (section,), ((word, word),)), tmp_path)[0], 360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("tbody th").bounding_box()["width"] < 180
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator("tbody th").bounding_box()["width"] < 400


def test_wide_tables_scroll_in_their_box_and_keep_the_first_column(open_page, report):
    page = open_page(report, 360)
    box = page.locator("#comparison .box").first
    assert box.evaluate("(box) => box.scrollWidth > 2 * box.clientWidth")
    name, number = box.locator("tbody th").first, box.locator("tbody td").first
    before = name.bounding_box()["x"], number.bounding_box()["x"]
    box.evaluate("(box) => { box.scrollLeft = 150; }")
    assert name.bounding_box()["x"] == before[0]
    assert number.bounding_box()["x"] == before[1] - 150


def test_paper_measured_and_difference_fit_on_a_phone(open_page, report):
    box = open_page(report, 390).locator("#comparison .box").nth(1)
    assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")


def test_pictures_are_readable_on_a_phone(open_page, report):
    """Pictures are shrunk to two thirds at most; wider ones scroll in their box."""
    wide = [svg.bounding_box()["width"] for svg in open_page(report, 2400).locator(".picture svg").all()]
    phone = [svg.bounding_box()["width"] for svg in open_page(report, 360).locator(".picture svg").all()]
    assert all(0.6 < b / a <= 1 for a, b in zip(wide, phone, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_sufficient(open_page, report, scheme):
    page = open_page(report, color_scheme=scheme)
    page.locator("th button").first.click()
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 200
    assert min(contrasts)[0] > 4.5, min(contrasts)
    is_dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert is_dark == (scheme == "dark")
    cards = page.locator(".picture").evaluate_all("(boxes) => boxes.map((b) => getComputedStyle(b).backgroundColor)")
    assert set(cards) == {"rgb(255, 255, 255)"}


def test_printed_page_is_white_and_complete(open_page, report):
    page = open_page(report, 680, color_scheme="dark")  # A4 between margins of 15 mm
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert min(page.evaluate(CONTRASTS))[0] > 4.5
    too_wide = "(boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth).length"
    assert page.locator("figure:not(.wide) .box").evaluate_all(too_wide) == 0
    assert set(page.locator(".box").evaluate_all("(boxes) => boxes.map((b) => getComputedStyle(b).overflowX)")) == {
        "visible"
    }


def test_widest_table_is_printed_on_a_landscape_page(open_page, tmp_path):
    heads = ("dataset", *(f"MLCA-C V=0.{i}" for i in range(15)))
    row = ("mediamill", *(0.123 for _ in range(15)))
    page = open_page(write_section(tmp_path, [Table("Wide", heads, (row,)), Table("Narrow", heads[:4], (row[:4],))]))
    pdf = page.pdf(prefer_css_page_size=True, format="A4")
    sizes = [tuple(map(float, box)) for box in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)]
    assert [width > height for width, height in sizes] == [False, True, False]
    page.set_viewport_size({"width": 1009, "height": 680})
    page.emulate_media(media="print")
    assert page.locator(".wide table").bounding_box()["width"] <= 1009


def test_any_name_is_shown_literally_in_the_browser(open_page, tmp_path):
    names = [
        '</script><b>"&amp;',
        "<!-- --> <![CDATA[x]]>",
        "a\r\nb\tc",
        "日本語 العربية ‮x",
        "&lt;&#60;",
        "'$title ${x}",
    ]
    rows = tuple((name, 1) for name in names)
    page = open_page(write_section(tmp_path, [Table("<T>", ("n<a>me", "one"), rows)]))
    assert column(page, 1) == names
    assert page.locator("figcaption").text_content() == "<T>"
    assert page.locator("thead th").first.text_content() == "n<a>me"
    assert page.errors == []

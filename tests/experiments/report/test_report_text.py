"""Markdown, CSV and the text of the HTML have the content of the report."""

import csv
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mlca.experiments.report import Figure, Report, Section, Table, write_report
from mlca.experiments.report.html import html_page
from mlca.experiments.report.markdown import markdown_page
from mlca.experiments.report.rounding import columns_of
from mlca.experiments.report.sections import name_sections

SVG = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><path id="a" d="M0 0"/></svg>\n'
SMALL = Report(
    "The paper, again",
    (
        Section(
            "continual",
            "Three discs",
            "First *this*.\n\n1. then that | and <more>",
            " Agrees:\nMLCA & MCIC.\n",
            (
                Table(
                    "Exact match, V = 0.01",
                    ("algorithm", "paper", "measured", "difference", "remark"),
                    (
                        ("MLCA", 0.972, 0.9713333333333334, -0.0006666666666666, 'a "b" c'),
                        ("MLCA-I|C", 0.95, None, None, "not run"),
                        ("MCIC_<raw>", 0.9, 0.9049, 0.0049, "a, b"),
                    ),
                    "Higher is better.",
                ),
            ),
            (Figure("Nodes [after 3]", SVG),),
        ),
    ),
    (("mlca", "0.1.0"), ("machine", "2 cores"), ("date", "today"), ("command", "mlca reproduce x")),
)
MARKDOWN = r"""# The paper, again

mlca 0.1.0; today; mlca reproduce x

## Three discs

First \*this\*.

1\. then that \| and \<more\>

> **Verdict:** Agrees: MLCA \& MCIC.

### Exact match, V = 0.01

| algorithm | paper | measured | difference | remark |
| --- | ---: | ---: | ---: | --- |
| MLCA | 0.972 | 0.971 | −0.001 | a "b" c |
| MLCA-I\|C | 0.950 | N/A | N/A | not run |
| MCIC\_\<raw\> | 0.900 | 0.905 | +0.005 | a, b |

Higher is better.

All digits: [continual-exact-match-v-0-01.csv](tables/continual-exact-match-v-0-01.csv)

### Nodes \[after 3\]

![Nodes \[after 3\]](figures/continual-nodes-after-3.svg)

## How this report was made

|  |  |
| --- | --- |
| mlca | 0.1.0 |
| machine | 2 cores |
| date | today |
| command | mlca reproduce x |
"""
CSV = """algorithm,paper,measured,difference,remark
MLCA,0.972,0.9713333333333334,-0.0006666666666666,"a ""b"" c"
MLCA-I|C,0.95,N/A,N/A,not run
MCIC_<raw>,0.9,0.9049,0.0049,"a, b"
"""


def test_small_report_is_written_word_for_word(tmp_path):
    folder = tmp_path / "new" / "results"
    paths = write_report(SMALL, folder)
    assert [path.relative_to(folder).as_posix() for path in paths] == [
        "report.html",
        "report.md",
        "tables/continual-exact-match-v-0-01.csv",
        "figures/continual-nodes-after-3.svg",
    ]
    assert paths[1].read_text("utf-8") == MARKDOWN
    assert paths[2].read_text("utf-8") == CSV
    assert paths[3].read_text("utf-8") == SVG


def test_report_is_replaced_as_a_whole(tmp_path):
    paths = write_report(SMALL, tmp_path)
    paths[0].write_text("old")
    assert write_report(SMALL, tmp_path) == paths
    assert "old" not in paths[0].read_text("utf-8")[:10]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)


def test_failed_report_leaves_the_old_one(tmp_path):
    html, *_ = write_report(SMALL, tmp_path)
    before = html.read_text("utf-8")
    bad = Figure("no picture", "nothing")
    with pytest.raises(ValueError, match="no <svg>"):
        write_report(Report("new", (Section("a", "", "", "", (), (bad,)),), ()), tmp_path)
    with pytest.raises(UnicodeEncodeError):
        write_report(Report("half a surrogate \ud800", (), ()), tmp_path)
    assert html.read_text("utf-8") == before
    assert not list(tmp_path.rglob("*.part"))


def test_the_report_itself_is_written_last(tmp_path):
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(OSError):
        write_report(SMALL, tmp_path)
    assert not list(tmp_path.glob("report.*"))


def test_csv_keeps_every_digit_of_numpy_numbers(tmp_path):
    table = Table("T", ("a", "b", "c"), ((np.float64(0.1) + 0.2, np.float64("nan"), np.int64(7)), (1e-9, None, "")))
    *_, path = write_report(Report("", (Section("s", "", "", "", (table,), ()),), ()), tmp_path)
    assert list(csv.reader(path.open(encoding="utf-8"))) == [
        ["a", "b", "c"],
        ["0.30000000000000004", "N/A", "7"],
        ["1e-09", "N/A", ""],
    ]


def test_a_row_has_a_cell_for_each_column():
    with pytest.raises(ValueError, match="'Nodes' has 2 columns, but a row of 1 cells"):
        Table("Nodes", ("dataset", "nodes"), (("flags", 1), ("birds",)))


@pytest.mark.parametrize(
    ("head", "values", "shown"),
    [
        ("paper", (0.972, 0.9, 1.0), "0.972 0.900 1.000"),
        ("V", (0.01, 0.05, 0.3), "0.01 0.05 0.30"),
        ("nodes", (868.7, 1183.5, 15.0), "868.7 1183.5 15.0"),
        ("average rank", (1.23456, 13.5), "1.23 13.50"),
        ("ten", (10.0, 1.2345), "10.00 1.23"),
        ("a hundred", (100.0, 12.345), "100.0 12.3"),
        ("instances", (194, 43907, 1_000_000), "194 43,907 1,000,000"),
        ("seeds", (20.0, 5.0), "20 5"),
        ("scales apart", (0.5, 60.25, 12.125), "0.500 60.25 12.12"),
        ("mixed scales", (0.98765, 868.71, 12_345.6), "0.988 868.7 12,346"),
        ("p", (2.1e-9, 0.0213, 0.00042, 0.0), "2.1e−9 0.021 0.00042 0.000"),
        ("Difference of nodes", (-3.25, 4.0, 0.0), "−3.25 +4.00 0.00"),
        ("difference", (0.0004, -0.0004, -0.25, 1e-17, 0.0015), "0.000 0.000 −0.250 0.000 +0.002"),
        ("seconds", (float("inf"), float("-inf"), -0.0, 2.0), "∞ −∞ 0 2"),
        ("seconds", (float("nan"), None, "not run", 2.5), "N/A N/A not run 2.5"),
        ("big", (1e22, -10_000.0), "10,000,000,000,000,000,000,000 −10,000"),
    ],
)
def test_numbers_are_rounded_to_the_precision_of_their_column(head, values, shown):
    [column] = columns_of(Table("", (head,), tuple((value,) for value in values)))
    assert " ".join(cell.text for cell in column.cells) == shown
    assert column.is_numeric


@pytest.mark.parametrize("values", [("a", 1.0), ("N/A", None), ()])
def test_column_of_names_or_without_values_is_not_numeric(values):
    [column] = columns_of(Table("", ("c",), tuple((value,) for value in values)))
    assert not column.is_numeric


def test_file_names_of_sections_and_tables_are_safe_and_unique():
    tables = tuple(Table(title, (), ()) for title in ("../../etc/passwd", "Größe", "表", "表", "x" * 300, "x" * 300))
    sections = tuple(Section(key, "", "", "", tables, ()) for key in ("a", "A", "facts", "a-grosse", ""))
    named = name_sections(Report("", sections, ()))
    names = [part.name for part in named] + [name for part in named for name, _ in part.tables]
    assert names[:11] == [
        *("a", "a-2", "facts-2", "a-grosse", "part"),
        *("a-etc-passwd", "a-grosse-2", "a-3", "a-4", f"a-{'x' * 78}", f"a-{'x' * 78}-2"),
    ]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isascii() and name.replace("-", "").isalnum() for name in names)


class Elements(HTMLParser):
    """The text of each element that contains no other elements than links."""

    def __init__(self, page):
        super().__init__()
        self.texts = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.texts.append((tag, ""))

    def handle_data(self, data):
        if self.texts:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def handle_endtag(self, tag):
        self.texts.append(("", ""))

    def of(self, tag):
        return [text for name, text in self.texts if name == tag]


def report_of(text):
    """Return a report that contains a text in all places."""
    table = Table(text, (text, "number"), ((text, 1),), text)
    return Report(text, (Section(text, text, text, text, (table,), (Figure(text, SVG, text),)),), ((text, text),))


@given((st.text("<>&\"'\r-!/=scriptsvg;#x", min_size=1) | st.text(min_size=1)).filter(str.strip))
def test_any_text_survives_html(text):
    report = report_of(text)
    page = Elements(html_page(report, name_sections(report)))
    assert page.of("h1") == page.of("title") == page.of("dt") == page.of("dd") == [text]
    assert page.of("h2") == [text, "How this report was made"]
    assert page.of("a") == [text]
    assert page.of("figcaption") == [text, text]
    assert page.of("th") == [text, "number", text]
    assert page.of("td") == ["1"]
    # Contents, verdict, note of the table, note of the figure; the introduction may be several paragraphs.
    assert page.of("p").count(text) >= 4
    assert len(page.of("script")) == len(page.of("svg")) == 1


markdown_soup = st.text("\\`*_[](){}#+-.!|~<>&$=:;19x \n")


@given((markdown_soup | st.text()).map(lambda text: " ".join(text.replace("\0", "").split())).filter(bool))
@example("C #")
@example("- x")
@example("+ x")
@example("12) x")
def test_any_text_survives_markdown(text):
    report = report_of(text)
    named = name_sections(report)
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown_page(report, named))
    [(table, _)], [(figure, _)] = named[0].tables, named[0].figures
    assert ["".join(map(_shown, token.children)) for token in tokens if token.type == "inline"] == [
        *(text, text, text, f"Verdict: {text}"),
        *(text, text, "number", text, "1", text, f"All digits: {table}.csv"),
        *(text, f"<figures/{figure}.svg>", text),
        *("How this report was made", "", "", text, text),
    ]


def _shown(token):
    return f"<{token.attrs['src']}>" if token.type == "image" else token.content

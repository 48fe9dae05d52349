"""Names from files are escaped for terminals and spreadsheets."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlca import MLCA
from mlca.cli import COMMANDS
from mlca.cli.predictions import Prediction, as_cell, writing
from mlca.messages import shown

EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp\x9b31m\r\nlast"


def is_raw(text):
    """Return whether a text contains control characters or writing-direction overrides, apart from line ends."""
    return any(c != "\n" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp", "Cf") for c in text)


@given(st.text(st.characters(exclude_characters="\u200c\u200d")))
def test_control_characters_are_never_printed(text):
    assert not is_raw(shown(text)) and "\n" not in shown(text)
    assert shown(shown(text)) == shown(text)
    if text.isprintable():
        assert shown(text) == text


def test_text_in_any_script_is_printed_unchanged():
    for text in ("naïve", "日本　語", "می‌خواهم", "👩‍🚀", "a b"):
        assert shown(text) == text


@pytest.fixture
def evil(tmp_path, call):
    """Return a file with control characters in columns, categories and labels, and a model trained on it."""
    rows = [{f"n{EVIL}": i % 7, f"c{EVIL}": f"v{i % 2}{EVIL}", "tags": [f"t{i % 3}{EVIL}"]} for i in range(60)]
    path = tmp_path / f"evil{EVIL.replace('/', '')}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    code, out, err = call("train", path, "--labels", "tags", "--out", tmp_path / "m.mlca")
    assert code == 0, err
    assert "\\x1b[2J" in out and not is_raw(out + err)
    rows[5] = {f"n{EVIL}": f"word{EVIL}", f"c{EVIL}": f"new{EVIL}", "tags": [f"unknown{EVIL}"], f"more{EVIL}": 1}
    rows[6] |= {f"c{EVIL}": f"new{EVIL}", "tags": [f"unknown{EVIL}"]}
    path.write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "m.mlca", path


def test_no_command_prints_a_name_unescaped(evil, call):
    model, path = evil
    skip = ["--on-error", "skip"]
    for words in (
        ["update", model, path],
        ["update", model, path, *skip],
        ["inspect", model],
        ["evaluate", model, path, *skip],
        ["evaluate", model, path, *skip, "--prequential"],
        ["explain", model, path, "--row", "3"],
        ["predict", model, path, *skip, "--out", path.with_name("p.csv")],
        ["predict", model, path.with_name(f"missing{EVIL[-8:]}")],
        ["inspect", path],
    ):
        _, out, err = call(*words)
        assert out + err and not is_raw(out + err), words


def test_explanations_print_no_name_unescaped():
    model = MLCA().fit([[0.0], [1.0], [2.0]], [{EVIL}, {EVIL, "b"}, set()])
    assert "\\x1b[2J" in str(model.explain([1.0])) and not is_raw(str(model.explain([1.0])))


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX's")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_predictions_are_escaped_on_terminals_only(evil, form, call):
    model, path = evil
    words = ["predict", str(model), str(path), "--on-error", "skip", "--top", "1", *form]
    command = [sys.executable, "-m", "mlca", *words]
    ours, theirs = os.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    screen = b""
    while True:
        try:
            screen += os.read(ours, 4096)
        except OSError:  # the other side has closed the terminal
            break
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = screen.decode().replace("\r\n", "\n")
    assert re.search(r"\\(x1b|u001b)\[2J", text) and not is_raw(text)
    code, piped, _ = call(*words)
    assert code == 0
    rows = map(json.loads, piped.splitlines()) if form else csv.DictReader(io.StringIO(piped, newline=""))
    labels = next(iter(rows))["labels"]
    assert (labels[0] if form else labels).endswith(EVIL)


def test_formula_cells_get_an_apostrophe(tmp_path):
    names = ["=1+1", "+cmd", "-2+3", "@sum", "\tx", "＝1", "-1.5", "+1e3", "plain", "a=b"]
    with writing(str(tmp_path / "p.csv"), "|", as_json=False) as writer:
        writer.write([Prediction(1, [name], [0.5]) for name in names])
        writer.write([Prediction(2, ["a", "=b"], [0.5, 0.25]), Prediction(3, ["-1", "-2"], [0.5, 0.25])])
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        found = [row["labels"] for row in csv.DictReader(file)]
    assert found[:6] == [f"'{name}" for name in names[:6]]
    assert found[6:] == [*names[6:], "a|=b", "'-1|-2"]


@given(st.text(st.sampled_from("=+-@\t\r\n＝1.5eE a'")))
def test_csv_cells_are_numbers_or_harmless(text):
    cell = as_cell(text)
    assert cell in (text, f"'{text}")
    if cell[:1] in set("=+-@\t\r\n＝"):
        float(cell)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal_of_80_columns(command, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call(command, "--help")
    assert (code, [line for line in out.splitlines() if len(line) > 80]) == (0, [])

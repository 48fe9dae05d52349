"""`mlca datasets`, run as a user runs it."""

import json
import subprocess
import sys

import pytest

from mlca.cli import main

FLAGS = "@relation flags\n" + "".join(f"@attribute x{n} {{a,b}}\n" for n in range(19))
FLAGS += "".join(f"@attribute y{n} {{0,1}}\n" for n in range(7)) + "@data\n"
FLAGS += "".join("a," * 19 + ("1,1" if row % 2 else "0,1") + ",0" * 5 + "\n" for row in range(194))
XML = "<labels>" + "".join(f'<label name="y{n}"/>' for n in range(7)) + "</labels>"


@pytest.fixture
def flags(tmp_path, monkeypatch):
    """Set up a data folder with the dataset flags, and an empty cache."""
    folder = tmp_path / "data" / "flags"
    folder.mkdir(parents=True)
    (folder / "flags.arff").write_text(FLAGS)
    (folder / "flags.xml").write_text(XML)
    monkeypatch.setenv("MLCA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MLCA_CACHE", str(tmp_path / "cache"))
    return folder


def test_list_computes_statistics_and_marks_missing_datasets(flags, capsys):
    assert main(["datasets", "list"]) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[1:]}
    assert lines["flags"] == ["194", "0", "19", "7", "1.500", "0.2143", "2"]
    assert lines["eurlex4k"] == ["not", "downloaded"]
    assert len(lines) == 18


def test_list_json_has_statistics_and_folders(flags, capsys):
    assert main(["datasets", "list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["flags"]["cardinality"] == 1.5
    assert entries["flags"]["folder"] == str(flags)
    assert entries["eurlex4k"]["folder"] is None
    assert "instances" not in entries["eurlex4k"]


def test_info_shows_sizes_and_source(flags, capsys):
    assert main(["datasets", "info", "FLAGS"]) == 0
    out = capsys.readouterr().out
    for part in ("rows        194", "categorical 19", "label sets  2", "Goncalves", str(flags)):
        assert part in out
    assert main(["datasets", "info", "flags", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["distinct_label_sets"] == 2


def test_info_of_missing_dataset_shows_how_to_get_it(flags, capsys):
    assert main(["datasets", "info", "genbase"]) == 0
    out = capsys.readouterr().out
    for part in ("not downloaded; run mlca datasets fetch genbase", "To download it manually, get", "'protein'"):
        assert part in out


def test_fetch_of_existing_dataset_prints_its_folder(flags, capsys):
    assert main(["datasets", "fetch", "flags"]) == 0
    assert capsys.readouterr().out == f"flags: {flags}\n"
    assert main(["datasets", "fetch", "flags", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "flags", "folder": str(flags)}]


@pytest.mark.parametrize("words", [["info", "iris"], ["fetch", "flags", "iris"]])
def test_unknown_names_are_rejected_before_any_work(flags, capsys, words):
    assert main(["datasets", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mlca datasets: no dataset is called 'iris'")


def test_bad_file_is_reported_in_one_line(flags, call):
    (flags / "flags.arff").write_text(FLAGS.replace("a,a", "a,z", 1))
    code, out, err = call("datasets", "info", "flags")
    assert (code, out) == (1, "")
    assert "flags.arff, line 29: 'z' is not among the values of attribute 'x1'" in err
    assert err.count("\n") == 1


def test_help_imports_nothing_heavy():
    code = "import sys; from mlca.cli import build_parser; build_parser(); print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"

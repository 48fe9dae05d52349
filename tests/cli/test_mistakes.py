"""Common mistakes on the command line: each is rejected before anything is lost."""

import errno
import json
import lzma
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mlca import MLCA, load
from mlca.cli import build_parser
from mlca.frames import recipe_of
from mlca.tables.kinds import Ignored
from tests.cli.weather_table import HEADER, run, weather_rows, write_csv

ROWS = weather_rows(80, 1)


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "table.csv", ROWS)


def rejected(answer, message, code=1):
    assert answer[0] == code and message in answer[2], answer
    return answer


@pytest.mark.parametrize("other_name", [os.symlink, os.link])
def test_output_never_overwrites_the_input_table(table, model, call, tmp_path, other_name):
    other_name(table, tmp_path / "link.csv")
    before = table.read_bytes()
    for out in (table, tmp_path / "link.csv"):
        rejected(call("train", table, "--labels", "tags", "--out", out), "an input that would be overwritten")
        rejected(call("predict", model, table, "--out", out), "an input that would be overwritten")
    assert table.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="there is no /dev/stdout")
def test_model_cannot_be_written_to_a_pipe(table):
    done = run(["train", table, "--labels", "tags", "--out", "/dev/stdout"])
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"/dev/stdout is a device, a FIFO or a socket, which cannot be replaced by a file" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("option", [["--holdout", ".2"], ["--tune"]])
def test_pipe_cannot_be_read_twice(table, call, tmp_path, option):
    """A second pass over a pipe would wait forever, or find no rows after the model is saved."""
    os.mkfifo(tmp_path / "pipe.csv")
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", *option]
    rejected(call("train", tmp_path / "pipe.csv", *words), f"{option[0]} reads the file twice, and {tmp_path}")
    assert not (tmp_path / "m.mlca").exists()
    threading.Thread(target=lambda: (tmp_path / "pipe.csv").write_bytes(table.read_bytes()), daemon=True).start()
    assert call("train", tmp_path / "pipe.csv", *words[:4])[0] == 0


def test_closed_standard_input_is_reported(model, call, monkeypatch):
    """Programs may be started without standard input; `sys.stdin` is then None."""
    monkeypatch.setattr("sys.stdin", None)
    rejected(call("predict", model, "-"), "standard input is closed; ")


class TestLabelsElsewhere:
    def test_learned_column_cannot_become_the_labels(self, table, model, call):
        before = model.read_bytes()
        for command in ("update", "evaluate"):
            message = "the model learned from 'season', or copies it as an ID, so it cannot hold the labels"
            rejected(call(command, model, table, "--labels", "season"), message)
        assert model.read_bytes() == before

    def test_previous_label_column_is_not_learned(self, model, call, tmp_path):
        both = write_csv(
            tmp_path / "both.csv", [[*row[:3], "|".join(row[3]), row[3]] for row in ROWS], [*HEADER, "other"]
        )
        renamed = write_csv(tmp_path / "renamed.csv", ROWS, [*HEADER[:3], "other"])
        twin = tmp_path / "twin.mlca"
        twin.write_bytes(model.read_bytes())
        code, _, err = call("update", model, both, "--labels", "other")
        assert code == 0 and "learned from here on" not in err
        assert call("update", twin, renamed, "--labels", "other")[0] == 0
        np.testing.assert_array_equal(load(model).prototypes_, load(twin).prototypes_)
        assert recipe_of(load(model)).layout.columns[-1] == Ignored("tags", "held the labels before")
        assert call("update", model, both)[0] == 0
        assert call("update", model, both, "--labels", "tags")[0] == 0
        assert load(model).n_seen_ == 540 and load(model).prototypes_.shape[1] == 3

    def test_update_reads_labels_from_column_that_training_ignored(self, tmp_path, call):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(ROWS, columns=HEADER)
        with pytest.warns(UserWarning, match="left out: 'tags'"):
            MLCA().fit(frame, frame["tags"]).save(tmp_path / "m.mlca")
        frame.to_csv(tmp_path / "table.csv", index=False)
        assert call("update", tmp_path / "m.mlca", tmp_path / "table.csv", "--labels", "tags")[0] == 0
        assert load(tmp_path / "m.mlca").n_seen_ == 160


class TestIds:
    @pytest.mark.parametrize("name", ["row", "labels", "probabilities", "novelty"])
    def test_id_named_like_an_output_column_is_rejected(self, model, call, tmp_path, name):
        rows = [[i, *row] for i, row in enumerate(ROWS)]
        path = write_csv(tmp_path / "ids.csv", rows, [name, *HEADER])
        message = f"--id {name}: `predict` writes a column of this name"
        rejected(call("predict", model, path, "--id", name, "--json"), message)
        rejected(call("train", path, "--labels", "tags", "--id", name, "--out", tmp_path / "m.mlca"), message)

    def test_missing_id_column_is_rejected(self, table, model, call, tmp_path):
        rejected(call("predict", model, table, "--id", "ticket"), "'ticket'; the columns are 'temp'")
        rows = [[f"T{i}", *row] for i, row in enumerate(ROWS)]
        path = write_csv(tmp_path / "ids.csv", rows, ["ticket", *HEADER])
        assert call("train", path, "--labels", "tags", "--id", "ticket", "--out", tmp_path / "m.mlca")[0] == 0
        code, out, err = call("predict", tmp_path / "m.mlca", table)
        assert code == 0 and out.startswith("row,labels,") and "there is no ID column 'ticket'" in err
        code, out, err = call("predict", model, path, "--id", "ticket")
        assert code == 0 and out.startswith("row,ticket,labels,") and "not used" not in err

    def test_label_column_cannot_be_the_id(self, table, call, tmp_path):
        answer = call("train", table, "--labels", "tags", "--id", "tags", "--out", tmp_path / "m.mlca")
        rejected(answer, "column 'tags' is selected by two options")


def test_repeated_header_row_is_rejected_or_skipped(call, tmp_path):
    (tmp_path / "joined.csv").write_text("colour,tags\nred,a\nblue,b\n" * 10)
    words = ["train", tmp_path / "joined.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"]
    rejected(call(*words), "line 4: the row repeats the names of the columns; were two files joined?")
    assert call(*words, "--on-error", "skip")[0] == 0
    assert load(tmp_path / "m.mlca").n_seen_ == 20 and set(load(tmp_path / "m.mlca").classes_) == {"a", "b"}


def test_missing_file_is_reported(model, call, tmp_path):
    for words in (["predict", model, tmp_path / "no.csv"], ["predict", tmp_path / "no.csv", model]):
        answer = rejected(
            call(*words), f"mlca predict: {tmp_path / 'no.csv'}: No such file or directory; check the name"
        )
        assert "Errno" not in answer[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--holdout", "abc"], "argument --holdout: 'abc' is not a share between 0 and 1"),
        (["train", "--vigilance", "abc"], "argument --vigilance: 'abc' is neither a number nor 'auto'"),
        (
            ["predict", "--threshold", "abc"],
            "argument --threshold: 'abc' is neither a number from 0 to 1 nor LABEL=NUMBER",
        ),
        (["update", "--wait", "abc"], "argument --wait: 'abc' is not a number of seconds"),
    ],
)
def test_invalid_number_is_reported_plainly(call, words, message):
    rejected(call(*words), message, code=2)


class TestOptionsGivenTwice:
    def test_repeated_column_options_are_combined(self, call, tmp_path):
        header = ["wind", "site", "temp", "tag_a", "tag_b", "tag_c"]
        rows = [[i % 7, i % 3, i % 5, i % 2, int(i % 3 == 0), [str(int(i % 5 == 0))]] for i in range(30)]
        path = write_csv(tmp_path / "flags.csv", rows, header)
        at_once, one_by_one = tmp_path / "at_once.mlca", tmp_path / "one_by_one.mlca"
        assert call("train", path, "--labels", "tag_a,tag_b,tag_c", "--ignore", "wind,site", "--out", at_once)[0] == 0
        labels = ["--labels", "tag_a", "--labels", "tag_b,tag_c"]
        assert call("train", path, *labels, "--ignore", "wind", "--ignore", "site", "--out", one_by_one)[0] == 0
        assert load(one_by_one).classes_.tolist() == ["tag_a", "tag_b", "tag_c"]
        assert recipe_of(load(one_by_one)).layout == recipe_of(load(at_once)).layout
        assert call("update", one_by_one, path, *labels)[0] == 0
        assert load(one_by_one).prototypes_.shape[1] == 1

    @pytest.mark.parametrize(
        "words",
        [
            ["train", "t.csv", "--id", "a", "--id", "b"],
            ["train", "t.csv", "--out", "a.mlca", "--out", "b.mlca"],
            ["predict", "m.mlca", "t.csv", "--on-error", "stop", "--on-error", "skip"],
            ["send", "t.csv", "--batch", "100", "--batch", "100"],
        ],
    )
    def test_repeated_single_value_option_is_rejected(self, call, words):
        rejected(call(*words), f"argument {words[-2]}: given twice, but takes one value", code=2)

    def test_default_value_is_not_combined_with_a_given_one(self, tmp_path, call):
        words = ["serve", "token", "--tokens", tmp_path / "tokens", "--name", "me"]
        assert call(*words, "--scopes", "learn", "--scopes", "admin")[0] == 0
        assert json.loads((tmp_path / "tokens").read_text())["tokens"][0]["scopes"] == ["admin", "learn"]

    def test_repeated_dataset_options_are_combined(self):
        words = ["reproduce", "comparison", "--datasets", "scene", "yeast", "--datasets", "emotions"]
        assert build_parser().parse_args(words).datasets == ["scene", "yeast", "emotions"]


class TestTrainingOptions:
    def test_too_few_rows_for_tuning_are_rejected(self, call, tmp_path):
        few = write_csv(tmp_path / "few.csv", ROWS[:1])
        words = ["train", few, "--labels", "tags", "--out", tmp_path / "m.mlca", "--tune"]
        rejected(call(*words), "none of these has a label (rows: 1); give more rows")
        write_csv(few, ROWS[:15])
        assert call(*words)[0] == 0

    def test_holdout_without_rows_is_rejected_and_saves_nothing(self, table, call, tmp_path):
        answer = call("train", table, "--labels", "tags", "--out", tmp_path / "m.mlca", "--holdout", ".0001")
        rejected(answer, "--holdout 0.0001 holds out none of the 80 rows; use a larger share")
        assert not (tmp_path / "m.mlca").exists()

    @pytest.mark.parametrize("option", [["--vigilance", ".2"], ["--attributes", "individual"]])
    def test_tune_excludes_the_options_that_it_chooses(self, table, call, tmp_path, option):
        answer = call("train", table, "--labels", "tags", "--out", tmp_path / "m.mlca", "--tune", *option)
        rejected(answer, "--tune chooses --vigilance and --attributes", code=2)

    @pytest.mark.parametrize("option", [["--vote", "frequencies"], ["--neighbors", "5"], ["--smoothing", "2"]])
    def test_options_without_effect_are_rejected(self, table, call, tmp_path, option):
        words = ["train", table, "--labels", "tags", "--out", tmp_path / "m.mlca", *option]
        rejected(call(*words), f"{option[0]} has no effect without --decision bayes or --published", code=2)
        assert not (tmp_path / "m.mlca").exists()
        for remedy in (["--decision", "bayes"], ["--published", "MLCA"]):
            assert call(*words, *remedy)[0] == 0

    def test_tune_keeps_the_published_variant(self, table, call_json, tmp_path):
        words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--tune", "--published", "MLCA-I"]
        facts = call_json("train", table, *words)
        assert {trial["attributes"] for trial in facts["tuning"]} == {"individual"}
        assert load(tmp_path / "m.mlca").attributes == "individual"

    def test_empty_separator_is_rejected(self, table, call, tmp_path):
        answer = call("train", table, "--labels", "tags", "--separator", "", "--out", tmp_path / "m.mlca")
        rejected(answer, "--separator is empty; set the separator between labels")

    @pytest.mark.parametrize("threshold", ["2", "-0.1", "nan"])
    def test_threshold_outside_0_to_1_is_a_usage_error(self, table, model, call, threshold):
        rejected(
            call("predict", model, table, f"--threshold={threshold}"),
            "neither a number from 0 to 1 nor LABEL=NUMBER",
            code=2,
        )


def test_unencodable_labels_are_written_as_escapes(tmp_path):
    """JSON may contain a lone surrogate, and the encoding of a terminal may lack Greek letters."""
    lines = [json.dumps({"x": i * i % 7, "tags": ["\ud800", "\u03b1"]}) for i in range(20)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert run(["train", tmp_path / "a.jsonl", "--labels", "tags", "--out", tmp_path / "m.mlca"]).returncode == 0
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(["predict", tmp_path / "m.mlca", tmp_path / "a.jsonl"], env=ascii_only)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith(b"1,\\ud800|\\u03b1,")
    done = run(["predict", tmp_path / "m.mlca", tmp_path / "a.jsonl", "--json"], env=ascii_only)
    assert [json.loads(line)["labels"] for line in done.stdout.splitlines()] == [["\ud800", "\u03b1"]] * 20


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_disk_is_reported_with_its_file(model, table, tmp_path, monkeypatch, call):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "mlca", "inspect", model], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith(b"mlca inspect: standard output: No space left on device; free some space"), (
        done.stderr
    )

    def no_room(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mlca.replacing.os.fsync", no_room)
    code, _, err = call("predict", model, table, "--out", tmp_path / "p.csv")
    assert (code, err) == (1, f"mlca predict: {tmp_path / 'p.csv'}: No space left on device\n")


def test_ctrl_c_while_parsing_arguments_shows_no_traceback(call, monkeypatch):
    """Parsing imports the commands, which takes a moment in which the user may press Ctrl-C."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("mlca.cli.build_parser", interrupted)
    assert call("inspect", "m.mlca") == (130, "", "mlca: interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes them here")
class TestClosedStreams:
    """A service manager may start a command without one of its three streams."""

    def closing(self, stream, *words):
        command = shlex.join([sys.executable, "-m", "mlca", *map(str, words)])
        return subprocess.run(f"{command} {stream}", shell=True, capture_output=True, timeout=120)

    def test_update_reports_closed_standard_input(self, model, table, tmp_path):
        before = model.read_bytes()
        done = self.closing("<&-", "update", model, "-")
        assert (done.returncode, model.read_bytes()) == (1, before)
        assert done.stderr.startswith(b"mlca update: standard input is closed; name a file"), done.stderr

    def test_predict_reports_closed_standard_output(self, model, table, tmp_path):
        words = ["predict", model, table, "--out", tmp_path / "p.csv"]
        done = self.closing(">&-", *words)
        assert done.returncode == 1 and not (tmp_path / "p.csv").exists()
        assert done.stderr.startswith(b"mlca predict: standard output is closed; redirect it"), done.stderr

    def test_commands_run_with_closed_standard_error(self, model, table, tmp_path):
        expected = run(["predict", model, table])
        done = self.closing("2>&-", "predict", model, table)
        assert (done.returncode, done.stdout) == (0, expected.stdout)
        done = self.closing("2>&-", "update", model, "nowhere.csv")
        assert (done.returncode, done.stdout) == (1, b"")


PACKED = {
    "xz": (lzma.compress(b"x,tags\n1,a\n"), "compressed with xz; unpack it"),
    "zst": (b"\x28\xb5\x2f\xfd rest", "compressed with Zstandard"),
    "feather": (b"ARROW1\0\0\xff\xff\xff\xff rest", "the file is Feather (Arrow IPC); write it as Parquet"),
    "feather of version 1": (b"FEA1 rest", "the file is Feather (Arrow IPC); write it as Parquet"),
    "xlsx": (b"PK\x03\x04 rest", "a zip archive, perhaps a workbook or a model"),
    "utf-32": ("x,tags\n1,a\n".encode("utf-32"), "the file is UTF-32; convert it"),
    "utf-16 without a mark": ("x,tags\n1,a\n".encode("utf-16-le"), "contain NUL bytes, as in binary files or UTF-16"),
    "a long cell": (b"x,tags\n1," + b"a" * 200_000 + b"\n2,b\n", "write JSON lines"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_compressed_or_foreign_files_are_reported(call, tmp_path, kind):
    content, message = PACKED[kind]
    (tmp_path / "a.csv").write_bytes(content)
    rejected(call("train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"), message)


def test_unknown_option_names_the_nearest_one_and_the_command(tmp_path, call):
    code, _, err = call("train", tmp_path / "a.csv", "--vigilence", "0.1", "--out", tmp_path / "m.mlca")
    assert code == 2
    assert err.startswith("usage: mlca train ")
    assert err.endswith("mlca train: error: unknown option --vigilence; did you mean --vigilance?\n")

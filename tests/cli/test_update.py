"""`mlca update`: continues exactly, supports new labels, checks columns, and never leaves a partial file."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.cli.batch_learning import PatientInterrupt
from mlca.frames import recipe_of
from mlca.learner.widening import widened
from tests.cli.weather_table import HEADER, as_matrix, new_model, weather_rows, write_csv

if os.name == "posix":
    import fcntl
    import termios


def test_update_equals_partial_fit_and_accepts_new_labels(tmp_path, model, call_json):
    more = weather_rows(150, 2, tags_too=["storm"])
    facts = call_json("update", model, write_csv(tmp_path / "more.csv", more), "--backup")
    assert facts["new_labels"] == ["storm"]
    assert (facts["rows"], facts["rows_in_all"]) == (150, 450)
    expected = new_model(vigilance=0.1)
    for rows in (weather_rows(300, 1), more):
        expected.partial_fit(as_matrix(rows), [tuple(tags) for *_, tags in rows])
    updated, backup = load(model), load(f"{model}.bak")
    np.testing.assert_array_equal(updated.prototypes_, expected.prototypes_)
    np.testing.assert_array_equal(updated.label_counts_.toarray(), expected.label_counts_.toarray())
    assert updated.classes_.tolist() == expected.classes_.tolist()
    assert backup.n_seen_ == 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.mlca", "model.mlca.bak", "more.csv"]


def test_update_writes_no_backup_by_default(tmp_path, model, call):
    code, out, _ = call("update", model, write_csv(tmp_path / "more.csv", weather_rows(20, 2)))
    assert code == 0
    assert "Learned 20 rows" in out and "No new labels" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.mlca", "more.csv"]


def test_columns_are_matched_by_name_in_any_order_and_format(tmp_path, model, call, call_json):
    more = weather_rows(30, 2)
    names = [3, 2, 0, 1]
    lines = [
        json.dumps({HEADER[i]: row[i] if i < 3 else "|".join(row[3]) for i in names} | {"wind": 3}) for row in more
    ]
    (tmp_path / "more.jsonl").write_text("\n".join(lines))
    facts = call_json("update", model, tmp_path / "more.jsonl")
    assert facts["differences"] == ["new column 'wind': learned from here on"]
    expected = new_model(vigilance=0.1).partial_fit(
        as_matrix(weather_rows(300, 1)), [tuple(tags) for *_, tags in weather_rows(300, 1)]
    )
    expected._learner, expected.n_features_in_ = widened(expected._learner, 4, unknown=[3]), 4
    expected.partial_fit(np.column_stack([as_matrix(more), [3.0] * 30]), [tuple(tags) for *_, tags in more])
    np.testing.assert_array_equal(load(model).prototypes_, expected.prototypes_)
    assert recipe_of(load(model)).get_feature_names_out().tolist()[-2:] == ["season", "wind"]
    # Earlier files lack the column, so later ones may lack it.
    code, _, err = call("predict", model, write_csv(tmp_path / "more.csv", more), "--out", tmp_path / "p.csv")
    assert code == 0 and "no column 'wind' (numeric): missing in every row" in err


def test_all_differences_are_named_at_once_and_nothing_changes(tmp_path, model, call):
    before = model.read_bytes()
    (tmp_path / "other.csv").write_text("temp,season,wind\nwarm,3,1\ncool,4,2\n")
    code, _, err = call("update", model, tmp_path / "other.csv", "--backup")
    assert code == 1
    assert [line.strip() for line in err.splitlines()[1:]] == [
        "missing column 'humidity' (numeric)",
        "missing label column 'tags'",
        "column 'temp' was numeric and holds 'warm' now",
        "column 'season' held categories such as 'spring', 'summer', 'winter' and holds '3' now",
    ]
    assert model.read_bytes() == before
    assert not (tmp_path / "model.mlca.bak").exists()


def test_new_category_is_reported_as_unseen_until_learned(tmp_path, model, call_json):
    more = [[t, h, "monsoon" if i < 7 else s, tags] for i, (t, h, s, tags) in enumerate(weather_rows(60, 2))]
    path = write_csv(tmp_path / "more.csv", more)
    words = ["predict", model, path, "--out", tmp_path / "p.csv"]
    assert call_json(*words)["unseen"] == {"season=monsoon": 7}
    assert call_json("update", model, path)["unseen"] == {}
    expected = new_model(vigilance=0.1).partial_fit(
        as_matrix(weather_rows(300, 1)), [tuple(tags) for *_, tags in weather_rows(300, 1)]
    )
    expected.partial_fit(as_matrix(more), [tuple(tags) for *_, tags in more])
    np.testing.assert_array_equal(load(model).prototypes_, expected.prototypes_)
    assert call_json(*words)["unseen"] == {}


def test_updates_from_several_files_equal_training_on_one(tmp_path, call, monkeypatch):
    """A late category counts from the row in which it first appears, in whichever file that is."""
    monkeypatch.setattr("mlca.tables.columns.FIRST_ROWS", 60)
    rows = [[t, h, "monsoon" if i in (150, 190) else s, tags] for i, (t, h, s, tags) in enumerate(weather_rows(230, 1))]
    for name, part in (("all", rows), ("first", rows[:100]), ("second", rows[100:170]), ("third", rows[170:])):
        write_csv(tmp_path / f"{name}.csv", part)
    for name in ("all", "first"):
        words = ["--labels", "tags", "--out", tmp_path / f"{name}.mlca", "--vigilance", ".1"]
        assert call("train", tmp_path / f"{name}.csv", *words)[0] == 0
    for name in ("second", "third"):
        assert call("update", tmp_path / "first.mlca", tmp_path / f"{name}.csv")[0] == 0
    whole, grown = load(tmp_path / "all.mlca"), load(tmp_path / "first.mlca")
    np.testing.assert_array_equal(grown.prototypes_, whole.prototypes_)
    np.testing.assert_array_equal(grown.bandwidths_, whole.bandwidths_)
    assert recipe_of(grown).layout == recipe_of(whole).layout


def test_late_names_in_json_objects_are_ignored_and_reported(tmp_path, call, monkeypatch):
    monkeypatch.setattr("mlca.tables.jsonlines.FIRST_OBJECTS", 10)
    lines = [{"x": i % 3, "tags": "a" if i % 2 else "b"} | ({"late": 1} if i > 20 else {}) for i in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    code, out, _ = call("train", tmp_path / "a.jsonl", "--labels", "tags", "--out", tmp_path / "m.mlca")
    assert code == 0 and "objects, ignored: late" in out


def test_new_columns_that_match_the_pattern_are_new_labels(tmp_path, call, call_json):
    head = "x,tag_a,tag_b"
    (tmp_path / "a.csv").write_text(head + "\n" + "1,0,1\n2,1,0\n" * 40)
    call("train", tmp_path / "a.csv", "--labels", "tag_*", "--out", tmp_path / "m.mlca")
    (tmp_path / "b.csv").write_text(head + ",tag_c\n" + "1,0,1,yes\n2,1,0,no\n")
    facts = call_json("update", tmp_path / "m.mlca", tmp_path / "b.csv")
    assert facts["new_labels"] == ["tag_c"]
    assert facts["differences"] == ["new label column 'tag_c'"]
    (tmp_path / "d.csv").write_text(head + ",tag_d\n1,0,1,1\n")
    assert (
        call_json("predict", tmp_path / "m.mlca", tmp_path / "d.csv", "--out", tmp_path / "p.csv")["differences"] == []
    )
    (tmp_path / "c.csv").write_text("x,tag_a,tag_b\n1,0,maybe\n")
    code, _, err = call("update", tmp_path / "m.mlca", tmp_path / "c.csv")
    assert code == 1 and "line 2: label 'tag_b' must be 0 or 1, no or yes, not 'maybe'" in err


def test_categories_may_look_like_numbers(tmp_path, call, call_json):
    (tmp_path / "a.csv").write_text("x,year,tags\n" + "1,2001,a\n2,2002,b\n" * 30)
    words = ["--labels", "tags", "--out", tmp_path / "m.mlca", "--categorical", "year"]
    assert call("train", tmp_path / "a.csv", *words)[0] == 0
    (tmp_path / "b.jsonl").write_text('{"x": 3, "year": 2002, "tags": "b"}\n{"x": 3, "year": 2003.0, "tags": "b"}\n')
    words = ["predict", tmp_path / "m.mlca", tmp_path / "b.jsonl", "--out", tmp_path / "p.csv"]
    assert call_json(*words)["unseen"] == {"year=2003": 1}


def test_bad_row_leaves_the_model_unchanged(tmp_path, model, call):
    before = model.read_bytes()
    path = write_csv(tmp_path / "more.csv", weather_rows(50, 2))
    path.write_text(path.read_text() + "hot,60,winter,cold\n")
    code, _, err = call("update", model, path)
    assert code == 1 and f"{path}, line 52: 'hot' is not a number" in err and "--on-error skip" in err
    assert model.read_bytes() == before


def test_model_without_recipe_is_rejected(tmp_path, call):
    MLCA().fit([[1.0], [2.0]], [{"a"}, {"b"}]).save(tmp_path / "m.mlca")
    (tmp_path / "a.csv").write_text("x,tags\n1,a\n")
    for command in ("update", "predict", "evaluate"):
        code, _, err = call(command, tmp_path / "m.mlca", tmp_path / "a.csv")
        assert code == 1 and "trained in Python on rows without names" in err


def test_rows_without_any_label_are_learned(tmp_path, model, call_json):
    rows = [[t, h, s, []] for t, h, s, _ in weather_rows(40, 2)]
    assert call_json("update", model, write_csv(tmp_path / "more.csv", rows))["rows"] == 40


def start(words, **options):
    """Start a command that can be interrupted, even if the tests run in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "mlca", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def feed(process, path, n_rows):
    """Write rows to a command and wait until it has processed as many as it can; leave the pipe open.

    The end of the last line is sent separately; the command reads it after it has processed all earlier lines.
    """
    content = write_csv(path, weather_rows(n_rows, 1)).read_bytes()
    for part in (content[:-1], content[-1:]):
        process.stdin.write(part)
        process.stdin.flush()
        deadline = time.monotonic() + 120
        while any(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))):
            assert time.monotonic() < deadline, "the command is still at work"
            time.sleep(0.01)


class TestPatientInterrupt:
    def test_waiting_is_interrupted_at_once_and_learning_after_the_batch(self):
        with PatientInterrupt() as interrupt, pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        done = []
        with PatientInterrupt() as interrupt, pytest.raises(KeyboardInterrupt):
            with interrupt.held():
                done.append("first")
            with interrupt.held():
                signal.raise_signal(signal.SIGINT)
                done.append("second")
            done.append("never")
        assert done == ["first", "second"]

    def test_further_interrupts_do_not_disturb_saving(self):
        with PatientInterrupt() as interrupt:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        with PatientInterrupt() as interrupt:
            interrupt.ignore()
            signal.raise_signal(signal.SIGINT)

    def test_previous_signal_handlers_are_restored(self):
        before = signal.getsignal(signal.SIGINT)
        with PatientInterrupt():
            assert signal.getsignal(signal.SIGINT) != before
        assert signal.getsignal(signal.SIGINT) == before
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with PatientInterrupt():
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, before)


needs_signals = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@needs_signals
def test_ctrl_c_saves_what_was_learned_between_batches(tmp_path):
    process = start(["train", "-", "--labels", "tags", "--out", tmp_path / "m.mlca", "--json", "--vigilance", "0.3"])
    feed(process, tmp_path / "a.csv", 12_500)  # more than the first rows; the others wait until a batch is full
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    facts = json.loads(out)
    assert facts["interrupted"] is True
    assert facts["rows"] == facts["rows_in_all"] == load(tmp_path / "m.mlca").n_seen_
    assert facts["rows"] == 12_000
    rows = weather_rows(12_500, 1)[:12_000]
    expected = new_model(vigilance=0.3).partial_fit(as_matrix(rows), [tuple(tags) for *_, tags in rows])
    np.testing.assert_array_equal(load(tmp_path / "m.mlca").prototypes_, expected.prototypes_)


@needs_signals
def test_ctrl_c_before_the_first_batch_writes_nothing(tmp_path):
    process = start(["train", "-", "--labels", "tags", "--out", tmp_path / "m.mlca"])
    feed(process, tmp_path / "a.csv", 10)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"mlca train: interrupted" in err
    assert not (tmp_path / "m.mlca").exists()


@needs_signals
def test_killed_update_leaves_the_old_model(tmp_path, model):
    before = model.read_bytes()
    process = start(["update", model, "-"])
    feed(process, tmp_path / "a.csv", 12_500)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "model.mlca"]


@needs_signals
class TestTwoUpdates:
    def test_concurrent_updates_lose_no_rows(self, tmp_path, model, call):
        """The first update holds the lock while its input is open; the second waits, and continues its model."""
        first = start(["update", model, "-", "--json"])
        feed(first, tmp_path / "a.csv", 100)
        second = start(["update", model, write_csv(tmp_path / "b.csv", weather_rows(50, 3, tags_too=["late"]))])
        assert b"another update is running; waiting up to 60 s" in second.stderr.readline()
        code, _, err = call("update", model, tmp_path / "b.csv", "--wait", "0")
        assert code == 1 and "another update is still running after 0 s, so nothing was learned" in err
        out, err = first.communicate(timeout=60)
        assert first.returncode == 0, err
        assert json.loads(out)["rows_in_all"] == 400
        _, err = second.communicate(timeout=60)
        assert second.returncode == 0, err
        expected = new_model(vigilance=0.1)
        for rows in (weather_rows(300, 1), weather_rows(100, 1), weather_rows(50, 3, tags_too=["late"])):
            expected.partial_fit(as_matrix(rows), [tuple(tags) for *_, tags in rows])
        np.testing.assert_array_equal(load(model).prototypes_, expected.prototypes_)
        assert load(model).classes_.tolist() == expected.classes_.tolist()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv", "model.mlca"]

    def test_lock_of_a_killed_update_is_released(self, tmp_path, model, call_json):
        first = start(["update", model, "-"])
        feed(first, tmp_path / "a.csv", 100)
        first.kill()
        first.communicate(timeout=60)
        assert call_json("update", model, tmp_path / "a.csv", "--wait", "0")["rows_in_all"] == 400

    def test_model_replaced_by_another_program_is_not_overwritten(self, tmp_path, model):
        process = start(["update", model, "-"])
        feed(process, tmp_path / "a.csv", 100)
        MLCA().fit([[1.0], [2.0]], [{"a"}, {"b"}]).save(model)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert b"was replaced while this update was running, so nothing is saved" in err
        assert load(model).classes_.tolist() == ["a", "b"]


@needs_signals
def test_links_are_followed_and_a_private_model_keeps_a_private_backup(tmp_path, model, call):
    model.chmod(0o600)
    (tmp_path / "link.mlca").symlink_to(model.name)
    more = write_csv(tmp_path / "more.csv", weather_rows(20, 2))
    assert call("update", tmp_path / "link.mlca", more, "--backup")[0] == 0
    assert (tmp_path / "link.mlca").is_symlink()
    assert load(model).n_seen_ == 320 and load(tmp_path / "link.mlca.bak").n_seen_ == 300
    assert (tmp_path / "link.mlca.bak").stat().st_mode == model.stat().st_mode
    os.mkfifo(tmp_path / "model.mlca.bak")
    code, _, err = call("update", model, more, "--backup")
    assert code == 1 and "a FIFO" in err
    assert load(model).n_seen_ == 320


class TestModelsOfPython:
    """A model trained in Python continues in the command line, whatever the form of its labels."""

    FRAME = pd.DataFrame({"hours": np.arange(60) % 7 / 2, "team": ["u", "v", "w"] * 20})
    FORMS = {  # noqa: RUF012
        "columns of 0 and 1": np.tile(np.eye(3, dtype=int), (20, 1)),
        "one number a row": np.tile(np.arange(3), 20),
        "sets of numbers": [{0}, {1}, {2}] * 20,
    }

    @pytest.mark.parametrize("form", FORMS)
    def test_models_with_any_label_form_are_evaluated_and_updated(self, tmp_path, call_json, form):
        MLCA().fit(self.FRAME, self.FORMS[form]).save(tmp_path / "m.mlca")
        self.FRAME.assign(tags=["0", "1", "2"] * 20).to_csv(tmp_path / "more.csv", index=False)
        words = (tmp_path / "m.mlca", tmp_path / "more.csv", "--labels", "tags")
        assert call_json("evaluate", *words, "--prequential")["records"][-1]["row"] == 60
        facts = call_json("update", *words)
        assert (facts["rows_in_all"], facts["labels"], facts["new_labels"]) == (120, [0, 1, 2], [])
        assert load(tmp_path / "m.mlca").predict_labels(self.FRAME[:3]) == [{0}, {1}, {2}]

    def test_row_without_exactly_one_class_is_reported_by_line(self, tmp_path, call, call_json):
        MLCA().fit(self.FRAME, ["p", "q", "r"] * 20).save(tmp_path / "m.mlca")
        self.FRAME[:4].assign(tags=["p", "q|r", "", "r"]).to_csv(tmp_path / "more.csv", index=False)
        words = ("update", tmp_path / "m.mlca", tmp_path / "more.csv", "--labels", "tags", "--separator", "|")
        code, _, told = call(*words)
        assert code == 1 and "more.csv, line 3: the row has 2 labels, but the model learned exactly one" in told
        assert load(tmp_path / "m.mlca").n_seen_ == 60
        facts = call_json(*words, "--on-error", "skip")
        assert (facts["rows"], facts["rows_in_all"]) == (2, 62)


@pytest.mark.parametrize("texts", ["sea|sun", "sun"])
def test_labels_in_lists_and_with_a_separator_can_be_mixed(tmp_path, call_json, texts):
    lists, text = tmp_path / "lists.jsonl", tmp_path / "text.jsonl"
    lists.write_text("".join(json.dumps({"x": k % 7, "tags": ["sea", "sun"][: k % 3]}) + "\n" for k in range(30)))
    text.write_text("".join(json.dumps({"x": k % 7, "tags": texts}) + "\n" for k in range(30)))
    for files in ([lists, text, lists], [text, lists, text]):
        call_json("train", files[0], "--labels", "tags", "--out", tmp_path / "m.mlca")
        for file in files[1:]:
            assert call_json("update", tmp_path / "m.mlca", file)["skipped"] == 0
        assert sorted(load(tmp_path / "m.mlca").classes_.tolist()) == ["sea", "sun"]


def test_separator_given_to_an_update_is_remembered(tmp_path, call_json):
    single, several = tmp_path / "single.csv", tmp_path / "several.csv"
    single.write_text("x,tags\n" + "".join(f"{k % 7},sea\n" for k in range(30)))
    several.write_text("x,tags\n" + "".join(f"{k % 7},sea|sun\n" for k in range(30)))
    call_json("train", single, "--labels", "tags", "--out", tmp_path / "m.mlca")
    assert call_json("update", tmp_path / "m.mlca", several, "--separator", "|")["new_labels"] == ["sun"]
    assert call_json("update", tmp_path / "m.mlca", several)["new_labels"] == []


@pytest.mark.parametrize(("first", "note"), [("sea", True), ("sea|sun", True), ("sea;sun", False)])
def test_labels_with_another_separator_are_noted(tmp_path, call_json, first, note):
    before, more = tmp_path / "before.csv", tmp_path / "more.csv"
    before.write_text("x,tags\n" + "".join(f"{k % 7},{first}\n" for k in range(30)))
    more.write_text("x,tags\n" + "".join(f"{k % 7},sea;sun\n" for k in range(30)))
    call_json("train", before, "--labels", "tags", "--out", tmp_path / "m.mlca")
    notes = call_json("update", tmp_path / "m.mlca", more)["differences"]
    expected = "labels such as 'sea;sun' are read as one name; if they are several, add --separator ';'"
    assert notes == ([expected] if note else [])
    assert call_json("update", tmp_path / "m.mlca", more, "--separator", ";")["differences"] == []


def test_kinds_of_columns_can_be_set(tmp_path, call_json, call):
    rows = "".join(f"{k % 9},word{k % 3},{k}\n" for k in range(40))
    (tmp_path / "a.csv").write_text("room,note,tags\n" + rows)
    words = ["train", tmp_path / "a.csv", "--labels", "tags", "--out", tmp_path / "m.mlca"]
    call_json(*words, "--column", "room=category", "--column", "note=text", "--text-features", "32")
    columns = call_json("inspect", tmp_path / "m.mlca")["columns"]
    assert [(column["name"], column["kind"]) for column in columns] == [("room", "category"), ("note", "text")]
    assert "32 features (word" in call("inspect", tmp_path / "m.mlca")[1]

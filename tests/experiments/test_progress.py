import os
import pty
import subprocess
import sys

from mlca.experiments.reproduction import progress
from mlca.experiments.tasks import Outcome, Task

TASK = Task("fold", "MLkNN", (("k", 3),), "flags", repetition=0, fold=0)


def test_without_a_terminal_progress_is_plain_lines(capsys):
    with progress("nodes", 2) as notify:
        notify(Outcome(TASK, "done", {}, {}))
        notify(Outcome(TASK, "failed", {}, {}, "Traceback ...\nValueError: vigilance is 7"))
    first, complaint, last = capsys.readouterr().out.splitlines()
    assert first == "nodes: 2 tasks"
    assert complaint == "  failed: MLkNN k=3 on flags fold 0.0: ValueError: vigilance is 7"
    assert last.startswith("nodes: 2 of 2, ")


def test_without_rich_progress_is_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress("nodes", 2):
        pass
    assert capsys.readouterr().out == "nodes: 2 tasks\n"


def test_terminal_shows_a_bar():
    script = (
        "from mlca.experiments.reproduction import progress\n"
        "from mlca.experiments.tasks import Outcome, Task\n"
        "with progress('nodes', 2) as notify:\n"
        f"    notify(Outcome({TASK!r}, 'done', {{}}, {{}}))\n"
    )
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    subprocess.run([sys.executable, "-c", script], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert b"1/2" in shown
    assert b"/s" in shown
    assert b"MLkNN on flags" in shown

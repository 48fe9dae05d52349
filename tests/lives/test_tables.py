"""Operations on a model file, updated by command line, Python and services: it equals a model of the same rows."""

import contextlib
import copy
import io
import itertools
import json
import tempfile
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

pytest.importorskip("uvicorn", reason='needs "mlca[serve]"')

from mlca import MLCA, load, merge, reference
from mlca.cli import main
from mlca.frames import recipe_of
from tests.learner.model_comparison import assert_exactly_same
from tests.learner.reference_comparison import assert_same_state
from tests.lives import FEW_AND_MANY, run_lives
from tests.serve.conftest import fork_server  # noqa: F401
from tests.serve.service_process import Server

OPTIONS = {"vigilance": 0.1, "window": 12}
ALWAYS = {
    "temp": st.sampled_from([0.5, 1.5, -2.25, 3.0, 40.0, None]),
    "site": st.sampled_from(["north", "south", "east", "west", "far", None]),
    "urgent": st.sampled_from(["yes", "no"]),
}
LATE = {"wind": st.sampled_from([0.25, 1.5, 9.0, None]), "colour": st.sampled_from(["red", "green", None])}
LABELS = st.sets(st.sampled_from("abcde"), max_size=3).map(sorted)
FIRST = [
    ({"temp": temp, "site": site, "urgent": urgent}, [label])
    for temp, site, urgent, label in zip(
        [0.5, 1.5, -2.25, 3.0] * 3, ["north", "south"] * 6, ["yes", "no", "no"] * 4, "aab" * 4, strict=True
    )
]


def portions(columns):
    return st.lists(st.tuples(st.fixed_dictionaries(columns), LABELS), min_size=1, max_size=10)


# Within a file or frame all rows have the same columns; a late column is in some files only.
PORTION = st.sampled_from([ALWAYS] * 4 + [ALWAYS | LATE, ALWAYS | {"wind": LATE["wind"]}]).flatmap(portions)


def frame_of(portion):
    frame = pd.DataFrame([x for x, _ in portion])
    return frame.astype({name: float for name in ("temp", "wind") if name in frame})


def write_table(portion, path):
    """Write a portion as CSV or as JSON lines, by the name of the file."""
    frame = frame_of(portion).assign(tags=["|".join(labels) for _, labels in portion])
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    return path


def shell(*words):
    """Run a command in this process and return what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    assert code == 0, err.getvalue()
    return out.getvalue()


class Life(RuleBasedStateMachine):
    """A model file, and a model in memory that learned the same rows."""

    def __init__(self, processes, forks):
        super().__init__()
        self.processes, self.forks = processes, forks
        self.folders = (f"data{number}" for number in itertools.count())
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.file, self.learned = self.path / "model.mlca", []
        self.widened = self.merged = False

    @initialize(portion=portions(ALWAYS), suffix=st.sampled_from(["csv", "jsonl"]))
    def begin(self, portion, suffix):
        self.learned = [*FIRST, *portion]
        table = write_table(self.learned, self.path / f"first.{suffix}")
        options = ["--vigilance", OPTIONS["vigilance"], "--window", OPTIONS["window"]]
        shell("train", table, "--labels", "tags", "--separator", "|", "--out", self.file, *options)
        self.plain = MLCA(**OPTIONS).fit(frame_of(self.learned), [labels for _, labels in self.learned])

    def note(self, portion):
        """Train the model in memory, row by row unless there are new columns, whose kinds depend on all rows."""
        frame, labels = frame_of(portion), [labels for _, labels in portion]
        is_wider = not set(frame.columns) <= {column.name for column in recipe_of(self.plain).layout.columns}
        step = len(frame) if is_wider else 1
        for low in range(0, len(frame), step):
            self.plain.partial_fit(frame[low : low + step], labels[low : low + step])
        self.widened |= is_wider
        self.learned = [*self.learned, *portion]

    # ---- learning

    @rule(portion=PORTION, suffix=st.sampled_from(["csv", "jsonl"]))
    def update_by_shell(self, portion, suffix):
        shell("update", self.file, write_table(portion, self.path / f"more.{suffix}"))
        self.note(portion)

    @rule(portion=PORTION)
    def update_in_python(self, portion):
        model = load(self.file).partial_fit(frame_of(portion), [labels for _, labels in portion])
        model.save(self.file)
        self.note(portion)

    @rule(first=portions(ALWAYS), second=portions(ALWAYS))
    def update_by_two_shells_at_once(self, first, second):
        """Both updates are applied, in either order."""
        tables = [write_table(part, self.path / f"{n}.csv") for n, part in enumerate((first, second))]
        assert [len(out) > 0 for out in self.processes.starmap(shell, [("update", self.file, t) for t in tables])]
        before = copy.deepcopy(self.plain), self.learned
        self.note([*first, *second])
        if load(self.file).predict_proba(self.asked()).tobytes() != self.plain.predict_proba(self.asked()).tobytes():
            self.plain, self.learned = before
            self.note([*second, *first])

    @rule(portion=portions(ALWAYS))
    def update_by_service(self, portion):
        """Start a service with the file, and replace the file by the model of the service."""
        server = Server(self.forks, self.path / next(self.folders), "--model", self.file)
        try:
            server.start()
            sent = [{"id": f"r{number}", "x": x, "labels": labels} for number, (x, labels) in enumerate(portion)]
            position = server.learn(sent)["position"]
            status, content, _ = server.ask("GET", f"/v1/model/file?min_position={position}")
        finally:
            server.end()
        assert (status, position) == (200, len(portion)), content
        self.file.write_bytes(content)
        self.note(portion)

    @rule(portion=PORTION)
    def update_with_a_faulty_row(self, portion):
        table, before = write_table(portion, self.path / "faulty.csv"), self.file.read_bytes()
        header, *lines = table.read_text().splitlines()
        cells = ["hot" if name == "temp" else "" for name in header.split(",")]
        table.write_text("\n".join([header, *lines, ",".join(cells)]) + "\n")
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["update", str(self.file), str(table)]) == 1
        assert self.file.read_bytes() == before

    @rule(portion=portions(ALWAYS), how=st.sampled_from(["replay", "append"]))
    def merge_with_another_model(self, portion, how):
        """No model trained row by row equals a merged one, so the model in memory becomes a copy."""
        other = copy.deepcopy(self.plain).partial_fit(frame_of(portion), [labels for _, labels in portion])
        n_seen = self.plain.n_seen_ + other.n_seen_
        try:
            merged = merge([load(self.file), other], how=how)
        except ValueError as error:  # before columns have settled, more rows may change their kinds
            assert "reads its tables differently" in str(error)
            assert recipe_of(other).layout.columns != recipe_of(self.plain).layout.columns
            return
        merged.save(self.file)
        self.plain = merge([self.plain, other], how=how)
        assert merged.n_seen_ == self.plain.n_seen_ == n_seen
        self.learned, self.merged = [*self.learned, *portion], True

    # ---- invariants

    def asked(self):
        return frame_of(self.learned[-3:])[list(ALWAYS)].assign(**dict.fromkeys(set(LATE) & self.columns(), 1.5))

    def columns(self):
        return {column.name for column in recipe_of(self.plain).layout.columns}

    @rule()
    def predict(self):
        rows = [(dict.fromkeys(ALWAYS) | x, []) for x, _ in self.learned[-3:]]
        asked, out = write_table(rows, self.path / "asked.csv"), self.path / "predicted.jsonl"
        shell("predict", self.file, asked, "--out", out)
        chosen = [json.loads(line) for line in out.read_text().splitlines()]
        assert [set(line["labels"]) for line in chosen] == self.plain.predict_labels(frame_of(rows))

    def teardown(self):
        if self.learned:
            model = load(self.file)
            assert recipe_of(model).layout.columns == recipe_of(self.plain).layout.columns
            assert_exactly_same(model, self.plain)
            if not self.widened and not self.merged:
                recipe, labels = recipe_of(self.plain), [labels for _, labels in self.learned]
                plainest = reference.MLCA(**OPTIONS, categorical_features=recipe.layout.nominal)
                plainest.partial_fit(recipe.transform(frame_of(self.learned)), labels)
                assert_same_state(model._learner.settled(), plainest.settled())
        self.folder.cleanup()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("thorough", FEW_AND_MANY)
def test_model_file_after_any_operations_equals_one_fitted_on_its_rows(fork_server, thorough):  # noqa: F811
    with get_context("forkserver").Pool(2) as processes:
        run_lives(lambda: Life(processes, fork_server), 8, 200, 8, thorough)

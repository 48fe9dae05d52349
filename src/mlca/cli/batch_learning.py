"""Learning from a file batch by batch, for `train` and `update`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from mlca.cli.tablefiles import Faults, oddities, oddities_in_words
from mlca.messages import shown
from mlca.progress import Progress

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.tables.batches import Batch, TableFile
    from mlca.tables.columns import ColumnSettings
    from mlca.tables.layout import Layout
    from mlca.tables.recipe import Recipe
    from mlca.tables.table_learner import TableLearner


class PatientInterrupt:
    """Handles Ctrl-C: immediately while waiting for data, else after the current batch.

    After the first Ctrl-C, further ones are ignored, so that they cannot interrupt saving.
    """

    def __init__(self) -> None:
        self._holding = self._wanted = False

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        if self._before is not signal.SIG_IGN:  # shells ignore SIGINT for background jobs
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay an interrupt until the block ends."""
        self._holding = True
        yield
        if self._wanted:
            raise KeyboardInterrupt
        self._holding = False

    def ignore(self) -> None:
        """Ignore interrupts from now on."""
        self._holding = True

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._holding:
            self._wanted = True
        else:
            self._holding = True
            raise KeyboardInterrupt


@dataclass(frozen=True)
class LearningResult:
    """The result of learning from a file."""

    rows: int
    seconds: float
    new_labels: list[str]
    interrupted: bool
    oddities: dict[str, Any]
    remarks: list[str]

    def facts(self, model: MLCA, path: str) -> dict[str, Any]:
        """Return the result as a dict, for JSON output."""
        return {
            "model": path,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.rows / max(self.seconds, 1e-9), 1),
            "rows_in_all": model.n_seen_,
            "nodes": model.n_nodes_,
            "labels": model.classes_.tolist(),
            "new_labels": self.new_labels,
            "interrupted": self.interrupted,
            **self.oddities,
        }

    def in_words(self, model: MLCA, path: str) -> list[str]:
        """Return the result as lines of text."""
        from mlca.tables.columns import some

        lines = [
            f"Learned {self.rows:,} rows in {self.seconds:.1f} s "
            f"({self.rows / max(self.seconds, 1e-9):,.0f} rows/s): {model.n_nodes_:,} nodes, "
            f"{len(model.classes_):,} labels",
            f"New labels: {some(self.new_labels)}" if self.new_labels else "No new labels",
            *self.remarks,
            f"Saved {shown(path)} ({Path(path).stat().st_size / 1e6:.2f} MB)",
        ]
        return [*lines, "Interrupted: the rows learned so far are saved"] if self.interrupted else lines


def learn_and_save(
    model: MLCA,
    recipe: Recipe,
    file: TableFile,
    faults: Faults,
    path: str,
    before_saving: Callable[[], None] = lambda: None,
    *,
    settings: ColumnSettings | None = None,
) -> LearningResult:
    """Learn the rows of a file and save the model; after Ctrl-C, save the rows learned so far.

    Parameters
    ----------
    model, recipe : MLCA, Recipe
        The model and its recipe.
    file : TableFile
        The rows.
    faults : Faults
        Handles rows that cannot be read.
    path : str
        The target file.
    before_saving : callable
        Called after learning; an exception leaves the target file unchanged.
    settings : ColumnSettings, optional
        The user's settings for the kinds of new columns.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C is pressed before any row is learned; nothing is saved.
    """
    from mlca.tables.table_learner import TableLearner

    known = set()
    if hasattr(model, "labels_"):
        known = set(model.classes_.tolist())
        take_names(model)
    interrupted = False
    table = TableLearner(model)
    with PatientInterrupt() as interrupt, Progress() as progress:
        try:
            for batch in growing_batches(model, file, recipe.layout, faults, settings):
                with interrupt.held():
                    _learn(table, batch, file.declared_labels(batch.layout))
                    progress.advance(len(batch.numbers), file.fraction(), model.n_nodes_)
        except KeyboardInterrupt:
            if progress.rows == 0:
                print("No row was learned, so nothing is saved", file=sys.stderr)
                raise
            interrupted = True
        finally:
            interrupt.ignore()
        if progress.rows == 0:
            raise ValueError(f"{file.source.name}: there are no valid rows to learn")
        seconds = progress.seconds
        table.note_growth(final=True)
        before_saving()
        model.save(path)
    new = [name for name in model.classes_.tolist() if name not in known]
    return LearningResult(progress.rows, seconds, new, interrupted, oddities(file), oddities_in_words(file))


def growing_batches(
    model: MLCA, file: TableFile, layout: Layout, faults: Faults, settings: ColumnSettings | None = None
) -> Iterator[Batch]:
    """Yield the valid rows of a file in batches; add new categories and columns to the layout."""
    from mlca.tables.columns import ColumnSettings
    from mlca.tables.encoding import kind_by
    from mlca.tables.layout import TableLayout

    decide = kind_by(settings or ColumnSettings(), layout) if isinstance(layout, TableLayout) else None
    one_label = hasattr(model, "labels_") and model.labels_.single
    return file.batches(layout, faults, one_label=one_label, decide=decide)


def _learn(table: TableLearner, batch: Batch, classes: Sequence[str]) -> None:
    """Learn a batch, and record the resulting numbers of nodes and labels."""
    from mlca.targets import read_targets

    model = table.model
    fitted = hasattr(model, "labels_")
    known = model.labels_ if fitted else None
    labels, targets = read_targets(as_learned(model, batch) if fitted else batch.labels, known, classes)
    if batch.ids is not None:
        targets = targets._replace(ids=tuple(batch.ids))
    table.learn_part(batch.X, batch.layout, labels, targets, batch.cells)
    table.note_growth()


def as_learned(model: MLCA, batch: Batch) -> list[Any]:
    """Convert a batch's labels, which are strings, to the types of the model's labels."""
    names = {str(name): name for name in model.labels_.names}
    labels = [[names.get(name, name) for name in row_labels] for row_labels in batch.labels]
    return [name for [name] in labels] if model.labels_.single else [tuple(row_labels) for row_labels in labels]


def take_names(model: MLCA) -> None:
    """Let a model that was trained on columns of 0 and 1 accept label names from files."""
    if model.labels_.form == "indicator":
        model.labels_ = replace(model.labels_, form="names")

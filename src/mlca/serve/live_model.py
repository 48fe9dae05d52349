"""The model in use: one thread trains it, any number of threads predict with it.

The service calls `mlca.MLCA` only through this module. `LiveModel` protects the model with a fair lock, so a request
waits while at most one chunk of rows is learned. The model itself would allow predictions at any time. But responses
and snapshots state the position of their model in the log, so model, measures and position are updated together.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlca import frames
from mlca.learner.core import Answers
from mlca.options import Decision, Objective, decision_for
from mlca.serve.log import LoggedRow
from mlca.serve.measures import LogMeasures
from mlca.serve.request_errors import unavailable
from mlca.serve.request_rows import Columns, RowsOfX, unpack_rows
from mlca.serve.table_cells import cells_of_rows
from mlca.tables.layout import TableLayout
from mlca.tables.table_learner import TableLearner, recipe_of

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.explanation import Explanation

# Key of a snapshot's metadata in the extras of its model file.
NOTE = "snapshot"


@dataclass(frozen=True)
class Facts:
    """The status of the model, which can be read without waiting for its lock.

    `layout` describes the columns of a table; `settled` is whether their kinds are final. `checksum` covers the log
    up to the position; it is None if the model comes from a snapshot of an older version, which has no checksum.
    """

    position: int
    generation: int
    checksum: bytes | None = None
    seen: int = 0
    nodes: int = 0
    width: int | None = None
    labels: tuple[str, ...] = ()
    layout: TableLayout | None = None
    settled: bool = True
    decision: Decision = "mixed"
    objective: Objective = "exact"

    @property
    def checksum_text(self) -> str | None:
        """The checksum in hexadecimal, for responses and snapshots."""
        return None if self.checksum is None else self.checksum.hex()


class _FairLock:
    """A lock that is granted to threads in the order of their requests."""

    def __init__(self) -> None:
        self._next, self._inside = threading.Lock(), threading.Lock()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._next:
            self._inside.acquire()
        try:
            yield
        finally:
            self._inside.release()

    def try_to_acquire(self) -> bool:
        """Take the lock if it is free and no thread waits; return whether it was taken."""
        if not self._next.acquire(blocking=False):
            return False
        try:
            return self._inside.acquire(blocking=False)
        finally:
            self._next.release()

    def release(self) -> None:
        """Release the lock after `try_to_acquire` has returned True."""
        self._inside.release()


@dataclass
class Learned:
    """A model and its measures at a position and generation of the log.

    `checksum` covers the log up to the position; it is None if the model comes from a snapshot of an older version,
    which has no checksum.
    """

    model: MLCA
    measures: LogMeasures = field(default_factory=LogMeasures)
    position: int = 0
    generation: int = 0
    checksum: bytes | None = None
    table: TableLearner | None = None

    def __post_init__(self) -> None:
        """Create the table learner of a model that was trained on a table."""
        if hasattr(self.model, "classes_"):
            recipe = recipe_of(self.model)
            if recipe is not None and isinstance(recipe.layout, TableLayout):
                self.table = TableLearner(self.model, "missing")

    def learn(self, rows: Sequence[LoggedRow], columns: Columns | None) -> int:
        """Learn rows of the log, except forgotten ones; return the number of learned rows."""
        kept = [row for row in rows if row.x is not None]
        if kept:
            assert columns is not None  # the first row defines the columns
            x = unpack_rows([row.x for row in kept if row.x is not None], columns)
            labels = [row.labels for row in kept]
            if isinstance(x, list):
                self.table = self.table or TableLearner(self.model, "missing")
                self.table.learn(cells_of_rows(x), labels)
            else:
                self.model.partial_fit(x, labels)
            self.measures.add(kept)
        if rows:
            self.position, self.checksum = rows[-1].position, rows[-1].checksum
        return len(kept)

    def facts(self) -> Facts:
        """Return the current status of the model."""
        if not hasattr(self.model, "classes_"):
            return Facts(self.position, self.generation, self.checksum)
        model, table = self.model, self.table
        return Facts(
            self.position,
            self.generation,
            self.checksum,
            model.n_seen_,
            model.n_nodes_,
            model._learner.n_features,
            tuple(model.classes_.tolist()),
            None if table is None else table.layout,
            table is None or table.settled,
            decision_for(model.decision, model.similarity),
            model.objective,
        )

    def explain(self, x: RowsOfX) -> Explanation:
        """Explain the prediction for the single row in `x`; the caller holds the lock."""
        cells = {name: [cell] for name, cell in x[0].items()} if isinstance(x, list) else None
        return frames.explain(self.model._fitted(), self.encode(x), cells)

    def encode(self, x: RowsOfX) -> Any:
        """Return rows encoded for the model."""
        if not isinstance(x, list):
            return x
        assert self.table is not None  # the model has learned rows of a table
        names = [column.name for column in self.table.layout.learned]
        return self.table.encode({name: [row.get(name) for row in x] for name in names}, len(x))


class LiveModel:
    """The model in use, protected by a fair lock.

    If learning fails, it is unknown how many of the rows the model has learned. From then on predictions, learning
    and snapshots are rejected.

    Parameters
    ----------
    learned : Learned
        The initial model, with its measures and position.
    """

    def __init__(self, learned: Learned) -> None:
        self._guard = _FairLock()
        self._learned = learned
        self._failed = False
        self.facts = learned.facts()

    def learn(self, rows: Sequence[LoggedRow], columns: Columns | None) -> int:
        """Learn rows of the log; return the number of learned rows."""
        with self._guard():
            learned = self._sound()
            self._failed = True  # stays set if learning raises
            count = learned.learn(rows, columns)
            self._update_facts()
            self._failed = False
            return count

    def set_generation(self, generation: int) -> None:
        """Set the generation after an erasure of rows that the model has not learned."""
        with self._guard():
            self._learned.generation = generation
            self._update_facts()

    def replace(self, learned: Learned) -> None:
        """Replace the model, for example after a rebuild."""
        with self._guard():
            self._learned, self._failed = learned, False
            self._update_facts()

    def predict(self, x: RowsOfX) -> tuple[Facts, Answers]:
        """Predict rows; return the model's status (position, labels, ...) and the predictions."""
        with self._guard():
            return self._predict(x)

    def try_predict(self, x: RowsOfX) -> tuple[Facts, Answers] | None:
        """Predict rows if the lock is free; otherwise return None without waiting."""
        if not self._guard.try_to_acquire():
            return None
        try:
            return self._predict(x)
        finally:
            self._guard.release()

    def _predict(self, x: RowsOfX) -> tuple[Facts, Answers]:
        facts, learned = self.facts, self._sound()
        if facts.width is None:
            return facts, Answers(np.zeros((len(x), 0)), None, None, None, None)
        return facts, learned.model.predict_details(learned.encode(x))

    def explain(self, x: RowsOfX) -> tuple[Facts, Explanation]:
        """Explain the prediction for the single row in `x`."""
        with self._guard():
            learned = self._sound()
            return self.facts, learned.explain(x)

    def snapshot(self, path: Path, about: dict[str, Any]) -> Facts:
        """Save the model with its position and measures; return the status of the saved model."""
        from mlca.model import set_extra

        with self._guard():
            facts, learned = self.facts, self._sound()
            stands = {"position": facts.position, "generation": facts.generation, "checksum": facts.checksum_text}
            set_extra(learned.model, NOTE, about | stands | {"measures": learned.measures.to_json()})
            learned.model.save(path)
            return facts

    @contextmanager
    def measures(self) -> Iterator[LogMeasures]:
        """Yield the measures; no row is learned until the block ends."""
        with self._guard():
            yield self._learned.measures

    def _sound(self) -> Learned:
        if self._failed:
            raise unavailable("training of the model has failed", "ask the operator to restart the service")
        return self._learned

    def _update_facts(self) -> None:
        self.facts = self._learned.facts()
        self._learned.measures.note(self.facts.position, self.facts.nodes)


def new_parameters(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return all parameters of a new service's model: the chosen ones and the defaults.

    All are stored in the log, because a later version may have other defaults but must rebuild the same model.
    """
    from mlca.classifier import MLCA
    from mlca.options import without_effect

    for name in without_effect(chosen):
        raise ValueError(
            f"{name} has no effect without --decision bayes or --published; add one of these, or omit {name}"
        )
    defaults: dict[str, Any] = {"recency": chosen.get("decision") != "bayes"}
    model = MLCA(**defaults | chosen)
    model._check_parameters()
    return {name: value for name, value in model.get_params().items() if name not in ("n_jobs", "verbose")}


def new_model(kept: dict[str, Any], n_jobs: int | None) -> MLCA:
    """Create the model of a new or replayed log, with the parameters stored in the log.

    Logs of earlier versions lack newer parameters; these get the values that match the earlier behaviour.
    """
    from mlca.classifier import MLCA

    before: dict[str, Any] = {
        "similarity": "correntropy",
        "decision": "bayes",
        "text_features": 4096,
        "search": "exact",
    }
    return MLCA(**before | kept, n_jobs=n_jobs)

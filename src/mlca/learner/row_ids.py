"""The user's IDs of the rows that each node represents, for use in explanations.

The learner counts the rows of a node but does not list them. So rows with IDs are learned one by one. If there is a new
node afterwards, the row has become that node; otherwise it has joined the node whose count has increased. The first
window is learned as a whole when it is full. To find the nodes of its rows, a separate learner learns the same rows
with each row's index as its label; this works because nodes do not depend on labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from mlca.learner.core import Learner, rows_in

RowId: TypeAlias = str | int

# Largest number of IDs kept per node: those of its first rows.
MOST_PER_NODE = 100


class RowIds:
    """The IDs of the rows that each node represents, with nodes numbered in order of creation.

    Examples
    --------
    >>> from mlca import MLCA
    >>> model = MLCA().fit([[0.0], [1.0]], [{"low"}, {"high"}], ids=["a", "b"])
    >>> model.explain([0.9]).rows
    (('b',), ('a',))
    """

    def __init__(self) -> None:
        self._of_node: dict[int, list[RowId]] = {}
        self._waiting: dict[int, RowId] = {}  # by row index, while the first window fills

    @property
    def waits(self) -> bool:
        """Whether some rows with IDs still wait for the first window to fill."""
        return bool(self._waiting)

    def copy(self) -> RowIds:
        """Return an independent copy."""
        copied = RowIds()
        copied._of_node = {node: ids.copy() for node, ids in self._of_node.copy().items()}
        copied._waiting = self._waiting.copy()
        return copied

    def learn(
        self, learner: Learner, rows: Any, indptr: Any, labels: Any, n_labels: int, ids: Sequence[RowId | None]
    ) -> None:
        """Learn rows with `learner`, and record the node of each row that has an ID."""
        counts: dict[int, int] | None = None
        self._note_first_window(learner)  # an interrupt may have prevented this before
        for row, (row_id, (start, stop)) in enumerate(zip(ids, pairwise(indptr.tolist()), strict=True)):
            n_nodes, n_seen = learner.n_nodes, learner.n_seen
            if row_id is not None and n_nodes > 0 and counts is None:
                counts = _counts_by_node(learner)
            learner.learn(rows[row : row + 1], np.array([0, stop - start]), labels[start:stop], n_labels)
            if n_nodes == 0:
                if row_id is not None:
                    self._waiting[n_seen] = row_id
                self._note_first_window(learner)
            elif row_id is None or counts is None:
                counts = None
            elif learner.n_nodes > n_nodes and learner.parameters.max_nodes is None:
                counts[n_nodes] = 1
                self._note(n_nodes, row_id)
            else:
                before, counts = counts, _counts_by_node(learner)
                taken_in = (node for node, count in counts.items() if count != before.get(node))
                for node in taken_in:  # none if `max_nodes` is reached and the row was dropped
                    self._note(node, row_id)

    def behind(self, learner: Learner, nodes: Sequence[int]) -> tuple[tuple[RowId, ...], ...]:
        """Return, for each given node index, the IDs of the rows that the node represents."""
        of_node: Mapping[int, Sequence[RowId]] = self._of_node
        settled = learner.settled()
        if self._waiting:
            of_node = {node: self._ids_of(numbers) for node, numbers in _rows_of_first_nodes(learner).items()}
        numbers = list(_counts_by_node(settled)) if settled.parameters.max_nodes is not None else range(settled.n_nodes)
        return tuple(tuple(of_node.get(numbers[node], ())) for node in nodes)

    def to_json(self) -> dict[str, Any]:
        """Return the IDs as JSON."""
        return {
            "nodes": [[node, *ids] for node, ids in sorted(self._of_node.copy().items())],
            "waiting": [list(waiting) for waiting in sorted(self._waiting.copy().items())],
        }

    def _note_first_window(self, learner: Learner) -> None:
        if self._waiting and learner.n_nodes:
            for node, numbers in _rows_of_first_nodes(learner).items():
                for row_id in self._ids_of(numbers):
                    self._note(node, row_id)
            self._waiting = {}

    def _ids_of(self, numbers: Sequence[int]) -> list[RowId]:
        return [self._waiting[number] for number in numbers if number in self._waiting]

    def _note(self, node: int, row_id: RowId) -> None:
        ids = self._of_node.setdefault(node, [])
        if len(ids) < MOST_PER_NODE and row_id not in ids:
            ids.append(row_id)


def row_ids_from_json(plain: Any) -> RowIds:
    """Read the result of `RowIds.to_json`; raise ValueError if it is invalid."""
    read = RowIds()
    try:
        for node, *ids in plain["nodes"]:
            read._of_node[_number(node)] = [_row_id(one) for one in ids]
        read._waiting = {_number(row): _row_id(one) for row, one in plain["waiting"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the row IDs are damaged ({error}); restore the model from a backup") from None
    return read


def _counts_by_node(learner: Learner) -> dict[int, int]:
    """Return the row count of each node, by the node's index in order of creation."""
    state = learner.state("counts")
    counts = state["counts"].tolist()
    numbers = state["reservoir.births"].tolist() if learner.parameters.max_nodes is not None else range(len(counts))
    return dict(zip(numbers, counts, strict=True))


def _rows_of_first_nodes(learner: Learner) -> dict[int, list[int]]:
    """Return each node's row indices, for a learner that has seen only its first window."""
    rows = rows_in(learner.state(), "recent", learner)
    numbers = np.arange(rows.shape[0], dtype=np.int32)
    trial = Learner(learner.parameters, learner.n_features, learner.sparse_nodes)
    trial.learn(rows, np.arange(rows.shape[0] + 1), numbers, len(numbers))
    settled = trial.settled()
    state = settled.state("label_counts")
    parts = [
        state["label_counts.indices"][start:stop].tolist() for start, stop in pairwise(state["label_counts.indptr"])
    ]
    return dict(zip(_counts_by_node(settled), parts, strict=True))


def _row_id(value: Any) -> RowId:
    if not isinstance(value, str) and type(value) is not int:
        raise ValueError(f"{value!r:.40} is not an ID: expected text or a whole number")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is not a node or row index: expected a whole number of at least 0")
    return value

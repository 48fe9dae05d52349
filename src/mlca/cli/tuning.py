"""Choose vigilance and variant (`attributes`) by test-then-train on a file's first rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.tables.batches import Batch

_VIGILANCES = (0.01, 0.1, 0.3)

# One bandwidth per feature for thousands of text features would make a model too large.
_VARIANTS_OF_DENSE_ROWS = ("common", "individual")
_VARIANTS_OF_SPARSE_ROWS = ("common",)

# A smaller gain in F1 does not justify more nodes.
_CLOSE = 0.01


@dataclass(frozen=True)
class Trial:
    """A combination of vigilance and variant, with its measured results."""

    vigilance: float
    attributes: str
    exact_match: float
    example_f1: float
    nodes: int

    def facts(self) -> dict[str, Any]:
        """Return the fields as a dict, for JSON output."""
        return dict(vars(self))


@dataclass(frozen=True)
class Tuning:
    """All trials, and the best one: the fewest nodes with F1 within 0.01 of the highest."""

    trials: tuple[Trial, ...]
    rows: int

    @property
    def best(self) -> Trial:
        """The trial with the fewest nodes among those with nearly the highest F1."""
        highest = max(trial.example_f1 for trial in self.trials)
        close = [trial for trial in self.trials if trial.example_f1 >= highest - _CLOSE]
        return min(close, key=lambda trial: (trial.nodes, -trial.example_f1))

    def in_words(self) -> list[str]:
        """Return the trials as a table, with the reason for the choice."""
        best, highest = self.best, max(trial.example_f1 for trial in self.trials)
        lines = [f"Tuned on the first {self.rows:,} rows, each predicted before it was learned:"]
        lines.append("  vigilance  attributes   exact match     F1   nodes")
        for trial in self.trials:
            mark = "  <" if trial is best else ""
            lines.append(
                f"  {trial.vigilance:<9g}  {trial.attributes:<11}  {trial.exact_match:11.3f}  {trial.example_f1:5.3f}  "
                f"{trial.nodes:6,}{mark}"
            )
        why = "the highest F1" if best.example_f1 == highest else f"F1 within {_CLOSE} of the highest, and fewest nodes"
        return [*lines, f"Chosen: --vigilance {best.vigilance:g} --attributes {best.attributes} ({why})"]


def tune(model: MLCA, batches: Sequence[Batch], variants: Sequence[str] | None = None) -> Tuning:
    """Evaluate every combination of vigilance and variant on the given batches.

    Parameters
    ----------
    model : MLCA
        An empty model; its other parameters are kept.
    batches : sequence of Batch
        The first rows of the file, encoded with the same layout.
    variants : sequence of str, optional
        The values of `attributes` to try; the default depends on whether the rows are sparse.

    Returns
    -------
    Tuning

    Raises
    ------
    ValueError
        If no row after the first has a label.
    """
    from sklearn.base import clone

    from mlca.metrics import prequential

    sparse_rows, categories = hasattr(batches[0].X, "indptr"), list(batches[0].layout.nominal)
    trials = []
    if variants is None:
        variants = _VARIANTS_OF_SPARSE_ROWS if sparse_rows else _VARIANTS_OF_DENSE_ROWS
    for vigilance, attributes in product(_VIGILANCES, variants):
        trial = clone(model).set_params(vigilance=vigilance, attributes=attributes, categorical_features=categories)
        result = prequential(trial, _steps(batches), every=10**9, alarms=False)
        measured = result.records[-1].running
        trials.append(Trial(vigilance, attributes, measured.exact_match, measured.example_f1, trial.n_nodes_))
    n_rows = sum(len(batch.numbers) for batch in batches)
    if any(isnan(trial.example_f1) for trial in trials):
        raise ValueError(
            f"--tune compares predictions of all rows but the first, and none of these has a label (rows: {n_rows:,}); "
            "give more rows, or leave --tune out"
        )
    return Tuning(tuple(trials), n_rows)


def _steps(batches: Sequence[Batch]) -> Iterator[tuple[Any, list[tuple[str, ...]]]]:
    for batch in batches:
        for row in range(len(batch.numbers)):
            yield batch.X[row : row + 1], batch.labels[row : row + 1]

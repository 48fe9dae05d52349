"""Scope: the part of the paper that a run covers, its tasks, and its grid search.

As in the paper, the search selects the parameters with the highest exact match on the training rows themselves. Large
datasets use the parameters of langlog, the small dataset with the most labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mlca.datasets.catalogue import CATALOGUE, entry_of
from mlca.experiments.algorithms import (
    CONFIGURATIONS,
    MLCA_VARIANTS,
    STANDS_FOR_LARGE,
    VIGILANCES,
    Configuration,
    choose,
)
from mlca.experiments.paper_tables import read_paper
from mlca.experiments.splits import N_FOLDS, how_to_get, is_available
from mlca.experiments.tasks import Outcome, Task, Value, in_order

REPETITIONS = 20  # seeds per stream, and folds of 2 x 10-fold cross-validation per dataset
POINTS = 10_000  # per disc in the stream of three discs
DRIFTING_ROWS = 50_000

SCALE = {row["dataset"]: row["scale"] for row in read_paper("datasets")}
NUMERIC = frozenset(
    row["dataset"]
    for row in read_paper("datasets")
    if int(row["numeric_attributes"]) > int(row["categorical_attributes"])
)

# Datasets that are not in the paper: well-known streams, and larger datasets for the experiment `beyond`.
OTHERS = tuple(name for name in CATALOGUE if name not in SCALE)

QUICK_DATASETS = ("flags", "emotions", "virusgo", "yeast")
QUICK_REPETITIONS = 2
QUICK_POINTS = 1_000
QUICK_DRIFTING_ROWS = 2_500
QUICK_EPOCHS = 3
EPOCHS = 10


@dataclass(frozen=True)
class Scope:
    """The part of the paper that a run covers.

    Attributes
    ----------
    configurations : tuple of Configuration
        The configurations of the paper's comparison.
    datasets, missing : tuple of str
        The paper's datasets that were requested: those that are available, and those that must be downloaded.
    repetitions : int
        The number of seeds per stream, and of folds per dataset (at most twenty).
    points : int
        The number of points per disc in the stream of three discs.
    vigilances : tuple of float
        The values of the vigilance V in the grid search.
    epochs : int
        The number of passes over the rows in the experiment on epochs.
    chosen : mapping of (str, str) to parameters
        The parameters that this run's grid search chose, by configuration key and dataset.
    others : tuple of str
        The requested datasets that are not in the paper and are available.
    drifting_rows : int
        The number of rows of a generated stream with concept drift.
    patient : bool
        Whether rivals that take minutes on a small dataset are included.
    words : tuple of str or None
        The requested algorithms, by key or family; None for all.
    """

    configurations: tuple[Configuration, ...] = CONFIGURATIONS
    datasets: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    repetitions: int = REPETITIONS
    points: int = POINTS
    vigilances: tuple[float, ...] = VIGILANCES
    epochs: int = EPOCHS
    chosen: Mapping[tuple[str, str], Mapping[str, Value]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    drifting_rows: int = DRIFTING_ROWS
    patient: bool = True
    words: tuple[str, ...] | None = None

    def wanted(self, configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
        """Return those of the given configurations that the user requested."""
        return tuple(configurations) if self.words is None else choose(self.words, configurations)

    @property
    def small_datasets(self) -> tuple[str, ...]:
        """The datasets in scope that the paper cross-validates."""
        return tuple(name for name in self.datasets if SCALE[name] == "small")

    @property
    def variants(self) -> tuple[str, ...]:
        """The requested variants out of MLCA, MLCA-I and MLCA-C."""
        wanted = {configuration.family for configuration in self.configurations}
        return tuple(variant for variant in MLCA_VARIANTS if variant in wanted)

    @property
    def mlca_configurations(self) -> tuple[Configuration, ...]:
        """The requested configurations of MLCA that take part in the paper's ranking."""
        return tuple(one for one in self.configurations if one.is_mlca and one.ranked)

    def parameters(self, configuration: Configuration, dataset: str) -> Mapping[str, Value] | None:
        """Return a configuration's parameters for a dataset; None if the paper reports none."""
        return self.chosen.get((configuration.key, dataset)) or configuration.tuned(dataset)

    def fold_tasks(
        self,
        configuration: Configuration,
        dataset: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        on_training: bool = False,
        epochs: int = 1,
        arrangement: str = "",
    ) -> list[Task]:
        """Return one task per fold, or one task for the official split of a large dataset.

        By default, the tuned parameters are used; the list is empty if there are none.
        """
        parameters = parameters or self.parameters(configuration, dataset)
        if parameters is None:
            return []
        folds: list[tuple[int | None, int | None]] = [(None, None)]
        if SCALE.get(dataset) == "small" or not CATALOGUE[dataset].official_split:
            folds = [divmod(number, N_FOLDS) for number in range(self.repetitions)]
        return [
            Task(
                "fold",
                configuration.estimator,
                in_order(parameters),
                dataset,
                seed=number,
                repetition=repetition,
                fold=fold,
                scaled=configuration.scaled,
                on_training=on_training,
                epochs=epochs,
                arrangement=arrangement,
            )
            for number, (repetition, fold) in enumerate(folds)
        ]

    def complaint(self) -> str:
        """Return instructions for getting the missing datasets; empty if none are missing."""
        return "\n".join(how_to_get(name) for name in self.missing)


def scope_of(
    *,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    algorithms: Sequence[str] | None = None,
    repetitions: int | None = None,
) -> Scope:
    """Return the scope of a run.

    Parameters
    ----------
    quick : bool, default=False
        Whether to use only a few folds and seeds, small datasets and short streams.
    datasets, algorithms : sequence of str, optional
        Their names (default: all algorithms, and all datasets or, with `quick`, four small ones).
    repetitions : int, optional
        The number of seeds per stream, and of folds per dataset (default: 20; with `quick`, 2).

    Examples
    --------
    >>> scope_of(algorithms=["mlca-c"], datasets=[]).variants
    ('MLCA-C',)
    """
    default = QUICK_DATASETS if quick else (*SCALE, *OTHERS)
    wanted = default if datasets is None else tuple(entry_of(name).name for name in datasets)
    papers = tuple(name for name in wanted if name in SCALE)
    return Scope(
        configurations=CONFIGURATIONS if algorithms is None else choose(algorithms),
        datasets=tuple(name for name in papers if is_available(name)),
        missing=tuple(name for name in papers if not is_available(name)),
        repetitions=repetitions or (QUICK_REPETITIONS if quick else REPETITIONS),
        points=QUICK_POINTS if quick else POINTS,
        vigilances=VIGILANCES[::3] if quick else VIGILANCES,
        epochs=QUICK_EPOCHS if quick else EPOCHS,
        others=tuple(name for name in wanted if name in OTHERS and is_available(name)),
        drifting_rows=QUICK_DRIFTING_ROWS if quick else DRIFTING_ROWS,
        patient=not quick,
        words=None if algorithms is None else tuple(algorithms),
    )


def search_tasks(scope: Scope) -> list[Task]:
    """Return the tasks of the grid search: every set of parameters on every fold."""
    return [
        task
        for dataset in scope.small_datasets
        for configuration in scope.configurations
        if configuration.searched
        for parameters in configuration.grid()
        for task in scope.fold_tasks(configuration, dataset, parameters, on_training=True)
    ]


def with_chosen(scope: Scope, outcomes: Mapping[Task, Outcome]) -> Scope:
    """Return the scope with the best parameters that the search found; the first wins ties."""
    chosen: dict[tuple[str, str], Mapping[str, Value]] = {}
    for dataset in scope.small_datasets:
        for configuration in scope.configurations:
            if not configuration.searched:
                continue
            grid = configuration.grid()
            scores = [
                _mean_training_match(scope.fold_tasks(configuration, dataset, parameters, on_training=True), outcomes)
                for parameters in grid
            ]
            if max(scores) > -np.inf:
                chosen[configuration.key, dataset] = grid[int(np.argmax(scores))]
    for dataset in scope.datasets:
        if SCALE[dataset] == "large":
            for configuration in scope.configurations:
                if (configuration.key, STANDS_FOR_LARGE) in chosen:
                    chosen[configuration.key, dataset] = chosen[configuration.key, STANDS_FOR_LARGE]
    return replace(scope, chosen=chosen)


def _mean_training_match(tasks: list[Task], outcomes: Mapping[Task, Outcome]) -> float:
    """Return the mean exact match on training rows; minus infinity if a fold has no result."""
    values = [outcomes[task].values.get("training_exact_match") for task in tasks if task in outcomes]
    if len(values) < len(tasks) or None in values:
        return -np.inf
    return float(np.mean([value for value in values if value is not None]))

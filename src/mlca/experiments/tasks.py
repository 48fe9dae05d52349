"""Tasks: the units of work of an experiment, each with a key for its stored result.

A result depends on the task and on the code, and a table must not mix results of different code. Therefore the key
includes a fingerprint of the code: a hash of the package's sources, because the code also changes without a new version
number. Sources that only plan tasks, draw figures or write reports are left out; otherwise a new colour in a figure
would cost a day of computing. The fingerprint includes the versions of the numeric libraries, which may change the last
bits of a result. River's version is part of the key only for River's learners.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeAlias

import mlca
from mlca.kernels import native

Value: TypeAlias = str | float | int
Work: TypeAlias = Literal["stream", "fold", "growth", "prequential"]

LIBRARIES = ("numpy", "scipy", "scikit-learn")

# Prefix of the class names of River's learners in `rivals`.
RIVER_PREFIX = "River"

# Sources that cannot change the result of a task.
WITHOUT_INFLUENCE = (
    "cli",
    "plots",
    "statistics",
    "experiments/__init__.py",
    "experiments/execution.py",
    "experiments/paper_tables",
    "experiments/report",
    "experiments/reproduction.py",
    "experiments/scope.py",
    "experiments/store.py",
    "experiments/studies",
)


@dataclass(frozen=True)
class Task:
    """The definition of one fit and its measures.

    A task does not name an experiment, so experiments that need the same fit share it.

    Attributes
    ----------
    work : {"stream", "fold", "growth", "prequential"}
        What is measured: a stream of discs; a fold, or the official split, of a dataset; the growth of the training
        time; or a dataset as a stream whose rows are predicted before they are learned.
    algorithm : str
        The class of the estimator.
    parameters : tuple of (str, value)
        The parameters of the estimator, sorted by name.
    dataset : str
        The name of a dataset; for a stream of discs, its condition.
    seed : int
        The seed of the algorithm and of generated data.
    repetition, fold : int or None
        The index of the shuffle, and of the test fold within it; None for the official split. For a dataset as a
        stream, `repetition` is the seed of the shuffle, or None for the order of the file.
    scaled : bool
        Whether features are scaled to [0, 1], with the ranges of the training rows.
    on_training : bool
        Whether exact match on the training rows is also measured.
    epochs : int
        The number of passes over the rows; all measures are taken after each pass.
    size : int or None
        For generated data: the number of points per disc, or of rows.
    nodes : int or None
        For generated data: the number of nodes of the model.
    arrangement : str
        The name of an arrangement of the learned rows (see `arrangements`), or the drift of a generated stream; empty
        for none.
    """

    work: Work
    algorithm: str
    parameters: tuple[tuple[str, Value], ...]
    dataset: str
    seed: int = 0
    repetition: int | None = None
    fold: int | None = None
    scaled: bool = False
    on_training: bool = False
    epochs: int = 1
    size: int | None = None
    nodes: int | None = None
    arrangement: str = ""

    def to_json(self) -> str:
        """Return the task as a JSON string; equal tasks give equal strings."""
        return json.dumps(asdict(self) | {"parameters": dict(self.parameters)}, sort_keys=True)

    @property
    def key(self) -> str:
        """The key of the stored result: a hash of the task and of the code."""
        code = f"{fingerprint()} {_river()}" if self.algorithm.startswith(RIVER_PREFIX) else fingerprint()
        return hashlib.sha256(f"{code}\n{self.to_json()}".encode()).hexdigest()

    def __str__(self) -> str:
        parameters = " ".join(f"{name}={value}" for name, value in self.parameters)
        part = "" if self.fold is None else f" fold {self.repetition}.{self.fold}"
        arranged = f", {self.arrangement}" if self.arrangement else ""
        return f"{self.algorithm} {parameters} on {self.dataset}{part}{arranged}"


def in_order(parameters: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    """Return parameters as a tuple sorted by name, as tasks need them.

    Examples
    --------
    >>> in_order({"window": 50, "vigilance": 0.1})
    (('vigilance', 0.1), ('window', 50))
    """
    return tuple(sorted(parameters.items()))


@dataclass(frozen=True)
class Outcome:
    """The result of a task.

    Attributes
    ----------
    task : Task
        The task.
    status : {"done", "too long", "failed"}
        Whether the task has a result, or why it has none.
    values : mapping of str to float
        The measures by name; ``name@stage`` for a stage (numbered from 1) or a part of a stream. Undefined measures are
        NaN or absent.
    pictures : mapping of str to list
        Data for plots: nodes, or measures over the rows of a stream.
    trouble : str
        The reason for a failure, such as a traceback, or the exceeded time limit; empty if the task is done.
    seconds : float
        The duration of the whole task; for a timeout, the time limit.
    """

    task: Task
    status: Literal["done", "too long", "failed"]
    values: Mapping[str, float]
    pictures: Mapping[str, Any]
    trouble: str = ""
    seconds: float = 0.0


@cache
def fingerprint() -> str:
    """Return a hash of all code that can change a result."""
    root = Path(mlca.__file__).parent
    digest = hashlib.sha256(native.sources.encode())
    for library in LIBRARIES:
        digest.update(f"{library} {version(library)}\n".encode())
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not any(name == part or name.startswith(f"{part}/") for part in WITHOUT_INFLUENCE):
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _river() -> str:
    return f"river {version('river')}"

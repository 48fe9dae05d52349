"""Rivals: learners of other packages, and plain controls, with the face that the experiments ask for.

`batch` has scikit-learn's: they see all training rows at once and can neither go on learning nor take a new label,
which is what MLCA is compared with in ``mlca reproduce beyond``. `streams` has River's, which learn row by row, and
two controls that any stream has to be held against: to repeat the labels of the row before, and a model that is made
anew of the last rows. River is imported when one of its learners is made.

Whatever is not said here is the other package's default: rivals are what people get, as MLCA() is.
"""

from mlca.experiments.rivals.batch import BoostingPerLabel, LogisticPerLabel, RandomForest
from mlca.experiments.rivals.streams import (
    LastLabels,
    RiverAdaptiveForest,
    RiverAdaptiveTree,
    RiverLogistic,
    RiverNeighbours,
    SlidingWindow,
)

__all__ = [
    "BoostingPerLabel",
    "LastLabels",
    "LogisticPerLabel",
    "RandomForest",
    "RiverAdaptiveForest",
    "RiverAdaptiveTree",
    "RiverLogistic",
    "RiverNeighbours",
    "SlidingWindow",
]

"""What the algorithm is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mlca.kernels import native
from mlca.options import Attributes, Decision, Drift, Rule, Similarity, Vote

# With fewer nodes than this, hardly more than the neighbours themselves, screening has little to save.
SCREEN_FROM = 32


@dataclass(frozen=True)
class Parameters:
    """The parameters of the algorithm as it uses them, checked. See `mlca.MLCA`.

    These are the paper's by default. A vigilance of None is found from the first window and is a number from then on.
    """

    vigilance: float | None = 0.01
    n_neighbors: int = 10
    window: int = 50
    smoothing: float = 1.0
    attributes: Attributes = "common"
    rule: Rule = "published"
    vote: Vote = "counts"
    similarity: Similarity = "correntropy"
    decision: Decision = "bayes"
    recency: bool = False
    drift: Drift = "off"
    max_nodes: int | None = None
    categorical_features: tuple[int, ...] = ()
    seed: int = 0

    def settings(self, n_features: int, screen_from: int = SCREEN_FROM, mixed: bool = False) -> Any:
        """Return the parameters as the compiled loops need them; `mixed`: rows may have gaps or categories."""
        told = asdict(self)
        del told["seed"], told["categorical_features"]
        nominal = np.zeros(n_features if self.categorical_features else 0, np.uint8)
        nominal[list(self.categorical_features)] = 1
        told["vigilance"] = -1.0 if self.vigilance is None else self.vigilance
        told["max_nodes"] = self.max_nodes or 0
        return native.Settings(**told, n_features=n_features, screen_from=screen_from, mixed=mixed, nominal=nominal)

"""Settings of the algorithm."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mlca.options import (
    CELL_LIMITS,
    Attributes,
    CellLimits,
    Decision,
    Drift,
    Rule,
    Search,
    Similarity,
    Vote,
    decision_for,
    search_for,
)

# With fewer nodes, a fast approximate search before the exact one (screening) does not save time.
SCREEN_FROM = 32


@dataclass(frozen=True)
class Parameters:
    """Checked parameters of the algorithm; see `mlca.MLCA`.

    Defaults are the paper's. A vigilance of None is estimated from the first window.
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
    search: Search = "exact"
    max_nodes: int | None = None
    categorical_features: tuple[int, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "decision", decision_for(self.decision, self.similarity))
        object.__setattr__(self, "search", search_for(self.search, self.similarity, self.drift))

    def settings(
        self, n_features: int, screen_from: int = SCREEN_FROM, cell_limits: CellLimits = CELL_LIMITS
    ) -> dict[str, Any]:
        """Return the parameters as the compiled code expects them."""
        settings = asdict(self)
        limits = cell_limits.for_voters(self.n_neighbors) if self.search == "cells" else CellLimits(0, 0, 0)
        settings |= {"cells_from": limits.above, "cells_least": limits.least, "cells_per_root": limits.per_root}
        nominal = np.zeros(n_features if self.categorical_features else 0, np.uint8)
        nominal[list(self.categorical_features)] = 1
        settings["vigilance"] = -1.0 if self.vigilance is None else self.vigilance
        settings["max_nodes"] = self.max_nodes or 0
        return settings | {"n_features": n_features, "screen_from": screen_from, "nominal": nominal}

"""What the algorithm is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mlca.kernels import native
from mlca.options import Attributes, Rule, Vote

# With fewer nodes than this, hardly more than the neighbours themselves, screening has little to save.
SCREEN_FROM = 32


@dataclass(frozen=True)
class Parameters:
    """The parameters of the algorithm as it uses them: checked, every number resolved. See `mlca.MLCA`."""

    vigilance: float = 0.01
    n_neighbors: int = 10
    window: int = 50
    smoothing: float = 1.0
    attributes: Attributes = "common"
    rule: Rule = "published"
    vote: Vote = "counts"
    seed: int = 0

    def settings(self, n_features: int, screen_from: int = SCREEN_FROM) -> Any:
        """Return the parameters as the compiled loops need them."""
        told = asdict(self)
        del told["seed"]
        return native.Settings(**told, n_features=n_features, screen_from=screen_from)

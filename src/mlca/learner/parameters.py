"""What the algorithm is told: the words of its options and their numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from mlca.kernels import native

Attributes: TypeAlias = Literal["common", "individual", "clustered"]
Rule: TypeAlias = Literal["published", "released", "text"]
Vote: TypeAlias = Literal["counts", "frequencies"]

ATTRIBUTES: tuple[str, ...] = get_args(Attributes)
RULES: tuple[str, ...] = get_args(Rule)
VOTES: tuple[str, ...] = get_args(Vote)

# With fewer nodes than this, hardly more than the neighbours themselves, screening has little to save.
SCREEN_FROM = 32


@dataclass(frozen=True)
class Parameters:
    """The parameters of the algorithm as it uses them: checked, every number resolved. See `mlca.MLCA`."""

    vigilance: float = 0.01
    n_neighbors: int = 10
    window: int = 50
    smoothing: float = 1.0
    attributes: str = "common"
    rule: str = "published"
    vote: str = "counts"
    seed: int = 0

    def settings(self, n_features: int, screen_from: int = SCREEN_FROM) -> Any:
        """Return the parameters as the compiled loops need them."""
        told = asdict(self)
        del told["seed"]
        return native.Settings(**told, n_features=n_features, screen_from=screen_from)

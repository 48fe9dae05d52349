"""What the algorithm is told: the words of its options and their numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from mlca.kernels import native

Attributes: TypeAlias = Literal["common", "individual", "clustered"]
Rule: TypeAlias = Literal["published", "released", "text"]
Vote: TypeAlias = Literal["counts", "frequencies"]
Similarity: TypeAlias = Literal["learned", "correntropy"]
Decision: TypeAlias = Literal["calibrated", "bayes"]
Drift: TypeAlias = Literal["off", "follow"]

ATTRIBUTES: tuple[str, ...] = get_args(Attributes)
RULES: tuple[str, ...] = get_args(Rule)
VOTES: tuple[str, ...] = get_args(Vote)
SIMILARITIES: tuple[str, ...] = get_args(Similarity)
DECISIONS: tuple[str, ...] = get_args(Decision)
DRIFTS: tuple[str, ...] = get_args(Drift)

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
    attributes: str = "common"
    rule: str = "published"
    vote: str = "counts"
    similarity: str = "correntropy"
    decision: str = "bayes"
    recency: bool = False
    drift: str = "off"
    max_nodes: int | None = None
    seed: int = 0

    def settings(self, n_features: int, screen_from: int = SCREEN_FROM) -> Any:
        """Return the parameters as the compiled loops need them."""
        told = asdict(self)
        del told["seed"]
        told["vigilance"] = -1.0 if self.vigilance is None else self.vigilance
        told["max_nodes"] = self.max_nodes or 0
        return native.Settings(**told, n_features=n_features, screen_from=screen_from)

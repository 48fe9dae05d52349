"""How near counts as near: parameters as numbers for the loops, and MLCA-C's groups of attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlca.learner.growing import enlarged
from mlca.learner.kernels.bandwidth import attribute_means
from mlca.learner.kernels.fixedpoint import PER_UNIT
from mlca.learner.kernels.groups import Groups, learn_means
from mlca.learner.kernels.learn import PUBLISHED, RELEASED, TEXT, Settings
from mlca.learner.kernels.stores import CLUSTERED, COMMON, INDIVIDUAL
from mlca.learner.kernels.votes import COUNTS, FREQUENCIES

ATTRIBUTES = {"common": COMMON, "individual": INDIVIDUAL, "clustered": CLUSTERED}
RULES = {"published": PUBLISHED, "released": RELEASED, "text": TEXT}
VOTES = {"counts": COUNTS, "frequencies": FREQUENCIES}

# With fewer nodes than this, hardly more than the neighbours themselves, screening has little to save.
SCREEN_FROM = 24


@dataclass(frozen=True)
class Parameters:
    """The parameters of the algorithm, checked. See `mlca.MLCA` for what they mean."""

    vigilance: float = 0.01
    n_neighbors: int = 10
    window: int = 50
    smoothing: float = 1.0
    attributes: str = "common"
    rule: str = "published"
    vote: str = "counts"
    seed: int = 0

    @property
    def mode(self) -> int:
        """The kernels' number for `attributes`."""
        return ATTRIBUTES[self.attributes]

    def settings(self, n_features: int) -> Settings:
        """Return the parameters as the loops need them."""
        return Settings(
            mode=self.mode,
            rule=RULES[self.rule],
            vote=VOTES[self.vote],
            n_neighbors=self.n_neighbors,
            window=self.window,
            vigilance=self.vigilance,
            threshold=self._threshold(n_features),
            screen_from=SCREEN_FROM,
        )

    def _threshold(self, n_features: int) -> int:
        """Return the right side of the vigilance test in units: V^2 d rounded, or V d rounded down.

        Sums are whole units, so a sum is above V d exactly if it is above V d rounded down.
        """
        if self.attributes == "common":
            return common_threshold(self.vigilance, n_features)
        return int(np.floor(self.vigilance * n_features * PER_UNIT))


def common_threshold(vigilance: float, n_features: int) -> int:
    """Return V^2 d, rounded to whole units."""
    return int(np.rint(vigilance * vigilance * n_features * PER_UNIT))


class AttributeGroups:
    """A one-dimensional CIM-based ART over the attributes' means, which MLCA-C keeps beside its nodes.

    Attributes
    ----------
    centres, counts, bandwidths : ndarray
        One entry a centre, oldest first.
    sorted : Groups
        The centres in ascending order, each with its age.
    """

    def __init__(self) -> None:
        self.centres: NDArray[np.float64] = np.empty(0)
        self.counts: NDArray[np.int64] = np.empty(0, np.int64)
        self.bandwidths: NDArray[np.float64] = np.empty(0)
        self.sorted = Groups(self.centres, self.counts)

    def learn(self, window: NDArray[np.float64], number: int, parameters: Parameters) -> None:
        """Learn the means of the attributes over a window; `number` is the number of the round.

        The order of the means is random, but drawn from a generator of its own for each round, so that
        nothing else can advance it.
        """
        means = np.empty(window.shape[1])
        attribute_means(window, 0, len(means), means)
        order = np.random.default_rng([parameters.seed, number]).permutation(len(means))
        room = len(self.centres) + len(means)
        centres, counts, bandwidths = (enlarged(part, room) for part in (self.centres, self.counts, self.bandwidths))
        threshold = common_threshold(parameters.vigilance, 1)
        n = learn_means(means[order], parameters.window, threshold, centres, counts, bandwidths, len(self.centres))
        self.set(centres[:n], counts[:n], bandwidths[:n])

    def set(self, centres: NDArray[np.float64], counts: NDArray[np.int64], bandwidths: NDArray[np.float64]) -> None:
        """Take over centres with their counts and bandwidths."""
        self.centres, self.counts, self.bandwidths = centres, counts, bandwidths
        ages = np.argsort(centres, kind="stable")
        self.sorted = Groups(centres[ages], ages)

"""The six algorithms that the paper compares with MLCA, with the same estimator interface.

Three use neighbours. `MLkNN` counts the labels of the nearest training rows and turns the counts into probabilities
by Bayes' rule.
In `MLSAkNN`, neighbours in a window over a stream vote; the window's length, the number of neighbours and the voters
adapt. `MCIC` collects rows in micro-clusters that fade, and predicts with the nearest clusters.

Three are linear or kernel models. `MuENL` learns one linear model per label that ranks the label against the others,
and detects new labels in a stream. `MLODM` optimises the distribution of margins instead of the smallest one. `GLOCAL`
factors the labels into a latent space that preserves the label correlations of all rows and of groups of rows.

`MLSAkNN`, `MCIC` and `MuENL` are stream learners: they have `partial_fit` and accept new labels. If the authors' code
has been released, the module follows it where code and paper differ, and documents the difference.

A class is imported when it is first used, so that importing one algorithm does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlca.peers.glocal import GLOCAL as GLOCAL
    from mlca.peers.mcic import MCIC as MCIC
    from mlca.peers.mlknn import MLkNN as MLkNN
    from mlca.peers.mlodm import MLODM as MLODM
    from mlca.peers.mlsaknn import MLSAkNN as MLSAkNN
    from mlca.peers.muenl import MuENL as MuENL

__all__ = ["GLOCAL", "MCIC", "MLODM", "MLSAkNN", "MLkNN", "MuENL"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"mlca.peers.{name.lower()}"), name)
    raise AttributeError(f"module 'mlca.peers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""The six algorithms that the paper compares MLCA with, one per file, with the same estimator contract.

Three use neighbours. `MLkNN` counts the labels of the nearest training rows and weighs the counts by Bayes' rule.
`MLSAkNN` does so in a window over a stream, whose length, number of neighbours and voters adapt. `MCIC` collects rows
in micro-clusters that fade, and predicts by the nearest clusters.

Three are linear or kernel models. `MuENL` learns one linear model per label that ranks it against the others, and
detects new labels in a stream. `MLODM` optimises the distribution of margins instead of the smallest one. `GLOCAL`
factors the labels into a latent space and preserves label correlations, of all rows and of groups of rows, in it.

`MLSAkNN`, `MCIC` and `MuENL` are stream learners: they have `partial_fit`, and their labels may grow. Each file follows
the paper's released code where code and text differ, and documents it.

Names are imported when they are first used, so that one algorithm does not wait for the others.
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

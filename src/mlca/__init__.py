"""Continual multi-label classification.

`MLCA` learns one row at a time, accepts new labels at any time, and explains its predictions by the prototypes that
voted.

Names are imported when they are first used, so that `mlca --help` does not wait for NumPy and SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlca.classifier import MLCA as MLCA
    from mlca.classifier import load as load
    from mlca.explanation import Explanation as Explanation
    from mlca.merging import merge as merge
    from mlca.targets.text import labels_from as labels_from

__version__ = "0.2.0"
__all__ = ["MLCA", "Explanation", "__version__", "labels_from", "load", "merge"]

_MODULES = {
    "MLCA": "mlca.classifier",
    "Explanation": "mlca.explanation",
    "labels_from": "mlca.targets.text",
    "load": "mlca.classifier",
    "merge": "mlca.merging",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'mlca' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

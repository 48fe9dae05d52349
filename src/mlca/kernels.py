"""The compiled code, loaded from the best module for this machine's processor.

The C++ sources (src/kernels) are compiled for each level of x86-64 processors: v2 (since about 2009), v3 (AVX2, since
2013) and v4 (AVX-512). On other architectures they are compiled once, as "plain". All levels give bit-identical
results. The environment variable MLCA_CPU selects a lower level.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlca import _kernels as native  # the interface that all levels share

__all__ = ["LEVEL", "LEVELS", "available", "load_level", "native"]

LEVELS = ("v2", "v3", "v4", "plain")


@cache
def available() -> tuple[str, ...]:
    """Return the available levels that this processor supports, best last.

    Examples
    --------
    >>> from mlca import kernels
    >>> kernels.LEVEL in kernels.available()
    True
    """
    built = [level for level in LEVELS if find_spec(f"mlca._kernels_{level}") is not None]
    if not built:
        raise ImportError("mlca's compiled modules are missing; install the package (pip install .) to build them")
    # Importing the lowest level raises an error on older processors; `processor_has` reports the levels above it.
    lowest = load_level(built[0])
    return tuple(level for level in built if lowest.processor_has(level))


def load_level(level: str) -> Any:
    """Return the compiled module of a processor level, such as "v3"."""
    return import_module(f"mlca._kernels_{level}")


def _choose() -> str:
    asked = os.environ.get("MLCA_CPU", "")
    if not asked:
        return available()[-1]
    if asked not in available():
        raise ValueError(f"MLCA_CPU is {asked!r}; unset it, or set it to one of {', '.join(available())}")
    return asked


LEVEL = _choose()
if not TYPE_CHECKING:
    native = load_level(LEVEL)
